"""How the channels' opinions of every row become one score. Pure NumPy, no ranking model.

Each graded channel is standardised over the allowed rows (zeros included), so that weights mean
the same whatever the namespace's size; bonuses (actor, time, claims) are added as they are. The
weights were chosen by leave-one-conversation-out on development conversations only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from evicortex.errors import InputError
from evicortex.types import ChannelScore

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

GRADED = ("turn", "window", "session", "dense_turn", "dense_window")
BONUSES = ("actor", "time", "claims")
LEXICAL = ("turn", "window", "session")
_FLAT = 1e-9
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class ChannelWeights:
    """One weight a channel; ``time_after`` and ``time_before`` are decay lengths in days."""

    turn: float
    window: float
    session: float
    actor: float
    time: float
    claims: float
    time_after: float
    time_before: float
    dense_turn: float = 0.0
    dense_window: float = 0.0

    def __post_init__(self) -> None:
        values = [getattr(self, each.name) for each in fields(self)]
        if not np.isfinite(values).all() or min(self.time_after, self.time_before) <= 0:
            raise InputError("weights are finite, and decay lengths above 0 days")


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """Weights with and without vectors, and the gate that quietens lexical channels.

    The gate is ``clip((coverage - gate_from) / gate_over, 0, 1)`` with ``coverage`` the share of
    the query's idf mass that the best row holds: an ambient statement shares few words with what
    it should bring to mind. It acts only where vectors can speak instead.

    ``ranker`` lets the learned ranker correct the scores of the ``ranker_candidates`` best rows,
    where there are vectors of a semantic encoder.
    """

    lexical: ChannelWeights = field(
        default_factory=lambda: ChannelWeights(
            turn=1.0,
            window=1.2,
            session=0.4,
            actor=5.0,
            time=8.0,
            claims=4.0,
            time_after=7.0,
            time_before=3.0,
        )
    )
    hybrid: ChannelWeights = field(
        default_factory=lambda: ChannelWeights(
            turn=0.3,
            window=0.3,
            session=0.2,
            dense_turn=0.7,
            dense_window=0.4,
            actor=2.5,
            time=4.5,
            claims=2.0,
            time_after=14.0,
            time_before=3.0,
        )
    )
    gate_from: float = 0.2
    gate_over: float = 0.4
    ranker: bool = True
    ranker_candidates: int = 200

    def __post_init__(self) -> None:
        if not 0 <= self.gate_from <= 1 or self.gate_over <= 0:
            raise InputError("the gate opens between 0 and 1 and over more than 0")
        if self.ranker_candidates < 1:
            raise InputError("ranker_candidates is a count of at least 1")


def standardized(values: npt.NDArray[np.floating], mask: Mask | None) -> Floats:
    """Return (x - mean) / standard deviation over the allowed rows; 0 elsewhere.

    A channel that says the same of every row says nothing: all 0.
    """
    wide = values.astype(np.float64)
    allowed = wide if mask is None else wide[mask]
    if len(allowed) == 0:
        return np.zeros(len(wide))
    deviation = float(allowed.std())
    if deviation < _FLAT:
        return np.zeros(len(wide))
    scores: Floats = (wide - float(allowed.mean())) / deviation
    return scores if mask is None else np.where(mask, scores, 0.0)


def gate(coverage: float, weights: FusionWeights) -> float:
    """Return the factor, 0 to 1, of the lexical channels beside vectors."""
    return float(np.clip((coverage - weights.gate_from) / weights.gate_over, 0.0, 1.0))


def fuse(
    channels: Mapping[str, npt.NDArray[np.floating]],
    mask: Mask | None,
    weights: ChannelWeights,
    *,
    lexical_factor: float = 1.0,
) -> Floats:
    """Return the fused score of every row, -inf where ``mask`` does not allow it.

    Channels that are absent are off. Scores are finite for allowed rows.

    Raises:
        InputError: a channel that is unknown, or arrays of several lengths.
    """
    unknown = set(channels) - {*GRADED, *BONUSES}
    sizes = {len(values) for values in channels.values()}
    if unknown or len(sizes) != 1:
        raise InputError(f"unknown channels {sorted(unknown)} or lengths {sorted(sizes)}")
    total = np.zeros(sizes.pop())
    for name, values in channels.items():
        weight = float(getattr(weights, name))
        if name in LEXICAL:
            weight *= lexical_factor
        if weight == 0.0:
            continue
        graded = standardized(values, mask) if name in GRADED else values
        total += weight * graded
    if mask is not None:
        total[~mask] = -np.inf
    return total


def best(scores: Floats, limit: int) -> Rows:
    """Return the rows of the ``limit`` highest finite scores, ties by row."""
    candidates = np.flatnonzero(np.isfinite(scores))
    if 0 < limit < len(candidates):
        chosen = scores[candidates]
        floor = np.partition(chosen, len(chosen) - limit)[len(chosen) - limit]
        candidates = candidates[chosen >= floor]
    order = np.lexsort((candidates, -scores[candidates]))
    return candidates[order][:limit]


def channel_scores(
    channels: Mapping[str, npt.NDArray[np.floating]], mask: Mask | None, rows: Rows
) -> list[dict[str, ChannelScore]]:
    """Return, for each of ``rows``, its raw score and rank (from 1, ties share one) by channel.

    A bonus or a lexical score of 0 is no opinion and is left out.
    """
    found: list[dict[str, ChannelScore]] = [{} for _ in rows]
    for name, values in channels.items():
        allowed = values if mask is None else values[mask]
        ordered = np.sort(allowed)
        scores = values[rows]
        ranks = len(ordered) - np.searchsorted(ordered, scores, side="right") + 1
        silent = not name.startswith("dense")
        for entry, score, rank in zip(found, scores.tolist(), ranks.tolist(), strict=True):
            if not (silent and score == 0):
                entry[name] = ChannelScore(rank, score)
    return found


def time_proximity(
    effective_us: npt.NDArray[np.int64],
    intervals: Sequence[tuple[int, int]],
    *,
    after: float,
    before: float,
) -> Floats:
    """Return 1 for rows on a day of an interval, decaying with the days between.

    ``intervals`` are half-open, in microseconds since the epoch, UTC. With several the nearest
    counts. A row d days after an interval scores exp(-d / after), before it exp(-d / before):
    people tell of a thing after it happened more often than before.
    """
    proximity = np.zeros(len(effective_us))
    days = effective_us // _DAY_US
    for start, end in intervals:
        first, last = start // _DAY_US, (end - 1) // _DAY_US
        late = np.maximum(days - last, 0) / after
        early = np.maximum(first - days, 0) / before
        np.maximum(proximity, np.exp(-(late + early)), out=proximity)
    return proximity


def reciprocal_ranks(rankings: Sequence[Sequence[int]], *, k: int = 60) -> dict[int, float]:
    """Return the sum of 1 / (k + rank) of each row over rankings.

    Cormack, Clarke and Buettcher, Reciprocal Rank Fusion outperforms Condorcet and individual
    Rank Learning Methods, SIGIR 2009; k = 60 is theirs.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, start=1):
            scores[row] = scores.get(row, 0.0) + 1.0 / (k + rank)
    return scores
