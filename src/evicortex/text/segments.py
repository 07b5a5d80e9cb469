"""Words, blocks, sentences and passages as exact ranges of the text that was given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from evicortex.text.scripts import CJK, HANGUL, MARKS, SOUTH_EAST_ASIAN
from evicortex.types import Span

BlockKind = Literal["prose", "code", "table", "list"]

BYTES_PER_TOKEN = 4
"""Rule of thumb for sub-word tokenizers: four UTF-8 bytes a token, in any script."""


class Word(NamedTuple):
    """A word at ``[start, end)``; ``text`` is exactly what stands there."""

    start: int
    end: int
    text: str


class Block(NamedTuple):
    """A part of a text that belongs together, at ``[start, end)``."""

    start: int
    end: int
    kind: BlockKind


_SPACELESS = CJK + SOUTH_EAST_ASIAN + HANGUL
_LETTERS = f"(?:[^\\W{_SPACELESS}]|[{MARKS}])+"
_WORD = re.compile(rf"{_LETTERS}(?:['’\-‐‑]{_LETTERS})*|[{CJK}]+|[{HANGUL}]+|[{SOUTH_EAST_ASIAN}]+")


def words(text: str) -> list[Word]:
    """Return the words of ``text`` in order, with inner apostrophes and hyphens, unfolded.

    A run of a script without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) is one word.
    """
    return [Word(match.start(), match.end(), match[0]) for match in _WORD.finditer(text)]


def estimate_tokens(text: str) -> int:
    """Return a cheap estimate of the tokens of ``text``; 0 only for the empty text."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


_LINE = re.compile(r"[^\n]*\n?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_GAP = 2
_ITEM = re.compile(r"[ \t]*+(?:[-*+•‣◦–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])[ \t]+\S")
_TABLE_ROW = re.compile(r"[ \t]*+\|.*\|$")
_RULE = r"[ \t]*+:?-{2,}+:?[ \t]*+"
_TABLE_RULE = re.compile(rf"[ \t]*+\|?{_RULE}(?:\|{_RULE})++\|?$")


def blocks(text: str) -> list[Block]:
    """Return the blocks of ``text`` in order: fenced code, tables, lists, paragraphs of prose.

    Blocks do not overlap, and together they hold everything but white space. A code block
    keeps its fences, a list its items with their indented continuation lines.
    """
    lines = [Span(match.start(), match.end()) for match in _LINE.finditer(text) if match[0]]
    found: list[Block] = []
    at = 0
    while at < len(lines):
        if not text[lines[at].start : lines[at].end].strip():
            at += 1
            continue
        kind, after = _block_at(text, lines, at)
        span = _trimmed(text, lines[at].start, lines[after - 1].end)
        found.append(Block(span.start, span.end, kind))
        at = after
    return found


def _line(text: str, span: Span) -> str:
    return text[span.start : span.end].rstrip()


def _block_at(text: str, lines: list[Span], at: int) -> tuple[BlockKind, int]:
    """Return the kind of the block that begins at line ``at``, and the line after it."""
    first = _line(text, lines[at])
    if fence := _FENCE.match(first):
        return "code", _fence_end(text, lines, at, fence[1])
    table = _table_end(text, lines, at)
    if table > at + 1:
        return "table", table
    if _ITEM.match(first):
        after, items = _list_end(text, lines, at)
        if items > 1:
            return "list", after
    after = at + 1
    while after < len(lines):
        line = _line(text, lines[after])
        if not line or _FENCE.match(line) or _table_end(text, lines, after) > after + 1:
            break
        if _ITEM.match(line) and _list_end(text, lines, after)[1] > 1:
            break
        after += 1
    return "prose", after


def _fence_end(text: str, lines: list[Span], at: int, fence: str) -> int:
    for after in range(at + 1, len(lines)):
        closing = _FENCE.match(_line(text, lines[after]))
        if closing and closing[1][0] == fence[0] and len(closing[1]) >= len(fence):
            return after + 1
    return len(lines)


def _table_end(text: str, lines: list[Span], at: int) -> int:
    first = _line(text, lines[at])
    ruled = at + 1 < len(lines) and _TABLE_RULE.match(_line(text, lines[at + 1]))
    if not (_TABLE_ROW.match(first) or (ruled and "|" in first)):
        return at
    after = at + 1
    while after < len(lines) and "|" in _line(text, lines[after]):
        after += 1
    return after


def _list_end(text: str, lines: list[Span], at: int) -> tuple[int, int]:
    """Return the line after the list that begins at ``at``, and how many items it has."""
    after, items, last = at, 0, at
    while after < len(lines) and after - last <= _LIST_GAP:
        line = _line(text, lines[after])
        if _ITEM.match(line):
            items += 1
        elif line and not line.startswith((" ", "\t")):
            break
        if line:
            last = after
        after += 1
    return last + 1, items


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return Span(start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip()))


