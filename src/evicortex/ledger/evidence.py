"""Evidence: appended in batches, never changed, read back exactly.

Times are integers here, microseconds since the epoch, UTC; :class:`~evicortex.types.Evidence`
has datetimes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from evicortex.errors import (
    ConflictError,
    EviCortexError,
    InputError,
    InvalidTextError,
    NotFoundError,
)
from evicortex.ledger import audit, keys
from evicortex.ledger.connection import NamespaceRow, Transaction
from evicortex.types import Authority, Evidence, Json, Stats
from evicortex.validity import from_micros

EVENT = "evidence"
"""The audit event of new evidence; items are [position, evidence id, digest, record digest]."""


class CheckedDraft(NamedTuple):
    """A draft whose types and times were checked. ``occurred_at`` is in microseconds, UTC."""

    content: str
    actor: str | None = None
    role: str | None = None
    session: str | None = None
    source: str | None = None
    external_id: str | None = None
    occurred_at: int | None = None
    authority: str = Authority.USER.value
    metadata: Mapping[str, Json] = {}


class Added(NamedTuple):
    """A draft that is in the ledger; ``created`` is false when it was there already."""

    row_id: int
    evidence_id: str
    digest: str
    created: bool


class Rejected(NamedTuple):
    """A draft that was refused; nothing of it was written."""

    error: EviCortexError


class Restored(NamedTuple):
    """What an import keeps of an evidence that was recorded elsewhere.

    ``position`` ``None`` takes the next one; ``recorded_at`` is in microseconds.
    """

    evidence_id: str
    position: int | None
    recorded_at: int


_INSERT = (
    "INSERT INTO evidence (row_id, namespace_id, evidence_id, content, digest, actor_id, role, "
    "session_id, source, external_id, occurred_at, recorded_at, authority, metadata) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT = (
    "SELECT e.row_id, e.evidence_id, e.content, e.digest, a.name, e.role, s.name, e.source, "
    "e.external_id, e.occurred_at, e.recorded_at, e.authority, e.metadata FROM evidence e "
    "LEFT JOIN actors a ON a.namespace_id = e.namespace_id AND a.actor_id = e.actor_id "
    "LEFT JOIN sessions s ON s.namespace_id = e.namespace_id AND s.session_id = e.session_id "
)

_PLAIN = (
    "SELECT row_id, evidence_id, content, digest, actor_id, role, session_id, source, "
    "external_id, occurred_at, recorded_at, authority, metadata FROM evidence "
    "WHERE row_id IN (SELECT value FROM json_each(?))"
)


def add(
    tx: Transaction, ns: NamespaceRow, drafts: Sequence[CheckedDraft]
) -> list[Added | Rejected]:
    """Append drafts in their order; return for each what became of it.

    A draft whose ``external_id`` is stored already (or came earlier in ``drafts``) yields that
    evidence when its text is the same, and a rejection with ``ConflictError`` when it is not. A
    text that UTF-8 cannot encode is rejected with ``InvalidTextError``, metadata that is not
    JSON with ``InputError``. A rejected draft takes no position; the others land.

    Raises:
        ReadOnlyError: ``tx`` is a read.
    """
    batch = _Batch(tx, ns)
    batch.find_external_ids(drafts)
    results = [batch.take(draft, None) for draft in drafts]
    batch.write()
    return results


def restore(
    tx: Transaction, ns: NamespaceRow, drafts: Sequence[tuple[CheckedDraft, Restored]]
) -> list[Added | Rejected]:
    """Append evidence of an export with its ids and times; otherwise as :func:`add`.

    Evidence whose id is stored already is left as it is (``ConflictError`` when its text is
    another one). Positions must ascend and be free.
    """
    batch = _Batch(tx, ns)
    batch.find_external_ids([draft for draft, _ in drafts])
    batch.find_ids([kept.evidence_id for _, kept in drafts])
    results = [batch.take(draft, kept) for draft, kept in drafts]
    batch.write()
    return results


class _Batch:
    """The state of one batch; nothing is written before :meth:`write`.

    A row costs a few microseconds, so what repeats within a batch (actor, role, session,
    source, authority) is looked up and encoded once.
    """

    def __init__(self, tx: Transaction, ns: NamespaceRow) -> None:
        tx.require_write()
        self._tx = tx
        self._ns = ns
        self._next: int = tx.connection.execute(
            "SELECT next_position FROM namespaces WHERE namespace_id = ?", (ns.namespace_id,)
        ).get
        self._ids: dict[tuple[str, str], int] = {}
        self._origins: dict[_Origin, tuple[int | None, int | None, str]] = {}
        self._by_external_id: dict[str, Added] = {}
        self._by_id: dict[str, Added] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._items: list[tuple[int, str, str, str]] = []

    def find_external_ids(self, drafts: Sequence[CheckedDraft]) -> None:
        """Look up which external ids are stored already."""
        wanted = [draft.external_id for draft in drafts if draft.external_id is not None]
        self._by_external_id = self._find("external_id", wanted)

    def find_ids(self, evidence_ids: Sequence[str]) -> None:
        """Look up which ids of an import are stored already."""
        self._by_id = self._find("evidence_id", evidence_ids)

    def _find(self, column: str, values: Sequence[str]) -> dict[str, Added]:
        readable = [(self._ns.namespace_id, value) for value in values if keys.encodable(value)]
        rows = self._tx.connection.executemany(
            f"SELECT {column}, row_id, evidence_id, digest FROM evidence "
            f"WHERE namespace_id = ? AND {column} = ?",
            readable,
        )
        return {row[0]: Added(row[1], row[2], row[3], False) for row in rows}

    def take(self, draft: CheckedDraft, kept: Restored | None) -> Added | Rejected:
        """Accept or reject one draft."""
        try:
            digest = sha256(draft[0].encode()).hexdigest()
            existing = self._existing(draft, digest, kept)
            return existing or self._new(draft, digest, kept)
        except UnicodeEncodeError as error:
            return Rejected(
                InvalidTextError(
                    f"UTF-8 cannot encode {_where(draft)}: {error.reason}; "
                    "replace lone surrogates before storing"
                )
            )
        except (TypeError, ValueError, RecursionError) as error:
            return Rejected(InputError(f"metadata is not JSON: {error}"))
        except ConflictError as error:
            return Rejected(error)

    def _existing(self, draft: CheckedDraft, digest: str, kept: Restored | None) -> Added | None:
        existing = self._by_external_id.get(draft[5]) if draft[5] is not None else None
        if kept is not None:
            existing = self._by_id.get(kept.evidence_id, existing)
        if existing is not None and existing.digest != digest:
            raise ConflictError(
                f"{draft.external_id or existing.evidence_id!r} is stored with another text; "
                "evidence is never changed, so use another external_id"
            )
        return existing

    def _new(self, draft: CheckedDraft, digest: str, kept: Restored | None) -> Added:
        content, actor, role, session, source, external_id, occurred_at, authority, extra = draft
        namespace_id = self._ns.namespace_id
        if kept is None:
            at, recorded_at = self._next, self._tx.recorded_at
            evidence_id = keys.evidence_id(self._ns.name, at, digest)
        else:
            at = self._next if kept.position is None else kept.position
            evidence_id, recorded_at = kept.evidence_id, kept.recorded_at
        metadata = keys.canonical_json(extra) if extra else "{}"
        if external_id is not None:
            # Before a new actor or session is stored for a draft that will be refused.
            external_id.encode()
        origin = (actor, role, session, source, authority)
        known = self._origins.get(origin) or self._remember(origin)
        record = _digest(
            evidence_id, digest, known[2], external_id, occurred_at, recorded_at, metadata
        )
        row_id = keys.row_id(namespace_id, at)
        self._rows.append(
            (
                row_id,
                namespace_id,
                evidence_id,
                content,
                digest,
                known[0],
                role,
                known[1],
                source,
                external_id,
                occurred_at,
                recorded_at,
                authority,
                metadata,
            )
        )
        self._items.append((at, evidence_id, digest, record))
        self._next = at + 1
        if external_id is not None:
            self._by_external_id[external_id] = Added(row_id, evidence_id, digest, False)
        return Added(row_id, evidence_id, digest, True)

    def _remember(self, origin: _Origin) -> tuple[int | None, int | None, str]:
        text = _origin_json(*origin)
        text.encode()
        known = (
            self._name("actors", "actor_id", origin[0]),
            self._name("sessions", "session_id", origin[2]),
            text,
        )
        self._origins[origin] = known
        return known

    def _name(self, table: str, column: str, name: str | None) -> int | None:
        """Return the id of an actor or a session; a new name is stored at once."""
        if name is None:
            return None
        known = self._ids.get((table, name))
        if known is not None:
            return known
        values = (self._ns.namespace_id, name)
        execute = self._tx.connection.execute
        found: int | None = execute(
            f"SELECT {column} FROM {table} WHERE namespace_id = ? AND name = ?", values
        ).get
        if found is None:
            found = execute(
                f"INSERT INTO {table} (namespace_id, {column}, name) SELECT ?1, "
                f"coalesce(max({column}), 0) + 1, ?2 FROM {table} WHERE namespace_id = ?1 "
                f"RETURNING {column}",
                values,
            ).get
        assert found is not None
        self._ids[table, name] = found
        return found

    def write(self) -> None:
        """Write every accepted row, the counter and the audit items."""
        if not self._rows:
            return
        connection = self._tx.connection
        connection.executemany(_INSERT, self._rows)
        connection.execute(
            "UPDATE namespaces SET next_position = ? WHERE namespace_id = ?",
            (self._next, self._ns.namespace_id),
        )
        audit.note(self._tx, self._ns, EVENT, self._items)


_Origin = tuple[str | None, str | None, str | None, str | None, str]


def _quote(text: str | None) -> str:
    return "null" if text is None else encode_basestring(text)


def _origin_json(
    actor: str | None, role: str | None, session: str | None, source: str | None, authority: str
) -> str:
    return ",".join(map(_quote, (actor, role, session, source, authority)))


def _digest(
    evidence_id: str,
    digest: str,
    origin: str,
    external_id: str | None,
    occurred_at: int | None,
    recorded_at: int,
    metadata: str,
) -> str:
    external = "null" if external_id is None else encode_basestring(external_id)
    occurred = "null" if occurred_at is None else occurred_at
    text = f'["{evidence_id}","{digest}",{origin},{external},{occurred},{recorded_at},{metadata}]'
    return sha256(text.encode()).hexdigest()


def record_digest(
    evidence_id: str,
    digest: str,
    actor: str | None,
    role: str | None,
    session: str | None,
    source: str | None,
    authority: str,
    external_id: str | None,
    occurred_at: int | None,
    recorded_at: int,
    metadata: str,
) -> str:
    """Return the digest of everything an evidence says, for the audit chain.

    It is the SHA-256 of the canonical JSON list of the arguments; ``metadata`` is itself
    canonical JSON and is an object there, not a text.
    """
    origin = _origin_json(actor, role, session, source, authority)
    return _digest(evidence_id, digest, origin, external_id, occurred_at, recorded_at, metadata)


def _where(draft: CheckedDraft) -> str:
    for name in ("content", "actor", "role", "session", "source", "external_id", "authority"):
        value = getattr(draft, name)
        if value is not None and not keys.encodable(value):
            return name
    return "metadata"


def get(tx: Transaction, ns: NamespaceRow, evidence_id: str) -> Evidence:
    """Return one evidence.

    Raises:
        NotFoundError: it was never stored in this namespace, or was purged.
    """
    rows = row_ids_of(tx, ns, [evidence_id])
    if not rows:
        raise NotFoundError(f"there is no evidence {evidence_id!r} in namespace {ns.name!r}")
    return fetch(tx, ns, rows)[rows[0]]


def by_external_id(tx: Transaction, ns: NamespaceRow, external_id: str) -> Evidence | None:
    """Return the evidence that a caller's own id names here; ``None`` when there is none."""
    row_id = tx.connection.execute(
        "SELECT row_id FROM evidence WHERE namespace_id = ? AND external_id = ?",
        (ns.namespace_id, external_id),
    ).get
    return None if row_id is None else fetch(tx, ns, [row_id])[row_id]


