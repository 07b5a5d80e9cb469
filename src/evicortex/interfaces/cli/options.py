"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evicortex.cortex import EviCortex
from evicortex.types import Authority

Command = Callable[..., Any]

TIME_HELP = "ISO-8601 with Z or an offset, e.g. 2026-03-09T10:00:00Z"
AUTHORITIES = click.Choice([authority.value for authority in Authority])


@dataclass(frozen=True, slots=True)
class Setting:
    """What a caller of the command group may put in ``obj``: another source of the present."""

    clock: Any = None


def open_cortex(path: Path, *, read_only: bool = False) -> EviCortex:
    """Open the ledger of a command with the clock of the context, if it has one."""
    setting = click.get_current_context().find_object(Setting) or Setting()
    return EviCortex.open(path, read_only=read_only, clock=setting.clock)


def _database(*, exists: bool) -> Callable[[Command], Command]:
    return click.argument(
        "db", type=click.Path(exists=exists, dir_okay=False, path_type=Path), metavar="DB"
    )


existing_database = _database(exists=True)
new_or_existing_database = _database(exists=False)

namespace_option = click.option(
    "-n", "--namespace", required=True, metavar="NS", help="Whose memory it is, e.g. a user's id."
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
