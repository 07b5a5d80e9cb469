"""Commands that read and change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

import click

from evicortex.interfaces import tables
from evicortex.interfaces.cli.app import cli
from evicortex.interfaces.cli.options import (
    as_of_option,
    existing_database,
    json_option,
    known_at_option,
    on_existing,
    open_cortex,
    vectors_option,
)
from evicortex.interfaces.cli.output import emit, note, note_diagnostics, rendered
from evicortex.interfaces.escaping import printable
from evicortex.interfaces.plain import to_json


class Times(TypedDict):
    """The two times of a question, and whether what they exclude is wanted all the same."""

    as_of: str | None
    known_at: str | None
    include_superseded: bool


class RecallAsked(Times):
    """What ``recall`` hands on as it is."""

    query_actor: str | None
    show_times: bool


class ClaimsAsked(Times):
    """What ``claims`` hands on as it is."""

    subject: str | None
    predicate: str | None


@cli.command(
    examples=(
        'evicortex recall my.db -n ann --budget 500 "Where does Ann live?"',
        'evicortex recall my.db -n ann --budget 500 --as-of 2024-01-01T00:00:00Z "Where did she live?"',
    )
)
@on_existing
@click.option("--budget", type=int, required=True, metavar="N", help="Most tokens of the pack.")
@as_of_option
@known_at_option
@click.option("--query-actor", metavar="NAME", help="Who asks: whom 'I' and 'my' mean.")
@click.option("--session", "sessions", multiple=True, metavar="S", help="Only these sessions.")
@click.option("--actor", "actors", multiple=True, metavar="A", help="Only what these said.")
@click.option("--include-superseded", is_flag=True, help="Also what has been replaced since.")
@click.option("--times", "show_times", is_flag=True, help="Show what times in the text mean.")
@click.option("--explain", is_flag=True, help="Add tables of what was found, and what left out.")
@vectors_option
@click.argument("query")
def recall(
    db: Path,
    namespace: str,
    budget: int,
    query: str,
    sessions: tuple[str, ...],
    actors: tuple[str, ...],
    explain: bool,
    vectors: bool,
    as_json: bool,
    **asked: Unpack[RecallAsked],
) -> None:
    """Print cited evidence for QUERY, inside a token budget.

    Standard output is the context pack: paste it into a prompt. Control characters of stored
    text are escaped; --json has the exact text.
    """
    with open_cortex(db, read_only=True, vectors=vectors) as cortex:
        pack = cortex.recall(
            namespace,
            query,
            budget_tokens=budget,
            sessions=sessions or None,
            actors=actors or None,
            **asked,
        )
    click.echo(to_json(pack) if as_json else printable(pack.text))
    if not as_json:
        click.echo(rendered(tables.pack_explained(pack)) if explain else "", nl=False)
        note(tables.pack_summary(pack))
        note_diagnostics(pack.diagnostics)


@cli.command(
    examples=(
        "evicortex claims my.db -n ann --subject Ann",
        "evicortex claims my.db -n ann --as-of 2024-01-01T00:00:00Z --include-superseded",
    )
)
@on_existing
@click.option("--subject", metavar="TEXT", help="Only claims about this subject.")
@click.option("--predicate", metavar="TEXT", help="Only claims with this predicate.")
@as_of_option
@known_at_option
@click.option("--include-superseded", is_flag=True, help="Also claims that are no longer held.")
def claims(db: Path, namespace: str, as_json: bool, **asked: Unpack[ClaimsAsked]) -> None:
    """List what is held true, now or at another time."""
    with open_cortex(db, read_only=True) as cortex:
        found = cortex.claims(namespace, **asked)
    emit(found, tables.claims_table, as_json=as_json)


@cli.command(examples=("evicortex history my.db -n ann Ann lives_in",))
@on_existing
@click.argument("subject")
@click.argument("predicate")
def history(db: Path, namespace: str, subject: str, predicate: str, as_json: bool) -> None:
    """Show every claim ever made about SUBJECT and PREDICATE, oldest first."""
    with open_cortex(db, read_only=True) as cortex:
        found = cortex.history(namespace, subject, predicate)
    emit(found, tables.claims_table, as_json=as_json)


@cli.command(
    examples=(
        "evicortex evidence my.db -n ann ev_0123456789abcdef01234567",
        "evicortex evidence my.db -n ann ev_0123456789abcdef01234567 --raw | sha256sum",
    )
)
@on_existing
@click.option("--raw", is_flag=True, help="Write the exact text alone, byte for byte.")
@click.argument("evidence_id")
def evidence(db: Path, namespace: str, evidence_id: str, raw: bool, as_json: bool) -> None:
    """Show one evidence: its exact text, who said it, when, and its digest.

    With --raw the output's SHA-256 is the evidence's digest.
    """
    if raw and as_json:
        raise click.UsageError("--raw and --json exclude each other")
    with open_cortex(db, read_only=True) as cortex:
        found = cortex.evidence(namespace, evidence_id)
    if raw:
        click.echo(found.content.encode(), nl=False)
    else:
        emit(found, tables.evidence_card, as_json=as_json)


@cli.command(examples=("evicortex times my.db -n ann ev_0123456789abcdef01234567",))
@on_existing
@click.argument("evidence_id")
def times(db: Path, namespace: str, evidence_id: str, as_json: bool) -> None:
    """Show the times that one evidence names, and what they mean.

    "Last Saturday" is read from the moment at which it was said; days are those of UTC.
    """
    with open_cortex(db, read_only=True) as cortex:
        found = cortex.times(namespace, evidence_id)
    emit(found, tables.times_table, as_json=as_json)


@cli.command(examples=("evicortex extraction my.db -n ann ev_0123456789abcdef01234567",))
@on_existing
@click.argument("evidence_id")
def extraction(db: Path, namespace: str, evidence_id: str, as_json: bool) -> None:
    """Show how the claims of one evidence were extracted."""
    with open_cortex(db, read_only=True) as cortex:
        record = cortex.get_extraction(namespace, evidence_id)
    emit(record, tables.extraction_card, as_json=as_json)


@cli.command(examples=("evicortex capabilities my.db",))
@existing_database
@vectors_option
@json_option
def capabilities(db: Path, vectors: bool, as_json: bool) -> None:
    """Say which channels and providers are really on.

    With --no-vectors: what other commands have when they get it too.
    """
    with open_cortex(db, read_only=True, vectors=vectors) as cortex:
        found = cortex.capabilities()
    emit(found, tables.capabilities_table, as_json=as_json)
