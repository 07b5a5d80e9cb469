"""Reading and withdrawing claims, reading evidence and extraction records."""

from __future__ import annotations

from evicortex.errors import InputError, NotFoundError
from evicortex.ledger import NamespaceRow, Transaction, extractions
from evicortex.ledger import claims as claim_ledger
from evicortex.ledger import evidence as evidence_ledger
from evicortex.pipeline.drafts import check_flag, check_text
from evicortex.pipeline.wiring import Rooms, moment
from evicortex.types import Claim, Evidence, ExtractionRecord, RetractReceipt, TimeInput
from evicortex.validity import to_utc


def required(tx: Transaction, namespace: str, what: str) -> NamespaceRow:
    """Return a namespace; raises NotFoundError, naming ``what`` was looked for in it."""
    ns = tx.namespace(namespace)
    if ns is None:
        raise NotFoundError(f"there is no {what}: nothing was stored in namespace {namespace!r}")
    return ns


def claims(
    rooms: Rooms,
    namespace: str,
    *,
    subject: str | None,
    predicate: str | None,
    as_of: TimeInput | None,
    known_at: TimeInput | None,
    include_superseded: bool,
) -> tuple[Claim, ...]:
    """Return claims, oldest first; none for a namespace that nothing was written to."""
    check_flag(include_superseded, "include_superseded")
    for name, value in (("subject", subject), ("predicate", predicate)):
        if value is not None:
            check_text(value, name)
    at = moment(as_of, "as_of", rooms.clock.now())
    known = to_utc(known_at, "known_at")
    with rooms.ledger.read() as tx:
        ns = tx.namespace(namespace)
        if ns is None:
            return ()
        return claim_ledger.list_claims(
            tx,
            ns,
            subject=subject,
            predicate=predicate,
            as_of=at,
            known_at=known,
            include_superseded=include_superseded,
            order=rooms.options.authorities,
        )


def history(rooms: Rooms, namespace: str, subject: str, predicate: str) -> tuple[Claim, ...]:
    """Return every claim of a subject and predicate as seen now, oldest first."""
    check_text(subject, "subject")
    check_text(predicate, "predicate")
    with rooms.ledger.read() as tx:
        ns = tx.namespace(namespace)
        if ns is None:
            return ()
        return claim_ledger.history(
            tx,
            ns,
            subject,
            predicate,
            as_of=rooms.clock.now(),
            order=rooms.options.authorities,
        )


def retract(rooms: Rooms, namespace: str, claim_id: str, reason: str) -> RetractReceipt:
    """Withdraw a claim; raises NotFoundError when it is unknown."""
    check_text(claim_id, "claim_id")
    if not check_text(reason, "reason").strip():
        raise InputError("a retraction needs a reason")
    with rooms.ledger.write() as tx:
        ns = required(tx, namespace, f"claim {claim_id!r}")
        return claim_ledger.retract(
            tx, ns, claim_id, reason=reason, order=rooms.options.authorities
        )


def evidence(rooms: Rooms, namespace: str, evidence_id: str) -> Evidence:
    """Return one evidence; raises NotFoundError when it is unknown here."""
    check_text(evidence_id, "evidence_id")
    with rooms.ledger.read() as tx:
        ns = required(tx, namespace, f"evidence {evidence_id!r}")
        return evidence_ledger.get(tx, ns, evidence_id)


def get_extraction(rooms: Rooms, namespace: str, evidence_id: str) -> ExtractionRecord:
    """Return the newest extraction record; raises NotFoundError when there is none."""
    check_text(evidence_id, "evidence_id")
    with rooms.ledger.read() as tx:
        ns = required(tx, namespace, f"extraction of {evidence_id!r}")
        return extractions.get(tx, ns, evidence_id)


def extraction_history(
    rooms: Rooms, namespace: str, evidence_id: str
) -> tuple[ExtractionRecord, ...]:
    """Return every extraction record of an evidence, oldest first."""
    check_text(evidence_id, "evidence_id")
    with rooms.ledger.read() as tx:
        ns = required(tx, namespace, f"extraction of {evidence_id!r}")
        return extractions.history(tx, ns, evidence_id)
