"""Find times in a text: exact spans, half-open UTC intervals, and how coarse each one is.

English forms and numeric dates. Relative forms resolve against the moment at which the text was
said: "last Saturday" said on 9 March 2026 is 7 March 2026, "last year" is all of 2025. A month,
day, season or feast without a year means the most recent one (the coming one where the sentence
looks ahead, the nearest one for a feast), and its mention keeps the candidates of other years,
for questions that leave the year open. A mention is only as good as its form: a reader sees it
beside the exact text, never in place of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, tzinfo
from typing import NamedTuple

from evicortex.errors import NaiveDatetimeError
from evicortex.text.times.calendar import Days, YearForm
from evicortex.text.times.composites import COMPOSITES, Change
from evicortex.text.times.named import NAMED_FORMS, NAMED_TRIGGERS
from evicortex.text.times.relative import RELATIVE_FORMS, RELATIVE_TRIGGERS
from evicortex.text.times.words import SPACE, DateOptions, Reading, Resolved
from evicortex.types import Granularity, Span, TimeMention

__all__ = ["FINDER", "DateOptions", "FoundTime", "Interval", "find_times"]

FINDER = "1"
"""Changes whenever the same text may name other times; stored with what was derived."""


class Interval(NamedTuple):
    """Half-open interval ``[start, end)`` of aware UTC datetimes."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class FoundTime(TimeMention):
    """A time mention that still knows its form, for the readings of other years."""

    _form: YearForm | None = field(default=None, repr=False, compare=False)
    _zone: tzinfo = field(default=UTC, repr=False, compare=False)

    def candidates(self, first: datetime, last: datetime) -> tuple[Interval, ...]:
        """Return what the mention can mean for data from ``first`` to ``last``.

        Without an open year that is its one interval. With one, it is the interval in every
        year of the data, oldest first; the data's own last year counts even when the interval
        lies after ``last``, and a winter that began the year before counts when it reaches in.
        """
        if self._form is None:
            return (Interval(self.start, self.end),)
        found = []
        for number in range(first.year - 1, last.year + 1):
            try:
                interval = _interval(self._form(number), self._zone)
            except (ValueError, OverflowError):
                continue
            if number >= first.year or interval.end > first:
                found.append(interval)
        return tuple(found)


def find_times(
    text: str, anchor: datetime, *, options: DateOptions | None = None
) -> tuple[FoundTime, ...]:
    """Return the times that ``text`` names, in the order of the text, without overlap.

    Args:
        text: Any text; one without a word of time costs a few microseconds.
        anchor: When it was said (or asked); aware. Days are those of its time zone.
        options: How ambiguous dates are read.

    Raises:
        NaiveDatetimeError: ``anchor`` has no time zone.
    """
    if anchor.tzinfo is None or anchor.utcoffset() is None:
        raise NaiveDatetimeError("anchor needs a time zone; use an aware datetime such as UTC")
    classes = _classes(text)
    if not classes:
        return ()
    reading = Reading(text, anchor, options or DateOptions())
    found = sorted(_mentions(reading, classes), key=lambda part: part.start)
    found = _compose(_share_years(found, text), reading)
    zone = anchor.tzinfo
    mentions = []
    for part in found:
        try:
            interval = _interval(part.what.days, zone)
        except OverflowError:  # the zone moves it out of the years 1 to 9999
            continue
        mentions.append(
            FoundTime(
                Span(part.start, part.end),
                text[part.start : part.end],
                interval.start,
                interval.end,
                part.what.granularity,
                part.what.relative,
                part.what.form is not None,
                part.what.form,
                zone,
            )
        )
    return tuple(mentions)


def _interval(days: Days, zone: tzinfo) -> Interval:
    first, end = (datetime.combine(day, time(), zone).astimezone(UTC) for day in days)
    return Interval(first, end)


@dataclass(frozen=True, slots=True)
class _Part:
    start: int
    end: int
    what: Resolved


