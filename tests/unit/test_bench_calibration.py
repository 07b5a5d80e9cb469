"""Calibration of refusal: areas, bins and intervals, and no probability from its own conversation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import calibration
from benchmarks.metrics.calibration import (
    auroc,
    brier,
    calibration_error,
    reliability,
    resampled,
)
from benchmarks.results import Record


def record(conversation, query, answerable, signals, **changes):
    fields = {
        "suite": "s",
        "conversation": conversation,
        "query": query,
        "system": "a",
        "budget": 64,
        "category": "c",
        "answerable": answerable,
        "counted": answerable,
        "status": "ok",
        "error": None,
        "pack_sha256": "",
        "tokens": 1,
        "items": 1,
        "gold": 0,
        "gold_ranks": (),
        "refused": False,
        "probability": None,
        "signals": signals,
    }
    return Record(**(fields | changes))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30))
def test_the_area_is_the_share_of_ordered_pairs(drawn):
    scores = np.array([float(score) for score, _ in drawn])
    labels = np.array([float(label) for _, label in drawn])
    pairs = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for a in scores[labels == 1]
        for b in scores[labels == 0]
    ]
    assert auroc(scores, labels) == pytest.approx(np.mean(pairs) if pairs else 0.5)


def test_bins_hold_as_many_questions_each_and_the_error_is_their_gap():
    labels = np.array([1.0, 0.0] * 50)
    probabilities = np.full(100, 0.8)
    assert [each.count for each in reliability(probabilities, labels)] == [10] * 10
    assert calibration_error(probabilities, labels) == pytest.approx(0.3)
    assert brier(probabilities, labels) == pytest.approx((0.04 + 0.64) / 2)
    assert calibration_error(labels, labels) == brier(labels, labels) == 0.0
    assert len(reliability(np.array([0.5]), np.array([1.0]))) == 1


def test_intervals_by_conversation_are_wider_when_conversations_differ():
    scores = [0.1] * 40 + [0.9] * 40
    labels = [0.0, 1.0] * 40
    clusters = ["a"] * 40 + ["b"] * 40
    by_question = resampled(brier, scores, labels)
    assert by_question == resampled(brier, scores, labels)
    assert by_question.low < by_question.mean < by_question.high
    whole = resampled(lambda x, _: float(x.mean()), scores, labels, clusters)
    narrow = resampled(lambda x, _: float(x.mean()), scores, labels)
    assert whole.high - whole.low > narrow.high - narrow.low


def conversations(signal):
    return [
        record(f"c{place % 4}", f"q{place}", place % 3 != 0, {"x": signal(place, place % 3 != 0)})
        for place in range(240)
    ]


def test_what_tells_is_learned_on_other_conversations_and_what_does_not_is_not():
    noise = np.random.default_rng(0).normal(size=240)
    found = calibration.left_out(conversations(lambda p, y: y + noise[p]), "s", "a", 64)
    assert found.auroc().low > 0.65
    assert found.gain().low > 0
    assert found.calibration_error() < 0.12
    nothing = calibration.left_out(conversations(lambda p, y: noise[p]), "s", "a", 64)
    assert nothing.auroc(by_conversation=True).low < 0.5
    assert nothing.gain().low <= 0


def test_a_conversation_never_teaches_its_own_probabilities():
    """One conversation's labels are turned round: its own probabilities must not move."""
    noise = np.random.default_rng(1).normal(size=240)
    records = conversations(lambda p, y: y + noise[p])
    turned = [
        record(r.conversation, r.query, not r.answerable, r.signals)
        if r.conversation == "c1"
        else r
        for r in records
    ]
    before = calibration.left_out(records, "s", "a", 64)
    after = calibration.left_out(turned, "s", "a", 64)
    mine = [r.conversation == "c1" for r in before.records]
    same = np.isclose(before.probabilities, after.probabilities)
    assert same[mine].all()
    assert not same[~np.array(mine)].any()


def test_without_signals_or_without_both_kinds_there_is_nothing_to_fit():
    assert calibration.left_out([record("a", "q", True, {})], "s", "a", 64) is None
    alike = [record(c, q, True, {"x": 1.0}) for c in "ab" for q in "xy"]
    assert calibration.left_out(alike, "s", "a", 64) is None
    alone = [record("a", q, q == "x", {"x": 1.0}) for q in "xy"]
    assert calibration.left_out(alone, "s", "a", 64) is None


def test_a_systems_own_probabilities_count_when_it_gave_all():
    given_ = [record("a", q, q == "x", {}, probability=0.7) for q in "xy"]
    found = calibration.own(given_, "s", "a", 64)
    assert (found.how, found.probabilities, found.labels) == ("own", (0.7, 0.7), [1.0, 0.0])
    assert calibration.own([*given_, record("a", "z", True, {})], "s", "a", 64) is None
    assert calibration.own([], "s", "a", 64) is None


def test_unanswered_answerable_questions_without_gold_are_left_out():
    records = [
        record("a", "x", True, {}, counted=False),
        record("a", "y", True, {}),
        record("a", "z", False, {}),
    ]
    assert [r.query for r in calibration.questions(records, "s", "a", 64)] == ["y", "z"]
