"""Schedules, and statements that lean on an earlier one: "actually it's the 14th", "we broke up"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from evicortex.providers.rules.framing import Sentence, Turn
from evicortex.providers.rules.moments import Times
from evicortex.providers.rules.table import SPEAKER, Finding
from evicortex.providers.rules.values import CLOCK, NAME, liked, name, place
from evicortex.types import Diagnostic, Polarity, Span

_EVENT = (
    r"(?:wedding|party|appointment|interview|exam|trip|flight|meeting|concert|graduation|game|"
    r"ceremony|surgery|operation|recital|reunion|conference|deadline|test|presentation|funeral|"
    r"anniversary|baptism|audition|rehearsal|race|marathon|match|dinner|lunch|check-?up|class|"
    r"course|workshop|show|exhibition|festival|tournament|vacation|holiday|move|due\s+date)"
)
_SCHEDULE = re.compile(
    rf"(?:(?P<my>\b[Mm]y|\b[Oo]ur)|(?P<the>\b[Tt]he)|(?P<owner>{NAME})'s)\s+"
    rf"(?P<event>(?:[\w-]+\s+){{0,2}}?{_EVENT})"
    r"(?:'s|\s+(?:is|will\s+be|takes?\s+place|starts?|(?:has\s+been|is|got|was)\s+"
    r"(?:moved|rescheduled|scheduled|postponed|set|pushed)(?:\s+back)?))\s+"
    r"(?:(?:to|on|at|in|for|now|actually|coming\s+up|scheduled)\s+){0,3}"
)
_BIRTHDAY = re.compile(
    rf"(?:(?P<my>\b[Mm]y)|(?P<owner>{NAME})'s)\s+birthday(?:'s|\s+is)\s+(?:coming\s+up\s+)?(?:on\s+)?"
)
_BORN = re.compile(r"(?<![\w'])(?P<my>I)\s+was\s+born\s+(?:on|in)\s+")
_CORRECTS = re.compile(
    r"\W*(?:(?:oh|ah|oops|hmm|hm|uh|um|wait|sorry|no|well)[,.!\s…]+)*"
    r"(?:actually|correction|sorry|i\s+mean|i\s+meant(?:\s+to\s+say)?|my\s+mistake|scratch\s+that|no|wait|make\s+that)\b[\s,:.!-]*"
    r"(?:(?:it's|it\s+is|it\s+was|it'll\s+be|it\s+will\s+be|that's|that\s+is|that\s+should\s+be|it\s+should\s+be|make\s+it|i\s+meant|i\s+mean|they\s+moved\s+it\s+to"
    r"|it(?:'s|\s+has|\s+is)?(?:\s+been|\s+got)?\s+moved\s+to|it\s+moved\s+to)\s+)?(?:now\s+)?(?:on\s+|at\s+|in\s+|for\s+)?",
    re.IGNORECASE,
)
_EXPLICIT = re.compile(
    r"\b(?:it's|it\s+is|it\s+was|it'll|it\s+will|that's|that\s+is|should\s+be|make\s+it|meant|moved|correction|scratch)\b",
    re.IGNORECASE,
)
_THAT = re.compile(r"\bthat(?:'s|\s+is)\b", re.IGNORECASE)
_WE_BROKE_UP = re.compile(
    r"\b(?P<v>[Ww]e(?:'ve)?\s+(?:just\s+|recently\s+|finally\s+|have\s+)?(?:broke\s+up|broken\s+up|split\s+up|got\s+divorced|separated))\b"
)
_LEFT_JOB = re.compile(
    r"(?<![\w'])(?P<v>I(?:'ve)?\s+(?:just\s+|recently\s+|finally\s+|have\s+)?(?:quit|left|lost)\s+my\s+job)\b(?!\s+(?:at|with)\s+[A-Z])"
)
_NOT_THERE = (
    r"(?<![\w'])(?P<v>(?:[Ii]|[Ww]e)\s+(?:no\s+longer\s+{verb}\s+(?:there|here)"
    r"|(?:don't|do\s+not)\s+{verb}\s+(?:there|here)\s+any\s?more))\b"
)
_LIVE_THERE = re.compile(_NOT_THERE.format(verb="live"))
_WORK_THERE = re.compile(_NOT_THERE.format(verb="work"))
_DAY_PREDICATES = frozenset(("scheduled_for", "birthday"))
_NAME_PREDICATES = frozenset(
    "lives_in works_at studies_at hometown name spouse dating engaged_to born_in".split()
)

Earlier = Callable[[], Sequence[tuple[Finding, str]]]
"""Findings before the sentence, newest first, each with the text of its value."""


def schedules(turn: Turn, sentence: Sentence, times: Times) -> Iterator[Finding]:
    """Yield on what day an event or a birthday is."""
    plain = turn.plain
    for pattern, predicate in (
        (_SCHEDULE, "scheduled_for"),
        (_BIRTHDAY, "birthday"),
        (_BORN, "birthday"),
    ):
        for match in pattern.finditer(plain, sentence.start, sentence.end):
            span = _day(plain, times, match.end())
            subject = _subject(match)
            if span is None or subject is None:
                continue
            yield Finding(
                "events", subject, predicate, span, match.start(), span.end, "never", 0.85,
                single=True,
            )  # fmt: skip


_FAVOURITE = re.compile(
    r"(?:\b(?P<my>[Mm]y)|(?P<owner>"
    + NAME
    + r")'s)\s+(?:all-time\s+|absolute\s+|personal\s+)?favou?rite\s+"
    r"(?P<thing>[a-z-]+(?:\s[a-z-]+)?)(?:'s|\s+is|\s+are|\s+was|\s+has\s+to\s+be)\s+(?:probably\s+|definitely\s+|the\s+)?"
)
_IS_FAVOURITE = re.compile(
    r"(?P<v>"
    + NAME
    + r")(?:'s|\s+is)\s+(?:probably\s+|definitely\s+|still\s+|also\s+)?my\s+(?:all-time\s+|absolute\s+)?favou?rite"
    r"(?:\s+(?P<thing>[a-z-]+))?\b"
)


def favourites(turn: Turn, sentence: Sentence) -> Iterator[Finding]:
    """Yield what is someone's favourite, under ``favorite_`` and the kind of thing."""
    plain = turn.plain
    for match in _FAVOURITE.finditer(plain, sentence.start, sentence.end):
        at = match.end()
        span = name(plain, at, sentence.end) or liked(plain, at, sentence.end)
        if span is not None and match["thing"] not in _NO_KIND:
            subject = SPEAKER if match["my"] else match["owner"]
            yield _favourite(match, subject, match["thing"], span)
    for match in _IS_FAVOURITE.finditer(plain, sentence.start, sentence.end):
        span = name(plain, match.start("v"), match.end("v"))
        thing = match["thing"] or ""
        if span is not None and thing and thing not in _NO_KIND:
            yield _favourite(match, SPEAKER, thing, span)


