"""One self-contained HTML report, made from records and manifests alone."""

from __future__ import annotations

import base64
import html
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import plots, tables, tuning
from benchmarks.results import Ingest, Record, read_ingests, read_manifest, read_records

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .6rem 0 1.6rem; font-size: 13px; }
th, td { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.note { color: #555; } img { max-width: 100%; } code { font-size: 12px; }
"""

PROVENANCE = (
    "Derived from records alone. Every value is taken after packing, on what a reader would see, "
    "within a hard budget that the harness counts again."
)


def read(folders: Sequence[Path]) -> tuple[list[Record], list[Ingest], list[dict[str, Any]]]:
    """Return the records, ingestion costs and manifests of several runs.

    Raises:
        ValueError: Two runs of one suite had different data, encoders or token counters.
    """
    records: list[Record] = []
    ingests: list[Ingest] = []
    manifests: list[dict[str, Any]] = []
    for folder in folders:
        records += read_records(folder)
        ingests += read_ingests(folder)
        manifests.append(read_manifest(folder))
    known: dict[str, tuple[str, str, str]] = {}
    for manifest in manifests:
        for suite, entry in manifest["suites"].items():
            mine = (entry["sha256"], str(manifest["encoder"]), manifest["token_counter"])
            if known.setdefault(suite, mine) != mine:
                raise ValueError(f"{suite}: runs differ in data, encoder or token counter")
    return records, ingests, manifests


def write(
    folders: Sequence[Path], out: Path, *, trials: Path | None = None, title: str = "Report"
) -> None:
    """Write the report; without matplotlib it has tables and says that plots are missing."""
    records, ingests, manifests = read(folders)
    drawn = importlib.util.find_spec("matplotlib") is not None
    parts = [f"<h1>{html.escape(title)}</h1>", _preamble(manifests)]
    for suite in tables.suites(records):
        parts.append(f"<h2>{html.escape(suite)}</h2>")
        left_out = tables.incomplete(records, suite)
        if left_out:
            names = html.escape(", ".join(left_out))
            parts.append(f"<p class=note>Not shown, because questions are missing: {names}.</p>")
        if not tables.complete(records, suite):
            continue
        parts += [_table(table) for table in tables.of_suite(records, ingests, suite)]
        if drawn:
            parts += _plots(records, suite)
    if not drawn:
        parts.append("<p class=note>matplotlib is not installed: no plots.</p>")
    if trials is not None:
        parts.append(_tuning(tuning.read_trials(trials)))
    parts.append(_manifests(manifests))
    page = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{html.escape(title)}"
        f"</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")


def _preamble(manifests: Sequence[dict[str, Any]]) -> str:
    exact = all(manifest["token_counter_is_exact"] for manifest in manifests)
    splits = ", ".join(sorted({manifest["split"] for manifest in manifests}))
    counted = "exact" if exact else "estimates"
    lines = [PROVENANCE, f"Tokens are {counted}. Splits: {splits}."]
    frozen = {m["prereg_sha256"] for m in manifests if m["prereg_sha256"]}
    if frozen:
        lines.append(f"Preregistered as {', '.join(sorted(frozen))}.")
    else:
        lines.append("Not preregistered: development figures, tuned on what they are measured on.")
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def _table(table: tables.Table) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return (
        f"<h3>{html.escape(table.title)}</h3><p class=note>{html.escape(table.note)}</p>"
        f"<table><tr>{head}</tr>{body}</table>"
    )


def _plots(records: Sequence[Record], suite: str) -> list[str]:
    columns = tables.budgets(records, suite)
    middle = 1024 if 1024 in columns else columns[len(columns) // 2]
    found = {
        "recall over budget": plots.recall_over_budget(records, suite),
        "by category": plots.by_category(records, suite, middle),
        "latency over size": plots.latency_over_size(records, suite),
        "calibration": plots.calibration(records, suite),
    }
    return [
        _image(content, f"{suite}: {name}")
        if content is not None
        else f"<p class=note>{name}: not run, no system gave a probability.</p>"
        for name, content in found.items()
    ]


def _image(content: bytes, title: str) -> str:
    data = base64.b64encode(content).decode()
    return f'<p><img alt="{html.escape(title)}" src="data:image/png;base64,{data}"></p>'


def _tuning(trials: Sequence[tuning.Trial]) -> str:
    number = tuning.check_equal(trials)
    rows = []
    for name in dict.fromkeys(trial.system for trial in trials):
        found = tuning.choose([trial for trial in trials if trial.system == name])
        rows.append(
            (
                name,
                str(number),
                f"{100 * found.default:.1f}",
                f"{100 * found.left_out:.1f}",
                f"{100 * found.best.mean():.1f}",
                ", ".join(f"{key} {value}" for key, value in found.best.config.items())
                or "default",
            )
        )
    columns = ("system", "trials", "default", "left one out", "best", "chosen")
    note = "strict recall, percent; chosen on the development split, the same number of trials each"
    return _table(tables.Table("Tuning", note, columns, tuple(rows)))


def _manifests(manifests: Sequence[dict[str, Any]]) -> str:
    rows = [
        (
            str(manifest["name"]),
            str(manifest["git_commit"]),
            str(manifest["config_sha256"])[:16],
            str(manifest["encoder"]),
            str(manifest["token_counter"]),
            "; ".join(
                f"{suite} {entry['label']} {entry['sha256'][:16]}"
                for suite, entry in manifest["suites"].items()
            ),
            "; ".join(f"{name} {version}" for name, version in manifest["libraries"].items()),
            "whole" if manifest.get("complete") else "not finished",
        )
        for manifest in manifests
    ]
    columns = ("run", "commit", "config", "encoder", "tokens", "data", "libraries", "state")
    return _table(tables.Table("Runs", "from the manifests", columns, tuple(rows)))
