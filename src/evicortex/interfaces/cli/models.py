"""Commands that fetch models and say where they lie."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from evicortex import models as library
from evicortex.interfaces import receipts
from evicortex.interfaces.cli.app import PROBLEM_FOUND, Commands, cli
from evicortex.interfaces.cli.options import json_option
from evicortex.interfaces.cli.output import emit, finish, note
from evicortex.interfaces.escaping import printable
from evicortex.interfaces.plain import to_json

cache_option = click.option(
    "--cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where models are kept, instead of ~/.cache/evicortex.",
)


@cli.group(
    cls=Commands,
    examples=(
        "evicortex models list",
        "evicortex models fetch all-MiniLM-L6-v2",
        "evicortex models path all-MiniLM-L6-v2",
    ),
)
def models() -> None:
    """Fetch pinned models, and say where they lie.

    A model is known by its commit and by the SHA-256 of every file. Only fetch uses the network,
    and no other command fetches anything.
    """


@models.command(
    examples=(
        "evicortex models fetch all-MiniLM-L6-v2",
        "evicortex models fetch all-MiniLM-L6-v2 --endpoint https://hub.example.org",
    )
)
@cache_option
@click.option(
    "--endpoint",
    default=library.HUB,
    show_default=True,
    metavar="URL",
    help="A server that speaks the hub's protocol.",
)
@json_option
@click.argument("name")
def fetch(name: str, cache_dir: Path | None, endpoint: str, as_json: bool) -> None:
    """Download the model NAME, unless it is there and whole.

    Every file is checked against its pinned size and SHA-256 before the model is put in its
    place. When anything is wrong, nothing of it stays; exit code 4.
    """
    with _progress() as moved:
        fetched = library.fetch(name, cache_dir=cache_dir, endpoint=endpoint, on_progress=moved)
    emit(fetched, receipts.fetched_table, as_json=as_json)


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar a file on standard error, if that is a terminal."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, markup=False, emoji=False, highlight=False),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    tasks = {}

    def moved(file: str, done: int, size: int) -> None:
        if file not in tasks:
            tasks[file] = bar.add_task(file, total=size)
        bar.update(tasks[file], completed=done)

    with bar:
        yield moved


@models.command("list", examples=("evicortex models list", "evicortex models list --json"))
@cache_option
@json_option
def list_models(cache_dir: Path | None, as_json: bool) -> None:
    """List the models that can be fetched, and whether they are here.

    Files that are here are read and verified. Exit code 1 when a model is damaged.
    """
    found = library.known(cache_dir=cache_dir)
    emit(found, receipts.models_table, as_json=as_json)
    damaged = [model.problem for model in found if model.problem]
    for problem in damaged:
        note(problem)
    finish(PROBLEM_FOUND if damaged else 0)


@models.command(examples=("evicortex models path all-MiniLM-L6-v2",))
@cache_option
@json_option
@click.argument("name")
def path(name: str, cache_dir: Path | None, as_json: bool) -> None:
    """Print the directory of the fetched model NAME, every file of it verified.

    Exit code 4 when it was not fetched, or is not what was pinned.
    """
    found = library.path(name, cache_dir=cache_dir)
    click.echo(to_json({"name": name, "path": found}) if as_json else printable(str(found)))
