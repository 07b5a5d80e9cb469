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
from benchmarks.train_ranker import Case, Source, cases, ingest, opened
from evicortex.policy.ranking import Ranker


def training_cases(found: Sequence[Source], encoder: SharedEncoder, folder: Path) -> Sequence[Case]:
    """Return every training question with the features of its candidates; a file goes to folder."""
    path = folder / "folds.db"
    ingest(path, found, encoder)
    rooms = opened(path, encoder, ranker=False)
    try:
        return cases(rooms, found)
    finally:
        rooms.close()


class Folds:
    """Trains one ranker for each development conversation that is met, or of which one is made."""

    def __init__(self, every: Sequence[Case], recipe: Recipe | None = None) -> None:
        self._every = every
        self._recipe = recipe or Recipe()
        self._known = {
            case.conversation.conversation_id: frozenset(case.conversation.turns) for case in every
        }
        self._trained: dict[str, Ranker] = {}
        self._rankers: dict[str, Ranker | None] = {}

    def meet(self, conversations: Iterable[Conversation]) -> None:
        """Train what is needed to ask about these conversations."""
        for conversation in conversations:
            origin = self._origin(conversation)
            found = None if origin is None else self._without(origin)
            self._rankers[conversation.conversation_id] = found

    def _origin(self, conversation: Conversation) -> str | None:
        if conversation.conversation_id in self._known:
            return conversation.conversation_id
        turns = frozenset(conversation.turns)
        return next((name for name, known in self._known.items() if known <= turns), None)

    def _without(self, name: str) -> Ranker:
        if name not in self._trained:
            others = [c.example for c in self._every if c.conversation.conversation_id != name]
            self._trained[name] = fit(others, self._recipe)
        return self._trained[name]

    def ranker(self, conversation_id: str) -> Ranker | None:
        """Return the ranker for a conversation that was met; ``None`` is the bundled one."""
        return self._rankers[conversation_id]

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
