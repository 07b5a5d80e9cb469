from datetime import UTC, datetime, timedelta

import apsw
import pytest

from evicortex.errors import NotFoundError
from evicortex.ledger import Ledger, LedgerOptions, claims, evidence, extractions, keys, purge
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.verify import verify
from evicortex.types import ClaimDraft


class Ticking:
    def __init__(self):
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        self.moment += timedelta(seconds=1)
        return self.moment


@pytest.fixture
def ledger(tmp_path):
    options = LedgerOptions(synchronous="NORMAL")
    with Ledger.open(tmp_path / "memory.db", clock=Ticking(), options=options) as opened:
        fill(opened, "alice")
        fill(opened, "bob")
        yield opened


def fill(ledger, name):
    drafts = [
        CheckedDraft(f"text {n} of {name}", "Ann", "user", f"s{n // 3}", "chat", f"x{n}", n)
        for n in range(6)
    ]
    with ledger.write() as tx:
        ns = tx.namespace(name, create=True)
        added = evidence.add(tx, ns, drafts)
        stored = evidence.fetch(tx, ns, [result.row_id for result in added])
        ids = []
        for number, item in enumerate(stored.values()):
            draft = ClaimDraft("Ann", "lives_in", f"city {number}", span=(0, 4), valid_from=FROM)
            ids.extend(claims.add(tx, ns, item, [draft]))
        extractions.add(
            tx,
            ns,
            stored[added[2].row_id],
            extractor_id="rules",
            extractor_revision="1",
            claim_ids=ids[2:3],
        )
    with ledger.write() as tx:
        claims.retract(tx, ns, ids[1], reason="wrong")


FROM = "2025-01-01T00:00:00Z"


def codes(report):
    return sorted({problem.code for problem in report.problems})


def tamper(ledger, *statements):
    connection = apsw.Connection(str(ledger.path))
    for sql in statements:
        connection.execute(sql)
    connection.close()


def test_a_sound_ledger_has_no_problem_and_verify_writes_nothing(ledger):
    before = ledger.writer.data_version(), ledger.writer.total_changes()
    report = verify(ledger)
    assert (report.ok, report.problems, report.notices) == (True, (), ())
    assert report.checked == {
        "namespaces": 2,
        "evidence": 12,
        "claims": 12,
        "retractions": 2,
        "extractions": 2,
        "audit": 8,
    }
    assert (ledger.writer.data_version(), ledger.writer.total_changes()) == before
    with Ledger.open(ledger.path, clock=Ticking(), read_only=True) as other:
        assert verify(other) == report


def test_one_namespace_is_checked_alone(ledger):
    report = verify(ledger, "alice")
    assert report.checked["namespaces"] == 1
    assert report.checked["evidence"] == 6
    with pytest.raises(NotFoundError):
        verify(ledger, "nobody")


