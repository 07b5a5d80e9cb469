"""The released retrieval measures of LongMemEval, quirks included.

Source: ``src/retrieval/eval_utils.py`` and ``run_retrieval.py`` of xiaowu0162/LongMemEval at
9e0b455. The quirks: ranks 1 and 2 weigh the same; the ideal ranking is of the whole corpus cut
at k; ``recall_all`` is 1 on empty gold; a document is gold when its id contains ``answer``; from
turns to sessions, k grows until k distinct sessions are seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from benchmarks.datasets.base import ReleasedCorpus

CUTOFFS = (1, 3, 5, 10, 30, 50)
MEASURES = ("recall_any", "recall_all", "ndcg_any")
LEVELS = ("turn", "session", "session corpus")
"""Turns; the same ranking grown to sessions; sessions ranked as the documents of the corpus.

The release prints the first two of a run over turns, and the third of a run over sessions.
"""
_MARK = "answer"


@dataclass(frozen=True, slots=True)
class Released:
    """The three released values at one cutoff."""

    recall_any: float
    recall_all: float
    ndcg_any: float


def gold_of(document_ids: Sequence[str]) -> frozenset[str]:
    """Return the gold documents: those whose id contains ``answer``."""
    return frozenset(document for document in document_ids if _MARK in document)


def dcg(gains: Sequence[int], k: int) -> float:
    """Return gain 1 plus the sum of gain i / log2(i) from rank 2 to ``k``."""
    cut = gains[:k]
    return float(sum(g if i == 1 else g / math.log2(i) for i, g in enumerate(cut, 1)))


def evaluate(
    ranking: Sequence[int], gold: Collection[str], document_ids: Sequence[str], k: int
) -> Released:
    """Return the released values; ``ranking`` holds places in ``document_ids``, best first."""
    found = {document_ids[place] for place in ranking[:k]}
    gains = [int(document in gold) for document in document_ids]
    ideal = dcg(sorted(gains, reverse=True), k)
    actual = dcg([gains[place] for place in ranking[:k]], k)
    return Released(
        float(any(document in found for document in gold)),
        float(all(document in found for document in gold)),
        actual / ideal if ideal else 0.0,
    )


def strip_turn(document: str) -> str:
    """Return the session's id of a turn's id: all but the last part."""
    return "_".join(document.split("_")[:-1])


def evaluate_as_sessions(
    ranking: Sequence[int], gold: Collection[str], document_ids: Sequence[str], k: int
) -> Released:
    """Return the released session values of a ranking of turns."""
    sessions = [strip_turn(document) for document in document_ids]
    grown = k
    while grown <= len(sessions) and len({sessions[place] for place in ranking[:grown]}) < k:
        grown += 1
    return evaluate(ranking, {strip_turn(document) for document in gold}, sessions, grown)


def places(corpus: ReleasedCorpus, ranked_turns: Sequence[str]) -> list[int]:
    """Return the places in the released corpus of ranked turns; others are left out."""
    known = {turn: place for place, turn in enumerate(corpus.turn_ids)}
    return [known[turn] for turn in ranked_turns if turn in known]


def session_places(corpus: ReleasedCorpus, ranked_turns: Sequence[str]) -> list[int]:
    """Return the places in the corpus of sessions, each where its first turn is ranked."""
    known = {key: place for place, key in enumerate(corpus.session_keys)}
    seen = dict.fromkeys(strip_turn(turn) for turn in ranked_turns)
    return [known[session] for session in seen if session in known]


def in_released_denominator(question_id: str, corpus: ReleasedCorpus) -> bool:
    """Whether the release counts this question: no abstention, and a user turn as target."""
    return "_abs" not in question_id and bool(gold_of(corpus.document_ids))


def columns(
    corpus: ReleasedCorpus, ranked_turns: Sequence[str], cutoffs: Sequence[int] = CUTOFFS
) -> dict[str, float]:
    """Return every released column of one question: ``turn/recall_all@5`` and so on."""
    ranking = places(corpus, ranked_turns)
    sessions = session_places(corpus, ranked_turns)
    documents, gold = corpus.document_ids, gold_of(corpus.document_ids)
    targets = gold_of(corpus.session_ids)
    values: dict[str, float] = {}
    for k in cutoffs:
        found = (
            evaluate(ranking, gold, documents, k),
            evaluate_as_sessions(ranking, gold, documents, k),
            evaluate(sessions, targets, corpus.session_ids, k),
        )
        for level, each in zip(LEVELS, found, strict=True):
            values |= {f"{level}/{name}@{k}": getattr(each, name) for name in MEASURES}
    return values
