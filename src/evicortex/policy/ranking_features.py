"""What the learned ranker looks at. Pure NumPy.

Nothing here depends on where in a namespace a row stands, on question marks or on images: such
features betray the data set a ranker was trained on and do not travel. Graded channels are
standardised, so that neither a namespace's size nor an encoder's scale shows through, and ranks
are those among the candidates, ties sharing one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from evicortex.policy.fusion import standardized
from evicortex.policy.pieces import looks
from evicortex.text import content_terms

Floats = npt.NDArray[np.floating]
Float32 = npt.NDArray[np.float32]
Index = npt.NDArray[np.intp]
Columns = Mapping[str, Floats]
Values = Mapping[str, Floats | float]

GRADED: Final = ("turn", "window", "session", "dense_turn", "dense_window")
TURN_LOOKS: Final = (
    "length",
    "terms",
    "sentences",
    "digit",
    "quote",
    "time_word",
    "capitalised",
    "first_person",
    "second_person",
)
"""What is known of a turn before there is a query; see ``turn_looks``."""
ASKED: Final = ("when", "where", "who", "count", "list", "yes_no", "why", "guess")
"""What a question may ask for; see ``asked``."""

_READ_CHARACTERS: Final = 4_000
_CHARACTERS_PER_TOKEN: Final = 4
_SENTENCE_END: Final = re.compile(r"[.!?…。！？]+(?=\s|$)|\n")
_NEIGHBOURHOOD: Final = 50
_HIGHER: Final = 20
_FLAT: Final = 1e-9


def turn_looks(text: str) -> tuple[float, ...]:
    """Return one number for each of ``TURN_LOOKS``, from the first 4,000 characters of a text.

    Length (in units of four characters), different content terms and sentences are given as
    ln(1 + count), the rest as in ``pieces.looks``.
    """
    read = text[:_READ_CHARACTERS]
    capitalised, time_word, digit, quote, first, second, _ = looks(read)
    return (
        math.log1p(len(read) / _CHARACTERS_PER_TOKEN),
        math.log1p(len(set(content_terms(read)))),
        math.log1p(len(_SENTENCE_END.findall(read))),
        digit,
        quote,
        time_word,
        capitalised,
        first,
        second,
    )


_PLACE: Final = (
    r"city|cities|country|countries|places?|states?|towns?|location|restaurant|park|school|company"
)
_MANY: Final = r"(?:(?:are|were|all|different|other|some|of)\s){0,3}(?:[a-z]{1,30}\s){0,2}"
_ASKED: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:when|(?:what|which) (?:date|day|year|month|time))\b",
        rf"\bwhere\b|\b(?:which|what) (?:\w{{1,30}} )?(?:{_PLACE})\b",
        r"\b(?:who|whose|whom)\b",
        r"\bhow (?:many|much|often|long|old|far|tall|big)\b",
        rf"\b(?:what|which)\s{_MANY}[a-z]{{2,30}}(?<!s)s\b|\bhow many\b|\blist\b",
        r"^\W{0,8}(?:is|are|was|were|do|does|did|has|have|had|would|could|can|will|should)\b",
        r"\b(?:why|how)\b(?! (?:many|much|often|long|old|far))",
        r"\b(?:would|might|could|likely|considered|probably)\b",
    )
)


def asked(query: str) -> tuple[float, ...]:
    """Return 1 or 0 for each of ``ASKED``: what kind of answer a query seems to want."""
    read = query[:_READ_CHARACTERS]
    return tuple(float(bool(pattern.search(read))) for pattern in _ASKED)


_NAME_INSIDE: Final = re.compile(r"\b[A-Z][a-z]+\b|\b[A-Z]{2,}\b")


def name_terms(text: str) -> tuple[str, ...]:
    """Return the terms of capitalised words of a query, the first letter of all not counted."""
    found = _NAME_INSIDE.findall(text[1:_READ_CHARACTERS])
    return tuple(dict.fromkeys(content_terms(" ".join(found))))


class QueryContext(NamedTuple):
    """What is known of the query.

    ``gate`` is the lexical channels' factor, ``terms`` how many informative terms there are,
    ``named`` whether one actor's words are asked for, ``several`` whether several actors are
    named, ``dated`` whether a time is, ``asked`` as ``asked`` says.
    """

    gate: float
    terms: int
    named: bool
    several: bool
    dated: bool
    asked: tuple[float, ...]

    def values(self) -> dict[str, float]:
        """Return the context by feature name."""
        return {
            "q_gate": self.gate,
            "q_terms": math.log1p(self.terms),
            "q_named": float(self.named),
            "q_several": float(self.several),
            "q_dated": float(self.dated),
            **{f"q_{name}": value for name, value in zip(ASKED, self.asked, strict=True)},
        }


@dataclass(frozen=True, slots=True)
class Landscape:
    """What the channels say of every allowed row, rows in sequence order (thread by thread).

    ``channels`` holds one array for each of ``GRADED``; ``fused`` is the score of the hand
    fusion, ``coverage`` the share of the query's idf mass that a row holds, ``thread`` ascends,
    ``speaker`` is any number that tells actors apart.
    """

    channels: Mapping[str, Floats]
    fused: Floats
    coverage: Floats
    thread: Index
    speaker: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates, best first by ``fused``; every array has one entry a candidate.

    ``at`` are their places in the landscape. ``matched`` counts the query's terms in the row,
    ``rarest`` is the largest idf among them as a share of the largest possible, ``around`` the
    share of the query's idf mass that the row and its neighbours hold, ``names`` and
    ``names_around`` the share of its capitalised words that they hold; ``actor`` and ``time``
    are the bonuses' raw values, ``looks`` has a column for each of ``TURN_LOOKS``,
    ``vectors`` one vector a row (zeros for none), and ``sentence`` and ``sentence_2`` are the
    query's similarities to its best two sentences: those to the row itself where it has none.
    """

    at: Index
    matched: Floats
    rarest: Floats
    around: Floats
    names: Floats
    names_around: Floats
    actor: Floats
    time: Floats
    looks: Float32
    vectors: Float32
    sentence: Floats
    sentence_2: Floats


