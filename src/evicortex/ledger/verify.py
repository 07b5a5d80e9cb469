"""Reading everything again: is each row what the audit chain says that it was?"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from evicortex.errors import CorruptLedgerError, NotFoundError
from evicortex.ledger import audit, claims, erasure, evidence, keys, purge
from evicortex.ledger.connection import Ledger, NamespaceRow, Transaction
from evicortex.types import Problem, VerifyReport

_Item = Sequence[Any]
"""One item of an audit entry: what names the record, and last the digest of the record."""


def verify(ledger: Ledger, namespace: str | None = None) -> VerifyReport:
    """Check one namespace, or all of them and the file itself; nothing is written.

    Problems: the file's own structure; an altered, missing, moved or inserted entry of an audit
    chain; a record whose text or fields are not those that the chain has, that is missing or
    that the chain does not know; claims whose spans or digests do not agree. Conflicts between
    claims are listed apart, and so are notices: projections that lag behind, purges whose bytes
    still wait for a reader to let go.

    Raises:
        NotFoundError: the namespace does not exist.
    """
    try:
        with ledger.read() as tx:
            return _verify(tx, namespace)
    except CorruptLedgerError as error:
        damaged = Problem("file.damaged", namespace or "", str(error))
        return VerifyReport(ok=False, problems=(damaged,))


def _verify(tx: Transaction, namespace: str | None) -> VerifyReport:
    problems: list[Problem] = []
    conflicts: list[Problem] = []
    notices: list[Problem] = []
    checked = {"namespaces": 0, **dict.fromkeys(_KINDS, 0), "audit": 0}
    if namespace is None:
        problems.extend(_file_problems(tx))
        chosen = tx.namespaces()
    else:
        found = tx.namespace(namespace)
        if found is None:
            raise NotFoundError(f"there is no namespace {namespace!r}")
        chosen = (found,)
    for ns in chosen:
        check = _NamespaceCheck(tx, ns)
        check.run()
        problems.extend(check.problems)
        problems.extend(claims.problems(tx, ns))
        conflicts.extend(claims.conflicts(tx, ns))
        notices.extend(_notices(tx, ns))
        checked["namespaces"] += 1
        for name, count in check.checked.items():
            checked[name] += count
    if erasure.pending(tx.connection):
        notices.append(
            Problem(
                "purge.pending",
                "",
                "purged bytes may still lie in the files: a reader held an old snapshot; "
                "the next write or open erases them",
            )
        )
    return VerifyReport(
        ok=not problems,
        problems=tuple(problems),
        conflicts=tuple(conflicts),
        checked=checked,
        notices=tuple(notices),
    )


def _file_problems(tx: Transaction) -> Iterator[Problem]:
    # FTS5's integrity check trusts the index structure that this connection has in memory, which
    # another connection may have replaced since; a query makes it look again.
    tx.connection.execute("SELECT rowid FROM lexical WHERE lexical MATCH '\"n0\"'").fetchall()
    for (message,) in tx.connection.execute("PRAGMA integrity_check(20)"):
        if message != "ok":
            yield Problem("file.structure", "", f"SQLite's integrity check says: {message}")
    for table, row, parent, _ in tx.connection.execute("PRAGMA foreign_key_check"):
        yield Problem(
            "file.reference",
            "",
            f"row {row} of {table} refers to a row of {parent} that does not exist",
            {"table": table, "row": row},
        )


def _notices(tx: Transaction, ns: NamespaceRow) -> Iterator[Problem]:
    lo, hi = keys.row_range(ns.namespace_id)
    newest = tx.connection.execute(
        "SELECT coalesce(max(row_id), 0) FROM evidence WHERE row_id >= ? AND row_id < ?", (lo, hi)
    ).get
    for projection, row_id in tx.connection.execute(
        "SELECT projection, row_id FROM watermarks WHERE namespace_id = ?", (ns.namespace_id,)
    ):
        if row_id < newest:
            yield Problem(
                "projection.stale",
                ns.name,
                f"the {projection} projection ends before the newest evidence; a sync brings it up "
                "to date, and so does the next write when little is missing",
                {"projection": projection, "behind": newest - row_id},
            )


class _NamespaceCheck:
    """Walks one chain and compares each item with the row that is stored now.

    The chain is read twice: what was purged later than it was recorded need not be there.
    """

    def __init__(self, tx: Transaction, ns: NamespaceRow) -> None:
        self._tx = tx
        self._ns = ns
        self._purged: dict[int | str, int] = {}
        self._matched = dict.fromkeys(_KINDS, 0)
        self.problems: list[Problem] = []
        self.entries = 0

    @property
    def checked(self) -> dict[str, int]:
        """Return how many records were compared, by kind."""
        return {**self._matched, "audit": self.entries}

    def run(self) -> None:
        """Collect every problem of the namespace's own rows."""
        for entry in audit.checked_entries(self._tx, self._ns, self.problems):
            self.entries += 1
            if entry.event == purge.EVENT:
                payload = json.loads(entry.payload)
                for key in (*(item[0] for item in payload["evidence"]), *payload["claims"]):
                    self._purged[key] = entry.position
        for kind, items in self._live_items():
            for item, digest in zip(items, _KINDS[kind].stored(self, items), strict=True):
                if digest is None:
                    self._add(f"{kind}.missing", item, "is in the audit chain but not stored")
                    continue
                self._matched[kind] += 1
                if digest != item[-1]:
                    self._add(f"{kind}.altered", item, "is not what the audit chain says")
        for kind in _KINDS:
            self._find_unlisted(kind)
        self._find_unused_names()
        self._check_counters()

    def _live_items(self) -> Iterator[tuple[str, list[_Item]]]:
        """Yield (kind, items) of each entry whose hash is right, without what was purged later."""
        for entry in audit.checked_entries(self._tx, self._ns, []):
            kind = _KINDS.get(entry.event)
            if kind is not None:
                items = json.loads(entry.payload)[entry.event]
                yield (
                    entry.event,
                    [i for i in items if self._purged.get(i[kind.key], 0) < entry.position],
                )

    def _add(self, code: str, item: _Item, what: str) -> None:
        name = " ".join(str(part) for part in item[:2])
        self.problems.append(Problem(code, self._ns.name, f"{name} {what}", {"item": list(item)}))

    def stored_evidence(self, items: list[_Item]) -> list[str | None]:
        """Return the record digests of evidence items as the stored rows give them."""
        rows = self._tx.connection.executemany(
            _EVIDENCE, [(keys.row_id(self._ns.namespace_id, item[0]),) for item in items]
        )
        found: dict[int, str] = {}
        for row_id, evidence_id, content, digest, *fields in rows:
            if sha256(content.encode()).hexdigest() == digest:
                found[row_id] = evidence.record_digest(evidence_id, digest, *fields)
            else:
                found[row_id] = ""
        return [found.get(keys.row_id(self._ns.namespace_id, item[0])) for item in items]

    def stored_claims(self, items: list[_Item]) -> list[str | None]:
        """Return the record digests of claim items."""
        return self._stored(
            f"SELECT {', '.join(keys.CLAIM_FIELDS)} FROM claims "
            "WHERE namespace_id = ? AND seq = ? AND claim_id = ?",
            [(item[0], item[1]) for item in items],
        )

    def stored_retractions(self, items: list[_Item]) -> list[str | None]:
        """Return the record digests of retraction items."""
        return self._stored(
            f"SELECT {', '.join(keys.RETRACTION_FIELDS)} FROM retractions "
            "WHERE namespace_id = ? AND claim_id = ?",
            [(item[0],) for item in items],
        )

    def stored_extractions(self, items: list[_Item]) -> list[str | None]:
        """Return the record digests of extraction items."""
        ns = self._ns.namespace_id
        where = "WHERE namespace_id = ? AND row_id = ? AND"
        records: list[str | None] = []
        for item in items:
            values = (ns, keys.row_id(ns, item[0]), item[1])
            row = self._tx.connection.execute(
                f"SELECT {', '.join(keys.EXTRACTION_FIELDS)} FROM extractions {where} ordinal = ?",
                values,
            ).fetchone()
            emitted = self._tx.connection.execute(
                f"SELECT {', '.join(keys.EMITTED_FIELDS)} FROM extraction_claims "
                f"{where} extraction = ? ORDER BY ordinal",
                values,
            ).fetchall()
            records.append(row and keys.record_digest([*row, *emitted]))
        return records

    def _stored(self, sql: str, bindings: list[tuple[Any, ...]]) -> list[str | None]:
        execute = self._tx.connection.execute
        rows = (execute(sql, (self._ns.namespace_id, *values)).fetchone() for values in bindings)
        return [row and keys.record_digest(row) for row in rows]

    def _find_unlisted(self, kind: str) -> None:
        """Name the rows that no live item of the chain speaks of, when the numbers differ."""
        columns = _KINDS[kind].columns
        condition = f"FROM {kind} WHERE namespace_id = ?"
        count = self._tx.connection.execute(
            f"SELECT count(*) {condition}", (self._ns.namespace_id,)
        ).get
        if count == self._matched[kind]:
            return
        width = len(columns)
        listed = {
            tuple(item[:width])
            for found, items in self._live_items()
            if found == kind
            for item in items
        }
        rows = self._tx.connection.execute(
            f"SELECT {', '.join(columns)} {condition}", (self._ns.namespace_id,)
        )
        for row in rows:
            if row not in listed:
                self._add(f"{kind}.unlisted", row, "is stored but not in the audit chain")

    def _find_unused_names(self) -> None:
        for table, column in (("sessions", "session_id"), ("actors", "actor_id")):
            count = self._tx.connection.execute(
                f"SELECT count(*) FROM {table} t WHERE namespace_id = ? AND NOT EXISTS (SELECT 1 "
                f"FROM evidence e WHERE e.namespace_id = t.namespace_id "
                f"AND e.{column} = t.{column})",
                (self._ns.namespace_id,),
            ).get
            if count:
                self.problems.append(
                    Problem(
                        f"{table}.unused",
                        self._ns.name,
                        f"{count} rows of {table} belong to no evidence",
                        {"count": count},
                    )
                )

    def _check_counters(self) -> None:
        ns = self._ns.namespace_id
        next_position, next_claim = self._tx.connection.execute(
            "SELECT next_position, next_claim FROM namespaces WHERE namespace_id = ?", (ns,)
        ).get
        lo, hi = keys.row_range(ns)
        newest = self._tx.connection.execute(
            "SELECT max(row_id) FROM evidence WHERE row_id >= ? AND row_id < ?", (lo, hi)
        ).get
        last = self._tx.connection.execute(
            "SELECT max(seq) FROM claims WHERE namespace_id = ?", (ns,)
        ).get
        if keys.position(newest or 0) >= next_position or (last or 0) >= next_claim:
            self.problems.append(
                Problem("namespace.counter", self._ns.name, "a counter is behind the stored rows")
            )


