"""What a pure function finds in every text of a namespace, in memory, in step with its rows.

A projection without a table: it is cheap to derive again (one pass over the texts when a
namespace is first asked for), and only new texts are read afterwards.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import apsw

from evicortex.projections.cache import NamespaceCache
from evicortex.projections.resident import NamespaceRows

Note = TypeVar("Note")
Derive = Callable[[int, int, str], Sequence[Note]]
"""Given (row index, actor id, text), returns what is to be kept of that text."""


class _Loaded(Generic[Note]):
    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.lock = threading.Lock()
        self.done = 0
        self.rows: list[int] = []
        self.notes: list[Note] = []

    def __len__(self) -> int:
        return self.done


class TextNotes(Generic[Note]):
    """Notes of one kind for every namespace of one open ledger; safe to share between threads."""

    def __init__(self, derive: Derive[Note], max_rows: int = 1_000_000) -> None:
        self._derive = derive
        self._cache = NamespaceCache[_Loaded[Note]](max_rows)

    def get(self, connection: apsw.Connection, rows: NamespaceRows) -> list[Note]:
        """Return the notes of exactly these rows, in order; texts not read yet are read now."""
        loaded = self._cache.get(
            connection, rows.namespace_id, rows.generation, lambda: _Loaded(rows.generation)
        )
        with loaded.lock:
            if loaded.done < len(rows):
                self._extend(connection, rows, loaded)
            end = len(loaded.notes)
            if loaded.done > len(rows):
                end = bisect_left(loaded.rows, len(rows))
            found = loaded.notes[:end]
        self._cache.trim(rows.namespace_id)
        return found

    def _extend(
        self, connection: apsw.Connection, rows: NamespaceRows, loaded: _Loaded[Note]
    ) -> None:
        first, last = int(rows.row_ids[loaded.done]), int(rows.row_ids[-1])
        texts = connection.execute(
            "SELECT content FROM evidence WHERE row_id BETWEEN ? AND ? ORDER BY row_id",
            (first, last),
        )
        actors = rows.actor[loaded.done :].tolist()
        for index, (actor, (text,)) in enumerate(zip(actors, texts, strict=True), loaded.done):
            for note in self._derive(index, actor, text):
                loaded.rows.append(index)
                loaded.notes.append(note)
        loaded.done = len(rows)

    def texts(
        self, connection: apsw.Connection, rows: NamespaceRows, indices: Sequence[int]
    ) -> list[tuple[int, str]]:
        """Return (actor id, text) of rows by index, in the order given."""
        found = connection.executemany(
            "SELECT content FROM evidence WHERE row_id = ?",
            [(int(rows.row_ids[index]),) for index in indices],
        )
        return [
            (int(rows.actor[index]), text) for index, (text,) in zip(indices, found, strict=True)
        ]

    def close(self) -> None:
        """Forget everything."""
        self._cache.clear()
