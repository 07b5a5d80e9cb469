"""Refusal as a probability, from records alone, the same way for every system.

A logistic regression on the signals that a system's packs carry (``systems.base.Packed``), fitted
on all conversations but one and read on that one: no probability comes from questions of its own
conversation. What is predicted is whether the question can be answered from the conversation at
all (LoCoMo: categories 1 to 4 against 5). A system's own probabilities, where it gives any, are
reported beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.metrics.calibration import auroc, brier, calibration_error, resampled
from benchmarks.metrics.intervals import Interval, paired
from benchmarks.results import Record

RIDGE = 1.0
STEPS = 50
Floats = npt.NDArray[np.float64]
How = Literal["own", "left out"]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Probabilities of support in the order of ``records``, and how they were made."""

    system: str
    how: How
    records: tuple[Record, ...]
    probabilities: tuple[float, ...]

    @property
    def labels(self) -> list[float]:
        """1 for questions that can be answered."""
        return [float(r.answerable) for r in self.records]

    @property
    def conversations(self) -> list[str]:
        """The conversation of each question."""
        return [r.conversation for r in self.records]

    def auroc(self, *, by_conversation: bool = False) -> Interval:
        """Return the area under the curve with its interval."""
        clusters = self.conversations if by_conversation else None
        return resampled(auroc, self.probabilities, self.labels, clusters)

    def brier(self) -> Interval:
        """Return the Brier score with its interval by conversation."""
        return resampled(brier, self.probabilities, self.labels, self.conversations)

    def calibration_error(self) -> float:
        """Return the expected calibration error over ten bins."""
        return calibration_error(np.array(self.probabilities), np.array(self.labels))

    def gain(self) -> Interval:
        """Return by how much the Brier score is below that of the other conversations' share."""
        labels = self.labels
        base = _left_out_share(self.conversations, labels)
        own = [-((p - y) ** 2) for p, y in zip(self.probabilities, labels, strict=True)]
        constant = [-((p - y) ** 2) for p, y in zip(base, labels, strict=True)]
        return paired(own, constant, clusters=self.conversations)


def _left_out_share(conversations: Sequence[str], labels: Sequence[float]) -> list[float]:
    names, y = np.asarray(conversations), np.asarray(labels)
    return [float(y[names != name].mean()) for name in conversations]


def questions(
    records: Sequence[Record], suite: str, system: str, budget: int
) -> tuple[Record, ...]:
    """Return the questions that can be answered and those that cannot, in a fixed order."""
    found = [
        r
        for r in records
        if (r.suite, r.system, r.budget) == (suite, system, budget)
        and (r.counted or not r.answerable)
    ]
    return tuple(sorted(found, key=lambda r: (r.conversation, r.query)))


def own(records: Sequence[Record], suite: str, system: str, budget: int) -> Calibrated | None:
    """Return the probabilities that a system gives itself, or None when it gives none."""
    chosen = questions(records, suite, system, budget)
    given = [r.probability for r in chosen if r.probability is not None]
    if not chosen or len(given) != len(chosen) or not _both_kinds(chosen):
        return None
    return Calibrated(system, "own", chosen, tuple(given))


def left_out(records: Sequence[Record], suite: str, system: str, budget: int) -> Calibrated | None:
    """Return probabilities fitted without the question's conversation; None without signals."""
    chosen = questions(records, suite, system, budget)
    names = sorted({name for r in chosen for name in r.signals})
    conversations = np.array([r.conversation for r in chosen])
    if not names or not _both_kinds(chosen) or len(set(conversations)) < 2:
        return None
    signals = np.array([[r.signals.get(name, 0.0) for name in names] for r in chosen])
    labels = np.array([float(r.answerable) for r in chosen])
    found = np.empty(len(chosen))
    for name in np.unique(conversations):
        inside = conversations == name
        found[inside] = _fit_and_read(signals[~inside], labels[~inside], signals[inside])
    return Calibrated(system, "left out", chosen, tuple(found.tolist()))


def _both_kinds(chosen: Sequence[Record]) -> bool:
    return {True, False} <= {r.answerable for r in chosen}


def _fit_and_read(signals: Floats, labels: Floats, asked: Floats) -> Floats:
    """Fit a ridge-penalised logistic regression by Newton's method, and read it elsewhere."""
    mean, deviation = signals.mean(axis=0), signals.std(axis=0)
    deviation[deviation == 0] = 1.0
    design = np.column_stack([np.ones(len(signals)), (signals - mean) / deviation])
    penalty = RIDGE * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    weights = np.zeros(design.shape[1])
    for _ in range(STEPS):
        p = _sigmoid(design @ weights)
        gradient = design.T @ (labels - p) - penalty @ weights
        curvature = (design * (p * (1 - p))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature + 1e-9 * np.eye(len(weights)), gradient)
        weights += step
        if float(np.abs(step).max()) < 1e-8:
            break
    read: Floats = _sigmoid(
        np.column_stack([np.ones(len(asked)), (asked - mean) / deviation]) @ weights
    )
    return read


def _sigmoid(values: Floats) -> Floats:
    found: Floats = 0.5 * (1.0 + np.tanh(values / 2.0))
    return found
