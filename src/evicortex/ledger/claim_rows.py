"""Stored claims as rows: how they are read, identified, and turned into public values.

Times are microseconds since the epoch, UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evicortex.errors import CorruptLedgerError
from evicortex.ledger import audit, keys
from evicortex.ledger.claim_drafts import CheckedClaim
from evicortex.ledger.connection import NamespaceRow, Transaction
from evicortex.types import (
    Authority,
    Cardinality,
    Claim,
    ClaimStatus,
    Derivation,
    Polarity,
    Span,
)
from evicortex.validity import (
    Assertion,
    AuthorityOrder,
    ClaimState,
    from_micros,
    match_key,
    predicate_key,
    resolve,
)

_AUTHORITIES = {str(authority): authority for authority in Authority}
_POLARITIES = {str(polarity): polarity for polarity in Polarity}

_ID_DIGITS = 24

_SELECT = (
    "SELECT c.seq, c.claim_id, c.subject, c.predicate, c.object, c.subject_key, c.predicate_key, "
    "c.object_key, c.polarity, c.confidence, c.authority, c.cardinality, c.declared, c.origin, "
    "c.repetition, c.valid_from, c.valid_to, c.recorded_at, d.row_id, d.start, d.stop, "
    "d.evidence_digest, e.evidence_id, r.recorded_at, r.reason, r.cause "
)
# CROSS JOIN and INDEXED BY fix the plan: without statistics SQLite takes a namespace for a
# handful of rows and would walk all of it.
_JOINS = (
    "CROSS JOIN claim_evidence d ON d.namespace_id = c.namespace_id AND d.claim_id = c.claim_id "
    "CROSS JOIN evidence e ON e.row_id = d.row_id "
    "LEFT JOIN retractions r ON r.namespace_id = c.namespace_id AND r.claim_id = c.claim_id "
)
_TOUCHED = (
    _SELECT + "FROM touched t CROSS JOIN claims c INDEXED BY claims_by_key ON c.namespace_id = ?1 "
    "AND c.subject_key = t.subject_key AND c.predicate_key = t.predicate_key " + _JOINS
)


EVENT_CLAIMS = "claims"
"""The audit event of new claims; items are [seq, claim id, record digest]."""

EVENT_RETRACTIONS = "retractions"
"""The audit event of retractions; items are [claim id, record digest]."""

_COLUMNS = (
    "subject, predicate, object, subject_key, predicate_key, object_key, polarity, confidence, "
    "authority, cardinality, declared, origin, repetition, valid_from, valid_to, recorded_at"
)
_FIELDS = tuple(_COLUMNS.split(", "))
_INSERT = (
    f"INSERT INTO claims (namespace_id, seq, claim_id, {_COLUMNS}) "
    f"VALUES (?, ?, ?{', ?' * len(_FIELDS)})"
)


class ClaimRow(NamedTuple):
    """A claim with its one derivation (``row_id`` to ``evidence_id``) and its retraction."""

    seq: int
    claim_id: str
    subject: str
    predicate: str
    object: str
    subject_key: str
    predicate_key: str
    object_key: str
    polarity: str
    confidence: float
    authority: str
    cardinality: Cardinality
    declared: int
    origin: str
    repetition: int
    valid_from: int
    valid_to: int | None
    recorded_at: int
    row_id: int
    start: int | None
    stop: int | None
    evidence_digest: str
    evidence_id: str
    retracted_at: int | None
    reason: str | None
    cause: str | None

    @property
    def readable(self) -> bool:
        """False when a name in it is none of this program's."""
        return self.authority in _AUTHORITIES

    def assertion(self) -> Assertion:
        """Return what the rules of validity need of it."""
        return Assertion(
            self.claim_id,
            self.seq,
            self.subject_key,
            self.predicate_key,
            self.object_key,
            _POLARITIES[self.polarity],
            self.cardinality,
            authority_of(self.authority, self.claim_id),
            self.valid_from,
            self.valid_to,
            self.recorded_at,
            self.retracted_at,
        )

    def claim(self, ns: NamespaceRow, state: ClaimState) -> Claim:
        """Return the public value of it in a state."""
        span = None if self.start is None or self.stop is None else Span(self.start, self.stop)
        return Claim(
            claim_id=self.claim_id,
            namespace=ns.name,
            subject=self.subject,
            predicate=self.predicate,
            object=self.object,
            polarity=_POLARITIES[self.polarity],
            confidence=self.confidence,
            authority=authority_of(self.authority, self.claim_id),
            cardinality=self.cardinality,
            valid_from=from_micros(state.valid_from),
            valid_to=None if state.valid_to is None else from_micros(state.valid_to),
            asserted_from=from_micros(self.valid_from),
            asserted_to=None if self.valid_to is None else from_micros(self.valid_to),
            recorded_at=from_micros(self.recorded_at),
            superseded_at=None if state.superseded_at is None else from_micros(state.superseded_at),
            status=state.status,
            derivations=(Derivation(self.evidence_id, self.evidence_digest, span),),
            superseded_by=state.superseded_by,
            conflicts_with=state.conflicts_with,
            corroborated_by=state.corroborated_by,
        )

    def expected_id(self) -> str:
        """Return the id that its content calls for."""
        return claim_id_of(self.evidence_id, self.repetition, self._asdict())


