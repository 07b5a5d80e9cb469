"""What people see of a receipt or a report: what was done, what was found."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evicortex.interfaces.escaping import one_line
from evicortex.interfaces.importing import ImportReport
from evicortex.interfaces.tables import Shown, cell, grid, pairs
from evicortex.models import Fetched, Model
from evicortex.types import (
    ExportReport,
    LoadReport,
    Problem,
    PurgeReceipt,
    RebuildReport,
    RememberReceipt,
    RetractReceipt,
    SyncReport,
    VerifyReport,
)


def remember_table(receipt: RememberReceipt) -> RenderableType:
    """The ids under which something was remembered."""
    return pairs(
        [
            ("evidence", receipt.evidence_id),
            ("SHA-256", receipt.digest),
            ("claims", ", ".join(receipt.claim_ids)),
            ("new", receipt.created),
            ("indexed", receipt.indexed),
        ]
    )


def import_table(report: ImportReport) -> RenderableType:
    """What an import did, in messages."""
    rows: list[tuple[str, Shown | Text]] = [
        ("remembered", report.created),
        ("known already", report.unchanged),
        ("refused", len(report.refused)),
    ]
    rows += [(f"left out: {one_line(reason)}", count) for reason, count in report.skipped.items()]
    if report.not_indexed:
        rows.append(("stored, not yet indexed", report.not_indexed))
    return pairs(rows)


def purge_table(receipt: PurgeReceipt) -> RenderableType:
    """What a purge removed, and what it brought back."""
    rows: list[tuple[str, Shown | Text]] = [
        ("evidence removed", len(receipt.evidence_ids)),
        ("claims removed", len(receipt.claim_ids)),
        ("claims held again", ", ".join(receipt.reinstated)),
        ("gone from every file", receipt.complete),
    ]
    tombstones = grid(
        ("tombstone", "SHA-256 of what it was", "audit entry"),
        (
            [cell(item.evidence_id), cell(item.digest), cell(item.audit_position)]
            for item in receipt.tombstones
        ),
    )
    return Group(pairs(rows), tombstones) if receipt.tombstones else pairs(rows)


def retract_table(receipt: RetractReceipt) -> RenderableType:
    """What a retraction did."""
    return pairs(
        [
            ("claim", receipt.claim_id),
            ("retracted at", receipt.retracted_at),
            ("new", receipt.created),
            ("claims held again", ", ".join(receipt.reinstated)),
        ]
    )


def sync_table(report: SyncReport) -> RenderableType:
    """What a sync found and repaired, in rows."""
    return pairs(
        [
            ("indexed", report.indexed),
            ("stale", report.stale),
            ("missing", report.missing),
            ("failed", report.failed),
        ]
    )


def rebuild_table(report: RebuildReport) -> RenderableType:
    """Rows written, by projection."""
    return pairs([("evidence", report.evidence), *report.projections.items()])


def verify_table(report: VerifyReport) -> RenderableType:
    """The verdict, what was checked, and every disagreement."""
    verdict = Text("ok", style="green") if report.ok else Text("PROBLEMS", style="bold red")
    parts: list[RenderableType] = [pairs([("verdict", verdict), *report.checked.items()])]
    sections = (
        ("Problems", report.problems),
        ("Conflicting claims", report.conflicts),
        ("Notices", report.notices),
    )
    for title, found in sections:
        if found:
            parts.append(_problems(title, found))
    return Group(*parts)


def _problems(title: str, found: Sequence[Problem]) -> Table:
    rows = ([cell(item.code), cell(item.namespace), cell(item.message)] for item in found)
    return grid(("code", "namespace", "what"), rows, title=f"\n{title}")


def export_table(report: ExportReport) -> RenderableType:
    """What was written."""
    return pairs(
        [
            ("evidence", report.evidence),
            ("claims", report.claims),
            ("extractions", report.extractions),
            ("SHA-256", report.digest),
        ]
    )


def load_table(report: LoadReport) -> RenderableType:
    """What was read, and how much of it was new."""
    return pairs(
        [
            ("evidence", report.evidence),
            ("claims", report.claims),
            ("extractions", report.extractions),
            ("new evidence", report.created),
        ]
    )


def fetched_table(fetched: Fetched) -> RenderableType:
    """Where a model lies, and whether it was fetched just now."""
    return pairs(
        [
            ("model", fetched.name),
            ("commit", fetched.commit),
            ("bytes", fetched.size),
            ("directory", str(fetched.path)),
            ("downloaded", fetched.downloaded),
        ]
    )


def models_table(models: Sequence[Model]) -> RenderableType:
    """One model a row."""
    rows = (
        [
            cell(item.name),
            cell(item.repository),
            cell(item.commit),
            cell(item.licence),
            cell(item.size),
            cell(item.state),
        ]
        for item in models
    )
    columns = ("model", "repository", "commit", "licence", "bytes", "state")
    return grid(columns, rows, whole=("model", "commit"))