_NO_KIND = frozenset("one ones thing things part parts of and too for so to way in by".split())


def _favourite(match: re.Match[str], subject: str, thing: str, span: Span) -> Finding:
    kind = thing.removesuffix("s") if not thing.endswith("ss") else thing
    return Finding(
        "preferences", subject, f"favorite_{kind.replace(' ', '_')}", span, match.start(),
        max(match.end(), span.end), "never", 0.9,
    )  # fmt: skip


def _day(plain: str, times: Times, at: int) -> Span | None:
    mention = times.at(at)
    if mention is not None:
        return mention.span
    clock = CLOCK.match(plain, at)
    if clock:
        return Span(*clock.span())
    bare = re.compile(r"the\s+[0-3]?[0-9](?:st|nd|rd|th)\b").match(plain, at)
    return Span(*bare.span()) if bare else None


def _subject(match: re.Match[str]) -> str | None:
    groups = match.groupdict()
    event = groups.get("event")
    if event is None:
        return SPEAKER if groups["my"] else groups.get("owner")
    event = " ".join(event.split())
    if groups["my"]:
        return f"{SPEAKER}'s {event}"
    if groups.get("owner"):
        return f"{groups['owner']}'s {event}"
    return event


def corrections(
    turn: Turn, sentence: Sentence, times: Times, earlier: Earlier, *, answers: bool
) -> Iterator[Finding | Diagnostic]:
    """Yield what a correction puts in place of the newest earlier statement of its kind.

    A day fits nothing but a day. A name could be anybody's or any place's: it corrects only the
    newest statement of all, ends its sentence, and ``answers`` nobody's question.
    """
    match = _CORRECTS.match(turn.plain, sentence.start, sentence.end)
    if match is None or not match[0].strip():
        return
    at = match.end()
    day = _day(turn.plain, times, at)
    other = None if day else place(turn.plain, at, sentence.end)
    span = day or other
    if span is None:
        return
    ends = _ends(turn.plain, span.end, sentence.end)
    if not ends and not (day and _EXPLICIT.search(match[0])):
        return
    if not day and (answers or _THAT.search(match[0])):
        return
    wanted = _DAY_PREDICATES if day else _NAME_PREDICATES
    for finding, value in earlier() if day else earlier()[:1]:
        if finding.predicate in wanted and finding.polarity is Polarity.POSITIVE:
            if value.casefold() == turn.text[span.start : span.end].casefold():
                continue
            yield Finding(
                "corrections", finding.subject, finding.predicate, span,
                sentence.start, span.end, finding.when, 0.85, single=finding.single,
            )  # fmt: skip
            return
    yield _unresolved(turn, sentence.start, span.end)


def _ends(plain: str, at: int, end: int) -> bool:
    return not plain[at:end].strip(" .!?,;")


def endings(turn: Turn, sentence: Sentence, earlier: Earlier) -> Iterator[Finding | Diagnostic]:
    """Yield what "we broke up", "I quit my job", "I no longer live there" end of what was said."""
    for pattern, ended, kept in (
        (_WE_BROKE_UP, ("dating", "spouse", "engaged_to"), "relationship_status"),
        (_LEFT_JOB, ("works_at",), None),
        (_WORK_THERE, ("works_at",), None),
        (_LIVE_THERE, ("lives_in",), None),
    ):
        match = pattern.search(turn.plain, sentence.start, sentence.end)
        if match is None:
            continue
        span = Span(*match.span("v"))
        if kept:
            yield Finding(
                "family", SPEAKER, kept, span, span.start, span.end, "change", 0.8, single=True
            )
        for finding, value in earlier():
            if finding.subject == SPEAKER and finding.predicate in ended:
                yield Finding(
                    "corrections", SPEAKER, finding.predicate, span, span.start, span.end,
                    "change", 0.8, Polarity.NEGATIVE, notes=(value,),
                )  # fmt: skip
                break
        else:
            yield _unresolved(turn, span.start, span.end)


def _unresolved(turn: Turn, start: int, end: int) -> Diagnostic:
    return Diagnostic(
        "unresolved_reference",
        f"{turn.text[start:end]!r} changes something that was not said before",
        {"span": [start, end]},
    )