def newest_of_session(
    tx: Transaction, ns: NamespaceRow, session: str, *, limit: int
) -> tuple[Evidence, ...]:
    """Return the last recorded evidence of a session, at most ``limit``, oldest first."""
    lo, hi = keys.row_range(ns.namespace_id)
    rows = tx.connection.execute(
        "SELECT row_id FROM evidence WHERE row_id >= ? AND row_id < ? AND session_id = "
        "(SELECT session_id FROM sessions WHERE namespace_id = ? AND name = ?) "
        "ORDER BY row_id DESC LIMIT ?",
        (lo, hi, ns.namespace_id, session, limit),
    )
    row_ids = [row[0] for row in rows][::-1]
    found = fetch(tx, ns, row_ids)
    return tuple(found[row_id] for row_id in row_ids)


def row_ids_of(tx: Transaction, ns: NamespaceRow, evidence_ids: Iterable[str]) -> list[int]:
    """Return the row ids of those of ``evidence_ids`` that exist, in the order given."""
    rows = tx.connection.executemany(
        "SELECT row_id FROM evidence WHERE namespace_id = ? AND evidence_id = ?",
        [(ns.namespace_id, wanted) for wanted in evidence_ids if keys.encodable(wanted)],
    )
    return [row[0] for row in rows]


