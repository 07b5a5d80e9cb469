"""The words of claims, for a channel that finds claims by their words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from evicortex.ledger.connection import NamespaceRow, Transaction


class ClaimText(NamedTuple):
    """A claim's words and the evidence that it rests on; ``seq`` is its place in the ledger.

    ``recorded_at`` is in microseconds since the epoch, UTC.
    """

    seq: int
    claim_id: str
    row_id: int
    subject: str
    predicate: str
    object: str
    confidence: float
    recorded_at: int


def claim_texts(tx: Transaction, ns: NamespaceRow, *, after: int = 0) -> list[ClaimText]:
    """Return the claims recorded after the number ``after``, in the order of recording."""
    rows = tx.connection.execute(
        "SELECT c.seq, c.claim_id, d.row_id, c.subject, c.predicate, c.object, c.confidence, "
        "c.recorded_at FROM claims c JOIN claim_evidence d ON d.namespace_id = c.namespace_id "
        "AND d.claim_id = c.claim_id WHERE c.namespace_id = ? AND c.seq > ? ORDER BY c.seq",
        (ns.namespace_id, after),
    )
    return [ClaimText(*row) for row in rows]


def first_claim(tx: Transaction, ns: NamespaceRow, claim_ids: Iterable[str]) -> int | None:
    """Return the least number of these claims, ``None`` when none of them is stored."""
    first: int | None = None
    for (seq,) in tx.connection.executemany(
        "SELECT seq FROM claims WHERE namespace_id = ? AND claim_id = ?",
        [(ns.namespace_id, claim_id) for claim_id in claim_ids],
    ):
        first = seq if first is None else min(first, seq)
    return first


def newest_claim(tx: Transaction, ns: NamespaceRow) -> int:
    """Return the number of the newest claim of the namespace; 0 when it has none."""
    newest: int = tx.connection.execute(
        "SELECT ifnull(max(seq), 0) FROM claims WHERE namespace_id = ?", (ns.namespace_id,)
    ).get
    return newest
