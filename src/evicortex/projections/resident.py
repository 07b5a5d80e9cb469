"""What recall needs to know of every evidence of a namespace, as arrays in memory.

Row ``i`` of every array is the evidence with the ``i``-th smallest row id. The arrays are a
snapshot: later writes make a new :class:`NamespaceRows`, which shares the unchanged part.

A *thread* is the unit in which neighbours are neighbours: a session, or, for evidence without
a session, all of it that has the same source (no source being one more source). Inside a thread
the order is that of recording.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import apsw
import numpy as np
import numpy.typing as npt

from evicortex.errors import InputError
from evicortex.projections.cache import NamespaceCache
from evicortex.types import POSITION_BITS

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ROLE_USER = 1
ROLE_ASSISTANT = 2
NO_ID = 0
"""In ``session`` and ``actor``: the evidence has none."""


@dataclass(frozen=True, slots=True)
class ResidentOptions:
    """How much may stay in memory: ``max_rows`` over all namespaces (about 60 bytes each).

    The namespaces that were not asked for longest go first; the one in use always stays.
    """

    max_rows: int = 2_000_000

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise InputError("max_rows is a count of at least 1")


class NamespaceRows:
    """The rows of one namespace in one snapshot. All arrays have ``len(self)`` entries."""

    def __init__(
        self, namespace_id: int, generation: int, columns: _Columns, sequence: Int32
    ) -> None:
        count = len(sequence)
        self.namespace_id = namespace_id
        self.generation = generation
        self.row_ids: Int64 = columns.row_ids[:count]
        self.session: Int32 = columns.session[:count]
        """The ledger's session ids; 0 is no session."""
        self.actor: Int32 = columns.actor[:count]
        """The ledger's actor ids; 0 is no actor."""
        self.role: Int32 = columns.role[:count]
        """``ROLE_USER``, ``ROLE_ASSISTANT``, or 0 for any other role and none."""
        self.effective_us: Int64 = columns.effective_us[:count]
        """``occurred_at``, else ``recorded_at``, in microseconds since the epoch, UTC."""
        self.recorded_us: Int64 = columns.recorded_us[:count]
        self.octets: Int32 = columns.octets[:count]
        """Bytes of the text in UTF-8 (at most 2**31 - 1)."""
        self.thread: Int32 = columns.thread[:count]
        """Threads numbered from 0 in order of their first evidence."""
        self.sequence = sequence
        """Row indices ordered by thread, then by recording."""

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def last_row_id(self) -> int:
        """The largest row id; the namespace's lower bound when it is empty."""
        if len(self):
            return int(self.row_ids[-1])
        return self.namespace_id << POSITION_BITS

    @cached_property
    def previous(self) -> Int32:
        """Row index of the evidence before, in the same thread; -1 for none."""
        return self._linked(self.sequence[:-1], self.sequence[1:])

    @cached_property
    def next(self) -> Int32:
        """Row index of the evidence after, in the same thread; -1 for none."""
        return self._linked(self.sequence[1:], self.sequence[:-1])

    def _linked(self, target: Int32, source: Int32) -> Int32:
        links = np.full(len(self), -1, dtype=np.int32)
        same = self.thread[target] == self.thread[source]
        links[source[same]] = target[same]
        return links

    def index(self, row_ids: Sequence[int] | Int64) -> npt.NDArray[np.intp]:
        """Return the row index of each row id; -1 for one that is not here."""
        wanted = np.asarray(row_ids, dtype=np.int64)
        if not len(self):
            return np.full(len(wanted), -1, dtype=np.intp)
        at = np.searchsorted(self.row_ids, wanted)
        at[at == len(self)] = 0
        return np.where(self.row_ids[at] == wanted, at, -1)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows may be looked at; ``None`` is no restriction.

    ``sessions`` and ``actors`` are the ledger's ids. Times are inclusive microseconds since the
    epoch, UTC: ``as_of`` bounds the effective time, ``known_at`` the time of recording.
    """

    sessions: Iterable[int] | None = None
    actors: Iterable[int] | None = None
    as_of: int | None = None
    known_at: int | None = None

    def mask(self, rows: NamespaceRows) -> Mask | None:
        """Return which rows pass, or ``None`` when all do whatever they are."""
        tests: list[Mask] = []
        if self.sessions is not None:
            tests.append(np.isin(rows.session, _ids(self.sessions)))
        if self.actors is not None:
            tests.append(np.isin(rows.actor, _ids(self.actors)))
        if self.as_of is not None:
            tests.append(rows.effective_us <= self.as_of)
        if self.known_at is not None:
            tests.append(rows.recorded_us <= self.known_at)
        if not tests:
            return None
        passed = tests[0]
        for test in tests[1:]:
            passed &= test
        return passed


def _ids(values: Iterable[int]) -> Int32:
    return np.fromiter(values, dtype=np.int32)


class _Columns:
    """Arrays that grow by doubling; what earlier snapshots see of them never changes."""

    _INT64 = ("row_ids", "effective_us", "recorded_us")
    _INT32 = ("session", "actor", "role", "octets", "thread")

    def __init__(self) -> None:
        self.count = 0
        self.row_ids: Int64 = np.empty(0, np.int64)
        self.effective_us: Int64 = np.empty(0, np.int64)
        self.recorded_us: Int64 = np.empty(0, np.int64)
        self.session: Int32 = np.empty(0, np.int32)
        self.actor: Int32 = np.empty(0, np.int32)
        self.role: Int32 = np.empty(0, np.int32)
        self.octets: Int32 = np.empty(0, np.int32)
        self.thread: Int32 = np.empty(0, np.int32)

    def append(self, values: dict[str, list[int]], added: int) -> None:
        needed = self.count + added
        for name in (*self._INT64, *self._INT32):
            old = getattr(self, name)
            if needed > len(old):
                grown = np.empty(max(needed, 2 * len(old), 16), old.dtype)
                grown[: self.count] = old[: self.count]
                setattr(self, name, grown)
            getattr(self, name)[self.count : needed] = values[name]
        self.count = needed


_SELECT = (
    "SELECT row_id, ifnull(session_id, 0), ifnull(actor_id, 0), ifnull(occurred_at, recorded_at), "
    "recorded_at, min(octet_length(content), 2147483647), "
    "CASE WHEN session_id IS NULL THEN ifnull(source, 0) END, "
    "CASE WHEN lower(role) IN ('user', 'human') THEN 1 "
    "WHEN lower(role) IN ('assistant', 'ai', 'model') THEN 2 ELSE 0 END "
    "FROM evidence WHERE row_id > ? AND row_id <= ? ORDER BY row_id"
)


class _Namespace:
    """Everything loaded of one namespace in one generation."""

    def __init__(self, namespace_id: int, generation: int) -> None:
        self.lock = threading.Lock()
        self.generation = generation
        self._threads: dict[int | tuple[str | int], int] = {}
        self._columns = _Columns()
        self.rows = NamespaceRows(
            namespace_id, generation, self._columns, np.empty(0, dtype=np.int32)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, connection: apsw.Connection, last_row_id: int) -> NamespaceRows:
        """Return the rows up to ``last_row_id``, loading those that are missing."""
        rows = self.rows
        if last_row_id > rows.last_row_id:
            rows = self.rows = self._extended(connection, last_row_id)
        if last_row_id < rows.last_row_id:
            # The reader's snapshot is older than what another one has loaded.
            count = int(np.searchsorted(rows.row_ids, last_row_id, side="right"))
            earlier = rows.sequence[rows.sequence < count]
            return NamespaceRows(rows.namespace_id, rows.generation, self._columns, earlier)
        return rows

    def _extended(self, connection: apsw.Connection, last_row_id: int) -> NamespaceRows:
        rows = self.rows
        found = connection.execute(_SELECT, (rows.last_row_id, last_row_id)).fetchall()
        row_ids, session, actor, effective, recorded, octets, source, role = map(
            list, zip(*found, strict=True)
        )
        threads = self._threads
        keys = [of or (name,) for of, name in zip(session, source, strict=True)]
        thread = [threads.setdefault(key, len(threads)) for key in keys]
        self._columns.append(
            {
                "row_ids": row_ids,
                "session": session,
                "actor": actor,
                "role": role,
                "effective_us": effective,
                "recorded_us": recorded,
                "octets": octets,
                "thread": thread,
            },
            len(found),
        )
        sequence = self._inserted(np.asarray(thread, dtype=np.int32))
        return NamespaceRows(rows.namespace_id, rows.generation, self._columns, sequence)

    def _inserted(self, thread: Int32) -> Int32:
        """Return the sequence with new rows of these threads, each at the end of its thread."""
        old = self.rows.sequence
        order = np.argsort(thread, kind="stable")
        places = np.searchsorted(self.rows.thread[old], thread[order], side="right")
        return np.insert(old, places, (order + len(old)).astype(np.int32))


class _State(NamedTuple):
    generation: int
    last_row_id: int


def _state(connection: apsw.Connection, namespace_id: int) -> _State:
    lowest = namespace_id << POSITION_BITS
    found = connection.execute(
        "SELECT generation, (SELECT max(row_id) FROM evidence WHERE row_id > ?2 AND row_id < ?3) "
        "FROM namespaces WHERE namespace_id = ?1",
        (namespace_id, lowest, (namespace_id + 1) << POSITION_BITS),
    ).fetchone()
    if found is None:
        return _State(0, lowest)
    return _State(found[0], lowest if found[1] is None else found[1])


class ResidentRows:
    """The namespaces of one open ledger that are in memory; safe to share between threads.

    A namespace is kept in step by its generation (which a purge and a rebuild raise) and its
    last row id, as the caller's snapshot sees them: no reader sees more or less than its own
    snapshot holds.
    """

    def __init__(self, options: ResidentOptions | None = None) -> None:
        self._cache = NamespaceCache[_Namespace]((options or ResidentOptions()).max_rows)

    def get(self, connection: apsw.Connection, namespace_id: int) -> NamespaceRows:
        """Return the namespace as the connection's transaction sees it."""
        state = _state(connection, namespace_id)
        entry = self._cache.get(
            connection,
            namespace_id,
            state.generation,
            lambda: _Namespace(namespace_id, state.generation),
        )
        with entry.lock:
            rows = entry.at(connection, state.last_row_id)
        self._cache.trim(namespace_id)
        return rows

    def resident(self) -> int:
        """Return how many rows are in memory."""
        return self._cache.rows()

    def drop(self) -> None:
        """Forget everything that was loaded."""
        self._cache.clear()