def authority_of(name: str, claim_id: str) -> Authority:
    """Return a stored authority.

    Raises:
        CorruptLedgerError: there is none of that name.
    """
    if name not in _AUTHORITIES:
        raise CorruptLedgerError(f"claim {claim_id} has the unknown authority {name!r}")
    return _AUTHORITIES[name]


def claim_id_of(evidence_id: str, repetition: int, content: Mapping[str, Any]) -> str:
    """Return the id of a claim: what is asserted on which characters of which evidence.

    ``content`` has the columns of ``claims`` and the span; a cardinality that the call did not
    name is no part of it, so that a retry gets the same id whatever was declared since.
    ``repetition`` counts from 1 the times that re-extraction withdrew and asserted it again.
    """
    declared = content["cardinality"] if content["declared"] else None
    fields = ("subject", "predicate", "object", "polarity", "confidence", "authority")
    bounds = ("origin", "valid_from", "valid_to", "start", "stop")
    values = [content[field] for field in (*fields, *bounds)]
    digest = keys.json_digest([evidence_id, repetition, declared, *values])
    return "cl_" + digest[:_ID_DIGITS]


def record_of(claim: CheckedClaim, valid_from: int, recorded_at: int) -> dict[str, Any]:
    """Return the columns and the span of a checked claim.

    ``cardinality`` is what the call named, maybe ``None``; the id, the origin and the repetition
    are still missing.
    """
    return {
        "subject": claim.subject,
        "predicate": claim.predicate,
        "object": claim.object,
        "subject_key": match_key(claim.subject),
        "predicate_key": predicate_key(claim.predicate),
        "object_key": match_key(claim.object),
        "polarity": str(claim.polarity),
        "confidence": claim.confidence,
        "authority": str(claim.authority),
        "cardinality": claim.declared,
        "declared": int(claim.declared is not None),
        "valid_from": valid_from,
        "valid_to": claim.valid_to,
        "recorded_at": recorded_at,
        "start": claim.start,
        "stop": claim.stop,
    }


def every(tx: Transaction, ns: NamespaceRow) -> Iterator[ClaimRow]:
    """Yield all claims of a namespace in the order of recording."""
    sql = _SELECT + "FROM claims c " + _JOINS + "WHERE c.namespace_id = ? ORDER BY c.seq"
    return map(ClaimRow._make, tx.connection.execute(sql, (ns.namespace_id,)))


def matching(
    tx: Transaction, ns: NamespaceRow, subject_key: str | None, predicate_key: str | None
) -> list[ClaimRow]:
    """Return the whole groups of a subject, a predicate, both, or all."""
    index, where = "", ""
    values: list[int | str] = [ns.namespace_id]
    for column, key in (("predicate_key", predicate_key), ("subject_key", subject_key)):
        if key is not None:
            name = "claims_by_key" if column == "subject_key" else "claims_by_predicate"
            index = f"INDEXED BY {name} "
            where += f" AND c.{column} = ?"
            values.append(key)
    sql = _SELECT + "FROM claims c " + index + _JOINS + "WHERE c.namespace_id = ?" + where
    return list(map(ClaimRow._make, tx.connection.execute(sql, values)))


def groups_of_rows(tx: Transaction, ns: NamespaceRow, row_ids: Iterable[int]) -> list[ClaimRow]:
    """Return the whole groups that the claims of these evidence rows belong to."""
    lo, hi = keys.row_range(ns.namespace_id)
    sql = (
        "WITH touched AS MATERIALIZED (SELECT DISTINCT c.subject_key, c.predicate_key "
        "FROM json_each(?2) j CROSS JOIN claim_evidence d ON d.row_id = j.value "
        "CROSS JOIN claims c ON c.namespace_id = ?1 AND c.claim_id = d.claim_id) " + _TOUCHED
    )
    wanted = json.dumps([row for row in row_ids if lo <= row < hi])
    return list(map(ClaimRow._make, tx.connection.execute(sql, (ns.namespace_id, wanted))))


