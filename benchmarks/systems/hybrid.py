"""The tuned hybrid chunk comparator: what a careful team would build without EviCortex.

Append-only records with versions; sentence-aware chunks at two granularities; namespace-local
BM25 and the same encoder; weighted reciprocal rank fusion; duplicates out, maximal marginal
relevance (Carbonell and Goldstein, 1998) with a penalty per session; neighbours and parents
around what was found. Namespace, time and version are filtered before either channel ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, Piece, pack_pieces
from benchmarks.systems.chunks import Chunk, RecordLog, allowed, large_chunks, small_chunks
from benchmarks.systems.costs import with_costs
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.lexical_index import LexicalIndex, best_first

Floats = npt.NDArray[np.float64]
DIAGNOSTIC = "BM25 + hashing diagnostic"


class ScanOverflowError(RuntimeError):
    """More chunks than the exact scan may look at: nothing is returned rather than a part."""


@dataclass(frozen=True, slots=True)
class HybridConfig:
    """Everything that is tuned. Sizes are tokens; ``mmr`` 1 means relevance alone.

    Every allowed chunk is ranked; the best ``candidates`` are chosen among with diversity, as
    many as EviCortex's ranker looks at.
    """

    small_tokens: int = 64
    large_tokens: int = 192
    overlap: int = 1
    rrf_k: int = 20
    lexical: float = 1.0
    dense: float = 1.0
    small: float = 1.0
    large: float = 1.0
    candidates: int = 200
    mmr: float = 0.9
    session_penalty: float = 0.0
    neighbours: int = 1
    neighbour_after: int = 8
    parent_tokens: int = 120
    scan_limit: int = 200_000

    def indexing(self) -> tuple[int, int, int]:
        """Return what the index depends on; the rest can change between questions."""
        return self.small_tokens, self.large_tokens, self.overlap

    def record(self) -> dict[str, Any]:
        """Return the configuration for records."""
        return asdict(self)


class _Index:
    """Chunks of one namespace with both channels."""

    def __init__(
        self, log: RecordLog, config: HybridConfig, encoder: SharedEncoder, count: CountTokens
    ) -> None:
        small = small_chunks(log.records, config.small_tokens, count)
        large = large_chunks(log.records, config.large_tokens, config.overlap, count)
        self.chunks: list[Chunk] = small + large
        self.granularity = np.array([chunk.granularity for chunk in self.chunks], dtype=int)
        texts = [chunk.text for chunk in self.chunks]
        self.lexical = LexicalIndex(texts)
        self.vectors = encoder.turns(texts)
        self.keys = [_key(chunk) for chunk in self.chunks]
        self.sessions = np.unique([c.session for c in self.chunks], return_inverse=True)[1]


def _key(chunk: Chunk) -> str:
    return re.sub(r"\W+", " ", chunk.text.casefold()).strip()


class HybridChunks:
    """The comparator. One index a namespace; :meth:`reconfigured` shares it between trials."""

    def __init__(
        self,
        count: CountTokens,
        encoder: SharedEncoder,
        config: HybridConfig | None = None,
        *,
        name: str = "hybrid chunks",
    ) -> None:
        self._count = count
        self._encoder = encoder
        self._config = config or HybridConfig()
        self._name = name if encoder.profile.semantic else DIAGNOSTIC
        self._logs: dict[str, RecordLog] = {}
        self._indexes: dict[tuple[str, tuple[int, int, int]], _Index] = {}

    @property
    def name(self) -> str:
        """The name in records; says when the encoder is a diagnostic one."""
        return self._name

    @property
    def config(self) -> HybridConfig:
        """The configuration in force."""
        return self._config

    def reconfigured(self, config: HybridConfig) -> HybridChunks:
        """Return the same memory under another configuration."""
        other = HybridChunks(self._count, self._encoder, config, name=self._name)
        other._logs = self._logs
        other._indexes = self._indexes
        return other

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Append the turns; what was indexed before is indexed anew."""
        self._logs.setdefault(namespace, RecordLog()).append(turns)
        self._indexes = {key: kept for key, kept in self._indexes.items() if key[0] != namespace}
        self._index(namespace)

    def _index(self, namespace: str) -> _Index:
        key = (namespace, self._config.indexing())
        if key not in self._indexes:
            log = self._logs[namespace]
            self._indexes[key] = _Index(log, self._config, self._encoder, self._count)
        return self._indexes[key]

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Rank chunks, expand them, and pack; raises ScanOverflowError, never a partial scan."""
        pieces, scored, signals = self._ranked(namespace, query)
        order = {r.turn.turn_id: r.row for r in self._logs[namespace].records}
        packed = pack_pieces(pieces, order, budget_tokens, self._count)
        return replace(with_costs(packed, scored=scored, embedded=1), signals=signals)

    def _ranked(self, namespace: str, query: Query) -> tuple[list[Piece], int, dict[str, float]]:
        index = self._index(namespace)
        current = self._logs[namespace].current(query.as_of)
        mask = allowed(index.chunks, current)
        if int(mask.sum()) > self._config.scan_limit:
            raise ScanOverflowError(
                f"{int(mask.sum())} chunks exceed the exact scan's {self._config.scan_limit}"
            )
        vector = self._encoder.embed([query.text], input_type="query")[0]
        dense = np.einsum("ij,j->i", index.vectors, vector).astype(np.float64)
        lexical = index.lexical.scores(query.text, mask)
        fused = self._fused(index, dense, lexical, mask)
        chosen = self._diverse(index, fused)
        pieces = self._expanded(namespace, index, chosen, current)
        signals = {
            "bm25": float(lexical.max(initial=0.0)),
            "cosine": float(dense[mask].max(initial=-1.0)),
        }
        return pieces, 2 * int(mask.sum()), signals

    def _fused(
        self, index: _Index, dense: Floats, lexical: Floats, mask: npt.NDArray[np.bool_]
    ) -> Floats:
        config = self._config
        fused = np.zeros(len(index.chunks))
        for granularity, weight in ((0, config.small), (1, config.large)):
            part = mask & (index.granularity == granularity)
            channels = (
                (dense, config.dense, part),
                (lexical, config.lexical, part & (lexical > 0)),
            )
            for scores, share, rankable in channels:
                rows = best_first(scores, rankable)
                ranks = np.arange(1, len(rows) + 1)
                fused[rows] += weight * share / (config.rrf_k + ranks)
        return fused

    def _diverse(self, index: _Index, fused: Floats) -> list[int]:
        """Return chunks without duplicates (of equal texts the newest stays), the best by MMR.

        What ranks behind the candidates follows in its order, so that a large budget is filled.
        """
        config = self._config
        rows = best_first(fused, fused > 0)
        newest = {index.keys[row]: max(index.chunks[row].rows) for row in sorted(rows)}
        rows = np.array(
            [r for r in rows if max(index.chunks[r].rows) == newest[index.keys[r]]], dtype=int
        )
        if config.mmr >= 1 and config.session_penalty == 0:
            return list(rows)
        head, rest = rows[: config.candidates], rows[config.candidates :]
        relevance = fused[head] / fused[head].max() if len(head) else fused[head]
        chosen = [int(head[place]) for place in self._mmr(index, head, relevance)]
        return [*chosen, *(int(row) for row in rest)]

    def _mmr(self, index: _Index, rows: npt.NDArray[np.int_], relevance: Floats) -> list[int]:
        config = self._config
        vectors = index.vectors[rows]
        nearest = np.zeros(len(rows))
        seen = np.zeros(int(index.sessions.max(initial=0)) + 1)
        left = np.ones(len(rows), dtype=bool)
        chosen: list[int] = []
        for _ in range(len(rows)):
            repeated = config.session_penalty * seen[index.sessions[rows]]
            scores = config.mmr * relevance - (1 - config.mmr) * nearest - repeated
            best = int(np.argmax(np.where(left, scores, -np.inf)))
            chosen.append(best)
            left[best] = False
            seen[index.sessions[rows[best]]] += 1
            nearest = np.maximum(nearest, np.einsum("ij,j->i", vectors, vectors[best]))
        return chosen

    def _expanded(
        self, namespace: str, index: _Index, chosen: Sequence[int], current: set[int]
    ) -> list[Piece]:
        """Return pieces: short parents whole, and the neighbours of the best behind each."""
        config = self._config
        records = self._logs[namespace].records
        places = {row: place for place, row in enumerate(sorted(current))}
        rows = sorted(current)
        pieces: list[Piece] = []
        for rank, number in enumerate(chosen):
            chunk = index.chunks[number]
            pieces += [self._parent(piece) for piece in chunk.pieces]
            if rank >= config.neighbour_after:
                continue
            for row in chunk.rows:
                around = range(places[row] - config.neighbours, places[row] + config.neighbours + 1)
                near = [records[rows[p]] for p in around if 0 <= p < len(rows) and rows[p] != row]
                pieces += [
                    self._parent(Piece(record.turn, (0, len(record.turn.text))))
                    for record in near
                    if record.turn.session == chunk.session
                ]
        return pieces

    def _parent(self, piece: Piece) -> Piece:
        short = self._count(piece.turn.text) <= self._config.parent_tokens
        return Piece(piece.turn) if short else piece

    def close(self) -> None:
        """Nothing to release."""
