import hashlib
import json
from datetime import UTC, datetime

import apsw
import pytest

from evicortex.ledger import Ledger, audit, evidence, keys
from evicortex.ledger.evidence import CheckedDraft


class Fixed:
    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "memory.db", clock=Fixed()) as opened:
        with opened.write() as tx:
            tx.namespace("alice", create=True)
            tx.namespace("bob", create=True)
        yield opened


def chain(ledger, name="alice"):
    with ledger.read() as tx:
        return list(audit.entries(tx, tx.namespace(name)))


def problems(ledger, name="alice"):
    with ledger.read() as tx:
        return [
            (p.code, p.details["audit_position"])
            for p in audit.verify_chain(tx, tx.namespace(name))
        ]


def fill(ledger, entries, name="alice"):
    for number in range(entries):
        with ledger.write() as tx:
            audit.append(tx, tx.namespace(name), "event", {"number": number})


def test_the_hash_is_what_the_documentation_says(ledger):
    fill(ledger, 2)
    first, second = chain(ledger)
    assert (first.position, second.position) == (1, 2)
    assert first.previous_hash == "0" * 64
    assert second.previous_hash == first.hash
    for entry in (first, second):
        plain = {
            "event": "event",
            "namespace": hashlib.sha256(b"alice").hexdigest(),
            "payload": json.loads(entry.payload),
            "position": entry.position,
            "previous": entry.previous_hash,
            "recorded_at": 1767225600000000,
        }
        text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert entry.hash == hashlib.sha256(text.encode()).hexdigest()


def test_each_namespace_has_its_own_chain(ledger):
    fill(ledger, 2)
    fill(ledger, 1, "bob")
    assert [entry.position for entry in chain(ledger)] == [1, 2]
    assert [entry.position for entry in chain(ledger, "bob")] == [1]
    assert chain(ledger)[0].hash != chain(ledger, "bob")[0].hash
    assert problems(ledger) == problems(ledger, "bob") == []


def test_notes_become_one_entry_per_event_and_write(ledger):
    with ledger.write() as tx:
        ns = tx.namespace("alice")
        audit.note(tx, ns, "b", [[1], [2]])
        audit.note(tx, ns, "a", [[3]])
        audit.note(tx, ns, "b", [[4]])
        assert list(audit.entries(tx, ns)) == []
    assert [(entry.event, json.loads(entry.payload)) for entry in chain(ledger)] == [
        ("b", {"b": [[1], [2], [4]]}),
        ("a", {"a": [[3]]}),
    ]
    assert problems(ledger) == []


def test_an_entry_comes_after_what_was_noted_before_it(ledger):
    with ledger.write() as tx:
        ns = tx.namespace("alice")
        audit.note(tx, ns, "first", [[1]])
        assert audit.append(tx, ns, "second", {}) == 2
        audit.note(tx, ns, "first", [[2]])
    assert [entry.event for entry in chain(ledger)] == ["first", "second", "first"]


def test_no_entry_grows_without_bound(ledger):
    with ledger.write() as tx:
        audit.note(
            tx, tx.namespace("alice"), "many", [[n] for n in range(2 * audit.ENTRY_ITEMS + 1)]
        )
    items = [json.loads(entry.payload)["many"] for entry in chain(ledger)]
    assert [len(part) for part in items] == [audit.ENTRY_ITEMS, audit.ENTRY_ITEMS, 1]
    assert [item for part in items for item in part] == [[n] for n in range(2001)]


def test_evidence_is_named_by_id_and_digests_only(ledger):
    draft = CheckedDraft(
        "secret text", "Secret Actor", "user", "secret session", "secret source", "secret-id",
        metadata={"secret": "value"},
    )  # fmt: skip
    with ledger.write() as tx:
        (added,) = evidence.add(tx, tx.namespace("alice"), [draft])
    (entry,) = chain(ledger)
    ((position, evidence_id, digest, record),) = json.loads(entry.payload)["evidence"]
    assert (position, evidence_id, digest) == (1, added.evidence_id, added.digest)
    assert len(record) == 64
    assert "secret" not in entry.payload.lower()