TAMPERED = {
    "content": ("UPDATE evidence SET content = content || '!' WHERE row_id = {row}", ["evidence.altered"]),
    "digest": ("UPDATE evidence SET digest = 'd' WHERE row_id = {row}", ["claim.digest", "evidence.altered"]),
    "time": ("UPDATE evidence SET occurred_at = 99 WHERE row_id = {row}", ["evidence.altered"]),
    "recorded": ("UPDATE evidence SET recorded_at = 99 WHERE row_id = {row}", ["evidence.altered"]),
    "authority": ("UPDATE evidence SET authority = 'system' WHERE row_id = {row}", ["evidence.altered"]),
    "metadata": ("UPDATE evidence SET metadata = '[1]' WHERE row_id = {row}", ["evidence.altered"]),
    "external id": ("UPDATE evidence SET external_id = 'z' WHERE row_id = {row}", ["evidence.altered"]),
    "actor": ("UPDATE actors SET name = 'Eve' WHERE namespace_id = 1", ["evidence.altered"]),
    "session": ("UPDATE sessions SET name = 'z' WHERE namespace_id = 1 AND session_id = 1", ["evidence.altered"]),
    "removed": ("DELETE FROM evidence WHERE row_id = {row} + 5", ["evidence.missing", "file.reference"]),
    "inserted": (
        "INSERT INTO evidence SELECT row_id + 10, namespace_id, 'ev_x', content, digest, actor_id, role, session_id, source, NULL, occurred_at, recorded_at, authority, metadata FROM evidence WHERE row_id = {row}",
        ["evidence.unlisted", "namespace.counter"],
    ),
    "claim": ("UPDATE claims SET object = 'Rome', object_key = 'rome' WHERE namespace_id = 1 AND seq = 1", ["claim.id", "claims.altered"]),
    "claim time": ("UPDATE claims SET recorded_at = 1 WHERE namespace_id = 1 AND seq = 1", ["claims.altered"]),
    "claim removed": (
        "DELETE FROM claim_evidence WHERE namespace_id = 1 AND claim_id = (SELECT claim_id FROM claims WHERE namespace_id = 1 AND seq = 1); DELETE FROM claims WHERE namespace_id = 1 AND seq = 1",
        ["claims.missing"],
    ),
    "claim renumbered": ("UPDATE claims SET seq = 9 WHERE namespace_id = 1 AND seq = 1", ["claims.missing", "claims.unlisted", "namespace.counter"]),
    "span": ("UPDATE claim_evidence SET stop = 999 WHERE namespace_id = 1", ["claim.id", "claim.span", "extraction.claim"]),
    "retraction removed": ("DELETE FROM retractions WHERE namespace_id = 1", ["retractions.missing"]),
    "retraction altered": ("UPDATE retractions SET recorded_at = 1 WHERE namespace_id = 1", ["retractions.altered"]),
    "retraction inserted": (
        "INSERT INTO retractions SELECT namespace_id, claim_id, 5, 'forged', 'call' FROM claims WHERE namespace_id = 1 AND seq = 4",
        ["retractions.unlisted"],
    ),
    "extraction altered": ("UPDATE extractions SET diagnostics = '[1]' WHERE namespace_id = 1", ["extractions.altered"]),
    "extraction removed": ("DELETE FROM extraction_claims WHERE namespace_id = 1; DELETE FROM extractions WHERE namespace_id = 1", ["extractions.missing"]),
    "emitted altered": ("DELETE FROM extraction_claims WHERE namespace_id = 1", ["extractions.altered"]),
    "extraction inserted": (
        "INSERT INTO extractions SELECT namespace_id, row_id, 2, extractor_id, extractor_revision, evidence_digest, recorded_at, abstained, diagnostics, usage FROM extractions WHERE namespace_id = 1",
        ["extractions.unlisted"],
    ),
    "name": ("INSERT INTO sessions VALUES (1, 50, 'ghost')", ["sessions.unused"]),
    "actor name": ("INSERT INTO actors VALUES (1, 50, 'ghost')", ["actors.unused"]),
    "audit": ("UPDATE audit SET payload = replace(payload, 'ev_', 'vv_') WHERE namespace_id = 1 AND position = 1", ["audit.hash", "evidence.unlisted"]),
    "counter": ("UPDATE namespaces SET next_position = 2 WHERE namespace_id = 1", ["namespace.counter"]),
    "namespace": ("UPDATE namespaces SET name = 'carol' WHERE namespace_id = 1", ["audit.hash", "claims.unlisted", "evidence.unlisted", "extractions.unlisted", "retractions.unlisted"]),
}  # fmt: skip


@pytest.mark.parametrize("case", TAMPERED)
def test_tampering_is_found_and_named(ledger, case):
    sql, expected = TAMPERED[case]
    tamper(ledger, sql.format(row=keys.row_id(1, 1)))
    report = verify(ledger)
    assert not report.ok
    assert codes(report) == expected
    assert {p.namespace for p in report.problems} <= {"alice", "carol", ""}
    if case != "removed":
        assert verify(ledger, "bob").ok


