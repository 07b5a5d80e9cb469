"""The command line from outside: exit codes, one JSON document each, results on standard output."""

import json

import pytest
from click.testing import CliRunner

from evicortex.interfaces.cli import cli


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0, text=None):
        result = CliRunner().invoke(cli, [str(a) for a in arguments], input=text)
        assert result.exit_code == code, (arguments, result.stdout, result.stderr)
        assert "Traceback" not in result.stdout + result.stderr
        return result

    return call


def told(run):
    remember = ("remember", "m.db", "-n", "ann", "--no-vectors", "--json")
    first = run(*remember, "--actor", "Ann", "--session", "s1", "--at", "2020-01-01T00:00:00Z",
                "--external-id", "x1", "--claim", "Ann", "lives_in", "Berlin",
                "Ann lives in Berlin.")  # fmt: skip
    second = run(*remember, "--actor", "Ann", "--session", "s2", "--at", "2024-01-01T00:00:00Z",
                 "--claim", "Ann", "lives_in", "Lisbon", "Ann lives in Lisbon.")  # fmt: skip
    return json.loads(first.stdout), json.loads(second.stdout)


def test_every_reading_command_prints_exactly_one_json_document(run):
    first, _ = told(run)
    for arguments in (
        ("recall", "--budget", 200, "--no-vectors", "Where does Ann live?"),
        ("claims",),
        ("history", "Ann", "lives_in"),
        ("evidence", first["evidence_id"]),
        ("stats",),
        ("verify",),
        ("rebuild",),
        ("export", "out.jsonl"),
        ("load", "--no-vectors", "out.jsonl"),
    ):
        command, *rest = arguments
        result = run(command, "m.db", "-n", "ann", "--json", *rest)
        assert isinstance(json.loads(result.stdout), dict | list)


def test_time_travel_and_exact_text(run):
    first, second = told(run)
    recall = ("recall", "m.db", "-n", "ann", "--no-vectors", "--budget", 200)
    assert "Lisbon" in run(*recall, "Where does Ann live?").stdout
    then = run(*recall, "--as-of", "2022-01-01T00:00:00Z", "Where does Ann live?").stdout
    assert "Berlin" in then
    assert "Lisbon" not in then
    pack = json.loads(run(*recall, "--json", "--include-superseded", "Where does Ann live?").stdout)
    assert {i["evidence_id"] for i in pack["items"]} == {
        first["evidence_id"],
        second["evidence_id"],
    }
    run("remember", "m.db", "-n", "raw", "--no-vectors", "-", text="caf\u00e9 \u2028 \ttail\n\n")
    hits = json.loads(
        run("recall", "m.db", "-n", "raw", "--no-vectors", "--budget", 99, "--json", "café").stdout
    )
    (item,) = hits["items"]
    shown = json.loads(run("evidence", "m.db", "-n", "raw", "--json", item["evidence_id"]).stdout)
    assert shown["content"] == "caf\u00e9 \u2028 \ttail\n\n"


WRONG = [
    ("recall", "m.db", "-n", "ann", "q"),
    ("recall", "m.db", "--budget", "9", "q"),
    ("recall", "m.db", "-n", "ann", "--budget", "-1", "q"),
    ("recall", "m.db", "-n", "ann", "--budget", "many", "q"),
    ("recall", "m.db", "-n", "ann", "--budget", "9", "--as-of", "yesterday", "q"),
    ("recall", "m.db", "-n", "ann", "--budget", "9", "--as-of", "2024-01-01", "q"),
    ("recall", "m.db", "-n", "", "--budget", "9", "q"),
    ("recall", "absent.db", "-n", "ann", "--budget", "9", "q"),
    ("recall", ".", "-n", "ann", "--budget", "9", "q"),
    ("evidence", "m.db", "-n", "ann", "ev_nothing"),
    ("purge", "m.db", "-n", "ann", "--yes"),
    ("purge", "m.db", "-n", "ann", "--session", "s1", "--everything", "--yes"),
    ("purge", "m.db", "-n", "ann", "--evidence-id", "ev_nothing", "--yes"),
    ("purge", "m.db", "-n", "ann", "--session", "", "--yes"),
    ("purge", "m.db", "-n", "ann", "--everything"),
    ("load", "m.db", "-n", "ann", "absent.jsonl"),
    ("export", "m.db", "-n", "nobody", "out.jsonl"),
    ("remember", "m.db", "-n", "ann", "--authority", "emperor", "x"),
    ("remember", "m.db", "-n", "ann", "--at", "2024-01-01T00:00:00", "x"),
    ("nonsense",),
]


def test_wrong_use_is_exit_code_two_with_a_message_on_standard_error(run):
    told(run)
    for arguments in WRONG:
        result = run(*arguments, code=2)
        assert result.stdout == ""
        assert result.stderr.strip()
    assert json.loads(run("stats", "m.db", "-n", "ann", "--json").stdout)["evidence"] == 2


def test_a_conflict_is_exit_code_three(run):
    told(run)
    conflict = ("remember", "m.db", "-n", "ann", "--no-vectors", "--external-id", "x1", "Other.")
    result = run(*conflict, code=3)
    assert result.stdout == ""
    assert "x1" in result.stderr


def test_a_purge_on_the_command_line_leaves_no_byte(run, tmp_path):
    told(run)
    run("purge", "m.db", "-n", "ann", "--session", "s2", "--yes")
    for path in tmp_path.iterdir():
        assert b"Lisbon" not in path.read_bytes()
    assert "Berlin" in run("claims", "m.db", "-n", "ann").stdout
    assert json.loads(run("verify", "m.db", "--json").stdout)["ok"]


def test_a_broken_file_is_exit_code_one_on_verify(run, tmp_path):
    import apsw

    told(run)
    connection = apsw.Connection(str(tmp_path / "m.db"))
    for (trigger,) in list(
        connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    ):
        connection.execute(f'DROP TRIGGER "{trigger}"')
    connection.execute("UPDATE evidence SET content = 'forged'")
    connection.close()
    result = run("verify", "m.db", "--json", code=1)
    assert not json.loads(result.stdout)["ok"]


def test_a_reading_command_makes_no_file(run, tmp_path):
    for command in ("claims", "stats", "verify"):
        run(command, "absent.db", "-n", "ann", code=2)
    assert list(tmp_path.iterdir()) == []