def features(landscape: Landscape, candidates: Candidates, context: QueryContext) -> Float32:
    """Return one row of features a candidate, in the order of ``NAMES``; all are finite."""
    columns = _columns(landscape, candidates, context)
    found = np.empty((len(candidates.at), len(NAMES)), dtype=np.float32)
    for place, name in enumerate(NAMES):
        found[:, place] = columns[name]
    return found


def _columns(landscape: Landscape, candidates: Candidates, context: QueryContext) -> Values:
    at = candidates.at
    scores = {name: standardized(landscape.channels[name], None) for name in GRADED}
    near = {name: scores[name][at] for name in GRADED}
    query = context.values()
    return {
        **{f"z_{name}": near[name] for name in GRADED},
        **_own(landscape, candidates, near, query),
        **_ranks(landscape, candidates, near),
        **_neighbours(landscape, candidates, scores),
        **_products(landscape, candidates, near, query),
        **_threads(landscape, candidates, near),
        **_alike(candidates),
        "sentence": standardized(candidates.sentence, None),
        "sentence_2": standardized(candidates.sentence_2, None),
        **query,
    }


def _own(
    landscape: Landscape, candidates: Candidates, near: Columns, query: Mapping[str, float]
) -> Columns:
    at = candidates.at
    coverage = landscape.coverage[at]
    return {
        "fused": landscape.fused[at] - landscape.fused[at[0]],
        "coverage": coverage,
        "coverage_of_best": coverage / max(float(landscape.coverage.max()), _FLAT),
        "rarest": candidates.rarest,
        "matched": np.log1p(candidates.matched),
        "around": candidates.around,
        "names": candidates.names,
        "names_around": candidates.names_around,
        "below_dense": near["dense_turn"] - near["dense_turn"].max(),
        "actor": candidates.actor,
        "other_actor": query["q_named"] * (1 - candidates.actor),
        "time": candidates.time,
        **{f"p_{name}": candidates.looks[:, n] for n, name in enumerate(TURN_LOOKS)},
    }


def _log_rank(values: Floats) -> Floats:
    """Return ln(1 + how many are greater)."""
    ordered = np.sort(values)
    ranks: Floats = np.log1p(len(values) - np.searchsorted(ordered, values, side="right"))
    return ranks


def _ranks(landscape: Landscape, candidates: Candidates, near: Columns) -> Columns:
    speaker = landscape.speaker[candidates.at]
    same = speaker[:, None] == speaker[None, :]
    dense = near["dense_turn"]
    above = (same & (dense[None, :] > dense[:, None])).sum(axis=1)
    return {
        **{f"rank_{name}": _log_rank(near[name]) for name in GRADED if name != "session"},
        "rank_fused": _log_rank(landscape.fused[candidates.at]),
        "rank_in_actor": np.log1p(above),
    }


