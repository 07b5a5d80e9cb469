"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

import click

from evicortex.cortex import EviCortex
from evicortex.types import Authority

Command = Callable[..., Any]


class Clock(Protocol):
    """A source of the present, as ``EviCortex.open`` takes it."""

    def now(self) -> datetime:
        """Return an aware time."""
        ...


TIME_HELP = "ISO-8601 with Z or an offset, e.g. 2026-03-09T10:00:00Z"
AUTHORITIES = click.Choice([authority.value for authority in Authority])


@dataclass(frozen=True, slots=True)
class Setting:
    """What a caller of the command group may put in ``obj``.

    ``clock`` is another source of the present; ``vectors`` false keeps every command to what
    needs no model.
    """

    clock: Clock | None = None
    vectors: bool = True


def open_cortex(path: Path, *, read_only: bool = False, vectors: bool = True) -> EviCortex:
    """Open the ledger of a command; a local model is loaded only when it is needed."""
    setting = click.get_current_context().find_object(Setting) or Setting()
    embedder: Literal["auto"] | None = "auto" if vectors and setting.vectors else None
    return EviCortex.open(path, embedder=embedder, read_only=read_only, clock=setting.clock)


def _database(*, exists: bool) -> Callable[[Command], Command]:
    return click.argument(
        "db", type=click.Path(exists=exists, dir_okay=False, path_type=Path), metavar="DB"
    )


existing_database = _database(exists=True)
new_or_existing_database = _database(exists=False)

namespace_option = click.option(
    "-n", "--namespace", required=True, metavar="NS", help="Whose memory it is, e.g. a user's id."
)
vectors_option = click.option(
    "--vectors/--no-vectors",
    default=True,
    show_default=True,
    help="Use the local embedding model, if one is installed.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def time_option(flag: str, what: str) -> Callable[[Command], Command]:
    """Return an option that takes a time with its zone."""
    return click.option(flag, metavar="TIME", help=f"{what} ({TIME_HELP}).")


as_of_option = time_option("--as-of", "What was true at this time")
known_at_option = time_option("--known-at", "What the memory knew at this time")


def on_existing(command: Command) -> Command:
    """Give a command the arguments of nearly all: DB, which must exist, namespace and --json."""
    return existing_database(namespace_option(json_option(command)))


def on_new_or_existing(command: Command) -> Command:
    """Give a command DB, created when it is not there, namespace and --json."""
    return new_or_existing_database(namespace_option(json_option(command)))
