"""The ledger's file: opening it, one writer at a time, many readers, closing.

SQLite in WAL mode through apsw. A write holds an in-process lock and ``BEGIN IMMEDIATE``, so
that writers queue inside a process and across processes; a read is one snapshot on a connection
of its own, so that it neither waits for a writer nor sees half of a write.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

import apsw

from evicortex.errors import (
    ClosedError,
    CorruptLedgerError,
    InputError,
    LedgerBusyError,
    LedgerError,
    LedgerVersionError,
    NotALedgerError,
    ReadOnlyError,
)
from evicortex.ledger import erasure, migrations
from evicortex.ledger.transaction import NamespaceRow, Transaction
from evicortex.protocols import Clock
from evicortex.validity import to_micros

__all__ = ["Ledger", "LedgerOptions", "NamespaceRow", "Transaction"]

_READ_ONLY_RETRY = (apsw.CantOpenError, apsw.ReadOnlyError)


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """How the file is used.

    ``busy_timeout`` seconds a write waits for another writer before it gives up with
    ``LedgerBusyError``. ``synchronous`` ``FULL`` keeps every acknowledged write through a power
    cut, ``NORMAL`` keeps it through a crash of the process only. ``checkpoint_timeout`` seconds
    a purge waits for readers that hold an old snapshot. ``idle_readers`` read connections are
    kept open for reuse.
    """

    busy_timeout: float = 30.0
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    checkpoint_timeout: float = 1.0
    idle_readers: int = 4

    def __post_init__(self) -> None:
        if self.synchronous not in ("FULL", "NORMAL"):
            raise InputError(f"synchronous is FULL or NORMAL, not {self.synchronous!r}")
        if self.busy_timeout < 0 or self.checkpoint_timeout < 0:
            raise InputError("timeouts are seconds from 0 up")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into the ledger's own."""
    try:
        yield
    except apsw.BusyError as error:
        raise LedgerBusyError(
            f"another writer held {path} for longer than the busy timeout; try again"
        ) from error
    except apsw.ReadOnlyError as error:
        raise ReadOnlyError(f"{path} cannot be written: {error}") from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise CorruptLedgerError(f"{path} is damaged: {error}; restore it or load an export") from (
            error
        )
    except (apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.PermissionsError) as error:
        raise LedgerError(f"{path} cannot be used: {error}") from error


