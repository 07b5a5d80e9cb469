import hashlib
import math
import threading
from datetime import UTC, datetime, timedelta

import pytest

from evicortex.errors import (
    ConflictError,
    InputError,
    InvalidTextError,
    NotFoundError,
    ReadOnlyError,
)
from evicortex.ledger import Ledger, LedgerOptions, evidence, keys
from evicortex.ledger.evidence import Added, CheckedDraft, Rejected, Restored
from evicortex.types import Authority

START = datetime(2026, 1, 1, tzinfo=UTC)


class Ticking:
    def __init__(self):
        self.moment = START

    def now(self):
        self.moment += timedelta(seconds=1)
        return self.moment


@pytest.fixture
def ledger(tmp_path):
    options = LedgerOptions(synchronous="NORMAL")
    with Ledger.open(tmp_path / "memory.db", clock=Ticking(), options=options) as opened:
        yield opened


def add(ledger, *drafts, namespace="alice"):
    with ledger.write() as tx:
        return evidence.add(tx, tx.namespace(namespace, create=True), drafts)


def read(ledger, evidence_id, namespace="alice"):
    with ledger.read() as tx:
        return evidence.get(tx, tx.namespace(namespace), evidence_id)


def count(ledger, table="evidence"):
    with ledger.read() as tx:
        return tx.connection.execute(f"SELECT count(*) FROM {table}").get


def test_every_field_comes_back(ledger):
    draft = CheckedDraft(
        content="I moved to Lisbon.",
        actor="Alice",
        role="user",
        session="s7",
        source="chat",
        external_id="D3:12",
        occurred_at=-62135596800000000,
        authority="tool",
        metadata={"b": [1, None, 2.5, {"x": "é"}], "a": True},
    )
    (added,) = add(ledger, draft)
    assert added.created
    stored = read(ledger, added.evidence_id)
    assert stored.evidence_id == added.evidence_id
    assert stored.namespace == "alice"
    assert stored.content == draft.content
    assert stored.digest == hashlib.sha256(b"I moved to Lisbon.").hexdigest() == added.digest
    assert (stored.actor, stored.role, stored.session, stored.source, stored.external_id) == (
        ("Alice", "user", "s7", "chat", "D3:12")
    )
    assert stored.occurred_at == datetime(1, 1, 1, tzinfo=UTC)
    assert stored.recorded_at.tzinfo is UTC
    assert START < stored.recorded_at < START + timedelta(seconds=10)
    assert stored.authority is Authority.TOOL
    assert stored.metadata == draft.metadata
    assert stored.position == 1


def test_missing_fields_come_back_as_none(ledger):
    (added,) = add(ledger, CheckedDraft("x"))
    stored = read(ledger, added.evidence_id)
    assert (stored.actor, stored.role, stored.session, stored.source) == (None,) * 4
    assert (stored.external_id, stored.occurred_at) == (None, None)
    assert stored.metadata == {}
    assert stored.authority is Authority.USER


EXACT = {
    "empty": "",
    "blank": " \n\t ",
    "nul": "a\0b\0",
    "only nul": "\0",
    "zwj": "👩‍👩‍👧‍👦 👍🏽",
    "nfc": "é",
    "nfd": "e\u0301",
    "bom": "\ufeffx",
    "noncharacters": "\uffff\U0010ffff",
    "line ends": "a\r\nb\rc\u2028d",
    "50 kB": "ab\u00e9\U0001f600" * 6500,
    "5 MB": "0123456789abcdef" * 327680,
}


@pytest.mark.parametrize("text", EXACT.values(), ids=EXACT.keys())
def test_texts_round_trip_exactly(ledger, text):
    (added,) = add(ledger, CheckedDraft(text, actor=text[:200], metadata={"same": text[:200]}))
    stored = read(ledger, added.evidence_id)
    assert stored.content == text
    assert stored.actor == text[:200]
    assert stored.metadata == {"same": text[:200]}
    assert stored.digest == hashlib.sha256(text.encode()).hexdigest()


def test_texts_that_differ_only_in_normal_form_stay_apart(ledger):
    results = add(ledger, CheckedDraft("é", actor="é"), CheckedDraft("e\u0301", actor="e\u0301"))
    assert len({result.digest for result in results}) == 2
    assert count(ledger, "actors") == 2


FIELDS = ("content", "actor", "role", "session", "source", "external_id", "authority")


