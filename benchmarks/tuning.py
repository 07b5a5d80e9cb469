"""Tunes the comparator and EviCortex alike: the same number of recorded trials, leave-one-out.

A trial is one configuration measured on every conversation of the development data. The
configuration reported for a conversation is chosen on the others only (leave one conversation
out), so that the tuned figure is not the figure it was tuned on; the comparator runs with the
one chosen on all. The first trial of each is what it is by default. Trials are drawn by a seed.
EviCortex is not changed by its trials: it is compared as it is shipped, and its trials tell what
tuning would have given it too.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.config import ConfigError
from benchmarks.datasets.base import Conversation
from benchmarks.metrics.retrieval import strict_evidence
from benchmarks.systems.base import System
from benchmarks.systems.catalog import Bench
from benchmarks.systems.evicortex import EviCortexSystem, weighted
from benchmarks.systems.hybrid import HybridChunks, HybridConfig
from evicortex import Settings

HYBRID, EVICORTEX = "hybrid chunks", "evicortex"
HYBRID_SPACE: Mapping[str, Sequence[Any]] = {
    "small_tokens": (32, 64),
    "large_tokens": (192, 320),
    "rrf_k": (5, 10, 20, 60),
    "lexical": (0.5, 1.0, 1.5),
    "dense": (0.5, 1.0, 1.5),
    "small": (0.5, 1.0),
    "large": (0.0, 0.5, 1.0),
    "mmr": (0.7, 0.9, 1.0),
    "session_penalty": (0.0, 0.02, 0.1),
    "neighbours": (0, 1, 2),
    "neighbour_after": (4, 8, 16),
    "parent_tokens": (60, 120, 400),
}
EVICORTEX_SPACE: Mapping[str, Sequence[Any]] = {
    "turn": (0.15, 0.3, 0.5),
    "window": (0.15, 0.3, 0.6),
    "session": (0.0, 0.1, 0.2, 0.4),
    "dense_turn": (0.5, 0.7, 0.9),
    "dense_window": (0.2, 0.4, 0.7),
    "actor": (1.5, 2.5, 3.5),
    "time": (3.0, 4.5, 6.0),
    "time_after": (7.0, 14.0, 28.0),
    "ranker": (True, False),
    "ranker_candidates": (100, 200, 400),
    "whole_share": (0.35, 0.5, 0.75),
    "two_share": (0.75, 0.9),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration with its mean on each conversation; ``questions`` weigh them.

    ``config`` holds the changes to what is shipped; ``plan`` says on what it was measured.
    """

    system: str
    number: int
    config: Mapping[str, Any]
    means: Mapping[str, float]
    questions: Mapping[str, int]
    cpu_s: float
    plan: Mapping[str, Any] = field(default_factory=dict)
    shipped: bool = False

    def mean(self, without: str | None = None) -> float:
        """Return the mean over questions, leaving one conversation out."""
        kept = [name for name in self.means if name != without]
        total = sum(self.questions[name] for name in kept)
        return sum(self.means[name] * self.questions[name] for name in kept) / max(total, 1)


@dataclass(frozen=True, slots=True)
class Tuned:
    """What tuning found: the configuration chosen on all, and the honest left-out figure."""

    system: str
    trials: int
    best: Trial
    left_out: float
    default: float


def draw(space: Mapping[str, Sequence[Any]], trials: int, seed: int) -> list[dict[str, Any]]:
    """Return ``trials`` changes to the default, each different, the first one empty."""
    source = random.Random(seed)
    found: list[dict[str, Any]] = [{}]
    while len(found) < trials:
        changes = {name: source.choice(values) for name, values in space.items()}
        if changes not in found:
            found.append(changes)
    return found


def choose(trials: Sequence[Trial]) -> Tuned:
    """Choose by leave one conversation out; ties go to the earlier trial."""
    names = list(trials[0].means)
    left_out, total = 0.0, 0
    for name in names:
        chosen = max(trials, key=lambda trial: (trial.mean(without=name), -trial.number))
        left_out += chosen.means[name] * chosen.questions[name]
        total += chosen.questions[name]
    best = max(trials, key=lambda trial: (trial.mean(), -trial.number))
    return Tuned(trials[0].system, len(trials), best, left_out / max(total, 1), trials[0].mean())


def measure(
    system: System,
    conversations: Sequence[Conversation],
    budgets: Sequence[int],
    *,
    every: int = 1,
) -> tuple[dict[str, float], dict[str, int]]:
    """Return the mean strict all-evidence recall by conversation, and how many questions."""
    means: dict[str, float] = {}
    questions: dict[str, int] = {}
    for conversation in conversations:
        texts = {turn.turn_id: turn.text for turn in conversation.turns}
        values = [
            strict_evidence(
                conversation.labels[query.query_id].gold,
                system.ask(conversation.conversation_id, query, budget).shown,
                texts,
                conversation.labels[query.query_id].answer,
            )
            for query in counted(conversation)[::every]
            for budget in budgets
        ]
        means[conversation.conversation_id] = sum(values) / max(len(values), 1)
        questions[conversation.conversation_id] = len(values) // len(budgets)
    return means, questions


