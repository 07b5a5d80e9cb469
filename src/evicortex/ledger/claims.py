"""Claims: asserted on evidence, retracted, and read as of a time with the knowledge of a time.

Assertions and retractions are what is stored; what a claim *is* (held, superseded, conflicting)
is derived on every read by the rules of :mod:`evicortex.validity`, so that a retraction or a
purge gives back by itself what it had closed. Every claim rests on exactly one evidence; the
same statement made twice is two claims that corroborate each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from evicortex.errors import NotFoundError
from evicortex.ledger import claim_rows, keys
from evicortex.ledger.claim_drafts import CheckedClaim, authority_cap, check_drafts, check_text
from evicortex.ledger.claim_reads import (
    SupersededEvidence,
    conflicts,
    evidence_of,
    history,
    list_claims,
    of_evidence,
    superseded_evidence,
)
from evicortex.ledger.claim_upkeep import (
    Removed,
    export,
    problems,
    reinstated_by_removal,
    remove,
    restore,
)
from evicortex.ledger.connection import NamespaceRow, Transaction
from evicortex.types import Cardinality, ClaimDraft, Evidence, RetractReceipt
from evicortex.validity import (
    DEFAULT_ORDER,
    AuthorityOrder,
    PredicateRegistry,
    from_micros,
    to_micros,
)

__all__ = [
    "CheckedClaim",
    "Removed",
    "SupersededEvidence",
    "add",
    "authority_cap",
    "check_drafts",
    "conflicts",
    "evidence_of",
    "export",
    "history",
    "list_claims",
    "of_evidence",
    "problems",
    "reinstated_by_removal",
    "remove",
    "restore",
    "retract",
    "superseded_evidence",
]

Origin = Literal["call", "extraction"]
Cause = Literal["call", "reextraction"]

DEFAULT_REGISTRY: Final = PredicateRegistry()


def add(
    tx: Transaction,
    ns: NamespaceRow,
    evidence: Evidence,
    drafts: Iterable[ClaimDraft],
    *,
    registry: PredicateRegistry = DEFAULT_REGISTRY,
    order: AuthorityOrder = DEFAULT_ORDER,
    origin: Origin = "call",
) -> tuple[str, ...]:
    """Assert claims on the evidence; return their ids, one for each draft, in its order.

    Everything is checked before anything is written. The same claim on the same evidence again
    is the claim that is there already, also when the caller has retracted it since: a retry
    takes nothing back. Only what re-extraction alone had withdrawn is asserted anew.

    ``valid_from`` defaults to the evidence's ``occurred_at``, else its ``recorded_at``. A draft
    without a cardinality follows the newest declaration of its predicate in the namespace (in
    the order of recording; retracted claims declare too, purged ones do not), else ``registry``.

    Raises:
        InputError: as :func:`check_drafts`.
        ReadOnlyError: ``tx`` is a read.
    """
    tx.require_write()
    checked = check_drafts(
        drafts,
        content=evidence.content,
        authority=evidence.authority,
        role=evidence.role,
        occurred_at=evidence.occurred_at,
        recorded_at=evidence.recorded_at,
        order=order,
    )
    default_from = to_micros(evidence.occurred_at or evidence.recorded_at)
    row_id = keys.row_id(ns.namespace_id, evidence.position)
    withdrawn = {row.claim_id: row.cause for row in claim_rows.of_rows(tx, ns, [row_id])}
    declarations = _Declarations(tx, ns, registry)
    found: list[str] = []
    new: list[Mapping[str, Any]] = []
    for claim in checked:
        valid_from = default_from if claim.valid_from is None else claim.valid_from
        record = claim_rows.record_of(claim, valid_from, tx.recorded_at) | {"origin": origin}
        record["claim_id"], record["repetition"] = _identify(
            evidence.evidence_id, record, withdrawn
        )
        found.append(record["claim_id"])
        if record["claim_id"] not in withdrawn:
            withdrawn[record["claim_id"]] = None
            record["cardinality"] = declarations.take(record["predicate_key"], claim.declared)
            new.append(record)
    claim_rows.insert(tx, ns, new, row_id, evidence.digest)
    return tuple(found)


def _identify(
    evidence_id: str, record: Mapping[str, Any], withdrawn: Mapping[str, str | None]
) -> tuple[str, int]:
    """Return the id and repetition: the one that is there, else the next that is free."""
    repetition = 1
    while True:
        claim_id = claim_rows.claim_id_of(evidence_id, repetition, record)
        if withdrawn.get(claim_id) != "reextraction":
            return claim_id, repetition
        repetition += 1


class _Declarations:
    """Which cardinality a predicate has in a namespace, at this point of the recording."""

    def __init__(self, tx: Transaction, ns: NamespaceRow, registry: PredicateRegistry) -> None:
        self._tx = tx
        self._ns = ns
        self._registry = registry
        self._known: dict[str, Cardinality] = {}

    def take(self, predicate_key: str, declared: Cardinality | None) -> Cardinality:
        """Return the cardinality of the next claim; what it declares holds for those after it."""
        if declared is None and predicate_key in self._known:
            return self._known[predicate_key]
        cardinality = declared if declared is not None else self._stored(predicate_key)
        self._known[predicate_key] = cardinality
        return cardinality

    def _stored(self, predicate_key: str) -> Cardinality:
        stored: Cardinality | None = self._tx.connection.execute(
            "SELECT cardinality FROM claims INDEXED BY claims_declared WHERE namespace_id = ? AND predicate_key = ? "
            "AND declared = 1 ORDER BY seq DESC LIMIT 1",
            (self._ns.namespace_id, predicate_key),
        ).get
        return stored if stored is not None else self._registry.cardinality(predicate_key)


def retract(
    tx: Transaction,
    ns: NamespaceRow,
    claim_id: str,
    *,
    reason: str,
    cause: Cause = "call",
    order: AuthorityOrder = DEFAULT_ORDER,
) -> RetractReceipt:
    """Withdraw a claim from now on; what it had closed is held again, the past stays readable.

    The second retraction of a claim changes nothing and returns the time of the first with
    ``created=False``. ``reinstated`` is told for the present of the write.

    Raises:
        NotFoundError: the claim was never recorded in this namespace, or was purged.
        InvalidClaimError: the reason is no text, or blank.
        InvalidTextError: the reason is not encodable as UTF-8.
        ReadOnlyError: ``tx`` is a read.
    """
    tx.require_write()
    check_text(reason, "the reason of a retraction")
    group = claim_rows.groups_of_claims(tx, ns, [claim_id])
    target = next((row for row in group if row.claim_id == claim_id), None)
    if target is None:
        raise NotFoundError(f"there is no claim {claim_id!r} in namespace {ns.name!r}")
    if target.retracted_at is not None:
        return RetractReceipt(claim_id, from_micros(target.retracted_at), created=False)
    record = {"claim_id": claim_id, "recorded_at": tx.recorded_at, "reason": reason, "cause": cause}
    claim_rows.insert_retraction(tx, ns, record)
    after = [
        row._replace(retracted_at=tx.recorded_at) if row.claim_id == claim_id else row
        for row in group
    ]
    reinstated = claim_rows.newly_held(group, after, as_of=tx.recorded_at, order=order)
    return RetractReceipt(claim_id, from_micros(tx.recorded_at), True, reinstated)
