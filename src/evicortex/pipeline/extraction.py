"""Claims from raw text: extractor first, the whole result checked, then one atomic write."""

from __future__ import annotations

from dataclasses import dataclass

from evicortex.errors import InputError
from evicortex.ledger import NamespaceRow, Transaction, extractions, keys
from evicortex.ledger import claims as claim_ledger
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.evidence import Added, Rejected
from evicortex.pipeline.drafts import Prepared, prepare
from evicortex.pipeline.indexing import bring_up_to_date
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.echo import is_mostly_recalled, is_recalled
from evicortex.protocols import ClaimExtractor, EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.types import (
    ClaimDraft,
    Diagnostic,
    EvidenceDraft,
    ExtractionReceipt,
    ExtractionRecord,
)
from evicortex.validation import CheckedExtractor

Previous = tuple[tuple[str | None, str], ...]

_REVISED = "a later extraction of the same evidence no longer emits this claim"


@dataclass(frozen=True, slots=True)
class _Extracted:
    """What may be written: claims in order, or an abstention, and what was left out."""

    claims: tuple[ClaimDraft, ...]
    abstained: bool
    diagnostics: tuple[Diagnostic, ...]
    usage: dict[str, float]


def remember_extracted(
    rooms: Rooms,
    namespace: str,
    draft: EvidenceDraft,
    extractor: ClaimExtractor | None,
    previous: Previous,
) -> ExtractionReceipt:
    """Extract, check, then store evidence, claims and the audit record in one transaction.

    Raises:
        ExtractionError, ProviderError: the extractor failed or broke a rule; nothing was stored.
        InputError, ConflictError: no extractor, or a draft that cannot be stored.
    """
    keys.check_namespace(namespace)
    checked = _extractor(rooms, extractor)
    prepared = prepare(draft)
    found = _extract(checked, prepared, previous)
    claim_ledger.check_drafts(
        found.claims,
        content=prepared.draft.content,
        authority=prepared.authority,
        role=prepared.draft.role,
        occurred_at=prepared.occurred_at,
        recorded_at=rooms.clock.now(),
        order=rooms.options.authorities,
    )
    with rooms.ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        (result,) = evidence_ledger.add(tx, ns, [prepared.draft])
        if isinstance(result, Rejected):
            raise result.error
        record = _record(rooms, tx, ns, result, found, checked)
    problems = bring_up_to_date(rooms, namespace, after=result.row_id - 1)
    return ExtractionReceipt(
        evidence_id=result.evidence_id,
        digest=result.digest,
        claim_ids=tuple(each.claim_id for each in record.derivations),
        created=result.created,
        indexed=not problems,
        abstained=record.abstained,
        record=record,
        diagnostics=found.diagnostics + problems,
    )


def _extractor(rooms: Rooms, extractor: ClaimExtractor | None) -> CheckedExtractor:
    if extractor is not None:
        return CheckedExtractor(extractor, authority_order=rooms.options.authorities.ranking)
    if rooms.extractor is None:
        raise InputError("no extractor: pass one to this call, or to EviCortex.open(extractor=...)")
    return rooms.extractor


def _extract(extractor: CheckedExtractor, prepared: Prepared, previous: Previous) -> _Extracted:
    content = prepared.draft.content
    if is_mostly_recalled(content):
        reason = Diagnostic(
            "recalled_context", "the text is recalled context, no news; nothing was extracted"
        )
        return _Extracted((), True, (reason,), {})
    digest = keys.text_digest(content)
    result = extractor.extract(
        EvidenceContext(
            # The ledger names evidence when it is written, after the extraction.
            evidence_id=f"sha256:{digest}",
            content=content,
            digest=digest,
            actor=prepared.draft.actor,
            role=prepared.draft.role,
            authority=claim_ledger.authority_cap(prepared.authority, prepared.draft.role),
            occurred_at=prepared.occurred_at,
            previous=previous,
        )
    )
    return _without_echoes(content, result)


def _without_echoes(content: str, result: ExtractionResult) -> _Extracted:
    kept = [claim for claim in result.claims if not is_recalled(content, claim.span)]
    diagnostics = result.diagnostics
    if len(kept) < len(result.claims):
        dropped = len(result.claims) - len(kept)
        diagnostics += (
            Diagnostic(
                "recalled_context",
                f"{dropped} claims rest on recalled context and were not recorded",
                {"claims": dropped},
            ),
        )
    return _Extracted(tuple(map(_draft, kept)), not kept, diagnostics, dict(result.usage))


def _draft(claim: ExtractedClaim) -> ClaimDraft:
    return ClaimDraft(
        subject=claim.subject,
        predicate=claim.predicate,
        object=claim.object,
        span=claim.span,
        polarity=claim.polarity,
        confidence=claim.confidence,
        authority=claim.authority,
        valid_from=claim.valid_from,
        valid_to=claim.valid_to,
        cardinality=claim.cardinality,
    )


def _record(
    rooms: Rooms,
    tx: Transaction,
    ns: NamespaceRow,
    result: Added,
    found: _Extracted,
    extractor: CheckedExtractor,
) -> ExtractionRecord:
    evidence = evidence_ledger.fetch(tx, ns, [result.row_id])[result.row_id]
    claim_ids = claim_ledger.add(
        tx,
        ns,
        evidence,
        found.claims,
        registry=rooms.options.predicates,
        order=rooms.options.authorities,
        origin="extraction",
    )
    record = extractions.add(
        tx,
        ns,
        evidence,
        extractor_id=extractor.extractor_id,
        extractor_revision=extractor.revision,
        claim_ids=tuple(dict.fromkeys(claim_ids)),
        abstained=found.abstained,
        diagnostics=found.diagnostics,
        usage=found.usage,
    )
    for claim_id in extractions.unemitted(tx, ns, evidence.evidence_id):
        claim_ledger.retract(
            tx,
            ns,
            claim_id,
            reason=_REVISED,
            order=rooms.options.authorities,
            cause="reextraction",
        )
    return record