@pytest.mark.parametrize("field", FIELDS)
def test_lone_surrogates_are_refused_everywhere_and_the_others_land(ledger, field):
    bad = CheckedDraft("b", session="only here")._replace(**{field: "x\ud800y"})
    first, second, third = add(ledger, CheckedDraft("a"), bad, CheckedDraft("c"))
    assert isinstance(second, Rejected)
    assert isinstance(second.error, InvalidTextError)
    assert field in str(second.error)
    assert (first.created, third.created) == (True, True)
    assert keys.position(third.row_id) == 2
    assert count(ledger) == 2
    assert count(ledger, "sessions") == count(ledger, "actors") == 0


@pytest.mark.parametrize("metadata", [{"x": "\udfff"}, {"\ud800": 1}])
def test_lone_surrogates_in_metadata_are_refused(ledger, metadata):
    (result,) = add(ledger, CheckedDraft("a", metadata=metadata))
    assert isinstance(result.error, InvalidTextError)
    assert "metadata" in str(result.error)
    assert count(ledger) == 0


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "metadata",
    [{"x": math.nan}, {"x": math.inf}, {"x": {1, 2}}, {"x": b"bytes"}, {"x": nested(100_000)}],
    ids=["nan", "inf", "set", "bytes", "deep"],
)
def test_metadata_that_is_not_json_is_refused_and_the_others_land(ledger, metadata):
    bad, good = add(ledger, CheckedDraft("a", metadata=metadata), CheckedDraft("b"))
    assert type(bad.error) is InputError
    assert good.created
    assert count(ledger) == 1


def test_positions_and_ids_are_never_reused(ledger):
    first = add(ledger, CheckedDraft("same"), CheckedDraft("same"))
    assert len({result.evidence_id for result in first}) == 2
    with ledger.write() as tx:
        tx.connection.execute("DELETE FROM evidence")
    (again,) = add(ledger, CheckedDraft("same"))
    assert keys.position(again.row_id) == 3
    assert again.evidence_id not in {result.evidence_id for result in first}


def test_ids_follow_from_namespace_position_and_digest(ledger):
    (added,) = add(ledger, CheckedDraft("x"))
    digest = hashlib.sha256(b"x").hexdigest()
    seed = b"alice\x001\x00" + digest.encode()
    assert added.evidence_id == "ev_" + hashlib.sha256(seed).hexdigest()[:24]


def test_the_same_external_id_again_is_the_same_evidence(ledger):
    (first,) = add(ledger, CheckedDraft("x", external_id="e1"))
    (again,) = add(ledger, CheckedDraft("x", external_id="e1", actor="someone else"))
    assert again == first._replace(created=False)
    assert count(ledger) == 1
    assert count(ledger, "actors") == 0
    assert count(ledger, "audit") == 1


def test_the_same_external_id_with_another_text_is_a_conflict(ledger):
    add(ledger, CheckedDraft("x", external_id="e1"))
    conflict, other = add(ledger, CheckedDraft("y", external_id="e1"), CheckedDraft("z"))
    assert isinstance(conflict.error, ConflictError)
    assert "e1" in str(conflict.error)
    assert other.created
    assert count(ledger) == 2


def test_external_ids_count_within_a_batch(ledger):
    first, again, conflict, other = add(
        ledger,
        CheckedDraft("x", external_id="e1"),
        CheckedDraft("x", external_id="e1"),
        CheckedDraft("y", external_id="e1"),
        CheckedDraft("y", external_id="e2"),
    )
    assert again == first._replace(created=False)
    assert isinstance(conflict.error, ConflictError)
    assert other.created
    assert count(ledger) == 2


def test_external_ids_belong_to_their_namespace(ledger):
    (here,) = add(ledger, CheckedDraft("x", external_id="e1"), namespace="here")
    (there,) = add(ledger, CheckedDraft("y", external_id="e1"), namespace="there")
    assert here.created
    assert there.created
    with pytest.raises(NotFoundError):
        read(ledger, here.evidence_id, "there")
    with ledger.read() as tx:
        there_ns = tx.namespace("there")
        assert evidence.fetch(tx, there_ns, [here.row_id, there.row_id]).keys() == {there.row_id}
        assert evidence.row_ids_of(tx, there_ns, [here.evidence_id]) == []


