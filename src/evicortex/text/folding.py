"""Folding of spelling variants, and the key by which two texts count as the same.

Arabic follows Lucene's ArabicNormalizer (Apache-2.0): no harakat or tatweel, one alef, ya for
alef maqsura, ha for ta marbuta. Cyrillic keeps the letters that marks make (й, ї, ў) and drops
stress marks and the dots of ё. Latin and Greek lose every mark. Devanagari, Thai and the other
Indic scripts keep theirs: they are vowels.
"""

from __future__ import annotations

import re
import unicodedata

from evicortex.text.scripts import EMOJI, MARKS

_MARKED_LATIN_GREEK = re.compile(
    "([A-Za-z\u00c0-\u024f\u0250-\u02af\u0370-\u03ff\u1e00-\u1fff\u2c60-\u2c7f\ua720-\ua7ff])"
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]+"
)
_STRESSED_CYRILLIC = re.compile("([\u0400-\u052f])[\u0300\u0301]+")
_YO = re.compile("([еЕ])\u0308")
_HEBREW_ABBREVIATION = re.compile("(?<=[\u05d0-\u05ea])[\"'](?=[\u05d0-\u05ea])")
_LOOSE_JOINER = re.compile(f"\u200d(?![{EMOJI}])")
_CONTROLS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\u200b\u2028\u2029\ud800-\udfff\ufff9-\uffff]")
# More than 30 marks on one letter are no writing (UAX 15, Stream-Safe Text Format), and ordering
# them takes quadratic time.
_PILED_MARKS = re.compile(f"([{MARKS}]{{30}})[{MARKS}]+")


def _letters() -> dict[int, str | None]:
    invisible = (0xAD, 0x34F, 0x61C, 0x180E, 0x200C, 0x200E, 0x200F, 0x20E3, 0xFEFF)
    hebrew_points = (*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7)
    arabic_marks = (*range(0x610, 0x61B), 0x640, *range(0x64B, 0x660), 0x670)
    quranic_marks = (*range(0x6D6, 0x6DD), *range(0x6DF, 0x6E5), 0x6E7, 0x6E8, *range(0x6EA, 0x6EE))
    selectors = (*range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10))
    table: dict[int, str | None] = dict.fromkeys(
        (*invisible, *hebrew_points, *arabic_marks, *quranic_marks, *selectors)
    )
    table.update(dict.fromkeys(range(0xE0000, 0xE1000)))
    pairs = (
        "øo ØO łl ŁL đd ĐD ðd ÐD ħh ĦH ŧt ŦT ıi ŀl ĿL ‘' ’' ʼ' ＇' ׳' ״\" ‐- ‑- −- ⁄/ "
        "ٱا ىي یي ېي ةه ەه کك ڪك"
    )
    table.update({ord(pair[0]): pair[1] for pair in pairs.split()})
    table.update({ord("æ"): "ae", ord("Æ"): "AE", ord("œ"): "oe", ord("Œ"): "OE"})
    table.update({ord("þ"): "th", ord("Þ"): "Th"})
    for zero in (0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6):
        table.update({zero + digit: str(digit) for digit in range(10)})
    for zero in (0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946):
        table.update({zero + digit: str(digit) for digit in range(10)})
    return table


_LETTERS = _letters()


def unmarked(text: str) -> str:
    """Return ``text`` with spelling variants folded and its case kept.

    Controls, NUL, lone surrogates and zero-width spaces become spaces, other invisible
    characters vanish, and digits of every script become ASCII digits.
    """
    if text.isascii():
        return _CONTROLS.sub(" ", text)
    text = _PILED_MARKS.sub(r"\1", _CONTROLS.sub(" ", text))
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    text = _MARKED_LATIN_GREEK.sub(r"\1", text)
    text = _YO.sub(r"\1", _STRESSED_CYRILLIC.sub(r"\1", text))
    text = _LOOSE_JOINER.sub("", text.translate(_LETTERS))
    return _HEBREW_ABBREVIATION.sub("", unicodedata.normalize("NFC", text))


def fold(text: str) -> str:
    """Return ``text`` caseless, with spelling variants folded; what index terms are made of."""
    return unmarked(text).casefold()


_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
# NFKC would turn 10² into 102 and 1½ into 11⁄2: other values.
_RAISED = re.compile("([\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u209c\u2150-\u215f\u2189])")
_CLOSING = " .,;:!…\"'`“”„‟‘’‚‛«»‹›()[]{}<>。、，．；：！「」『』（）【】《》〈〉،؛۔।॥"
_OPENING = _CLOSING.replace(".", "").replace(",", "").replace(":", "")
_QUOTES = str.maketrans("‘’ʼ“”", "'''\"\"")
_UNIT_QUOTES = ("'", '"')


def normalized(text: str) -> str:
    """Return the key under which two texts are duplicates of each other.

    Compatibility forms (NFKC), case, runs of white space, and quotes, brackets and full stops
    round the whole text do not matter; anything else does, above all every digit. Equal keys
    mean equal statements; texts that are near but not equal keep different keys. What belongs
    to a value (``-5``, ``.5``, ``5%``, ``6'``) or makes a question (``?``) is not stripped.
    """
    if not text.isascii():
        text = _PILED_MARKS.sub(r"\1", _RAISED.sub(r"^\1", text)).translate(_QUOTES)
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = _SPACE.sub(" ", text.casefold()).strip()
    inner = folded.rstrip(_CLOSING)
    if inner and inner[-1].isdigit() and folded.startswith(_UNIT_QUOTES, len(inner)):
        inner = folded[: len(inner) + 1]
    return inner.lstrip(_OPENING) or folded
