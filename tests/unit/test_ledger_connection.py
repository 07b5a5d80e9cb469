import shutil
import sqlite3
import threading
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from evicortex.errors import (
    ClosedError,
    CorruptLedgerError,
    InputError,
    LedgerBusyError,
    LedgerError,
    NamespaceError,
    NotALedgerError,
    ReadOnlyError,
)
from evicortex.ledger import Ledger, LedgerOptions, migrations


class Ticking:
    def __init__(self):
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        self.moment += timedelta(seconds=1)
        return self.moment


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def ledger(path):
    with Ledger.open(path, clock=Ticking()) as opened:
        yield opened


def names(tx):
    return [ns.name for ns in tx.namespaces()]


def test_new_file_is_marked_as_a_ledger(path):
    with Ledger.open(path, clock=Ticking()) as ledger:
        assert ledger.schema_version == migrations.SCHEMA_VERSION
        assert ledger.sqlite_version == apsw.sqlite_lib_version()
        assert ledger.path == path
        assert not ledger.read_only
    header = path.read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == migrations.APPLICATION_ID
    assert int.from_bytes(header[60:64], "big") == migrations.SCHEMA_VERSION
    with Ledger.open(str(path), clock=Ticking()) as ledger:
        assert ledger.schema_version == migrations.SCHEMA_VERSION


def test_empty_file_becomes_a_ledger(path):
    path.touch()
    with Ledger.open(path, clock=Ticking()) as ledger, ledger.read() as tx:
        assert tx.namespaces() == ()


def test_creation_that_died_before_its_migration_is_taken_up_again(path):
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.close()
    assert path.stat().st_size > 0
    with Ledger.open(path, clock=Ticking()) as ledger:
        assert ledger.schema_version == migrations.SCHEMA_VERSION


@pytest.mark.parametrize(("level", "value"), [("FULL", 2), ("NORMAL", 1)])
def test_every_connection_has_the_pragmas(path, level, value):
    options = LedgerOptions(synchronous=level, busy_timeout=7)
    with Ledger.open(path, clock=Ticking(), options=options) as ledger:
        with ledger.read() as reading, ledger.write() as writing:
            for connection in (reading.connection, writing.connection):
                assert connection.pragma("foreign_keys") == 1
                assert connection.pragma("secure_delete") == 1
                assert connection.pragma("synchronous") == value
                assert connection.pragma("busy_timeout") == 7000
                assert connection.pragma("temp_store") == 2
        assert ledger.writer.pragma("journal_mode") == "wal"


@pytest.mark.parametrize(
    "wrong",
    [{"synchronous": "OFF"}, {"busy_timeout": -1}, {"checkpoint_timeout": -0.5}],
)
def test_impossible_options_are_refused(wrong):
    with pytest.raises(InputError):
        LedgerOptions(**wrong)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("kind", ["text", "sqlite", "sqlite_with_id", "sqlite_with_version"])
def test_other_files_are_refused_and_left_alone(path, kind, read_only):
    if kind == "text":
        path.write_text("a diary, not a database\n" * 100)
    else:
        connection = sqlite3.connect(path)
        if kind == "sqlite_with_id":
            connection.execute("PRAGMA application_id = 77")
        elif kind == "sqlite_with_version":
            connection.execute("PRAGMA user_version = 3")
        else:
            connection.execute("CREATE TABLE t (x)")
        connection.commit()
        connection.close()
    before = path.read_bytes()
    with pytest.raises(NotALedgerError):
        Ledger.open(path, clock=Ticking(), read_only=read_only)
    assert path.read_bytes() == before


def test_folders_and_missing_places_are_refused(tmp_path):
    with pytest.raises(NotALedgerError):
        Ledger.open(tmp_path, clock=Ticking())
    with pytest.raises(LedgerError, match="folder"):
        Ledger.open(tmp_path / "no" / "where.db", clock=Ticking())
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(tmp_path / "missing.db", clock=Ticking(), read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [":memory:", ""])
def test_a_ledger_needs_a_file(name):
    with pytest.raises(InputError):
        Ledger.open(name, clock=Ticking())


def test_damaged_file_is_a_typed_error(path):
    with Ledger.open(path, clock=Ticking()) as ledger, ledger.write() as tx:
        for number in range(2000):
            tx.namespace(f"namespace {number:040}", create=True)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(CorruptLedgerError):
        Ledger.open(path, clock=Ticking())


def test_a_failed_write_is_undone_wholly(ledger):
    def fail():
        with ledger.write() as tx:
            tx.namespace("a", create=True)
            raise KeyError("anything")

    with pytest.raises(KeyError):
        fail()
    with ledger.read() as tx:
        assert names(tx) == []
    with ledger.write() as tx:
        tx.namespace("b", create=True)
    with ledger.read() as tx:
        assert names(tx) == ["b"]


