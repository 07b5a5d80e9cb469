"""Does extraction repay its cost? Recall with and without claims, paired, at each budget.

``python -m benchmarks.run_claims [--locomo FILE] [--seeds 0,1,2] --budgets 256,... --json OUT``

The same memory is filled twice: without claims, and through an extractor (rules; on the synthetic
stream also the canonical grammar). Differences are paired by question, with intervals by question
and by conversation, for all questions, for each category, and for the questions of time together;
the cost stands beside them. A vector that an earlier system had made already is charged as if it
were made anew.

``--json`` writes ``{git_commit, libraries, configuration, suites}``, ids and figures only. A suite
(``locomo``, ``synthetic``) has ``data`` (what identifies it), ``questions``, ``conversations`` and
``systems``. A system has ``cost``, ``recall`` by budget (``{mean, low, high, n}``), and, other than
``no-claims``, ``difference`` by budget: ``by_question``, ``by_conversation``, ``temporal`` and
``categories``, each an interval of its difference to ``no-claims``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.datasets import locomo, synthetic_stream
from benchmarks.datasets.base import Conversation, Query
from benchmarks.manifest import git_commit, versions
from benchmarks.metrics.intervals import bootstrap, paired
from benchmarks.metrics.retrieval import strict_evidence
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem
from benchmarks.systems.extracting import ExtractingSystem
from evicortex.protocols import ClaimExtractor
from evicortex.providers.canonical import CanonicalGrammarExtractor
from evicortex.providers.rules import RuleExtractor

BASE = "no-claims"
TEMPORAL = frozenset(
    ("temporal", "changed, now", "changed, then", "old news told late", "correction", "negation")
)
"""Categories whose answers depend on when something held or was said."""
EXTRACTORS: tuple[ClaimExtractor, ...] = (RuleExtractor(), CanonicalGrammarExtractor())
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
    conversations: Iterable[Conversation],
    system: EviCortexSystem,
    budgets: Sequence[int],
    encoder: SharedEncoder | None,
) -> dict[str, Any]:
    """Return every question's value at every budget, its place, and what it all cost."""
    values: dict[int, list[float]] = {budget: [] for budget in budgets}
    clusters: list[str] = []
    categories: list[str] = []
    ingest = asked = 0.0
    turns = 0
    for conversation in conversations:
        started = _clock(encoder)
        system.ingest(conversation.conversation_id, conversation.turns)
        ingest += _clock(encoder) - started
        turns += len(conversation.turns)
        full = {turn.turn_id: turn.text for turn in conversation.turns}
        for query in questions(conversation):
            label = conversation.labels[query.query_id]
            clusters.append(conversation.conversation_id)
            categories.append(label.category)
            for budget in budgets:
                started = _clock(encoder)
                packed = system.ask(conversation.conversation_id, query, budget)
                asked += _clock(encoder) - started
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


def _clock(encoder: SharedEncoder | None) -> float:
    """Return CPU seconds, with every vector charged whether or not it was kept from before."""
    now = time.process_time()
    return now if encoder is None else now - encoder.spent_s + encoder.charged_s


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

    def among(chosen: Sequence[int]) -> dict[str, Any]:
        return asdict(paired([mine[n] for n in chosen], [theirs[n] for n in chosen]))

    places: dict[str, list[int]] = {}
    for place, category in enumerate(each["categories"]):
        places.setdefault(category, []).append(place)
    temporal = sorted(n for category in TEMPORAL for n in places.get(category, ()))
    return {
        "by_question": asdict(paired(mine, theirs)),
        "by_conversation": asdict(paired(mine, theirs, clusters=each["clusters"])),
        "temporal": among(temporal) if temporal else None,
        "categories": {category: among(places[category]) for category in sorted(places)},
    }


def render(name: str, found: dict[str, Any], budgets: Sequence[int]) -> str:
    """Return one suite's report as a plain table, in points of recall."""
    lines = [name]
    for system, each in found.items():
        cells = "".join(f"{100 * each['recall'][b]['mean']:>22.1f}" for b in budgets)
        lines.append(f"{system:14}{cells}")
        for label, cells_of in _rows(each.get("difference", {})):
            cells = "".join(_points(cells_of(each["difference"][b])) for b in budgets)
            lines.append(f"  {label[:12]:12}{cells}")
        told = ", ".join(f"{key} {amount:.2f}" for key, amount in each["cost"].items())
        lines.append(f"  {told}")
    return "\n".join(lines)


def _rows(
    differences: dict[int, Any],
) -> list[tuple[str, Callable[[dict[str, Any]], dict[str, float]]]]:
    """Return the names of a table's rows, and where in a budget's differences each stands."""
    first = next(iter(differences.values()), None)
    if first is None:
        return []
    whole = [("paired", "by_question"), ("by conv.", "by_conversation"), ("of time", "temporal")]
    return [
        *((label, itemgetter(key)) for label, key in whole if first[key]),
        *((name, lambda cell, name=name: cell["categories"][name]) for name in first["categories"]),
    ]


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
    encoder: SharedEncoder | None,
) -> dict[str, Any]:
    """Measure every system on the same conversations."""
    found: dict[str, dict[str, Any]] = {}
    for system, build in make.items():
        opened = build(folder / f"{name}-{system}.db")
        try:
            found[system] = measure(conversations, opened, budgets, encoder)
        finally:
            opened.close()
        print(f"{name}: {system} done", file=sys.stderr, flush=True)
    return {
        "questions": len(found[BASE]["clusters"]),
        "conversations": len(conversations),
        "systems": compare(found, budgets),
    }


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
    suites: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.locomo:
            data = locomo.load(options.locomo)
            talks = list(data.conversations)
            make = systems(encoder, synthetic=False)
            suites["locomo"] = {
                "data": {"source": data.source.name, "sha256": data.digest, "label": data.label},
                **run("locomo", talks, make, budgets, folder, encoder),
            }
        if seeds:
            shapes = [synthetic_stream.Shape(seed=seed, turns=options.turns) for seed in seeds]
            talks = [talk for shape in shapes for talk in synthetic_stream.conversations(shape)]
            make = systems(encoder, synthetic=True)
            suites["synthetic"] = {
                "data": {"source": "synthetic", "shapes": [asdict(shape) for shape in shapes]},
                **run("synthetic", talks, make, budgets, folder, encoder),
            }
    print("\n\n".join(render(name, each["systems"], budgets) for name, each in suites.items()))
    if options.json:
        found = {
            "git_commit": git_commit(Path(__file__).parent),
            "libraries": versions(),
            "configuration": {
                "budgets": budgets,
                "encoder": None if encoder is None else encoder.identity,
                "extractors": {each.extractor_id: each.revision for each in EXTRACTORS},
                "recall": "as shipped",
            },
            "suites": suites,
        }
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
