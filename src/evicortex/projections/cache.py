"""What is kept in memory of each namespace, in step with the generation that a reader sees."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import apsw


class Resident(Protocol):
    """Something loaded of one namespace in one generation; ``len`` counts its rows."""

    @property
    def generation(self) -> int:
        """The namespace's generation when it was loaded."""
        ...

    def __len__(self) -> int: ...


Entry = TypeVar("Entry", bound=Resident)


class NamespaceCache(Generic[Entry]):
    """Least recently used namespaces go first; the one in use always stays.

    One cache belongs to one open ledger and is safe to share between threads.
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, Entry] = OrderedDict()

    def get(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        generation: int,
        make: Callable[[], Entry],
    ) -> Entry:
        """Return the shared entry of the namespace, or one of the caller's own.

        It is the caller's own when its snapshot is older than a purge or rebuild that another
        reader has seen already, and inside a write transaction, which may still be undone and
        its row ids used again.
        """
        if connection.txn_state("main") == apsw.SQLITE_TXN_WRITE:
            return make()
        with self._lock:
            entry = self._entries.get(namespace_id)
            if entry is not None and entry.generation > generation:
                return make()
            if entry is None or entry.generation < generation:
                entry = self._entries[namespace_id] = make()
            self._entries.move_to_end(namespace_id)
            return entry

    def trim(self, in_use: int) -> None:
        """Forget namespaces until the rest fits, but never the one ``in_use``."""
        with self._lock:
            total = sum(map(len, self._entries.values()))
            for namespace_id in list(self._entries):
                if total <= self._max_rows:
                    return
                if namespace_id != in_use:
                    total -= len(self._entries.pop(namespace_id))

    def rows(self) -> int:
        """Return how many rows are in memory."""
        with self._lock:
            return sum(map(len, self._entries.values()))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
