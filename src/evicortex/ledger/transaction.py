"""What is done inside one read snapshot or one write: namespaces, and what waits for the commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, TypeVar, cast, overload

import apsw

from evicortex.errors import ReadOnlyError
from evicortex.ledger import keys


class NamespaceRow(NamedTuple):
    """A namespace as it was when it was looked up; ``next_position`` counts from 1."""

    namespace_id: int
    name: str
    next_position: int
    generation: int


class Deferred(Protocol):
    """Something collected during a write and written just before its commit."""

    def flush(self) -> None:
        """Write it."""
        ...


D = TypeVar("D", bound=Deferred)


class Transaction:
    """One read snapshot or one write, valid inside its ``with`` block only."""

    __slots__ = ("_deferred", "_last", "connection", "recorded_at", "writable")

    def __init__(self, connection: apsw.Connection, *, writable: bool, recorded_at: int) -> None:
        self.connection = connection
        self.writable = writable
        self.recorded_at = recorded_at
        """Microseconds since the epoch: the one time that all records of this write carry."""
        self._deferred: dict[object, Deferred] = {}
        self._last: dict[object, Callable[[], object]] = {}

    @overload
    def namespace(self, name: str, *, create: Literal[True]) -> NamespaceRow: ...
    @overload
    def namespace(self, name: str, *, create: bool = ...) -> NamespaceRow | None: ...
    def namespace(self, name: str, *, create: bool = False) -> NamespaceRow | None:
        """Return a namespace, ``None`` when it is unknown; ``create`` makes it then.

        Raises:
            NamespaceError: the name is missing, empty or malformed.
            ReadOnlyError: ``create`` in a read transaction.
        """
        keys.check_namespace(name)
        found = self._find(name)
        if found is None and create:
            self.require_write()
            self.connection.execute("INSERT INTO namespaces (name) VALUES (?)", (name,))
            found = self._find(name)
        return found

    def namespaces(self) -> tuple[NamespaceRow, ...]:
        """Return every namespace by id."""
        rows = self.connection.execute(
            "SELECT namespace_id, name, next_position, generation FROM namespaces "
            "ORDER BY namespace_id"
        )
        return tuple(NamespaceRow(*row) for row in rows)

    def _find(self, name: str) -> NamespaceRow | None:
        row = self.connection.execute(
            "SELECT namespace_id, name, next_position, generation FROM namespaces WHERE name = ?",
            (name,),
        ).fetchone()
        return None if row is None else NamespaceRow(*row)

    def bump_generation(self, ns: NamespaceRow) -> int:
        """Tell resident caches of every process to drop this namespace; return the new value."""
        self.require_write()
        generation: int = self.connection.execute(
            "UPDATE namespaces SET generation = generation + 1 WHERE namespace_id = ? "
            "RETURNING generation",
            (ns.namespace_id,),
        ).get
        return generation

    def require_write(self) -> None:
        """Refuse a write in a read transaction.

        Raises:
            ReadOnlyError: this transaction is a read.
        """
        if not self.writable:
            raise ReadOnlyError("this is a read transaction; use Ledger.write()")

    def deferred(self, key: object, make: Callable[[], D]) -> D:
        """Return the object kept under ``key``, made once; it is flushed before the commit."""
        self.require_write()
        kept = self._deferred.get(key)
        if kept is None:
            kept = self._deferred[key] = make()
        return cast("D", kept)

    def flush(self) -> None:
        """Write what was deferred so far, in the order in which it was first asked for."""
        deferred, self._deferred = self._deferred, {}
        for kept in deferred.values():
            kept.flush()

    def before_commit(self, key: object, action: Callable[[], object]) -> None:
        """Run ``action`` once as the last thing before the commit; a second one is ignored."""
        self.require_write()
        self._last.setdefault(key, action)

    def finish(self) -> None:
        """Write what was deferred, then run what :meth:`before_commit` was given."""
        self.flush()
        for action in self._last.values():
            action()
