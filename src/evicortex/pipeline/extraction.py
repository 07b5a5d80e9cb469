"""Claims from raw text: extractor first, the whole result checked, then one atomic write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from evicortex.errors import ConflictError, ExtractionError, InputError, InvalidTimeError
from evicortex.ledger import NamespaceRow, Transaction, extractions, keys
from evicortex.ledger import claims as claim_ledger
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.evidence import Rejected
from evicortex.pipeline.drafts import Prepared, check_text, prepare
from evicortex.pipeline.indexing import bring_up_to_date
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.echo import is_mostly_recalled, is_recalled
from evicortex.protocols import ClaimExtractor, EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.types import (
    Authority,
    ClaimDraft,
    Diagnostic,
    Evidence,
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

    Evidence that is stored already is extracted from as it is stored, whatever actor, role or
    time the draft names now: its claims rest on that record.

    Raises:
        ExtractionError, ProviderError: the extractor failed or broke a rule; nothing was stored.
        InputError, ConflictError: no extractor, or a draft that cannot be stored.
    """
    keys.check_namespace(namespace)
    checked = _extractor(rooms, extractor)
    prepared = prepare(draft)
    origin = _origin(rooms, namespace, prepared)
    found = _extract(rooms, checked, origin, _turns(previous))
    with _told_of(checked):
        claim_ledger.check_drafts(
            found.claims,
            content=origin.content,
            authority=origin.authority,
            role=origin.role,
            occurred_at=origin.occurred_at,
            recorded_at=origin.recorded_at,
            order=rooms.options.authorities,
        )
    with rooms.ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        (result,) = evidence_ledger.add(tx, ns, [prepared.draft])
        if isinstance(result, Rejected):
            raise result.error
        evidence = evidence_ledger.fetch(tx, ns, [result.row_id])[result.row_id]
        if not result.created and _origin_of(evidence) != origin:
            raise ConflictError(
                f"external_id {draft.external_id!r} was stored meanwhile as another's; nothing was "
                "written, so extract again: it is then read as it is stored"
            )
        record = _record(rooms, tx, ns, evidence, found, checked)
    claim_ids = tuple(each.claim_id for each in record.derivations)
    problems = bring_up_to_date(rooms, namespace, after=result.row_id - 1, claim_ids=claim_ids)
    return ExtractionReceipt(
        evidence_id=result.evidence_id,
        digest=result.digest,
        claim_ids=claim_ids,
        created=result.created,
        indexed=not problems,
        abstained=record.abstained,
        record=record,
        diagnostics=found.diagnostics + problems,
    )


def _extractor(rooms: Rooms, extractor: ClaimExtractor | None) -> CheckedExtractor:
    if extractor is not None:
        return CheckedExtractor(
            extractor,
            authority_order=rooms.options.authorities.ranking,
            timeout_seconds=rooms.options.extraction.timeout_seconds,
        )
    if rooms.extractor is None:
        raise InputError("no extractor: pass one to this call, or to EviCortex.open(extractor=...)")
    return rooms.extractor


def _turns(previous: Sequence[object]) -> Previous:
    """Return earlier turns as (actor, text) pairs; raises InputError for anything else."""
    turns: list[tuple[str | None, str]] = []
    for number, turn in enumerate(previous, start=1):
        if not isinstance(turn, tuple | list) or len(turn) != 2:
            raise InputError(f"previous turn {number} is a pair (actor or None, text)")
        actor, text = turn
        name = None if actor is None else check_text(actor, f"actor of previous turn {number}")
        turns.append((name, check_text(text, f"previous turn {number}")))
    return tuple(turns)


@dataclass(frozen=True, slots=True)
class _Origin:
    """What claims will rest on: the evidence as it is stored, or as it will be."""

    content: str
    actor: str | None
    role: str | None
    authority: Authority
    occurred_at: datetime | None
    recorded_at: datetime = field(compare=False)


def _origin(rooms: Rooms, namespace: str, prepared: Prepared) -> _Origin:
    draft = prepared.draft
    stored = None
    if draft.external_id is not None:
        with rooms.ledger.read() as tx:
            ns = tx.namespace(namespace)
            if ns is not None:
                stored = evidence_ledger.by_external_id(tx, ns, draft.external_id)
    if stored is None:
        return _Origin(
            draft.content,
            draft.actor,
            draft.role,
            prepared.authority,
            prepared.occurred_at,
            rooms.clock.now(),
        )
    if stored.content != draft.content:
        raise ConflictError(
            f"external_id {draft.external_id!r} is stored with another text; evidence is never "
            "changed, so use another external_id"
        )
    return _origin_of(stored)


def _origin_of(stored: Evidence) -> _Origin:
    return _Origin(
        stored.content,
        stored.actor,
        stored.role,
        stored.authority,
        stored.occurred_at,
        stored.recorded_at,
    )


@contextmanager
def _told_of(extractor: CheckedExtractor) -> Iterator[None]:
    """Say of a claim that the ledger refuses that the extractor sent it."""
    try:
        yield
    except InputError as error:
        rule = "validity" if isinstance(error, InvalidTimeError) else "draft"
        raise ExtractionError(
            f"extractor {extractor.extractor_id}@{extractor.revision} broke the rule {rule!r}: "
            f"{error}",
            rule=rule,
        ) from error


def _extract(
    rooms: Rooms, extractor: CheckedExtractor, origin: _Origin, previous: Previous
) -> _Extracted:
    if is_mostly_recalled(origin.content):
        reason = Diagnostic(
            "recalled_context", "the text is recalled context, no news; nothing was extracted"
        )
        return _Extracted((), True, (reason,), {})
    digest = keys.text_digest(origin.content)
    result = extractor.extract(
        EvidenceContext(
            # The ledger names evidence when it is written, after the extraction.
            evidence_id=f"sha256:{digest}",
            content=origin.content,
            digest=digest,
            actor=origin.actor,
            role=origin.role,
            authority=claim_ledger.authority_cap(
                origin.authority, origin.role, rooms.options.authorities
            ),
            occurred_at=origin.occurred_at,
            previous=previous,
        )
    )
    return _without_echoes(origin.content, result)


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
    evidence: Evidence,
    found: _Extracted,
    extractor: CheckedExtractor,
) -> ExtractionRecord:
    with _told_of(extractor):
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
