"""Vectors of evidence and claims: stored with their identity, resident while they are asked.

A vector is stored as little-endian float32, with the digest of the encoder's profile, the digest
of the exact input, the item that it stands for and the part of it (an over-long text has several).
Vectors of another profile are never read: a name or a dimension in common proves nothing.

In memory a namespace is one float32 matrix, kept in step with the ledger by the watermark of the
last row loaded and by the namespace's generation. Scores are exact (``scan``).
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, TypeVar, cast

import apsw
import numpy as np
import numpy.typing as npt

from evicortex.errors import CorruptLedgerError, InputError
from evicortex.projections.claim_vectors import CLAIMS, ClaimVectors, claim_text, text_digest
from evicortex.projections.resident import NamespaceRows
from evicortex.projections.scan import exact_scores
from evicortex.protocols import EmbeddingProfile, Float32Matrix
from evicortex.types import POSITION_BITS, Span

Kept = TypeVar("Kept")
Kind = Literal["evidence", "claim"]
ENCODING = np.dtype("<f4")
"""Little-endian IEEE 754 binary32, dimensions in order, no header."""


_INSERT = (
    "INSERT INTO vectors (namespace_id, kind, item, part, start, stop, profile_id, input_digest, "
    "vector) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 "
)
_EXISTS = {
    "evidence": "WHERE EXISTS (SELECT 1 FROM evidence WHERE row_id = ?3 AND digest = ?8)",
    "claim": "WHERE EXISTS (SELECT 1 FROM claims WHERE namespace_id = ?1 AND seq = ?3)",
}
_DUE = """
SELECT e.row_id, e.content, e.digest, EXISTS (
    SELECT 1 FROM vectors v WHERE v.namespace_id = :ns AND v.kind = 'evidence' AND v.item = e.row_id
)
FROM evidence e WHERE e.row_id > :after AND e.row_id < :end AND NOT EXISTS (
    SELECT 1 FROM vectors v WHERE v.namespace_id = :ns AND v.kind = 'evidence'
    AND v.item = e.row_id AND v.profile_id = :profile AND v.input_digest = e.digest
)
ORDER BY e.row_id LIMIT :limit
"""
_COVERAGE = """
SELECT sum(v.profile_id IS :profile AND v.input_digest = e.digest),
       sum(v.profile_id IS :profile AND v.input_digest <> e.digest),
       sum(v.profile_id IS NOT :profile AND v.profile_id IS NOT NULL),
       count(*)
FROM evidence e LEFT JOIN vectors v ON v.namespace_id = :ns AND v.kind = 'evidence'
    AND v.item = e.row_id AND v.part = 0
WHERE e.row_id > :lo AND e.row_id < :hi
"""


@dataclass(frozen=True, slots=True)
class SemanticOptions:
    """``max_vectors`` may be resident over all namespaces; ``scan_cap`` in one exact scan.

    A namespace with more vectors than ``scan_cap`` is not scanned: recall says so and goes on
    without the channel, since an incomplete scan is not an exact one. ``sentences`` says whether
    sentence vectors are stored and used where the encoder gives some.
    """

    max_vectors: int = 1_000_000
    scan_cap: int = 1_000_000
    sentences: bool = True

    def __post_init__(self) -> None:
        if self.max_vectors < 1 or self.scan_cap < 1:
            raise InputError("vector limits are counts of at least 1")


class VectorRow(NamedTuple):
    """One vector to store. ``item`` is a row id (evidence) or a claim's number."""

    item: int
    part: int
    span: Span | None
    input_digest: str
    vector: npt.NDArray[np.float32]


class Due(NamedTuple):
    """An item that has no vector of the profile, or one of another text or profile."""

    item: int
    text: str
    input_digest: str
    stale: bool