class _Kind(NamedTuple):
    """How the items of one event are tied to rows of the table of the same name.

    ``key`` is the place in the item of what a purge names; ``columns`` give the first values of
    an item from a row.
    """

    key: int
    columns: tuple[str, ...]
    stored: Callable[[_NamespaceCheck, list[_Item]], list[str | None]]


_POSITION = f"row_id & {keys.MAX_POSITION}"
_KINDS = {
    "evidence": _Kind(0, (_POSITION, "evidence_id"), _NamespaceCheck.stored_evidence),
    "claims": _Kind(1, ("seq", "claim_id"), _NamespaceCheck.stored_claims),
    "retractions": _Kind(0, ("claim_id",), _NamespaceCheck.stored_retractions),
    "extractions": _Kind(0, (_POSITION, "ordinal"), _NamespaceCheck.stored_extractions),
}
_EVIDENCE = (
    "SELECT e.row_id, e.evidence_id, e.content, e.digest, a.name, e.role, s.name, e.source, "
    "e.authority, e.external_id, e.occurred_at, e.recorded_at, e.metadata FROM evidence e "
    "LEFT JOIN actors a ON a.namespace_id = e.namespace_id AND a.actor_id = e.actor_id "
    "LEFT JOIN sessions s ON s.namespace_id = e.namespace_id AND s.session_id = e.session_id "
    "WHERE e.row_id = ?"
)
