"""Times that evidence names: read while little is new, else by a sync or when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evicortex.ledger import NamespaceRow, Transaction, keys
from evicortex.ledger import evidence as evidence_ledger
from evicortex.pipeline.beliefs import required
from evicortex.pipeline.drafts import check_text
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.times import Said
from evicortex.types import Evidence, TimeMention

KEPT_IN_STEP = 64
"""A write reads the new texts when there are no more than these; a larger import is for a sync.

Reading a turn takes about 55 microseconds, some 60 % of what storing it in a batch of 500 takes
otherwise.
"""

KEPT_OCTETS = 100_000
"""And when they have no more bytes of UTF-8 than these: a book must not hold up other writers."""

BATCH = 1_000
"""Texts read in one transaction of a sync, so that other writers get their turn."""


def sync_times(rooms: Rooms, namespace: str) -> None:
    """Read what is not read yet."""
    done = BATCH
    while done == BATCH:
        with rooms.ledger.write() as tx:
            ns = tx.namespace(namespace)
            done = 0
            if ns is not None:
                done = rooms.times.sync(tx.connection, ns.namespace_id, BATCH)


def times(rooms: Rooms, namespace: str, evidence_id: str) -> tuple[TimeMention, ...]:
    """Return the times that one evidence names; raises NotFoundError when it is unknown here."""
    check_text(evidence_id, "evidence_id")
    with rooms.ledger.read() as tx:
        ns = required(tx, namespace, f"evidence {evidence_id!r}")
        return tuple(times_of(rooms, tx, ns)(evidence_ledger.get(tx, ns, evidence_id)))


def times_of(
    rooms: Rooms, tx: Transaction, ns: NamespaceRow
) -> Callable[[Evidence], Sequence[TimeMention]]:
    """Return a function of evidence that looks each one up once; valid inside ``tx``."""
    known: dict[int, tuple[TimeMention, ...]] = {}

    def of(evidence: Evidence) -> tuple[TimeMention, ...]:
        row_id = keys.row_id(ns.namespace_id, evidence.position)
        if row_id not in known:
            said = Said(evidence.content, evidence.occurred_at or evidence.recorded_at)
            known.update(rooms.times.of(tx.connection, ns.namespace_id, {row_id: said}))
        return known[row_id]

    return of
