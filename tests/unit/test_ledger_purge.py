import json
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from evicortex.errors import NotFoundError, ReadOnlyError, SelectorError
from evicortex.ledger import (
    Ledger,
    LedgerOptions,
    audit,
    claims,
    erasure,
    evidence,
    extractions,
    keys,
    purge,
    scrub,
)
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.purge import Selector
from evicortex.ledger.verify import verify
from evicortex.types import ClaimDraft, Tombstone


class Ticking:
    def __init__(self):
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        self.moment += timedelta(seconds=1)
        return self.moment


DRAFTS = [
    CheckedDraft("one", "Ann", "user", "s1", "chat"),
    CheckedDraft("two", "Bob", "user", "s1", "mail"),
    CheckedDraft("three", "Ann", "user", "s2", "mail"),
    CheckedDraft("four", "Cid", "user", "s3", "chat"),
    CheckedDraft("five"),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


@pytest.fixture
def ledger(path):
    options = LedgerOptions(synchronous="NORMAL", checkpoint_timeout=0)
    with Ledger.open(path, clock=Ticking(), options=options) as opened:
        for name in ("alice", "bob"):
            with opened.write() as tx:
                evidence.add(tx, tx.namespace(name, create=True), DRAFTS)
        yield opened


def select(ledger, name="alice", **selector):
    with ledger.read() as tx:
        rows = purge.select(tx, tx.namespace(name), Selector(**selector))
    return [keys.position(row) for row in rows]


def remove(ledger, *positions, name="alice"):
    with ledger.write() as tx:
        ns = tx.namespace(name)
        return purge.remove(tx, ns, [keys.row_id(ns.namespace_id, at) for at in positions])


def rows(ledger, sql, *values):
    with ledger.read() as tx:
        return list(tx.connection.execute(sql, values))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"session": "s", "actor": "a"},
        {"evidence_id": "e", "everything": True},
        {"evidence_id": "e", "session": "s", "source": "x", "actor": "a", "everything": True},
        {"everything": False},
    ],
)
def test_exactly_one_selector_is_asked_for(fields):
    with pytest.raises(SelectorError, match="exactly one"):
        Selector(**fields)


@pytest.mark.parametrize(
    ("selector", "positions"),
    [
        ({"session": "s1"}, [1, 2]),
        ({"actor": "Ann"}, [1, 3]),
        ({"source": "mail"}, [2, 3]),
        ({"everything": True}, [1, 2, 3, 4, 5]),
        ({"session": "unknown"}, []),
        ({"actor": ""}, []),
        ({"source": "x\ud800"}, []),
        ({"session": "%"}, []),
    ],
)
def test_selectors_choose_by_exact_value(ledger, selector, positions):
    assert select(ledger, **selector) == positions


def test_one_evidence_is_chosen_by_id(ledger):
    ((wanted,),) = rows(
        ledger, "SELECT evidence_id FROM evidence WHERE row_id = ?", keys.row_id(1, 2)
    )
    assert select(ledger, evidence_id=wanted) == [2]
    with pytest.raises(NotFoundError):
        select(ledger, "bob", evidence_id=wanted)
    remove(ledger, 2)
    with pytest.raises(NotFoundError):
        select(ledger, evidence_id=wanted)


def test_what_was_purged_leaves_ids_and_digests(ledger):
    stored = rows(
        ledger, "SELECT evidence_id, digest FROM evidence WHERE namespace_id = 1 ORDER BY row_id"
    )
    removed = remove(ledger, 3, 1)
    gone = [stored[0], stored[2]]
    assert removed.row_ids == (keys.row_id(1, 1), keys.row_id(1, 3))
    assert removed.evidence_ids == tuple(row[0] for row in gone)
    assert removed.tombstones == tuple(Tombstone(row[0], row[1], 2) for row in gone)
    with ledger.read() as tx:
        entry = list(audit.entries(tx, tx.namespace("alice")))[1]
    assert entry.event == "purge"
    assert json.loads(entry.payload) == {
        "claims": [],
        "evidence": [[1, *gone[0]], [3, *gone[1]]],
    }
    assert [
        row[0]
        for row in rows(
            ledger, "SELECT content FROM evidence WHERE namespace_id = 1 ORDER BY row_id"
        )
    ] == [
        "two",
        "four",
        "five",
    ]
    assert verify(ledger).ok


def test_names_go_with_their_last_evidence(ledger):
    remove(ledger, 1)
    assert {row[0] for row in rows(ledger, "SELECT name FROM actors WHERE namespace_id = 1")} == {
        "Ann",
        "Bob",
        "Cid",
    }
    remove(ledger, 3, 4)
    assert rows(ledger, "SELECT name FROM actors WHERE namespace_id = 1") == [("Bob",)]
    assert rows(ledger, "SELECT name FROM sessions WHERE namespace_id = 1") == [("s1",)]


def test_other_namespaces_keep_every_byte(ledger):
    before = rows(ledger, "SELECT * FROM evidence WHERE namespace_id = 2 ORDER BY row_id")
    remove(ledger, 1, 2, 3, 4, 5)
    assert purge.finish(ledger)
    assert rows(ledger, "SELECT * FROM evidence WHERE namespace_id = 2 ORDER BY row_id") == before
    assert rows(ledger, "SELECT * FROM evidence WHERE namespace_id = 1") == []
    assert verify(ledger).ok


