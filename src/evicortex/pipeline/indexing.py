"""Projections after the commit: what the ledger holds is made findable, or said not to be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from evicortex.errors import LedgerError
from evicortex.ledger import NamespaceRow, Transaction
from evicortex.ledger.claim_texts import first_claim
from evicortex.pipeline.embedding import embed_due
from evicortex.pipeline.times import KEPT_IN_STEP, KEPT_OCTETS
from evicortex.pipeline.wiring import Rooms
from evicortex.types import Diagnostic


def bring_up_to_date(
    rooms: Rooms,
    namespace: str,
    *,
    after: int | None = None,
    claim_ids: Collection[str] | None = (),
    strict: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[Diagnostic, ...]:
    """Index what the namespace's projections lack; return what could not be indexed.

    The evidence is committed already, so a projection that fails is reported, never raised,
    unless ``strict``. Recall analyses what is not indexed in memory, and the next write or
    sync repairs it. When an encoder is on, evidence past the row ``after`` is also embedded, and
    so are claims from the first of ``claim_ids`` on (``None``: all claims).
    """
    try:
        with rooms.ledger.write() as tx:
            ns = tx.namespace(namespace)
            if ns is not None:
                rooms.lexical.sync(tx.connection, ns.namespace_id)
                rooms.times.keep_up(
                    tx.connection, ns.namespace_id, limit=KEPT_IN_STEP, octets=KEPT_OCTETS
                )
    except LedgerError as error:
        if strict:
            raise
        return (
            Diagnostic(
                "lexical_not_indexed",
                f"the evidence is committed but not yet in the full-text projection: {error}",
            ),
        )
    if after is None or rooms.embedder is None:
        return ()
    return embed_due(
        rooms,
        namespace,
        after=after,
        claims_after=_before(rooms, namespace, claim_ids),
        on_progress=on_progress,
    ).diagnostics


def _before(rooms: Rooms, namespace: str, claim_ids: Collection[str] | None) -> int | None:
    """Return the number before the first of these claims; ``None`` when there is none."""
    if claim_ids is None:
        return 0
    if not claim_ids:
        return None
    with rooms.ledger.read() as tx:
        ns = tx.namespace(namespace)
        first = None if ns is None else first_claim(tx, ns, claim_ids)
        return None if first is None else first - 1


def forget(rooms: Rooms, tx: Transaction, ns: NamespaceRow, row_ids: Sequence[int]) -> None:
    """Remove rows from every projection, in the transaction that purges their evidence."""
    rooms.lexical.remove(tx.connection, row_ids)
    rooms.times.remove(tx.connection, ns.namespace_id, row_ids)
    rooms.semantic.remove(tx.connection, ns.namespace_id, row_ids)
    rooms.sentences.remove(tx.connection, ns.namespace_id, row_ids)


def clear(rooms: Rooms, tx: Transaction, ns: NamespaceRow) -> None:
    """Throw away what can be derived again without a provider."""
    rooms.lexical.clear(tx.connection, ns.namespace_id)
    rooms.times.clear(tx.connection, ns.namespace_id)
