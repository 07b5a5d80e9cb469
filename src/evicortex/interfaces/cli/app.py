"""The command group: how errors become exit codes, and nothing else."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import IO, Any, NoReturn

import click

from evicortex.errors import (
    ConflictError,
    CorruptLedgerError,
    EviCortexError,
    LedgerBusyError,
    ProviderError,
)
from evicortex.interfaces.escaping import printable

PROBLEM_FOUND = 1
WRONG_USE = 2
CONFLICT = 3
PROVIDER_FAILED = 4
INTERRUPTED = 130  # 128 + SIGINT, as shells report it
CLOSED_PIPE = 141  # 128 + SIGPIPE, as shells report it


class Failure(click.ClickException):
    """An error of the library or of a file, as the command line shows it."""

    def __init__(self, error: EviCortexError | OSError) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.error = error

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The documented exit code of the error."""
        return exit_code(self.error)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on standard error, with anything a terminal would obey escaped."""
        click.echo(f"Error: {printable(self.message)}", file=file, err=file is None)


def exit_code(error: EviCortexError | OSError) -> int:
    """Return the documented exit code of an error."""
    if isinstance(error, ConflictError):
        return CONFLICT
    if isinstance(error, ProviderError):
        return PROVIDER_FAILED
    if isinstance(error, CorruptLedgerError | LedgerBusyError):
        return PROBLEM_FOUND
    return WRONG_USE


class ExampleCommand(click.Command):
    """A command whose help ends with examples, printed as they are."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _write_examples(self.examples, formatter)


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in examples))


class Commands(click.Group):
    """A group whose commands may raise the library's own errors."""

    command_class = ExampleCommand

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        _write_examples(self.examples, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn what it raises into a message and an exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _leave_closed_pipe()
        except (EviCortexError, OSError) as error:
            raise Failure(error) from error
        except KeyboardInterrupt:
            click.echo("Interrupted. What was committed stays; run it again to go on.", err=True)
            raise SystemExit(INTERRUPTED) from None


def _leave_closed_pipe() -> NoReturn:
    """Exit without a word: whoever read the output has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(CLOSED_PIPE)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=(
        'evicortex remember my.db -n ann --actor Ann "I moved to Lisbon in May."',
        'evicortex recall my.db -n ann --budget 200 "Where does Ann live?"',
        "evicortex verify my.db",
    ),
)
@click.version_option(package_name="evicortex", message="evicortex %(version)s")
def cli() -> None:
    """Long-term memory for LLM agents that keeps evidence.

    DB is one file; import, remember and load create it. Every memory belongs to a namespace, say
    one per person: name it with --namespace (-n).

    Results go to standard output, everything else to standard error. Each command takes --json
    and then prints exactly one JSON document. Exit codes: 0 done, 1 a problem was found, 2 wrong
    use, 3 an external id already belongs to another text, 4 a provider failed.
    """


def main() -> None:
    """Entry point of the ``evicortex`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8
    cli(prog_name="evicortex")
