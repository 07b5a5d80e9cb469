import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest

from evicortex.errors import (
    ConflictError,
    ImportFormatError,
    InputError,
    NamespaceError,
    NotFoundError,
    ReadOnlyError,
)
from evicortex.ledger import Ledger, LedgerOptions, claims, evidence, extractions, keys, purge
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.transfer import export, load
from evicortex.ledger.verify import verify
from evicortex.types import ClaimDraft, Diagnostic


class Ticking:
    def __init__(self, year=2026):
        self.moment = datetime(year, 1, 1, tzinfo=UTC)

    def now(self):
        self.moment += timedelta(seconds=1)
        return self.moment


OPTIONS = LedgerOptions(synchronous="NORMAL")
SECOND = 1_000_000


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "memory.db", clock=Ticking(), options=OPTIONS) as opened:
        yield opened


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.db"
    with Ledger.open(path, clock=Ticking(2031), options=OPTIONS) as opened:
        yield opened


def fill(ledger, name="alice"):
    drafts = [
        CheckedDraft(
            f"line {n}\0\n\u2028 é e\u0301 👩‍👩‍👧",
            actor=f"actor {n % 2}",
            role="user" if n % 3 else None,
            session=f"s{n // 4}",
            source="chat" if n % 2 else None,
            external_id=f"x{n}" if n % 4 else None,
            occurred_at=n * SECOND + 7 if n % 5 else None,
            authority="assistant" if n == 3 else "user",
            metadata={"n": n, "deep": [1.5, None, {"é": True}]} if n % 2 else {},
        )
        for n in range(12)
    ]
    with ledger.write() as tx:
        ns = tx.namespace(name, create=True)
        added = evidence.add(tx, ns, drafts)
        stored = evidence.fetch(tx, ns, [result.row_id for result in added])
        ids = []
        for number, item in enumerate(stored.values()):
            about = ClaimDraft("Ann", "lives_in", f"city {number}", span=(0, 4), confidence=0.5)
            ids.extend(claims.add(tx, ns, item, [about]))
        extractions.add(
            tx,
            ns,
            stored[added[5].row_id],
            extractor_id="rules",
            extractor_revision="1",
            claim_ids=ids[5:6],
            diagnostics=[Diagnostic("note", "text", {"a": 1})],
            usage={"calls": 1},
        )
    with ledger.write() as tx:
        claims.retract(tx, ns, ids[2], reason="wrong")
        purge.remove(tx, ns, [keys.row_id(ns.namespace_id, at) for at in (2, 9)])
    return ids


def dump(ledger, name):
    """Return everything that a namespace holds, without the namespace's own number and chain."""
    queries = [
        """SELECT e.row_id & 1099511627775, e.evidence_id, e.content, e.digest, a.name, e.role,
        s.name, e.source, e.external_id, e.occurred_at, e.recorded_at, e.authority, e.metadata
        FROM evidence e LEFT JOIN actors a USING (namespace_id, actor_id)
        LEFT JOIN sessions s USING (namespace_id, session_id) WHERE e.namespace_id = ?
        ORDER BY 1""",
        """SELECT claim_id, subject, object, polarity, confidence, cardinality, declared, origin,
        repetition, valid_from, valid_to, recorded_at FROM claims WHERE namespace_id = ?
        ORDER BY seq""",
        """SELECT claim_id, row_id & 1099511627775, start, stop, evidence_digest
        FROM claim_evidence WHERE namespace_id = ? ORDER BY 1""",
        """SELECT claim_id, recorded_at, reason, cause FROM retractions WHERE namespace_id = ?
        ORDER BY 1""",
        """SELECT row_id & 1099511627775, ordinal, extractor_id, recorded_at, diagnostics, usage
        FROM extractions WHERE namespace_id = ? ORDER BY 1, 2""",
        """SELECT row_id & 1099511627775, extraction, ordinal, claim_id, start, stop, confidence
        FROM extraction_claims WHERE namespace_id = ? ORDER BY 1, 2, 3""",
    ]
    with ledger.read() as tx:
        ns = tx.namespace(name)
        if ns is None:
            return None
        return [list(tx.connection.execute(sql, (ns.namespace_id,))) for sql in queries]


def lines(path):
    return path.read_bytes().split(b"\n")[:-1]


