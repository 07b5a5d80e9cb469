"""Commands that check, repair, count and copy."""

from __future__ import annotations

from pathlib import Path

import click

from evicortex.interfaces import receipts, tables
from evicortex.interfaces.cli.app import PROBLEM_FOUND, PROVIDER_FAILED, cli
from evicortex.interfaces.cli.options import (
    existing_database,
    json_option,
    on_existing,
    open_cortex,
)
from evicortex.interfaces.cli.output import emit, finish, note_diagnostics
from evicortex.interfaces.cli.progress import busy
from evicortex.interfaces.demo import run_demo
from evicortex.interfaces.demo_view import demo_view


def _refuse_no_vectors(_context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given:
        raise click.UsageError(
            "sync makes the missing vectors, without them it has nothing to do; "
            "rebuild makes the indexes that need no model"
        )


@cli.command(examples=("evicortex sync my.db -n ann",))
@on_existing
@click.option(
    "--no-vectors", is_flag=True, expose_value=False, hidden=True, callback=_refuse_no_vectors
)
def sync(db: Path, namespace: str, as_json: bool) -> None:
    """Bring the semantic index up to date with the ledger.

    Making vectors is what it is for, so unlike other commands it has no --no-vectors.
    """
    with open_cortex(db) as cortex, busy(f"Syncing {namespace}"):
        report = cortex.sync_semantic(namespace)
    emit(report, receipts.sync_table, as_json=as_json)
    note_diagnostics(report.diagnostics)
    finish(PROVIDER_FAILED if report.failed else 0)


@cli.command(examples=("evicortex rebuild my.db -n ann",))
@on_existing
def rebuild(db: Path, namespace: str, as_json: bool) -> None:
    """Throw the derived indexes of a namespace away and build them from the ledger."""
    with open_cortex(db) as cortex, busy(f"Rebuilding {namespace}"):
        report = cortex.rebuild(namespace)
    emit(report, receipts.rebuild_table, as_json=as_json)


@cli.command(examples=("evicortex verify my.db",))
@existing_database
@click.option("-n", "--namespace", metavar="NS", help="Only this namespace.")
@json_option
def verify(db: Path, namespace: str | None, as_json: bool) -> None:
    """Check digests, spans and the audit chain. Exit code 1 when something is wrong."""
    with open_cortex(db, read_only=True) as cortex, busy(f"Verifying {db.name}"):
        report = cortex.verify(namespace)
    emit(report, receipts.verify_table, as_json=as_json)
    finish(0 if report.ok else PROBLEM_FOUND)


@cli.command(examples=("evicortex stats my.db -n ann",))
@existing_database
@click.option("-n", "--namespace", metavar="NS", help="Only this namespace.")
@json_option
def stats(db: Path, namespace: str | None, as_json: bool) -> None:
    """Count what a namespace holds, or each namespace of the file."""
    with open_cortex(db, read_only=True) as cortex:
        if namespace is not None:
            emit(cortex.stats(namespace), tables.stats_card, as_json=as_json)
        else:
            every = [cortex.stats(name) for name in cortex.namespaces()]
            emit(every, tables.stats_table, as_json=as_json)


@cli.command(examples=("evicortex export my.db -n ann ann.jsonl",))
@on_existing
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
def export(db: Path, namespace: str, file: Path, as_json: bool) -> None:
    """Write a namespace to FILE as JSON Lines, for load."""
    with open_cortex(db, read_only=True) as cortex, busy(f"Exporting {namespace}"):
        report = cortex.export(namespace, file)
    emit(report, receipts.export_table, as_json=as_json)


@cli.command(
    examples=(
        "evicortex demo",
        "evicortex demo --locomo locomo10.json",
    )
)
@click.option(
    "--locomo",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A LoCoMo file to show it on, instead of the bundled conversation.",
)
@json_option
def demo(locomo: Path | None, as_json: bool) -> None:
    """Show what EviCortex does, on a bundled conversation, in a temporary ledger.

    Needs no key, no network and no model.
    """
    report = run_demo(locomo)
    emit(report, demo_view, as_json=as_json)
    finish(0 if report.ok else PROBLEM_FOUND)
