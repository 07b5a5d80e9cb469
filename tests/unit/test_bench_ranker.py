"""Fitting the ranker: the loss moves gold up, and the same input gives the same bytes."""

import numpy as np

from benchmarks.ranker_fit import Example, Recipe, fit
from evicortex.policy.ranking import written
from evicortex.policy.ranking_features import NAMES

SMALL = Recipe(epochs=20, rate=2e-2, places=(2, 4))
TELLING = NAMES.index("coverage")
NOISE = [NAMES.index(name) for name in ("z_turn", "matched", "p_digit", "alike_best")]


def example(seed: int, *, gold: bool = True) -> Example:
    """Ten candidates; the fused score says nothing, one feature tells the gold one."""
    random = np.random.default_rng(seed)
    features = np.zeros((10, len(NAMES)), dtype=np.float32)
    features[:, NOISE] = random.normal(size=(10, len(NOISE)))
    which = np.zeros(10, dtype=np.bool_)
    which[random.integers(10)] = gold
    features[:, TELLING] = which
    return Example(features, which)


def test_the_gold_candidate_is_moved_up_on_questions_not_seen() -> None:
    ranker = fit([example(seed) for seed in range(60)], SMALL)
    ranks = []
    for seed in range(1_000, 1_040):
        unseen = example(seed)
        scores = ranker.corrections(unseen.features, 1.0)
        ranks.append(int((scores > scores[unseen.gold][0]).sum()))
    assert np.mean(np.array(ranks) == 0) > 0.9


def test_the_same_questions_give_the_same_bytes_and_others_do_not() -> None:
    examples = [example(seed) for seed in range(12)]
    weights = written(fit(examples, SMALL))
    assert written(fit(examples, SMALL)) == weights
    assert written(fit(examples[1:], SMALL)) != weights


def test_questions_without_a_gold_candidate_teach_nothing() -> None:
    examples = [example(seed) for seed in range(12)]
    lost = [example(seed, gold=False) for seed in range(50, 55)]
    assert written(fit([*lost, *examples], SMALL)) == written(fit(examples, SMALL))


def test_questions_of_different_sizes_train_together() -> None:
    short = example(3)
    keep = np.flatnonzero(short.gold)[0]
    rows = [keep, *[row for row in range(10) if row != keep][:2]]
    cut = Example(short.features[rows], short.gold[rows])
    ranker = fit([cut, *(example(seed) for seed in range(12))], SMALL)
    assert np.isfinite(ranker.corrections(cut.features, 1.0)).all()
