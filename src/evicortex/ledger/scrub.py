"""Zeroing the unallocated bytes of b-tree pages, where a purge would leave copies behind.

``secure_delete`` zeroes a cell when it is deleted, but SQLite also moves cells between pages
when it balances a b-tree, and leaves the old copies in the gap between a page's cell pointers
and its cells (``rebuildPage`` in btree.c). Deleting the row later zeroes the live cell only. The
gap is never read, so its bytes can be zeroed in place: see "B-tree Pages" in
https://www.sqlite.org/fileformat2.html. Pages are found by their type byte; the first byte of
every other kind of page belongs to a page number and is 0 below ``MAX_PAGES``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

MAX_PAGES = 0x02000000
"""From this many pages on (128 GiB of 4 KiB pages) the type byte alone is ambiguous."""

_FILE_HEADER = 100
_CHUNK_BYTES = 4 << 20
_LEAF_TYPES = (10, 13)
_INTERIOR_TYPES = (2, 5)
_Bytes = npt.NDArray[np.uint8]
_Ints = npt.NDArray[np.int64]


class Layout:
    """What the file header says: ``page_size`` bytes, ``usable`` of them, ``pages`` in all."""

    __slots__ = ("page_size", "pages", "usable")

    def __init__(self, header: bytes, size: int) -> None:
        raw = int.from_bytes(header[16:18], "big")
        self.page_size = 65536 if raw == 1 else raw
        self.usable = self.page_size - header[20]
        self.pages = size // self.page_size

    @property
    def plain(self) -> bool:
        """False when the pages cannot be told apart or carry an extension's own bytes."""
        return self.usable == self.page_size and self.pages < MAX_PAGES


def gaps(pages: _Bytes, *, first: bool) -> tuple[_Ints, _Ints]:
    """Return the half-open byte range of the gap of each page; empty for other pages.

    ``pages`` has the shape (count, page size); ``first`` says that row 0 is page 1 of the file,
    whose b-tree header follows the file header.
    """
    count, size = pages.shape
    header = np.zeros(count, dtype=np.int64)
    if first:
        header[0] = _FILE_HEADER
    rows = np.arange(count)
    kind = pages[rows, header]
    leaf = np.isin(kind, _LEAF_TYPES)
    interior = np.isin(kind, _INTERIOR_TYPES)
    cells = _uint16(pages, rows, header + 3)
    content = _uint16(pages, rows, header + 5)
    # A content offset of 0 stands for 65536; a page that holds no cell has it at its end.
    content[content == 0] = 65536
    start = header + np.where(leaf, 8, 12) + 2 * cells
    sound = (leaf | interior) & (start <= content) & (content <= size)
    return np.where(sound, start, 0), np.where(sound, content, 0)


def _uint16(pages: _Bytes, rows: _Ints, at: _Ints) -> _Ints:
    high = pages[rows, at].astype(np.int64)
    return (high << 8) | pages[rows, at + 1]


def dirty(pages: _Bytes, *, first: bool) -> Iterator[tuple[int, int, int]]:
    """Yield (row, start, stop) of every gap that holds a byte other than zero."""
    start, stop = gaps(pages, first=first)
    columns = np.arange(pages.shape[1])
    inside = (columns >= start[:, None]) & (columns < stop[:, None])
    for row in np.flatnonzero((inside & (pages != 0)).any(axis=1)).tolist():
        yield row, int(start[row]), int(stop[row])


def scrub(path: str) -> int | None:
    """Zero every gap of a database file; return how many pages were written.

    ``None``: the file's layout does not allow it (:attr:`Layout.plain`); vacuum it instead. The
    caller holds the write lock, has an empty write-ahead log, and makes every connection drop
    its page cache afterwards, since a cached page still has its old gap. The file is opened
    through SQLite's own file layer: closing it any other way would drop the process's locks.
    """
    flags: list[Any] = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]
    file = apsw.VFSFile("", path, flags)
    try:
        size = file.xFileSize()
        layout = Layout(file.xRead(_FILE_HEADER, 0), size)
        if not layout.plain:
            return None
        written = _scrub_pages(file, layout)
        if written:
            file.xSync(apsw.SQLITE_SYNC_FULL)
        return written
    finally:
        file.xClose()


def _scrub_pages(file: apsw.VFSFile, layout: Layout) -> int:
    step = max(1, _CHUNK_BYTES // layout.page_size)
    written = 0
    for page in range(0, layout.pages, step):
        count = min(step, layout.pages - page)
        offset = page * layout.page_size
        data = file.xRead(count * layout.page_size, offset)
        pages = np.frombuffer(data, dtype=np.uint8).reshape(count, layout.page_size)
        for row, start, stop in dirty(pages, first=page == 0):
            file.xWrite(bytes(stop - start), offset + row * layout.page_size + start)
            written += 1
    return written
