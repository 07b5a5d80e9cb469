"""Pieces of a turn, and the score of each for a query."""

import pytest

from evicortex.policy.pieces import (
    PackQuery,
    PieceScorer,
    PieceWeights,
    pieces,
    pieces_within,
)
from evicortex.text import content_terms, estimate_tokens
from evicortex.text.segments import PASSAGE_TOKENS
from evicortex.types import Span

LIST = "Two things:\n- milk and eggs\n- bread. Fresh.\n\nThat is all."
CODE = "Try this.\n```python\nx = 1. # Ok. Good.\n```\nDone."
TABLE = "Prices.\n\n| a | b |\n|---|---|\n| 1. | 2. |\n\nFine."


def texts(content):
    return [content[start:end] for start, end in (piece.span for piece in pieces(content))]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", []),
        (" \n ", []),
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("no end", ["no end"]),
        (LIST, ["Two things:", "- milk and eggs\n- bread. Fresh.", "That is all."]),
        (CODE, ["Try this.", "```python\nx = 1. # Ok. Good.\n```", "Done."]),
        (TABLE, ["Prices.", "| a | b |\n|---|---|\n| 1. | 2. |", "Fine."]),
        (
            "Look at this [image: a dog. It runs.] now. Nice.",
            ["Look at this", "[image: a dog. It runs.]", "now.", "Nice."],
        ),
        ("[image: a cat]", ["[image: a cat]"]),
        ("Hi. [image: a cat] [image: a dog]", ["Hi.", "[image: a cat]", "[image: a dog]"]),
        ("[image: a [image: b] c", ["[image: a [image: b]", "c"]),
        ("[image: a\n[image: b]", ["[image: a", "[image: b]"]),
    ],
)
def test_pieces_are_sentences_captions_and_whole_blocks(content, expected):
    assert texts(content) == expected


def test_a_sentence_that_is_too_long_is_its_passages():
    sentence = "We" + " went to the market and then we came back home" * 30 + " "
    found = texts("Short one. " + sentence + "at last. Bye.")
    assert (found[0], found[-1]) == ("Short one.", "Bye.")
    assert 4 <= len(found[1:-1]) <= 7
    assert all(estimate_tokens(text) <= PASSAGE_TOKENS for text in found[1:-1])
    assert " ".join(found[1:-1]) == sentence + "at last."
    assert len(texts("word " * 127)) == 1
    assert len(texts("word " * 130)) > 1


def test_a_caption_that_is_too_long_is_its_passages():
    caption = "[image: " + "a dog and a cat, " * 60 + "]"
    assert " ".join(texts(f"Hi. {caption}")) == f"Hi. {caption}"
    assert len(texts(caption)) > 2


def test_many_captions_and_openings_of_captions_are_read_once():
    assert len(texts("Hi! [image: x] " * 20_000)) == 40_000
    assert texts("[image: " * 20_000)[0].startswith("[image: [image: ")


def test_pieces_within_a_passage():
    content = "One. Two words here. Three. [image: a long caption]"
    known = pieces(content)

    def within(start, end):
        return [
            content[a:b]
            for a, b in (p.span for p in pieces_within(content, known, (Span(start, end))))
        ]

    assert within(0, len(content)) == [
        "One.",
        "Two words here.",
        "Three.",
        "[image: a long caption]",
    ]
    assert within(5, 20) == ["Two words here."]
    assert within(4, 14) == ["Two words"]
    assert within(4, 5) == within(8, 9) == []
    assert within(21, 28) == ["Three."]


def test_a_part_of_a_piece_has_its_own_terms():
    content = "Alice plays piano and Bob sings."
    (part,) = pieces_within(content, pieces(content), Span(0, 17))
    assert part.terms == frozenset(content_terms("Alice plays piano"))


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("the grey cat", (0, 0, 0, 0, 0, 0, 0)),
        ("we met in Rome, near NASA", (2 / 3, 0, 0, 0, 1, 0, 0)),
        ("in Rome, Paris, Berlin, Lisbon", (1, 0, 0, 0, 0, 0, 0)),
        ("it was yesterday", (0, 1, 0, 0, 0, 0, 0)),
        ("about 7 or so", (0, 0, 1, 0, 0, 0, 0)),
        ("a dozen eggs", (0, 0, 1, 0, 0, 0, 0)),
        ("he said “no”", (0, 0, 0, 1, 0, 0, 0)),
        ("do you like your tea?", (0, 0, 0, 0, 0, 1, 1)),
    ],
)
def test_looks(text, looks):
    assert pieces(text)[0].looks == pytest.approx(looks)


def score(text, query="", *, similarity=0.0, **weights):
    chosen = PieceWeights(**(dict.fromkeys(PieceWeights.__slots__, 0.0) | weights))
    terms = {term: 2.0 if term == "piano" else 1.0 for term in content_terms(query)}
    return PieceScorer(PackQuery(query, terms), chosen).score(pieces(text)[0], similarity)


def test_each_weight_does_what_its_name_says():
    assert score("grey cat", "cat and piano", shared=3.0) == pytest.approx(1.0)
    assert score("grey piano", "cat and piano", shared=3.0) == pytest.approx(2.0)
    assert score("grey", "cat", shared=3.0) == 0.0
    assert score("grey", "", shared=3.0) == 0.0
    assert score("grey", similarity=0.5) == 0.0
    assert PieceScorer(PackQuery(), PieceWeights()).score(pieces("grey")[0], 0.5) > (
        PieceScorer(PackQuery(), PieceWeights()).score(pieces("grey")[0], 0.4)
    )
    assert score("grey cat", length=1.0) == pytest.approx(1.0986122886681098)
    assert score("so it is", no_content=-1.0) == -1.0
    assert score("now in Rome", capitalised=3.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("query", "text", "weight"),
    [
        ("When was it?", "it was yesterday", "time_asked"),
        ("what month was it", "in october", "time_asked"),
        ("How many cats?", "there were 7", "number_asked"),
        ("Whose cat is it?", "it belongs to Bob", "person_asked"),
        ("Which city is it?", "it is Rome", "place_asked"),
    ],
)
def test_what_the_query_asks_for_counts_once_more(query, text, weight):
    assert score(text, query, **{weight: 3.0}) in (pytest.approx(3.0), pytest.approx(1.0))
    assert score(text, "and so", **{weight: 3.0}) == 0.0


def test_a_phatic_sentence_scores_below_one_with_facts():
    content = "That is so great! I moved to Lisbon on 7 March with my two cats."
    scorer = PieceScorer(PackQuery("Where does she live?", {"live": 1.0}), PieceWeights())
    first, second = (scorer.score(piece, 0.0) for piece in pieces(content))
    assert first < second
