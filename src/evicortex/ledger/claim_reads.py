"""Reading claims as of a time, with the knowledge of a time.

``as_of`` is a moment of the world, and ``known_at`` a moment of the ledger: claims recorded
later do not exist, retractions recorded later have not happened; ``None`` is everything
recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from evicortex.errors import InvalidTextError
from evicortex.ledger import claim_rows
from evicortex.ledger.claim_rows import ClaimRow
from evicortex.ledger.connection import NamespaceRow, Transaction
from evicortex.ledger.evidence import row_ids_of
from evicortex.types import Claim, ClaimStatus, Problem
from evicortex.validity import (
    DEFAULT_ORDER,
    AuthorityOrder,
    ClaimState,
    Conflict,
    format_utc,
    from_micros,
    match_key,
    predicate_key,
    resolve,
    to_micros,
)
from evicortex.validity import conflicts as find_conflicts


class SupersededEvidence(NamedTuple):
    """What replaced an evidence none of whose claims is current, in the order of recording."""

    claim_ids: tuple[str, ...]
    evidence_ids: tuple[str, ...]
    row_ids: tuple[int, ...]


def list_claims(
    tx: Transaction,
    ns: NamespaceRow,
    *,
    subject: str | None = None,
    predicate: str | None = None,
    as_of: datetime,
    known_at: datetime | None = None,
    include_superseded: bool = False,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> tuple[Claim, ...]:
    """Return what is held at ``as_of``, oldest start first, then in the order of recording.

    ``subject`` and ``predicate`` match in any spelling (:func:`~evicortex.validity.match_key`,
    :func:`~evicortex.validity.predicate_key`).
    ``include_superseded`` returns every claim that was recorded by ``known_at``, with its
    status: superseded, conflicting, expired, future and retracted ones too.

    Raises:
        InvalidTextError: a subject or predicate that UTF-8 cannot encode.
    """
    rows = claim_rows.matching(
        tx,
        ns,
        None if subject is None else match_key(_encodable(subject, "subject")),
        None if predicate is None else predicate_key(_encodable(predicate, "predicate")),
    )
    claims = _resolved(ns, rows, as_of, known_at, order)
    return tuple(c for c in claims if include_superseded or c.status is ClaimStatus.HELD)


def history(
    tx: Transaction,
    ns: NamespaceRow,
    subject: str,
    predicate: str,
    *,
    as_of: datetime,
    known_at: datetime | None = None,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> tuple[Claim, ...]:
    """Return every claim of a subject and predicate with its status, oldest start first."""
    return list_claims(
        tx,
        ns,
        subject=subject,
        predicate=predicate,
        as_of=as_of,
        known_at=known_at,
        include_superseded=True,
        order=order,
    )


def of_evidence(
    tx: Transaction,
    ns: NamespaceRow,
    evidence_ids: Iterable[str],
    *,
    as_of: datetime,
    known_at: datetime | None = None,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> dict[str, tuple[Claim, ...]]:
    """Return the claims that rest on each evidence, with their status, oldest start first.

    Every id asked for is a key; an unknown one has no claims.
    """
    wanted: dict[str, list[Claim]] = {evidence_id: [] for evidence_id in evidence_ids}
    row_ids = row_ids_of(tx, ns, wanted)
    rows = claim_rows.groups_of_rows(tx, ns, row_ids)
    for claim in _resolved(ns, rows, as_of, known_at, order, set(row_ids)):
        wanted[claim.derivations[0].evidence_id].append(claim)
    return {evidence_id: tuple(claims) for evidence_id, claims in wanted.items()}


def evidence_of(tx: Transaction, ns: NamespaceRow, claim_ids: Iterable[str]) -> dict[str, str]:
    """Return the id of the evidence that each claim rests on; unknown claims are absent."""
    wanted = set(claim_ids)
    rows = claim_rows.groups_of_claims(tx, ns, wanted)
    return {row.claim_id: row.evidence_id for row in rows if row.claim_id in wanted}


def superseded_evidence(
    tx: Transaction,
    ns: NamespaceRow,
    row_ids: Iterable[int],
    *,
    as_of: datetime,
    known_at: datetime | None = None,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> dict[int, SupersededEvidence]:
    """Return which of these evidence rows are superseded as a whole, and by what.

    An evidence is when at least one of its claims is superseded and all others are superseded
    or retracted; one whose claims were only retracted, or that has none, says what it said.
    Two queries and one pass over the groups concerned, however many rows are asked about.
    """
    wanted = set(row_ids)
    rows = claim_rows.groups_of_rows(tx, ns, wanted)
    states = _states(rows, as_of, known_at, order)
    by_id = {row.claim_id: row for row in rows}
    claims: dict[int, list[ClaimState]] = {}
    for row in rows:
        state = states.get(row.claim_id)
        if row.row_id in wanted and state and state.status is not ClaimStatus.RETRACTED:
            claims.setdefault(row.row_id, []).append(state)
    found: dict[int, SupersededEvidence] = {}
    for row_id, own in claims.items():
        if all(state.status is ClaimStatus.SUPERSEDED for state in own):
            ends = {by_id[claim_id] for state in own for claim_id in state.superseded_by}
            found[row_id] = _replacement(sorted(ends))
    return found


def _replacement(ends: Sequence[ClaimRow]) -> SupersededEvidence:
    return SupersededEvidence(
        tuple(row.claim_id for row in ends),
        tuple(dict.fromkeys(row.evidence_id for row in ends)),
        tuple(dict.fromkeys(row.row_id for row in ends)),
    )


def conflicts(
    tx: Transaction, ns: NamespaceRow, *, order: AuthorityOrder = DEFAULT_ORDER
) -> tuple[Problem, ...]:
    """Return every claim that a claim of higher authority overrides at some time, as known now.

    One entry for each overridden claim, in the order of recording, code ``claim.conflict``;
    ``details`` has ``claim_id``, ``overridden_by`` (claim ids by start), ``valid_from`` and
    ``valid_to`` (ISO-8601, the first stretch of time they share with the first of these). A
    damaged claim is left to ``problems``.
    """
    rows = {row.claim_id: row for row in claim_rows.every(tx, ns) if row.readable}
    found: dict[str, list[Conflict]] = {}
    for conflict in find_conflicts((row.assertion() for row in rows.values()), order=order):
        found.setdefault(conflict.claim.claim_id, []).append(conflict)
    return tuple(
        _conflict_problem(ns, rows[claim_id], found[claim_id])
        for claim_id in sorted(found, key=lambda claim_id: rows[claim_id].seq)
    )


def _conflict_problem(ns: NamespaceRow, row: ClaimRow, found: Sequence[Conflict]) -> Problem:
    first = found[0]
    winner = first.overridden_by
    end = first.valid_to
    return Problem(
        code="claim.conflict",
        namespace=ns.name,
        message=(
            f"claim {row.claim_id} ({row.authority}) about {row.subject!r} {row.predicate!r} "
            f"contradicts claim {winner.claim_id} of higher authority ({winner.authority})"
        ),
        details={
            "claim_id": row.claim_id,
            "overridden_by": [conflict.overridden_by.claim_id for conflict in found],
            "valid_from": format_utc(from_micros(first.valid_from)),
            "valid_to": None if end is None else format_utc(from_micros(end)),
        },
    )


def _states(
    rows: Iterable[ClaimRow], as_of: datetime, known_at: datetime | None, order: AuthorityOrder
) -> dict[str, ClaimState]:
    return resolve(
        (row.assertion() for row in rows),
        as_of=to_micros(as_of),
        known_at=None if known_at is None else to_micros(known_at),
        order=order,
    )


def _resolved(
    ns: NamespaceRow,
    rows: Sequence[ClaimRow],
    as_of: datetime,
    known_at: datetime | None,
    order: AuthorityOrder,
    row_ids: set[int] | None = None,
) -> list[Claim]:
    """Return the known claims of whole groups, or those on ``row_ids``, oldest start first."""
    states = _states(rows, as_of, known_at, order)
    return [
        row.claim(ns, states[row.claim_id])
        for row in sorted(rows, key=lambda row: (row.valid_from, row.seq))
        if row.claim_id in states and (row_ids is None or row.row_id in row_ids)
    ]


def _encodable(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(f"{name} cannot be encoded as UTF-8: {error.reason}") from error
    return text