def test_the_record_digest_covers_every_field(ledger):
    full = {
        "evidence_id": "ev_1", "digest": "d", "actor": "a", "role": "r", "session": "s",
        "source": "o", "authority": "user", "external_id": "x", "occurred_at": 1,
        "recorded_at": 2, "metadata": "{}",
    }  # fmt: skip
    seen = {evidence.record_digest(**full)}
    for field, value in full.items():
        other = value + 1 if isinstance(value, int) else value + "!"
        seen.add(evidence.record_digest(**full | {field: other}))
        if field not in ("evidence_id", "digest", "authority", "recorded_at", "metadata"):
            seen.add(evidence.record_digest(**full | {field: None}))
    assert len(seen) == 1 + 11 + 6
    plain = json.dumps(
        ["ev_1", "d", "a", "r", "s", "o", "user", "x", 1, 2, {}],
        separators=(",", ":"),
        ensure_ascii=False,
    )
    assert evidence.record_digest(**full) == hashlib.sha256(plain.encode()).hexdigest()


def tamper(ledger, *statements):
    connection = apsw.Connection(str(ledger.path))
    for sql in statements:
        connection.execute(sql)
    connection.close()


ROW = keys.row_id(1, 0)


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["UPDATE audit SET payload = '{}' WHERE position = 2"], [("audit.hash", 2)]),
        (["UPDATE audit SET event = 'other' WHERE position = 2"], [("audit.hash", 2)]),
        (["UPDATE audit SET recorded_at = 1 WHERE position = 2"], [("audit.hash", 2)]),
        (
            ["UPDATE audit SET payload = '{\"number\": 1}' WHERE position = 2"],
            [("audit.hash", 2)],
        ),
        (
            [f"UPDATE audit SET previous_hash = '{'0' * 64}' WHERE position = 2"],
            [("audit.link", 2), ("audit.hash", 2)],
        ),
        (
            [f"UPDATE audit SET hash = '{'0' * 64}' WHERE position = 2"],
            [("audit.hash", 2), ("audit.link", 3)],
        ),
        (["DELETE FROM audit WHERE position = 2"], [("audit.gap", 2)]),
        (["DELETE FROM audit WHERE position = 1"], [("audit.gap", 1)]),
        (["DELETE FROM audit WHERE position = 4"], [("audit.gap", 4)]),
        (
            [
                f"UPDATE audit SET entry_id = {ROW + 9}, position = 9 WHERE position = 2",
                f"UPDATE audit SET entry_id = {ROW + 2}, position = 2 WHERE position = 3",
                f"UPDATE audit SET entry_id = {ROW + 3}, position = 3 WHERE position = 9",
            ],
            [
                ("audit.link", 2), ("audit.hash", 2), ("audit.link", 3), ("audit.hash", 3),
                ("audit.link", 4),
            ],
        ),
        (
            [
                f"INSERT INTO audit SELECT {ROW + 5}, namespace_id, 5, event, payload, recorded_at, hash, hash FROM audit WHERE position = 4"
            ],
            [("audit.hash", 5), ("audit.gap", 4)],
        ),
    ],
)  # fmt: skip
def test_tampering_is_found(ledger, statements, found):
    fill(ledger, 4)
    assert problems(ledger) == []
    tamper(ledger, *statements)
    assert problems(ledger) == found


def test_a_rewritten_chain_of_another_namespace_does_not_fit(ledger):
    fill(ledger, 2)
    fill(ledger, 2, "bob")
    tamper(
        ledger,
        "UPDATE audit SET previous_hash = b.previous_hash, hash = b.hash FROM "
        "(SELECT position p, previous_hash, hash FROM audit WHERE namespace_id = 2) b "
        "WHERE namespace_id = 1 AND position = b.p",
    )
    assert problems(ledger) == [("audit.hash", 1), ("audit.hash", 2)]
