"""Which candidates say nothing that a better one does not say.

Only texts whose normalised form is equal count as duplicates. Near-identical texts with other
values stay apart, and so do equal texts that mean different things: by another actor, with other
claims, of another standing, or said on another day about "today" or "last week".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from evicortex.policy.candidates import PackCandidate, effective_time
from evicortex.text import normalized

_RELATIVE_TIME = re.compile(
    r"\b(?:today|tonight|now|currently|just|already|yesterday|tomorrow|ago|recently|lately|soon"
    r"|(?:this|last|next|past|coming)\s+(?:\w+\s+)?(?:morning|afternoon|evening|night|day|week"
    r"|weekend|month|quarter|term|season|year|spring|summer|autumn|fall|winter"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july"
    r"|august|september|october|november|december))s?\b",
    re.IGNORECASE,
)


class Duplicate(NamedTuple):
    """A candidate that repeats the better-ranked evidence ``of``."""

    candidate: PackCandidate
    of: str


def without_duplicates(
    candidates: Iterable[PackCandidate],
) -> tuple[list[PackCandidate], list[Duplicate]]:
    """Split ``candidates`` (best first) into those to keep, in order, and the duplicates.

    The best-ranked occurrence stays. Candidates of one and the same evidence are passages of
    it, never duplicates of each other.
    """
    kept: list[PackCandidate] = []
    duplicates: list[Duplicate] = []
    alike: dict[_Likeness, list[PackCandidate]] = {}
    originals: dict[str, str] = {}
    for candidate in candidates:
        evidence = candidate.evidence
        if evidence.evidence_id not in originals:
            others = alike.setdefault(_likeness(candidate), [])
            repeated = [other.evidence for other in others if _repeats(candidate, other)]
            originals[evidence.evidence_id] = (repeated or [evidence])[0].evidence_id
            if not repeated:
                others.append(candidate)
        of = originals[evidence.evidence_id]
        if of == evidence.evidence_id:
            kept.append(candidate)
        else:
            duplicates.append(Duplicate(candidate, of))
    return kept, duplicates


_Likeness = tuple[str | None, str | None, bool, bytes]
_NO_LETTER_OR_DIGIT = bytes(
    code for code in range(128) if not (chr(code).isdigit() or "a" <= chr(code) <= "z")
)


def _likeness(candidate: PackCandidate) -> _Likeness:
    """Return what duplicates have in common, without the cost of normalising most texts."""
    evidence = candidate.evidence
    text = evidence.content
    plain = text.lower() if text.isascii() else normalized(text)
    skeleton = plain.encode("ascii", "ignore").translate(None, _NO_LETTER_OR_DIGIT)
    return evidence.actor, evidence.role, candidate.superseded, skeleton


def _repeats(candidate: PackCandidate, other: PackCandidate) -> bool:
    text = candidate.evidence.content
    if normalized(text) != normalized(other.evidence.content):
        return False
    days = {effective_time(either.evidence).date() for either in (candidate, other)}
    if len(days) > 1 and _RELATIVE_TIME.search(text):
        return False
    beliefs, others = _beliefs(candidate), _beliefs(other)
    return not beliefs or not others or beliefs == others


def _beliefs(candidate: PackCandidate) -> frozenset[tuple[str, ...]]:
    return frozenset(
        (
            normalized(claim.subject),
            normalized(claim.predicate),
            normalized(claim.object),
            claim.polarity.value,
        )
        for claim in candidate.claims
    )
