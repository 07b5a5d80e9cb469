"""Percentile bootstrap intervals, by question or by cluster (conversation).

Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13. Resampling whole
conversations accounts for questions of one conversation being alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its percentile interval; ``n`` is the number of questions."""

    mean: float
    low: float
    high: float
    n: int


def _percentiles(means: npt.NDArray[np.float64], level: float) -> tuple[float, float]:
    tail = (1 - level) / 2 * 100
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


@lru_cache(maxsize=4)
def _drawn(number: int, resamples: int, seed: int) -> npt.NDArray[np.float64]:
    """Return how often each of ``number`` is drawn, (resamples, number); a report asks often."""
    random = np.random.default_rng(seed)
    drawn = random.multinomial(number, np.full(number, 1 / number), resamples)
    return drawn.astype(np.float64)


def bootstrap(
    values: Sequence[float],
    *,
    clusters: Sequence[str] | None = None,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the mean of ``values`` with its interval; an empty sequence is an error.

    With ``clusters`` (one name a value) whole clusters are resampled.
    """
    if not values:
        raise ValueError("an interval needs at least one value")
    array = np.asarray(values, dtype=np.float64)
    if clusters is None:
        means = _drawn(len(array), resamples, seed) @ array / len(array)
    else:
        names, index = np.unique(np.asarray(clusters), return_inverse=True)
        sums = np.bincount(index, weights=array)
        sizes = np.bincount(index)
        picks = _drawn(len(names), resamples, seed)
        means = (picks @ sums) / (picks @ sizes)
    low, high = _percentiles(means, level)
    return Interval(float(array.mean()), low, high, len(array))


def paired(
    values: Sequence[float],
    baseline: Sequence[float],
    *,
    clusters: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the mean difference ``values - baseline`` with its interval, question by question."""
    if len(values) != len(baseline):
        raise ValueError("paired values must answer the same questions in the same order")
    differences = [a - b for a, b in zip(values, baseline, strict=True)]
    return bootstrap(differences, clusters=clusters, seed=seed, resamples=resamples)