def test_rows_of_other_namespaces_and_unknown_rows_are_ignored(ledger):
    with ledger.write() as tx:
        removed = purge.remove(tx, tx.namespace("alice"), [keys.row_id(2, 1), keys.row_id(1, 99)])
    assert removed == ((), (), (), (), ())
    assert rows(ledger, "SELECT count(*) FROM evidence, pending_purges") == [(0,)]
    assert rows(ledger, "SELECT count(*) FROM evidence") == [(10,)]
    assert rows(ledger, "SELECT generation FROM namespaces") == [(0,), (0,)]


def test_caches_of_the_namespace_are_told(ledger):
    remove(ledger, 1)
    assert rows(ledger, "SELECT generation FROM namespaces ORDER BY 1") == [(0,), (1,)]


def test_a_read_removes_nothing(ledger):
    with ledger.read() as tx, pytest.raises(ReadOnlyError):
        purge.remove(tx, tx.namespace("alice"), [keys.row_id(1, 1)])


def test_claims_go_with_their_evidence_and_what_they_closed_is_held_again(ledger):
    with ledger.write() as tx:
        ns = tx.namespace("alice")
        stored = evidence.fetch(tx, ns, [keys.row_id(1, 1), keys.row_id(1, 2)])
        first, second = stored.values()
        (old,) = claims.add(
            tx,
            ns,
            first,
            [ClaimDraft("Ann", "lives_in", "Rome", valid_from="2020-01-01T00:00:00Z")],
        )
        (new,) = claims.add(
            tx,
            ns,
            second,
            [ClaimDraft("Ann", "lives_in", "Oslo", valid_from="2021-01-01T00:00:00Z")],
        )
        (other,) = claims.add(tx, ns, second, [ClaimDraft("Ann", "likes", "tea")])
        claims.retract(tx, ns, other, reason="a private reason")
        extractions.add(
            tx, ns, second, extractor_id="x", extractor_revision="1", claim_ids=[new, other]
        )
    removed = remove(ledger, 2)
    assert set(removed.claim_ids) == {new, other}
    assert removed.reinstated == (old,)
    for table in ("retractions", "extractions", "extraction_claims"):
        assert rows(ledger, f"SELECT count(*) FROM {table}") == [(0,)]
    assert rows(ledger, "SELECT claim_id FROM claims") == [(old,)]
    assert rows(ledger, "SELECT claim_id FROM claim_evidence") == [(old,)]
    assert verify(ledger).ok


def test_finish_cuts_the_log_and_drops_the_mark(ledger, path):
    remove(ledger, 1)
    assert rows(ledger, "SELECT namespace_id FROM pending_purges") == [(1,)]
    assert purge.finish(ledger)
    assert rows(ledger, "SELECT namespace_id FROM pending_purges") == []
    assert purge.finish(ledger)


def test_a_reader_with_an_old_snapshot_delays_the_end(ledger, path):
    with ledger.read() as old:
        remove(ledger, 1)
        assert not purge.finish(ledger)
        with ledger.write() as tx:
            tx.namespace("carol", create=True)
        assert rows(ledger, "SELECT count(*) FROM pending_purges") == [(1,)]
        assert old.connection.execute("SELECT count(*) FROM evidence").get == 10
    assert purge.finish(ledger)


def test_the_next_write_finishes(ledger):
    with ledger.read():
        remove(ledger, 1)
        assert not purge.finish(ledger)
    with ledger.write() as tx:
        tx.namespace("carol", create=True)
    assert rows(ledger, "SELECT count(*) FROM pending_purges") == [(0,)]


def test_the_next_open_finishes(ledger, path):
    with ledger.read():
        remove(ledger, 1)
        assert not purge.finish(ledger)
    with Ledger.open(path, clock=Ticking()) as other:
        assert rows(other, "SELECT count(*) FROM pending_purges") == [(0,)]


def test_a_writer_in_between_delays_the_end(ledger, path, monkeypatch):
    remove(ledger, 1)
    monkeypatch.setattr(erasure, "_log_size", lambda _: 32)
    assert not purge.finish(ledger)
    monkeypatch.undo()
    assert purge.finish(ledger)


def test_a_running_writer_of_another_program_delays_the_end(ledger, path):
    remove(ledger, 1)
    with Ledger.open(path, clock=Ticking()) as other:
        remove(ledger, 2)
        with other.write():
            assert not purge.finish(ledger)
    assert purge.finish(ledger)


def test_a_file_that_cannot_be_scrubbed_is_vacuumed(ledger, monkeypatch):
    remove(ledger, 1, 2)
    monkeypatch.setattr(scrub, "MAX_PAGES", 1)
    assert purge.finish(ledger)
    assert rows(ledger, "SELECT count(*) FROM pending_purges") == [(0,)]
    assert verify(ledger).ok
    assert rows(ledger, "SELECT count(*) FROM evidence") == [(8,)]


def test_a_reader_that_comes_before_the_vacuum_delays_the_end(ledger, monkeypatch):
    remove(ledger, 1, 2)
    with ExitStack() as reading:

        def arrive(_):
            reading.enter_context(ledger.read())

        monkeypatch.setattr(scrub, "scrub", arrive)
        assert not purge.finish(ledger)
        monkeypatch.undo()
        assert rows(ledger, "SELECT count(*) FROM pending_purges") == [(1,)]
    assert purge.finish(ledger)
    assert verify(ledger).ok
