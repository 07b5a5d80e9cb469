"""Questions and their short replies."""

import pytest

from evicortex.policy.neighbours import NeighbourPolicy, with_neighbours
from evicortex.types import Span


def ids(candidates):
    return [one.evidence.evidence_id for one in candidates]


@pytest.fixture
def question(candidate):
    return candidate("Where do you live now?", position=1, actor="Bob", score=1.0)


def test_a_short_reply_brings_its_question(candidate, question):
    reply = candidate("In Lisbon.", position=2, neighbours=(question,), score=3.0)
    found = with_neighbours([reply], NeighbourPolicy())
    assert ids(found) == ["ev_0002", "ev_0001"]
    assert found[1].score == 3.0


def test_a_question_brings_its_short_reply(candidate):
    reply = candidate("In Lisbon.", position=2)
    asked = candidate("Where do you live now? ", position=1, actor="Bob", neighbours=(reply,))
    assert ids(with_neighbours([asked], NeighbourPolicy())) == ["ev_0001", "ev_0002"]


def test_a_neighbour_that_is_ranked_itself_moves_up(candidate, question):
    reply = candidate("In Lisbon.", position=2, neighbours=(question,), score=3.0)
    other = candidate("Nice weather.", position=3)
    found = with_neighbours([reply, other, question], NeighbourPolicy())
    assert ids(found) == ["ev_0002", "ev_0001", "ev_0003"]
    assert found[1] is question


def test_other_passages_of_a_neighbour_that_moved_up_stay(candidate):
    text = "One thing. Where do you live now?"
    first, second = (
        candidate(text, position=1, actor="Bob", span=span) for span in (Span(0, 10), Span(11, 33))
    )
    reply = candidate("In Lisbon.", position=2, neighbours=(candidate(text, actor="Bob"),))
    found = with_neighbours([reply, second, first], NeighbourPolicy())
    assert [one.span for one in found] == [None, second.span, second.span, first.span]


def test_a_repeated_candidate_is_kept_once(candidate):
    assert ids(with_neighbours([candidate("a"), candidate("a")], NeighbourPolicy())) == ["ev_0001"]


@pytest.mark.parametrize(
    ("asked", "replied"),
    [
        ({"content": "I live in Berlin."}, {"content": "Nice."}),
        ({"content": "Where?", "actor": "Alice"}, {"content": "In Lisbon."}),
        ({"content": "Where?"}, {"content": "one two three four five six seven eight nine"}),
    ],
)
def test_what_does_not_belong_together_stays_apart(candidate, asked, replied):
    first = candidate(**{"actor": "Bob", "position": 1} | asked)
    second = candidate(**{"position": 2, "neighbours": (first,)} | replied)
    assert ids(with_neighbours([second], NeighbourPolicy())) == ["ev_0002"]


def test_the_length_of_a_reply_is_a_setting(candidate, question):
    reply = candidate("In Lisbon.", position=2, neighbours=(question,))
    assert ids(with_neighbours([reply], NeighbourPolicy(reply_words=1))) == ["ev_0002"]
