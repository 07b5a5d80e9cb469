"""Measures after packing, the standard ones against ir-measures, and intervals."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, R, nDCG

from benchmarks.metrics.intervals import bootstrap, paired
from benchmarks.metrics.retrieval import (
    all_evidence,
    any_evidence,
    average_precision,
    ndcg_at,
    recall_at,
    reciprocal_rank,
    strict_evidence,
)

TURNS = [f"t{number}" for number in range(12)]


def reference(measure, gold, ranking):
    qrels = [ir_measures.Qrel("q", turn, 1) for turn in gold]
    run = [ir_measures.ScoredDoc("q", turn, -float(i)) for i, turn in enumerate(ranking)]
    return ir_measures.calc_aggregate([measure], qrels, run)[measure]


@settings(max_examples=60, deadline=None)
@given(
    gold=st.sets(st.sampled_from(TURNS), min_size=1),
    ranking=st.permutations(TURNS),
    length=st.integers(1, 12),
    k=st.integers(1, 15),
)
def test_standard_measures_equal_ir_measures(gold, ranking, length, k):
    cut = ranking[:length]
    assert recall_at(gold, cut, k) == pytest.approx(reference(R @ k, gold, cut))
    assert ndcg_at(gold, cut, k) == pytest.approx(reference(nDCG @ k, gold, cut))
    assert reciprocal_rank(gold, cut) == pytest.approx(reference(RR, gold, cut))
    assert average_precision(gold, cut) == pytest.approx(reference(AP, gold, cut))


def test_without_gold_or_without_hits_the_measures_are_zero():
    for measure in (reciprocal_rank, average_precision):
        assert measure((), ["a"]) == measure(("b",), ["a"]) == measure(("b",), []) == 0.0
    assert recall_at((), ["a"], 1) == ndcg_at((), ["a"], 1) == 0.0


def test_all_evidence_needs_every_gold_turn():
    assert all_evidence(("a", "b"), ["b", "a", "c"]) == 1.0
    assert all_evidence(("a", "b"), ["a"]) == 0.0
    assert any_evidence(("a", "b"), ["a"]) == 1.0
    assert any_evidence(("a", "b"), ["c"]) == 0.0


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ({"a": "I moved to Lisbon"}, 1.0),
        ({"a": "I moved"}, 0.0),
        ({"b": "I moved to Lisbon"}, 0.0),
    ],
)
def test_strict_evidence_looks_for_the_answers_words(shown, value):
    full = {"a": "I moved to Lisbon", "b": "x"}
    assert strict_evidence(("a",), shown, full, "Lisbon, 2023") == value


def test_an_interval_covers_the_mean_and_narrows_with_the_sample():
    few = bootstrap([0.0, 1.0] * 10)
    many = bootstrap([0.0, 1.0] * 1000)
    assert few.low < few.mean == 0.5 < few.high
    assert many.high - many.low < few.high - few.low
    assert (few.n, many.n) == (20, 2000)


def test_clusters_are_resampled_whole():
    values = [0.0] * 50 + [1.0] * 50
    alone = bootstrap(values)
    together = bootstrap(values, clusters=["a"] * 50 + ["b"] * 50)
    assert (together.low, together.high) == (0.0, 1.0)
    assert alone.high - alone.low < 0.3


def test_coverage_of_the_bootstrap_on_known_data():
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(200):
        found = bootstrap(list(random.normal(3.0, 1.0, 40)), resamples=400)
        covered += found.low <= 3.0 <= found.high
    assert 180 <= covered <= 199


def test_paired_differences_need_the_same_questions():
    same = paired([1.0, 0.0], [1.0, 0.0])
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="same questions"):
        paired([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="at least one"):
        bootstrap([])
