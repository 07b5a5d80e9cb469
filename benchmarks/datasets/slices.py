"""Conversations of other kinds, made by rule from those that a file holds.

Nothing may be worse on a conversation without dates, without names, with one speaker, or between
a user and an assistant. Few data sets are of these kinds, so they are derived: each function is
pure, draws nothing, and leaves turn ids, sessions, gold and answers as they are. (A word of an
answer that a text no longer contains is not asked of a pack.)

Only the speakers' own names, as they are written, are replaced; nicknames and other people stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.datasets.base import Conversation

NEUTRAL = "someone"
USER, ASSISTANT = "user", "assistant"
_OBJECT_AFTER = "about|after|at|before|by|for|from|like|of|on|than|to|with"
_POSSESSIVE = r"(?P<own>['’]s\b|(?<=s)['’])?"


def speakers(conversation: Conversation) -> tuple[str, ...]:
    """Return the names of those who speak, in the order in which they begin."""
    return tuple(dict.fromkeys(turn.actor for turn in conversation.turns if turn.actor))


def without_dates(conversation: Conversation) -> Conversation:
    """Take the time from every turn; questions that name a date are asked all the same."""
    turns = (replace(turn, occurred_at=None) for turn in conversation.turns)
    return replace(conversation, turns=tuple(turns))


def without_names(conversation: Conversation) -> Conversation:
    """Store every turn without an actor; in texts and questions the speakers are "someone"."""
    return _renamed(conversation, actor="", name=NEUTRAL)


def one_speaker(conversation: Conversation) -> Conversation:
    """Let the first speaker say everything; texts and questions call both by that name."""
    name = speakers(conversation)[0]
    return _renamed(conversation, actor=name, name=name)


def _renamed(conversation: Conversation, *, actor: str, name: str) -> Conversation:
    names = _either(speakers(conversation))
    return replace(
        conversation,
        turns=tuple(
            replace(turn, actor=actor, text=names.sub(name, turn.text))
            for turn in conversation.turns
        ),
        queries=tuple(
            replace(query, text=names.sub(name, query.text), query_actor=None)
            for query in conversation.queries
        ),
    )


def assistant_chat(conversation: Conversation) -> Conversation:
    """Make the speaker whom most questions name the user, and the others the assistant.

    The user asks every question: the user's name becomes "I" ("me" after a preposition, "my" for
    the possessive), the assistant's "you" ("your"). Verbs and the turns' texts stay as they are.
    """
    names = speakers(conversation)
    named = Counter(
        name for query in conversation.queries for name in set(_either(names).findall(query.text))
    )
    user = max(names, key=lambda name: named[name])
    turns = tuple(
        replace(turn, actor=role, role=role)
        for turn in conversation.turns
        for role in (USER if turn.actor == user else ASSISTANT,)
    )
    queries = tuple(
        replace(query, text=_to_persons(query.text, user, names), query_actor=USER)
        for query in conversation.queries
    )
    return replace(conversation, turns=turns, queries=queries)


def _to_persons(text: str, user: str, names: tuple[str, ...]) -> str:
    pattern = re.compile(
        rf"(?P<before>\b(?:{_OBJECT_AFTER})\s+)?{_either(names).pattern}{_POSSESSIVE}"
    )

    def person(found: re.Match[str]) -> str:
        before = found["before"] or ""
        if found["name"] != user:
            return before + ("your" if found["own"] else "you")
        if found["own"]:
            return before + "my"
        return before + ("me" if before else "I")

    return pattern.sub(person, text)


def _either(names: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    return re.compile(rf"\b(?P<name>{'|'.join(map(re.escape, longest_first))})\b")


SLICES: Mapping[str, Callable[[Conversation], Conversation]] = {
    "no dates": without_dates,
    "no names": without_names,
    "one speaker": one_speaker,
    "assistant chat": assistant_chat,
}
"""The name of each slice and how it is made."""
