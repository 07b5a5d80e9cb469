"""Every released schema is kept as a file; a copy of each opens, is migrated, and verifies.

A new schema gets its file from ``make_fixture.py`` when it is released; a released one stays as
it is.
"""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evicortex.errors import LedgerVersionError
from evicortex.ledger import Ledger, claims, evidence, migrations
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.transfer import export, load
from evicortex.ledger.verify import verify

HERE = Path(__file__).parent
FIXTURES = sorted(HERE.glob("schema_*.db.gz"))


class Fixed:
    def now(self):
        return datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture(params=FIXTURES, ids=[path.name for path in FIXTURES])
def released(request, tmp_path):
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    version = int(request.param.name.removeprefix("schema_").removesuffix(".db.gz"))
    return path, version


def test_every_schema_has_its_file():
    names = [f"schema_{m.version:04}.db.gz" for m in migrations.MIGRATIONS]
    assert [path.name for path in FIXTURES] == names


def test_a_copy_opens_is_migrated_and_verifies(released):
    path, _ = released
    with Ledger.open(path, clock=Fixed()) as ledger:
        assert ledger.schema_version == migrations.SCHEMA_VERSION
        report = verify(ledger)
        assert report.problems == report.notices == ()
        assert report.checked["evidence"] == report.checked["claims"] == 6
        assert report.checked["retractions"] == report.checked["extractions"] == 2
        with ledger.read() as tx:
            ns = tx.namespace("alice")
            items = [item for _, item in evidence.scan(tx, ns)]
            held = claims.list_claims(tx, ns, subject="ALICE", as_of=Fixed().now())
            recorded = tx.connection.execute("SELECT version FROM migrations").fetchall()
        assert [row[0] for row in recorded] == list(range(1, migrations.SCHEMA_VERSION + 1))
    assert [item.content for item in items] == [f"I moved to city {n} \0 é 👩‍👧" for n in (0, 1, 3)]
    assert [item.metadata for item in items] == [{"n": n} for n in (0, 1, 3)]
    assert [claim.object for claim in held] == ["city 3"]


def test_a_copy_goes_on_being_written(released):
    path, _ = released
    with Ledger.open(path, clock=Fixed()) as ledger:
        with ledger.write() as tx:
            (added,) = evidence.add(tx, tx.namespace("alice"), [CheckedDraft("new")])
            assert added.created
        export(ledger, "alice", path.with_name("x.jsonl"))
        assert load(ledger, "carol", path.with_name("x.jsonl")).created == 4
        assert verify(ledger).ok


def test_a_copy_is_read_without_a_change(released):
    path, version = released
    before = path.read_bytes()
    if version == migrations.SCHEMA_VERSION:
        with Ledger.open(path, clock=Fixed(), read_only=True) as ledger:
            assert verify(ledger).ok
    else:
        with pytest.raises(LedgerVersionError, match="open it for writing once"):
            Ledger.open(path, clock=Fixed(), read_only=True)
    assert path.read_bytes() == before