def fetch(tx: Transaction, ns: NamespaceRow, row_ids: Iterable[int]) -> dict[int, Evidence]:
    """Return evidence by row id; those of other namespaces or none are absent.

    In the order asked for.
    """
    lo, hi = keys.row_range(ns.namespace_id)
    wanted = [row for row in row_ids if lo <= row < hi]
    # Names are looked up once each: joining them row by row costs ten times the read itself.
    rows: list[tuple[Any, ...]] = tx.connection.execute(_PLAIN, (json.dumps(wanted),)).fetchall()
    actors = _names(tx, ns, "actors", "actor_id", {row[4] for row in rows})
    sessions = _names(tx, ns, "sessions", "session_id", {row[6] for row in rows})
    found = {row[0]: row for row in rows}
    return {
        row_id: _evidence(ns, (*row[:4], actors[row[4]], row[5], sessions[row[6]], *row[7:]))
        for row_id, row in ((each, found[each]) for each in wanted if each in found)
    }


def _names(
    tx: Transaction, ns: NamespaceRow, table: str, column: str, ids: set[int | None]
) -> dict[int | None, str | None]:
    rows: Iterable[tuple[Any, ...]] = tx.connection.execute(
        f"SELECT {column}, name FROM {table} WHERE namespace_id = ? "
        f"AND {column} IN (SELECT value FROM json_each(?))",
        (ns.namespace_id, json.dumps([each for each in ids if each is not None])),
    )
    return {None: None, **{row[0]: row[1] for row in rows}}


