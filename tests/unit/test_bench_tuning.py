"""Tuning: as many trials for one as for the other, chosen without the conversation reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import tuning
from benchmarks.config import ConfigError, load
from benchmarks.datasets.synthetic_stream import Shape, conversations
from benchmarks.encoders import WindowedHashing, make_counter
from benchmarks.systems.catalog import Bench
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.hybrid import HybridConfig
from benchmarks.tuning import EVICORTEX_SPACE, HYBRID_SPACE, Plan, Trial, choose, draw, tune

ROOT = Path(__file__).parents[2]
TRIALS = ROOT / "benchmarks" / "reports" / "tuning.jsonl"


def trial(number, means, questions=None, system="a"):
    return Trial(system, number, {}, means, questions or dict.fromkeys(means, 10), 0.0)


def test_the_left_out_conversation_never_helps_to_choose():
    trials = [trial(0, {"x": 1.0, "y": 0.2, "z": 0.2}), trial(1, {"x": 0.0, "y": 0.3, "z": 0.3})]
    found = choose(trials)
    assert found.best.number == 0
    assert found.default == pytest.approx(1.4 / 3)
    assert found.left_out == pytest.approx((0.0 + 0.2 + 0.2) / 3)


def test_questions_weigh_conversations_and_ties_go_to_the_earlier_trial():
    heavy = trial(0, {"x": 1.0, "y": 0.0}, {"x": 30, "y": 10})
    assert heavy.mean() == 0.75
    assert heavy.mean(without="x") == 0.0
    assert choose([heavy, trial(1, heavy.means, heavy.questions)]).best.number == 0


@pytest.mark.parametrize("space", [HYBRID_SPACE, EVICORTEX_SPACE])
def test_drawn_trials_differ_and_begin_with_the_default(space):
    drawn = draw(space, 12, seed=3)
    assert drawn[0] == {}
    assert len({tuple(sorted(each.items())) for each in drawn}) == 12
    assert drawn == draw(space, 12, seed=3)
    assert drawn[1] != draw(space, 12, seed=4)[1]


def test_every_tuned_name_is_a_setting():
    assert set(HYBRID_SPACE) <= set(HybridConfig().record())
    for changes in draw(EVICORTEX_SPACE, 4, seed=0):
        assert tuning.weighted(**changes)


def test_both_are_tuned_equally_often_and_a_stopped_tuning_goes_on(tmp_path):
    data = list(conversations(Shape(seed=0, namespaces=2, turns=40, questions=6)))
    encoder = SharedEncoder(WindowedHashing())
    bench = Bench(make_counter(), encoder)
    both = ("hybrid chunks", "evicortex")
    path = tmp_path / "trials.jsonl"
    said = []
    plan = Plan(data, (60,), 3, 0, path, said.append)
    found = tune(plan, bench, both)
    assert [each.trials for each in found] == [3, 3]
    trials = tuning.read_trials(path)
    assert tuning.check_equal(trials) == 3
    assert len(said) == 6
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:4]), encoding="utf-8")
    said.clear()
    again = tune(plan, bench, both)
    assert len(said) == 2
    assert [each.best.means for each in again] == [each.best.means for each in found]
    assert [(t.number, t.shipped) for t in trials[:3]] == [(0, True), (1, False), (2, False)]
    with pytest.raises(ConfigError, match="trials of another plan"):
        tune(replace(plan, every=2), bench, both)


def test_unequal_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="unequal tuning"):
        tuning.check_equal(
            [trial(0, {"x": 1.0}), trial(0, {"x": 1.0}, system="b")] * 1 + [trial(1, {"x": 1.0})]
        )
    with pytest.raises(ValueError, match="unequal tuning"):
        tuning.check_equal([trial(0, {"x": 1.0})])
    other = replace(trial(0, {"x": 1.0}, system="b"), plan={"every": 2})
    with pytest.raises(ValueError, match="different plans"):
        tuning.check_equal([trial(0, {"x": 1.0}), other])
    assert tuning.read_trials(tmp_path / "absent.jsonl") == []


CONFIGS = sorted((ROOT / "benchmarks" / "configs").glob("*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_configuration_runs_the_comparator_as_it_was_tuned(path):
    config = load(path)
    mine = [t for t in tuning.read_trials(TRIALS) if t.system == tuning.HYBRID]
    tuned = replace(HybridConfig(), **choose(mine).best.config)
    uses_it = any("hybrid" in name or "chunks" in name for name in config.systems)
    if uses_it and not config.name.startswith("tune"):
        assert config.hybrid == tuned
    assert config.split == "dev"
