r"""Vectors of the sentences of evidence: what a long turn says where.

A sentence's vector comes from the turn's own token vectors, so it is another projection than the
turn's vector and keeps an identity of its own. There is one row an evidence, also for a text that
has no sentences to tell apart, so that it is not due again. Nothing is kept in memory: a recall
reads the rows of the evidence that it may show.

**Format.** ``spans`` is a little-endian uint32 pair (start, end) a sentence, in code points of
the evidence's text. ``vectors`` is, a sentence, a little-endian float32 scale :math:`s` and then
one int8 :math:`q_i` a dimension: 388 bytes at 384 dimensions. The vector :math:`v`, scaled to
length 1, is stored as :math:`s = \max_i |v_i| / 127` and :math:`q_i` the integer nearest to
:math:`v_i / s`.

**Error.** :math:`|v_i - s q_i| \le s / 2`, so a cosine with a unit query :math:`u` is off by at
most :math:`\tfrac{s}{2} \lVert u \rVert_1 \le \tfrac{s}{2} \sqrt d`. What rounding adds, that of
the scale and of a float32 sum included, is below :math:`(d + 8)\, 2^{-23}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np
import numpy.typing as npt

from evicortex.errors import CorruptLedgerError, InputError
from evicortex.projections.semantic import Due
from evicortex.protocols import EmbeddingProfile, Float32Matrix
from evicortex.types import POSITION_BITS, Span

Float32 = npt.NDArray[np.float32]

CODE = "int8-1"
"""Names the format of ``vectors``; part of the identity."""

_LEVELS = 127
_SPAN = np.dtype(("<u4", (2,)))

_DUE = """
SELECT e.row_id, e.content, e.digest, s.row_id IS NOT NULL
FROM evidence e LEFT JOIN sentence_vectors s ON s.row_id = e.row_id
WHERE e.row_id > :after AND e.row_id < :end
    AND NOT (s.profile_id IS :profile AND s.input_digest IS e.digest)
    AND EXISTS (
        SELECT 1 FROM vectors v JOIN vector_profiles p USING (namespace_id, profile_id)
        WHERE v.namespace_id = :ns AND v.kind = 'evidence' AND v.item = e.row_id
        AND v.input_digest = e.digest AND p.digest = :digest
    )
