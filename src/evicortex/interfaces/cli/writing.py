"""Commands that add to a ledger or take away from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TypedDict, Unpack

import click

from evicortex.errors import InvalidTextError
from evicortex.interfaces import receipts
from evicortex.interfaces.cli.app import CONFLICT, PROBLEM_FOUND, PROVIDER_FAILED, cli
from evicortex.interfaces.cli.options import (
    AUTHORITIES,
    on_existing,
    on_new_or_existing,
    open_cortex,
    time_option,
    vectors_option,
)
from evicortex.interfaces.cli.output import (
    SHOWN_NOTES,
    emit,
    finish,
    note,
    note_diagnostics,
    note_more,
    note_reported,
)
from evicortex.interfaces.cli.progress import busy, measured
from evicortex.interfaces.importers import IMPORTERS, ImportOptions
from evicortex.interfaces.importing import BATCH, ImportReport, Refused, import_entries
from evicortex.types import ClaimDraft


class Said(TypedDict):
    """What ``remember`` hands on as it is."""

    actor: str | None
    role: str | None
    session: str | None
    source: str | None
    external_id: str | None
    authority: str | None


@cli.command(
    "import",
    examples=(
        "evicortex import my.db -n ann --format jsonl chat.jsonl",
        "evicortex import my.db -n ann --format chatgpt --user Ann conversations.json",
        "evicortex import my.db -n conv-26 --format locomo --record conv-26 locomo10.json",
    ),
)
@on_new_or_existing
@click.option(
    "--format",
    "file_format",
    type=click.Choice(list(IMPORTERS)),
    required=True,
    help="What FILE is.",
)
@click.option("--record", metavar="ID", help="Only this conversation of the file.")
@click.option("--user", metavar="NAME", help="The human's name, where the format has none.")
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=BATCH,
    show_default=True,
    metavar="N",
    help="Messages a transaction.",
)
@vectors_option
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"
)
def import_command(
    db: Path,
    namespace: str,
    file: Path,
    file_format: str,
    record: str | None,
    user: str | None,
    batch: int,
    vectors: bool,
    as_json: bool,
) -> None:
    """Import a file of conversations. Importing it again doubles nothing.

    The formats: jsonl has one message a line, {"external_id", "session", "actor", "role",
    "occurred_at", "content", "metadata"}, of which only content is required; locomo and
    longmemeval are the files of these benchmarks; chatgpt and claude are the conversations.json
    of a data export.

    A line or record that cannot be read is reported by number on standard error and the rest is
    imported; the exit code is then 1, or 3 if an external id already has another text.

    External ids of locomo (dia_id) and longmemeval are those of the file. When it holds several
    conversations, each id and session gets its conversation's id in front. So a file of one
    record and then the whole file are not the same messages: to import one conversation of
    several and keep its own ids, use --record.
    """
    options = ImportOptions(record=record, user=user)
    with open_cortex(db, vectors=vectors) as cortex, measured(file) as source:
        entries = IMPORTERS[file_format](source, options)
        report = import_entries(cortex, namespace, entries, batch=batch)
    emit(report, receipts.import_table, as_json=as_json)
    _note_refusals(report.refused, "line" if file_format == "jsonl" else "record")
    note_reported(report.diagnostics)
    finish(_import_code(report))


def _note_refusals(refused: tuple[Refused, ...], unit: str) -> None:
    for item in refused[:SHOWN_NOTES]:
        label = f" ({item.label})" if item.label else ""
        note(f"{unit} {item.number}{label}: {item.error}: {item.message}")
    note_more(len(refused))


def _import_code(report: ImportReport) -> int:
    if report.conflicts:
        return CONFLICT
    if report.not_indexed:
        return PROVIDER_FAILED
    return PROBLEM_FOUND if report.refused else 0


@cli.command(
    examples=(
        'evicortex remember my.db -n ann --actor Ann --role user "I moved to Lisbon in May."',
        'evicortex remember my.db -n ann --claim Ann lives_in Lisbon "I moved to Lisbon."',
        "git log -1 | evicortex remember my.db -n work --source git -",
    )
)
@on_new_or_existing
@click.option("--actor", metavar="A", help="Who said it.")
@click.option("--role", metavar="R", help="user, assistant, tool, ...")
@click.option("--session", metavar="S", help="The conversation it belongs to.")
@click.option("--source", metavar="TEXT", help="Where it comes from.")
@click.option("--external-id", metavar="ID", help="Your own id; makes a retry safe.")
@time_option("--at", "When it was said")
@click.option("--authority", type=AUTHORITIES, help="Who stands behind it.")
@click.option(
    "--claim",
    "claims",
    nargs=3,
    multiple=True,
    metavar="SUBJECT PREDICATE OBJECT",
    help="What the text as a whole supports; may be repeated.",
)
@vectors_option
@click.argument("text", metavar="TEXT|-")
def remember(
    db: Path,
    namespace: str,
    text: str,
    at: str | None,
    claims: tuple[tuple[str, str, str], ...],
    vectors: bool,
    as_json: bool,
    **said: Unpack[Said],
) -> None:
    """Remember TEXT, or standard input with "-", exactly as it is."""
    content = _standard_input() if text == "-" else text
    drafts = [ClaimDraft(*claim) for claim in claims]
    with open_cortex(db, vectors=vectors) as cortex:
        receipt = cortex.remember(namespace, content, occurred_at=at, claims=drafts, **said)
    emit(receipt, receipts.remember_table, as_json=as_json)
    note_diagnostics(receipt.diagnostics)
    finish(0 if receipt.indexed else PROVIDER_FAILED)


def _standard_input() -> str:
    """Return standard input unaltered; Python's own text layer would translate line ends."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidTextError(f"standard input is not UTF-8: {error}") from error


