"""The way in: checked drafts, one ledger transaction, then the projections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from evicortex.errors import EviCortexError, InputError
from evicortex.ledger import NamespaceRow, Transaction, keys
from evicortex.ledger import claims as claim_ledger
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.evidence import Added, Rejected
from evicortex.pipeline.drafts import Prepared, prepare
from evicortex.pipeline.indexing import bring_up_to_date
from evicortex.pipeline.wiring import Rooms
from evicortex.types import Diagnostic, EvidenceDraft, RejectedDraft, RememberReceipt

Progress = Callable[[int, int], None]


def _prepared(rooms: Rooms, draft: EvidenceDraft) -> Prepared:
    """Check a draft and its claims wholly, so that the write cannot fail half-way."""
    prepared = prepare(draft)
    if prepared.claims:
        claim_ledger.check_drafts(
            prepared.claims,
            content=prepared.draft.content,
            authority=prepared.authority,
            role=prepared.draft.role,
            occurred_at=prepared.occurred_at,
            recorded_at=rooms.clock.now(),
            order=rooms.options.authorities,
        )
    return prepared


def _record_claims(
    rooms: Rooms,
    tx: Transaction,
    ns: NamespaceRow,
    prepared: Sequence[Prepared],
    results: Sequence[Added],
) -> list[tuple[str, ...]]:
    asserting = [
        result.row_id for draft, result in zip(prepared, results, strict=True) if draft.claims
    ]
    stored = evidence_ledger.fetch(tx, ns, asserting) if asserting else {}
    return [
        claim_ledger.add(
            tx,
            ns,
            stored[result.row_id],
            draft.claims,
            registry=rooms.options.predicates,
            order=rooms.options.authorities,
        )
        if draft.claims
        else ()
        for draft, result in zip(prepared, results, strict=True)
    ]


def remember(rooms: Rooms, namespace: str, draft: EvidenceDraft) -> RememberReceipt:
    """Store one draft atomically, then index it.

    Raises:
        InputError, ConflictError: the draft cannot be stored; nothing was written.
    """
    keys.check_namespace(namespace)
    prepared = _prepared(rooms, draft)
    with rooms.ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        (result,) = evidence_ledger.add(tx, ns, [prepared.draft])
        if isinstance(result, Rejected):
            raise result.error
        (claim_ids,) = _record_claims(rooms, tx, ns, [prepared], [result])
    problems = bring_up_to_date(rooms, namespace, after=result.row_id - 1, claim_ids=claim_ids)
    return _receipt(result, claim_ids, prepared, problems)


def remember_many(
    rooms: Rooms,
    namespace: str,
    drafts: Sequence[EvidenceDraft],
    on_progress: Progress | None = None,
) -> list[RememberReceipt | RejectedDraft]:
    """Store drafts in one transaction; a bad one is reported in its place, the others land.

    ``on_progress`` is called with (drafts done, drafts given) while they are embedded, which is
    what takes long, and at the end.

    Raises:
        NamespaceError: for the whole batch; nothing was written.
    """
    keys.check_namespace(namespace)
    if isinstance(drafts, str | EvidenceDraft) or not isinstance(drafts, Iterable):
        raise InputError("remember_many takes a sequence of EvidenceDraft")
    if on_progress is not None and not callable(on_progress):
        raise InputError("on_progress is called with (done, total); it is no callable")
    outcomes: list[RememberReceipt | RejectedDraft | None] = []
    good: list[tuple[int, Prepared]] = []
    for index, draft in enumerate(drafts):
        try:
            good.append((index, _prepared(rooms, draft)))
            outcomes.append(None)
        except InputError as error:
            outcomes.append(_rejected(index, error))
    written = _write(rooms, namespace, [prepared for _, prepared in good]) if good else []
    stored = [result.row_id for result, _ in written if isinstance(result, Added)]
    problems: tuple[Diagnostic, ...] = ()
    if stored:
        problems = bring_up_to_date(
            rooms,
            namespace,
            after=min(stored) - 1,
            claim_ids=[claim_id for _, claim_ids in written for claim_id in claim_ids],
            on_progress=None if on_progress is None else lambda n: on_progress(n, len(outcomes)),
        )
    for (index, prepared), (result, claim_ids) in zip(good, written, strict=True):
        if isinstance(result, Rejected):
            outcomes[index] = _rejected(index, result.error)
        else:
            outcomes[index] = _receipt(result, claim_ids, prepared, problems)
    if on_progress is not None:
        on_progress(len(outcomes), len(outcomes))
    return [outcome for outcome in outcomes if outcome is not None]


def _write(
    rooms: Rooms, namespace: str, prepared: Sequence[Prepared]
) -> list[tuple[Added | Rejected, tuple[str, ...]]]:
    with rooms.ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        results = evidence_ledger.add(tx, ns, [draft.draft for draft in prepared])
        pairs = [
            (draft, result)
            for draft, result in zip(prepared, results, strict=True)
            if isinstance(result, Added)
        ]
        claim_ids = iter(
            _record_claims(rooms, tx, ns, [d for d, _ in pairs], [r for _, r in pairs])
        )
        return [
            (result, next(claim_ids) if isinstance(result, Added) else ()) for result in results
        ]


def _rejected(index: int, error: EviCortexError) -> RejectedDraft:
    return RejectedDraft(index, type(error).__name__, str(error))


def _receipt(
    result: Added,
    claim_ids: tuple[str, ...],
    prepared: Prepared,
    problems: tuple[Diagnostic, ...],
) -> RememberReceipt:
    return RememberReceipt(
        evidence_id=result.evidence_id,
        digest=result.digest,
        claim_ids=claim_ids,
        created=result.created,
        indexed=not problems,
        diagnostics=prepared.diagnostics + problems,
    )
