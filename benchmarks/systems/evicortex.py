"""EviCortex through its public calls, as any user would run it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import Packed
from evicortex import EviCortex, EvidenceDraft


class EviCortexSystem:
    """One ledger file; one namespace a conversation."""

    def __init__(self, path: Path, *, name: str = "evicortex", **options: Any) -> None:
        self._name = name
        self._cortex = EviCortex.open(path, **options)

    @property
    def name(self) -> str:
        """The name in records and tables."""
        return self._name

    @property
    def cortex(self) -> EviCortex:
        """The cortex under measurement."""
        return self._cortex

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Remember the turns in batches."""
        drafts = [
            EvidenceDraft(
                content=turn.text,
                actor=turn.actor,
                role=turn.role,
                session=turn.session,
                external_id=turn.turn_id,
                occurred_at=turn.occurred_at,
            )
            for turn in turns
        ]
        self._cortex.remember_many(namespace, drafts)

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Recall within the budget."""
        pack = self._cortex.recall(
            namespace,
            query.text,
            budget_tokens=budget_tokens,
            as_of=query.as_of,
            query_actor=query.query_actor,
        )
        shown = {item.external_id: item.text for item in pack.items if item.external_id}
        ranked = sorted(pack.items, key=lambda item: -item.score)
        ranking = tuple(item.external_id for item in ranked if item.external_id)
        return Packed(pack.text, pack.token_count, shown, ranking)

    def close(self) -> None:
        """Close the ledger."""
        self._cortex.close()
