from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from evicortex.errors import InputError
from evicortex.policy.fusion import (
    FusionWeights,
    best,
    channel_scores,
    fuse,
    gate,
    reciprocal_ranks,
    standardized,
    time_proximity,
)
from evicortex.types import ChannelScore

DAY = 86_400_000_000
WEIGHTS = FusionWeights().lexical
ROWS = npst.arrays(
    np.float32, st.integers(0, 30), elements=st.floats(0, 1e6, width=32, allow_subnormal=False)
)


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_standardized_scores_have_mean_0_and_deviation_1_over_the_allowed_rows() -> None:
    mask = np.array([True, True, True, False])
    scores = standardized(array(1, 2, 3, 1000), mask)
    assert scores[:3].mean() == pytest.approx(0)
    assert scores[:3].std() == pytest.approx(1)
    assert scores[3] == 0
    assert standardized(array(1, 3), None).tolist() == [-1.0, 1.0]


def test_a_channel_that_says_the_same_of_all_says_nothing() -> None:
    assert standardized(array(7, 7, 7), None).tolist() == [0, 0, 0]
    assert standardized(array(1, 2), np.array([False, False])).tolist() == [0, 0]
    assert standardized(array(), None).tolist() == []


def test_bonuses_are_added_as_they_are_and_zero_weights_are_off() -> None:
    weights = replace(WEIGHTS, turn=1.0, window=0.0, actor=5.0)
    channels = {"turn": array(1, 3), "window": array(9, 0), "actor": array(1, 0)}
    assert fuse(channels, None, weights).tolist() == [4.0, 1.0]
    assert fuse(channels, None, weights, lexical_factor=0.0).tolist() == [5.0, 0.0]


def test_rows_that_are_not_allowed_leave_no_trace() -> None:
    mask = np.array([True, False, True])
    fused = fuse({"turn": array(1, 1e6, 3)}, mask, WEIGHTS)
    assert fused[1] == -np.inf
    assert fused[[0, 2]].tolist() == fuse({"turn": array(1, 3)}, None, WEIGHTS).tolist()


@pytest.mark.parametrize(
    "channels", [{"turns": array(1)}, {"turn": array(1), "window": array(1, 2)}, {}]
)
def test_unknown_or_uneven_channels_are_refused(channels: dict[str, np.ndarray]) -> None:
    with pytest.raises(InputError, match="channels"):
        fuse(channels, None, WEIGHTS)


@given(ROWS, st.data())
def test_fused_scores_are_finite_for_allowed_rows_and_ranked_with_ties_by_row(
    values: np.ndarray, data: st.DataObject
) -> None:
    mask = data.draw(npst.arrays(np.bool_, len(values)))
    channels = {"turn": values, "dense_turn": -values, "time": values / 1e6}
    scores = fuse(channels, mask, FusionWeights().hybrid)
    assert np.isfinite(scores[mask]).all()
    for limit in (0, 1, 3, 1000):
        rows = best(scores, limit).tolist()
        expected = sorted(np.flatnonzero(mask).tolist(), key=lambda row: (-scores[row], row))
        assert rows == expected[:limit]


def test_the_gate_opens_with_coverage() -> None:
    weights = FusionWeights(gate_from=0.2, gate_over=0.4)
    assert [gate(c, weights) for c in (0.0, 0.2, 0.6, 1.0)] == pytest.approx([0, 0, 1, 1])
    assert gate(0.4, weights) == pytest.approx(0.5)


def test_every_hit_carries_its_channels_with_shared_ranks() -> None:
    channels = {"turn": array(0, 2, 2, 5), "dense_turn": array(0, -1, 0.5, 0)}
    first, second, third = channel_scores(channels, None, np.array([0, 1, 3]))
    assert first == {"dense_turn": ChannelScore(2, 0.0)}
    assert second == {"turn": ChannelScore(2, 2.0), "dense_turn": ChannelScore(4, -1.0)}
    assert third["turn"] == ChannelScore(1, 5.0)
    masked = channel_scores(channels, np.array([True, True, True, False]), np.array([1]))
    assert masked[0]["turn"].rank == 1


def test_time_proximity_decays_by_days_on_both_sides() -> None:
    rows = np.array([0, 9.5 * DAY, 10 * DAY, 11 * DAY - 1, 11 * DAY, 18 * DAY], dtype=np.int64)
    found = time_proximity(rows, [(10 * DAY, 11 * DAY)], after=7.0, before=3.0)
    expected = [np.exp(-10 / 3), np.exp(-1 / 3), 1.0, 1.0, np.exp(-1 / 7), np.exp(-8 / 7)]
    assert found == pytest.approx(expected)


def test_the_nearest_of_several_times_counts() -> None:
    rows = np.array([0, 50 * DAY], dtype=np.int64)
    near = time_proximity(rows, [(0, DAY), (50 * DAY, 51 * DAY)], after=1.0, before=1.0)
    assert near.tolist() == [1.0, 1.0]
    assert time_proximity(rows, [], after=1.0, before=1.0).tolist() == [0.0, 0.0]


def test_reciprocal_ranks_are_summed() -> None:
    assert reciprocal_ranks([[3, 1], [1]], k=60) == {3: 1 / 61, 1: 1 / 62 + 1 / 61}


@pytest.mark.parametrize(
    "wrong", [{"time_after": 0.0}, {"time_before": -1.0}, {"turn": float("nan")}]
)
def test_impossible_weights_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="weights"):
        replace(WEIGHTS, **wrong)


@pytest.mark.parametrize("wrong", [{"gate_from": -0.1}, {"gate_from": 1.1}, {"gate_over": 0.0}])
def test_impossible_gates_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="gate"):
        FusionWeights(**wrong)


def test_a_ranker_without_candidates_is_refused() -> None:
    with pytest.raises(InputError, match="ranker_candidates"):
        FusionWeights(ranker_candidates=0)
