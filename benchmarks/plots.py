"""Plots of a report as PNG, from records alone. Needs matplotlib: ``pip install matplotlib``."""

from __future__ import annotations

import importlib
import io
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import calibration
from benchmarks.metrics.calibration import reliability
from benchmarks.metrics.intervals import bootstrap
from benchmarks.results import Record, select
from benchmarks.tables import HOW, RESAMPLES, budgets, complete, headline

SIZE = (8.0, 4.6)
WIDE = (12.0, 5.2)


def _figure(columns: int = 1) -> tuple[Any, Any]:
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(
        1, columns, figsize=SIZE if columns == 1 else WIDE, layout="constrained", sharey=True
    )
    colours = pyplot.get_cmap("tab20").colors
    for each in np.ravel(axes):
        each.set_prop_cycle(color=colours)
    return figure, axes


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=100, metadata={"Software": None})
    importlib.import_module("matplotlib.pyplot").close(figure)
    return buffer.getvalue()


def recall_over_budget(records: Sequence[Record], suite: str) -> bytes:
    """Draw the headline measure over the budget, intervals by question and by conversation."""
    figure, both = _figure(2)
    for how, axes in zip(HOW, both, strict=True):
        for name in complete(records, suite):
            _curve(axes, records, suite, name, how)
        columns = budgets(records, suite)
        axes.set_xscale("log", base=2)
        axes.set_xticks(columns, [str(budget) for budget in columns])
        axes.set(xlabel="budget, tokens", title=f"95 % by {how}", ylim=(0, 101))
        axes.grid(alpha=0.3)
    both[0].set_ylabel(f"{headline(suite)} recall, %")
    handles, names = both[0].get_legend_handles_labels()
    figure.legend(handles, names, fontsize=7, loc="outside right upper")
    figure.suptitle(suite)
    return _png(figure)


def _curve(axes: Any, records: Sequence[Record], suite: str, name: str, how: str) -> None:
    chosen = {
        budget: select(records, suite=suite, system=name, budget=budget)
        for budget in budgets(records, suite)
    }
    asked = [budget for budget, found in chosen.items() if found.records]
    found = [
        bootstrap(
            chosen[budget].values(headline(suite)),
            clusters=chosen[budget].clusters() if how == "conversation" else None,
            resamples=RESAMPLES,
        )
        for budget in asked
    ]
    axes.plot(asked, [100 * each.mean for each in found], marker="o", markersize=3, label=name)
    lows, highs = [100 * each.low for each in found], [100 * each.high for each in found]
    axes.fill_between(asked, lows, highs, alpha=0.12)


def by_category(records: Sequence[Record], suite: str, budget: int) -> bytes:
    """Draw the headline measure by category at one budget, with intervals by question."""
    figure, axes = _figure()
    measure = headline(suite)
    categories = sorted({r.category for r in records if r.suite == suite and r.counted})
    named = [
        name
        for name in complete(records, suite)
        if select(records, suite=suite, system=name, budget=budget).records
    ]
    width = 0.8 / max(len(named), 1)
    for place, name in enumerate(named):
        found = [
            bootstrap(
                select(records, suite=suite, system=name, budget=budget, category=category).values(
                    measure
                ),
                resamples=RESAMPLES,
            )
            for category in categories
        ]
        left = [number + place * width for number in range(len(categories))]
        heights = [100 * each.mean for each in found]
        errors = [
            [max(100 * (each.mean - each.low), 0.0) for each in found],
            [max(100 * (each.high - each.mean), 0.0) for each in found],
        ]
        axes.bar(left, heights, width=width, label=name, yerr=errors, error_kw={"linewidth": 0.5})
    axes.set_xticks([n + 0.4 for n in range(len(categories))], categories, fontsize=8)
    axes.set(ylabel=f"{measure} recall, %", title=f"{suite}, {budget} tokens", ylim=(0, 101))
    figure.legend(fontsize=6, loc="outside right upper")
    return _png(figure)


def latency_over_size(records: Sequence[Record], suite: str) -> bytes:
    """Draw CPU time of a question over the number of candidates that it scored."""
    figure, axes = _figure()
    for name in complete(records, suite):
        times: dict[float, list[float]] = {}
        for r in records:
            if (r.suite, r.system) == (suite, name) and r.costs.get("scored"):
                times.setdefault(r.costs["scored"], []).append(r.cpu_ms)
        if times:
            sizes = sorted(times)
            medians = [statistics.median(times[size]) for size in sizes]
            axes.plot(sizes, medians, marker=".", linewidth=0.8, label=name)
    axes.set(xlabel="candidates scored", ylabel="CPU ms, median", title=suite)
    axes.grid(alpha=0.3)
    figure.legend(fontsize=7, loc="outside right upper")
    return _png(figure)


def calibration_plot(records: Sequence[Record], suite: str, budget: int) -> bytes | None:
    """Draw the share of answerable questions by the probability given, or None without any."""
    named = complete(records, suite)
    found = [calibration.left_out(records, suite, name, budget) for name in named]
    found += [calibration.own(records, suite, name, budget) for name in named]
    known = [each for each in found if each is not None]
    if not known:
        return None
    figure, axes = _figure()
    axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
    for each in known:
        bins = reliability(np.array(each.probabilities), np.array(each.labels))
        axes.plot(
            [one.probability for one in bins],
            [one.share for one in bins],
            marker="o",
            markersize=3,
            linestyle="-" if each.how == "left out" else "--",
            label=f"{each.system} ({each.how})",
        )
    axes.set(xlabel="probability that it can be answered", ylabel="share that can")
    axes.set_title(f"{suite}: calibration, ten bins of equal size")
    figure.legend(fontsize=6, loc="outside right upper")
    return _png(figure)


def scan_over_size(record: Mapping[str, Any]) -> bytes:
    """Draw the CPU time of exact search and of an ANN index over the number of vectors."""
    figure, both = _figure(2)
    shapes = list(dict.fromkeys(point["shape"] for point in record["points"]))
    for shape, axes in zip(shapes, both, strict=False):
        points = [point for point in record["points"] if point["shape"] == shape]
        for name in ("float32", "certified", "ann"):
            kept = [point for point in points if point[name]]
            sizes = [point["size"] for point in kept]
            for quantile, style in (("p50_ms", "-"), ("p95_ms", ":")):
                times = [point[name][quantile] for point in kept]
                axes.plot(sizes, times, style, marker=".", label=f"{name} {quantile[:3]}")
        axes.set(xscale="log", yscale="log", xlabel="vectors", title=shape)
        axes.grid(alpha=0.3)
    both[0].set_ylabel("CPU ms of a query")
    both[0].legend(fontsize=7)
    figure.suptitle(
        f"exact search of the best {record['limit']}, {record['dimensions']} dimensions"
    )
    return _png(figure)