_TOKENS = re.compile(r"[a-z]+")
_FORMS = (*NAMED_FORMS, *RELATIVE_FORMS)  # in this order: what one takes, no later one reads
_TRIGGERS = {
    word: NAMED_TRIGGERS.get(word, "") + RELATIVE_TRIGGERS.get(word, "")
    for word in {**NAMED_TRIGGERS, **RELATIVE_TRIGGERS}
}
_TRIGGER_WORDS = frozenset(_TRIGGERS)
_DIGIT = re.compile(r"[0-9]")
_DECADE = re.compile(r"[0-9]0['’]?s")


def _classes(text: str) -> set[str]:
    lower = text.lower()
    classes = set(
        "".join([_TRIGGERS[word] for word in _TRIGGER_WORDS.intersection(_TOKENS.findall(lower))])
    )
    if _DIGIT.search(lower):
        classes.add("N")
        if _DECADE.search(lower):
            classes.add("D")
    return classes


def _mentions(reading: Reading, classes: set[str]) -> Iterator[_Part]:
    taken = bytearray(len(reading.text))
    for form in _FORMS:
        if not classes.issuperset(form.needs):
            continue
        core = "core" if "core" in form.pattern.groupindex else 0
        for match in form.pattern.finditer(reading.text):
            start, end = match.span(core)
            if taken.find(1, start, end) >= 0:
                continue
            try:
                what = form.build(match, reading)
            except (ValueError, OverflowError):  # there is no such day
                continue
            if what is not None:
                taken[start:end] = b"\1" * (end - start)
                yield _Part(start, end, what)


_LINK = re.compile(r"\s{0,3}(?:and|to|or|through|thru|till|until|-|–|—)\s{0,3}", re.IGNORECASE)
_FROM = re.compile(rf"\b(?:between|from){SPACE}(?:the{SPACE})?$", re.IGNORECASE)
_SHARES = frozenset((Granularity.DAY, Granularity.MONTH, Granularity.SEASON))


def _share_years(found: list[_Part], text: str) -> list[_Part]:
    # "between August 11 and August 15 2023": the year belongs to both, and they are one range.
    out: list[_Part] = []
    for part in found:
        if out and _LINK.fullmatch(text, out[-1].end, part.start):
            out[-1] = _with_year_of(out[-1], part)
            if _FROM.search(text, max(0, out[-1].start - 16), out[-1].start):
                joined = _join(out[-1], part)
                if joined:
                    out[-1] = joined
                    continue
        out.append(part)
    return out


def _with_year_of(first: _Part, second: _Part) -> _Part:
    form, grain = first.what.form, second.what.granularity
    same = grain is first.what.granularity and grain in _SHARES and not second.what.relative
    if form is None or not same:
        return first
    try:
        days = form(second.what.days[0].year)
    except ValueError:  # 29 February
        return first
    return replace(first, what=Resolved(days, grain))


def _join(first: _Part, second: _Part) -> _Part | None:
    one, two = first.what, second.what
    if one.days[0] >= two.days[1]:
        return None
    form = None
    if one.form and two.form:
        form = _between(one.form, two.form)
    what = Resolved((one.days[0], two.days[1]), two.granularity, form, two.relative)
    return _Part(first.start, second.end, what)


def _between(one: YearForm, two: YearForm) -> YearForm:
    return lambda year: (one(year)[0], two(year)[1])


_REACH = 48


def _compose(found: list[_Part], reading: Reading) -> list[_Part]:
    out: list[_Part] = []
    for part in found:
        for _ in range(2):  # "two days before the end of May"
            grown = _grow(part, reading)
            if grown is None:
                break
            part = grown
        while out and out[-1].end > part.start:  # "last weekend" of "last weekend before ..."
            out.pop()
        out.append(part)
    return out


def _applied(change: Change, form: YearForm) -> YearForm:
    return lambda year: change(form(year))


def _grow(part: _Part, reading: Reading) -> _Part | None:
    low = max(0, part.start - _REACH)
    before = reading.text[low : part.start]
    for pattern, build in COMPOSITES:
        match = pattern.search(before)
        composed = build(match, part.what, reading.options) if match else None
        if match is None or composed is None:
            continue
        change, granularity = composed
        form = part.what.form
        try:
            days = change(part.what.days)
        except (ValueError, OverflowError):
            return None
        what = Resolved(days, granularity, form and _applied(change, form), part.what.relative)
        return _Part(low + match.start(), part.end, what)
    return None