def test_fifty_identical_adds_at_once_are_one_row(ledger):
    results = []
    ready = threading.Barrier(50)

    def write():
        ready.wait()
        results.extend(add(ledger, CheckedDraft("x", session="s", external_id="e1")))

    threads = [threading.Thread(target=write) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 50
    assert len({(result.row_id, result.evidence_id, result.digest) for result in results}) == 1
    assert sum(result.created for result in results) == 1
    assert count(ledger) == 1


def test_reads_write_nothing(ledger):
    add(ledger, CheckedDraft("x"))
    with ledger.read() as tx, pytest.raises(ReadOnlyError):
        evidence.add(tx, tx.namespace("alice"), [CheckedDraft("y")])


def test_an_empty_batch_writes_nothing(ledger):
    assert add(ledger) == []
    assert count(ledger, "audit") == 0


@pytest.mark.parametrize("wanted", ["ev_000000000000000000000000", "", "x\ud800"])
def test_unknown_evidence_is_an_error(ledger, wanted):
    add(ledger, CheckedDraft("x"))
    with pytest.raises(NotFoundError):
        read(ledger, wanted)


def test_fetch_and_scan_give_what_exists(ledger):
    added = add(ledger, *(CheckedDraft(f"t{n}", session="s", actor="A") for n in range(5)))
    rows = [result.row_id for result in added]
    with ledger.read() as tx:
        ns = tx.namespace("alice")
        got = evidence.fetch(tx, ns, [rows[3], rows[0], rows[4] + 1])
        assert [(row, item.content) for row, item in got.items()] == [
            (rows[3], "t3"),
            (rows[0], "t0"),
        ]
        assert evidence.row_ids_of(tx, ns, [added[4].evidence_id, "no", added[1].evidence_id]) == [
            rows[4],
            rows[1],
        ]
        assert [row for row, _ in evidence.scan(tx, ns)] == rows
        assert [item.position for _, item in evidence.scan(tx, ns, after=rows[1])] == [3, 4, 5]


def test_stats_count_one_namespace(ledger):
    add(
        ledger,
        CheckedDraft("é", session="s", actor="A"),
        CheckedDraft("xy", session="s", actor="B"),
    )
    add(ledger, CheckedDraft("other"), namespace="bob")
    with ledger.read() as tx:
        stats = evidence.stats(tx, tx.namespace("alice"))
    assert (stats.namespace, stats.evidence, stats.claims) == ("alice", 2, 0)
    assert (stats.sessions, stats.actors, stats.bytes) == (1, 2, 4)


def test_sessions_are_numbered_within_their_namespace(ledger):
    for namespace in ("alice", "bob"):
        add(ledger, *(CheckedDraft("x", session=name) for name in "ab"), namespace=namespace)
    with ledger.read() as tx:
        rows = list(
            tx.connection.execute(
                "SELECT namespace_id, session_id, name FROM sessions ORDER BY 1, 2"
            )
        )
    assert rows == [(1, 1, "a"), (1, 2, "b"), (2, 1, "a"), (2, 2, "b")]


def restore(ledger, *pairs, namespace="alice"):
    with ledger.write() as tx:
        return evidence.restore(tx, tx.namespace(namespace, create=True), pairs)


OLD_ID = "ev_" + "ab" * 12


def test_restore_keeps_id_position_and_time(ledger):
    (result,) = restore(ledger, (CheckedDraft("x", external_id="e"), Restored(OLD_ID, 7, 1234567)))
    stored = read(ledger, OLD_ID)
    assert result == Added(keys.row_id(1, 7), OLD_ID, stored.digest, True)
    assert stored.position == 7
    assert keys_micros(stored.recorded_at) == 1234567
    (added,) = add(ledger, CheckedDraft("next"))
    assert keys.position(added.row_id) == 8


def keys_micros(moment):
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_restore_again_changes_nothing(ledger):
    pair = (CheckedDraft("x"), Restored(OLD_ID, None, 5))
    restore(ledger, pair)
    (again,) = restore(ledger, pair)
    assert not again.created
    (conflict,) = restore(ledger, (CheckedDraft("y"), Restored(OLD_ID, None, 5)))
    assert isinstance(conflict.error, ConflictError)
    assert count(ledger) == 1


def test_restore_maps_onto_the_same_external_id(ledger):
    (here,) = add(ledger, CheckedDraft("x", external_id="e"))
    (mapped,) = restore(ledger, (CheckedDraft("x", external_id="e"), Restored(OLD_ID, None, 5)))
    assert mapped == here._replace(created=False)
