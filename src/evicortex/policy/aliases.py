"""Other names of the people in a conversation, learned from how they speak to each other.

A name is learned from its owner ("My name is Kate") or from the only other person, who greets
with it or ends a clause with it ("Hey Kate!", "see you, Kate."). Names never leave the namespace
in which they were learned. The thresholds were set on development conversations.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evicortex.text import STOP_WORDS

_NAME = r"([^\W\d_][^\W\d_'’-]+)"
_GREETING = re.compile(
    r"(?:^|[.!?,]\s{1,3}|\n)(?i:hey|hi|hello|hiya|yo|dear|thanks|thank you|good morning"
    r"|good evening|good night|morning|bye|goodbye|congrats|congratulations|sorry|welcome|wow)"
    rf"(?: there)?,? {_NAME}"
    r"(?=\s{0,3}(?:[,.!?;:\n]|$|[A-Z]|(?:how|what|i|did|are|is|it)\b))"
)
_VOCATIVE = re.compile(rf", ?{_NAME} ?(?=[.!?]|$)")
_OWN = re.compile(rf"\b(?:[Mm]y name is|[Mm]y name['’]s|I go by|[Cc]all me) {_NAME}")
_WORD = re.compile(r"[^\W\d_]+")
_DOUBLED = re.compile(r"(.)\1+")

_NOT_NAMES = frozenset(
    """
    there everyone everybody all guys man dude bro god buddy friend mate folks team again yes no
    yeah thanks thank too though sir lol haha okay ok well please today tomorrow tonight sure you it
    me january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    """.split()
)

ADDRESSES = 3
"""A name must be used in address at least so often by the other person."""
LOWER_SHARE = 0.1
"""At most this share of all its uses may be in lower case."""
SPEAKER_SHARE = 0.75
"""At least this share of all its uses must be the other person's: people rarely name themselves."""
ADDRESS_SHARE = 0.3
"""At least this share of all its uses must be addresses, or it is the name of a third person."""


class Address(NamedTuple):
    """One use of a name in address, or (``own``) by its owner; ``row`` says where."""

    row: int
    actor: int
    name: str
    own: bool


@dataclass(frozen=True, slots=True)
class Uses:
    """All uses of a word in a conversation: by actor, and how many are in lower case."""

    by_actor: Mapping[int, int]
    lower: int

    @property
    def total(self) -> int:
        """Uses by anyone."""
        return sum(self.by_actor.values())


def addresses(row: int, actor: int, text: str) -> list[Address]:
    """Return the names with which ``text`` addresses someone or names its own speaker."""
    found = [
        Address(row, actor, match[1].casefold(), False)
        for pattern in (_GREETING, _VOCATIVE)
        for match in pattern.finditer(text)
        if match[1][0].isupper()
    ]
    if "name" in text or "all me" in text or "I go by" in text:
        found += [
            Address(row, actor, match[1].casefold(), True)
            for match in _OWN.finditer(text)
            if match[1][0].isupper()
        ]
    return found


def uses(word: str, texts: Iterable[tuple[int, str]]) -> Uses:
    """Count a case-folded word in (actor, text) pairs."""
    by_actor: Counter[int] = Counter()
    lower = 0
    for actor, text in texts:
        for found in _WORD.findall(text):
            if found.casefold() == word:
                by_actor[actor] += 1
                lower += found == word
    return Uses(by_actor, lower)


def name_parts(names: Mapping[int, str]) -> dict[str, set[int]]:
    """Return each case-folded word of the actors' names with the actors that bear it."""
    parts: dict[str, set[int]] = defaultdict(set)
    for actor, name in names.items():
        for word in _WORD.findall(name):
            parts[word.casefold()].add(actor)
    return dict(parts)


def learn(
    found: Sequence[Address],
    names: Mapping[int, str],
    count: Callable[[str], Uses],
) -> dict[str, int]:
    """Return case-folded aliases and whose they are.

    Args:
        found: every address of the conversation.
        names: the actors' own names by id.
        count: counts all uses of a case-folded word; asked only for likely names.
    """
    known = name_parts(names)
    spoken: dict[str, Counter[int]] = defaultdict(Counter)
    owners: dict[str, int] = {}
    for address in found:
        if address.own:
            owners[address.name] = address.actor
        else:
            spoken[address.name][address.actor] += 1
    learned: dict[str, int] = {}
    for name, by_actor in sorted(spoken.items()):
        speaker, times = min(by_actor.items(), key=lambda pair: (-pair[1], pair[0]))
        others = [actor for actor in names if actor != speaker]
        if times < ADDRESSES or len(others) != 1 or _is_common(name, known):
            continue
        every = count(name)
        if (
            every.lower <= LOWER_SHARE * every.total
            and every.by_actor.get(speaker, 0) >= SPEAKER_SHARE * every.total
            and times >= ADDRESS_SHARE * every.total
        ):
            learned[name] = others[0]
    for name, owner in sorted(owners.items()):
        if not _is_common(name, known):
            every = count(name)
            if every.lower <= LOWER_SHARE * every.total:
                learned[name] = owner
    return learned


def _is_common(name: str, known: Mapping[str, set[int]]) -> bool:
    return len(name) < 2 or name in known or name in _NOT_NAMES or name in STOP_WORDS


def misspelt(word: str, bearers: Mapping[str, int]) -> int | None:
    """Return whose name a case-folded ``word`` misspells, when that is clear.

    One edit for names of up to five letters, two for longer ones (Damerau-Levenshtein, adjacent
    swaps count once), same first letter, doubled letters also taken as one. ``None`` when no
    name is that near, or names of two people are.
    """
    if len(word) < 4:
        return None
    near = {
        owner
        for name, owner in bearers.items()
        if len(name) >= 4 and name[0] == word[0] and _is_near(word, name)
    }
    return near.pop() if len(near) == 1 else None


def _is_near(word: str, name: str) -> bool:
    limit = 1 if len(name) < 6 else 2
    if edits(word, name, limit) <= limit:
        return True
    return edits(_DOUBLED.sub(r"\1", word), _DOUBLED.sub(r"\1", name), limit) <= limit


def edits(left: str, right: str, limit: int) -> int:
    """Return the restricted Damerau-Levenshtein distance, or ``limit`` + 1 when lengths exclude it.

    Damerau, A technique for computer detection and correction of spelling errors, 1964.
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        current = [i]
        for j, b in enumerate(right, start=1):
            cost = min(row[j] + 1, current[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            current.append(cost)
        before, row = row, current
    return row[-1]