@cli.command(examples=('evicortex retract my.db -n ann CLAIM_ID --reason "Ann was joking"',))
@on_existing
@click.option(
    "--reason", required=True, metavar="TEXT", help="Why it is withdrawn; stays on record."
)
@click.argument("claim_id")
def retract(db: Path, namespace: str, claim_id: str, reason: str, as_json: bool) -> None:
    """Withdraw one claim. What was known before stays readable with --known-at."""
    with open_cortex(db) as cortex:
        receipt = cortex.retract(namespace, claim_id, reason=reason)
    emit(receipt, receipts.retract_table, as_json=as_json)


@cli.command(
    examples=(
        "evicortex purge my.db -n ann --session s7",
        "evicortex purge my.db -n ann --everything --yes",
    )
)
@on_existing
@click.option("--evidence-id", metavar="ID", help="This one evidence.")
@click.option("--session", metavar="S", help="Everything said in this session.")
@click.option("--source", metavar="TEXT", help="Everything from this source.")
@click.option("--actor", metavar="A", help="Everything this actor said.")
@click.option("--everything", is_flag=True, help="The whole namespace.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where no terminal can answer.")
def purge(
    db: Path, namespace: str, everything: bool, yes: bool, as_json: bool, **selector: str | None
) -> None:
    """Remove evidence for good, with everything that was derived from it.

    Afterwards the text is in no file; the audit chain keeps ids and digests only. Give exactly
    one of the selectors.
    """
    if not yes and not _confirmed(namespace):
        note("Nothing was purged.")
        return
    with open_cortex(db) as cortex:
        receipt = cortex.purge(namespace, everything=everything, **selector)
    emit(receipt, receipts.purge_table, as_json=as_json)
    note_diagnostics(receipt.diagnostics)


def _on_terminal() -> bool:
    return sys.stdin.isatty()


def _confirmed(namespace: str) -> bool:
    if not _on_terminal():
        raise click.UsageError("there is no terminal to ask on: give --yes to purge")
    return click.confirm(f"Purge from {namespace!r} for good? This cannot be undone.", err=True)


@cli.command(examples=("evicortex load other.db -n ann ann.jsonl",))
@on_new_or_existing
@vectors_option
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"
)
def load(db: Path, namespace: str, file: Path, vectors: bool, as_json: bool) -> None:
    """Load a file that export wrote. Digests stay what they were; vectors are made anew."""
    with open_cortex(db, vectors=vectors) as cortex, busy(f"Loading {file.name}"):
        report = cortex.load(namespace, file)
    emit(report, receipts.load_table, as_json=as_json)
    note_diagnostics(report.diagnostics)