def _neighbours(landscape: Landscape, candidates: Candidates, scores: Columns) -> Columns:
    at, last = candidates.at, len(landscape.thread) - 1
    fused = landscape.fused - landscape.fused[at[0]]
    found: dict[str, Floats] = {}
    for side, beside in (("before", np.maximum(at - 1, 0)), ("after", np.minimum(at + 1, last))):
        there = (beside != at) & (landscape.thread[beside] == landscape.thread[at])
        for name, values in (
            ("turn", scores["turn"]),
            ("dense", scores["dense_turn"]),
            ("fused", fused),
            ("coverage", landscape.coverage),
        ):
            found[f"{side}_{name}"] = np.where(there, values[beside], 0.0)
        if side == "before":
            other = landscape.speaker[beside] != landscape.speaker[at]
            found["before_other"] = (there & other).astype(np.float32)
    return found


def _products(
    landscape: Landscape, candidates: Candidates, near: Columns, query: Mapping[str, float]
) -> Columns:
    look = dict(zip(TURN_LOOKS, candidates.looks.T, strict=True))
    actor = candidates.actor
    graded = ("turn", "window", "dense_turn", "dense_window")
    return {
        **{f"actor*{name}": actor * near[name] for name in graded},
        "actor*first_person": actor * look["first_person"],
        **{f"gate*{name}": query["q_gate"] * near[name] for name in ("turn", "window", "session")},
        "gate*coverage": query["q_gate"] * landscape.coverage[candidates.at],
        "when*time_word": query["q_when"] * look["time_word"],
        "when*digit": query["q_when"] * look["digit"],
        "where*capitalised": query["q_where"] * look["capitalised"],
        "who*capitalised": query["q_who"] * look["capitalised"],
        "count*digit": query["q_count"] * look["digit"],
        "list*terms": query["q_list"] * look["terms"],
        "list*capitalised": query["q_list"] * look["capitalised"],
        "yes_no*terms": query["q_yes_no"] * look["terms"],
        "guess*dense": query["q_guess"] * near["dense_turn"],
    }


def _threads(landscape: Landscape, candidates: Candidates, near: Columns) -> Columns:
    """Return what other candidates of the same thread say."""
    thread = landscape.thread[candidates.at]
    same = thread[:, None] == thread[None, :]
    dense = near["dense_turn"]
    fused = landscape.fused[candidates.at]
    others = np.where(same, -dense[None, :], np.inf)
    best = -np.sort(np.partition(others, min(2, len(dense) - 1), axis=1)[:, :3], axis=1)
    real = np.isfinite(best)
    return {
        "thread_count": np.log1p(same[:, :_NEIGHBOURHOOD].sum(axis=1)),
        "thread_rank": np.log1p(np.tril(same, -1).sum(axis=1)),
        "thread_dense": best[:, 0],
        "thread_dense_3": np.where(real, best, 0.0).sum(axis=1) / real.sum(axis=1),
        "thread_fused": np.where(same, fused[None, :], -np.inf).max(axis=1) - fused[0],
    }


def _alike(candidates: Candidates) -> Columns:
    """Return how like a candidate is to those above it, standardised over all such pairs.

    ``einsum`` without a BLAS: the same bits whatever the machine's threads.
    """
    vectors = candidates.vectors
    products = np.einsum("id,jd->ij", vectors, vectors[:_HIGHER], optimize=False)
    pairs = np.tril(np.ones(products.shape, dtype=np.bool_), -1)
    count = max(int(pairs.sum()), 1)
    mean = float(products[pairs].sum(dtype=np.float64)) / count
    deviation = math.sqrt(float(((products[pairs] - mean) ** 2).sum(dtype=np.float64)) / count)
    scaled = np.where(pairs, (products - mean) / max(deviation, _FLAT), 0.0)
    if deviation < _FLAT:
        scaled = np.zeros_like(scaled)
    best = np.where(pairs, scaled, -np.inf).max(axis=1)
    return {
        "alike_best": np.where(np.isfinite(best), best, 0.0),
        "alike_5": scaled[:, :5].mean(axis=1),
        "alike_first": scaled[:, 0],
    }


def _names() -> tuple[str, ...]:
    """Return the features' names in order, from the columns of one row about which all is 0."""
    one, places = np.zeros(1), np.zeros(1, np.intp)
    landscape = Landscape(dict.fromkeys(GRADED, one), one, one, places, np.zeros(1, np.int32))
    candidates = Candidates(
        at=places,
        matched=one,
        rarest=one,
        around=one,
        names=one,
        names_around=one,
        actor=one,
        time=one,
        looks=np.zeros((1, len(TURN_LOOKS)), np.float32),
        vectors=np.zeros((1, 1), np.float32),
        sentence=one,
        sentence_2=one,
    )
    context = QueryContext(0.0, 0, False, False, False, (0.0,) * len(ASKED))
    return tuple(_columns(landscape, candidates, context))


NAMES: Final = _names()
"""The features in order."""
