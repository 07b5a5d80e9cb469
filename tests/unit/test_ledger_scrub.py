import re

import apsw
import numpy as np
import pytest

from evicortex.ledger import scrub


def balanced(path, *, page_size=4096, keep_last=True):
    """Make a file whose pages hold copies of deleted cells, with secure_delete on."""
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", page_size)
    connection.pragma("secure_delete", True)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, body TEXT)")
    rng = np.random.default_rng(5)
    order = rng.permutation(4000).tolist()
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO t VALUES (?, ?, ?)",
        [(n, f"name{n * 7919 % 4000:05}", f"canary{n:06}x" * (1 + n % 40)) for n in order],
    )
    connection.execute("COMMIT")
    connection.execute("DELETE FROM t WHERE id % 3 = 0")
    return connection


def left(path):
    found = set(re.findall(rb"canary(\d{6})x", path.read_bytes()))
    return sum(int(number) % 3 == 0 for number in found)


@pytest.mark.parametrize("page_size", [512, 4096, 16384])
def test_deleted_text_is_in_no_gap_and_the_rest_is_whole(tmp_path, page_size):
    path = tmp_path / "a.db"
    connection = balanced(path, page_size=page_size)
    kept = list(connection.execute("SELECT * FROM t ORDER BY id"))
    connection.close()
    assert left(path) > 0
    assert scrub.scrub(str(path)) > 0
    assert left(path) == 0
    assert scrub.scrub(str(path)) == 0
    connection = apsw.Connection(str(path))
    assert connection.pragma("integrity_check") == "ok"
    assert list(connection.execute("SELECT * FROM t ORDER BY id")) == kept
    assert len(kept) == 2666
    connection.execute("INSERT INTO t VALUES (3, 'again', 'x')")
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


def test_reserved_bytes_are_another_extensions_and_left_alone(tmp_path):
    path = tmp_path / "a.db"
    balanced(path).close()
    data = bytearray(path.read_bytes())
    data[20] = 8
    path.write_bytes(data)
    assert scrub.scrub(str(path)) is None
    assert path.read_bytes() == data


def test_files_whose_pages_cannot_be_told_apart_are_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    balanced(path).close()
    monkeypatch.setattr(scrub, "MAX_PAGES", 3)
    before = path.read_bytes()
    assert scrub.scrub(str(path)) is None
    assert path.read_bytes() == before


def test_locks_of_open_connections_survive(tmp_path):
    path = tmp_path / "a.db"
    connection = balanced(path)
    other = apsw.Connection(str(path))
    connection.execute("BEGIN IMMEDIATE")
    assert scrub.scrub(str(path)) > 0
    with pytest.raises(apsw.BusyError):
        other.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")
    other.close()
    connection.close()


def page(kind, cells, content, size=512, header=0):
    data = np.full(size, 7, dtype=np.uint8)
    data[header] = kind
    data[header + 3 : header + 5] = divmod(cells, 256)
    data[header + 5 : header + 7] = divmod(content % 65536, 256)
    return data


@pytest.mark.parametrize(
    ("kind", "cells", "content", "expected"),
    [
        (13, 3, 400, (14, 400)),
        (10, 0, 512, (8, 512)),
        (5, 2, 100, (16, 100)),
        (2, 2, 16, (16, 16)),
        (0, 3, 400, (0, 0)),
        (7, 3, 400, (0, 0)),
        (13, 300, 400, (0, 0)),
        (13, 3, 600, (0, 0)),
        (13, 3, 0, (0, 0)),
    ],
)
def test_gap_of_a_page(kind, cells, content, expected):
    start, stop = scrub.gaps(page(kind, cells, content)[None, :], first=False)
    assert (int(start[0]), int(stop[0])) == expected


def test_gap_of_the_first_page_begins_after_the_file_header():
    start, stop = scrub.gaps(page(13, 1, 500, header=100)[None, :], first=True)
    assert (int(start[0]), int(stop[0])) == (110, 500)


def test_a_content_offset_of_zero_means_65536():
    start, stop = scrub.gaps(page(13, 2, 65536, size=65536)[None, :], first=False)
    assert (int(start[0]), int(stop[0])) == (12, 65536)
