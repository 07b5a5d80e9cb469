"""How well the question is supported by what was found: a verdict with its reasons. Pure.

Top scores and the gaps between them do not tell an answerable question from an unanswerable
one. What does: how much of the question's weight one turn *of the actor asked about* holds, and
whether somebody else's turn holds more ("the necklace was hers, not his"). On the six LoCoMo
development conversations that difference separates 869 answerable from 256 adversarial
questions with an area under the curve of .81 (the best coverage by anyone: .53). The default
thresholds, chosen on these very questions, refuse 53 % of the adversarial and 13 % of the
answerable ones. A probability needs a calibration on labelled questions; none is built in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evicortex.errors import InputError
from evicortex.policy.query import QueryAnalysis
from evicortex.text import content_terms
from evicortex.types import Support


class Coverage(Protocol):
    """What lexical scoring says of every row: the share (0 to 1) of the query's idf mass."""

    @property
    def coverage(self) -> npt.NDArray[np.float32]:
        """One share per row of the namespace; 0 for rows that are not allowed."""
        ...


@dataclass(frozen=True, slots=True)
class SupportPolicy:
    """When a question counts as supported.

    Attributes:
        coverage: Least share of the question's idf mass that one turn must hold.
        margin: Least difference between the best turn of the actors asked about and the best
            of all others; negative, because others ask and echo.
        claim: Share of the question's words, weighted by confidence, from which on a claim that
            is held supports the question by itself, whatever the turns say.
    """

    coverage: float = 0.2
    margin: float = -0.1
    claim: float = 0.6

    def __post_init__(self) -> None:
        if not (0 <= self.coverage <= 1 and -1 <= self.margin <= 1 and 0 < self.claim <= 1):
            raise InputError(
                "coverage lies between 0 and 1, margin between -1 and 1, claim above 0 up to 1"
            )