def groups_of_claims(tx: Transaction, ns: NamespaceRow, claim_ids: Iterable[str]) -> list[ClaimRow]:
    """Return the whole groups that these claims belong to; unknown ids have none."""
    sql = (
        "WITH touched AS MATERIALIZED (SELECT DISTINCT c.subject_key, c.predicate_key "
        "FROM json_each(?2) j CROSS JOIN claims c ON c.namespace_id = ?1 AND c.claim_id = j.value) "
        + _TOUCHED
    )
    wanted = json.dumps(list(claim_ids))
    return list(map(ClaimRow._make, tx.connection.execute(sql, (ns.namespace_id, wanted))))


def of_rows(tx: Transaction, ns: NamespaceRow, row_ids: Iterable[int]) -> list[ClaimRow]:
    """Return the claims that rest on these evidence rows, in the order of recording."""
    lo, hi = keys.row_range(ns.namespace_id)
    sql = (
        _SELECT + "FROM json_each(?2) j CROSS JOIN claim_evidence d ON d.row_id = j.value "
        "CROSS JOIN claims c ON c.namespace_id = ?1 AND c.claim_id = d.claim_id "
        "JOIN evidence e ON e.row_id = d.row_id "
        "LEFT JOIN retractions r ON r.namespace_id = ?1 AND r.claim_id = c.claim_id "
        "ORDER BY c.seq"
    )
    wanted = json.dumps([row for row in row_ids if lo <= row < hi])
    return list(map(ClaimRow._make, tx.connection.execute(sql, (ns.namespace_id, wanted))))


def insert(
    tx: Transaction,
    ns: NamespaceRow,
    records: Sequence[Mapping[str, Any]],
    row_id: int,
    evidence_digest: str,
) -> None:
    """Write claims on one evidence in their order, with their derivations and audit items.

    Each record has the columns of ``claims`` but the namespace and ``seq``, and the span.
    """
    if not records:
        return
    first: int = tx.connection.execute(
        "UPDATE namespaces SET next_claim = next_claim + ? WHERE namespace_id = ? "
        "RETURNING next_claim",
        (len(records), ns.namespace_id),
    ).get - len(records)
    tx.connection.executemany(
        _INSERT,
        [
            (ns.namespace_id, seq, record["claim_id"], *(record[field] for field in _FIELDS))
            for seq, record in enumerate(records, start=first)
        ],
    )
    tx.connection.executemany(
        "INSERT INTO claim_evidence (namespace_id, claim_id, row_id, start, stop, "
        "evidence_digest) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                ns.namespace_id,
                record["claim_id"],
                row_id,
                record["start"],
                record["stop"],
                evidence_digest,
            )
            for record in records
        ],
    )
    items = [
        [seq, record["claim_id"], keys.record_digest([record[f] for f in keys.CLAIM_FIELDS])]
        for seq, record in enumerate(records, start=first)
    ]
    audit.note(tx, ns, EVENT_CLAIMS, items)


def insert_retraction(tx: Transaction, ns: NamespaceRow, record: Mapping[str, Any]) -> None:
    """Write a retraction with its audit item; ``record`` has ``keys.RETRACTION_FIELDS``."""
    values = [record[field] for field in keys.RETRACTION_FIELDS]
    tx.connection.execute(
        f"INSERT INTO retractions (namespace_id, {', '.join(keys.RETRACTION_FIELDS)}) "
        "VALUES (?, ?, ?, ?, ?)",
        (ns.namespace_id, *values),
    )
    audit.note(tx, ns, EVENT_RETRACTIONS, [[record["claim_id"], keys.record_digest(values)]])


def newly_held(
    before: Sequence[ClaimRow], after: Sequence[ClaimRow], *, as_of: int, order: AuthorityOrder
) -> tuple[str, ...]:
    """Return which claims of ``after`` are held there and not in ``before``, as recorded.

    Both are whole groups, as they are before and after a change.
    """
    held_before, held_after = (
        {
            state.claim_id
            for state in resolve(map(ClaimRow.assertion, rows), as_of=as_of, order=order).values()
            if state.status is ClaimStatus.HELD
        }
        for rows in (before, after)
    )
    new = [row for row in after if row.claim_id in held_after - held_before]
    return tuple(row.claim_id for row in sorted(new))
