"""Features of the learned ranker, each against what it is said to be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.policy.ranking_features import (
    ASKED,
    GRADED,
    NAMES,
    TURN_LOOKS,
    Candidates,
    Landscape,
    QueryContext,
    asked,
    features,
    name_terms,
    turn_looks,
)

ZERO = QueryContext(0.0, 0, False, False, False, (0.0,) * len(ASKED))


def landscape(fused, *, thread=None, speaker=None, **channels):
    count = len(fused)
    flat = np.zeros(count, np.float32)
    return Landscape(
        channels={name: np.array(channels.get(name, flat), np.float32) for name in GRADED},
        fused=np.array(fused, np.float64),
        coverage=np.array(channels.get("coverage", flat), np.float32),
        thread=np.array(thread if thread is not None else [0] * count, np.intp),
        speaker=np.array(speaker if speaker is not None else [1] * count, np.int32),
    )


def candidates(at, **given):
    count = len(at)
    one = {
        name: np.array(given.get(name, [0.0] * count), np.float64)
        for name in (
            "matched",
            "rarest",
            "around",
            "names",
            "names_around",
            "actor",
            "time",
            "sentence",
            "sentence_2",
        )
    }
    return Candidates(
        at=np.array(at, np.intp),
        **one,
        looks=np.array(given.get("looks", np.zeros((count, len(TURN_LOOKS)))), np.float32),
        vectors=np.array(given.get("vectors", np.zeros((count, 2))), np.float32),
    )


def columns(scene, chosen, context=ZERO):
    found = features(scene, chosen, context)
    assert found.shape == (len(chosen.at), len(NAMES))
    assert found.dtype == np.float32
    return {name: found[:, n].tolist() for n, name in enumerate(NAMES)}


def test_names_are_distinct_and_none_betrays_a_data_set() -> None:
    assert len(set(NAMES)) == len(NAMES) == 82
    assert not [name for name in NAMES if "position" in name or "image" in name or "mark" in name]


def test_graded_channels_are_standardised_over_all_rows_not_over_candidates() -> None:
    scene = landscape([3.0, 2.0, 1.0], turn=[1, 2, 3])
    found = columns(scene, candidates([0, 1]))
    assert found["z_turn"] == pytest.approx([-math.sqrt(1.5), 0.0])
    assert found["fused"] == [0.0, -1.0]


def test_sentences_are_standardised_over_candidates() -> None:
    scene = landscape([3.0, 2.0, 1.0])
    found = columns(scene, candidates([0, 1], sentence=[0.9, 0.5], sentence_2=[0.2, 0.2]))
    assert found["sentence"] == pytest.approx([1.0, -1.0])
    assert found["sentence_2"] == [0.0, 0.0]


def test_a_rank_counts_greater_values_among_candidates_and_ties_share_it() -> None:
    scene = landscape([9, 8, 7, 6], dense_turn=[1, 5, 5, 0])
    found = columns(scene, candidates([0, 1, 2, 3]))
    assert found["rank_dense_turn"] == pytest.approx(np.log1p([2, 0, 0, 3]))
    assert found["rank_fused"] == pytest.approx(np.log1p([0, 1, 2, 3]))


def test_the_rank_within_an_actors_turns() -> None:
    scene = landscape([9, 8, 7, 6], dense_turn=[1, 5, 4, 3], speaker=[1, 2, 1, 2])
    found = columns(scene, candidates([0, 1, 2, 3]))
    assert found["rank_in_actor"] == pytest.approx(np.log1p([1, 0, 0, 1]))


def test_neighbours_are_those_of_the_same_thread() -> None:
    scene = landscape(
        [4, 3, 2, 1],
        coverage=[0.1, 0.2, 0.3, 0.4],
        thread=[0, 0, 1, 1],
        speaker=[1, 2, 1, 1],
    )
    found = columns(scene, candidates([0, 1, 2, 3]))
    assert found["before_coverage"] == pytest.approx([0, 0.1, 0, 0.3])
    assert found["after_coverage"] == pytest.approx([0.2, 0, 0.4, 0])
    assert found["before_other"] == [0, 1, 0, 0]
    assert found["after_fused"] == [-1, 0, -3, 0]


def test_what_other_candidates_of_the_thread_say() -> None:
    scene = landscape([4, 3, 2, 1], dense_turn=[0, 1, 2, 5], thread=[0, 0, 0, 1])
    found = columns(scene, candidates([0, 1, 2, 3]))
    dense = found["z_dense_turn"]
    assert found["thread_count"] == pytest.approx(np.log1p([3, 3, 3, 1]))
    assert found["thread_rank"] == pytest.approx(np.log1p([0, 1, 2, 0]))
    assert found["thread_dense"] == pytest.approx([dense[2]] * 3 + [dense[3]])
    assert found["thread_dense_3"] == pytest.approx([sum(dense[:3]) / 3] * 3 + [dense[3]], abs=1e-6)
    assert found["thread_fused"] == [0, 0, 0, -3]


def test_likeness_counts_candidates_above_and_has_no_scale() -> None:
    scene = landscape([3, 2, 1])
    vectors = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    found = columns(scene, candidates([0, 1, 2], vectors=vectors))
    larger = columns(scene, candidates([0, 1, 2], vectors=10 * vectors))
    assert found["alike_best"][0] == 0
    assert found["alike_best"][1] > 0 > found["alike_best"][2]
    assert found["alike_first"][1] > found["alike_first"][2]
    for name in ("alike_best", "alike_5", "alike_first"):
        assert larger[name] == pytest.approx(found[name])
    same = columns(scene, candidates([0, 1, 2], vectors=np.ones((3, 2))))
    assert same["alike_best"] == [0, 0, 0]


def test_products_are_off_unless_the_query_asks() -> None:
    looks = np.zeros((1, len(TURN_LOOKS)))
    looks[0, TURN_LOOKS.index("digit")] = 1
    chosen = candidates([0], looks=looks, actor=[1.0])
    counting = ZERO._replace(asked=tuple(float(name == "count") for name in ASKED), named=True)
    assert columns(landscape([1.0]), chosen)["count*digit"] == [0]
    assert columns(landscape([1.0]), chosen, counting)["count*digit"] == [1]
    assert columns(landscape([1.0]), chosen, counting)["other_actor"] == [0]
    assert columns(landscape([1.0]), candidates([0]), counting)["other_actor"] == [1]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("When did she move?", {"when"}),
        ("What year did she move?", {"when"}),
        ("Where does he live?", {"where"}),
        ("Which city did they visit?", {"where"}),
        ("Who came?", {"who"}),
        ("How many dogs has he?", {"count", "list"}),
        ("What books did she read?", {"list"}),
        ("Did they meet?", {"yes_no"}),
        ("Why did they leave?", {"why"}),
        ("Would she like it?", {"yes_no", "guess"}),
        ("", set()),
    ],
)
def test_what_a_query_asks_for(query, wanted) -> None:
    found = dict(zip(ASKED, asked(query), strict=True))
    assert {name for name, value in found.items() if value} == wanted


def test_what_a_turn_looks_like() -> None:
    found = dict(
        zip(TURN_LOOKS, turn_looks('I saw "Dune" in Paris on June 3. Great!'), strict=True)
    )
    assert found["sentences"] == pytest.approx(math.log1p(2))
    assert [found[name] for name in ("digit", "quote", "time_word", "first_person")] == [1, 1, 1, 1]
    assert found["second_person"] == 0
    assert turn_looks("") == (0.0,) * len(TURN_LOOKS)
    assert turn_looks("word " * 100_000) == turn_looks("word " * 800)


def test_capitalised_words_inside_a_query_are_names() -> None:
    assert name_terms("Did Quito meet NATO in Oslo?") == ("quito", "nato", "oslo")
    assert name_terms("Oslo?") == ()


@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_any_scores_give_finite_features_without_a_trace_of_the_order_of_ties(count, seed) -> None:
    random = np.random.default_rng(seed)
    scene = landscape(
        random.normal(size=count),
        thread=np.sort(random.integers(0, 4, count)),
        speaker=random.integers(0, 3, count),
        coverage=random.random(count),
        **{name: random.integers(0, 3, count) for name in GRADED},
    )
    at = np.argsort(-scene.fused, kind="stable")[:20]
    chosen = candidates(at, vectors=random.normal(size=(len(at), 3)))
    found = features(scene, chosen, ZERO)
    assert np.isfinite(found).all()
    assert found.tobytes() == features(scene, chosen, ZERO).tobytes()
