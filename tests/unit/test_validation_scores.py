from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.errors import InputError, ProviderContractError, ProviderUnavailableError
from evicortex.protocols import Candidate, RerankCandidate
from evicortex.testing import RERANKER_LIES, LyingReranker, OverlapReranker, WordCounter
from evicortex.validation import (
    MAX_RERANK,
    CheckedCandidateIndex,
    CheckedReranker,
    CheckedTokenCounter,
)


def candidates(count):
    return [RerankCandidate(f"ev_{number}", f"text {number}") for number in range(count)]


def test_reranker_scores_come_back_as_floats():
    checked = CheckedReranker(OverlapReranker())
    assert checked.identity == "testing/overlap"
    assert checked.rerank("text 1", candidates(3)) == {"ev_0": 0.5, "ev_1": 1.0, "ev_2": 0.5}


@pytest.mark.parametrize("lie", RERANKER_LIES)
def test_every_lie_of_a_reranker_is_found(lie):
    with pytest.raises(ProviderContractError, match="testing/lying-reranker"):
        CheckedReranker(LyingReranker(lie)).rerank("text", candidates(3))


def test_reranker_may_keep_silent_about_some():
    class Choosy(OverlapReranker):
        def rerank(self, query, candidates):
            return {candidates[-1].evidence_id: np.float32(0.5)}

    scores = CheckedReranker(Choosy()).rerank("text", candidates(3))
    assert scores == {"ev_2": 0.5}
    assert type(scores["ev_2"]) is float


def test_nothing_to_rerank_asks_nobody():
    assert CheckedReranker(LyingReranker("list")).rerank("text", []) == {}


def test_reranking_is_bounded():
    checked = CheckedReranker(OverlapReranker(), timeout_seconds=60)
    assert len(checked.rerank("text", candidates(MAX_RERANK))) == MAX_RERANK
    with pytest.raises(InputError, match="at most 16"):
        checked.rerank("text", candidates(MAX_RERANK + 1))
    with pytest.raises(InputError, match="twice"):
        checked.rerank("text", candidates(1) * 2)


def test_a_failing_reranker_is_unavailable():
    class Failing(OverlapReranker):
        def rerank(self, query, candidates):
            raise RuntimeError("out of memory")

    with pytest.raises(ProviderUnavailableError, match="out of memory"):
        CheckedReranker(Failing()).rerank("text", candidates(1))


class Index:
    identity = "testing/index"
    exact = True

    def __init__(self, answer=()):
        self.answer = answer

    def search(self, query, limit, rows):
        return self.answer


QUERY = np.ones(4, dtype=np.float32)


def test_index_rows_come_back_ranked():
    answer = [Candidate(3, 0.9), Candidate(1, 0.5), Candidate(2, 0.5)]
    checked = CheckedCandidateIndex(Index(answer))
    assert checked.search(QUERY, 3, np.array([1, 2, 3])) == tuple(answer)
    assert checked.search(QUERY, 5, None) == tuple(answer)
    assert (checked.identity, checked.exact) == ("testing/index", True)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([Candidate(0, 1.0)] * 4, "4 rows for a limit of 3"),
        ([Candidate(1, 1.0), Candidate(1, 0.5)], "a row twice"),
        ([Candidate(7, 1.0)], "outside the filter"),
        ([Candidate(1, 0.5), Candidate(2, 0.9)], "best first"),
        ([Candidate(2, 0.5), Candidate(1, 0.5)], "ties by row"),
        ([Candidate(1, float("nan"))], "must be finite"),
        ([Candidate(-1, 1.0)], "at least 0"),
        ([Candidate(1.0, 1.0)], "at least 0"),
        ([Candidate(True, 1.0)], "at least 0"),
        ([(1, 1.0)], "tuple, not Candidate"),
    ],
)
def test_every_lie_of_an_index_is_found(answer, problem):
    with pytest.raises(ProviderContractError, match=problem):
        CheckedCandidateIndex(Index(answer)).search(QUERY, 3, np.array([0, 1, 2]))


def test_an_index_that_gives_nothing_to_read_is_named():
    with pytest.raises(ProviderUnavailableError, match=r"candidate index testing/index.*TypeError"):
        CheckedCandidateIndex(Index(None)).search(QUERY, 3, None)


def test_index_says_whether_it_is_exact():
    index = Index()
    index.exact = "yes"
    with pytest.raises(ProviderContractError, match="exact must be a bool"):
        CheckedCandidateIndex(index)


@given(st.text())
def test_counts_come_back_as_they_are(text):
    assert CheckedTokenCounter(WordCounter()).count(text) == len(text.split())


class Counter:
    identity = "testing/counter"
    exact = True

    def __init__(self, answer=lambda text: len(text)):
        self.answer = answer

    def count(self, text):
        return self.answer(text)


@pytest.mark.parametrize("value", [-1, 2.0, True, None, "2", np.int64(2)])
def test_counts_are_whole_numbers(value):
    checked = CheckedTokenCounter(Counter(lambda text: value if text else 0))
    assert (checked.identity, checked.exact) == ("testing/counter", True)
    with pytest.raises(ProviderContractError, match="at least 0"):
        checked.count("two words")


def test_the_empty_text_counts_nothing():
    with pytest.raises(ProviderContractError, match="must count 0, not 2"):
        CheckedTokenCounter(Counter(lambda text: len(text) + 2))


@pytest.mark.parametrize("value", [1, None, "exact"])
def test_a_counter_says_whether_it_is_exact(value):
    counter = Counter()
    counter.exact = value
    with pytest.raises(ProviderContractError, match="exact must be a bool"):
        CheckedTokenCounter(counter)


@pytest.mark.parametrize("value", ["", "  ", None, 3])
def test_a_counter_has_an_identity(value):
    counter = Counter()
    counter.identity = value
    with pytest.raises(ProviderContractError, match="identity must be a non-empty string"):
        CheckedTokenCounter(counter)


def test_a_failing_counter_is_unavailable():
    def fail(text):
        raise KeyError(text)

    with pytest.raises(ProviderUnavailableError, match="KeyError"):
        CheckedTokenCounter(Counter(fail))
