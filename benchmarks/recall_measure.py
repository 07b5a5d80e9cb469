"""Measuring the rungs of the recall ladder on one suite: scores, costs, paired intervals."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.metrics.intervals import bootstrap
from benchmarks.recall_ladder import DIFFERENCES, Rung
from benchmarks.recall_suites import Suite
from benchmarks.systems.base import System
from benchmarks.systems.dense import SharedEncoder

Values = dict[int, list[float]]
"""Budget to the value of every question, in order."""


class _Clock:
    """CPU seconds of this process beside those of the encoder."""

    def __init__(self, encoder: SharedEncoder | None) -> None:
        self._encoder = encoder

    def read(self) -> float:
        return time.process_time() - (self._encoder.spent_s if self._encoder else 0.0)


def measure(
    suite: Suite,
    system: System,
    budgets: Sequence[int],
    *,
    encoder: SharedEncoder | None = None,
    stored: bool = False,
) -> tuple[Values, dict[str, Any]]:
    """Return the score of every question at every budget, and what it cost.

    Times are CPU, without those of ``encoder``. Each conversation is asked once before its
    questions are timed, so that caches are filled; ``first_ms`` is the median of that.
    ``stored`` says that the system has the conversations already.

    Raises:
        AssertionError: A pack holds more tokens than its budget.
    """
    clock = _Clock(encoder)
    values: Values = {budget: [] for budget in budgets}
    spent: Values = {budget: [] for budget in budgets}
    first: list[float] = []
    ingest = 0.0
    for conversation, queries in suite.conversations:
        name = conversation.conversation_id
        if not stored:
            started = clock.read()
            system.ingest(name, conversation.turns)
            ingest += clock.read() - started
        if queries:
            started = clock.read()
            system.ask(name, queries[0], budgets[0])
            first.append(clock.read() - started)
        full = {turn.turn_id: turn.text for turn in conversation.turns}
        for query in queries:
            for budget in budgets:
                started = clock.read()
                packed = system.ask(name, query, budget)
                spent[budget].append(clock.read() - started)
                if packed.token_count > budget:
                    raise AssertionError(f"{system.name} broke the budget: {query.query_id}")
                label = conversation.labels[query.query_id]
                values[budget].append(suite.score(label, dict(packed.shown), full))
    return values, {
        "ingest_s": None if stored else ingest,
        "first_ms": _percentiles(first)["p50"],
        "query_ms": {budget: _percentiles(each) for budget, each in spent.items()},
    }


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    middle, high = np.percentile(seconds, [50, 95]) * 1000
    return {"p50": float(middle), "p95": float(high)}


def report(
    suite: Suite, rungs: Mapping[str, Rung], budgets: Sequence[int], folder: Path
) -> dict[str, Any]:
    """Measure every rung on a suite and compare them; ledgers go to ``folder``."""
    started = time.process_time()
    scores: dict[str, Values] = {}
    costs: dict[str, Any] = {}
    written: set[str] = set()
    folder.mkdir(parents=True)
    for name, rung in rungs.items():
        system = rung.make(folder / f"{rung.ledger}.db")
        stored = rung.ledger in written
        scores[name], costs[name] = measure(
            suite, system, budgets, encoder=rung.encoder, stored=stored
        )
        system.close()
        written.add(rung.ledger)
        print(f"{suite.name}: {name} done", file=sys.stderr, flush=True)
    labels = [label for _, label in suite.questions]
    clusters = [conversation.conversation_id for conversation, _ in suite.questions]
    categories = [label.category for label in labels]
    cells = intervals(_columns(scores), clusters, categories)
    return {
        "suite": suite.name,
        "label": suite.label,
        "data": suite.data,
        "measure": suite.measure,
        "n": len(labels),
        "conversations": len(set(clusters)),
        "categories": dict(sorted(Counter(categories).items())),
        "budgets": list(budgets),
        "systems": {
            name: {
                "diagnostic": rung.diagnostic,
                "cost": costs[name],
                "budgets": {budget: cells[name, budget] for budget in budgets},
            }
            for name, rung in rungs.items()
        },
        "differences": {
            f"{ours} over {theirs}": {
                budget: cells[f"{ours} over {theirs}", budget] for budget in budgets
            }
            for ours, theirs in DIFFERENCES
            if ours in scores and theirs in scores
        },
        "cpu_s": time.process_time() - started,
    }


def _columns(scores: Mapping[str, Values]) -> dict[tuple[str, int], list[float]]:
    """Return the values of every system, and the paired differences, by name and budget."""
    found = {(name, b): values for name, by in scores.items() for b, values in by.items()}
    for ours, theirs in DIFFERENCES:
        if ours in scores and theirs in scores:
            for budget, values in scores[ours].items():
                pairs = zip(values, scores[theirs][budget], strict=True)
                found[f"{ours} over {theirs}", budget] = [a - b for a, b in pairs]
    return found


def intervals(
    columns: Mapping[tuple[str, int], Sequence[float]],
    clusters: Sequence[str],
    categories: Sequence[str],
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return each column's mean with its 95 % intervals, by question, conversation and category.

    ``by_conversation`` is ``None`` where there is one conversation only. Columns are done together
    for each group, because drawing the samples is what costs.
    """
    found: dict[tuple[str, int], dict[str, Any]] = {
        key: {"all": asdict(bootstrap(values)), "by_conversation": None, "categories": {}}
        for key, values in columns.items()
    }
    if len(set(clusters)) > 1:
        for key, values in columns.items():
            found[key]["by_conversation"] = asdict(bootstrap(values, clusters=clusters))
    for category in sorted(set(categories)):
        rows = [row for row, each in enumerate(categories) if each == category]
        for key, values in columns.items():
            part = bootstrap([values[row] for row in rows])
            found[key]["categories"][category] = asdict(part)
    return found
