"""Does extraction repay its cost? Recall with and without claims, paired, at each budget.

``python -m benchmarks.run_claims [--locomo FILE] [--seeds 0,1,2] --budgets 256,... --json OUT``

The same memory is filled twice: without claims, and through an extractor (rules; on the synthetic
stream also the canonical grammar). Differences are paired by question, with intervals by question
and by conversation, for all questions and for each category; the cost stands beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.datasets import locomo, synthetic_stream
from benchmarks.datasets.base import Conversation, Query
from benchmarks.metrics.intervals import bootstrap, paired
from benchmarks.metrics.retrieval import strict_evidence
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem
from benchmarks.systems.extracting import ExtractingSystem
from evicortex.providers.canonical import CanonicalGrammarExtractor
from evicortex.providers.rules import RuleExtractor

BASE = "no-claims"
Make = Callable[[Path], EviCortexSystem]


def systems(encoder: SharedEncoder | None, *, synthetic: bool) -> dict[str, Make]:
    """Return the memory without claims first, then with each extractor."""
    found: dict[str, Make] = {
        BASE: lambda path: EviCortexSystem(path, name=BASE, embedder=encoder),
        "rules": lambda path: ExtractingSystem(
            path, RuleExtractor(), name="rules", embedder=encoder
        ),
    }
    if synthetic:
        found["canonical"] = lambda path: ExtractingSystem(
            path, CanonicalGrammarExtractor(), name="canonical", embedder=encoder
        )
    return found


def questions(conversation: Conversation) -> list[Query]:
    """Return the questions that count: answerable, with gold."""
    labels = conversation.labels
    return [
        query
        for query in conversation.queries
        if labels[query.query_id].counted and labels[query.query_id].category != "adversarial"
    ]


def measure(
    conversations: Iterable[Conversation], system: EviCortexSystem, budgets: Sequence[int]
) -> dict[str, Any]:
    """Return every question's value at every budget, its place, and what it all cost."""
    values: dict[int, list[float]] = {budget: [] for budget in budgets}
    clusters: list[str] = []
    categories: list[str] = []
    ingest = asked = 0.0
    turns = 0
    for conversation in conversations:
        started = time.process_time()
        system.ingest(conversation.conversation_id, conversation.turns)
        ingest += time.process_time() - started
        turns += len(conversation.turns)
        full = {turn.turn_id: turn.text for turn in conversation.turns}
        for query in questions(conversation):
            label = conversation.labels[query.query_id]
            clusters.append(conversation.conversation_id)
            categories.append(label.category)
            for budget in budgets:
                started = time.process_time()
                packed = system.ask(conversation.conversation_id, query, budget)
                asked += time.process_time() - started
                shown = dict(packed.shown)
                values[budget].append(strict_evidence(label.gold, shown, full, label.answer))
    extracting = isinstance(system, ExtractingSystem)
    return {
        "values": values,
        "clusters": clusters,
        "categories": categories,
        "cost": {
            "turns": turns,
            "claims": system.claims if isinstance(system, ExtractingSystem) else 0,
            "extraction_cpu_s_per_1000_turns": 1000 * system.extraction_cpu_s / turns
            if extracting and isinstance(system, ExtractingSystem)
            else 0.0,
            "ingest_cpu_s_per_1000_turns": 1000 * ingest / turns,
            "cpu_ms_per_recall": 1000 * asked / max(1, len(clusters) * len(budgets)),
        },
    }


def compare(found: dict[str, dict[str, Any]], budgets: Sequence[int]) -> dict[str, Any]:
    """Return each system's recall, and its paired difference to the memory without claims."""
    base = found[BASE]
    out: dict[str, Any] = {}
    for name, each in found.items():
        out[name] = {
            "cost": each["cost"],
            "recall": {b: asdict(bootstrap(each["values"][b])) for b in budgets},
        }
        if name != BASE:
            out[name]["difference"] = {b: _difference(each, base, b) for b in budgets}
    return out


def _difference(each: dict[str, Any], base: dict[str, Any], budget: int) -> dict[str, Any]:
    mine, theirs = each["values"][budget], base["values"][budget]
    by_category = {}
    for category in sorted(set(each["categories"])):
        chosen = [n for n, c in enumerate(each["categories"]) if c == category]
        by_category[category] = asdict(
            paired([mine[n] for n in chosen], [theirs[n] for n in chosen])
        )
    return {
        "by_question": asdict(paired(mine, theirs)),
        "by_conversation": asdict(paired(mine, theirs, clusters=each["clusters"])),
        "categories": by_category,
    }


def render(name: str, found: dict[str, Any], budgets: Sequence[int]) -> str:
    """Return one suite's report as a plain table, in points of recall."""
    lines = [name]
    for system, each in found.items():
        cells = "".join(f"{100 * each['recall'][b]['mean']:>22.1f}" for b in budgets)
        lines.append(f"{system:14}{cells}")
        for label, pick in (("paired", "by_question"), ("by conv.", "by_conversation")):
            if "difference" in each:
                cells = "".join(_points(each["difference"][b][pick]) for b in budgets)
                lines.append(f"  {label:12}{cells}")
        for category in next(iter(each.get("difference", {}).values()), {"categories": {}})[
            "categories"
        ]:
            cells = "".join(_points(each["difference"][b]["categories"][category]) for b in budgets)
            lines.append(f"  {category[:12]:12}{cells}")
        told = ", ".join(f"{key} {amount:.2f}" for key, amount in each["cost"].items())
        lines.append(f"  {told}")
    return "\n".join(lines)


def _points(cell: dict[str, float]) -> str:
    return f"{100 * cell['mean']:+.1f} [{100 * cell['low']:+.1f}, {100 * cell['high']:+.1f}]".rjust(
        22
    )


def run(
    name: str,
    conversations: Sequence[Conversation],
    make: dict[str, Make],
    budgets: Sequence[int],
    folder: Path,
) -> dict[str, Any]:
    """Measure every system on the same conversations."""
    found: dict[str, dict[str, Any]] = {}
    for system, build in make.items():
        opened = build(folder / f"{name}-{system}.db")
        try:
            found[system] = measure(conversations, opened, budgets)
        finally:
            opened.close()
        print(f"{name}: {system} done", file=sys.stderr, flush=True)
    return compare(found, budgets)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 0, or 2 for wrong use."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_claims", description=__doc__)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument(
        "--seeds", default="", help="seeds of the synthetic stream, comma-separated"
    )
    parser.add_argument("--turns", type=int, default=600, help="turns a synthetic namespace")
    parser.add_argument("--budgets", default="256,512,1024,2048,4096,8192")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--lexical", action="store_true", help="without vectors")
    options = parser.parse_args(arguments)
    budgets = [int(budget) for budget in options.budgets.split(",")]
    seeds = [int(seed) for seed in options.seeds.split(",") if seed]
    if not options.locomo and not seeds:
        parser.error("name --locomo FILE, or --seeds")
    encoder = None if options.lexical else SharedEncoder.local()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.locomo:
            talks = list(locomo.load(options.locomo).conversations)
            make = systems(encoder, synthetic=False)
            found["locomo"] = run("locomo", talks, make, budgets, folder)
        if seeds:
            shapes = [synthetic_stream.Shape(seed=seed, turns=options.turns) for seed in seeds]
            talks = [talk for shape in shapes for talk in synthetic_stream.conversations(shape)]
            make = systems(encoder, synthetic=True)
            found["synthetic"] = run("synthetic", talks, make, budgets, folder)
    print("\n\n".join(render(name, each, budgets) for name, each in found.items()))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