def rewrite(path, edit):
    """Edit the records between the first and the last line, and make the last line fit again."""
    first, *records, _ = lines(path)
    records = edit([json.loads(record) for record in records])
    body = b"".join(line + b"\n" for line in (first, *(json.dumps(r).encode() for r in records)))
    counts = {
        kind: sum(r.get("kind") == kind for r in records if isinstance(r, dict))
        for kind in ("evidence", "claim", "extraction")
    }
    end = {"kind": "end", **counts, "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(body + json.dumps(end).encode() + b"\n")


@pytest.mark.parametrize("name", ["alice", "somebody else"])
def test_round_trip_is_the_same_file_and_the_same_content(ledger, other, tmp_path, name):
    fill(ledger)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    report = export(ledger, "alice", first)
    assert (report.evidence, report.claims, report.extractions) == (10, 10, 1)
    loaded = load(other, name, first)
    assert (loaded.evidence, loaded.claims, loaded.extractions, loaded.created) == (10, 10, 1, 10)
    assert loaded.diagnostics == ()
    assert dump(other, name) == dump(ledger, "alice")
    assert export(other, name, second) == report
    assert second.read_bytes() == first.read_bytes()
    assert verify(other).ok
    assert verify(other).checked["evidence"] == 10


def test_what_was_known_when_survives(ledger, other, tmp_path):
    fill(ledger)
    export(ledger, "alice", tmp_path / "x.jsonl")
    load(other, "bob", tmp_path / "x.jsonl")
    now = datetime(2040, 1, 1, tzinfo=UTC)
    for known_at in (datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC), now):
        with ledger.read() as tx:
            ns = tx.namespace("alice")
            before = claims.list_claims(
                tx, ns, as_of=now, known_at=known_at, include_superseded=True
            )
        with other.read() as tx:
            ns = tx.namespace("bob")
            after = claims.list_claims(
                tx, ns, as_of=now, known_at=known_at, include_superseded=True
            )
        assert [(c.claim_id, c.status, c.recorded_at) for c in before] == [
            (c.claim_id, c.status, c.recorded_at) for c in after
        ]


def test_loading_again_changes_nothing(ledger, other, tmp_path):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    export(ledger, "alice", path)
    load(other, "bob", path)
    before = dump(other, "bob")
    again = load(other, "bob", path)
    assert (again.evidence, again.created) == (10, 0)
    assert dump(other, "bob") == before
    assert load(ledger, "alice", path).created == 0
    with other.read() as tx:
        events = [row[0] for row in tx.connection.execute("SELECT event FROM audit")]
    assert events.count("load") == 1
    assert verify(other).ok


def test_loading_into_a_namespace_in_use_appends(ledger, other, tmp_path):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    export(ledger, "alice", path)
    with other.write() as tx:
        evidence.add(tx, tx.namespace("bob", create=True), [CheckedDraft("own"), CheckedDraft("x")])
    assert load(other, "bob", path).created == 10
    with other.read() as tx:
        ns = tx.namespace("bob")
        stored = [item for _, item in evidence.scan(tx, ns)]
    with ledger.read() as tx:
        source = [item for _, item in evidence.scan(tx, tx.namespace("alice"))]
    assert [item.position for item in stored] == list(range(1, 13))
    assert [(i.evidence_id, i.digest, i.recorded_at) for i in stored[2:]] == [
        (i.evidence_id, i.digest, i.recorded_at) for i in source
    ]
    assert verify(other).ok


def test_what_was_purged_can_be_loaded_again(ledger, tmp_path):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    digest = export(ledger, "alice", path).digest
    with ledger.write() as tx:
        ns = tx.namespace("alice")
        purge.remove(tx, ns, purge.select(tx, ns, purge.Selector(everything=True)))
    assert export(ledger, "alice", tmp_path / "empty.jsonl").evidence == 0
    assert load(ledger, "alice", path).created == 10
    assert verify(ledger).ok
    again = export(ledger, "alice", tmp_path / "again.jsonl")
    assert again.digest != digest
    assert again.claims == 10


def test_the_same_external_id_and_text_is_the_stored_evidence(ledger, other, tmp_path):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    export(ledger, "alice", path)
    records = [json.loads(line) for line in lines(path)]
    twin = next(r for r in records if r.get("external_id") == "x5")
    with other.write() as tx:
        ns = tx.namespace("bob", create=True)
        (here,) = evidence.add(tx, ns, [CheckedDraft(twin["content"], external_id="x5")])
    report = load(other, "bob", path)
    assert report.created == 9
    ((code, count),) = [(d.code, d.details["count"]) for d in report.diagnostics]
    assert (code, count) == ("load.same_external_id", 1)
    with other.read() as tx:
        ns = tx.namespace("bob")
        found = claims.of_evidence(
            tx, ns, [here.evidence_id], as_of=datetime(2030, 1, 1, tzinfo=UTC)
        )
        record = extractions.get(tx, ns, here.evidence_id)
    (claim,) = found[here.evidence_id]
    assert claim.object == "city 5"
    assert record.derivations[0].claim_id == claim.claim_id
    assert verify(other).ok
    assert load(other, "bob", path).created == 0


