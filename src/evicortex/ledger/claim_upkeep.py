"""Claims as a body: removed by a purge, checked by verify, exported and restored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from evicortex.errors import ImportFormatError, InputError, InvalidClaimError
from evicortex.ledger import claim_rows, keys
from evicortex.ledger.claim_drafts import check_draft, check_text
from evicortex.ledger.claim_rows import ClaimRow
from evicortex.ledger.connection import NamespaceRow, Transaction
from evicortex.types import ClaimDraft, Evidence, Problem
from evicortex.validity import (
    DEFAULT_ORDER,
    AuthorityOrder,
    format_utc,
    from_micros,
    match_key,
    predicate_key,
    to_micros,
    to_utc,
)

_EXPORTED = (
    "claim_id",
    "evidence_id",
    "subject",
    "predicate",
    "object",
    "polarity",
    "confidence",
    "authority",
    "cardinality",
)
_HIGHEST = DEFAULT_ORDER.ranking[0]
_REMOVALS = (
    "DELETE FROM extraction_claims WHERE namespace_id = ?1 AND row_id IN (SELECT value FROM r)",
    "DELETE FROM extractions WHERE namespace_id = ?1 AND row_id IN (SELECT value FROM r)",
    "DELETE FROM retractions WHERE namespace_id = ?1 AND claim_id IN (SELECT value FROM c)",
    "DELETE FROM claim_evidence WHERE namespace_id = ?1 AND claim_id IN (SELECT value FROM c)",
    "DELETE FROM claims WHERE namespace_id = ?1 AND seq IN (SELECT value FROM s)",
)


_ALONE = (
    "SELECT c.claim_id, count(d.row_id) FROM claims c LEFT JOIN claim_evidence d "
    "ON d.namespace_id = c.namespace_id AND d.claim_id = c.claim_id "
    "WHERE c.namespace_id = ? GROUP BY c.seq HAVING count(d.row_id) <> 1 ORDER BY c.seq"
)
_TEXTS = (
    "SELECT d.claim_id, d.stop, d.evidence_digest, e.digest, "
    "CASE WHEN d.stop IS NULL THEN '' ELSE e.content END "
    "FROM claim_evidence d JOIN evidence e ON e.row_id = d.row_id "
    "WHERE d.namespace_id = ? ORDER BY d.row_id, d.claim_id"
)
_STRAY_EXTRACTIONS = (
    "SELECT e.evidence_id, x.ordinal FROM extractions x JOIN evidence e ON e.row_id = x.row_id "
    "WHERE x.namespace_id = ? AND x.evidence_digest <> e.digest ORDER BY x.row_id, x.ordinal"
)
_STRAY_EMITTED = (
    "SELECT x.claim_id, x.extraction FROM extraction_claims x "
    "JOIN claims c ON c.namespace_id = x.namespace_id AND c.claim_id = x.claim_id "
    "LEFT JOIN claim_evidence d ON d.namespace_id = x.namespace_id "
    "AND d.claim_id = x.claim_id AND d.row_id = x.row_id "
    "WHERE x.namespace_id = ? AND (d.row_id IS NULL OR x.start IS NOT d.start "
    "OR x.stop IS NOT d.stop OR x.confidence <> c.confidence OR x.authority <> c.authority) "
    "ORDER BY x.row_id, x.extraction, x.ordinal"
)


class Removed(NamedTuple):
    """Claims that a purge removed, and those that are held again because of it."""

    claim_ids: tuple[str, ...]
    reinstated: tuple[str, ...]


def reinstated_by_removal(
    tx: Transaction,
    ns: NamespaceRow,
    claim_ids: Iterable[str],
    *,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> tuple[str, ...]:
    """Return which claims will be held, at the present of this write, that are not held now.

    To be called before the claims are removed. In the order of recording.
    """
    gone = set(claim_ids)
    before = claim_rows.groups_of_claims(tx, ns, gone)
    after = [row for row in before if row.claim_id not in gone]
    return claim_rows.newly_held(before, after, as_of=tx.recorded_at, order=order)


def remove(
    tx: Transaction,
    ns: NamespaceRow,
    row_ids: Iterable[int],
    *,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> Removed:
    """Remove all that rests on these evidence rows: claims, retractions, extractions.

    The evidence rows themselves, and the entry in the audit chain, are the purge's.

    Raises:
        ReadOnlyError: ``tx`` is a read.
    """
    tx.require_write()
    lo, hi = keys.row_range(ns.namespace_id)
    rows = [row for row in row_ids if lo <= row < hi]
    gone = claim_rows.of_rows(tx, ns, rows)
    claim_ids = tuple(row.claim_id for row in gone)
    reinstated = reinstated_by_removal(tx, ns, claim_ids, order=order)
    lists = (rows, claim_ids, [row.seq for row in gone])
    bindings = (ns.namespace_id, *map(json.dumps, lists))
    for statement in _REMOVALS:
        tx.connection.execute(
            "WITH r AS (SELECT value FROM json_each(?2)), c AS (SELECT value FROM json_each(?3)), "
            "s AS (SELECT value FROM json_each(?4)) " + statement,
            bindings,
        )
    return Removed(claim_ids, reinstated)


def problems(tx: Transaction, ns: NamespaceRow) -> Iterator[Problem]:
    """Yield every disagreement between claims, extractions and what they rest on.

    Codes: ``claim.evidence`` (not exactly one derivation), ``claim.id`` (the id does not follow
    from the content), ``claim.key`` (a match key differs from its text), ``claim.authority`` (no
    authority of that name), ``claim.digest`` (the derivation's digest is not the evidence's),
    ``claim.span`` (outside the text), ``extraction.digest`` (the same of a record),
    ``extraction.claim`` (what it emitted is not the claim on that evidence).
    """
    values = (ns.namespace_id,)
    for claim_id, count in tx.connection.execute(_ALONE, values):
        yield _problem(ns, "claim.evidence", claim_id, f"rests on {count} evidence instead of one")
    for row in claim_rows.every(tx, ns):
        yield from _row_problems(ns, row)
    for claim_id, stop, own, digest, text in tx.connection.execute(_TEXTS, values):
        if own != digest:
            yield _problem(ns, "claim.digest", claim_id, "names another digest than its evidence")
        if stop is not None and stop > len(text):
            yield _problem(ns, "claim.span", claim_id, "has a span outside the text")
    for evidence_id, ordinal in tx.connection.execute(_STRAY_EXTRACTIONS, values):
        yield Problem(
            "extraction.digest",
            ns.name,
            f"extraction {ordinal} of evidence {evidence_id} names another digest than it",
            {"evidence_id": evidence_id, "ordinal": ordinal},
        )
    for claim_id, ordinal in tx.connection.execute(_STRAY_EMITTED, values):
        what = f"is not what extraction {ordinal} says that it emitted"
        yield _problem(ns, "extraction.claim", claim_id, what)


def _row_problems(ns: NamespaceRow, row: ClaimRow) -> Iterator[Problem]:
    if row.claim_id != row.expected_id():
        yield _problem(ns, "claim.id", row.claim_id, "has an id that is not that of its content")
    for key, expected in (
        (row.subject_key, match_key(row.subject)),
        (row.predicate_key, predicate_key(row.predicate)),
        (row.object_key, match_key(row.object)),
    ):
        if key != expected:
            yield _problem(ns, "claim.key", row.claim_id, "has a match key of another text")
    if not row.readable:
        yield _problem(ns, "claim.authority", row.claim_id, "has an unknown authority")


def _problem(ns: NamespaceRow, code: str, claim_id: str, what: str) -> Problem:
    return Problem(code, ns.name, f"claim {claim_id} {what}", {"claim_id": claim_id})


def export(tx: Transaction, ns: NamespaceRow) -> Iterator[dict[str, Any]]:
    """Yield every claim with its retraction as a JSON object, in the order of recording.

    Times are ISO-8601 in UTC; ``span`` is ``[start, end]`` in code points, or null for the whole
    evidence.
    """
    for row in claim_rows.every(tx, ns):
        record = {name: getattr(row, name) for name in _EXPORTED}
        record["declared"] = bool(row.declared)
        record["origin"] = row.origin
        record["repetition"] = row.repetition
        record["span"] = None if row.start is None else [row.start, row.stop]
        record["valid_from"] = format_utc(from_micros(row.valid_from))
        record["valid_to"] = None if row.valid_to is None else format_utc(from_micros(row.valid_to))
        record["recorded_at"] = format_utc(from_micros(row.recorded_at))
        record["retraction"] = None
        if row.retracted_at is not None:
            record["retraction"] = {
                "recorded_at": format_utc(from_micros(row.retracted_at)),
                "reason": row.reason,
                "cause": row.cause,
            }
        yield record


def restore(
    tx: Transaction, ns: NamespaceRow, record: Mapping[str, Any], evidence: Evidence
) -> str:
    """Write one exported claim, and its retraction, on the evidence that now stands for its own.

    Returns the claim's id: the exported one when the evidence kept its id, else that of the same
    claim on ``evidence``. Recorded times are kept; a claim that is there already is left as it
    is, but for a retraction that it lacks. Records come in the order of their export.

    Raises:
        ImportFormatError: a field is missing or wrong, or the id is not that of the content.
        ReadOnlyError: ``tx`` is a read.
    """
    tx.require_write()
    try:
        exported = check_text(record["claim_id"], "claim_id")
        kept = record["evidence_id"] == evidence.evidence_id
        claim, retraction = _parsed(record, evidence)
    except KeyError as error:
        raise ImportFormatError(f"a claim lacks the field {error}") from error
    except (InputError, TypeError) as error:
        raise ImportFormatError(f"a claim cannot be read: {error}") from error
    claim_id = claim_rows.claim_id_of(evidence.evidence_id, claim["repetition"], claim)
    if kept and exported != claim_id:
        raise ImportFormatError(f"the id of claim {exported!r} is not that of its content")
    group = claim_rows.groups_of_claims(tx, ns, [claim_id])
    stored = next((row for row in group if row.claim_id == claim_id), None)
    if stored is None:
        row_id = keys.row_id(ns.namespace_id, evidence.position)
        claim_rows.insert(tx, ns, [claim | {"claim_id": claim_id}], row_id, evidence.digest)
    if retraction and (stored is None or stored.retracted_at is None):
        claim_rows.insert_retraction(tx, ns, retraction | {"claim_id": claim_id})
    return claim_id


def _parsed(
    record: Mapping[str, Any], evidence: Evidence
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    draft = ClaimDraft(
        subject=record["subject"],
        predicate=record["predicate"],
        object=record["object"],
        span=record["span"],
        polarity=record["polarity"],
        confidence=record["confidence"],
        authority=record["authority"],
        valid_from=record["valid_from"],
        valid_to=record["valid_to"],
        cardinality=record["cardinality"],
    )
    claim = check_draft(draft, "it", len(evidence.content), None, _HIGHEST, DEFAULT_ORDER)
    if claim.declared is None or claim.valid_from is None:
        raise InvalidClaimError("it must name its cardinality and valid_from")
    repetition = record["repetition"]
    if type(repetition) is not int or repetition < 1:
        raise InvalidClaimError(f"repetition counts from 1, not {repetition!r}")
    content = claim_rows.record_of(claim, claim.valid_from, _micros(record, "recorded_at"))
    content["declared"] = int(_one_of(record, "declared", (True, False)))
    content["origin"] = _one_of(record, "origin", ("call", "extraction"))
    content["repetition"] = repetition
    retraction = record["retraction"]
    if retraction is None:
        return content, None
    return content, {
        "recorded_at": _micros(retraction, "recorded_at"),
        "reason": check_text(retraction["reason"], "the reason"),
        "cause": _one_of(retraction, "cause", ("call", "reextraction")),
    }


def _micros(record: Mapping[str, Any], name: str) -> int:
    value = record[name]
    if not isinstance(value, str):
        raise InvalidClaimError(f"{name} is ISO-8601 text, not {value!r}")
    return to_micros(to_utc(value, name))


def _one_of(record: Mapping[str, Any], name: str, allowed: tuple[object, ...]) -> Any:
    value = record[name]
    if value not in allowed:
        raise InvalidClaimError(f"{name} is one of {allowed}, not {value!r}")
    return value