_ABBREVIATIONS = """
    mr mrs ms mx dr prof sr jr st mt vs etc ed eds approx est dept inc ltd corp bros lt sgt capt
    rev gov sen ph.d e.g i.e a.m p.m u.s u.k cf et al
"""
_BEFORE_NAMES = frozenset(_ABBREVIATIONS.split())
_NUMBERED = """
    no nos vol fig p pp ch sec min max tel jan feb mar apr jun jul aug sep sept oct nov dec
    mon tue tues wed thu thur thurs fri sat sun
"""
_BEFORE_NUMBERS = frozenset(_NUMBERED.split())
_MAY_END = frozenset({"a.m", "p.m", "etc", "u.s", "u.k", "inc", "ltd", "al", "jr", "sr"})
_CLOSERS = "\"'”’»)\\]}」』）】"
_END = re.compile(
    rf"(?<![.!?…])[.!?…]++[{_CLOSERS}]*+(?=\s|$)(?:[ \t]+[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\u200d]+"
    rf"(?=\s|$))*|[。！？｡؟۔।॥။።։][{_CLOSERS}]*"
    r"|[\U0001f300-\U0001faff]\ufe0f?(?=\s+[^\W\d_])|\n"
)
_LAST_TOKEN = re.compile(r"[^\s(\"'“‘\[]+$")
_TOKEN_REACH = 16
_NEXT = re.compile(r"\s*[\"'“‘(\[*_]*(\S)?")
_HARD_WRAP = 60


def sentences(text: str) -> list[Span]:
    """Return the sentences of ``text`` in order, without the white space between them.

    They never begin or end inside a word, and together they hold everything but white space.
    Code blocks and tables are one sentence each; every item of a list starts a new one.
    """
    found: list[Span] = []
    for block in blocks(text):
        if block.kind in ("code", "table"):
            found.append(Span(block.start, block.end))
        else:
            found.extend(_prose(text, block))
    return found


def _prose(text: str, block: Block) -> Iterator[Span]:
    start = block.start
    for match in _END.finditer(text, block.start, block.end):
        if match.end() > start and _ends_sentence(text, start, match, block):
            span = _trimmed(text, start, match.end())
            if span.end > span.start:
                yield span
            start = match.end()
    if text[start : block.end].strip():
        yield _trimmed(text, start, block.end)


def _ends_sentence(text: str, start: int, match: re.Match[str], block: Block) -> bool:
    mark = match[0]
    following = _NEXT.match(text, match.end(), block.end)
    after = following[1] or "" if following else ""
    if mark == "\n":
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        return not (block.kind == "prose" and after.islower() and len(line) >= _HARD_WRAP)
    if mark[0] not in ".…":
        return not (mark[-1] in "\"”’»'" and after.islower())
    if mark.startswith(("..", "…")):
        return not after.islower()
    at = match.start()
    token = _LAST_TOKEN.search(text, max(start, at - _TOKEN_REACH), at)
    before = token[0].casefold() if token else ""
    if at == start:
        return False
    if before in _BEFORE_NAMES:
        return before in _MAY_END and after.isupper()
    if before in _BEFORE_NUMBERS and after.isdigit():
        return False
    if len(before) == 1 and before.isalpha() and after.isupper():
        return False
    if before.isdigit() and at - start == len(before):
        return False
    return not after.islower() or text[start : min(at, start + _TOKEN_REACH)].lstrip()[:1].islower()


