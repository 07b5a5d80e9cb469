"""Which candidates count as repetitions."""

import pytest

from evicortex.policy.duplicates import without_duplicates
from evicortex.types import Polarity, Span


def ids(result):
    kept, duplicates = result
    return (
        [one.evidence.evidence_id for one in kept],
        [(one.candidate.evidence.evidence_id, one.of) for one in duplicates],
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Thanks a lot!", "thanks  a lot"),
        ("It is 5 pm.", "It is 5 pm"),
        ("ＡＢＣ", "abc"),
        ("so \u00a0 nice", "So nice!"),
    ],
)
def test_equal_statements_are_duplicates_and_the_best_rank_stays(candidate, first, second):
    found = without_duplicates([candidate(first, position=9), candidate(second, position=2)])
    assert ids(found) == (["ev_0009"], [("ev_0002", "ev_0009")])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I paid 20 euros", "I paid 30 euros"),
        ("I like tea.", "I like tea?"),
        ("I like tea", "I like teas"),
        ("-5", "5"),
        ("10²", "102"),
        ("👍", "👎"),
    ],
)
def test_other_values_stay_apart(candidate, first, second):
    found = without_duplicates([candidate(first), candidate(second, position=2)])
    assert ids(found) == (["ev_0001", "ev_0002"], [])


@pytest.mark.parametrize("other", [{"actor": "Bob"}, {"role": "assistant"}, {"superseded": True}])
def test_the_same_words_of_another_standing_stay_apart(candidate, other):
    found = without_duplicates(
        [candidate("Same here"), candidate("Same here", position=2, **other)]
    )
    assert ids(found) == (["ev_0001", "ev_0002"], [])


def test_claims_with_other_values_keep_equal_texts_apart(candidate, claim):
    berlin, lisbon = claim(value="Berlin"), claim(value="Lisbon")
    no_lisbon = claim(value="lisbon", polarity=Polarity.NEGATIVE)
    candidates = [
        candidate("I live there", position=1, claims=(berlin,)),
        candidate("I live there", position=2, claims=(lisbon,)),
        candidate("I live there", position=3, claims=(no_lisbon,)),
        candidate("I live there", position=4, claims=(claim(value="LISBON"),)),
        candidate("I live there", position=5),
    ]
    assert ids(without_duplicates(candidates)) == (
        ["ev_0001", "ev_0002", "ev_0003"],
        [("ev_0004", "ev_0002"), ("ev_0005", "ev_0001")],
    )


@pytest.mark.parametrize(
    "text",
    [
        "I ran five miles today",
        "We met LAST Tuesday",
        "this whole week was hard",
        "She left two days ago",
        "next summer!",
    ],
)
def test_what_is_said_of_today_on_another_day_is_something_else(candidate, text):
    first = candidate(text)
    assert ids(without_duplicates([first, candidate(text, position=2, day=9)]))[1] == []
    assert ids(without_duplicates([first, candidate(text, position=2)]))[1] == [
        ("ev_0002", "ev_0001")
    ]


def test_passages_of_one_evidence_are_no_duplicates_and_share_their_fate(candidate):
    text = "A long text. With two passages."
    copy = [candidate(text, position=2, span=span) for span in (Span(0, 12), Span(13, 31))]
    original = [candidate(text, span=span) for span in (Span(13, 31), Span(0, 12))]
    assert ids(without_duplicates([*original, *copy])) == (
        ["ev_0001", "ev_0001"],
        [("ev_0002", "ev_0001"), ("ev_0002", "ev_0001")],
    )


def test_nothing_has_no_duplicates():
    assert without_duplicates([]) == ([], [])
