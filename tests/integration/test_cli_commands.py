"""Every command: what it prints, as JSON and for people, and how it exits."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from evicortex import ClaimDraft, EviCortex, EvidenceDraft, Span
from evicortex.interfaces.cli import cli
from evicortex.interfaces.cli.models import models
from evicortex.interfaces.cli.options import Setting
from evicortex.protocols import EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.testing import ScriptedExtractor

EXPORTS = Path(__file__).parents[1] / "golden" / "exports"


class Ticking:
    """A clock that moves on by a second each time it is asked."""

    def __init__(self) -> None:
        self._moment = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def now(self) -> datetime:
        self._moment += timedelta(seconds=1)
        return self._moment


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A ledger with two claims about Ann, an extra session, and a second namespace."""
    path = tmp_path / "memory.db"
    drafts = [
        EvidenceDraft(
            "I live in Berlin.",
            actor="Ann",
            role="user",
            session="s1",
            external_id="m1",
            occurred_at="2024-03-01T10:00:00Z",
            claims=(ClaimDraft("Ann", "lives_in", "Berlin", span=(10, 16)),),
        ),
        EvidenceDraft(
            "I moved to Lisbon.",
            actor="Ann",
            role="user",
            session="s2",
            external_id="m2",
            occurred_at="2025-03-01T10:00:00Z",
            claims=(ClaimDraft("Ann", "lives_in", "Lisbon", span=(11, 17)),),
        ),
        EvidenceDraft(
            "The passphrase is zanzibarquark.",
            actor="Ann",
            session="s3",
            source="mail",
            external_id="m3",
            occurred_at="2025-04-01T10:00:00Z",
        ),
    ]
    with EviCortex.open(path, embedder=None, clock=Ticking()) as cortex:
        cortex.remember_many("ann", drafts)
        cortex.remember("bob", "The passphrase is zanzibarquark.", external_id="m3")
    return path


