"""Erasing what FTS5 itself leaves of purged terms: the separators between its leaf pages.

With ``secure-delete`` FTS5 takes the entries of a deleted row out of its leaf pages, but the
b-tree that finds the pages (``lexical_idx``) keeps, for each page, the beginning of the term
that was first on it when it was written, or that whole term. A separator need only lie after
every term of the pages before and not after the first term of its own page, so one that is no
beginning of that first term gives way to it.

The formats are those of SQLite's ``fts5_index.c`` ("Leaf Pages", ``FTS5_SEGMENT_ROWID``, and
what its integrity check asks of a separator). What was read is checked before it is used; a
segment that reads otherwise is built anew by FTS5 itself.
"""

from __future__ import annotations

import apsw

_SEGMENT_SHIFT = 37
"""A leaf's row id in ``lexical_data`` is ``segment << 37 | page``."""

_SEPARATORS = (
    "SELECT i.segid, i.term, d.block FROM lexical_idx i LEFT JOIN lexical_data d "
    f"ON d.id = (i.segid << {_SEGMENT_SHIFT}) + (i.pgno >> 1) ORDER BY i.segid DESC, i.term DESC"
)


def erase_separators(connection: apsw.Connection) -> int:
    """Take out every separator that its page's first term does not begin with; return how many.

    To be called in the transaction that deleted the rows. Reads every leaf page of the index, one
    at a time.
    """
    connection.execute("INSERT INTO lexical(lexical) VALUES ('flush')")
    renewed: list[tuple[bytes, int, bytes]] = []
    dropped: list[tuple[int, bytes]] = []
    if not _survey(connection, renewed, dropped):
        connection.execute("INSERT INTO lexical(lexical) VALUES ('rebuild')")
    else:
        connection.executemany(
            "UPDATE lexical_idx SET term = ? WHERE segid = ? AND term = ?", renewed
        )
        connection.executemany("DELETE FROM lexical_idx WHERE segid = ? AND term = ?", dropped)
    return len(renewed) + len(dropped)


def _survey(
    connection: apsw.Connection,
    renewed: list[tuple[bytes, int, bytes]],
    dropped: list[tuple[int, bytes]],
) -> bool:
    """Collect what to change; return false when a segment does not read as it should."""
    following: tuple[int, bytes] = (0, b"")
    # Backwards, so that each separator can be held against the one after it.
    for segment, separator, block in connection.execute(_SEPARATORS):
        if block is None:
            # A merge under way has taken the page already; readers skip its separator too.
            dropped.append((segment, separator))
            continue
        first = first_term(block)
        if first < separator or (segment == following[0] and first >= following[1]):
            return False
        if not first.startswith(separator):
            renewed.append((first, segment, separator))
        following = segment, separator
    return True


def first_term(block: bytes) -> bytes:
    """Return the first term of a leaf page with its index prefix byte; empty when it has none.

    Bytes 2 and 3 tell where the page index begins, whose first varint tells where the first
    term is: a varint with its length, then its bytes, never shortened by a common prefix.
    """
    index = int.from_bytes(block[2:4], "big")
    if not 4 <= index < len(block):
        return b""
    at, _ = _varint(block, index)
    length, start = _varint(block, at)
    return block[start : start + length]


def _varint(block: bytes, at: int) -> tuple[int, int]:
    """Return the SQLite varint at an offset, and the offset behind it; it has at most 9 bytes."""
    value = 0
    for end in range(at, min(at + 9, len(block))):
        value = value << 7 | block[end] & 0x7F
        if block[end] < 0x80:
            return value, end + 1
    return 0, len(block)
