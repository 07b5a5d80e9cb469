"""Streams of the real process: pipes, colours, hostile text, exit codes of failing providers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from evicortex import EviCortex, EvidenceDraft
from evicortex.errors import (
    ConflictError,
    CorruptLedgerError,
    InputError,
    LedgerBusyError,
    LedgerVersionError,
    MissingExtraError,
    NotFoundError,
    ProviderUnavailableError,
)
from evicortex.interfaces.cli import app, cli, output
from evicortex.interfaces.escaping import one_line, printable
from evicortex.interfaces.plain import plain, to_json
from evicortex.types import Authority, Diagnostic, RememberReceipt, Span

HOSTILE = (
    "red \x1b[31malert\x1b[0m \x07 \x9b31m \u202egnp.exe\u2066 ok 👩‍👩‍👧 [bold]x[/bold] :smile:"
)
COMMAND = [sys.executable, "-c", "from evicortex.interfaces.cli import main; main()"]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with EviCortex.open(path, embedder=None) as cortex:
        cortex.remember("ann", HOSTILE, actor="A\x1b[31m", session="s\n1", external_id="h")
        cortex.remember_many(
            "big", [EvidenceDraft(f"Line {number} " + "x" * 900) for number in range(200)]
        )
    return path


def test_stored_text_cannot_drive_a_terminal(db: Path) -> None:
    runner = CliRunner()
    words = [
        "recall",
        str(db),
        "-n",
        "ann",
        "--no-vectors",
        "--budget",
        "500",
        "red alert",
        "--explain",
    ]
    result = runner.invoke(cli, words)
    assert result.exit_code == 0
    identifier = json.loads(runner.invoke(cli, [*words, "--json"]).stdout)["items"][0][
        "evidence_id"
    ]
    card = runner.invoke(cli, ["evidence", str(db), "-n", "ann", identifier])
    for shown in (result.stdout, result.stderr, card.stdout):
        assert not any(character in shown for character in "\x1b\x07\x9b\u202e\u2066")
    assert "\\x1b[31malert" in card.stdout
    assert "👩‍👩‍👧" in card.stdout
    assert "[bold]x[/bold] :smile:" in card.stdout
    assert "s\\n1" in card.stdout


@given(st.text())
def test_printable_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = printable(text)
    assert all(
        character in "\n\t" or character.isprintable() or ord(character) >= 0xA0
        for character in shown
    )
    assert "\n" not in one_line(text)
    assert "\x1b" not in shown


def test_printable_text_without_controls_is_unaltered() -> None:
    assert printable("naïve 漢字 עברית 👩‍👩‍👧\n\ttab") == "naïve 漢字 עברית 👩‍👩‍👧\n\ttab"


def test_a_closed_pipe_is_no_traceback(db: Path) -> None:
    """A reader that stops early is no error: the big output fits no pipe buffer."""
    words = ["recall", str(db), "-n", "big", "--no-vectors", "--budget", "100000", "--json", "Line"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(timeout=60) == app.CLOSED_PIPE
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


def _in_terminal(words: list[str], environment: dict[str, str], stream: str = "stdout") -> str:
    """Run the command with one stream on a pseudo-terminal; return what it printed there."""
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *words],
        stdout=slave if stream == "stdout" else subprocess.DEVNULL,
        stderr=slave if stream == "stderr" else subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    )
    os.close(slave)
    printed = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break  # Linux reports the closed terminal as an error
        if not chunk:
            break
        printed += chunk
    os.close(master)
    assert process.wait(timeout=60) == 0
    return printed.decode()


def test_colours_on_a_terminal_only(db: Path) -> None:
    words = ["verify", str(db)]
    assert "\x1b[32mok" in _in_terminal(words, {"NO_COLOR": ""})
    assert "\x1b[32m" not in _in_terminal(words, {"NO_COLOR": "1"})
    piped = subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        check=True,
        env={**os.environ, "FORCE_COLOR": "1"},
        timeout=60,
    )
    assert b"\x1b" not in piped.stdout


def test_output_that_the_terminal_cannot_encode_is_escaped(db: Path) -> None:
    result = subprocess.run(
        [*COMMAND, "recall", str(db), "-n", "ann", "--no-vectors", "--budget", "500", "alert"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
        timeout=60,
    )
    assert b"\\U0001f469" in result.stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), 2),
        (NotFoundError("x"), 2),
        (LedgerVersionError("x"), 2),
        (MissingExtraError("x", "local"), 2),
        (ConflictError("x"), 3),
        (ProviderUnavailableError("x"), 4),
        (CorruptLedgerError("x"), 1),
        (LedgerBusyError("x"), 1),
        (PermissionError(13, "no"), 2),
    ],
)
def test_exit_code_of_every_kind_of_error(error: Exception, code: int) -> None:
    @cli.command("fails")
    def fails() -> None:
        raise error

    try:
        result = CliRunner().invoke(cli, ["fails"])
    finally:
        del cli.commands["fails"]
    assert result.exit_code == code
    assert type(error).__name__ in result.stderr
    assert result.stdout == ""


def test_an_interrupt_says_what_stays() -> None:
    @cli.command("interrupted")
    def interrupted() -> None:
        raise KeyboardInterrupt

    try:
        result = CliRunner().invoke(cli, ["interrupted"])
    finally:
        del cli.commands["interrupted"]
    assert result.exit_code == app.INTERRUPTED
    assert "committed stays" in result.stderr


def test_stored_but_not_indexed_exits_with_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lagging = RememberReceipt(
        "ev_1", "0" * 64, (), created=True, indexed=False,
        diagnostics=(Diagnostic("embedder_failed", "committed, not yet indexed"),),
    )  # fmt: skip
    monkeypatch.setattr(EviCortex, "remember", lambda *_, **__: lagging)
    monkeypatch.setattr(
        EviCortex, "remember_many", lambda _self, _ns, drafts: [lagging for _ in drafts]
    )
    db, file = tmp_path / "memory.db", tmp_path / "chat.jsonl"
    file.write_text('{"content": "x"}\n', "utf-8")
    result = CliRunner().invoke(cli, ["remember", str(db), "-n", "ann", "x"])
    assert result.exit_code == app.PROVIDER_FAILED
    assert "embedder_failed" in result.stderr
    assert "ev_1" in result.stdout
    file.write_text('{"content": "x"}\n' * 3, "utf-8")
    words = ["import", str(db), "-n", "ann", "--format", "jsonl", "--batch", "2", str(file)]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == app.PROVIDER_FAILED
    assert "not yet indexed" in result.stdout
    assert result.stderr == "embedder_failed: committed, not yet indexed (3 times)\n"
    report = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert report["diagnostics"] == [
        {"code": "embedder_failed", "message": "committed, not yet indexed", "count": 3}
    ]


def test_notes_beyond_the_first_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = [Diagnostic("code", f"number {number}") for number in (*range(23), 0, 0)]
    output.note_diagnostics(found)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["code: number 0 (3 times)", "code: number 1"]
    assert lines[20:] == ["… and 3 more; --json lists them all"]


def test_plain_values() -> None:
    values = {
        "time": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "span": Span(1, 2),
        "authority": Authority.USER,
        "floats": [1.5, float("inf"), np.float32(0.5), np.int64(3)],
        "set": {"b", "a"},
        "array": np.array([1, 2]),
    }
    assert plain(values) == {
        "time": "2026-01-02T03:04:05.000006Z",
        "span": [1, 2],
        "authority": "user",
        "floats": [1.5, "inf", 0.5, 3],
        "set": ["a", "b"],
        "array": [1, 2],
    }
    assert json.loads(to_json("\x9b\u202e")) == "\x9b\u202e"
    assert to_json("\x9b\u202e").isascii()


def test_tables_for_a_pipe_lose_nothing() -> None:
    from evicortex.interfaces.tables import cell, grid

    long = "w" * (output.PIPE_WIDTH * 2)
    shown = output.rendered(grid(("a", "b"), [[cell(long), cell("x")]]))
    assert shown.count("w") == len(long)


def test_import_shows_a_progress_bar_on_a_terminal_only(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text('{"content": "x"}\n' * 20, "utf-8")
    words = ["import", str(tmp_path / "a.db"), "-n", "ann", "--no-vectors", "--format", "jsonl"]
    assert "chat.jsonl" in _in_terminal([*words, str(file)], {}, stream="stderr")
    piped = subprocess.run(
        [*COMMAND, *words, str(file)], capture_output=True, check=True, timeout=60
    )
    assert piped.stderr == b""
    assert b"known already  20" in piped.stdout


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["verify", "{db}"], "Verifying memory.db"),
        (["rebuild", "{db}", "-n", "ann"], "Rebuilding ann"),
        (["sync", "{db}", "-n", "ann"], "Syncing ann"),
        (["export", "{db}", "-n", "ann", "{file}"], "Exporting ann"),
        (["load", "{db}", "-n", "eve", "--no-vectors", "{exported}"], "Loading ann.jsonl"),
    ],
)
def test_long_work_shows_for_how_long_on_a_terminal_only(
    db: Path, tmp_path: Path, words: list[str], shown: str
) -> None:
    exported = tmp_path / "ann.jsonl"
    with EviCortex.open(db, embedder=None) as cortex:
        cortex.export("ann", exported)
    names = {"db": db, "file": tmp_path / "out.jsonl", "exported": exported}
    words = [word.format_map(names) for word in words]
    seen = _in_terminal(words, {}, stream="stderr")
    assert shown in seen
    assert "0:00:0" in seen
    piped = subprocess.run([*COMMAND, *words], capture_output=True, check=True, timeout=60)
    assert shown.encode() not in piped.stdout + piped.stderr
