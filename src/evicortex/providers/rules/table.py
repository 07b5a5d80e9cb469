"""What a rule is, and the pieces that patterns are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from evicortex.providers.rules.lexicon import KIN, either
from evicortex.providers.rules.moments import When
from evicortex.providers.rules.values import NAME
from evicortex.types import Polarity, Span

Reader = Callable[[str, int, int], Span | None]
"""Reads a value of the plain text at a position, not beyond an end."""

SPEAKER = "\0speaker"
"""Stands for whoever says the sentence."""

_ADVERBS = (
    "just also really still currently now recently actually finally already always absolutely "
    "totally definitely truly mostly usually only originally officially both all probably maybe "
    "kinda kind_of sort_of honestly personally even so very quite pretty genuinely especially "
    "particularly secretly simply generally"
)
ADVERB = rf"(?:\s+{either(word.replace('_', ' ') for word in _ADVERBS.split())})"
FIRST = r"(?<![\w'])(?P<i>[Ii]|[Ww]e)(?![\w])"
_KINDS = either(re.escape(word) for word in KIN)
OTHER = (
    rf"(?:\b(?:[Mm]y|[Oo]ur)\s+(?:(?:older|younger|little|big|best|oldest|youngest|twin|eldest)\s+)?"
    rf"(?P<kin>{_KINDS})(?:\s+(?P<kn>{NAME}))?|(?<![\w'])(?P<n>{NAME}))"
)
NOT_I = r"(?P<neg>\s+(?:do\s+not|don't|no\s+longer|never|did\s+not|didn't|can't|cannot|haven't|have\s+not|have\s+never))?"
NOT_OTHER = r"(?P<neg3>\s+(?:no\s+longer|never))?"
DOES_NOT = r"(?P<neg4>\s+(?:does\s+not|doesn't))"
BE_NOT = r"(?P<neg>\s+(?:not|no\s+longer|never))?"


def verb(first: str, third: str) -> str:
    """Return a pattern for "I {first}" or "NAME {third}", with adverbs and negation between."""
    return (
        rf"(?:{FIRST}{ADVERB}{{0,2}}{NOT_I}{ADVERB}{{0,2}}(?:\s+|(?='))(?:{first})"
        rf"|{OTHER}{ADVERB}{{0,2}}(?:{NOT_OTHER}{ADVERB}{{0,2}}\s+(?:{third})"
        rf"|{DOES_NOT}{ADVERB}{{0,2}}\s+(?:{first})))\s+"
    )


def be(after: str = "") -> str:
    """Return a pattern for "I'm {after}" or "NAME is {after}", with adverbs and "not" between."""
    return (
        rf"(?:{FIRST}(?:'m|\s+am|'re|\s+are(?P<neg3>n't)?)|{OTHER}\s+is(?P<neg4>n't)?)"
        rf"{BE_NOT}{ADVERB}{{0,3}}\s+{after}"
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of statement.

    ``triggers`` are lower-case words, one of which the sentence must hold for the rule to be
    tried. The value is what ``read`` finds where the match ends, or the group ``v``.
    ``denies`` turns the polarity round; ``subject`` names a group whose text is the subject.
    """

    topic: str
    triggers: frozenset[str]
    pattern: re.Pattern[str]
    predicate: str
    read: tuple[Reader, ...] = ()
    when: When = "state"
    confidence: float = 0.9
    denies: bool = False
    follows: re.Pattern[str] | None = None
    """What must follow the value."""
    affirms: bool = False
    """Whether a negation says nothing: "not in love" is no dislike."""


def rule(
    topic: str,
    triggers: str,
    pattern: str,
    predicate: str,
    *read: Reader,
    when: When = "state",
    confidence: float = 0.9,
    denies: bool = False,
    follows: str | None = None,
    affirms: bool = False,
) -> Rule:
    """Build a rule; the pattern is compiled, triggers are words in one string."""
    return Rule(
        topic,
        frozenset(triggers.split()),
        re.compile(pattern),
        predicate,
        read,
        when,
        confidence,
        denies,
        None if follows is None else re.compile(follows),
        affirms or denies,
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement as a rule found it: value span, and the stretch of text that states it."""

    topic: str
    subject: str
    predicate: str
    span: Span
    start: int
    end: int
    when: When
    confidence: float
    polarity: Polarity = Polarity.POSITIVE
    single: bool = False
    presupposed: bool = False
    notes: tuple[str, ...] = field(default=())
