"""The details of what someone asks to be found or booked: where, when, from and to where.

A request ("find me a flight from Oslo to Rome on 3 May") is a plan of the speaker, and its
details are claims that later requests replace. A short reply takes its meaning from the question
that it answers, which is read and never cited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from evicortex.providers.rules.framing import Sentence, Turn
from evicortex.providers.rules.lexicon import either, listed
from evicortex.providers.rules.moments import Times
from evicortex.providers.rules.table import SPEAKER, Finding
from evicortex.providers.rules.values import CLOCK, NAME, place, venue
from evicortex.types import Granularity, Span

_WANTED = (
    r"(?:flights?|tables?|restaurants?|reservations?|tickets?|events?|concerts?|games?|shows?"
    r"|hotels?|rooms?|rides?|cabs?|taxis?|things\s+to\s+do|something\s+to\s+do"
    r"|places?\s+to\s+(?:eat|stay|visit)|round\s?trips?|one[- ]way|return\s+trip|trip"
    r"|appointments?|bus(?:es)?|trains?|rental\s+cars?|dentists?|doctors?|therapists?"
    r"|(?:hair\s?)?(?:stylists?|salons?)|attractions?|museums?|weather|forecast|apartments?)"
)
_TASK = re.compile(
    r"\b(?:(?:find|book|reserve|search|get|show|look|looking|searching|want|need|like|help|make|save|check)"
    rf"\s+(?:[\w'-]+\s+){{0,8}}?{_WANTED}"
    r"|(?:want|need|like|planning|wish)\s+to\s+(?:fly|depart|travel|book|reserve|eat|dine)"
    r"|(?:find|search|book|reserve)\s+(?:\w+\s+){0,3}?(?:in|at|for))\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:i'd|we'd|i\s+would|want|need|wanna|looking|searching|find|search|book|reserve|reservation"
    r"|get\s+me|help|please|can\s+you|could\s+you|would\s+you|show\s+me|make\s+(?:it|that)|try"
    r"|i'm|i\s+am|we\s+are|we're|i\s+(?:\w+\s+)?(?:depart|leave|return|fly|arrive|plan|prefer|think)|i'll|i\s+will|will\s+be|should\s+be|would\s+be"
    r"|how\s+about|what\s+about|instead|leaving|returning|departing|look\s+(?:for|at)|check|flights?|table)\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:went|took|visited|was|were|had|got|did|saw|came|flew|drove|made|started|have\s+been|'ve\s+been"
    r"|last\s+(?:week|month|year|night|weekend|summer|time)|ago|yesterday|used\s+to|bought|felt|loved)\b",
    re.IGNORECASE,
)
_TOPIC_TRAVEL = re.compile(
    r"\b(?:flights?|fly\w*|depart\w*|travel\w*|trip|leav\w+|journey|airline|airport|cab|taxi|rides?|bus(?:es)?|trains?|from\s+[A-Z]\w+(?:\s[A-Z]\w+)?\s+to\s+[A-Z]|round\s?trip|one[- ]way)\b",
    re.IGNORECASE,
)
_FROM = re.compile(
    r"\b(?:from|out\s+of|leaving|departing|depart|leave)\s+(?:from\s+|out\s+of\s+)?(?:the\s+)?(?=[A-Z])",
)
_TO = re.compile(
    r"\b(?:to|towards|arrive\s+(?:in|at)|arriving\s+(?:in|at)|arrive|visit|visiting|for\s+destination|destination\s+is|destination\s+will\s+be|destination\s+to)\s+(?:the\s+)?(?=[A-Z])"
)
_IN = re.compile(
    r"\b(?:in|around|near|over\s+in|within|at)\s+(?:the\s+)?(?:city\s+of\s+)?(?=[A-Z])"
)
_AT = re.compile(
    r"\b(?:at|try(?:\s+out)?|visit|called|named|specifically|restaurant\s+is|go\s+to|eat\s+at|dine\s+at"
    r"|check\s+out|go\s+(?:for|with))\s+(?:the\s+)?(?=[A-Z])"
)
_BACK = re.compile(r"\b(?:return\w*|back|come\s+home|coming\s+home)\b", re.IGNORECASE)
_NOT_PLACES = re.compile(
    r"(?:Economy|Premium|Business|First|Delta|American|United|Southwest|Alaska|Airlines?|Class|Christian)\b"
    r"|[A-Z][\w ]{0,20}?\s(?:Airlines?|class)\b"
)


class Asked(NamedTuple):
    """What the turn before asked for; at most one place and one time of a kind can be meant."""

    place: str | None
    day: str | None
    clock: bool
    open: bool
    """Whether it asked anything that this module knows."""


_ASK_FROM = re.compile(
    r"\b(?:from|depart\w*|leav\w+|origin|starting|fly(?:ing)?\s+out)\b", re.IGNORECASE
)
_ASK_TO = re.compile(
    r"\b(?:destinations?|headed|heading|arriv\w+|to\s+(?:what|which|where)|(?:where|which|what)\b[^?.]*\b"
    r"(?:go|going|fly(?:ing)?|travel(?:l?ing)?|visit)\b(?!\s+(?:from|out)))",
    re.IGNORECASE,
)
_ORIGIN = re.compile(r"\b(?:origin|departure)\b", re.IGNORECASE)
_ASK_PLACE = re.compile(r"\b(?:city|cities|location|area|where|town|airport)\b", re.IGNORECASE)
_ASK_VENUE = re.compile(r"\b(?:restaurant|place\s+to\s+eat|venue)\b", re.IGNORECASE)
_ASK_DAY = re.compile(r"\b(?:dates?|days?|when)\b", re.IGNORECASE)
_ASK_BACK = re.compile(r"\b(?:return\w*|back)\b", re.IGNORECASE)
_ASK_CLOCK = re.compile(
    r"\b(?:what|which|at\s+what|your|preferred)\s+(?:tim(?:e|ing))\b|\btiming\b", re.IGNORECASE
)
_ASK_KIND = re.compile(r"\b(?:kind|type|sort|category|genre)s?\b", re.IGNORECASE)
_QUESTION = re.compile(r"[^.!?]*\?")
_NOTHING = Asked(None, None, False, False)


def asked(previous: str | None) -> Asked:
    """Return what the questions of the turn before ask for."""
    if not previous or "?" not in previous:
        return _NOTHING
    text = " ".join(match[0] for match in _QUESTION.finditer(previous))
    where, travels = bool(_ASK_PLACE.search(text)), bool(_TOPIC_TRAVEL.search(text))
    places = {
        predicate
        for predicate, wanted in (
            ("travels_from", _ASK_FROM.search(text) and (where or _ORIGIN.search(text))),
            ("travels_to", _ASK_TO.search(text)),
            ("plans_venue", _ASK_VENUE.search(text)),
        )
        if wanted
    }
    if where and not travels and not places & {"travels_from", "travels_to"}:
        places.add("plans_in")
    day = None
    if _ASK_DAY.search(text):
        ahead = "travels_on" if travels else "plans_on"
        day = "returns_on" if _ASK_BACK.search(text) else ahead
    clock = bool(_ASK_CLOCK.search(text))
    known = bool(places or day or clock or _ASK_KIND.search(text))
    return Asked(places.pop() if len(places) == 1 else None, day, clock, known)


class Topic(NamedTuple):
    """What the conversation is about, as far as a detail's meaning depends on it."""

    travel: bool
    task: bool


