"""Occupations that stand beside a name: "my assistant Tag", "Leon, the manager"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evicortex.providers.rules.framing import Sentence, Turn
from evicortex.providers.rules.lexicon import OCCUPATIONS, either
from evicortex.providers.rules.table import Finding
from evicortex.providers.rules.values import NAME, name
from evicortex.types import Span

_TITLE = (
    r"(?P<v>(?:(?:assistant|head|senior|junior|chief|lead|executive|personal|vice)\s+)?"
    rf"{either(OCCUPATIONS)})"
)
_BEFORE = re.compile(
    rf"(?:\b(?:(?P<own>[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Tt]heir|[Yy]our)|[Tt]he)|(?P<owner>{NAME})"
    rf"(?:'s|(?<=s)'))\s+(?:[a-z-]+\s+){{0,2}}?{_TITLE}(?P<comma>,)?\s+(?P<n>{NAME})"
)
_AFTER = re.compile(
    rf"(?<![\w'])(?P<n>{NAME}),\s+(?:my|our|the|an?|{NAME}(?:'s|(?<=s)'))\s+"
    rf"(?:[a-z0-9-]+\s+){{0,2}}?{_TITLE}"
    r"(?=\s*(?:[,.!;:)…]|--|$))"
)
_TRIGGERS = frozenset(word.split()[-1] for word in OCCUPATIONS)


def titles(turn: Turn, sentence: Sentence, tokens: frozenset[str]) -> Iterator[Finding]:
    """Yield what persons who are named work as, where it stands beside the name."""
    if _TRIGGERS.isdisjoint(tokens):
        return
    plain = turn.plain
    for pattern, confidence in ((_BEFORE, 0.85), (_AFTER, 0.8)):
        for match in pattern.finditer(plain, sentence.start, sentence.end):
            who = name(plain, match.start("n"), match.end("n"))
            if who is None or (pattern is _AFTER and who.end != match.end("n")):
                continue
            if pattern is _BEFORE and match["comma"] and not plain.startswith(",", who.end):
                continue  # "Call my lawyer, Ann": somebody is addressed
            owned = pattern is _BEFORE and bool(match["own"] or match["owner"])
            yield Finding(
                "work", plain[who.start : who.end], "works_as", Span(*match.span("v")),
                match.start(), match.end(), "never", confidence, presupposed=owned,
            )  # fmt: skip