def test_a_read_is_one_snapshot(ledger):
    with ledger.read() as old:
        with ledger.write() as tx:
            tx.namespace("a", create=True)
        with ledger.read() as new:
            assert names(new) == ["a"]
        assert names(old) == []


def test_a_write_sees_itself_and_reads_do_not(ledger):
    with ledger.write() as tx:
        tx.namespace("a", create=True)
        assert names(tx) == ["a"]
        with ledger.read() as other:
            assert names(other) == []


def test_a_write_inside_a_write_is_refused(ledger):
    with ledger.write() as tx:
        with pytest.raises(LedgerError, match="inside"), ledger.write():
            pass
        tx.namespace("a", create=True)
    with ledger.read() as tx:
        assert names(tx) == ["a"]


def test_a_second_thread_waits_and_then_gives_up(path):
    options = LedgerOptions(busy_timeout=0.02)
    with Ledger.open(path, clock=Ticking(), options=options) as ledger:
        raised = []

        def write():
            try:
                with ledger.write():
                    raised.append(None)
            except LedgerBusyError as error:
                raised.append(error)

        with ledger.write():
            thread = threading.Thread(target=write)
            thread.start()
            thread.join()
        assert isinstance(raised[0], LedgerBusyError)
        write()
        assert raised[1] is None


def test_a_second_program_waits_and_then_gives_up(path):
    options = LedgerOptions(busy_timeout=0.02)
    with (
        Ledger.open(path, clock=Ticking(), options=options) as one,
        Ledger.open(path, clock=Ticking(), options=options) as two,
    ):
        with one.write() as tx:
            tx.namespace("one", create=True)
            with pytest.raises(LedgerBusyError), two.write():
                pass
        with two.write() as tx:
            assert names(tx) == ["one"]


def test_a_read_transaction_writes_nothing(ledger):
    with ledger.write() as tx:
        ns = tx.namespace("a", create=True)
    with ledger.read() as tx:
        with pytest.raises(ReadOnlyError):
            tx.namespace("b", create=True)
        with pytest.raises(ReadOnlyError):
            tx.bump_generation(ns)
        with pytest.raises(ReadOnlyError):
            tx.deferred("key", lambda: None)
    with pytest.raises(ReadOnlyError), ledger.read() as tx:
        tx.connection.execute("DELETE FROM namespaces")
    with ledger.read() as tx:
        assert names(tx) == ["a"]


def test_read_only_never_writes(path):
    with Ledger.open(path, clock=Ticking()) as ledger, ledger.write() as tx:
        tx.namespace("a", create=True)
    before = path.read_bytes()
    with Ledger.open(path, clock=Ticking(), read_only=True) as ledger:
        assert ledger.schema_version == migrations.SCHEMA_VERSION
        with ledger.read() as tx:
            assert names(tx) == ["a"]
        with pytest.raises(ReadOnlyError), ledger.write():
            pass
        with pytest.raises(ReadOnlyError):
            ledger.finish_purges()
    assert path.read_bytes() == before


def test_read_only_sees_what_only_the_log_has(path, tmp_path):
    copy = tmp_path / "copy.db"
    with Ledger.open(path, clock=Ticking()) as ledger:
        with ledger.write() as tx:
            tx.namespace("a", create=True)
        with Ledger.open(path, clock=Ticking(), read_only=True) as other, other.read() as tx:
            assert names(tx) == ["a"]
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    with Ledger.open(copy, clock=Ticking(), read_only=True) as ledger, ledger.read() as tx:
        assert names(tx) == ["a"]


def refuse_shared_memory(monkeypatch):
    """As on a medium that cannot be written, where SQLite cannot make its -shm file."""
    real = apsw.Connection

    def connect(name, *, flags):
        if "immutable" not in name:
            raise apsw.CantOpenError("unable to open database file")
        return real(name, flags=flags)

    monkeypatch.setattr(apsw, "Connection", connect)


def test_read_only_works_on_a_medium_that_cannot_be_written(path, monkeypatch):
    with Ledger.open(path, clock=Ticking()) as ledger, ledger.write() as tx:
        tx.namespace("a", create=True)
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    refuse_shared_memory(monkeypatch)
    with Ledger.open(path, clock=Ticking(), read_only=True) as ledger, ledger.read() as tx:
        assert names(tx) == ["a"]


def test_a_log_that_cannot_be_read_is_not_ignored(path, tmp_path, monkeypatch):
    copy = tmp_path / "copy.db"
    with Ledger.open(path, clock=Ticking()) as ledger:
        with ledger.write() as tx:
            tx.namespace("a", create=True)
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
    refuse_shared_memory(monkeypatch)
    with pytest.raises(LedgerError):
        Ledger.open(copy, clock=Ticking(), read_only=True)


