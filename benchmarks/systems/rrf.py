"""The usual hybrid: reciprocal rank fusion, k = 60, of BM25 and dense over single turns.

Cormack, Clarke and Buettcher, SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, pack_greedily
from benchmarks.systems.bm25 import BM25
from benchmarks.systems.costs import with_costs
from benchmarks.systems.dense import Dense, SharedEncoder

K = 60


class ReciprocalRankFusion:
    """BM25 and dense rankings, fused by rank."""

    name = "rrf-k60"

    def __init__(self, count: CountTokens, encoder: SharedEncoder) -> None:
        self._count = count
        self._systems = (BM25(count), Dense(count, encoder))
        self._order: dict[str, dict[str, int]] = {}

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Give the turns to both."""
        self._order[namespace] = {turn.turn_id: place for place, turn in enumerate(turns)}
        for system in self._systems:
            system.ingest(namespace, turns)

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Pack by fused rank; ties by place."""
        order = self._order[namespace]
        scores: dict[str, float] = dict.fromkeys(order, 0.0)
        turns: dict[str, Turn] = {}
        signals: dict[str, float] = {}
        for system in self._systems:
            ranked, signals[system.name] = system.rank(namespace, query.text, query.as_of)
            for rank, turn in enumerate(ranked, start=1):
                scores[turn.turn_id] += 1 / (K + rank)
                turns[turn.turn_id] = turn
        ranking = sorted(turns.values(), key=lambda t: (-scores[t.turn_id], order[t.turn_id]))
        packed = pack_greedily(ranking, order, budget_tokens, self._count)
        return replace(with_costs(packed, scored=2 * len(ranking), embedded=1), signals=signals)

    def close(self) -> None:
        """Nothing to release."""