def run(*words: object, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(
        cli, [str(word) for word in words], input=stdin, obj=Setting(clock=Ticking(), vectors=False)
    )


def done(*words: object, code: int = 0, stdin: str | bytes | None = None) -> Result:
    result = run(*words, stdin=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def data(*words: object, code: int = 0, stdin: str | bytes | None = None) -> Any:
    """Run with --json; standard output must be one JSON document and nothing else."""
    return json.loads(done(*words, "--json", code=code, stdin=stdin).stdout)


def evidence_id(db: Path, external_id: str) -> str:
    items = data(
        "recall",
        db,
        "-n",
        "ann",
        "--budget",
        500,
        "--include-superseded",
        "Lisbon Berlin passphrase",
    )["items"]
    return next(item["evidence_id"] for item in items if item["external_id"] == external_id)


def test_remember_creates_the_file_and_is_idempotent(tmp_path: Path) -> None:
    db = tmp_path / "new.db"
    words = ("remember", db, "-n", "ann", "--actor", "Ann", "--external-id", "x", "Hello there.")
    first = data(*words)
    assert first["created"]
    assert first["indexed"]
    again = data(*words)
    assert again["evidence_id"] == first["evidence_id"]
    assert not again["created"]
    shown = done(*words).stdout
    assert first["evidence_id"] in shown
    assert "no" in shown.split("new")[1].split("\n")[0]


def test_remember_reads_standard_input_exactly(db: Path) -> None:
    text = "  Zeile eins\r\nüben 👩‍👩‍👧\x00 end \n"
    receipt = data("remember", db, "-n", "ann", "-", stdin=text.encode())
    assert receipt["digest"] == hashlib.sha256(text.encode()).hexdigest()
    raw = done("evidence", db, "-n", "ann", "--raw", receipt["evidence_id"]).stdout_bytes
    assert raw == text.encode()


def test_remember_refuses_input_that_is_not_utf8(db: Path) -> None:
    result = done("remember", db, "-n", "ann", "-", stdin=b"\xff", code=2)
    assert "not UTF-8" in result.stderr
    assert result.stdout == ""


def test_remember_and_import_show_what_the_library_reports(tmp_path: Path) -> None:
    db, file = tmp_path / "memory.db", tmp_path / "chat.jsonl"
    echoed = "<memory>\n[E1] Ann: I live in Oslo.\n</memory>"
    words = ("remember", db, "-n", "ann", "--claim", "Ann", "lives_in", "Oslo", echoed)
    assert done(*words).stderr.count("recalled_context: ") == 1
    assert [item["code"] for item in data(*words)["diagnostics"]] == ["recalled_context"]
    claim = {"subject": "Ann", "predicate": "lives_in", "object": "Oslo"}
    lines = [json.dumps({"content": f"{echoed} {n}", "claims": [claim]}) for n in range(3)]
    file.write_text("\n".join(lines), "utf-8")
    words = ("import", db, "-n", "ann", "--format", "jsonl", file)
    (found,) = data(*words)["diagnostics"]
    assert (found["code"], found["count"]) == ("recalled_context", 3)
    assert done(*words).stderr == f"recalled_context: {found['message']} (3 times)\n"


def test_remember_records_claims(db: Path) -> None:
    receipt = data(
        "remember", db, "-n", "ann", "--at", "2026-05-01T00:00:00Z", "--role", "user",
        "--claim", "Ann", "lives_in", "Porto", "Porto it is.",
    )  # fmt: skip
    (claim_id,) = receipt["claim_ids"]
    (held,) = data("claims", db, "-n", "ann", "--predicate", "lives_in")
    assert (held["claim_id"], held["object"]) == (claim_id, "Porto")


def test_recall_prints_the_pack_and_nothing_else(db: Path) -> None:
    words = ("recall", db, "-n", "ann", "--budget", 300, "Where does Ann live?")
    pack = data(*words)
    assert pack["token_count"] <= pack["budget_tokens"] == 300
    assert {"items", "omitted", "support", "diagnostics", "trace"} <= set(pack)
    result = done(*words)
    assert result.stdout == pack["text"] + "\n"
    assert "of 300 tokens" in result.stderr
    assert pack["support"]["verdict"] in result.stderr


def test_recall_as_of_and_known_at(db: Path) -> None:
    words = ("recall", db, "-n", "ann", "--budget", 300, "Where does Ann live?")
    then = data(*words, "--as-of", "2024-06-01T00:00:00Z")
    assert [item["external_id"] for item in then["items"]] == ["m1"]
    before = data(*words, "--known-at", "2026-01-01T00:00:00Z")
    assert before["items"] == []


def test_recall_filters_by_session_and_actor(db: Path) -> None:
    words = ("recall", db, "-n", "ann", "--budget", 300, "Where does Ann live?")
    only = data(*words, "--session", "s2", "--session", "s3", "--actor", "Ann")
    assert {item["session"] for item in only["items"]} <= {"s2", "s3"}
    assert only["items"]


def test_recall_explains_itself(db: Path) -> None:
    shown = done("recall", db, "-n", "ann", "--budget", 300, "--explain", "Lisbon").stdout
    assert "In the pack" in shown
    assert "m2" in shown


def test_claims_and_history(db: Path) -> None:
    (now,) = data("claims", db, "-n", "ann", "--subject", "Ann")
    assert now["object"] == "Lisbon"
    (then,) = data("claims", db, "-n", "ann", "--as-of", "2024-06-01T00:00:00Z")
    assert then["object"] == "Berlin"
    every = data("claims", db, "-n", "ann", "--include-superseded")
    assert [claim["object"] for claim in every] == ["Berlin", "Lisbon"]
    told = data("history", db, "-n", "ann", "Ann", "lives_in")
    assert [claim["status"] for claim in told] == ["superseded", "held"]
    shown = done("history", db, "-n", "ann", "Ann", "lives_in").stdout
    assert shown.index("Berlin") < shown.index("Lisbon")
    assert "superseded" in shown
    assert done("claims", db, "-n", "ann", "--subject", "nobody").stdout == "No claims.\n"


def test_evidence_is_shown_with_its_digest(db: Path) -> None:
    identifier = evidence_id(db, "m2")
    record = data("evidence", db, "-n", "ann", identifier)
    assert record["content"] == "I moved to Lisbon."
    assert record["occurred_at"] == "2025-03-01T10:00:00Z"
    shown = done("evidence", db, "-n", "ann", identifier).stdout
    assert record["digest"] in shown
    assert "I moved to Lisbon." in shown
    raw = done("evidence", db, "-n", "ann", identifier, "--raw").stdout_bytes
    assert hashlib.sha256(raw).hexdigest() == record["digest"]
    done("evidence", db, "-n", "ann", identifier, "--raw", "--json", code=2)


def test_extraction_of_evidence_without_one_is_not_found(db: Path) -> None:
    result = done("extraction", db, "-n", "ann", evidence_id(db, "m1"), code=2)
    assert "NotFoundError" in result.stderr


def test_extraction_shows_who_found_what(db: Path) -> None:
    def extract(context: EvidenceContext) -> ExtractionResult:
        claim = ExtractedClaim(
            evidence_id=context.evidence_id,
            evidence_digest=context.digest,
            subject="Ann",
            predicate="owns",
            object="bicycle",
            span=Span(8, 15),
            quote="bicycle",
            confidence=0.75,
        )
        return ExtractionResult(claims=(claim,))

    with EviCortex.open(db, embedder=None, extractor=ScriptedExtractor(extract)) as cortex:
        receipt = cortex.remember_extracted("ann", "I own a bicycle.", actor="Ann", role="user")
    words = ("extraction", db, "-n", "ann", receipt.evidence_id)
    record = data(*words)
    assert [item["span"] for item in record["derivations"]] == [[8, 15]]
    assert not record["abstained"]
    shown = done(*words).stdout
    for part in (*receipt.claim_ids, "[8:15]", "0.75", record["extractor_id"], "abstained"):
        assert part in shown


def test_retract_gives_back_what_was_held_before(db: Path) -> None:
    (now,) = data("claims", db, "-n", "ann")
    receipt = data("retract", db, "-n", "ann", now["claim_id"], "--reason", "a joke")
    assert receipt["claim_id"] == now["claim_id"]
    (held,) = data("claims", db, "-n", "ann")
    assert held["object"] == "Berlin"
    assert [held["claim_id"]] == receipt["reinstated"]
    shown = done("retract", db, "-n", "ann", now["claim_id"], "--reason", "a joke").stdout
    assert now["claim_id"] in shown


def test_purge_needs_a_yes_where_nobody_can_be_asked(db: Path) -> None:
    result = done("purge", db, "-n", "ann", "--session", "s3", code=2)
    assert "--yes" in result.stderr
    assert data("stats", db, "-n", "ann")["evidence"] == 3


def test_purge_asks_on_a_terminal(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evicortex.interfaces.cli.writing._on_terminal", lambda: True)
    declined = done("purge", db, "-n", "ann", "--session", "s3", stdin="n\n")
    assert "Nothing was purged" in declined.stderr
    assert declined.stdout == ""
    assert data("stats", db, "-n", "ann")["evidence"] == 3
    done("purge", db, "-n", "ann", "--session", "s3", stdin="y\n")
    assert data("stats", db, "-n", "ann")["evidence"] == 2


def test_purge_takes_exactly_one_selector(db: Path) -> None:
    for selector in ((), ("--session", "s3", "--everything")):
        result = done("purge", db, "-n", "ann", *selector, "--yes", code=2)
        assert "SelectorError" in result.stderr


@pytest.mark.parametrize(
    "selector", [("--session", "s3"), ("--source", "mail"), ("--actor", "Ann"), ("--everything",)]
)
def test_purge_leaves_no_byte_here_and_everything_elsewhere(
    db: Path, selector: tuple[str, ...]
) -> None:
    receipt = data("purge", db, "-n", "ann", *selector, "--yes")
    assert receipt["complete"]
    assert data("stats", db, "-n", "bob")["evidence"] == 1
    done("purge", db, "-n", "bob", "--everything", "--yes")
    left = [file.name for file in db.parent.iterdir() if b"zanzibarq" in file.read_bytes()]
    assert left == []
    assert data("verify", db)["ok"]


def test_purge_by_evidence_shows_its_tombstone(db: Path) -> None:
    identifier = evidence_id(db, "m3")
    shown = done("purge", db, "-n", "ann", "--evidence-id", identifier, "--yes").stdout
    assert identifier in shown
    assert hashlib.sha256(b"The passphrase is zanzibarquark.").hexdigest() in shown


def test_upkeep_commands(db: Path) -> None:
    rebuilt = data("rebuild", db, "-n", "ann")
    assert rebuilt["evidence"] == 3
    assert "evidence" in done("rebuild", db, "-n", "ann").stdout
    synced = data("sync", db, "-n", "ann")
    assert synced["failed"] == 0
    assert "indexed" in done("sync", db, "-n", "ann").stdout
    counted = data("stats", db, "-n", "ann")
    assert (counted["evidence"], counted["claims"], counted["sessions"]) == (3, 2, 3)
    assert "sessions" in done("stats", db, "-n", "ann").stdout
    assert [item["namespace"] for item in data("stats", db)] == ["ann", "bob"]
    assert "bob" in done("stats", db).stdout
    report = data("capabilities", db)
    assert report["channels"]
    assert "SQLite" in done("capabilities", db).stdout


def test_capabilities_without_vectors_and_no_sync_without_them(db: Path) -> None:
    result = CliRunner().invoke(cli, ["capabilities", str(db), "--no-vectors", "--json"])
    assert json.loads(result.stdout)["channels"]["dense_turn"] is False
    assert json.loads(result.stdout)["embedder"] is None
    refused = done("sync", db, "-n", "ann", "--no-vectors", code=2)
    assert "nothing to do" in refused.stderr
    assert refused.stdout == ""


def test_verify_says_ok_and_finds_what_was_altered(db: Path) -> None:
    assert data("verify", db)["ok"]
    assert data("verify", db, "-n", "ann")["ok"]
    assert "ok" in done("verify", db).stdout
    apsw = pytest.importorskip("apsw")
    connection = apsw.Connection(str(db))
    connection.execute("UPDATE evidence SET content = 'I never moved.' WHERE external_id = 'm2'")
    connection.close()
    broken = data("verify", db, code=1)
    assert not broken["ok"]
    assert broken["problems"]
    shown = done("verify", db, code=1).stdout
    assert "PROBLEMS" in shown
    assert broken["problems"][0]["code"] in shown


def test_export_and_load_round_trip(db: Path, tmp_path: Path) -> None:
    file, other, again = tmp_path / "ann.jsonl", tmp_path / "other.db", tmp_path / "again.jsonl"
    written = data("export", db, "-n", "ann", file)
    assert written["evidence"] == 3
    read = data("load", other, "-n", "ann", file)
    assert read["created"] == 3
    assert data("export", other, "-n", "ann", again)["digest"] == written["digest"]
    assert "evidence" in done("export", db, "-n", "ann", tmp_path / "third.jsonl").stdout
    assert "evidence" in done("load", other, "-n", "ann", file).stdout
    assert "Error" in done("export", db, "-n", "ann", tmp_path / "no" / "such", code=2).stderr


def test_import_reports_bad_lines_and_imports_the_rest_once(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    lines = [
        '{"external_id": "n1", "content": "A good line."}',
        "not json",
        '{"external_id": "n2", "content": "No zone.", "occurred_at": "2025-01-01T00:00:00"}',
        '{"content": "Without an id."}',
        "",
        '{"external_id": "n3", "content": "Bad claim.", "claims": [{"subject": "A", "predicate": "b", "object": "c", "span": [0, 999]}]}',
    ]
    file.write_text("\n".join(lines), "utf-8")
    words = ("import", db, "-n", "new", "--format", "jsonl", file)
    report = data(*words, code=1)
    assert (report["created"], report["unchanged"]) == (2, 0)
    assert [(item["number"], item["error"]) for item in report["refused"]] == [
        (2, "ImportFormatError"),
        (3, "NaiveDatetimeError"),
        (6, "InvalidSpanError"),
    ]
    result = done(*words, code=1)
    assert "line 2: ImportFormatError" in result.stderr
    assert "known already" in result.stdout
    assert data(*words, "--batch", 1, code=1)["unchanged"] == 2
    assert data("stats", db, "-n", "new")["evidence"] == 2


def test_import_of_another_text_under_a_known_id_is_a_conflict(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text('{"external_id": "m1", "content": "Another text."}\n', "utf-8")
    report = data("import", db, "-n", "ann", "--format", "jsonl", file, code=3)
    assert [item["error"] for item in report["refused"]] == ["ConflictError"]


def test_import_shows_the_first_refusals_and_counts_the_others(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text("bad\n" * 25, "utf-8")
    result = done("import", db, "-n", "ann", "--format", "jsonl", file, code=1)
    assert "line 20:" in result.stderr
    assert "line 21:" not in result.stderr
    assert "5 more" in result.stderr


@pytest.mark.parametrize(("name", "created", "bad"), [("chatgpt", 5, 1), ("claude", 4, 1)])
def test_import_of_exports_twice_doubles_nothing(
    tmp_path: Path, name: str, created: int, bad: int
) -> None:
    db = tmp_path / "memory.db"
    words = ("import", db, "-n", "me", "--format", name, "--user", "Rui")
    words = (*words, EXPORTS / f"{name}_conversations.json")
    first = data(*words, code=1)
    assert (first["created"], len(first["refused"])) == (created, bad)
    assert first["skipped"]
    second = data(*words, code=1)
    assert (second["created"], second["unchanged"]) == (0, created)
    result = done(*words, code=1)
    assert "left out: " in result.stdout
    assert "record" in result.stderr


_SESSION = {"session_1_date_time": "1:00 pm on 1 May, 2023"}
_GOOD: dict[str, dict[str, Any]] = {
    "chatgpt": {
        "id": "c1",
        "create_time": 1700000000,
        "current_node": "n1",
        "mapping": {
            "n1": {
                "message": {
                    "id": "m1",
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["Hello."]},
                }
            }
        },
    },
    "claude": {
        "uuid": "c1",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "Hello.",
                "created_at": "2024-01-01T00:00:00Z",
            }
        ],
    },
    "locomo": {
        "sample_id": "c1",
        "conversation": {
            **_SESSION,
            "session_1": [{"dia_id": "D1:1", "speaker": "A", "text": "Hello."}],
        },
    },
    "longmemeval": {
        "question_id": "c1",
        "haystack_session_ids": ["s1"],
        "haystack_dates": ["2023/05/30 (Tue) 23:17"],
        "haystack_sessions": [[{"role": "user", "content": "Hello."}]],
    },
}


@pytest.mark.parametrize("name", sorted(_GOOD))
@pytest.mark.parametrize(
    ("rest", "reason"),
    [(", null]", "expected an object, found null"), ("}]", "nothing after it was read")],
)
def test_import_keeps_the_good_records_of_a_bad_file(
    tmp_path: Path, name: str, rest: str, reason: str
) -> None:
    file = tmp_path / "chats.json"
    file.write_text("[" + json.dumps(_GOOD[name]) + rest, "utf-8")
    words = ("import", tmp_path / "memory.db", "-n", "ann", "--format", name, file)
    report = data(*words, code=1)
    assert report["created"] == 1
    assert [item["number"] for item in report["refused"]] == [2]
    assert reason in report["refused"][0]["message"]
    assert f"record 2: ImportFormatError: {report['refused'][0]['message']}" in run(*words).stderr


def test_import_of_another_format_is_wrong_use(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text("hello", "utf-8")
    result = done("import", db, "-n", "ann", "--format", "locomo", file, code=2)
    assert "ImportFormatError" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ("recall", "DB", "--budget", "10", "q"),
        ("recall", "DB", "-n", "ann", "q"),
        ("recall", "DB", "-n", "", "--budget", "10", "q"),
        ("recall", "DB", "-n", "ann", "--budget", "-1", "q"),
        ("recall", "DB", "-n", "ann", "--budget", "10", "--as-of", "2024-01-01", "q"),
        ("recall", "missing.db", "-n", "ann", "--budget", "10", "q"),
        ("evidence", "DB", "-n", "ann", "ev_000000000000000000000000"),
        ("retract", "DB", "-n", "ann", "no-such-claim", "--reason", "x"),
        ("remember", "DB", "-n", "ann", "--at", "yesterday", "x"),
        ("remember", "DB", "-n", "ann", "--authority", "boss", "x"),
        ("no-such-command",),
    ],
)
def test_wrong_use_exits_with_two_and_prints_no_result(db: Path, words: tuple[str, ...]) -> None:
    result = done(*(db if word == "DB" else word for word in words), code=2)
    assert result.stdout == ""
    assert result.stderr
    assert "Traceback" not in result.stderr


def test_a_conflict_exits_with_three(db: Path) -> None:
    result = done("remember", db, "-n", "ann", "--external-id", "m1", "Another text.", code=3)
    assert "ConflictError" in result.stderr
    assert result.stdout == ""


def test_a_file_that_is_no_ledger_exits_with_two(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("These are my notes, and no ledger at all. " * 100, "utf-8")
    result = done("verify", file, code=2)
    assert "NotALedgerError" in result.stderr


def test_a_reading_command_creates_nothing(tmp_path: Path) -> None:
    done("stats", tmp_path / "absent.db", "-n", "ann", code=2)
    assert list(tmp_path.iterdir()) == []


def test_help_of_every_command_has_an_example() -> None:
    assert "verify my.db" in done("--help").stdout
    paths = [(name,) for name in cli.commands] + [("models", name) for name in models.commands]
    for path in paths:
        shown = done(*path, "--help").stdout
        assert f"evicortex {' '.join(path)}" in shown.split("Examples:")[1]
        assert "--json" in shown or path == ("models",)


def test_version() -> None:
    assert done("--version").stdout.startswith("evicortex ")