def topic(turn: Turn, earlier: list[str]) -> Topic:
    """Return the topic of the turn, or of the newest earlier one that has one."""
    for text in (turn.plain, *reversed(earlier)):
        if _TASK.search(text):
            return Topic(bool(_TOPIC_TRAVEL.search(text)), True)
    return Topic(any(_TOPIC_TRAVEL.search(text) for text in (turn.plain, *earlier[-1:])), False)


_KINDS_OF_EVENT = either(
    listed(
        "baseball basketball football american_football soccer hockey ice_hockey tennis golf "
        "cricket rugby volleyball boxing wrestling rock pop jazz blues country electronica "
        "electronic hip_hop rap classical folk metal punk reggae indie gospel christian latin "
        "opera comedy theater ballet"
    )
)
_KIND = re.compile(
    rf"(?:\b(?P<v>{_KINDS_OF_EVENT})\s+(?:concerts?|games?|match(?:es)?|music|shows?|festivals?"
    r"|events?|ones?|artists?|types?)\b"
    r"|\b(?:like|love|enjoy|prefer|especially|specifically|fond\s+of|see)\s+(?:the\s+)?"
    rf"(?P<w>{_KINDS_OF_EVENT})(?=[.,!?]|$|\s(?:and|or|if|please|in|around|near|on)\b))",
    re.IGNORECASE,
)


class _Details(NamedTuple):
    turn: Turn
    sentence: Sentence
    times: Times
    about: Topic
    asked: Asked

    def found(self, predicate: str, span: Span, confidence: float = 0.85) -> Finding:
        return Finding(
            "requests", SPEAKER, predicate, span, span.start, span.end, "never", confidence,
            single=True,
        )  # fmt: skip

    @property
    def end(self) -> int:
        return self.sentence.end

    def text(self) -> str:
        return self.turn.plain[self.sentence.start : self.sentence.end]