PASSAGE_TOKENS = 80
"""Size of a passage for indexing and packing long turns, in estimated tokens."""

_CLAUSE = re.compile(rf"[,;:—–][{_CLOSERS}]*\s+|[，、；：]|\s+")
_CONTINUING = "\u200d\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_CLUSTER = 8
_JOINED = 2
"""Characters after a cut that show whether it is in a word: a hyphen in one has a letter behind."""


def passages(text: str, target: int = PASSAGE_TOKENS) -> list[Span]:
    """Cut ``text`` into passages of about ``target`` estimated tokens.

    The passages are contiguous and cover the whole text, white space included; a blank text has
    none. They end between sentences; a longer sentence, code block or table is cut between lines,
    else between words. Only a word that is itself longer than a passage is cut inside.
    """
    if not text.strip():
        return []
    limit = max(target, 1) * BYTES_PER_TOKEN
    if len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit:
        return [Span(0, len(text))]
    cuts = [0]
    used = 0
    for piece in _pieces(text, limit):
        if not text[piece.start : piece.end].strip():
            continue
        size = len(text[piece.start : piece.end].encode("utf-8", "surrogatepass"))
        if used and used + size > limit:
            cuts.append(piece.start)
            used = 0
        used += size
    return [Span(start, end) for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _pieces(text: str, limit: int) -> Iterator[Span]:
    """Yield sentences with the space after them; longer ones in parts of at most ``limit`` bytes."""
    found = sentences(text)
    for at, span in enumerate(found):
        start = 0 if at == 0 else span.start
        end = found[at + 1].start if at + 1 < len(found) else len(text)
        if len(text[start:end].encode("utf-8", "surrogatepass")) <= limit:
            yield Span(start, end)
        else:
            yield from _parts(text, start, end, limit)


def _parts(text: str, start: int, end: int, limit: int) -> Iterator[Span]:
    while start < end:
        stop = _fitting(text, start, end, limit)
        if stop < end:
            stop = _softest_cut(text, start, stop)
        yield Span(start, stop)
        start = stop


def _fitting(text: str, start: int, end: int, limit: int) -> int:
    """Return the furthest end of at most ``limit`` bytes, and at least one character."""
    taken = text[start : min(end, start + limit)].encode("utf-8", "surrogatepass")[:limit]
    return max(start + len(taken.decode("utf-8", "ignore")), start + 1)


def _softest_cut(text: str, start: int, stop: int) -> int:
    """Return the best place to cut ``[start, stop)``: a line, a clause, a space, a word."""
    third = start + (stop - start) // 3
    line = text.rfind("\n", third, stop)
    if line > start:
        return line + 1
    best = 0
    for match in _CLAUSE.finditer(text, start, stop):
        if match[0].strip() and match.end() > third:
            best = match.end()
    if best:
        return best
    for match in _CLAUSE.finditer(text, start, stop):
        best = match.end()
    if best > start:
        return best
    return _between_words(text, start, stop)


def _between_words(text: str, start: int, stop: int) -> int:
    """Return where the word that ``stop`` is in begins; else a place that parts no character."""
    for match in _WORD.finditer(text, start, stop + _JOINED):
        if start < match.start() < stop < match.end():
            return match.start()
    for at in range(stop, max(start, stop - _CLUSTER), -1):
        character = text[at : at + 1]
        if character and character not in _CONTINUING and unicodedata.category(character)[0] != "M":
            return at
    return stop
