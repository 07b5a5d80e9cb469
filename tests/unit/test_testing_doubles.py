from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from evicortex.protocols import (
    Clock,
    Embedder,
    EvidenceContext,
    RerankCandidate,
    Reranker,
    TokenCounter,
)
from evicortex.testing import (
    DeterministicEmbedder,
    FixedClock,
    OverlapReranker,
    RaisingEmbedder,
    SymmetricEmbedder,
    WordCounter,
)
from evicortex.testing.extractors import claim_first_words
from evicortex.types import Authority


def test_the_clock_stands_still_until_it_is_moved():
    clock = FixedClock()
    assert clock.now() == clock.now() == datetime(2026, 1, 1, tzinfo=UTC)
    assert clock.advance() == datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert clock.advance(timedelta(days=1)) == clock.now()
    clock.set(datetime(2025, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now() == datetime(2025, 5, 1, 10, tzinfo=UTC)
    assert clock.now().tzinfo is UTC


def test_the_clock_refuses_naive_times():
    with pytest.raises(ValueError, match="no time zone"):
        FixedClock(datetime(2026, 1, 1))  # noqa: DTZ001 - the naive datetime is the point
    with pytest.raises(ValueError, match="no time zone"):
        FixedClock().set(datetime(2026, 1, 1))  # noqa: DTZ001


def test_doubles_are_what_they_stand_for():
    assert isinstance(FixedClock(), Clock)
    assert isinstance(DeterministicEmbedder(), Embedder)
    assert isinstance(SymmetricEmbedder(), Embedder)
    assert isinstance(OverlapReranker(), Reranker)
    assert isinstance(WordCounter(), TokenCounter)


def test_vectors_depend_on_text_and_revision():
    first = DeterministicEmbedder().embed(["a", "b", "a"])
    assert np.array_equal(first[0], first[2])
    assert first[0] @ first[1] < 0.9
    other = DeterministicEmbedder(revision="2").embed(["a"])
    assert first[0] @ other[0] < 0.9


def test_vectors_can_be_given():
    embedder = DeterministicEmbedder(2, vectors={"east": [3, 0], "north": [0, 5]})
    assert embedder.embed(["north", "east"]).tolist() == [[0, 1], [1, 0]]
    assert embedder.calls == [(("north", "east"), "document")]


def test_failures_can_pass():
    embedder = RaisingEmbedder(OSError("gone"), failures=2)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            embedder.embed(["a"])
    assert embedder.embed(["a"]).shape == (1, 16)


def test_overlap_scores_the_share_of_the_querys_words():
    scores = OverlapReranker().rerank("red apple", [RerankCandidate("ev_1", "A red car")])
    assert scores == {"ev_1": 0.5}
    assert OverlapReranker().rerank("", [RerankCandidate("ev_1", "x")]) == {"ev_1": 0.0}


def context_of(text):
    return EvidenceContext("ev_1", text, "0" * 64, None, None, Authority.USER, None)


def test_the_default_script_claims_words_on_their_spans():
    result = claim_first_words(context_of("a  a b"))
    assert [tuple(claim.span) for claim in result.claims] == [(0, 1), (3, 4)]
    assert claim_first_words(context_of("one")).abstained