@pytest.mark.parametrize("key", ["external_id", "evidence_id"])
def test_another_text_under_the_same_id_is_a_conflict(ledger, other, tmp_path, key):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    export(ledger, "alice", path)
    if key == "external_id":
        with other.write() as tx:
            evidence.add(
                tx, tx.namespace("bob", create=True), [CheckedDraft("z", external_id="x5")]
            )
    else:
        load(other, "bob", path)

        def edit(records):
            records[0]["content"] = "another"
            records[0]["digest"] = hashlib.sha256(b"another").hexdigest()
            return records

        rewrite(path, edit)
    before = dump(other, "bob")
    with pytest.raises(ConflictError, match="line "):
        load(other, "bob", path)
    assert dump(other, "bob") == before


def test_an_empty_namespace_round_trips(ledger, other, tmp_path):
    with ledger.write() as tx:
        tx.namespace("alice", create=True)
    report = export(ledger, "alice", tmp_path / "x.jsonl")
    assert len(lines(tmp_path / "x.jsonl")) == 2
    assert load(other, "bob", tmp_path / "x.jsonl").evidence == 0
    assert export(other, "bob", tmp_path / "y.jsonl") == report


def test_the_file_is_as_documented(ledger, tmp_path):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    report = export(ledger, "alice", path)
    assert json.loads(lines(path)[0]) == {"format": "evicortex-export", "version": 1}
    assert json.loads(lines(path)[-1]) == {
        "kind": "end",
        "evidence": 10,
        "claim": 10,
        "extraction": 1,
        "sha256": report.digest,
    }
    body = path.read_bytes()[: -len(lines(path)[-1]) - 1]
    assert hashlib.sha256(body).hexdigest() == report.digest
    assert b"alice" not in path.read_bytes()
    kinds = [json.loads(line).get("kind") for line in lines(path)[1:-1]]
    assert kinds == ["evidence"] * 10 + ["claim"] * 10 + ["extraction"]


def test_an_export_appears_whole_or_not_at_all(ledger, tmp_path, monkeypatch):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    path.write_text("kept")

    def fail(tx, ns):
        raise InputError("in the middle")

    monkeypatch.setattr(claims, "export", fail)
    with pytest.raises(InputError, match="middle"):
        export(ledger, "alice", path)
    assert path.read_text() == "kept"
    assert not [item for item in tmp_path.iterdir() if "part" in item.name]


def test_export_of_nothing_and_to_nowhere(ledger, tmp_path):
    with pytest.raises(NotFoundError):
        export(ledger, "nobody", tmp_path / "x.jsonl")
    with pytest.raises(NamespaceError):
        export(ledger, "", tmp_path / "x.jsonl")
    fill(ledger)
    with pytest.raises(InputError, match="folder"):
        export(ledger, "alice", tmp_path / "no" / "x.jsonl")


def test_a_read_only_ledger_exports_and_does_not_load(ledger, tmp_path):
    fill(ledger)
    with Ledger.open(ledger.path, clock=Ticking(), read_only=True) as reader:
        export(reader, "alice", tmp_path / "x.jsonl")
        with pytest.raises(ReadOnlyError):
            load(reader, "bob", tmp_path / "x.jsonl")


def field(name, value):
    def edit(records):
        records[0][name] = value
        return records

    return edit


def on_claim(name, value):
    def edit(records):
        records[10][name] = value
        return records

    return edit


def on_extraction(name, value):
    def edit(records):
        records[20][name] = value
        return records

    return edit


def without(name):
    def edit(records):
        del records[0][name]
        return records

    return edit


def moved(records):
    return [records[10], *records[:10], *records[11:]]


def twice(records):
    return [records[0], records[0] | {"position": 1.5}, *records[1:]]


def doubled(records):
    again = records[9] | {"position": 99}
    return [*records[:10], again, *records[10:]]


