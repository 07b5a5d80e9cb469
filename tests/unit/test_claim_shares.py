"""From cosines and words to the share of a question that a claim answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.errors import InputError
from evicortex.policy.claim_shares import (
    ClaimSimilarity,
    about_somebody_else,
    combined,
    similar,
)

SHARES = st.floats(0, 1)


def found(cosines, policy=None):
    numbers = np.arange(1, len(cosines) + 1, dtype=np.int64)
    return list(similar(numbers, np.array(cosines, dtype=np.float32), policy or ClaimSimilarity()))


def test_the_most_similar_come_first_and_the_rest_say_nothing():
    policy = ClaimSimilarity(floor=0.25, over=0.5)
    assert found([0.1, 0.5, 0.9, 0.25, -1.0, 0.5], policy) == [(3, 1.0), (2, 0.5), (6, 0.5)]
    assert found([]) == []


@given(st.lists(st.floats(-1, 1, width=32), max_size=20))
def test_shares_lie_above_0_and_never_above_1(cosines):
    shares = [share for _, share in found(cosines)]
    assert all(0 < share <= 1 for share in shares)
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == sum(cosine > np.float32(0.25) for cosine in cosines)


@given(SHARES, SHARES, SHARES)
def test_a_second_sign_never_takes_away(words, similarity, more):
    share = combined(words, similarity)
    assert max(words, similarity) - 1e-12 <= share <= 1
    assert combined(words, 0.0) == pytest.approx(words)
    assert combined(words, max(similarity, more)) >= share - 1e-12


@pytest.mark.parametrize(
    ("subject", "asked", "expected"),
    [
        ("bob", {"alice"}, True),
        ("alice", {"alice"}, False),
        ("the printer", {"alice"}, False),
        ("bob", set(), False),
    ],
)
def test_whom_a_claim_is_about(subject, asked, expected):
    assert about_somebody_else(subject, asked, {"alice", "bob"}) is expected


@pytest.mark.parametrize(
    "fields", [{"floor": 2.0}, {"floor": -1.5}, {"over": 0.0}, {"over": 3.0}, {"candidates": -1}]
)
def test_settings_that_make_no_sense_are_refused(fields):
    with pytest.raises(InputError):
        ClaimSimilarity(**fields)
