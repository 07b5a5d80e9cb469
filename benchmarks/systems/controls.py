"""Controls that frame every table: nothing, everything, and the gold itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from benchmarks.datasets.base import Label, Query, Turn
from benchmarks.systems.base import CountTokens, Packed, pack_greedily, serialize, visible
from benchmarks.systems.costs import with_costs


class NoMemory:
    """Remembers nothing: what a reader would answer from the question alone."""

    name = "no memory"

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Forget at once."""

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Return the empty pack."""
        return with_costs(Packed("", 0, {}, refused=True))

    def close(self) -> None:
        """Nothing to release."""


class FullHistory:
    """The whole visible history when it fits the budget, else nothing; the cost says ``fits``."""

    name = "full history"

    def __init__(self, count: CountTokens) -> None:
        self._count = count
        self._turns: dict[str, Sequence[Turn]] = {}
        self._seen: dict[tuple[str, datetime | None], tuple[list[Turn], str, int]] = {}

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Keep the turns."""
        self._turns[namespace] = turns
        self._seen.clear()

    def _history(self, namespace: str, as_of: datetime | None) -> tuple[list[Turn], str, int]:
        key = (namespace, as_of)
        if key not in self._seen:
            turns = self._turns[namespace]
            mask = visible(turns, as_of)
            seen = [turn for turn, shown in zip(turns, mask, strict=True) if shown]
            text = serialize(seen)
            self._seen = {key: (seen, text, self._count(text))}
        return self._seen[key]

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Return everything that had happened, or an empty pack that says it does not fit."""
        seen, text, tokens = self._history(namespace, query.as_of)
        if tokens > budget_tokens:
            return Packed("", 0, {}, costs={"fits": 0.0})
        ids = tuple(turn.turn_id for turn in seen)
        shown = {turn.turn_id: turn.text for turn in seen}
        return Packed(text, tokens, shown, ids, {"fits": 1.0}, ids)

    def close(self) -> None:
        """Nothing to release."""


class OracleEvidence:
    """Packs the gold turns and nothing else: the ceiling that the budget allows."""

    name = "oracle evidence"

    def __init__(self, count: CountTokens) -> None:
        self._count = count
        self._turns: dict[str, dict[str, Turn]] = {}
        self._order: dict[str, dict[str, int]] = {}

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Keep the turns."""
        self._turns[namespace] = {turn.turn_id: turn for turn in turns}
        self._order[namespace] = {turn.turn_id: place for place, turn in enumerate(turns)}

    def ask_with_label(
        self, namespace: str, query: Query, label: Label, budget_tokens: int
    ) -> Packed:
        """Pack the gold."""
        gold = [self._turns[namespace][turn] for turn in label.gold]
        packed = pack_greedily(gold, self._order[namespace], budget_tokens, self._count)
        return replace(with_costs(packed), refused=not label.answerable)

    def close(self) -> None:
        """Nothing to release."""
