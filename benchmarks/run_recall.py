"""Recall on external conversations, reader-free: a ladder of systems, paired intervals.

``python -m benchmarks.run_recall [--locomo FILE] [--realtalk FILE] [--implicit FILE --haystack
LOCOMO_FILE] [--needles FILE --record LONGMEMEVAL_FILE] --budgets 256,512,... --json OUT``

Takes any file of these formats and tunes nothing. Every value is taken after packing. Strict
means that every gold turn is packed and every word of the gold answer that it contains survives
the cutting; implicit items count any turn of the cue.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import locomo, locomo_plus, needles, realtalk
from benchmarks.datasets.base import Conversation, Dataset, Label, Query
from benchmarks.metrics.intervals import bootstrap, paired
from benchmarks.metrics.retrieval import any_evidence, strict_evidence
from benchmarks.systems.base import CountTokens, System
from benchmarks.systems.bm25 import BM25
from benchmarks.systems.dense import Dense, SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem
from benchmarks.systems.rrf import ReciprocalRankFusion
from evicortex import EviCortex

Score = Callable[[Label, dict[str, str], dict[str, str]], float]


@dataclass(frozen=True, slots=True)
class Suite:
    """Conversations with the questions that count, and how one question is scored."""

    name: str
    digest: str
    label: str
    score: Score
    conversations: Iterable[tuple[Conversation, Sequence[Query]]]


def _strict(label: Label, shown: dict[str, str], full: dict[str, str]) -> float:
    return strict_evidence(label.gold, shown, full, label.answer)


def _any(label: Label, shown: dict[str, str], full: dict[str, str]) -> float:
    return any_evidence(label.gold, shown)


def _answerable(
    conversations: Iterable[Conversation], left_out: str | None
) -> Iterator[tuple[Conversation, Sequence[Query]]]:
    for conversation in conversations:
        labels = conversation.labels
        yield (
            conversation,
            [
                query
                for query in conversation.queries
                if labels[query.query_id].gold and labels[query.query_id].category != left_out
            ],
        )


def answerable_suite(dataset: Dataset, *, left_out: str | None) -> Suite:
    """Return the questions with gold, but for one category, scored strictly."""
    chosen = list(_answerable(dataset.conversations, left_out))
    return Suite(dataset.source.name, dataset.digest, dataset.label, _strict, chosen)


def suites(options: argparse.Namespace) -> list[Suite]:
    """Return the suites that were asked for."""
    found: list[Suite] = []
    if options.locomo:
        found.append(answerable_suite(locomo.load(options.locomo), left_out="adversarial"))
    if options.realtalk:
        found.append(answerable_suite(realtalk.load(options.realtalk), left_out=None))
    if options.implicit:
        digest, label, items = locomo_plus.load(options.implicit, options.haystack)
        chosen = list(_answerable(items, None))
        found.append(Suite("implicit", digest, label, _any, chosen))
    if options.needles:
        found.append(answerable_suite(needles.load(options.needles, options.record), left_out=None))
    return found


@dataclass(frozen=True, slots=True)
class Ladder:
    """The systems, each made anew for a folder."""

    make: dict[str, Callable[[Path], System]]


def ladder(names: Sequence[str], count: CountTokens, encoder: SharedEncoder | None) -> Ladder:
    """Return the systems by name, from plain BM25 to the default configuration."""
    make: dict[str, Callable[[Path], System]] = {
        "bm25": lambda folder: BM25(count),
        "evicortex-lexical": lambda folder: EviCortexSystem(
            folder / "lexical.db", name="evicortex-lexical", embedder=None
        ),
        "evicortex-hashing": lambda folder: EviCortexSystem(
            folder / "hashing.db",
            name="evicortex-hashing",
            embedder=_hashing(),
        ),
    }
    if encoder is not None:
        shared = encoder
        make |= {
            "dense": lambda folder: Dense(count, shared),
            "rrf-k60": lambda folder: ReciprocalRankFusion(count, shared),
            "evicortex": lambda folder: EviCortexSystem(
                folder / "default.db", name="evicortex", embedder=shared
            ),
        }
    missing = [name for name in names if name not in make]
    if missing:
        raise SystemExit(f"no such system (or no encoder installed): {', '.join(missing)}")
    return Ladder({name: make[name] for name in make if not names or name in names})


def _hashing() -> Any:
    from evicortex.providers.hashing import HashingEmbedder

    return HashingEmbedder()


def measure(
    suite: Suite, system: System, budgets: Sequence[int]
) -> tuple[dict[int, list[float]], dict[str, float]]:
    """Return the score of every question at every budget, and what it cost."""
    values: dict[int, list[float]] = {budget: [] for budget in budgets}
    asked, spent, ingest = 0, 0.0, 0.0
    for conversation, queries in suite.conversations:
        started = time.process_time()
        system.ingest(conversation.conversation_id, conversation.turns)
        ingest += time.process_time() - started
        full = {turn.turn_id: turn.text for turn in conversation.turns}
        for query in queries:
            label = conversation.labels[query.query_id]
            for budget in budgets:
                started = time.process_time()
                packed = system.ask(conversation.conversation_id, query, budget)
                spent += time.process_time() - started
                asked += 1
                if packed.token_count > budget:
                    raise AssertionError(f"{system.name} broke the budget: {query.query_id}")
                values[budget].append(suite.score(label, dict(packed.shown), full))
    return values, {"cpu_ms_per_query": 1000 * spent / max(asked, 1), "ingest_cpu_s": ingest}


def _clusters(suite: Suite) -> tuple[list[str], list[str]]:
    names: list[str] = []
    categories: list[str] = []
    for conversation, queries in suite.conversations:
        names += [conversation.conversation_id] * len(queries)
        categories += [conversation.labels[query.query_id].category for query in queries]
    return names, categories


def report(suite: Suite, systems: Ladder, budgets: Sequence[int], folder: Path) -> dict[str, Any]:
    """Measure every system on a suite; the first is the baseline of the paired differences."""
    clusters, categories = _clusters(suite)
    out: dict[str, Any] = {
        "data": suite.name,
        "label": suite.label,
        "sha256": suite.digest,
        "n": len(clusters),
        "systems": {},
    }
    scores: dict[str, dict[int, list[float]]] = {}
    for name, make in systems.make.items():
        place = folder / suite.name / name
        place.mkdir(parents=True)
        system = make(place)
        scores[name], cost = measure(suite, system, budgets)
        system.close()
        out["systems"][name] = {
            "diagnostic": name == "evicortex-hashing",
            "cost": cost,
            "budgets": {
                budget: _cell(values, clusters, categories)
                for budget, values in scores[name].items()
            },
        }
        print(f"{suite.name}: {name} done", file=sys.stderr, flush=True)
    for name, entry in out["systems"].items():
        for base in [each for each in ("bm25", "rrf-k60") if each in scores and each != name]:
            entry[f"over {base}"] = {
                budget: {
                    "by_question": asdict(paired(scores[name][budget], scores[base][budget])),
                    "by_conversation": asdict(
                        paired(scores[name][budget], scores[base][budget], clusters=clusters)
                    ),
                }
                for budget in budgets
            }
    return out


def _cell(
    values: Sequence[float], clusters: Sequence[str], categories: Sequence[str]
) -> dict[str, Any]:
    by_category = {
        category: asdict(
            bootstrap([v for v, c in zip(values, categories, strict=True) if c == category])
        )
        for category in sorted(set(categories))
    }
    return {
        "all": asdict(bootstrap(values)),
        "by_conversation": asdict(bootstrap(values, clusters=clusters)),
        "categories": by_category,
    }


def render(found: dict[str, Any], budgets: Sequence[int]) -> str:
    """Return one suite's report as a plain table, in percent."""
    lines = [
        f"{found['data']} ({found['label']}, sha256 {found['sha256'][:16]}, n={found['n']})",
        f"{'':22}" + "".join(f"{'@' + str(budget):>20}" for budget in budgets) + f"{'CPU ms':>9}",
    ]
    for name, entry in found["systems"].items():
        cells = [entry["budgets"][budget]["all"] for budget in budgets]
        shown = "".join(
            f"{100 * c['mean']:.1f} [{100 * c['low']:.1f}, {100 * c['high']:.1f}]".rjust(20)
            for c in cells
        )
        mark = "*" if entry["diagnostic"] else ""
        lines.append(f"{name + mark:22}{shown}{entry['cost']['cpu_ms_per_query']:>9.1f}")
    if any(entry["diagnostic"] for entry in found["systems"].values()):
        lines.append("* feature hashing is a diagnostic encoder, no semantic model")
    for name in found["systems"]:
        categories = found["systems"][name]["budgets"][budgets[0]]["categories"]
        for category, cell in categories.items():
            cells = [
                found["systems"][name]["budgets"][budget]["categories"][category]
                for budget in budgets
            ]
            row = "".join(f"{100 * each['mean']:.1f}".rjust(20) for each in cells)
            lines.append(f"  {name[:12] + ' ' + category:20}{row}  n={cell['n']}")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_recall", description=__doc__)
    for name in ("locomo", "realtalk", "implicit", "haystack", "needles", "record"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--budgets", default="256,512,1024,2048,4096,8192")
    parser.add_argument("--systems", default="", help="names, comma-separated; all by default")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ladder; returns 0, or 2 when an argument or a file is missing."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.implicit and not options.haystack:
        parser.error("--implicit needs --haystack, the LoCoMo file that its items name")
    if options.needles and not options.record:
        parser.error("--needles needs --record, the LongMemEval record that they are about")
    chosen = suites(options)
    if not chosen:
        parser.error("name at least one data file")
    budgets = [int(budget) for budget in options.budgets.split(",")]
    names = [name for name in options.systems.split(",") if name]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with EviCortex.open(folder / "counter.db", embedder=None) as cortex:
            counter = cortex.token_counter
        encoder = SharedEncoder.local()
        systems = ladder(names, counter.count, encoder)
        found: dict[str, Any] = {
            "token_counter": counter.identity,
            "encoder": None if encoder is None else encoder.identity,
            "budgets": budgets,
            "suites": [report(suite, systems, budgets, folder) for suite in chosen],
        }
    print(f"tokens {counter.identity}\nencoder {found['encoder']}\n")
    print("\n\n".join(render(each, budgets) for each in found["suites"]))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