BAD = {
    "no kind": (field("kind", None), 2),
    "unknown kind": (field("kind", "person"), 2),
    "end in the middle": (field("kind", "end"), 2),
    "claim first": (moved, 2),
    "missing field": (without("role"), 2),
    "extra field": (field("colour", 1), 2),
    "content": (field("content", 7), 2),
    "surrogate": (field("content", "\ud800"), 2),
    "surrogate actor": (field("actor", "\ud800"), 2),
    "digest": (field("digest", "0" * 64), 2),
    "actor": (field("actor", ["x"]), 2),
    "id": (field("evidence_id", "ev_X"), 2),
    "id type": (field("evidence_id", None), 2),
    "position zero": (field("position", 0), 2),
    "position text": (field("position", "1"), 2),
    "position true": (field("position", True), 2),
    "position descends": (field("position", 5), 3),
    "position huge": (field("position", 1 << 40), 2),
    "position twice": (twice, 3),
    "same evidence twice": (doubled, 12),
    "recorded_at missing": (field("recorded_at", None), 2),
    "recorded_at naive": (field("recorded_at", "2026-01-01T00:00:00"), 2),
    "occurred_at": (field("occurred_at", "yesterday"), 2),
    "authority": (field("authority", "king"), 2),
    "authority type": (field("authority", ["user"]), 2),
    "metadata": (field("metadata", [1]), 2),
    "claim on nothing": (on_claim("evidence_id", "ev_" + "0" * 24), 12),
    "claim on a number": (on_claim("evidence_id", 5), 12),
    "claim field": (on_claim("object", None), 12),
    "claim span": (on_claim("span", [0, 999]), 12),
    "claim id": (on_claim("claim_id", "cl_" + "0" * 24), 12),
    "claim id list": (on_claim("claim_id", ["x"]), 12),
    "claim content": (on_claim("object", "Rome"), 12),
    "extraction claim": (on_extraction("claims", [{"claim_id": "cl_0"}]), 22),
    "extraction shape": (on_extraction("claims", 5), 22),
    "extraction time": (on_extraction("recorded_at", "now"), 22),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_record_is_named_by_its_line_and_nothing_is_loaded(ledger, other, tmp_path, case):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    export(ledger, "alice", path)
    edit, line = BAD[case]
    rewrite(path, edit)
    with pytest.raises(ImportFormatError, match=rf"^line {line}: "):
        load(other, "bob", path)
    assert dump(other, "bob") is None
    assert verify(other).checked["namespaces"] == 0


HEADER = b'{"format": "evicortex-export", "version": 1}\n'
RAW = {
    "empty": (b"", "line 0"),
    "not JSON": (b"hello\n", "line 1"),
    "not an object": (b"[1]\n", "line 1"),
    "other format": (b'{"format": "x", "version": 1}\n', "line 1"),
    "other version": (b'{"format": "evicortex-export", "version": 2}\n', "line 1: version 2"),
    "too many fields": (b'{"format": "evicortex-export", "version": 1, "x": 1}\n', "line 1"),
    "only a header": (HEADER, "line 1: the file is cut"),
    "not UTF-8": (b'{"format": "\xff"}\n', "line 1"),
    "NaN": (b'{"format": NaN}\n', "line 1"),
    "deep": (b'{"format": ' + b"[" * 100_000 + b"\n", "line 1"),
    "wrong digest": (
        HEADER + b'{"kind": "end", "evidence": 0, "claim": 0, "extraction": 0, "sha256": "0"}\n',
        "line 2: the SHA-256",
    ),
}


@pytest.mark.parametrize("case", RAW)
def test_files_that_are_no_exports_are_refused(ledger, tmp_path, case):
    content, message = RAW[case]
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with pytest.raises(ImportFormatError, match=message):
        load(ledger, "bob", path)
    assert dump(ledger, "bob") is None


def test_missing_files_and_bad_names_are_refused(ledger, tmp_path):
    with pytest.raises(ImportFormatError, match="no file"):
        load(ledger, "bob", tmp_path / "missing.jsonl")
    with pytest.raises(NamespaceError):
        load(ledger, "", tmp_path / "missing.jsonl")


def test_a_cut_or_altered_file_is_refused(ledger, other, tmp_path):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    export(ledger, "alice", path)
    whole = path.read_bytes()
    all_lines = whole.split(b"\n")
    for cut in (len(whole) // 2, len(whole) - 2):
        path.write_bytes(whole[:cut])
        with pytest.raises(ImportFormatError):
            load(other, "bob", path)
    path.write_bytes(b"\n".join([*all_lines[:3], *all_lines[4:]]))
    with pytest.raises(ImportFormatError, match="SHA-256"):
        load(other, "bob", path)
    path.write_bytes(whole.replace(b"city 5", b"city 6"))
    with pytest.raises(ImportFormatError, match="SHA-256"):
        load(other, "bob", path)
    assert dump(other, "bob") is None


def test_counts_that_do_not_fit_are_refused(ledger, other, tmp_path):
    fill(ledger)
    path = tmp_path / "x.jsonl"
    export(ledger, "alice", path)
    path.write_bytes(path.read_bytes().replace(b'"evidence":10,', b'"evidence":11,'))
    with pytest.raises(ImportFormatError, match="counts"):
        load(other, "bob", path)
    assert dump(other, "bob") is None


def test_many_records_are_loaded_in_batches(ledger, other, tmp_path):
    with ledger.write() as tx:
        ns = tx.namespace("alice", create=True)
        evidence.add(tx, ns, [CheckedDraft(f"t{n}") for n in range(1203)])
    report = export(ledger, "alice", tmp_path / "x.jsonl")
    assert load(other, "bob", tmp_path / "x.jsonl").created == 1203
    assert export(other, "bob", tmp_path / "y.jsonl") == report
    assert verify(other).ok