class Ledger:
    """One open ledger file; safe to share between threads, not across a fork."""

    def __init__(
        self, path: Path, clock: Clock, options: LedgerOptions, *, read_only: bool
    ) -> None:
        self.path = path
        self.clock = clock
        self.options = options
        self.read_only = read_only
        self.schema_version = 0
        self._immutable = False
        self._process = os.getpid()
        self._write_lock = threading.RLock()
        self._writing = False
        self._writer: apsw.Connection | None = None
        self._pool_lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Clock,
        options: LedgerOptions | None = None,
        read_only: bool = False,
    ) -> Ledger:
        """Open a ledger; a missing or empty file becomes one unless ``read_only``.

        An older file is migrated (not when ``read_only``), and a purge whose proof had to wait
        for a reader is finished if it can be.

        Raises:
            NotALedgerError: some other file.
            LedgerVersionError: written by a newer program, or by an older one and ``read_only``.
            LedgerBusyError: another process holds the write lock.
            CorruptLedgerError: the file is damaged.
            LedgerError: the file or its folder is missing or cannot be used.
        """
        if os.fspath(path) in ("", ":memory:"):
            raise InputError("a ledger is a file: several connections share it; give a path")
        ledger = cls(Path(path).absolute(), clock, options or LedgerOptions(), read_only=read_only)
        try:
            with _translated(ledger.path):
                ledger._prepare()
        except BaseException:
            ledger.close()
            raise
        return ledger

    @property
    def sqlite_version(self) -> str:
        """The version of the SQLite library in use."""
        return apsw.sqlite_lib_version()

    def _prepare(self) -> None:
        if self.path.is_dir():
            raise NotALedgerError(f"{self.path} is a folder; name a file")
        if self.read_only:
            self._prepare_reader()
        else:
            self._prepare_writer()

    def _prepare_writer(self) -> None:
        if not self.path.parent.is_dir():
            raise LedgerError(f"the folder {self.path.parent} does not exist; make it first")
        self._writer = self._connect_writer()
        self.schema_version = migrations.migrate(
            self._writer, str(self.path), applied_at=to_micros(self.clock.now())
        )
        if erasure.pending(self._writer):
            self._erase(0)

    def _connect_writer(self) -> apsw.Connection:
        connection = apsw.Connection(
            str(self.path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        )
        try:
            connection.set_busy_timeout(self._busy_ms)
            # Before anything is written: the file may be somebody else's.
            migrations.state(connection, str(self.path))
            connection.pragma("journal_mode", "wal")
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare_reader(self) -> None:
        if not self.path.is_file():
            raise LedgerError(f"there is no ledger at {self.path}")
        try:
            connection = self._connect_reader()
        except apsw.NotADBError as error:
            raise NotALedgerError(f"{self.path} is not a SQLite database") from error
        except _READ_ONLY_RETRY:
            # A WAL file on a medium that cannot be written has no shared-memory file; with no
            # log beside it the file itself is the whole truth and cannot change under us.
            if Path(f"{self.path}-wal").exists():
                raise
            self._immutable = True
            connection = self._connect_reader()
        self._idle.append(connection)
        self.schema_version = migrations.state(connection, str(self.path))
        if self.schema_version != migrations.SCHEMA_VERSION:
            raise LedgerVersionError(
                f"{self.path} has schema version {self.schema_version}, this program needs "
                f"{migrations.SCHEMA_VERSION}; open it for writing once"
            )

    @property
    def _busy_ms(self) -> int:
        return int(self.options.busy_timeout * 1000)

    def _connect_reader(self) -> apsw.Connection:
        if self._immutable:
            connection = apsw.Connection(
                f"{self.path.as_uri()}?immutable=1",
                flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
            )
        else:
            connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(self._busy_ms)
            self._configure(connection)
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: apsw.Connection) -> None:
        connection.pragma("foreign_keys", True)
        # The default differs between builds of SQLite; a purge relies on it.
        connection.pragma("secure_delete", True)
        connection.pragma("synchronous", self.options.synchronous)
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -32768)

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the ledger {self.path} was closed; open it again to use it")
        if os.getpid() != self._process:
            raise ClosedError("the ledger was opened before a fork; open it in the new process")

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Open the one write transaction; commit at the end of the block, or undo all of it.

        Raises:
            ReadOnlyError: the ledger is open read-only.
            LedgerBusyError: another thread or process held the lock beyond the busy timeout.
            ClosedError: the ledger was closed.
        """
        self._check_open()
        if self.read_only:
            raise ReadOnlyError(f"{self.path} is open read-only; open it for writing")
        with self._exclusive(), _translated(self.path):
            pending = yield from self._transact(self.writer)
            if pending:
                self._erase(0)

    def _transact(self, connection: apsw.Connection) -> Generator[Transaction, None, bool]:
        connection.execute("BEGIN IMMEDIATE")
        try:
            tx = Transaction(connection, writable=True, recorded_at=to_micros(self.clock.now()))
            pending = connection.execute("SELECT 1 FROM pending_purges LIMIT 1").fetchone()
            yield tx
            tx.finish()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return pending is not None

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if not self._write_lock.acquire(timeout=self.options.busy_timeout):
            raise LedgerBusyError(
                f"another thread held {self.path} for longer than the busy timeout; try again"
            )
        try:
            self._check_open()
            if self._writing:
                raise LedgerError("a write inside a write: pass the open transaction on")
            self._writing = True
            try:
                yield
            finally:
                self._writing = False
        finally:
            self._write_lock.release()

    @property
    def writer(self) -> apsw.Connection:
        """The one connection that writes."""
        if self._writer is None:
            raise ClosedError(f"the ledger {self.path} was closed; open it again to use it")
        return self._writer

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open one consistent snapshot; it never waits for a writer.

        Raises:
            ClosedError: the ledger was closed.
        """
        with _translated(self.path):
            connection = self._take_reader()
            try:
                connection.execute("BEGIN")
                # The snapshot begins with the first read, not with BEGIN.
                connection.execute("SELECT 1 FROM migrations LIMIT 1").fetchall()
                yield Transaction(connection, writable=False, recorded_at=0)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._give_back(connection)

    def _take_reader(self) -> apsw.Connection:
        with self._pool_lock:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        return self._connect_reader()

    def _give_back(self, connection: apsw.Connection) -> None:
        # A cursor that was not read to its end still holds the snapshot; closing lets go of it.
        free = connection.txn_state() == apsw.SQLITE_TXN_NONE
        with self._pool_lock:
            if free and not self._closed and len(self._idle) < self.options.idle_readers:
                self._idle.append(connection)
                return
        connection.close()

    def finish_purges(self) -> bool:
        """Erase what committed purges left in the files; return whether nothing is left.

        A reader that holds a snapshot older than a purge stops that: it is waited for
        ``checkpoint_timeout`` seconds, and tried again at the next write and the next open.

        Raises:
            ReadOnlyError: the ledger is open read-only.
        """
        self._check_open()
        if self.read_only:
            raise ReadOnlyError(f"{self.path} is open read-only; open it for writing")
        with self._exclusive(), _translated(self.path):
            return self._erase(self.options.checkpoint_timeout)

    def _erase(self, wait: float) -> bool:
        self.writer.set_busy_timeout(int(wait * 1000))
        try:
            done = erasure.erase(self.writer, str(self.path))
        finally:
            self.writer.set_busy_timeout(self._busy_ms)
        if done:
            # Its page cache still holds what was just zeroed in the file.
            stale, self._writer = self.writer, self._connect_writer()
            stale.close()
        return done

    def close(self) -> None:
        """Close every idle connection; a running read closes its own at its end.

        Waits for a running write. Closing twice is fine.
        """
        with self._write_lock:
            with self._pool_lock:
                self._closed = True
                idle, self._idle = self._idle, []
            for connection in idle:
                connection.close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
