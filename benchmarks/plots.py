"""Plots of a report as PNG, from records alone. Needs matplotlib: ``pip install matplotlib``."""

from __future__ import annotations

import importlib
import io
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from benchmarks.metrics.intervals import bootstrap
from benchmarks.results import Record, select, value
from benchmarks.tables import RESAMPLES, budgets, complete, headline

SIZE = (8.0, 4.6)


def _figure() -> tuple[Any, Any]:
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=SIZE, layout="constrained")
    return figure, axes


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    importlib.import_module("matplotlib.pyplot").close(figure)
    return buffer.getvalue()


def recall_over_budget(records: Sequence[Record], suite: str) -> bytes:
    """Draw the headline measure over the budget, with intervals by question."""
    figure, axes = _figure()
    measure, columns = headline(suite), budgets(records, suite)
    for name in complete(records, suite):
        found = [
            bootstrap(
                select(records, suite=suite, system=name, budget=budget).values(measure),
                resamples=RESAMPLES,
            )
            for budget in columns
        ]
        means = [100 * each.mean for each in found]
        axes.plot(columns, means, marker="o", markersize=3, label=name)
        lows, highs = [100 * each.low for each in found], [100 * each.high for each in found]
        axes.fill_between(columns, lows, highs, alpha=0.12)
    axes.set_xscale("log", base=2)
    axes.set_xticks(columns, [str(budget) for budget in columns])
    axes.set(xlabel="budget, tokens", ylabel=f"{measure} recall, %", title=suite, ylim=(0, 101))
    axes.legend(fontsize=7, loc="lower right")
    axes.grid(alpha=0.3)
    return _png(figure)


def by_category(records: Sequence[Record], suite: str, budget: int) -> bytes:
    """Draw the headline measure by category at one budget."""
    figure, axes = _figure()
    measure = headline(suite)
    categories = sorted({r.category for r in records if r.suite == suite and r.counted})
    named = complete(records, suite)
    width = 0.8 / max(len(named), 1)
    for place, name in enumerate(named):
        heights = [
            100
            * statistics.fmean(
                select(records, suite=suite, system=name, budget=budget, category=category).values(
                    measure
                )
            )
            for category in categories
        ]
        left = [number + place * width for number in range(len(categories))]
        axes.bar(left, heights, width=width, label=name)
    axes.set_xticks([n + 0.4 for n in range(len(categories))], categories, fontsize=8)
    axes.set(ylabel=f"{measure} recall, %", title=f"{suite}, {budget} tokens", ylim=(0, 101))
    axes.legend(fontsize=6)
    return _png(figure)


def latency_over_size(records: Sequence[Record], suite: str) -> bytes:
    """Draw CPU time of a question over the number of candidates that it scored."""
    figure, axes = _figure()
    for name in complete(records, suite):
        mine = [r for r in records if (r.suite, r.system) == (suite, name)]
        sizes = sorted({r.costs.get("scored", 0.0) for r in mine} - {0.0})
        if not sizes:
            continue
        times = [
            statistics.median(r.cpu_ms for r in mine if r.costs.get("scored") == size)
            for size in sizes
        ]
        axes.plot(sizes, times, marker=".", linewidth=0.8, label=name)
    axes.set(xlabel="candidates scored", ylabel="CPU ms, median", title=suite)
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    return _png(figure)


def calibration(records: Sequence[Record], suite: str) -> bytes | None:
    """Draw how often a question was supported by the probability given, or None without any."""
    known = [
        (r.probability, value(r, "any") if r.counted else 0.0)
        for r in records
        if r.suite == suite and r.probability is not None and (r.counted or not r.answerable)
    ]
    if not known:
        return None
    figure, axes = _figure()
    edges = [number / 10 for number in range(11)]
    points = []
    for low, high in pairwise(edges):
        inside = [(p, v) for p, v in known if low <= p < high or (high == 1.0 == p)]
        if inside:
            points.append(
                (statistics.fmean(p for p, _ in inside), statistics.fmean(v for _, v in inside))
            )
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
    axes.plot([p for p, _ in points], [v for _, v in points], marker="o")
    axes.set(xlabel="probability given", ylabel="share supported", title=f"{suite}: calibration")
    return _png(figure)
