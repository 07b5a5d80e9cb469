"""Extraction records: who found which claims in an evidence, and what became of the rest.

An evidence has a series of records, numbered from 1; the newest is the one in force, earlier
ones stay readable. ``superseded_at`` of a record is when the next one was recorded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evicortex.errors import (
    ExtractionError,
    ImportFormatError,
    InputError,
    InvalidClaimError,
    NotFoundError,
)
from evicortex.ledger import audit, claim_rows, keys
from evicortex.ledger.claim_drafts import check_text
from evicortex.ledger.connection import NamespaceRow, Transaction
from evicortex.ledger.evidence import row_ids_of
from evicortex.types import (
    Diagnostic,
    Evidence,
    ExtractionDerivation,
    ExtractionRecord,
    Span,
)
from evicortex.validity import format_utc, from_micros, to_micros, to_utc

EVENT = "extractions"
"""The audit event of new records; items are [position of the evidence, ordinal, digest]."""

_SELECT = (
    "SELECT x.row_id, e.evidence_id, x.ordinal, x.extractor_id, x.extractor_revision, "
    "x.evidence_digest, x.recorded_at, x.abstained, x.diagnostics, x.usage "
    "FROM extractions x JOIN evidence e ON e.row_id = x.row_id WHERE x.namespace_id = ? "
)


class _Row(NamedTuple):
    row_id: int
    evidence_id: str
    ordinal: int
    extractor_id: str
    extractor_revision: str
    evidence_digest: str
    recorded_at: int
    abstained: int
    diagnostics: str
    usage: str


class _Emitted(NamedTuple):
    claim_id: str
    start: int | None
    stop: int | None
    confidence: float
    authority: str


def add(
    tx: Transaction,
    ns: NamespaceRow,
    evidence: Evidence,
    *,
    extractor_id: str,
    extractor_revision: str,
    claim_ids: Sequence[str],
    abstained: bool = False,
    diagnostics: Iterable[Diagnostic] = (),
    usage: Mapping[str, float] | None = None,
) -> ExtractionRecord:
    """Record one extraction; ``claim_ids`` are the claims that it emitted, in their order.

    The claims must be stored on this evidence already; their spans, confidences and authorities
    are taken from there. ``usage`` counts what it cost (calls, tokens, seconds). The same
    extractor and revision with the same outcome as the newest record is that record: nothing is
    written then, whatever it cost. Claims that earlier records emitted and this one does not
    are not touched; :func:`unemitted` lists them.

    Raises:
        ExtractionError: an abstention with claims, a claim twice, a claim that is unknown or
            rests on other evidence, a blank extractor, or details that are not JSON.
        ReadOnlyError: ``tx`` is a read.
    """
    tx.require_write()
    if abstained and claim_ids:
        raise ExtractionError("an abstention emits no claims", rule="abstained")
    try:
        for text, name in ((extractor_id, "extractor_id"), (extractor_revision, "revision")):
            check_text(text, name)
        told = _diagnostics_json(diagnostics)
        cost = _usage_json(usage or {})
    except (InputError, TypeError, ValueError) as error:
        raise ExtractionError(f"the record cannot be stored: {error}", rule="record") from error
    row_id = keys.row_id(ns.namespace_id, evidence.position)
    emitted = _emitted(tx, ns, row_id, claim_ids)
    newest = _newest(tx, ns, row_id)
    row = _Row(
        row_id,
        evidence.evidence_id,
        1 if newest is None else newest.ordinal + 1,
        extractor_id,
        extractor_revision,
        evidence.digest,
        tx.recorded_at,
        int(abstained),
        told,
        cost,
    )
    if newest is not None and _same(tx, ns, newest, row, emitted):
        return _record(newest, emitted, None)
    _insert(tx, ns, row, emitted)
    return _record(row, emitted, None)


def get(tx: Transaction, ns: NamespaceRow, evidence_id: str) -> ExtractionRecord:
    """Return the newest record of an evidence.

    Raises:
        NotFoundError: there is no such evidence, or nothing was extracted from it.
    """
    return history(tx, ns, evidence_id)[-1]


def history(tx: Transaction, ns: NamespaceRow, evidence_id: str) -> tuple[ExtractionRecord, ...]:
    """Return all records of an evidence, oldest first.

    Raises:
        NotFoundError: there is no such evidence, or nothing was extracted from it.
    """
    row_ids = row_ids_of(tx, ns, [evidence_id])
    if not row_ids:
        raise NotFoundError(f"there is no evidence {evidence_id!r} in namespace {ns.name!r}")
    rows = _rows(tx, ns, "AND x.row_id = ? ORDER BY x.ordinal", row_ids[0])
    if not rows:
        raise NotFoundError(f"nothing was extracted from evidence {evidence_id!r}")
    ends: list[int | None] = [*(row.recorded_at for row in rows[1:]), None]
    return tuple(
        _record(row, _stored(tx, ns, row), end) for row, end in zip(rows, ends, strict=True)
    )


def unemitted(tx: Transaction, ns: NamespaceRow, evidence_id: str) -> tuple[str, ...]:
    """Return the claims that an earlier record emitted and the newest one does not.

    Those that are retracted already are left out, and so is what a caller asserted itself. They
    are what a re-extraction should retract (``claims.retract`` with ``cause="reextraction"``);
    an abstention emits nothing. In the order of recording.
    """
    row_ids = row_ids_of(tx, ns, [evidence_id])
    rows = tx.connection.execute(
        "SELECT DISTINCT c.claim_id FROM extraction_claims x CROSS JOIN claims c "
        "ON c.namespace_id = x.namespace_id AND c.claim_id = x.claim_id "
        "WHERE x.namespace_id = ?1 AND x.row_id = ?2 AND c.origin = 'extraction' "
        "AND c.claim_id NOT IN (SELECT n.claim_id FROM extraction_claims n "
        "WHERE n.namespace_id = ?1 AND n.row_id = ?2 AND n.extraction = "
        "(SELECT max(ordinal) FROM extractions WHERE namespace_id = ?1 AND row_id = ?2)) "
        "AND NOT EXISTS (SELECT 1 FROM retractions r WHERE r.namespace_id = ?1 "
        "AND r.claim_id = c.claim_id) ORDER BY c.seq",
        (ns.namespace_id, row_ids[0] if row_ids else None),
    )
    return tuple(row[0] for row in rows)


def export(tx: Transaction, ns: NamespaceRow) -> Iterator[dict[str, Any]]:
    """Yield every record as a JSON object, by evidence and number.

    Times are ISO-8601 in UTC; the span of a claim is ``[start, end]``, or null for the whole
    evidence.
    """
    for row in _rows(tx, ns, "ORDER BY x.row_id, x.ordinal"):
        yield {
            "evidence_id": row.evidence_id,
            "ordinal": row.ordinal,
            "extractor_id": row.extractor_id,
            "extractor_revision": row.extractor_revision,
            "recorded_at": format_utc(from_micros(row.recorded_at)),
            "abstained": bool(row.abstained),
            "diagnostics": json.loads(row.diagnostics),
            "usage": json.loads(row.usage),
            "claims": [
                {
                    "claim_id": emitted.claim_id,
                    "span": None if emitted.start is None else [emitted.start, emitted.stop],
                    "confidence": emitted.confidence,
                    "authority": emitted.authority,
                }
                for emitted in _stored(tx, ns, row)
            ],
        }


def restore(
    tx: Transaction,
    ns: NamespaceRow,
    record: Mapping[str, Any],
    evidence: Evidence,
    claim_ids: Mapping[str, str],
) -> bool:
    """Write one exported record on the evidence that now stands for its own; say whether.

    ``claim_ids`` maps exported claim ids to those that they have here. The recorded time and
    the number are kept; a record that has that number already is left as it is (False).

    Raises:
        ImportFormatError: a field is missing or wrong, or a claim is not on this evidence.
        ReadOnlyError: ``tx`` is a read.
    """
    tx.require_write()
    row_id = keys.row_id(ns.namespace_id, evidence.position)
    try:
        row = _parsed(record, evidence, row_id)
        wanted = [claim_ids[emitted["claim_id"]] for emitted in record["claims"]]
        emitted = _emitted(tx, ns, row_id, wanted)
    except KeyError as error:
        raise ImportFormatError(f"an extraction lacks {error}") from error
    except (InputError, ExtractionError, TypeError, ValueError) as error:
        raise ImportFormatError(f"an extraction cannot be read: {error}") from error
    if _rows(tx, ns, "AND x.row_id = ? AND x.ordinal = ?", row_id, row.ordinal):
        return False
    _insert(tx, ns, row, emitted)
    return True


def _parsed(record: Mapping[str, Any], evidence: Evidence, row_id: int) -> _Row:
    ordinal, abstained = record["ordinal"], record["abstained"]
    if type(ordinal) is not int or ordinal < 1 or type(abstained) is not bool:
        raise InvalidClaimError(
            f"ordinal counts from 1 and abstained is true or false, not {ordinal!r}, {abstained!r}"
        )
    if not isinstance(record["recorded_at"], str):
        raise InvalidClaimError(f"recorded_at is ISO-8601 text, not {record['recorded_at']!r}")
    diagnostics = (
        Diagnostic(item["code"], item["message"], item["details"]) for item in record["diagnostics"]
    )
    return _Row(
        row_id,
        evidence.evidence_id,
        ordinal,
        check_text(record["extractor_id"], "extractor_id"),
        check_text(record["extractor_revision"], "extractor_revision"),
        evidence.digest,
        to_micros(to_utc(record["recorded_at"], "recorded_at")),
        int(abstained),
        _diagnostics_json(diagnostics),
        _usage_json(record["usage"]),
    )


def _emitted(
    tx: Transaction, ns: NamespaceRow, row_id: int, claim_ids: Sequence[str]
) -> list[_Emitted]:
    """Return the claims of an evidence as an extraction emits them."""
    if len(set(claim_ids)) != len(claim_ids):
        raise ExtractionError("an extraction emits each claim once", rule="duplicate")
    stored = {row.claim_id: row for row in claim_rows.of_rows(tx, ns, [row_id])}
    unknown = [claim_id for claim_id in claim_ids if claim_id not in stored]
    if unknown:
        raise ExtractionError(f"claim {unknown[0]!r} is not one of this evidence", rule="claim")
    rows = (stored[claim_id] for claim_id in claim_ids)
    return [_Emitted(r.claim_id, r.start, r.stop, r.confidence, r.authority) for r in rows]


def _diagnostics_json(diagnostics: Iterable[Diagnostic]) -> str:
    told = []
    for item in diagnostics:
        texts = isinstance(item.code, str) and isinstance(item.message, str)
        if not texts or not isinstance(item.details, Mapping):
            raise TypeError(f"a diagnostic has a code, a message and details, not {item!r}")
        told.append({"code": item.code, "message": item.message, "details": dict(item.details)})
    return _stored_json(told)


def _usage_json(usage: Mapping[str, float]) -> str:
    if not isinstance(usage, Mapping):
        raise TypeError(f"usage maps names to amounts, not {usage!r}")
    for name, amount in usage.items():
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not isinstance(name, str) or not number or not 0 <= amount < math.inf:
            raise ValueError(f"usage {name!r} is a finite number from 0 up, not {amount!r}")
    return _stored_json(dict(usage))


def _stored_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    text = keys.canonical_json(value)
    text.encode()
    return text


def _insert(tx: Transaction, ns: NamespaceRow, row: _Row, emitted: Sequence[_Emitted]) -> None:
    values = [getattr(row, field) for field in keys.EXTRACTION_FIELDS]
    tx.connection.execute(
        f"INSERT INTO extractions (namespace_id, row_id, {', '.join(keys.EXTRACTION_FIELDS)}) "
        f"VALUES (?, ?{', ?' * len(values)})",
        (ns.namespace_id, row.row_id, *values),
    )
    tx.connection.executemany(
        "INSERT INTO extraction_claims (namespace_id, row_id, extraction, ordinal, claim_id, "
        "start, stop, confidence, authority) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (ns.namespace_id, row.row_id, row.ordinal, number, *item)
            for number, item in enumerate(emitted, start=1)
        ],
    )
    digest = keys.record_digest([*values, *(list(item) for item in emitted)])
    audit.note(tx, ns, EVENT, [[keys.position(row.row_id), row.ordinal, digest]])


def _rows(tx: Transaction, ns: NamespaceRow, where: str, *values: int) -> list[_Row]:
    found = tx.connection.execute(_SELECT + where, (ns.namespace_id, *values))
    return list(map(_Row._make, found))


def _newest(tx: Transaction, ns: NamespaceRow, row_id: int) -> _Row | None:
    rows = _rows(tx, ns, "AND x.row_id = ? ORDER BY x.ordinal DESC LIMIT 1", row_id)
    return rows[0] if rows else None


def _stored(tx: Transaction, ns: NamespaceRow, row: _Row) -> list[_Emitted]:
    found = tx.connection.execute(
        "SELECT claim_id, start, stop, confidence, authority FROM extraction_claims "
        "WHERE namespace_id = ? AND row_id = ? AND extraction = ? ORDER BY ordinal",
        (ns.namespace_id, row.row_id, row.ordinal),
    )
    return list(map(_Emitted._make, found))


def _same(
    tx: Transaction, ns: NamespaceRow, newest: _Row, row: _Row, emitted: Sequence[_Emitted]
) -> bool:
    alike = newest._replace(ordinal=row.ordinal, recorded_at=row.recorded_at, usage=row.usage)
    return alike == row and _stored(tx, ns, newest) == list(emitted)


def _record(row: _Row, emitted: Iterable[_Emitted], superseded_at: int | None) -> ExtractionRecord:
    return ExtractionRecord(
        evidence_id=row.evidence_id,
        evidence_digest=row.evidence_digest,
        extractor_id=row.extractor_id,
        extractor_revision=row.extractor_revision,
        recorded_at=from_micros(row.recorded_at),
        abstained=bool(row.abstained),
        derivations=tuple(
            ExtractionDerivation(
                item.claim_id,
                None if item.start is None or item.stop is None else Span(item.start, item.stop),
                item.confidence,
                claim_rows.authority_of(item.authority, item.claim_id),
            )
            for item in emitted
        ),
        diagnostics=tuple(Diagnostic(**item) for item in json.loads(row.diagnostics)),
        superseded_at=None if superseded_at is None else from_micros(superseded_at),
        usage=json.loads(row.usage),
    )