def scan(tx: Transaction, ns: NamespaceRow, *, after: int = 0) -> Iterator[tuple[int, Evidence]]:
    """Yield (row id, evidence) in the order of recording, from the row id after ``after``."""
    lo, hi = keys.row_range(ns.namespace_id)
    rows = tx.connection.execute(
        _SELECT + "WHERE e.row_id > ? AND e.row_id < ? ORDER BY e.row_id", (max(lo, after), hi)
    )
    for row in rows:
        yield row[0], _evidence(ns, row)


def _evidence(ns: NamespaceRow, row: Sequence[Any]) -> Evidence:
    (row_id, evidence_id, content, digest, actor, role, session, source, external_id) = row[:9]
    occurred_at, recorded_at, authority, metadata = row[9:]
    return Evidence(
        evidence_id=evidence_id,
        namespace=ns.name,
        content=content,
        digest=digest,
        actor=actor,
        role=role,
        session=session,
        source=source,
        external_id=external_id,
        occurred_at=None if occurred_at is None else from_micros(occurred_at),
        recorded_at=from_micros(recorded_at),
        authority=Authority(authority),
        metadata={} if metadata == "{}" else json.loads(metadata),
        position=keys.position(row_id),
    )


def stats(tx: Transaction, ns: NamespaceRow) -> Stats:
    """Return the counts of a namespace; ``bytes`` are those of its texts in UTF-8."""
    lo, hi = keys.row_range(ns.namespace_id)
    evidence, size = tx.connection.execute(
        "SELECT count(*), coalesce(sum(octet_length(content)), 0) FROM evidence "
        "WHERE row_id >= ? AND row_id < ?",
        (lo, hi),
    ).get
    claims, sessions, actors = (
        tx.connection.execute(
            f"SELECT count(*) FROM {table} WHERE namespace_id = ?", (ns.namespace_id,)
        ).get
        for table in ("claims", "sessions", "actors")
    )
    return Stats(
        namespace=ns.name,
        evidence=evidence,
        claims=claims,
        sessions=sessions,
        actors=actors,
        bytes=size,
    )
