"""Which of a namespace's actors a text names. Pure.

Names match whole words, without regard to case, accents or possessives, also when they have
several words; names in scripts without spaces match anywhere. One word of a longer name counts
when no other actor shares it. A name that is also an everyday word ("Will", "May", "Rose")
counts only where its capital cannot come from anything else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from evicortex.policy.aliases import misspelt
from evicortex.text import STOP_WORDS, fold, words
from evicortex.text.scripts import CJK, HANGUL, SOUTH_EAST_ASIAN
from evicortex.text.times.words import MONTHS, WEEKDAYS, listed
from evicortex.types import Span

Source = Literal["name", "part", "alias", "misspelling"]


@dataclass(frozen=True, slots=True)
class NameMention:
    """One mention of an actor; ``source`` says by what.

    ``span`` includes a possessive ending, and the article of "the assistant".
    """

    actor: str
    span: Span
    text: str
    source: Source


class _Token(NamedTuple):
    folded: str
    start: int
    end: int
    possessive: int  # where the possessive ending stops; ``end`` when there is none


class _Entry(NamedTuple):
    tokens: tuple[str, ...]
    actor: str
    source: Source


EVERYDAY = frozenset(
    {*STOP_WORDS, *MONTHS, *WEEKDAYS}
    | set(
        listed(
            "amber angel archer art august autumn baker basil bay bear bell bill black bond brook "
            "brown buck butcher carol carter chance charity chase christian clay cliff cook cooper "
            "coral crystal daisy dale dawn dean dear dot drew duke earl early eve faith fisher "
            "forest fox frank gene ginger glen gold grace grant gray green grey guy hank happy "
            "harmony hazel heath heather herb holly honey hope hunter iris ivy jack jade jasmine "
            "jay jewel job joy juan king lance lane lily long love major mark marina mason max "
            "melody mercy miles miller mine misty moon nick norm ocean olive page park parker "
            "patience pat pearl peg penny piper pierce poppy prince queen rain ray red reed rich "
            "river rob robin rock rocky rose ruby rusty ruth sage sandy scarlet sky skip smith "
            "star stone stormy sue summer sunny tanner taylor tiger trip tucker violet wade walker "
            "ward west white wing winter wolf wood woods young"
        )
    )
)
"""Words that are names only when something says so."""

_ROLES = frozenset(
    listed("user assistant system human ai bot agent tool speaker customer client model")
)
_SUBJECT_NEXT = frozenset(
    listed(
        "is was has had does did and or said says told tells went goes got gets will would can "
        "could likes liked loves loved lives lived works worked moved bought made"
    )
)
_SPACELESS = re.compile(f"[{CJK}{HANGUL}{SOUTH_EAST_ASIAN}]")
_HYPHEN = re.compile(r"[^-‐‑]+")
_GAP = re.compile(r"[\s._‐‑-]{0,3}")
_MISSPELT_LENGTH = 4


def _tokens(text: str) -> list[_Token]:
    found = []
    for word in words(text):
        for piece in _HYPHEN.finditer(word.text):
            start, end = word.start + piece.start(), word.start + piece.end()
            stop = end
            if piece[0][-2:].casefold() in ("'s", "’s"):
                end -= 2
            elif text[end : end + 1] in ("'", "’") and piece[0][-1:] in "sSxzZ":
                stop += 1
            found.append(_Token(fold(text[start:end]).strip(), start, end, stop))
    return found


class Names:
    """The names of a namespace's actors, prepared for look-up; build once, use for many queries.

    Args:
        actors: the actors' names, as recorded.
        aliases: other names, in any case, and the actor that each belongs to.
    """

    def __init__(
        self, actors: Iterable[str] = (), aliases: Mapping[str, str] | None = None
    ) -> None:
        self.actors = tuple(dict.fromkeys(actor for actor in actors if actor.strip()))
        self._entries: dict[str, list[_Entry]] = {}
        self._literal: list[tuple[str, str]] = []
        self._bearers: dict[str, int] = {}
        parts: dict[str, set[str]] = {}
        for actor in self.actors:
            tokens = self._add(actor, actor, "name")
            for token in tokens if len(tokens) > 1 else ():
                if len(token) > 1 and not token.isdecimal():
                    parts.setdefault(token, set()).add(actor)
        for alias, actor in (aliases or {}).items():
            if actor in self.actors:
                self._add(alias, actor, "alias")
        for token, owners in parts.items():
            if len(owners) == 1 and token not in self._bearers:
                self._add(token, min(owners), "part")
        for entries in self._entries.values():
            entries.sort(key=lambda entry: -len(entry.tokens))
        self._literal.sort(key=lambda pair: -len(pair[0]))

    def _add(self, name: str, actor: str, source: Source) -> tuple[str, ...]:
        tokens = tuple(token.folded for token in _tokens(name) if token.folded)
        if not tokens or _SPACELESS.search(name):
            self._literal.append((name, actor))
            return ()
        self._entries.setdefault(tokens[0], []).append(_Entry(tokens, actor, source))
        if len(tokens) == 1:
            self._bearers.setdefault(tokens[0], self.actors.index(actor))
        return tokens

    def find(
        self, text: str, *, rare: Callable[[str], bool] | None = None
    ) -> tuple[NameMention, ...]:
        """Return the mentions in the order of the text, without overlap.

        ``rare`` says whether a folded word is so rare in the conversation that it may be a
        misspelt name; ``None`` takes no word for one.
        """
        taken = bytearray(len(text))
        found = self._find_literal(text, taken)
        tokens = _tokens(text) if self._entries else []
        at = 0
        while at < len(tokens):
            entry = self._entry_at(text, tokens, at)
            if entry is None and rare is not None:
                entry = self._misspelling(text, tokens[at], rare)
            if entry is None:
                at += 1
                continue
            last = tokens[at + len(entry.tokens) - 1]
            first = tokens[at - 1] if entry.tokens[0] in _ROLES and at else tokens[at]
            span = Span(first.start, last.possessive)
            at += len(entry.tokens)
            if taken.find(1, span.start, span.end) < 0:
                written = text[span.start : last.end]
                found.append(NameMention(entry.actor, span, written, entry.source))
        return tuple(sorted(found, key=lambda mention: mention.span))

    def _find_literal(self, text: str, taken: bytearray) -> list[NameMention]:
        found: list[NameMention] = []
        for name, actor in self._literal:
            at = text.find(name)
            while at >= 0:
                end = at + len(name)
                if taken.find(1, at, end) < 0:
                    taken[at:end] = b"\1" * len(name)
                    found.append(NameMention(actor, Span(at, end), name, "name"))
                at = text.find(name, end)
        return found

    def _entry_at(self, text: str, tokens: list[_Token], at: int) -> _Entry | None:
        for entry in self._entries.get(tokens[at].folded, ()):
            run = tokens[at : at + len(entry.tokens)]
            if tuple(token.folded for token in run) != entry.tokens:
                continue
            if not all(
                _GAP.fullmatch(text, left.end, right.start) for left, right in pairwise(run)
            ):
                continue
            if len(run) > 1 or _is_name(text, tokens, at):
                return entry
        return None

    def _misspelling(self, text: str, token: _Token, rare: Callable[[str], bool]) -> _Entry | None:
        word = token.folded
        if len(word) < _MISSPELT_LENGTH or not text[token.start].isupper() or word in EVERYDAY:
            return None
        owner = misspelt(word, self._bearers)
        if owner is None or not rare(word):
            return None
        return _Entry((word,), self.actors[owner], "misspelling")


def _is_name(text: str, tokens: list[_Token], at: int) -> bool:
    token = tokens[at]
    if token.folded in _ROLES:
        return at > 0 and tokens[at - 1].folded in ("the", "my")
    if token.folded not in EVERYDAY:
        return True
    written = text[token.start : token.end]
    if not written[0].isupper() or (len(written) > 1 and written.isupper()):
        return False
    opening = text[: token.start].rstrip(" \t\"'“‘(*")
    if opening and opening[-1] not in ".!?\n:;":
        return True
    # The capital may be the sentence's: "Will she come?", "Hope you are well."
    after = tokens[at + 1].folded if at + 1 < len(tokens) else ""
    return token.possessive > token.end or after in _SUBJECT_NEXT
