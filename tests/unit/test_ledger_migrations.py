import apsw
import pytest

from evicortex.errors import CorruptLedgerError, LedgerVersionError
from evicortex.ledger import Ledger, migrations
from evicortex.ledger.migrations import Migration


class Fixed:
    def now(self):
        from datetime import UTC, datetime

        return datetime(2026, 1, 1, tzinfo=UTC)


NEXT = migrations.SCHEMA_VERSION + 1


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "memory.db"
    Ledger.open(path, clock=Fixed()).close()
    return path


def extend(monkeypatch, sql):
    added = Migration(NEXT, "more", sql)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, added))
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", NEXT)
    return added


def edit(path, sql, *values):
    connection = apsw.Connection(str(path))
    connection.execute(sql, values)
    connection.close()


def test_versions_count_up_from_one():
    assert [m.version for m in migrations.MIGRATIONS] == list(
        range(1, migrations.SCHEMA_VERSION + 1)
    )
    assert len({m.name for m in migrations.MIGRATIONS}) == migrations.SCHEMA_VERSION


def test_each_migration_has_its_record(path):
    with Ledger.open(path, clock=Fixed()) as ledger, ledger.read() as tx:
        rows = list(
            tx.connection.execute("SELECT version, name, digest, applied_at FROM migrations")
        )
    assert rows == [(m.version, m.name, m.digest, 1767225600000000) for m in migrations.MIGRATIONS]


def test_every_table_is_strict_and_keyed():
    connection = apsw.Connection(":memory:")
    migrations.migrate(connection, "x", applied_at=0)
    own = [
        row
        for row in connection.execute("PRAGMA table_list")
        if row[0] == "main" and row[2] == "table" and not row[1].startswith("sqlite_")
    ]
    assert {row[1] for row in own} == {
        "actors", "audit", "claim_evidence", "claims", "evidence", "extraction_claims",
        "extractions", "migrations", "namespaces", "pending_purges", "retractions",
        "sentence_profiles", "sentence_vectors", "sessions", "time_mentions", "vector_profiles",
        "vector_versions", "vectors", "watermarks",
    }  # fmt: skip
    assert all(row[5] == 1 for row in own)
    assert connection.execute("SELECT v FROM lexical_config WHERE k = 'secure-delete'").get == 1
    connection.close()


def test_a_file_of_a_newer_program_is_refused(path):
    edit(path, f"PRAGMA user_version = {NEXT}")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(LedgerVersionError, match="upgrade"):
            Ledger.open(path, clock=Fixed(), read_only=read_only)
    assert path.read_bytes() == before


def test_an_older_file_is_migrated_when_it_may_be_written(path, monkeypatch):
    added = extend(
        monkeypatch, "CREATE TABLE more (x INTEGER) STRICT; INSERT INTO more VALUES (1);"
    )
    with pytest.raises(LedgerVersionError, match="open it for writing once"):
        Ledger.open(path, clock=Fixed(), read_only=True)
    with Ledger.open(path, clock=Fixed()) as ledger:
        assert ledger.schema_version == NEXT
        with ledger.read() as tx:
            assert tx.connection.execute("SELECT x FROM more").get == 1
            record = tx.connection.execute(
                "SELECT name, digest FROM migrations WHERE version = ?", (NEXT,)
            ).get
    assert record == ("more", added.digest)
    with Ledger.open(path, clock=Fixed(), read_only=True) as ledger:
        assert ledger.schema_version == NEXT


def test_a_migration_that_fails_leaves_the_file_as_it_was(path, monkeypatch):
    with monkeypatch.context() as patch:
        extend(patch, "CREATE TABLE more (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1);")
        with pytest.raises(apsw.SQLError):
            Ledger.open(path, clock=Fixed())
    with Ledger.open(path, clock=Fixed()) as ledger, ledger.read() as tx:
        assert ledger.schema_version == NEXT - 1
        assert not tx.connection.table_exists("main", "more")


def test_a_second_program_that_migrated_first_is_noticed(path, monkeypatch):
    extend(monkeypatch, "CREATE TABLE more (x INTEGER) STRICT;")
    one, two = apsw.Connection(str(path)), apsw.Connection(str(path))
    real = migrations.state
    raced = []

    def state(connection, name):
        version = real(connection, name)
        if connection is two and not raced:
            raced.append(version)
            migrations.migrate(one, name, applied_at=5)
        return version

    monkeypatch.setattr(migrations, "state", state)
    assert migrations.migrate(two, str(path), applied_at=6) == NEXT
    assert raced == [NEXT - 1]
    assert two.execute("SELECT applied_at FROM migrations WHERE version = ?", (NEXT,)).get == 5
    one.close()
    two.close()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE migrations SET digest = 'other' WHERE version = 1",
        "UPDATE migrations SET name = 'other' WHERE version = 1",
        "DELETE FROM migrations WHERE version = 1",
        "INSERT INTO migrations VALUES (99, 'x', 'y', 0)",
    ],
)
def test_a_file_made_by_other_migrations_is_refused(path, sql):
    edit(path, sql)
    with pytest.raises(CorruptLedgerError, match="migrations"):
        Ledger.open(path, clock=Fixed())