def test_an_evidence_problem_names_the_evidence(ledger):
    tamper(ledger, f"UPDATE evidence SET content = 'x' WHERE row_id = {keys.row_id(1, 3)}")
    (problem,) = [p for p in verify(ledger).problems if p.code == "evidence.altered"]
    with ledger.read() as tx:
        item = evidence.fetch(tx, tx.namespace("alice"), [keys.row_id(1, 3)])[keys.row_id(1, 3)]
    assert problem.details["item"][:2] == [3, item.evidence_id]
    assert item.evidence_id in problem.message


def test_the_files_own_structure_is_checked(ledger):
    tamper(
        ledger,
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_schema SET sql = replace(sql, 'ON evidence (namespace_id, actor_id)', "
        "'ON evidence (namespace_id, role)') WHERE name = 'evidence_by_actor'",
    )
    assert "file.structure" in codes(verify(ledger))
    assert "file.structure" not in codes(verify(ledger, "alice"))


def test_a_damaged_file_is_a_problem_and_no_crash(tmp_path):
    path = tmp_path / "memory.db"
    with Ledger.open(path, clock=Ticking()) as ledger:
        fill(ledger, "alice")
    with Ledger.open(path, clock=Ticking()) as ledger:
        root = ledger.writer.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'audit'").get
        data = bytearray(path.read_bytes())
        data[(root - 1) * 4096 : root * 4096] = b"\xa5" * 4096
        path.write_bytes(data)
        report = verify(ledger, "alice")
    assert [p.code for p in report.problems] == ["file.damaged"]


def test_purged_records_need_not_be_there(ledger):
    with ledger.write() as tx:
        ns = tx.namespace("alice")
        purge.remove(tx, ns, [keys.row_id(1, n) for n in (1, 2, 3)])
    assert purge.finish(ledger)
    report = verify(ledger)
    assert report.ok
    assert report.checked["evidence"] == 9
    assert report.checked["retractions"] == 1


def test_a_purged_record_that_comes_back_is_found(ledger):
    tamper(ledger, "CREATE TABLE kept AS SELECT * FROM evidence WHERE row_id & 255 = 1")
    with ledger.write() as tx:
        purge.remove(tx, tx.namespace("alice"), [keys.row_id(1, 1)])
    tamper(
        ledger,
        "INSERT INTO evidence SELECT * FROM kept WHERE namespace_id = 1",
        "DROP TABLE kept",
    )
    assert codes(verify(ledger)) == ["evidence.unlisted"]


def test_a_projection_that_lags_is_a_notice(ledger):
    newest = keys.row_id(1, 6)
    with ledger.write() as tx:
        tx.connection.execute("INSERT INTO watermarks VALUES (1, 'lexical', ?)", (newest - 2,))
        tx.connection.execute("INSERT INTO watermarks VALUES (1, 'semantic', ?)", (newest,))
    report = verify(ledger)
    assert report.ok
    ((code, details),) = [(n.code, n.details) for n in report.notices]
    assert (code, details) == ("projection.stale", {"projection": "lexical", "behind": 2})


def test_a_purge_that_waits_is_a_notice(ledger):
    with ledger.read():
        with ledger.write() as tx:
            purge.remove(tx, tx.namespace("alice"), [keys.row_id(1, 1)])
        report = verify(ledger)
    assert report.ok
    assert [n.code for n in report.notices] == ["purge.pending"]


def test_conflicts_are_listed_and_no_problem(ledger):
    with ledger.write() as tx:
        ns = tx.namespace("alice")
        (added,) = evidence.add(
            tx, ns, [CheckedDraft("Ann lives in Oslo.", role="assistant", authority="assistant")]
        )
        item = evidence.fetch(tx, ns, [added.row_id])[added.row_id]
        claims.add(
            tx, ns, item, [ClaimDraft("Ann", "lives_in", "Oslo", valid_from="2025-06-01T00:00:00Z")]
        )
    report = verify(ledger)
    assert report.ok
    assert "claim.conflict" in {c.code for c in report.conflicts}
