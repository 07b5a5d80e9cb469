"""The names that a namespace knows: sessions and actors by their ids."""

from __future__ import annotations

from evicortex.ledger.connection import NamespaceRow, Transaction


def actor_names(tx: Transaction, ns: NamespaceRow) -> dict[int, str]:
    """Return the actors of a namespace, id to name."""
    rows = tx.connection.execute(
        "SELECT actor_id, name FROM actors WHERE namespace_id = ?", (ns.namespace_id,)
    )
    return {int(row[0]): str(row[1]) for row in rows}


def session_ids(tx: Transaction, ns: NamespaceRow, names: tuple[str, ...]) -> list[int]:
    """Return the ids of the sessions of these names; unknown names have none."""
    rows = tx.connection.executemany(
        "SELECT session_id FROM sessions WHERE namespace_id = ? AND name = ?",
        [(ns.namespace_id, name) for name in dict.fromkeys(names)],
    )
    return [row[0] for row in rows]
