"""The pieces of a turn that can be shown alone, and what speaks for showing each.

Pieces are exact ranges of the text: sentences, captions ``[image: …]``, and blocks of code,
tables and lists. A sentence or caption that is too long to be shown alone is the passages that it
is made of. No piece begins or ends inside a word, unless the word is longer than a passage.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from evicortex.text import blocks, content_terms, estimate_tokens, passages, sentences
from evicortex.text.segments import PASSAGE_TOKENS
from evicortex.types import Span


class Piece(NamedTuple):
    """A range of a text, with what can be known of it before there is a query.

    ``terms`` are its different content terms. ``looks`` are the share of up to three
    capitalised words inside it, and 1 or 0 for a time word, a digit or number word, a quote,
    the first person, the second person, and a question mark at its end.
    """

    span: Span
    terms: frozenset[str]
    looks: tuple[float, ...]


PIECES = "pieces-2"
"""Names what ``piece_spans`` does: another name for every change of a result."""

PiecesOf = Callable[[str], tuple[Piece, ...]]
"""Returns the pieces of a text, as ``pieces`` does; it may remember them."""

LONGEST_SENTENCE: Final = 2 * PASSAGE_TOKENS
"""Estimated tokens of a sentence or caption above which its passages are the pieces."""

# What is never closed is matched to its line's end as well, so that nothing is read twice.
_CAPTION = re.compile(r"\[image: [^\]\n]*+(\]?)")


def pieces(content: str) -> tuple[Piece, ...]:
    """Return the pieces of ``content`` in order.

    They do not overlap, and together they hold everything but white space. The result depends
    on ``content`` alone, so it may be kept with it.
    """
    return tuple(_piece(content, span) for span in piece_spans(content))


def piece_spans(content: str) -> tuple[Span, ...]:
    """Return the spans of :func:`pieces` alone."""
    return tuple(sorted(_spans(content)))


def _spans(content: str) -> Iterator[Span]:
    for block in blocks(content):
        if block.kind != "prose":
            yield Span(block.start, block.end)
            continue
        text = content[block.start : block.end]
        captions = [Span(*match.span()) for match in _CAPTION.finditer(text) if match[1]]
        for part in [*_beside(text, captions), *captions]:
            for start, end in _short(text, part):
                yield Span(block.start + start, block.start + end)


def _beside(text: str, captions: Sequence[Span]) -> Iterator[Span]:
    """Yield the sentences of ``text`` without what of them lies in ``captions``."""
    starts, ends = [span.start for span in captions], [span.end for span in captions]
    for span in sentences(text):
        near = slice(bisect_right(ends, span.start), bisect_left(starts, span.end))
        yield from _without(text, span, captions[near])


def _short(text: str, span: Span) -> Iterator[Span]:
    """Yield ``span``, or the passages of one that is too long to be shown alone."""
    part = text[span.start : span.end]
    if estimate_tokens(part) <= LONGEST_SENTENCE:
        yield span
        return
    for start, end in passages(part):
        yield _trimmed(text, span.start + start, span.start + end)


def _without(text: str, span: Span, holes: Sequence[Span]) -> Iterator[Span]:
    """Yield what is left of ``span`` beside ``holes``, without outer white space."""
    start = span.start
    for hole in [*holes, Span(span.end, span.end)]:
        part = _trimmed(text, start, min(hole.start, span.end))
        if part.end > part.start:
            yield part
        start = max(start, hole.end)


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Span(start, end)


def pieces_within(content: str, known: Sequence[Piece], unit: Span) -> tuple[Piece, ...]:
    """Return what of the pieces ``known`` of ``content`` lies within ``unit``."""
    found = []
    for piece in known:
        if unit.start <= piece.span.start and piece.span.end <= unit.end:
            found.append(piece)
        elif piece.span.start < unit.end and unit.start < piece.span.end:
            span = _trimmed(
                content, max(piece.span.start, unit.start), min(piece.span.end, unit.end)
            )
            if span.end > span.start:
                found.append(_piece(content, span))
    return tuple(found)


_FIGURE = re.compile(r"\d")
_NUMBER_WORDS = frozenset(
    "one two three four five six seven eight nine ten twice dozen couple few".split()
)
_QUOTE = re.compile('["“”„«»「」『』]')
_TIME_WORDS = frozenset(
    """yesterday today tonight tomorrow last next ago week weeks weekend month months year years
    day days monday tuesday wednesday thursday friday saturday sunday morning evening since
    january february march april june july august september october november december recently
    soon""".split()
)
_CAPITALISED = re.compile(r"(?<=[a-z,;:'’] )[A-Z][a-z]+|\b[A-Z]{2,}\b")
_FIRST_PERSON = frozenset("i my we our me".split())
_SECOND_PERSON = frozenset("you your".split())
_WORD = re.compile(r"\w+")


def _piece(content: str, span: Span) -> Piece:
    text = content[span.start : span.end]
    return Piece(span, frozenset(content_terms(text)), looks(text))


def looks(text: str) -> tuple[float, ...]:
    """Return what the form of ``text`` tells, as ``Piece.looks`` says."""
    words = set(_WORD.findall(text.lower()))
    return (
        min(len(_CAPITALISED.findall(text)), 3) / 3,
        float(not words.isdisjoint(_TIME_WORDS)),
        float(bool(_FIGURE.search(text)) or not words.isdisjoint(_NUMBER_WORDS)),
        float(bool(_QUOTE.search(text))),
        float(not words.isdisjoint(_FIRST_PERSON)),
        float(not words.isdisjoint(_SECOND_PERSON)),
        float(text.endswith(("?", "？", "؟"))),
    )


@dataclass(frozen=True, slots=True)
class PieceWeights:
    """Linear weights of what speaks for showing a piece. Dimensionless.

    ``similarity`` multiplies the piece's similarity to the query, ``shared`` the share of the
    query's term weight that it holds, ``length`` the natural logarithm of one plus its number
    of different content words, ``capitalised`` up to three capitalised words inside it divided
    by three; the others count once when the piece has what they name. The last four count
    when the query asks for that as well.
    """

    similarity: float = 5.0
    shared: float = 1.5
    length: float = 0.5
    no_content: float = -1.0
    digit: float = 0.4
    quote: float = 0.3
    time_word: float = 0.4
    capitalised: float = 0.3
    first_person: float = 0.2
    second_person: float = -0.2
    question: float = -0.5
    time_asked: float = 0.5
    number_asked: float = 0.5
    person_asked: float = 0.3
    place_asked: float = 0.3


_ASKS_TIME = re.compile(
    r"\b(?:when|what (?:date|day|year|month|time)|how (?:long|old))\b", re.IGNORECASE
)
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|often|long|old)\b", re.IGNORECASE)
_ASKS_PERSON = re.compile(r"\b(?:who|whose|whom)\b", re.IGNORECASE)
_ASKS_PLACE = re.compile(
    r"\b(?:where|(?:which|what) (?:city|country|place|state|town))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class PackQuery:
    """What packing knows of the query: its text, and its index terms with their weights.

    ``terms`` are ``text.content_terms`` of the query, each with its inverse document frequency
    in the namespace, or with 1 where that is unknown.
    """

    text: str = ""
    terms: Mapping[str, float] = field(default_factory=dict)


class PieceScorer:
    """Scores pieces for one query."""

    def __init__(self, query: PackQuery, weights: PieceWeights) -> None:
        self._terms = query.terms
        self._total = sum(query.terms.values()) or 1.0
        self._weights = weights
        names = weights.person_asked * bool(_ASKS_PERSON.search(query.text))
        names += weights.place_asked * bool(_ASKS_PLACE.search(query.text))
        self._looks = (
            weights.capitalised + names,
            weights.time_word + weights.time_asked * bool(_ASKS_TIME.search(query.text)),
            weights.digit + weights.number_asked * bool(_ASKS_NUMBER.search(query.text)),
            weights.quote,
            weights.first_person,
            weights.second_person,
            weights.question,
        )

    def score(self, piece: Piece, similarity: float) -> float:
        """Return how much speaks for showing ``piece``; higher is better."""
        weights = self._weights
        shared = sum(self._terms[term] for term in sorted(piece.terms & self._terms.keys()))
        score = weights.similarity * similarity + weights.shared * shared / self._total
        count = len(piece.terms)
        score += weights.length * math.log1p(count) if count else weights.no_content
        looks = zip(self._looks, piece.looks, strict=True)
        return score + sum(weight * look for weight, look in looks)
