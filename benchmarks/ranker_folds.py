"""Rankers that have not seen the conversation that they are used on.

The bundled ranker was trained on the development conversations, so its figures there flatter.
Here each of them gets a ranker that was trained on all others; what is derived from one (a slice,
or the same turns with a cue inserted) gets that one's ranker. Any other conversation gets the
bundled ranker, which has not seen it. This looks inside the pipeline, as the training does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Conversation, Query
from benchmarks.ranker_fit import Recipe, fit
from benchmarks.systems.base import Packed
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem
from benchmarks.train_ranker import Case, Source, cases, opened
from evicortex.policy.ranking import Ranker


def training_cases(found: Sequence[Source], encoder: SharedEncoder, folder: Path) -> Sequence[Case]:
    """Return every training question with the features of its candidates; a file goes to folder."""
    path = folder / "folds.db"
    system = EviCortexSystem(path, embedder=encoder)
    for source in found:
        for conversation in source.conversations:
            system.ingest(conversation.conversation_id, conversation.turns)
    system.close()
    rooms = opened(path, encoder, ranker=False)
    try:
        return cases(rooms, found)
    finally:
        rooms.close()


class Folds:
    """Trains on demand, once for each set of conversations that must be left out."""

    def __init__(self, every: Sequence[Case], recipe: Recipe | None = None) -> None:
        self._every = every
        self._recipe = recipe or Recipe()
        self._trained = {
            case.conversation.conversation_id: frozenset(case.conversation.turns) for case in every
        }
        self._rankers: dict[str, Ranker] = {}
        self._left_out: dict[str, str | None] = {}

    def meet(self, conversations: Iterable[Conversation]) -> None:
        """Take note of conversations that will be asked about."""
        for conversation in conversations:
            self._left_out[conversation.conversation_id] = self._origin(conversation)

    def _origin(self, conversation: Conversation) -> str | None:
        if conversation.conversation_id in self._trained:
            return conversation.conversation_id
        turns = frozenset(conversation.turns)
        return next((name for name, known in self._trained.items() if known <= turns), None)

    def ranker(self, conversation_id: str) -> Ranker | None:
        """Return the ranker for a conversation that was met; ``None`` is the bundled one."""
        left_out = self._left_out[conversation_id]
        if left_out is None:
            return None
        if left_out not in self._rankers:
            examples = [
                case.example
                for case in self._every
                if case.conversation.conversation_id != left_out
            ]
            self._rankers[left_out] = fit(examples, self._recipe)
        return self._rankers[left_out]

    def record(self) -> dict[str, Any]:
        """Return how the rankers were trained."""
        return {"recipe": asdict(self._recipe), "questions": len(self._every)}


class HeldOutEviCortex(EviCortexSystem):
    """EviCortex, asked each question with a ranker that has not seen its conversation."""

    def __init__(self, path: Path, folds: Folds, **options: Any) -> None:
        super().__init__(path, **options)
        self._folds = folds

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Recall within the budget."""
        self.cortex._open.ranker = self._folds.ranker(namespace)
        return super().ask(namespace, query, budget_tokens)
