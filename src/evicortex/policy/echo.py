"""Recalled context that comes back as a new message.

An agent that stores its whole prompt would store its own memories again as news. A block in the
fence of a pack, or lines that carry a pack's citation, are recognised as recalled: they are kept
as evidence like any text, but no claim may rest on them and a later recall leaves them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from evicortex.types import Span

_QUOTE = re.compile(r"[ \t]*(?:[>|]+ ?)+")
"""How mail and Markdown mark the lines that they quote."""

_CITED = re.compile(r"\s*(?:[-*\u2022] )?\[E[1-9]\d*\] \S")
_CITATION = re.compile(r"\[E[1-9]\d*\] ")
_ENOUGH = 2
_OPEN = "<memory>"
_CLOSE = "</memory>"


def recalled_spans(text: str) -> tuple[Span, ...]:
    """Return the ranges of ``text`` that are recalled context, in order and apart.

    A range runs from an opening fence to the closing one (to the end when it is missing), or
    over at least two consecutive cited lines with the continuation lines that belong to them:
    one such line alone may be anybody's error log or bibliography. Lines may be quoted or
    listed, and a whole pack may stand inside a line, as in JSON.
    """
    if _OPEN not in text and "[E" not in text:
        return ()
    return _joined(sorted((*_by_line(text), *_inside_lines(text))))


def _joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    joined: list[Span] = []
    for span in spans:
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return tuple(joined)


def _inside_lines(text: str) -> Iterator[Span]:
    """Yield what stands between two fences and holds a citation, wherever it stands."""
    position = 0
    while (close := text.find(_CLOSE, position)) >= 0:
        start = text.find(_OPEN, position, close)
        position = close + len(_CLOSE)
        if start >= 0 and _CITATION.search(text, start, close):
            yield Span(start, position)


def _by_line(text: str) -> list[Span]:
    spans: list[Span] = []
    start: int | None = None
    cited = 0
    fenced = False
    position = 0
    for line in text.splitlines(keepends=True):
        plain = line[match.end() :] if (match := _QUOTE.match(line)) else line
        bare = plain.strip()
        inside = start is not None
        if fenced:
            fenced = bare != _CLOSE
        elif bare == _OPEN:
            fenced = True
            cited += _ENOUGH
            inside, start = True, position if start is None else start
        elif _CITED.match(plain):
            cited += 1
            start = position if start is None else start
        elif inside and not plain.startswith(("  ", "## ")):
            if cited >= _ENOUGH:
                spans.append(Span(start or 0, position))
            start, cited = None, 0
        position += len(line)
    if start is not None and cited >= _ENOUGH:
        spans.append(Span(start, len(text)))
    return spans


def is_recalled(text: str, span: Span | None) -> bool:
    """Return whether ``span`` (``None``: the whole text) touches recalled context."""
    recalled = recalled_spans(text)
    if span is None:
        return bool(recalled)
    return any(span.start < part.end and part.start < span.end for part in recalled)


def is_mostly_recalled(text: str) -> bool:
    """Return whether at least half of the text's characters are recalled context."""
    covered = sum(part.end - part.start for part in recalled_spans(text))
    return covered > 0 and 2 * covered >= len(text)
