import random

import apsw
import pytest

from evicortex.ledger import migrations, segments


@pytest.fixture
def connection():
    opened = apsw.Connection(":memory:")
    opened.pragma("secure_delete", True)
    migrations.migrate(opened, "memory", applied_at=0)
    yield opened
    opened.close()


def fill(connection, rows, seed=1, words=30):
    chance = random.Random(seed)
    connection.execute("BEGIN")
    for row in range(1, rows + 1):
        terms = [f"{chance.getrandbits(64):016x}é" for _ in range(words)]
        connection.execute("INSERT INTO lexical VALUES ('n1', ?)", (" ".join(terms),))
        if row % 100 == 0:
            connection.execute("COMMIT")
            connection.execute("BEGIN")
    connection.execute("COMMIT")


def separators(connection):
    return [bytes(row[0]) for row in connection.execute("SELECT term FROM lexical_idx")]


def living(connection):
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, lexical, row)"
    )
    return sorted(b"0" + row[0].encode() for row in connection.execute("SELECT term FROM words"))


def foreign(connection):
    """Return the separators that no living term begins with."""
    terms = living(connection)
    return [s for s in separators(connection) if not any(t.startswith(s) for t in terms)]


def delete(connection, condition):
    connection.execute("BEGIN")
    connection.execute(f"DELETE FROM lexical WHERE {condition}")
    replaced = segments.erase_separators(connection)
    connection.execute("COMMIT")
    connection.execute("INSERT INTO lexical(lexical) VALUES ('integrity-check')")
    return replaced


@pytest.mark.parametrize("condition", ["rowid % 2", "rowid % 7", "rowid < 450", "rowid > 20"])
def test_separators_begin_living_terms_and_everything_is_found(connection, condition):
    fill(connection, 500)
    rows = dict(connection.execute("SELECT rowid, terms FROM lexical"))
    assert delete(connection, condition) > 0
    assert foreign(connection) == []
    kept = {row for (row,) in connection.execute("SELECT rowid FROM lexical")}
    assert 0 < len(kept) < 500
    for row, terms in rows.items():
        for term in terms.split()[:3]:
            found = connection.execute(
                "SELECT rowid FROM lexical WHERE lexical MATCH ?", (f'terms : "{term}"',)
            ).get
            assert found == (row if row in kept else None)
    fill(connection, 100, seed=2)
    assert delete(connection, "rowid % 3") >= 0
    assert foreign(connection) == []


def test_without_it_separators_tell_of_deleted_terms(connection):
    fill(connection, 500)
    connection.execute("DELETE FROM lexical WHERE rowid % 2")
    assert foreign(connection) != []


def test_nothing_deleted_nothing_replaced(connection):
    assert segments.erase_separators(connection) == 0
    fill(connection, 300)
    connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")
    before = separators(connection)
    assert len(before) > 10
    assert segments.erase_separators(connection) == 0
    assert separators(connection) == before


def test_an_emptied_index_keeps_nothing(connection):
    fill(connection, 300)
    delete(connection, "true")
    assert set(separators(connection)) <= {b""}


@pytest.mark.parametrize("term", [b"0" + b"\xff" * 3, b"0~"])
def test_a_separator_that_reads_otherwise_has_the_index_built_anew(connection, term):
    fill(connection, 300)
    connection.execute("DELETE FROM lexical WHERE rowid % 2")
    connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")
    segment, last = connection.execute("SELECT segid, max(term) FROM lexical_idx").get
    connection.execute(
        "UPDATE lexical_idx SET term = ? WHERE segid = ? AND term = ?", (term, segment, last)
    )
    segments.erase_separators(connection)
    connection.execute("INSERT INTO lexical(lexical) VALUES ('integrity-check')")
    assert foreign(connection) == []
    assert connection.execute("SELECT count(*) FROM lexical").get == 150


def test_two_separators_in_the_wrong_order_have_the_index_built_anew(connection):
    fill(connection, 300)
    connection.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")
    rows = connection.execute("SELECT segid, term FROM lexical_idx ORDER BY term").fetchall()
    (segment, first), (_, second) = rows[3:5]
    connection.execute(
        "UPDATE lexical_idx SET term = ? WHERE segid = ? AND term = ?",
        (bytes(first) + b"\0", segment, bytes(second)),
    )
    segments.erase_separators(connection)
    connection.execute("INSERT INTO lexical(lexical) VALUES ('integrity-check')")
    assert foreign(connection) == []


def leaf(*, index=b"\x04", body=b"\x050abcd\x01"):
    return b"\0\0" + (4 + len(body)).to_bytes(2, "big") + body + index


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (leaf(), b"0abcd"),
        (leaf(body=b"xx\x030zz", index=b"\x06"), b"0zz"),
        (leaf(body=b"\x81\x00" + b"0" + b"y" * 127 + b"\x01"), b"0" + b"y" * 127),
        (leaf(index=b""), b""),
        (b"", b""),
        (b"\0\0\0\0\1", b""),
        (leaf(index=b"\xff" * 12), b""),
        (leaf(index=b"\xff"), b""),
        (leaf(index=b"\x7f"), b""),
    ],
)
def test_first_term_of_a_leaf(block, expected):
    assert segments.first_term(block) == expected