def counted(conversation: Conversation) -> list[Any]:
    """Return the queries that recall is measured on."""
    return [q for q in conversation.queries if conversation.labels[q.query_id].counted]


def _trials(
    name: str,
    space: Mapping[str, Sequence[Any]],
    under: Callable[[dict[str, Any]], System],
    plan: Plan,
) -> list[Trial]:
    found = [trial for trial in read_trials(plan.path) if trial.system == name]
    if any(trial.plan != plan.record() for trial in found):
        raise ConfigError(f"{plan.path} holds trials of another plan: choose another file")
    for number, changes in enumerate(draw(space, plan.trials, plan.seed)):
        if number < len(found):
            continue
        started = time.process_time()
        system = under(changes)
        means, questions = measure(system, plan.conversations, plan.budgets, every=plan.every)
        spent = round(time.process_time() - started, 2)
        trial = Trial(
            name, number, changes, means, questions, spent, plan.record(), shipped=not changes
        )
        with plan.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(trial), sort_keys=True) + "\n")
        plan.say(f"{name} trial {number}: {trial.mean():.4f}")
        found.append(trial)
    return found[: plan.trials]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is tuned on, how often, and where trials are recorded. ``every`` thins questions."""

    conversations: Sequence[Conversation]
    budgets: Sequence[int]
    trials: int
    seed: int
    path: Path
    say: Callable[[str], None]
    every: int = 1
    data: Mapping[str, str] = field(default_factory=dict)
    """Suite name to the SHA-256 of its data."""

    def record(self) -> dict[str, Any]:
        """Return what makes trials comparable, as it is written with each."""
        return {
            "budgets": list(self.budgets),
            "every": self.every,
            "seed": self.seed,
            "data": dict(self.data),
        }


def tune_hybrid(plan: Plan, hybrid: HybridChunks) -> Tuned:
    """Tune the comparator on what it has taken in; a tuning that was stopped goes on."""
    base = HybridConfig()
    return choose(
        _trials(
            HYBRID,
            HYBRID_SPACE,
            lambda changes: hybrid.reconfigured(replace(base, **changes)),
            plan,
        )
    )


def tune_evicortex(plan: Plan, evicortex: EviCortexSystem) -> Tuned:
    """Tune EviCortex's public settings on what it has taken in; goes on like the other."""
    opened: list[EviCortexSystem] = []

    def under(changes: dict[str, Any]) -> System:
        while opened:
            opened.pop().close()
        opened.append(evicortex.reconfigured(weighted(**changes) if changes else Settings()))
        return opened[0]

    try:
        return choose(_trials(EVICORTEX, EVICORTEX_SPACE, under, plan))
    finally:
        while opened:
            opened.pop().close()


def tune(plan: Plan, bench: Bench, systems: Sequence[str]) -> list[Tuned]:
    """Take in the conversations and tune these systems, one after the other.

    Raises:
        ConfigError: The file of trials holds some of another plan, there is no encoder, or a
            system cannot be tuned.
    """
    if bench.encoder is None:
        raise ConfigError("tuning needs an encoder")
    strangers = set(systems) - {HYBRID, EVICORTEX}
    if strangers:
        raise ConfigError(f"only {HYBRID} and {EVICORTEX} are tuned, not {', '.join(strangers)}")
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    found: list[Tuned] = []
    for name in systems:
        with tempfile.TemporaryDirectory() as folder:
            found.append(_tuned(plan, bench, name, Path(folder)))
    return found


def _tuned(plan: Plan, bench: Bench, name: str, folder: Path) -> Tuned:
    if name == HYBRID:
        hybrid = HybridChunks(bench.count, bench.vectors(name))
        _ingest(plan, hybrid)
        return tune_hybrid(plan, hybrid)
    own = EviCortexSystem(folder / "tuned.db", embedder=bench.encoder, token_counter=bench.counter)
    try:
        _ingest(plan, own)
        return tune_evicortex(plan, own)
    finally:
        own.close()


def _ingest(plan: Plan, system: System) -> None:
    for conversation in plan.conversations:
        system.ingest(conversation.conversation_id, conversation.turns)


def read_trials(path: Path) -> list[Trial]:
    """Return recorded trials; raises ValueError when the two systems had different numbers."""
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Trial(**json.loads(line)) for line in lines]


def check_equal(trials: Sequence[Trial]) -> int:
    """Return the number of trials that each system had.

    Raises:
        ValueError: One was tried more often than the other, or on something else: the comparison
            would not be fair.
    """
    numbers = {name: sum(t.system == name for t in trials) for name in {t.system for t in trials}}
    if len(set(numbers.values())) != 1 or len(numbers) != 2:
        raise ValueError(f"unequal tuning: {numbers}")
    if any(trial.plan != trials[0].plan for trial in trials):
        raise ValueError("unequal tuning: the trials are of different plans")
    return next(iter(numbers.values()))
