"""Recalled context that comes back as a new message.

An agent that stores its whole prompt would store its own memories again as news. A block in the
fence of a pack, or lines that carry a pack's citation, are recognised as recalled: they are kept
as evidence like any text, but no claim may rest on them and a later recall leaves them out.
"""

from __future__ import annotations

import re

from evicortex.types import Span

_CITED = re.compile(r"\[E[1-9]\d*\] \S")
_OPEN = "<memory>"
_CLOSE = "</memory>"


def recalled_spans(text: str) -> tuple[Span, ...]:
    """Return the ranges of ``text`` that are recalled context, in order and apart.

    A range runs from an opening fence to the closing one (to the end when it is missing), or
    over consecutive cited lines with the continuation lines that belong to them.
    """
    if _OPEN not in text and "[E" not in text:
        return ()
    spans: list[Span] = []
    start: int | None = None
    fenced = False
    position = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        inside = start is not None
        if fenced:
            fenced = bare != _CLOSE
        elif bare == _OPEN:
            fenced = True
            inside, start = True, position if start is None else start
        elif _CITED.match(line):
            start = position if start is None else start
        elif inside and not line.startswith("  "):
            spans.append(Span(start or 0, position))
            start = None
        position += len(line)
    if start is not None:
        spans.append(Span(start, len(text)))
    return tuple(spans)


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