def bookings(
    turn: Turn, sentence: Sentence, times: Times, about: Topic, question: Asked
) -> Iterator[Finding]:
    """Yield the details of a request, or of the short reply to a question about one."""
    details = _Details(turn, sentence, times, about, question)
    text = details.text()
    requested = about.task and bool(_REQUEST.search(text))
    replied = about.task and question.open
    if not (requested or replied) or _FACTS.match(text) or _TOLD.search(text):
        return
    taken: list[Span] = []
    for finding in (*_days(details), *_clocks(details), *_places(details), *_kinds(details)):
        if not any(s.start < finding.span.end and finding.span.start < s.end for s in taken):
            taken.append(finding.span)
            yield finding


_FACTS = re.compile(
    r"^\W*(?:(?:and|so|ok(?:ay)?|great|sounds?\s+good|also)[,.]?\s+)*(?:(?:at|on|in|from|to)\s+(?:what|which)|what(?!\s+about)|when|where|which|who|how(?!\s+about)|is|are|does|do|did|was|will)\b[^?]*\?",
    re.IGNORECASE,
)


def _days(details: _Details) -> Iterator[Finding]:
    plain, sentence = details.turn.plain, details.sentence
    spans = [
        mention.span
        for mention in details.times.within(sentence.start, sentence.end)
        if mention.granularity is Granularity.DAY
    ]
    for match in _BARE_DAY.finditer(plain, sentence.start, sentence.end):
        if not any(span.start < match.end() and match.start() < span.end for span in spans):
            spans.append(Span(*match.span()))
    for span in spans:
        yield details.found(_day_predicate(details, span, alone=len(spans) == 1), span)


_BARE_DAY = re.compile(r"\bthe\s[0-3]?[0-9](?:st|nd|rd|th)\b(?!\s+(?:of|game|time|one|floor))")
_OUTWARD = re.compile(r"\b(?:leav|depart|out)\w*", re.IGNORECASE)


def _day_predicate(details: _Details, span: Span, *, alone: bool) -> str:
    plain, sentence = details.turn.plain, details.sentence
    before = plain[sentence.start : span.start]
    clause = before if alone else re.split(r"\band\b|,", before)[-1]
    returning = _BACK.search(clause) or re.match(r"\s+return", plain[span.end : sentence.end])
    if returning or (details.asked.day == "returns_on" and not _OUTWARD.search(clause)):
        return "returns_on"
    return "travels_on" if details.about.travel else "plans_on"


def _clocks(details: _Details) -> Iterator[Finding]:
    for match in CLOCK.finditer(details.turn.plain, details.sentence.start, details.end):
        yield details.found("plans_at_time", Span(*match.span()))


def _places(details: _Details) -> Iterator[Finding]:
    plain, start, end = details.turn.plain, details.sentence.start, details.end
    forms: list[tuple[re.Pattern[str], str, float]]
    if details.about.travel:
        forms = [(_FROM, "travels_from", 0.9), (_TO, "travels_to", 0.9)]
    else:
        forms = [(_IN, "plans_in", 0.85), (_AT, "plans_venue", 0.8)]
    found = False
    for pattern, predicate, confidence in forms:
        for match in pattern.finditer(plain, start, end):
            if _NOT_PLACES.match(plain, match.end(), end):
                continue
            read = venue if predicate == "plans_venue" else place
            span = read(plain, match.end(), end)
            if span is None or (predicate == "plans_venue" and details.times.at(span.start)):
                continue
            if predicate == "plans_in" and match[0].lower().startswith("at "):
                continue
            found = True
            yield details.found(predicate, span, confidence)
    if not found and details.asked.place:
        span = _reply(plain, start, end)
        if span is not None:
            yield details.found(details.asked.place, span, 0.85)


_REPLY = re.compile(
    rf"\W*(?:(?:[Yy]es|[Yy]eah|[Ss]ure|[Oo]k(?:ay)?|[Ii]t'?s|[Ii]t\s+is|[Ii]n|[Tt]o|[Ff]rom|[Ii]'?m?\s*(?:in|from|at|to)|[Tt]he\s+city\s+(?:is|of)|[Pp]lease|[Tt]ry|[Aa]t|[Aa]round|[Nn]ear|[Mm]aybe|[Ll]et's\s+(?:go\s+with|try|do)|[Gg]o\s+(?:for|with))[,.]?\s+){{0,3}}"
    rf"(?P<v>{NAME})(?:,\s?[A-Z][\w.]*)?(?=\s*(?:[.!?,]|please|$|would|is\b|for\b|so\b|and\b|but\b))"
)


def _reply(plain: str, start: int, end: int) -> Span | None:
    match = _REPLY.match(plain, start, end)
    if match is None or _NOT_PLACES.match(plain, match.start("v"), end):
        return None
    return place(plain, match.start("v"), end)


def _kinds(details: _Details) -> Iterator[Finding]:
    if details.about.travel:
        return
    for match in _KIND.finditer(details.turn.plain, details.sentence.start, details.end):
        group = "v" if match["v"] else "w"
        yield details.found("plans_kind", Span(*match.span(group)), 0.8)
