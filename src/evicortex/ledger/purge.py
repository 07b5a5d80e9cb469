"""Purge: what is removed, what stays as a tombstone, and when the bytes are gone.

The caller removes the rows of the projections in the same transaction, commits, and then calls
:func:`finish`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from evicortex.errors import NotFoundError, SelectorError
from evicortex.ledger import audit, claims, erasure, evidence, keys, segments
from evicortex.ledger.connection import Ledger, NamespaceRow, Transaction
from evicortex.types import Tombstone

EVENT = "purge"
"""Audit event; its payload has ``evidence`` ([position, id, digest] each) and ``claims`` (ids)."""


@dataclass(frozen=True, slots=True)
class Selector:
    """What to purge: exactly one of the fields is given.

    Raises:
        SelectorError: none, several, or an empty one.
    """

    evidence_id: str | None = None
    session: str | None = None
    source: str | None = None
    actor: str | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        given = [name for name, value in values.items() if value not in (None, False)]
        if len(given) != 1:
            raise SelectorError(
                f"purge takes exactly one of {', '.join(values)}; got {', '.join(given) or 'none'}"
            )


class Removed(NamedTuple):
    """What a purge removed; ``reinstated`` are claims that are held again because of it."""

    row_ids: tuple[int, ...]
    evidence_ids: tuple[str, ...]
    claim_ids: tuple[str, ...]
    tombstones: tuple[Tombstone, ...]
    reinstated: tuple[str, ...]


def select(tx: Transaction, ns: NamespaceRow, selector: Selector) -> list[int]:
    """Return the row ids that a selector covers, in order of recording.

    Raises:
        NotFoundError: ``evidence_id`` is unknown in this namespace.
    """
    if selector.evidence_id is not None:
        found = evidence.row_ids_of(tx, ns, [selector.evidence_id])
        if not found:
            raise NotFoundError(
                f"there is no evidence {selector.evidence_id!r} in namespace {ns.name!r}"
            )
        return found
    where, wanted = _condition(selector)
    if wanted is not None and not keys.encodable(wanted):
        return []
    lo, hi = keys.row_range(ns.namespace_id)
    rows = tx.connection.execute(
        f"SELECT e.row_id FROM evidence e WHERE e.row_id >= :lo AND e.row_id < :hi AND {where} "
        "ORDER BY e.row_id",
        {"lo": lo, "hi": hi, "ns": ns.namespace_id, "wanted": wanted},
    )
    return [row[0] for row in rows]


def _condition(selector: Selector) -> tuple[str, str | None]:
    if selector.session is not None:
        return _by_name("sessions", "session_id"), selector.session
    if selector.actor is not None:
        return _by_name("actors", "actor_id"), selector.actor
    if selector.source is not None:
        return "e.source = :wanted", selector.source
    return "true", None


def _by_name(table: str, column: str) -> str:
    return (
        f"e.namespace_id = :ns AND e.{column} = "
        f"(SELECT {column} FROM {table} WHERE namespace_id = :ns AND name = :wanted)"
    )


def remove(tx: Transaction, ns: NamespaceRow, row_ids: Sequence[int]) -> Removed:
    """Remove evidence with everything that rests on it; leave a tombstone for each.

    Claims, retractions, derivations and extractions of the evidence go, as do sessions and
    actors that nothing refers to any more, and just before the commit what the full-text index
    keeps of rows that the caller deleted there. Resident caches are told, and a marker makes
    sure that :func:`finish` is not forgotten. Row ids that do not exist are ignored.

    Raises:
        ReadOnlyError: ``tx`` is a read.
    """
    tx.require_write()
    lo, hi = keys.row_range(ns.namespace_id)
    wanted = [(row,) for row in sorted(set(row_ids)) if lo <= row < hi]
    rows: list[tuple[Any, ...]] = tx.connection.executemany(
        "SELECT row_id, evidence_id, digest, session_id, actor_id FROM evidence WHERE row_id = ?",
        wanted,
    ).fetchall()
    if not rows:
        return Removed((), (), (), (), ())
    found = tuple(row[0] for row in rows)
    gone = claims.remove(tx, ns, found)
    tx.connection.executemany("DELETE FROM evidence WHERE row_id = ?", [(row,) for row in found])
    _forget_names(tx, ns, "sessions", "session_id", {row[3] for row in rows} - {None})
    _forget_names(tx, ns, "actors", "actor_id", {row[4] for row in rows} - {None})
    at = audit.append(
        tx,
        ns,
        EVENT,
        {
            "evidence": [[keys.position(row[0]), row[1], row[2]] for row in rows],
            "claims": list(gone.claim_ids),
        },
    )
    tx.bump_generation(ns)
    erasure.forget_samples(tx.connection)
    erasure.mark(tx.connection, ns.namespace_id, tx.recorded_at)
    tx.before_commit(segments.erase_separators, lambda: segments.erase_separators(tx.connection))
    return Removed(
        row_ids=found,
        evidence_ids=tuple(row[1] for row in rows),
        claim_ids=tuple(gone.claim_ids),
        tombstones=tuple(Tombstone(row[1], row[2], at) for row in rows),
        reinstated=tuple(gone.reinstated),
    )


def _forget_names(
    tx: Transaction, ns: NamespaceRow, table: str, column: str, ids: set[int]
) -> None:
    tx.connection.executemany(
        f"DELETE FROM {table} WHERE namespace_id = ?1 AND {column} = ?2 AND NOT EXISTS "
        f"(SELECT 1 FROM evidence WHERE namespace_id = ?1 AND {column} = ?2)",
        [(ns.namespace_id, wanted) for wanted in sorted(ids)],
    )


def finish(ledger: Ledger) -> bool:
    """Erase the bytes of committed purges from every file; return whether none is left.

    False: a reader still holds a snapshot from before a purge. The next write, the next open
    and the next call of this function try again.

    Raises:
        ReadOnlyError: the ledger is open read-only.
    """
    return ledger.finish_purges()
