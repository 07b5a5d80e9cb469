"""Standard output carries results only; diagnostics and progress go to standard error."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from typing import Any, TypeVar

import click
from rich.console import Console, RenderableType

from evicortex.interfaces.diagnosing import Reported, reported
from evicortex.interfaces.escaping import printable
from evicortex.interfaces.plain import to_json
from evicortex.types import Diagnostic

T = TypeVar("T")

PIPE_WIDTH = 180
"""Columns of a table that goes to a pipe or a file, where no terminal has a width."""

SHOWN_NOTES = 20
"""Notes of one kind on standard error; ``--json`` has all."""


def emit(value: T, render: Callable[[T], RenderableType], *, as_json: bool) -> None:
    """Print a result: one JSON document, or what ``render`` makes of it for people."""
    click.echo(to_json(value) if as_json else rendered(render(value)), nl=as_json)


def rendered(renderable: RenderableType) -> str:
    """Return what a terminal shows of ``renderable``; no colours unless stdout is one."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((PIPE_WIDTH, 24)).columns if terminal else PIPE_WIDTH
    console = Console(
        file=StringIO(),
        force_terminal=terminal,
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as capture:
        console.print(renderable, crop=False)
    return "\n".join(line.rstrip() for line in capture.get().split("\n"))


def note(message: str) -> None:
    """Tell people something that is not a result."""
    click.echo(printable(message), err=True)


def note_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Tell people everything the library reported along with a result, the same thing once."""
    note_reported(reported(diagnostics))


def note_reported(found: Sequence[Reported]) -> None:
    """Tell people each distinct diagnostic, and how often it came if that was more than once."""
    for item in found[:SHOWN_NOTES]:
        times = f" ({item.count} times)" if item.count > 1 else ""
        note(f"{item.code}: {item.message}{times}")
    note_more(len(found))


def note_more(count: int) -> None:
    """Say how many of ``count`` notes were not shown, if so."""
    if count > SHOWN_NOTES:
        note(f"… and {count - SHOWN_NOTES} more; --json lists them all")


def finish(code: int) -> None:
    """End the command with an exit code other than 0, if ``code`` is one."""
    if code:
        context: Any = click.get_current_context()
        context.exit(code)
