"""Writes ``schema_NNNN.db.gz``: a small ledger of the newest schema, the same bytes every time.

Run it once when a schema is about to be released, never for a released one:
``python tests/migrations/make_fixture.py``.
"""

import gzip
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from evicortex.ledger import Ledger, claims, evidence, extractions, keys, migrations, purge
from evicortex.ledger.evidence import CheckedDraft
from evicortex.types import ClaimDraft

HERE = Path(__file__).parent


class Ticking:
    def __init__(self):
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        self.moment += timedelta(hours=1)
        return self.moment


def fill(ledger):
    """Write something into every table of the ledger."""
    for name in ("alice", "bob"):
        drafts = [
            CheckedDraft(
                f"I moved to city {n} \0 é 👩‍👧", name.title(), "user", f"s{n}", "chat", f"x{n}", n,
                metadata={"n": n},
            )
            for n in range(4)
        ]  # fmt: skip
        with ledger.write() as tx:
            ns = tx.namespace(name, create=True)
            added = evidence.add(tx, ns, drafts)
            stored = evidence.fetch(tx, ns, [result.row_id for result in added])
            ids = [
                claims.add(tx, ns, item, [ClaimDraft(name, "lives_in", f"city {n}", (0, 1))])[0]
                for n, item in enumerate(stored.values())
            ]
            extractions.add(
                tx,
                ns,
                stored[added[1].row_id],
                extractor_id="rules",
                extractor_revision="1",
                claim_ids=[ids[1]],
            )
            tx.connection.executemany(
                "INSERT INTO lexical (rowid, namespace, terms) VALUES (?, ?, ?)",
                [(row, f"n{ns.namespace_id}", item.content) for row, item in stored.items()],
            )
            tx.connection.execute(
                "INSERT INTO watermarks VALUES (?, 'lexical', ?)",
                (ns.namespace_id, added[-1].row_id),
            )
        with ledger.write() as tx:
            claims.retract(tx, ns, ids[0], reason="wrong")
            tx.connection.execute(
                "DELETE FROM lexical WHERE rowid = ?", (keys.row_id(ns.namespace_id, 3),)
            )
            purge.remove(tx, ns, [keys.row_id(ns.namespace_id, 3)])
        purge.finish(ledger)


def main():
    """Write the fixture of the newest schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with Ledger.open(path, clock=Ticking()) as ledger:
            fill(ledger)
        target = HERE / f"schema_{migrations.SCHEMA_VERSION:04}.db.gz"
        target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main()
