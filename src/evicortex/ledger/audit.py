"""The audit chain: one per namespace, each entry hashes the one before it.

A payload holds identifiers, digests, counts and times, never a text, name, external id or
reason, so that a purge need not touch the chain. The hash is the SHA-256 of the canonical JSON
of ``event``, ``namespace`` (the SHA-256 of its name), ``payload``, ``position``, ``previous``
(the hash before, sixty-four zeros for the first) and ``recorded_at`` (microseconds).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from evicortex.ledger import keys
from evicortex.ledger.connection import NamespaceRow, Transaction
from evicortex.types import Problem

GENESIS = "0" * 64
"""What the first entry of a chain has as the hash before it."""

ENTRY_ITEMS = 1000
"""Most items of one entry, so that none grows without bound."""


class Entry(NamedTuple):
    """One stored entry; ``payload`` is its canonical JSON text."""

    position: int
    event: str
    payload: str
    recorded_at: int
    previous_hash: str
    hash: str


class _Notes:
    """Items of one event, written as few entries before the commit."""

    __slots__ = ("_event", "_items", "_ns", "_tx")

    def __init__(self, tx: Transaction, ns: NamespaceRow, event: str) -> None:
        self._tx = tx
        self._ns = ns
        self._event = event
        self._items: list[Sequence[Any]] = []

    def extend(self, items: Sequence[Sequence[Any]]) -> None:
        self._items.extend(items)

    def flush(self) -> None:
        for first in range(0, len(self._items), ENTRY_ITEMS):
            items = self._items[first : first + ENTRY_ITEMS]
            _append(self._tx, self._ns, self._event, {self._event: items})


def note(tx: Transaction, ns: NamespaceRow, event: str, items: Sequence[Sequence[Any]]) -> None:
    """Collect items of an event; they are written together at the commit.

    The payload is ``{event: [item, ...]}`` with at most ``ENTRY_ITEMS`` items. Fewer, longer entries cost a fraction of one entry
    per record and are bound to the chain just as well.
    """
    notes = tx.deferred((ns.namespace_id, event), lambda: _Notes(tx, ns, event))
    notes.extend(items)


def append(tx: Transaction, ns: NamespaceRow, event: str, payload: Mapping[str, Any]) -> int:
    """Write one entry now, after everything noted before it; return its position (from 1)."""
    tx.flush()
    return _append(tx, ns, event, payload)


def _append(tx: Transaction, ns: NamespaceRow, event: str, payload: Mapping[str, Any]) -> int:
    at: int = (
        tx.connection.execute(
            "UPDATE namespaces SET next_audit = next_audit + 1 WHERE namespace_id = ? "
            "RETURNING next_audit",
            (ns.namespace_id,),
        ).get
        - 1
    )
    previous = GENESIS
    if at > 1:
        previous = tx.connection.execute(
            "SELECT hash FROM audit WHERE entry_id = ?", (keys.row_id(ns.namespace_id, at - 1),)
        ).get
    text = keys.canonical_json(payload)
    digest = entry_hash(keys.text_digest(ns.name), at, event, text, tx.recorded_at, previous)
    tx.connection.execute(
        "INSERT INTO audit (entry_id, namespace_id, position, event, payload, recorded_at, "
        "previous_hash, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            keys.row_id(ns.namespace_id, at),
            ns.namespace_id,
            at,
            event,
            text,
            tx.recorded_at,
            previous,
            digest,
        ),
    )
    return at


def entry_hash(
    namespace_digest: str, at: int, event: str, payload: str, recorded_at: int, previous: str
) -> str:
    """Return the hash of an entry. ``payload`` is its JSON text, taken as it is stored."""
    head = keys.canonical_json({"event": event, "namespace": namespace_digest})[:-1]
    tail = keys.canonical_json({"position": at, "previous": previous, "recorded_at": recorded_at})[
        1:
    ]
    return hashlib.sha256(f'{head},"payload":{payload},{tail}'.encode()).hexdigest()


def entries(tx: Transaction, ns: NamespaceRow) -> Iterator[Entry]:
    """Yield a namespace's chain in order."""
    rows = tx.connection.execute(
        "SELECT position, event, payload, recorded_at, previous_hash, hash FROM audit "
        "WHERE entry_id >= ? AND entry_id < ? ORDER BY entry_id",
        keys.row_range(ns.namespace_id),
    )
    return map(Entry._make, rows)


def checked_entries(tx: Transaction, ns: NamespaceRow, problems: list[Problem]) -> Iterator[Entry]:
    """Yield the entries of a chain whose hash is right; add what is wrong to ``problems``.

    Found are altered, removed, moved and inserted entries, also at the end of the chain.
    """
    digest = keys.text_digest(ns.name)
    expected, previous = 1, GENESIS
    for entry in entries(tx, ns):
        if entry.position != expected:
            problems.append(_problem(ns, "audit.gap", expected, "is missing"))
        elif entry.previous_hash != previous:
            problems.append(_problem(ns, "audit.link", entry.position, "does not follow"))
        if entry.hash == _hash_of(entry, digest):
            yield entry
        else:
            problems.append(_problem(ns, "audit.hash", entry.position, "was altered"))
        expected, previous = entry.position + 1, entry.hash
    recorded: int = tx.connection.execute(
        "SELECT next_audit FROM namespaces WHERE namespace_id = ?", (ns.namespace_id,)
    ).get
    if recorded != expected:
        problems.append(_problem(ns, "audit.gap", recorded - 1, "is not the last one"))


def _hash_of(entry: Entry, namespace_digest: str) -> str:
    return entry_hash(
        namespace_digest,
        entry.position,
        entry.event,
        entry.payload,
        entry.recorded_at,
        entry.previous_hash,
    )


def verify_chain(tx: Transaction, ns: NamespaceRow) -> list[Problem]:
    """Return what is wrong with a namespace's chain."""
    problems: list[Problem] = []
    for _ in checked_entries(tx, ns, problems):
        pass
    return problems


def _problem(ns: NamespaceRow, code: str, at: int, what: str) -> Problem:
    return Problem(code, ns.name, f"entry {at} of the audit chain {what}", {"audit_position": at})
