"""One self-contained HTML report, made from records and manifests alone."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import evidence_tables, gates, plots, tables, tuning
from benchmarks.results import Ingest, Record, read_ingests, read_manifest, read_records

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .6rem 0 1.6rem; font-size: 13px; }
th, td { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.note { color: #555; } img { max-width: 100%; } code { font-size: 12px; }
"""

SEEN = (
    "EviCortex's learned ranker was trained on LoCoMo dev6 and REALTALK dev4, so that evicortex is "
    "measured there on what it has seen; evicortex, ranker off is not."
)
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
    folders: Sequence[Path], out: Path, *, evidence: Path | None = None, title: str = "Report"
) -> None:
    """Write the report; without matplotlib it has tables and says that plots are missing.

    ``evidence`` is a folder with other records: trials of the tuning, exact search over size,
    extraction.
    """
    records, ingests, manifests = read(folders)
    drawn = importlib.util.find_spec("matplotlib") is not None
    parts = [f"<h1>{html.escape(title)}</h1>", _preamble(manifests)]
    together = tables.pooled(records)
    seeded = {r.conversation for r in together}
    for suite in tables.suites(together):
        mine = [r for r in together if r.suite == suite]
        theirs = [replace(i, suite=suite) for i in ingests if i.suite in seeded]
        parts += _suite(mine, theirs, suite, _about(manifests, sorted(seeded)), drawn=drawn)
    for suite in tables.suites(records):
        mine = [r for r in records if r.suite == suite]
        if suite in seeded:
            parts.append(render(tables.recall_table(mine, suite)))
        else:
            parts += _suite(mine, ingests, suite, _about(manifests, [suite]), drawn=drawn)
    if not drawn:
        parts.append("<p class=note>matplotlib is not installed: no plots.</p>")
    if evidence is not None:
        parts += _evidence(evidence, drawn=drawn)
    parts.append(_manifests(manifests))
    page = (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{html.escape(title)}"
        f"</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")


def _suite(
    records: Sequence[Record], ingests: Sequence[Ingest], suite: str, about: str, *, drawn: bool
) -> list[str]:
    parts = [f"<h2>{html.escape(suite)}</h2>", f"<p class=note>{html.escape(about)}</p>"]
    left_out = tables.incomplete(records, suite)
    if left_out:
        names = html.escape(", ".join(left_out))
        parts.append(f"<p class=note>Not shown, because questions are missing: {names}.</p>")
    if tables.complete(records, suite):
        parts += [render(table) for table in tables.of_suite(records, ingests, suite)]
        parts += _plots(records, suite) if drawn else []
    return parts


def _about(manifests: Sequence[dict[str, Any]], suites: Sequence[str]) -> str:
    """Say on what data and under which configurations the figures of suites stand."""
    runs = [m for m in manifests if set(suites) & set(m["suites"])]
    first = runs[0]
    data = "; ".join(
        f"{name}: {entry['label']}, labels {entry['condition']}, SHA-256 {entry['sha256'][:16]}, "
        f"{entry['repairs']} labels repaired by rule"
        for name, entry in first["suites"].items()
        if name in suites
    )
    configs = ", ".join(
        f"{m['name']} {m['config_sha256'][:12]}{'' if m.get('complete') else ' (not finished)'}"
        for m in runs
    )
    return f"{data}. Encoder {first['encoder']}. Tokens {first['token_counter']}. Runs {configs}."


def _evidence(folder: Path, *, drawn: bool) -> list[str]:
    """Return the gates, and the sections of what is measured apart from the runs."""
    found_gates = gates.evaluate(folder)
    said = "".join(f"<li>{html.escape(line)}</li>" for line in gates.wording(found_gates))
    parts = [
        "<h2>What may be said</h2>",
        f"<ul>{said}</ul>",
        render(evidence_tables.gates_table(found_gates)),
    ]
    scale = folder / "vector-scale.json"
    if scale.is_file():
        record = json.loads(scale.read_text(encoding="utf-8"))
        parts += ["<h2>Exact search over size</h2>", render(evidence_tables.scale_table(record))]
        parts += [_image(plots.scan_over_size(record), "exact search over size")] if drawn else []
    found = sorted((folder / "extraction").glob("*.json"))
    sets = [each for path in found for each in json.loads(path.read_text("utf-8")).get("data", ())]
    if sets:
        parts += [
            "<h2>Extraction, apart from retrieval</h2>",
            render(evidence_tables.extraction_table(sets)),
        ]
    trials = tuning.read_trials(folder / "tuning.jsonl")
    if trials:
        parts += ["<h2>Tuning</h2>", render(evidence_tables.tuning_table(trials))]
    return parts


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
    if "dev" in {manifest["split"] for manifest in manifests}:
        lines.append(SEEN)
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def render(table: tables.Table) -> str:
    """Return a table as HTML, its title and note above it."""
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
        "calibration": plots.calibration_plot(records, suite, middle),
    }
    return [
        _image(content, f"{suite}: {name}")
        if content is not None
        else f"<p class=note>{name}: not run, no system says how well a question is supported, or all can be answered.</p>"
        for name, content in found.items()
    ]


def _image(content: bytes, title: str) -> str:
    data = base64.b64encode(content).decode()
    return f'<p><img alt="{html.escape(title)}" src="data:image/png;base64,{data}"></p>'


_IMAGE = re.compile(r'<img alt="([^"]+)" src="data:image/png;base64,([^"]+)">')


def write_images(page: Path, folder: Path) -> list[Path]:
    """Write the plots of a report as PNG files, named by their titles; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for title, data in _IMAGE.findall(page.read_text(encoding="utf-8")):
        name = re.sub(r"\W+", "-", html.unescape(title)).strip("-").lower()
        found.append(folder / f"{name}.png")
        found[-1].write_bytes(base64.b64decode(data))
    return found


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
    return render(tables.Table("Runs", "from the manifests", columns, tuple(rows)))
