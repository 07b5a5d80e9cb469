import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.policy.exclusion import find_exclusions, rejects
from evicortex.policy.names import Names
from evicortex.policy.query import analyze
from evicortex.text import content_terms

NOW = datetime(2026, 3, 9, tzinfo=UTC)
WORDS = st.sampled_from(
    "Will will May may Caroline Caroline's O'Brien 李雷 not no without but except other than "
    "besides Paris and or , . ? ! ( \" that isn't which I you said the a an in of on week last "
    "2023 8 \x00 \ud800 🦊 e\u0301 \u200d ' ’ - : never can't".split(" ")
)
TEXTS = st.one_of(st.text(max_size=300), st.lists(WORDS, max_size=40).map(" ".join))
NAMES = st.lists(st.one_of(st.text(max_size=12), WORDS), max_size=6)


@given(TEXTS, NAMES, st.one_of(st.none(), st.text(max_size=5)))
def test_any_string_is_a_query(query: str, actors: list[str], asker: str | None) -> None:
    found = analyze(query, now=NOW, actors=actors, query_actor=asker, rare=lambda _: True)
    assert found.query == query
    assert set(found.actors) <= set(actors)
    assert found.actor is None or found.actor in actors
    assert (found.literal is None) == bool(found.terms)
    assert len(set(found.terms)) == len(found.terms)
    assert set(found.terms) <= set(content_terms(query)) | set(content_terms(found.text))
    for span in [
        *(each.span for each in found.mentions),
        *(each.span for each in found.exclusions),
        *(each.span for each in found.times),
    ]:
        assert 0 <= span.start < span.end <= len(query)


@given(TEXTS, NAMES)
def test_mentions_are_exact_and_apart(text: str, actors: list[str]) -> None:
    end = 0
    for mention in Names(actors).find(text):
        assert mention.span.start >= end
        assert mention.text in text[mention.span.start : mention.span.end]
        end = mention.span.end


@given(st.sampled_from(["Paris", "New York", "accessory", "李雷", "C++"]), TEXTS)
def test_an_affirmed_mention_is_always_rejected(phrase: str, text: str) -> None:
    found = find_exclusions(f"which one, other than {phrase}?")
    for exclusion in found:
        assert rejects(exclusion, f"{text}\n\nWe like {phrase} very much.")
        assert not rejects(exclusion, "Something else altogether.")


@given(TEXTS, TEXTS)
def test_rejection_takes_any_text(query: str, text: str) -> None:
    for exclusion in find_exclusions(query):
        rejects(exclusion, text)


UNITS = (
    "not |other than |not a x, |Will |Caroline's |a| |that isn't |?|(|I |without x |and or |\x00|🦊|"
    "李雷|no x. "
).split("|")


@pytest.mark.parametrize("unit", UNITS)
def test_analysis_is_linear_in_the_query(unit: str) -> None:
    names = Names(["Caroline", "Will", "Mary Ann", "李雷"])

    def seconds(length: int) -> float:
        query = unit * (length // len(unit))
        best = float("inf")
        for _ in range(2):
            begin = time.process_time()
            found = analyze(query, now=NOW, actors=names, rare=lambda _: True)
            for exclusion in found.exclusions[:2]:
                rejects(exclusion, query)
            best = min(best, time.process_time() - begin)
        return best

    # Quadratic work would take 64 times as long for 8 times the text.
    assert seconds(32_000) < 24 * max(seconds(4_000), 0.001)
