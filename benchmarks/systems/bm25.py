"""Plain BM25 over turns: stemmed, with a full English stop list, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, pack_greedily, visible
from benchmarks.systems.costs import with_costs
from benchmarks.systems.lexical_index import LexicalIndex, best_first


class BM25:
    """BM25 over single turns."""

    name = "bm25"

    def __init__(self, count: CountTokens, *, k1: float = 1.2, b: float = 0.75) -> None:
        self._count = count
        self._k1 = k1
        self._b = b
        self._turns: dict[str, Sequence[Turn]] = {}
        self._indexes: dict[str, LexicalIndex] = {}

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Index one conversation."""
        texts = [f"{turn.actor}: {turn.text}" for turn in turns]
        self._turns[namespace] = turns
        self._indexes[namespace] = LexicalIndex(texts, k1=self._k1, b=self._b)

    def rank(
        self, namespace: str, text: str, as_of: datetime | None = None
    ) -> tuple[list[Turn], float]:
        """Return the turns that had happened, best first, ties by place, and the best score."""
        turns = self._turns[namespace]
        mask = visible(turns, as_of)
        scores = self._indexes[namespace].scores(text, mask)
        return [turns[row] for row in best_first(scores, mask)], float(scores.max(initial=0.0))

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Pack the best turns."""
        order = {turn.turn_id: place for place, turn in enumerate(self._turns[namespace])}
        ranking, top = self.rank(namespace, query.text, query.as_of)
        packed = pack_greedily(ranking, order, budget_tokens, self._count)
        return replace(with_costs(packed, scored=len(ranking)), signals={"bm25": top})

    def close(self) -> None:
        """Nothing to release."""
