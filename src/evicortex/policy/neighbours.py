"""Turns that need each other: a question and the short reply right after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from evicortex.policy.candidates import PackCandidate, chronological
from evicortex.text import words

_QUESTION_MARKS = ("?", "？", "؟", ";", "՞")


@dataclass(frozen=True, slots=True)
class NeighbourPolicy:
    """``reply_words``: a reply of at most so many words needs its question to be understood."""

    reply_words: int = 8


def with_neighbours(
    candidates: Iterable[PackCandidate], policy: NeighbourPolicy
) -> list[PackCandidate]:
    """Return ``candidates`` (best first), each followed by the neighbours that it needs.

    A neighbour that is a candidate itself moves up; one that is not takes over the score.
    """
    ranked = list(candidates)
    known = {candidate.evidence.evidence_id: candidate for candidate in reversed(ranked)}
    placed: set[str] = set()
    result: list[PackCandidate] = []
    for candidate in ranked:
        if candidate.span is None and candidate.evidence.evidence_id in placed:
            continue
        placed.add(candidate.evidence.evidence_id)
        result.append(candidate)
        for neighbour in candidate.neighbours:
            neighbour_id = neighbour.evidence.evidence_id
            if neighbour_id not in placed and _belong_together(candidate, neighbour, policy):
                placed.add(neighbour_id)
                result.append(known.get(neighbour_id) or replace(neighbour, score=candidate.score))
    return result


def _belong_together(
    candidate: PackCandidate, neighbour: PackCandidate, policy: NeighbourPolicy
) -> bool:
    first, second = sorted(
        (candidate.evidence, neighbour.evidence), key=lambda evidence: chronological(evidence)
    )
    asks = first.content.rstrip().endswith(_QUESTION_MARKS)
    answered_by_another = (first.actor, first.role) != (second.actor, second.role)
    return asks and answered_by_another and len(words(second.content)) <= policy.reply_words
