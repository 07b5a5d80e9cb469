"""Extractors for tests: scripted ones, and one for every rule that can be broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from evicortex.protocols import EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.types import Authority, Diagnostic, Span

Script = Callable[[EvidenceContext], ExtractionResult]


class ScriptedExtractor:
    """Returns what ``script`` returns; without a script it claims the first and second word.

    ``calls`` records every context. A text of fewer than two words makes the default script
    abstain.
    """

    def __init__(self, script: Script | None = None, *, revision: str = "1") -> None:
        self.calls: list[EvidenceContext] = []
        self._script = script or claim_first_words
        self._revision = revision

    @property
    def extractor_id(self) -> str:
        """The name."""
        return "testing/scripted"

    @property
    def revision(self) -> str:
        """The revision."""
        return self._revision

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Return the script's result."""
        self.calls.append(context)
        return self._script(context)


class RaisingExtractor(ScriptedExtractor):
    """Raises ``error`` in place of an answer."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Raise."""
        raise self._error


class LyingExtractor(ScriptedExtractor):
    """Breaks the one rule that ``rule`` names (see ``EXTRACTOR_LIES``); texts need two words."""

    def __init__(self, rule: str) -> None:
        super().__init__()
        self._rule = rule
        self._lie = _LIES[rule]

    @property
    def revision(self) -> str:
        """The revision, which changes after the first call if that is the lie."""
        return f"1+{len(self.calls)}" if self._rule == "identity" else "1"

    def extract(self, context: EvidenceContext) -> Any:
        """Return a result that breaks the rule."""
        return self._lie(super().extract(context))


def claim_first_words(context: EvidenceContext) -> ExtractionResult:
    """Claim that the first word ``says`` itself and the second word itself, each on its span."""
    words = context.content.split()[:2]
    if len(words) < 2:
        return ExtractionResult((), abstained=True, diagnostics=(Diagnostic("short", "too short"),))
    claims: list[ExtractedClaim] = []
    end = 0
    for word in words:
        start = context.content.index(word, end)
        end = start + len(word)
        claims.append(
            ExtractedClaim(
                evidence_id=context.evidence_id,
                evidence_digest=context.digest,
                subject="text",
                predicate="says",
                object=word,
                span=Span(start, end),
                quote=word,
                confidence=0.5,
            )
        )
    return ExtractionResult(tuple(claims), usage={"calls": 1.0})


def _first(**changes: Any) -> Callable[[ExtractionResult], ExtractionResult]:
    def lie(result: ExtractionResult) -> ExtractionResult:
        first, *others = result.claims
        return replace(result, claims=(replace(first, **changes), *others))

    return lie


_LIES: Mapping[str, Callable[[ExtractionResult], object]] = {
    "result-type": lambda result: list(result.claims),
    "identity": lambda result: result,
    "abstention": lambda result: replace(result, abstained=True),
    "evidence-id": _first(evidence_id="ev_other"),
    "evidence-digest": _first(evidence_digest="0" * 64),
    "field": _first(subject="  "),
    "span": _first(span=Span(0, 1_000_000)),
    "quote": _first(quote="something else"),
    "confidence": _first(confidence=1.5),
    "authority": _first(authority=Authority.SYSTEM),
    "polarity": _first(polarity="maybe"),
    "cardinality": _first(cardinality="some"),
    "validity": _first(
        valid_from=datetime(2026, 1, 2, tzinfo=UTC), valid_to=datetime(2026, 1, 1, tzinfo=UTC)
    ),
    "order": lambda result: replace(result, claims=result.claims[::-1]),
    "duplicate": lambda result: replace(result, claims=(result.claims[0], *result.claims)),
    "usage": lambda result: replace(result, usage={"calls": float("nan")}),
}

EXTRACTOR_LIES: tuple[str, ...] = tuple(_LIES)
"""Every rule that ``LyingExtractor`` can break."""