def test_closed_is_closed(path):
    ledger = Ledger.open(path, clock=Ticking())
    ledger.close()
    ledger.close()
    with pytest.raises(ClosedError), ledger.read():
        pass
    with pytest.raises(ClosedError), ledger.write():
        pass
    with pytest.raises(ClosedError):
        ledger.finish_purges()
    with pytest.raises(ClosedError):
        _ = ledger.writer
    assert sorted(item.name for item in path.parent.iterdir()) == ["memory.db"]


def test_a_running_read_outlives_close(path):
    ledger = Ledger.open(path, clock=Ticking())
    with ledger.write() as tx:
        tx.namespace("a", create=True)
    with ledger.read() as tx:
        ledger.close()
        assert names(tx) == ["a"]
        connection = tx.connection
    with pytest.raises(apsw.ConnectionClosedError):
        connection.execute("SELECT 1")


def test_use_after_a_fork_is_refused(ledger):
    ledger._process += 1
    with pytest.raises(ClosedError, match="fork"), ledger.read():
        pass
    with pytest.raises(ClosedError, match="fork"), ledger.write():
        pass


def test_read_connections_are_reused_and_bounded(path):
    options = LedgerOptions(idle_readers=1)
    with Ledger.open(path, clock=Ticking(), options=options) as ledger:
        with ledger.read() as one, ledger.read() as two:
            kept, dropped = two.connection, one.connection
        with pytest.raises(apsw.ConnectionClosedError):
            dropped.execute("SELECT 1")
        with ledger.read() as tx:
            assert tx.connection is kept


def test_a_cursor_that_was_left_open_does_not_keep_its_snapshot(ledger):
    with ledger.write() as tx:
        for name in "abc":
            tx.namespace(name, create=True)
    with ledger.read() as tx:
        rows = tx.connection.execute("SELECT name FROM namespaces ORDER BY name")
        assert next(rows) == ("a",)
    with ledger.write() as tx:
        tx.namespace("d", create=True)
    frames, done = ledger.writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert (frames, done) == (0, 0)
    with pytest.raises((apsw.CursorClosedError, apsw.ConnectionClosedError)):
        next(rows)


def test_all_records_of_a_write_carry_one_time(ledger):
    with ledger.write() as tx:
        first = tx.recorded_at
    with ledger.write() as tx:
        assert tx.recorded_at == first + 1_000_000


@pytest.mark.parametrize(
    "name", ["", "  ", "\t", None, 7, "a\0b", "line\nbreak", "\ud800", "x" * 513, "\x7f"]
)
def test_impossible_namespaces_are_refused(ledger, name):
    with ledger.write() as tx, pytest.raises(NamespaceError):
        tx.namespace(name, create=True)
    with ledger.read() as tx, pytest.raises(NamespaceError):
        tx.namespace(name)


def test_namespaces_are_told_apart_exactly(ledger):
    with ledger.write() as tx:
        ids = {
            tx.namespace(name, create=True).namespace_id
            for name in ("a", "A", " a", "é", "e\u0301", "x" * 512)
        }
        assert len(ids) == 6
        again = tx.namespace("A", create=True)
        assert again.namespace_id in ids
        assert (again.next_position, again.generation) == (1, 0)
        assert tx.bump_generation(again) == 1
        assert tx.namespace("A").generation == 1
        assert tx.namespace("unknown") is None


class Recorder:
    def __init__(self, log, name, error=None):
        self.log, self.name, self.error = log, name, error

    def flush(self):
        if self.error:
            raise self.error
        self.log.append(self.name)


def test_deferred_is_flushed_once_in_order_before_the_commit(ledger):
    log = []
    with ledger.write() as tx:
        first = tx.deferred("b", lambda: Recorder(log, "b"))
        assert tx.deferred("b", lambda: Recorder(log, "other")) is first
        tx.deferred("a", lambda: Recorder(log, "a"))
        assert log == []
    assert log == ["b", "a"]


def test_a_deferred_failure_undoes_the_write(ledger):
    def fail():
        with ledger.write() as tx:
            tx.namespace("a", create=True)
            tx.deferred("x", lambda: Recorder([], "x", ValueError("late")))

    with pytest.raises(ValueError, match="late"):
        fail()
    with ledger.read() as tx:
        assert names(tx) == []


def test_sqlite_errors_of_the_caller_are_translated(ledger):
    with pytest.raises(LedgerError, match="full"), ledger.write():
        raise apsw.FullError("database or disk is full")
    with pytest.raises(apsw.SQLError), ledger.read() as tx:
        tx.connection.execute("SELECT nonsense")