@dataclass(frozen=True, slots=True)
class SupportEvidence:
    """What the verdict rests on.

    Attributes:
        terms: How many informative terms the question has.
        asked: The actors asked about.
        unknown: Capitalised names in the question of which no text holds anything.
        covered: Best share of the question's idf mass in one turn of the actors asked about, or
            of anyone when the question asks about nobody in particular.
        others: The same for everybody else; 0 when nobody in particular is asked about.
        literal: Whether the literal query stands in a text.
        claim: Best share of the question's words in a claim that is held; 0 for none.
        dated: Whether the question asks for nothing but a time in which a turn of those asked
            about falls.
    """

    terms: int
    asked: tuple[str, ...]
    unknown: tuple[str, ...]
    covered: float
    others: float
    literal: bool = False
    claim: float = 0.0
    dated: bool = False

    @classmethod
    def measure(
        cls,
        analysis: QueryAnalysis,
        lexical: Coverage,
        actor: npt.NDArray[np.int32],
        names: Mapping[int, str],
        *,
        literal: bool = False,
        unknown: Sequence[str] = (),
        claims: npt.NDArray[np.floating] | None = None,
        times: npt.NDArray[np.floating] | None = None,
    ) -> SupportEvidence:
        """Measure a question.

        Args:
            analysis: The question.
            lexical: Coverage of every row.
            actor: Actor id of every row, shape (rows,).
            names: Actors by id.
            literal: Whether the literal query was found.
            unknown: Names that no text of the namespace holds.
            claims: The claims channel: share of the question's words in a held claim, by row.
            times: The time channel: 1 for a row within a time that the question names.
        """
        shares = lexical.coverage
        asked = analysis.actors or ((analysis.actor,) if analysis.actor else ())
        ids = [number for number, name in names.items() if name in asked]
        covered, others = float(shares.max(initial=0.0)), 0.0
        inside = None if times is None else times >= 1.0
        if ids:
            theirs = np.logical_or.reduce([actor == number for number in ids])
            covered = float(shares[theirs].max(initial=0.0))
            others = float(shares[~theirs].max(initial=0.0))
            inside = None if inside is None else inside & theirs
        claim = 0.0 if claims is None else float(claims.max(initial=0.0))
        return cls(
            len(analysis.terms),
            asked,
            tuple(unknown),
            covered,
            others,
            literal,
            claim,
            inside is not None and bool(inside.any()) and _only_times(analysis),
        )

    @property
    def margin(self) -> float:
        """How much more a turn of those asked about holds than anybody else's."""
        return self.covered - self.others


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression from labelled questions; replaces the thresholds of the policy.

    The probability of support is 1 / (1 + exp(-(intercept + coverage * covered + margin *
    (covered - others)))). ``threshold`` is the least probability of a supported question,
    ``source`` says on what it was fitted.
    """

    intercept: float
    coverage: float
    margin: float
    threshold: float
    source: str

    def __post_init__(self) -> None:
        values = (self.intercept, self.coverage, self.margin, self.threshold)
        if not all(map(math.isfinite, values)) or not 0 <= self.threshold <= 1:
            raise InputError("a calibration has finite weights and a threshold from 0 to 1")

    def probability(self, evidence: SupportEvidence) -> float:
        """Return the probability, 0 to 1, that the question is supported."""
        score = self.intercept + self.coverage * evidence.covered + self.margin * evidence.margin
        return float(0.5 * (1.0 + math.tanh(score / 2.0)))


def assess(
    evidence: SupportEvidence,
    *,
    policy: SupportPolicy | None = None,
    calibration: Calibration | None = None,
) -> Support:
    """Return the verdict, with the probability when there is a calibration, and why."""
    chosen = policy or SupportPolicy()
    probability = None if calibration is None else calibration.probability(evidence)
    if evidence.unknown:
        names = ", ".join(evidence.unknown)
        return Support("insufficient", probability, (f"nothing remembered mentions {names}",))
    direct = _stands_by_itself(evidence, chosen)
    if direct is not None:
        return Support("supported", probability, (direct,))
    refusal = _nothing_found(evidence)
    if refusal is None:
        refusal = (
            _too_little(evidence, chosen)
            if calibration is None
            else _improbable(evidence, calibration)
        )
    if refusal is not None:
        return Support("insufficient", probability, (refusal,))
    found = f"a turn of {_people(evidence)} holds {evidence.covered:.0%} of the question's weight"
    return Support("supported", probability, (found,))


def _people(evidence: SupportEvidence) -> str:
    return " and ".join(evidence.asked) if evidence.asked else "anyone"


def _stands_by_itself(evidence: SupportEvidence, policy: SupportPolicy) -> str | None:
    if evidence.literal:
        return "the literal query stands in a text"
    if evidence.claim >= policy.claim:
        return f"a claim that is held shares {evidence.claim:.0%} of the question's words"
    if evidence.dated:
        return f"a turn of {_people(evidence)} falls into the time that the question names"
    return None


def _only_times(analysis: QueryAnalysis) -> bool:
    """Return whether nothing informative is left beside names and times."""
    rest = list(analysis.query)
    for span in (
        *(each.span for each in analysis.times),
        *(each.span for each in analysis.mentions),
    ):
        rest[span.start : span.end] = " " * (span.end - span.start)
    return not content_terms("".join(rest))


def _nothing_found(evidence: SupportEvidence) -> str | None:
    if evidence.terms == 0:
        return "the question has no informative term"
    if evidence.covered > 0.0:
        return None
    if evidence.others > 0.0:
        return f"no turn of {_people(evidence)} holds a term of the question; others' do"
    return "no turn holds an informative term of the question"


def _too_little(evidence: SupportEvidence, policy: SupportPolicy) -> str | None:
    if evidence.covered < policy.coverage:
        return (
            f"the best turn of {_people(evidence)} holds {evidence.covered:.0%} of the question's "
            f"weight, less than {policy.coverage:.0%}"
        )
    if evidence.margin < policy.margin:
        return (
            f"others' turns hold more of the question ({evidence.others:.0%}) than those of "
            f"{_people(evidence)} ({evidence.covered:.0%})"
        )
    return None


def _improbable(evidence: SupportEvidence, calibration: Calibration) -> str | None:
    probability = calibration.probability(evidence)
    if probability >= calibration.threshold:
        return None
    return (
        f"the probability {probability:.2f} is below {calibration.threshold:.2f} "
        f"({calibration.source})"
    )
