"""``make bench-smoke``: recall without a model, ingest speed and recall latency, in one run.

Prints tables to standard output and, with ``--json``, writes the same figures to a file. Nothing
is tuned here. Times are CPU times of this process.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.datasets import locomo
from benchmarks.datasets.base import Dataset, Turn
from benchmarks.metrics.intervals import bootstrap, paired
from benchmarks.recall_measure import measure
from benchmarks.recall_suites import answerable_suite
from benchmarks.systems.base import System
from benchmarks.systems.bm25 import BM25
from benchmarks.systems.evicortex import EviCortexSystem
from evicortex import EviCortex, EvidenceDraft

BUDGETS = (512, 1024, 2048)
DEFAULT_DATA = Path("../shared/data/locomo/locomo_dev6.json")


def recall_report(dataset: Dataset, count: Callable[[str], int], folder: Path) -> dict[str, Any]:
    """Compare plain BM25 with EviCortex without a model, paired by question."""
    suite = answerable_suite(dataset)
    clusters = [
        conversation.conversation_id
        for conversation, queries in suite.conversations
        for _ in queries
    ]
    evicortex = EviCortexSystem(folder / "recall.db", name="evicortex, no model", embedder=None)
    systems: list[System] = [BM25(count), evicortex]
    values = {system.name: measure(suite, system, BUDGETS)[0] for system in systems}
    for system in systems:
        system.close()
    base = values[systems[0].name]
    report: dict[str, Any] = {"data": dataset.label, "sha256": dataset.digest, "n": len(clusters)}
    for name, by_budget in values.items():
        report[name] = {
            budget: {
                "all_evidence": asdict(bootstrap(scores)),
                "by_conversation": asdict(bootstrap(scores, clusters=clusters)),
                "over_bm25": asdict(paired(scores, base[budget])),
            }
            for budget, scores in by_budget.items()
        }
    return report


def synthetic_drafts(turns: Sequence[Turn], count: int, seed: int) -> list[EvidenceDraft]:
    """Return ``count`` distinct messages made of two halves of real ones, 30 to a session."""
    source = random.Random(seed)
    drafts = []
    for number in range(count):
        first, second = source.choice(turns), source.choice(turns)
        head = first.text.split()[: len(first.text.split()) // 2 + 1]
        tail = second.text.split()[len(second.text.split()) // 2 :]
        drafts.append(
            EvidenceDraft(
                content=" ".join([*head, *tail, f"note{number}"]),
                actor=first.actor,
                role="user",
                session=f"s{number // 30}",
                external_id=f"m{number}",
                occurred_at=first.occurred_at,
            )
        )
    return drafts


def ingest_report(drafts: Sequence[EvidenceDraft], folder: Path, batch: int) -> dict[str, Any]:
    """Return rows per CPU-second of ``remember_many`` without vectors."""
    with EviCortex.open(folder / "ingest.db", embedder=None) as cortex:
        started = time.process_time()
        for start in range(0, len(drafts), batch):
            cortex.remember_many("bench", drafts[start : start + batch])
        spent = time.process_time() - started
    return {"rows": len(drafts), "batch": batch, "rows_per_cpu_second": len(drafts) / spent}


def _latencies(
    cortex: EviCortex, namespaces: Sequence[str], questions: Sequence[str]
) -> dict[str, float]:
    for namespace in dict.fromkeys(namespaces):
        cortex.recall(namespace, questions[0], budget_tokens=1024)
    spent = []
    for namespace, question in zip(namespaces, questions, strict=True):
        started = time.process_time()
        cortex.recall(namespace, question, budget_tokens=1024)
        spent.append((time.process_time() - started) * 1000)
    cuts = statistics.quantiles(spent, n=20)
    return {"p50_ms": statistics.median(spent), "p95_ms": cuts[-1], "queries": len(spent)}


def latency_report(
    turns: Sequence[Turn], questions: Sequence[str], folder: Path, size: int
) -> dict[str, Any]:
    """Recall CPU time with ``size`` evidence in one namespace, and spread over 1,000."""
    drafts = synthetic_drafts(turns, size, seed=size)
    rows: dict[str, Any] = {"size": size}
    with EviCortex.open(folder / f"one-{size}.db", embedder=None) as cortex:
        for start in range(0, size, 1000):
            cortex.remember_many("bench", drafts[start : start + 1000])
        started = time.process_time()
        cortex.recall("bench", questions[0], budget_tokens=1024)
        rows["first_recall_ms"] = (time.process_time() - started) * 1000
        rows["one namespace"] = _latencies(cortex, ["bench"] * len(questions), questions)
    with EviCortex.open(folder / f"many-{size}.db", embedder=None) as cortex:
        share = size // 1000
        for number in range(1000):
            cortex.remember_many(f"n{number}", drafts[number * share : (number + 1) * share])
        picks = random.Random(0).choices([f"n{i}" for i in range(1000)], k=len(questions))
        rows["one of 1,000 namespaces"] = _latencies(cortex, picks, questions)
    return rows


def render(report: dict[str, Any]) -> str:
    """Return the report as plain tables."""
    recall = report["recall"]
    lines = [
        (
            f"data {recall['data']} sha256 {recall['sha256'][:16]} n={recall['n']}"
            f" tokens {report['token_counter']}"
        ),
        "",
        f"{'all-evidence recall':24}" + "".join(f"{'@' + str(b):>24}" for b in BUDGETS),
    ]
    for name in [key for key in recall if isinstance(recall[key], dict)]:
        cells = [recall[name][budget]["all_evidence"] for budget in BUDGETS]
        line = "".join(
            f"{100 * c['mean']:>10.1f} [{100 * c['low']:.1f}, {100 * c['high']:.1f}]".rjust(24)
            for c in cells
        )
        lines.append(f"{name:24}{line}")
    ingest = report["ingest"]
    lines += [
        "",
        (
            f"ingest: {ingest['rows_per_cpu_second']:,.0f} rows per CPU-second"
            f" ({ingest['rows']:,} rows, batches of {ingest['batch']}, no vectors)"
        ),
        "",
        f"{'recall, CPU ms':34}{'p50':>8}{'p95':>8}",
    ]
    for row in report["latency"]:
        for place in ("one namespace", "one of 1,000 namespaces"):
            cell = row[place]
            label = f"{row['size']:,} evidence, {place}"
            lines.append(f"{label:34}{cell['p50_ms']:>8.1f}{cell['p95_ms']:>8.1f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the smoke benchmark; returns 0, or 2 when the data is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.smoke", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="a LoCoMo file")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--sizes", default="10000,100000", help="evidence counts for latency")
    options = parser.parse_args(arguments)
    if not options.data.is_file():
        print(f"{options.data} is absent: pass --data FILE (a LoCoMo file)", file=sys.stderr)
        return 2
    dataset = locomo.load(options.data)
    turns = [turn for conversation in dataset.conversations for turn in conversation.turns]
    suite = answerable_suite(dataset)
    asked = [query.text for _, queries in suite.conversations for query in queries]
    questions = random.Random(1).sample(asked, min(200, len(asked)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with EviCortex.open(folder / "counter.db", embedder=None) as cortex:
            counter = cortex.token_counter
        report = {
            "machine": platform.processor() or platform.machine(),
            "token_counter": counter.identity,
            "recall": recall_report(dataset, counter.count, folder),
            "ingest": ingest_report(synthetic_drafts(turns, 20_000, seed=7), folder, 500),
            "latency": [
                latency_report(turns, questions, folder, int(size))
                for size in options.sizes.split(",")
            ],
        }
    print(render(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
