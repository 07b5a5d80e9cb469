"""Who is who in a namespace: actors by name, and the aliases that the conversation taught."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from evicortex.ledger import Transaction
from evicortex.pipeline.wiring import People, Rooms
from evicortex.policy.aliases import Uses, learn, uses
from evicortex.projections.lexical import LexicalView
from evicortex.projections.resident import NamespaceRows
from evicortex.text import terms

Mask = npt.NDArray[np.bool_]

USES_READ = 2_000
"""At most so many texts that hold a likely alias are read to judge it: the earliest ones."""


def people(
    rooms: Rooms,
    tx: Transaction,
    every: Mapping[int, str],
    rows: NamespaceRows,
    view: LexicalView,
    mask: Mask | None,
) -> People:
    """Return the people of the allowed rows; nothing is learned from rows outside ``mask``.

    ``every`` names all actors of the namespace by id.
    """
    if mask is None:
        state = (rows.generation, len(rows))
        return rooms.people.get(
            rows.namespace_id, state, lambda: _learned(rooms, tx, every, rows, view, None)
        )
    return _learned(rooms, tx, every, rows, view, mask)


def _learned(
    rooms: Rooms,
    tx: Transaction,
    every: Mapping[int, str],
    rows: NamespaceRows,
    view: LexicalView,
    mask: Mask | None,
) -> People:
    present = np.unique(rows.actor if mask is None else rows.actor[mask])
    names = {actor: every[actor] for actor in present.tolist() if actor in every}
    found = [
        address
        for address in rooms.addresses.get(tx.connection, rows)
        if address.actor in names and (mask is None or mask[address.row])
    ]

    def count(name: str) -> Uses:
        wanted = terms(name)
        held = view.rows_with(wanted[0]) if wanted else np.empty(0, dtype=np.int32)
        if mask is not None:
            held = held[mask[held]]
        texts = rooms.addresses.texts(tx.connection, rows, held[:USES_READ].tolist())
        return uses(name, texts)

    return People(names, learn(found, names, count) if found else {})
