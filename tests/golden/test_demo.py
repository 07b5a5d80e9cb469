"""The demonstration: the same words every time, every answer cited, nothing purged left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evicortex.errors import ImportFormatError
from evicortex.interfaces.cli import cli
from evicortex.interfaces.demo import run_demo

GOLDEN = Path(__file__).with_name("demo.txt")
LOCOMO = Path(__file__).parents[3] / "shared" / "data" / "locomo" / "locomo_dev6.json"


def test_demo_prints_what_it_always_printed() -> None:
    """To renew: ``evicortex demo > tests/golden/demo.txt``, and read the difference."""
    result = CliRunner().invoke(cli, ["demo"])
    assert result.exit_code == 0, result.output
    assert result.stdout == GOLDEN.read_text("utf-8")
    assert result.stderr == ""


def test_demo_answers_every_question_and_forgets() -> None:
    report = run_demo()
    assert [item.question.text for item in report.asked if not item.as_expected] == []
    assert len(report.asked) >= 12
    assert all(item.pack.token_count <= item.question.budget for item in report.asked)
    assert report.told.messages >= 60
    assert report.told.sessions >= 8
    assert report.told.refused == 0
    assert (report.told.last - report.told.first).days >= 730
    assert all(count > 0 for count in report.forgotten.before.values())
    assert all(count == 0 for count in report.forgotten.after.values())
    assert report.forgotten.receipt.complete
    assert [claim.object for claim in report.remembered.claims] == [
        "Bergen",
        "Utrecht",
        "Amersfoort",
    ]
    assert report.verified.ok
    assert report.ok


def test_demo_as_json_is_one_document() -> None:
    result = CliRunner().invoke(cli, ["demo", "--json"])
    report = json.loads(result.stdout)
    assert report["ok"] is True
    assert len(report["asked"]) >= 12


@pytest.mark.skipif(not LOCOMO.is_file(), reason=f"no LoCoMo file at {LOCOMO}")
def test_demo_on_a_locomo_file() -> None:
    result = CliRunner().invoke(cli, ["demo", "--locomo", str(LOCOMO), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["told"]["messages"] == 419
    assert report["told"]["refused"] == 0
    assert all(
        item["pack"]["token_count"] <= item["question"]["budget"] for item in report["asked"]
    )
    assert all(count > 0 for count in report["forgotten"]["before"].values())
    assert all(count == 0 for count in report["forgotten"]["after"].values())
    statuses = [claim["status"] for claim in report["remembered"]["claims"]]
    assert statuses.count("held") == 1
    assert "superseded" in statuses
    assert "As of a time before the answer" in {
        item["question"]["remark"] for item in report["asked"]
    }
    (invented,) = [item for item in report["asked"] if item["question"]["refused"]]
    assert invented["question"]["remark"].startswith("Invented")
    assert invented["as_expected"]
    support = invented["pack"]["support"]
    assert support["verdict"] == "insufficient"
    assert support["reasons"] == ["nothing remembered mentions Zephyrine, Quillfeather"]
    shown = CliRunner().invoke(cli, ["demo", "--locomo", str(LOCOMO)])
    assert "conv-26" in shown.stdout
    assert "no message answers it, and the pack says so" in shown.stdout
    expected = sum(item["as_expected"] for item in report["asked"])
    assert f"{expected} of {len(report['asked'])} questions as expected" in shown.stdout


def test_demo_invents_a_person_of_whom_the_file_does_not_speak(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Have you met Mrs Quillfeather?"},
        {"speaker": "Ottoline", "dia_id": "D1:2", "text": "I saw a hippopotamus instead."},
    ]
    conversation = {"session_1": turns, "session_1_date_time": "1:00 pm on 1 May, 2023"}
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps([{"sample_id": "a", "conversation": conversation, "qa": []}]))
    (invented,) = [item for item in run_demo(file).asked if item.question.refused]
    assert "Balthazar" in invented.question.text
    assert invented.as_expected


def test_demo_refuses_a_file_without_a_word_to_purge(tmp_path: Path) -> None:
    turns = [{"speaker": "A", "dia_id": f"D1:{n}", "text": "Same wording"} for n in (1, 2)]
    conversation = {"session_1": turns, "session_1_date_time": "1:00 pm on 1 May, 2023"}
    file = tmp_path / "locomo.json"
    file.write_text(json.dumps([{"sample_id": "a", "conversation": conversation, "qa": []}]))
    with pytest.raises(ImportFormatError, match="word of its own"):
        run_demo(file)


@pytest.mark.parametrize(
    "text", ["[]", '[{"sample_id": "a"}]', '[{"sample_id": "a", "conversation": {}, "qa": []}]']
)
def test_demo_refuses_what_is_no_locomo_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text, "utf-8")
    with pytest.raises(ImportFormatError):
        run_demo(file)
