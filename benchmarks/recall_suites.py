"""What the recall ladder is measured on: conversations, the questions that count, a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.datasets import locomo, locomo_plus, needles
from benchmarks.datasets.base import Conversation, Dataset, Label, Query
from benchmarks.datasets.slices import SLICES
from benchmarks.metrics.retrieval import any_evidence, strict_evidence

Score = Callable[[Label, dict[str, str], dict[str, str]], float]
"""Label, what the pack shows of each turn, the turns' whole texts; from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Suite:
    """Conversations with the questions that count, and how one question is scored.

    ``data`` maps the names of all files that it is made of to their SHA-256.
    """

    name: str
    data: dict[str, str]
    label: str
    measure: str
    score: Score
    conversations: Sequence[tuple[Conversation, Sequence[Query]]]
    is_slice: bool = False

    @property
    def questions(self) -> list[tuple[Conversation, Label]]:
        """The questions in the order of the scores."""
        return [
            (conversation, conversation.labels[query.query_id])
            for conversation, queries in self.conversations
            for query in queries
        ]

    def sampled(self, step: int) -> Suite:
        """Return the suite with every ``step``-th question only, counted through."""
        place = 0
        kept: list[tuple[Conversation, Sequence[Query]]] = []
        for conversation, queries in self.conversations:
            chosen = [query for n, query in enumerate(queries, place) if n % step == 0]
            place += len(queries)
            if chosen:
                kept.append((conversation, chosen))
        return replace(self, conversations=kept)


def strict(label: Label, shown: dict[str, str], full: dict[str, str]) -> float:
    """1 when every gold turn is packed and no word of the answer was cut out of one."""
    return strict_evidence(label.gold, shown, full, label.answer)


def any_cue(label: Label, shown: dict[str, str], full: dict[str, str]) -> float:
    """1 when any gold turn is packed."""
    return any_evidence(label.gold, shown)


def sentence_shown(label: Label, shown: dict[str, str], full: dict[str, str]) -> float:
    """1 when the pack shows the sentence that is the label's answer, whatever its line breaks."""
    sentence = " ".join((label.answer or "").split())
    return float(any(sentence in " ".join(text.split()) for text in shown.values()))


def _counted(conversations: Iterable[Conversation]) -> list[tuple[Conversation, Sequence[Query]]]:
    return [
        (each, [query for query in each.queries if each.labels[query.query_id].counted])
        for each in conversations
    ]


def answerable_suite(dataset: Dataset) -> Suite:
    """Return the questions that can be answered and have gold, scored strictly."""
    name = dataset.source.name
    chosen = _counted(dataset.conversations)
    return Suite(
        name, {name: dataset.digest}, dataset.label, "all evidence, strict", strict, chosen
    )


def slice_suites(dataset: Dataset) -> list[Suite]:
    """Return the same questions on the conversations of each slice."""
    whole = answerable_suite(dataset)
    return [
        replace(
            whole,
            name=f"{whole.name}, {name}",
            conversations=_counted(map(change, dataset.conversations)),
            is_slice=True,
        )
        for name, change in SLICES.items()
    ]


def implicit_suite(path: Path, haystack: Path) -> Suite:
    """Return the statements that should bring a cue to mind; any turn of the cue counts."""
    digest, label, items = locomo_plus.load(path, haystack)
    data = {"implicit": digest, "haystack": locomo.load(haystack).digest}
    return Suite("implicit", data, label, "any cue", any_cue, _counted(items))


def facts_suite(record: Path) -> Suite:
    """Return the assistant's facts; the sentence itself must be shown."""
    dataset = needles.assistant_facts(record)
    return replace(answerable_suite(dataset), measure="sentence shown", score=sentence_shown)