ORDER BY e.row_id LIMIT :limit
"""
_INSERT = (
    "INSERT OR REPLACE INTO sentence_vectors "
    "(row_id, namespace_id, profile_id, input_digest, spans, vectors) "
    "SELECT ?1, ?2, ?3, ?4, ?5, ?6 "
    "WHERE EXISTS (SELECT 1 FROM evidence WHERE row_id = ?1 AND digest = ?4)"
)
_READ = """
SELECT s.row_id, s.spans, s.vectors
FROM json_each(?) asked CROSS JOIN sentence_vectors s ON s.row_id = asked.value
JOIN evidence e ON e.row_id = s.row_id AND e.digest = s.input_digest
WHERE s.namespace_id = ? AND s.profile_id = ?
"""
_CHECK = """
SELECT s.row_id, s.spans, s.vectors, p.dimensions, e.content
FROM sentence_vectors s LEFT JOIN sentence_profiles p USING (namespace_id, profile_id)
LEFT JOIN evidence e ON e.row_id = s.row_id
WHERE s.namespace_id = ? ORDER BY s.row_id
"""


class SentenceRow(NamedTuple):
    """The sentences of one evidence; ``vectors`` has one row a span, none of them zero."""

    row_id: int
    input_digest: str
    spans: Sequence[Span]
    vectors: Float32Matrix


def encoded(vectors: Float32Matrix) -> bytes:
    """Return vectors (n, d), each with a direction, in the stored format."""
    wide = vectors.astype(np.float64)
    wide /= np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, np.newaxis]
    records = np.empty(len(wide), dtype=_record(wide.shape[1]))
    records["scale"] = np.abs(wide).max(axis=1, initial=0.0) / _LEVELS
    records["values"] = np.rint(wide / records["scale"].astype(np.float64)[:, np.newaxis])
    return records.tobytes()


def cosines(blob: bytes, query: Float32) -> Float32:
    """Return the cosines of stored vectors with a unit query (d,), one a vector.

    One cosine does not depend on the others, nor on threads: no BLAS takes part.
    """
    records = np.frombuffer(blob, dtype=_record(len(query)))
    products = np.einsum("ij,j->i", records["values"].astype(np.float32), query)
    scaled: Float32 = products * records["scale"]
    return scaled


def _record(dimensions: int) -> np.dtype[np.void]:
    return np.dtype([("scale", "<f4"), ("values", "i1", (dimensions,))])


class SentenceProjection:
    """Stores sentence vectors, says which are due, and scores those of a few evidence.

    ``identity`` names all that can change a row: the encoder's span vectors, the splitter of
    texts, and the format. Rows of another identity, or of another text, are never read.
    """

    def due(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        digest: str,
        identity: str,
        *,
        after: int = 0,
        limit: int = 256,
    ) -> list[Due]:
        """Return evidence past ``after``, in order, that has a vector but no such sentences.

        ``digest`` is that of the encoder's own profile: sentences follow the turn's vector.
        """
        rows = connection.execute(
            _DUE,
            {
                "ns": namespace_id,
                "profile": self._profile_id(connection, namespace_id, identity),
                "digest": digest,
                "after": max(after, namespace_id << POSITION_BITS),
                "end": (namespace_id + 1) << POSITION_BITS,
                "limit": limit,
            },
        )
        return [Due(row[0], row[1], row[2], bool(row[3])) for row in rows]

    def store(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        profile: EmbeddingProfile,
        identity: str,
        rows: Iterable[SentenceRow],
    ) -> None:
        """Store sentences in the place of older ones; evidence that is gone is passed over."""
        number = self._profile_id(connection, namespace_id, identity)
        if number is None:
            text = json.dumps(profile.values(), sort_keys=True, ensure_ascii=False)
            number = connection.execute(
                "INSERT INTO sentence_profiles "
                "(namespace_id, profile_id, identity, dimensions, profile) "
                "SELECT ?1, ifnull(max(profile_id), 0) + 1, ?2, ?3, ?4 FROM sentence_profiles "
                "WHERE namespace_id = ?1 RETURNING profile_id",
                (namespace_id, identity, profile.dimensions, text),
            ).get
        connection.executemany(
            _INSERT,
            [
                (
                    row.row_id,
                    namespace_id,
                    number,
                    row.input_digest,
                    np.asarray(row.spans, dtype="<u4").tobytes(),
                    encoded(row.vectors),
                )
                for row in rows
            ],
        )
        self._forget_profiles(connection, namespace_id, number)

    def scores(
        self,
        connection: apsw.Connection,
        namespace_id: int,
        row_ids: Iterable[int],
        identity: str,
        query: Float32,
    ) -> dict[int, tuple[tuple[Span, ...], Float32]]:
        """Return, by row id, the sentences of evidence and their cosines with the query.

        ``query`` has shape (dimensions,) and any length but 0. Evidence without sentences of
        this identity is left out.

        Raises:
            InputError: the query has no direction.
            CorruptLedgerError: stored bytes do not have the length that their format gives them.
        """
        number = self._profile_id(connection, namespace_id, identity)
        if number is None:
            return {}
        found: list[tuple[Any, ...]] = connection.execute(
            _READ, (json.dumps(list(row_ids)), namespace_id, number)
        ).fetchall()
        width = _record(len(query)).itemsize
        for row_id, spans, vectors in found:
            if len(spans) % 8 or len(vectors) != len(spans) // 8 * width:
                raise CorruptLedgerError(
                    f"the sentence vectors of row {row_id} do not fit its sentences; "
                    "run sync_semantic to replace the vectors"
                )
        every = cosines(b"".join(vectors for *_, vectors in found), _unit(query))
        bounds = np.frombuffer(b"".join(spans for _, spans, _ in found), dtype=_SPAN).tolist()
        return dict(_split(found, list(map(Span._make, bounds)), every))

    def remove(
        self, connection: apsw.Connection, namespace_id: int, row_ids: Sequence[int]
    ) -> None:
        """Take out the sentences of evidence, before the evidence itself, in its transaction."""
        connection.executemany(
            "DELETE FROM sentence_vectors WHERE row_id = ? AND namespace_id = ?",
            [(row_id, namespace_id) for row_id in row_ids],
        )
        self._forget_profiles(connection, namespace_id, None)

    def clear(self, connection: apsw.Connection, namespace_id: int) -> None:
        """Take out everything of the namespace."""
        connection.execute("DELETE FROM sentence_vectors WHERE namespace_id = ?", (namespace_id,))
        self._forget_profiles(connection, namespace_id, None)

    def count(self, connection: apsw.Connection, namespace_id: int) -> int:
        """Return how many evidence of the namespace have a row, of whatever identity."""
        found: int = connection.execute(
            "SELECT count(*) FROM sentence_vectors WHERE namespace_id = ?", (namespace_id,)
        ).get
        return found

    def damaged(self, connection: apsw.Connection, namespace_id: int) -> Iterator[tuple[int, str]]:
        """Yield the rows that are not what was stored, and how that shows; needs no encoder."""
        for row_id, *row in connection.execute(_CHECK, (namespace_id,)):
            wrong = _wrong(*row)
            if wrong:
                yield row_id, wrong

    @staticmethod
    def _profile_id(connection: apsw.Connection, namespace_id: int, identity: str) -> int | None:
        found: int | None = connection.execute(
            "SELECT profile_id FROM sentence_profiles WHERE namespace_id = ? AND identity = ?",
            (namespace_id, identity),
        ).get
        return found

    @staticmethod
    def _forget_profiles(connection: apsw.Connection, namespace_id: int, kept: int | None) -> None:
        connection.execute(
            "DELETE FROM sentence_profiles WHERE namespace_id = ?1 AND profile_id IS NOT ?2 "
            "AND NOT EXISTS (SELECT 1 FROM sentence_vectors s WHERE s.namespace_id = ?1 "
            "AND s.profile_id = sentence_profiles.profile_id)",
            (namespace_id, kept),
        )


def _unit(query: Float32) -> Float32:
    wide = query.astype(np.float64)
    length = np.sqrt(np.einsum("i,i->", wide, wide))
    if not 0.0 < length < np.inf:
        raise InputError("the query vector has no direction")
    unit: Float32 = (wide / length).astype(np.float32)
    return unit


def _split(
    found: Sequence[tuple[Any, ...]], spans: Sequence[Span], scores: Float32
) -> Iterator[tuple[int, tuple[tuple[Span, ...], Float32]]]:
    start = 0
    for row_id, packed, _ in found:
        stop = start + len(packed) // 8
        if stop > start:
            yield row_id, (tuple(spans[start:stop]), scores[start:stop])
        start = stop


def _wrong(spans: bytes, vectors: bytes, dimensions: int | None, content: str | None) -> str:
    """Return what is wrong with a row; empty when nothing is."""
    if content is None:
        return "belong to no evidence"
    if dimensions is None:
        return "were made by an unknown encoder"
    record = _record(dimensions)
    if len(spans) % 8 or len(vectors) != len(spans) // 8 * record.itemsize:
        return "do not fit its sentences"
    bounds = np.frombuffer(spans, dtype="<u4").astype(np.int64)
    apart = (np.diff(bounds) >= 0).all() and (bounds[::2] < bounds[1::2]).all()
    if len(bounds) and not (apart and bounds[-1] <= len(content)):
        return "have spans that are not in its text"
    scales = np.frombuffer(vectors, dtype=record)["scale"]
    if not (np.isfinite(scales) & (scales > 0)).all():
        return "have a scale that is not above 0"
    return ""