class _Key(NamedTuple):
    """What is resident together."""

    namespace_id: int
    digest: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Coverage:
    """How a namespace's evidence is covered, in items; ``foreign`` have another profile.

    ``vectors`` counts all of the profile, of which an over-long text has several.

    Claims are not counted: what lacks a vector of them is found by its words.
    """

    indexed: int
    missing: int
    stale: int
    foreign: int
    vectors: int


class VectorView:
    """The vectors of one namespace as one snapshot sees them.

    ``owner[p]`` is the row index (in the ``NamespaceRows`` that it was made for) of part ``p``;
    ``present[i]`` says whether row ``i`` has a vector.
    """

    def __init__(self, matrix: Float32Matrix, owner: npt.NDArray[np.int64], count: int) -> None:
        self.matrix = matrix
        self.owner = owner
        self.count = count
        self.present = np.zeros(count, dtype=np.bool_)
        self.present[owner] = True
        self._single = len(owner) == count and bool(np.array_equal(owner, np.arange(count)))
        self._kept: object | None = None

    def scores(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return one score a row, the best of its parts; 0 for a row without a vector."""
        parts = exact_scores(self.matrix, query)
        if self._single:
            return parts
        best = np.full(self.count, -np.inf, dtype=np.float32)
        np.maximum.at(best, self.owner, parts)
        best[~self.present] = 0.0
        return best

    def kept(self, make: Callable[[Float32Matrix], Kept]) -> Kept:
        """Return what ``make`` derives from :meth:`means`, made once for this view."""
        if self._kept is None:
            self._kept = make(self.means())
        return cast("Kept", self._kept)

    def means(self) -> Float32Matrix:
        """Return one vector a row: that of its first part, or zeros. Shape (rows, dimensions)."""
        if self._single:
            return self.matrix
        rows = np.zeros((self.count, self.matrix.shape[1]), dtype=np.float32)
        rows[self.owner[::-1]] = self.matrix[::-1]
        return rows


class _Resident:
    """The loaded vectors of one namespace and profile; ``version`` is the ledger's when loaded."""

    def __init__(self, dimensions: int, generation: int) -> None:
        self.generation = generation
        self.version = 0
        self.matrix: Float32Matrix = np.empty((0, dimensions), dtype=np.float32)
        self.items: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self.count = 0
        self.aligned: tuple[int, VectorView] | None = None

    def append(self, items: Sequence[int], blob: bytes) -> None:
        dimensions = self.matrix.shape[1]
        added = np.frombuffer(blob, dtype=ENCODING).reshape(len(items), dimensions)
        self.aligned = None
        needed = self.count + len(items)
        if needed > len(self.matrix):
            grown = np.empty((max(needed, 2 * self.count, 16), dimensions), dtype=np.float32)
            grown[: self.count] = self.matrix[: self.count]
            numbers = np.empty(len(grown), dtype=np.int64)
            numbers[: self.count] = self.items[: self.count]
            self.matrix, self.items = grown, numbers
        self.matrix[self.count : needed] = added
        self.items[self.count : needed] = items
        self.count = needed


class SemanticProjection:
    """Stores vectors, says which are due, and keeps those that are asked for in memory."""

    def __init__(self, options: SemanticOptions | None = None) -> None:
        self.options = options or SemanticOptions()
        self._lock = threading.Lock()
        self._coverage: dict[tuple[int, str], tuple[tuple[int, int, int], Coverage]] = {}
        self._resident: OrderedDict[_Key, _Resident] = OrderedDict()

    def profile_id(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        digest: str,
        profile: EmbeddingProfile | None = None,
    ) -> int | None:
        """Return the number of a profile in a namespace; with ``profile`` it is made if new."""
        found: int | None = connection.execute(
            "SELECT profile_id FROM vector_profiles WHERE namespace_id = ? AND digest = ?",
            (namespace_id, digest),
        ).get
        if found is None and profile is not None:
            text = json.dumps(profile.values(), sort_keys=True, ensure_ascii=False)
            found = connection.execute(
                "INSERT INTO vector_profiles (namespace_id, profile_id, digest, profile) "
                "SELECT ?1, ifnull(max(profile_id), 0) + 1, ?2, ?3 FROM vector_profiles "
                "WHERE namespace_id = ?1 RETURNING profile_id",
                (namespace_id, digest, text),
            ).get
        return found

    def store(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        profile: EmbeddingProfile,
        digest: str,
        kind: Kind,
        vectors: Iterable[VectorRow],
    ) -> int:
        """Store vectors in the place of older ones of the same items; return how many.

        An item that was purged since its text was read is passed over. The caller's transaction
        must be a write.
        """
        profile_id = self.profile_id(connection, namespace_id, digest, profile)
        rows = list(vectors)
        if not rows:
            return 0
        newest: int = connection.execute(
            "SELECT ifnull(max(item), -1) FROM vectors WHERE namespace_id = ? AND kind = ?",
            (namespace_id, kind),
        ).get
        before = connection.total_changes()
        connection.executemany(
            "DELETE FROM vectors WHERE namespace_id = ? AND kind = ? AND item = ?",
            [(namespace_id, kind, item) for item in dict.fromkeys(row.item for row in rows)],
        )
        between = connection.total_changes()
        connection.executemany(
            _INSERT + _EXISTS[kind],
            [self._values(namespace_id, kind, profile_id, row) for row in rows],
        )
        stored = connection.total_changes() - between
        appended = between == before and min(row.item for row in rows) > newest
        self._forget_profiles(connection, namespace_id, profile_id)
        self._changed(connection, namespace_id, appended=appended)
        return stored

    @staticmethod
    def _values(
        namespace_id: int, kind: Kind, profile_id: int | None, row: VectorRow
    ) -> tuple[object, ...]:
        start, stop = (None, None) if row.span is None else row.span
        encoded = np.ascontiguousarray(row.vector, dtype=ENCODING).tobytes()
        values = (namespace_id, kind, row.item, row.part, start, stop, profile_id)
        return (*values, row.input_digest, encoded)

    @staticmethod
    def _forget_profiles(connection: apsw.Connection, namespace_id: int, kept: int | None) -> None:
        connection.execute(
            "DELETE FROM vector_profiles WHERE namespace_id = ?1 AND profile_id IS NOT ?2 AND NOT "
            "EXISTS (SELECT 1 FROM vectors v WHERE v.namespace_id = ?1 AND "
            "v.profile_id = vector_profiles.profile_id)",
            (namespace_id, kept),
        )

    @staticmethod
    def _changed(connection: apsw.Connection, namespace_id: int, *, appended: bool) -> None:
        """Raise the version that resident copies of every process are compared with."""
        connection.execute(
            "INSERT INTO vector_versions (namespace_id, version, rewritten) VALUES (?1, 1, 1) "
            "ON CONFLICT DO UPDATE SET version = version + 1, "
            "rewritten = CASE WHEN ?2 THEN rewritten ELSE version + 1 END",
            (namespace_id, appended),
        )

    @staticmethod
    def _versions(connection: apsw.Connection, namespace_id: int) -> tuple[int, int]:
        """Return (version, version at which a vector was last replaced or removed)."""
        found = connection.execute(
            "SELECT version, rewritten FROM vector_versions WHERE namespace_id = ?",
            (namespace_id,),
        ).fetchone()
        return (0, 0) if found is None else (found[0], found[1])

    def due(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        digest: str,
        *,
        after: int = 0,
        limit: int = 256,
    ) -> list[Due]:
        """Return evidence past ``after``, in order, with no vector of its text and the profile.

        ``input_digest`` is the evidence's own: the input of a vector is its exact text.
        """
        rows = connection.execute(
            _DUE,
            {
                "ns": namespace_id,
                "profile": self.profile_id(connection, namespace_id, digest),
                "after": max(after, namespace_id << POSITION_BITS),
                "end": (namespace_id + 1) << POSITION_BITS,
                "limit": limit,
            },
        )
        return [Due(row[0], row[1], row[2], bool(row[3])) for row in rows]

    def due_claims(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        digest: str,
        *,
        after: int = 0,
        limit: int = 256,
    ) -> list[Due]:
        """Return claims past the number ``after``, in order, with no vector of their text.

        The input of a vector is ``claim_text``, its ``input_digest`` the SHA-256 of that.
        """
        profile_id = self.profile_id(connection, namespace_id, digest)
        found: list[Due] = []
        for seq, *words, known, profile in connection.execute(CLAIMS, (namespace_id, after)):
            text = claim_text(*words)
            wanted = text_digest(text)
            if profile is None or profile != profile_id or known != wanted:
                found.append(Due(seq, text, wanted, profile is not None))
                if len(found) == limit:
                    break
        return found

    def coverage(self, connection: apsw.Connection, namespace_id: int, digest: str) -> Coverage:
        """Count how the namespace's evidence is covered by the profile."""
        profile_id = self.profile_id(connection, namespace_id, digest)
        values = {
            "ns": namespace_id,
            "profile": profile_id,
            "lo": namespace_id << POSITION_BITS,
            "hi": (namespace_id + 1) << POSITION_BITS,
        }
        found = connection.execute(_COVERAGE, values).fetchone()
        assert found is not None
        indexed, stale, foreign, total = (int(value or 0) for value in found)
        vectors: int = connection.execute(
            "SELECT count(*) FROM vectors WHERE namespace_id = ? AND profile_id = ? "
            "AND kind = 'evidence'",
            (namespace_id, profile_id),
        ).get
        return Coverage(indexed, total - indexed - stale - foreign, stale, foreign, vectors)

    def coverage_of(
        self, connection: apsw.Connection, rows: NamespaceRows, digest: str
    ) -> Coverage:
        """Return :meth:`coverage` for a resident namespace, counted again only when it changed."""
        version, _ = self._versions(connection, rows.namespace_id)
        key = (rows.namespace_id, digest)
        state = (rows.generation, version, rows.last_row_id)
        with self._lock:
            known = self._coverage.get(key)
        if known is None or known[0] != state:
            known = (state, self.coverage(connection, rows.namespace_id, digest))
            with self._lock:
                self._coverage[key] = known
        return known[1]

    def foreign(self, connection: apsw.Connection, namespace_id: int, digest: str) -> bool:
        """Return whether the namespace holds a vector of another profile."""
        found: int = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM vector_profiles p WHERE p.namespace_id = ?1 AND "
            "p.digest <> ?2 AND EXISTS (SELECT 1 FROM vectors v WHERE v.namespace_id = ?1 AND "
            "v.profile_id = p.profile_id))",
            (namespace_id, digest),
        ).get
        return bool(found)

    def foreign_namespaces(self, connection: apsw.Connection, digest: str) -> tuple[str, ...]:
        """Return the names of namespaces that hold vectors of another profile, sorted."""
        rows = connection.execute(
            "SELECT DISTINCT n.name FROM vector_profiles p JOIN namespaces n "
            "ON n.namespace_id = p.namespace_id WHERE p.digest <> ? AND EXISTS (SELECT 1 FROM "
            "vectors v WHERE v.namespace_id = p.namespace_id AND v.profile_id = p.profile_id) "
            "ORDER BY n.name",
            (digest,),
        )
        return tuple(row[0] for row in rows)

    def remove(
        self, connection: apsw.Connection, namespace_id: int, row_ids: Sequence[int]
    ) -> None:
        """Remove the vectors of evidence, and of the claims that rest on it.

        Call it before the ledger's own rows go, in the same transaction.
        """
        pairs = [(namespace_id, row_id) for row_id in row_ids]
        connection.executemany(
            "DELETE FROM vectors WHERE namespace_id = ?1 AND kind = 'claim' AND item IN (SELECT "
            "c.seq FROM claim_evidence d JOIN claims c ON c.namespace_id = d.namespace_id AND "
            "c.claim_id = d.claim_id WHERE d.namespace_id = ?1 AND d.row_id = ?2)",
            pairs,
        )
        connection.executemany(
            "DELETE FROM vectors WHERE namespace_id = ? AND kind = 'evidence' AND item = ?", pairs
        )
        if pairs:
            self._forget_profiles(connection, namespace_id, None)
            self._changed(connection, namespace_id, appended=False)

    def view(
        self, connection: apsw.Connection, rows: NamespaceRows, digest: str, dimensions: int
    ) -> VectorView:
        """Return the vectors of the profile for ``rows``, loading what is not in memory yet.

        Raises:
            CorruptLedgerError: a stored vector does not have the profile's length.
        """
        key = _Key(rows.namespace_id, digest, "evidence")
        with self._lock:
            found = self._loaded(connection, key, rows.generation, dimensions)
            return self._aligned(found, rows)

    def claim_view(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        generation: int,
        digest: str,
        dimensions: int,
    ) -> ClaimVectors:
        """Return the namespace's claim vectors of the profile, loading what is not in memory yet.

        A reader of an older snapshot may get those of claims that it does not know.

        Raises:
            CorruptLedgerError: a stored vector does not have the profile's length.
        """
        key = _Key(namespace_id, digest, "claim")
        with self._lock:
            found = self._loaded(connection, key, generation, dimensions)
            return ClaimVectors(found.items[: found.count], found.matrix[: found.count])

    def _loaded(
        self, connection: apsw.Connection, key: _Key, generation: int, dimensions: int
    ) -> _Resident:
        version, rewritten = self._versions(connection, key.namespace_id)
        found = self._resident.get(key)
        usable = (
            found is not None
            and found.generation == generation
            and rewritten <= found.version <= version
        )
        if found is None or not usable:
            found = _Resident(dimensions, generation)
            if key not in self._resident or self._resident[key].version <= version:
                self._resident[key] = found
        if found.version < version:
            self._read(connection, key, found)
            found.version = version
        if key in self._resident:
            self._resident.move_to_end(key)
        self._evict(key)
        return found

    def _read(self, connection: apsw.Connection, key: _Key, into: _Resident) -> None:
        namespace_id = key.namespace_id
        profile_id = self.profile_id(connection, namespace_id, key.digest)
        last = int(into.items[into.count - 1]) if into.count else -1
        cursor = connection.execute(
            "SELECT item, vector FROM vectors WHERE namespace_id = ? AND kind = ? AND "
            "item > ? AND profile_id = ? ORDER BY item, part",
            (namespace_id, key.kind, last, profile_id),
        )
        width = into.matrix.shape[1] * ENCODING.itemsize
        while batch := list(islice(cursor, 4096)):
            if any(len(vector) != width for _, vector in batch):
                raise CorruptLedgerError(
                    f"a vector of namespace {namespace_id} is not {width} bytes long; "
                    "run sync_semantic to replace the vectors"
                )
            into.append([item for item, _ in batch], b"".join(vector for _, vector in batch))

    @staticmethod
    def _aligned(found: _Resident, rows: NamespaceRows) -> VectorView:
        if found.aligned is not None and found.aligned[0] == len(rows):
            return found.aligned[1]
        owner = rows.index(found.items[: found.count]).astype(np.int64)
        kept = owner >= 0
        matrix = found.matrix[: found.count]
        if not kept.all():
            owner, matrix = owner[kept], np.ascontiguousarray(matrix[kept])
        view = VectorView(matrix, owner, len(rows))
        found.aligned = (len(rows), view)
        return view

    def _evict(self, in_use: _Key) -> None:
        total = sum(resident.count for resident in self._resident.values())
        for key in list(self._resident):
            if total <= self.options.max_vectors:
                return
            if key != in_use:
                total -= self._resident.pop(key).count

    def drop(self) -> None:
        """Forget everything that was loaded."""
        with self._lock:
            self._resident.clear()
            self._coverage.clear()
