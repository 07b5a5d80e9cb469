"""Making a committed purge true of the files: log, free pages and page gaps.

A purge commits a marker together with its deletions. Until the marker is gone, old copies may
still lie in the write-ahead log or in the gaps of b-tree pages; whoever next writes or opens the
file tries again, so neither a reader with an old snapshot nor a crash can make it be forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw

from evicortex.ledger import scrub


def mark(connection: apsw.Connection, namespace_id: int, recorded_at: int) -> None:
    """Record, inside the purge's own transaction, that its bytes have yet to be erased."""
    connection.execute(
        "INSERT INTO pending_purges (namespace_id, recorded_at) VALUES (?, ?)",
        (namespace_id, recorded_at),
    )


def forget_samples(connection: apsw.Connection) -> None:
    """Delete the sample values that ``ANALYZE`` keeps, when somebody has run it on the file."""
    if connection.table_exists("main", "sqlite_stat4"):
        connection.execute("DELETE FROM sqlite_stat4")


def pending(connection: apsw.Connection) -> int:
    """Return how many purges wait for their bytes to be erased."""
    count: int = connection.execute("SELECT count(*) FROM pending_purges").get
    return count


def erase(connection: apsw.Connection, path: str) -> bool:
    """Erase what purges left behind; return whether nothing is left.

    Waits for readers as long as the connection's busy timeout says. Everybody's page cache may
    still hold old gaps afterwards: the commit here makes other connections drop theirs, and the
    caller closes this one.
    """
    marks = connection.execute("SELECT purge_id FROM pending_purges").fetchall()
    if not marks:
        return True
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("BEGIN IMMEDIATE")
    except (apsw.BusyError, apsw.LockedError):
        return False
    try:
        # Another process may have written between the two statements; its pages may carry gaps
        # into the log, where they cannot be zeroed in place.
        if _log_size(path) > 0:
            return False
        if scrub.scrub(path) is None:
            connection.execute("ROLLBACK")
            return _vacuum(connection, marks)
        connection.executemany("DELETE FROM pending_purges WHERE purge_id = ?", marks)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True


def _log_size(path: str) -> int:
    log = Path(f"{path}-wal")
    return log.stat().st_size if log.exists() else 0


def _vacuum(connection: apsw.Connection, marks: Sequence[apsw.SQLiteValues]) -> bool:
    try:
        connection.execute("VACUUM")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.executemany("DELETE FROM pending_purges WHERE purge_id = ?", marks)
    except (apsw.BusyError, apsw.LockedError):
        return False
    return True
