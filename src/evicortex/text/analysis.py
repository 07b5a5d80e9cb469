"""Index terms: folded, stemmed, and cut by the rules of each script.

White space separates chunks; the terms of a chunk depend on nothing but the chunk, so they are
kept in a bounded memo, which makes ordinary text cost two dictionary look-ups a word.

* English and other words in Latin letters are stemmed (Snowball "english", Porter 2).
  Possessives vanish, contractions are spelt out (``don't``: do, not).
* Compounds (``gen-itgc``, ``snake_case``, ``a@b.org``, ``3.11.2``, URLs) give the whole, their
  segments, and their parts; camelCase and letter-digit mixtures (``gpt4``) their parts as well.
  ``C++``, ``C#``, ``.NET``, ``@x`` and ``#tag`` keep a term of their own beside the word.
* Han and kana: every character and every pair of neighbours. Hangul: the word and its syllable
  pairs. Thai, Lao, Khmer, Myanmar: pairs of code points (these scripts put no spaces).
* An emoji sequence is a term, and so is each emoji in it.

A term holds no white space and no control character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

import Stemmer

from evicortex.text.folding import unmarked
from evicortex.text.scripts import (
    CJK,
    EMOJI,
    FLAGS,
    HANGUL,
    MARKS,
    SKIN_TONES,
    SOUTH_EAST_ASIAN,
    SYMBOLS,
)
from evicortex.text.stopwords import KEPT_FORMS, STOP_WORDS

ANALYSIS = f"1-{Stemmer.version()}"
"""Changes whenever the same text may give other terms; stored with what was derived."""

_WORD_LIMIT = 64
_WHOLE_LIMIT = 256
_MEMO_ENTRIES = 65_536
_MEMO_CHUNK = 48

_SPACELESS = CJK + SOUTH_EAST_ASIAN + HANGUL
_W = f"(?:[^\\W_{_SPACELESS}]|[{MARKS}])+"
_JOIN = r"(?:::|[-_.@:/+#'&=~%\\*·‧])"
_TOKEN = re.compile(
    rf"(?P<compound>(?:(?<![\w@#.])[@#.])?{_W}(?:{_JOIN}{_W})*(?:(?:\+{{1,2}}|#)(?!\w))?)"
    rf"|(?P<cjk>[{CJK}]+)"
    rf"|(?P<hangul>[{HANGUL}]+)"
    rf"|(?P<sea>[{SOUTH_EAST_ASIAN}]+)"
    rf"|(?P<emoji>[{FLAGS}]{{2}}|[{EMOJI}][{SKIN_TONES}]?(?:\u200d[{EMOJI}][{SKIN_TONES}]?)*)"
    rf"|(?P<symbol>[{SYMBOLS}{FLAGS}])"
)
_PLAIN = re.compile(r"[(\"'\[*]?([A-Za-z]+)[.,!?;:)\"'\]*…]*")
_URL = re.compile(
    r"(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]{0,20}+://|www\.)[!#-;=?-\[\]_a-z~]+", re.IGNORECASE
)
_URL_START = re.compile(r"(?:[a-z][a-z0-9+.-]*+://)?(?:www\.)?", re.IGNORECASE)
_URL_END = ".,;:!?'\")]*/"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_INITIALS = re.compile(r"(?:[A-Z]\.)+[A-Z]|a\.m|p\.m|e\.g|i\.e|u\.s|u\.k")
_CONTRACTION = re.compile(r"(.+?)(n't|'(?:s|re|ve|ll|d|m))", re.IGNORECASE)
_SPELT_OUT = {"'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'m": "am"}
_IRREGULAR = {"can't": "can", "won't": "will", "shan't": "shall", "ain't": "is"}
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_DIGIT = re.compile(r"[0-9]")
_MIXED = re.compile(r"[0-9]+|[^0-9]+")
_MIXED_PARTS = 4
_OUTER_JOIN = re.compile(r"::|[@:/+#&=%\\*]")
_INNER_JOIN = re.compile(r"[-_.~·‧]")
_EMOJI_BASE = re.compile(f"[{EMOJI}](?<![{SKIN_TONES}])")

_stem = Stemmer.Stemmer("english", 0).stemWord

Found = Iterator[tuple[str, bool]]
"""Terms in order, each with whether it is a stop word."""


class _Memo(dict[str, tuple[str, ...]]):
    """Chunk to terms; computes what it lacks and forgets everything when it is full."""

    def __init__(self, *, stop_words: bool) -> None:
        super().__init__()
        self._stop_words = stop_words

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        found = tuple(term for term, stop in _analysed(chunk) if self._stop_words or not stop)
        if len(chunk) <= _MEMO_CHUNK:
            if len(self) >= _MEMO_ENTRIES:
                self.clear()
            self[chunk] = found
        return found


_all_terms = _Memo(stop_words=True).__getitem__
_content_terms = _Memo(stop_words=False).__getitem__


def terms(text: str) -> list[str]:
    """Return the index terms of ``text`` in order, stop words included."""
    return list(chain.from_iterable(map(_all_terms, text.split())))


def content_terms(text: str) -> list[str]:
    """Return the index terms of ``text`` in order, without English stop words."""
    return list(chain.from_iterable(map(_content_terms, text.split())))


def _analysed(chunk: str) -> Found:
    plain = _PLAIN.fullmatch(chunk)
    if plain is not None:
        yield from _word(plain[1])
        return
    text = unmarked(chunk)
    start = 0
    for url in _URL.finditer(text):
        yield from _tokens(text[start : url.start()])
        yield from _url(url[0])
        start = url.end()
    yield from _tokens(text[start:])


def _tokens(text: str) -> Found:
    for match in _TOKEN.finditer(_THOUSANDS.sub("", text)):
        token = match[0]
        kind = match.lastgroup
        if kind == "compound":
            yield from _compound(token)
        elif kind == "cjk":
            yield from _characters(token)
        elif kind == "hangul":
            yield from _syllables(token)
        elif kind == "sea":
            yield from _pairs(token)
        elif kind == "emoji":
            yield from _emoji(token)
        else:
            yield token, False


def _url(url: str) -> Found:
    """Yield the address without its scheme, its host, and what lies between the punctuation."""
    address = _URL_START.sub("", url, count=1).rstrip(_URL_END)
    if _TOKEN.fullmatch(address):
        yield from _compound(address)
        return
    yield address.casefold()[:_WHOLE_LIMIT], False
    yield from _tokens(address)


def _compound(token: str) -> Found:
    body = token.lstrip("@#.").rstrip("+#")
    if body != token:
        yield token.casefold()[:_WHOLE_LIMIT], False
    pieces = [piece for piece in _OUTER_JOIN.split(body) if piece]
    if len(pieces) > 1:
        yield _without_possessive(body).casefold()[:_WHOLE_LIMIT], False
    for piece in pieces:
        yield from _piece(piece)


def _without_possessive(text: str) -> str:
    return text[:-2] if text[-2:] in ("'s", "'S") else text


def _piece(piece: str) -> Found:
    """Analyse words joined by hyphens, underscores or full stops."""
    if _INITIALS.fullmatch(piece):
        yield _folded(piece.replace(".", "")), False
        return
    parts = [part for part in _INNER_JOIN.split(piece) if part]
    if len(parts) > 1:
        yield _without_possessive(piece).casefold()[:_WHOLE_LIMIT], False
    for part in parts:
        if "'" in part:
            yield from _apostrophe(part)
        else:
            yield from _word(part)


def _apostrophe(part: str) -> Found:
    match = _CONTRACTION.fullmatch(part) if len(part) <= _WORD_LIMIT else None
    if match is None:
        yield part.casefold()[:_WORD_LIMIT], False
        for word in part.split("'"):
            yield from _word(word)
        return
    stem, suffix = match[1], match[2].casefold()
    if suffix == "n't":
        yield from _word(_IRREGULAR.get(part.casefold(), stem))
        yield "not", True
        return
    if "'" in stem:
        yield from _apostrophe(stem)
    else:
        yield from _word(stem)
    if suffix != "'s":
        yield _SPELT_OUT[suffix], True


def _word(word: str) -> Found:
    """Analyse a word without punctuation: whole, then its camelCase or letter-digit parts."""
    folded = word.casefold()
    yield _folded(folded), folded in STOP_WORDS and word not in KEPT_FORMS
    if len(word) > _WORD_LIMIT or (word.islower() and word.isalpha()):
        return
    parts = _parts(word)
    if len(parts) > 1:
        for part in parts:
            small = part.casefold()
            yield _folded(small), small in STOP_WORDS


def _parts(word: str) -> list[str]:
    if _CAMEL.search(word):
        return _CAMEL_PART.findall(word)
    if _DIGIT.search(word):
        parts = _MIXED.findall(word)
        # A hash is one name; its runs of digits mean nothing.
        return parts if len(parts) <= _MIXED_PARTS else []
    return []


def _folded(word: str) -> str:
    folded = word.casefold()[:_WORD_LIMIT]
    if folded.isascii() and folded.isalpha():
        stem: str = _stem(folded)
        return stem
    return folded


def _characters(run: str) -> Found:
    run = run.casefold()
    previous = ""
    for character in run:
        if previous:
            yield previous + character, False
        yield character, False
        previous = character


def _pairs(run: str) -> Found:
    if len(run) == 1:
        yield run, False
    for at in range(len(run) - 1):
        yield run[at : at + 2], False


def _syllables(run: str) -> Found:
    yield run[:_WORD_LIMIT], False
    if len(run) > 2:
        yield from _pairs(run)


def _emoji(token: str) -> Found:
    yield token, False
    bases = _EMOJI_BASE.findall(token)
    if bases and bases != [token]:
        for base in bases:
            yield base, False
