"""From what an extractor found to a result that keeps the rules of an extraction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from evicortex.protocols import EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.types import Cardinality, Diagnostic, Polarity, Span
from evicortex.validity import match_key


@dataclass(frozen=True, slots=True)
class Proposal:
    """A claim on a span of the evidence; the fields are those of ``ExtractedClaim``."""

    subject: str
    predicate: str
    object: str
    span: Span
    confidence: float
    polarity: Polarity = Polarity.POSITIVE
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    cardinality: Cardinality | None = None


def settle(
    context: EvidenceContext,
    proposals: Iterable[Proposal],
    diagnostics: Iterable[Diagnostic] = (),
    usage: Mapping[str, float] | None = None,
) -> ExtractionResult:
    """Bind proposals to the evidence, in order and once each; abstain when none is left.

    Of equal proposals on one span the most confident stays. One that would end before it
    begins is left out with a diagnostic ``impossible_interval``.
    """
    told = list(diagnostics)
    kept: dict[tuple[object, ...], Proposal] = {}
    for each in proposals:
        if _impossible(context, each):
            told.append(_rejected(context, each))
            continue
        key = (
            match_key(each.subject),
            match_key(each.predicate),
            match_key(each.object),
            each.polarity,
            each.span,
            each.valid_from,
            each.valid_to,
        )
        other = kept.get(key)
        if other is None or other.confidence < each.confidence:
            kept[key] = each
    claims = tuple(_bound(context, each) for each in sorted(kept.values(), key=_place))
    return ExtractionResult(claims, not claims, tuple(told), dict(usage or {}))


def _place(proposal: Proposal) -> tuple[int, int]:
    return proposal.span


def _impossible(context: EvidenceContext, proposal: Proposal) -> bool:
    begins = proposal.valid_from or context.occurred_at
    ends = proposal.valid_to
    # Without a beginning the time of recording would be it, which no extractor knows.
    return ends is not None and (begins is None or ends <= begins)


def _rejected(context: EvidenceContext, proposal: Proposal) -> Diagnostic:
    span = proposal.span
    return Diagnostic(
        "impossible_interval",
        f"{context.content[span.start : span.end]!r} would end before it begins",
        {"span": list(span), "predicate": proposal.predicate},
    )


def _bound(context: EvidenceContext, proposal: Proposal) -> ExtractedClaim:
    return ExtractedClaim(
        evidence_id=context.evidence_id,
        evidence_digest=context.digest,
        subject=proposal.subject,
        predicate=proposal.predicate,
        object=proposal.object,
        span=proposal.span,
        quote=context.content[proposal.span.start : proposal.span.end],
        confidence=proposal.confidence,
        polarity=proposal.polarity,
        valid_from=proposal.valid_from,
        valid_to=proposal.valid_to,
        cardinality=proposal.cardinality,
    )
