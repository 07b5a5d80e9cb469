"""How well a number tells questions that can be answered from those that cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.metrics.intervals import Interval

RESAMPLES = 1_000
BINS = 10
Floats = npt.NDArray[np.float64]
Statistic = Callable[[Floats, Floats], float]


def auroc(scores: Floats, labels: Floats) -> float:
    """Return the chance that a question with label 1 scores above one with label 0.

    A tie counts half (Hanley and McNeil, 1982). One half when either kind is absent.
    """
    ones = int(labels.sum())
    zeros = len(labels) - ones
    if not ones or not zeros:
        return 0.5
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[places]
    return float((ranks[labels == 1].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def brier(probabilities: Floats, labels: Floats) -> float:
    """Return the mean squared difference of probability and outcome (Brier, 1950)."""
    return float(np.mean((probabilities - labels) ** 2))


def calibration_error(probabilities: Floats, labels: Floats) -> float:
    """Return the mean gap of probability and share over the bins of :func:`reliability`."""
    found = reliability(probabilities, labels)
    return sum(each.count * abs(each.probability - each.share) for each in found) / len(labels)


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions of alike probability: their mean probability, and the share with label 1."""

    probability: float
    share: float
    count: int


def reliability(probabilities: Floats, labels: Floats) -> list[Bin]:
    """Return at most ten bins of about as many questions each, by probability."""
    order = np.argsort(probabilities, kind="stable")
    return [
        Bin(float(probabilities[part].mean()), float(labels[part].mean()), len(part))
        for part in np.array_split(order, min(BINS, len(order)))
        if len(part)
    ]


def resampled(
    statistic: Statistic,
    scores: Sequence[float],
    labels: Sequence[float],
    clusters: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> Interval:
    """Return a statistic with its percentile interval; with ``clusters`` whole ones are drawn."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    names = np.arange(len(x)).astype(str) if clusters is None else np.asarray(clusters)
    rows = [np.flatnonzero(names == name) for name in np.unique(names)]
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(RESAMPLES):
        picked = np.concatenate([rows[i] for i in random.integers(len(rows), size=len(rows))])
        drawn.append(statistic(x[picked], y[picked]))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(statistic(x, y), float(low), float(high), len(x))
