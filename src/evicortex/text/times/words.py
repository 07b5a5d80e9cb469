"""Words of time, their values, and what surrounds them in a text. Pure; used by ``mentions``.

Words are matched without regard to case, which in Unicode lets a dotless i or a long s stand in
for the plain letter; ``plain`` maps them back before a word is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

from evicortex.text.times import calendar
from evicortex.text.times.calendar import Days, YearForm
from evicortex.types import Granularity

SPACE = r"[ \t\r\n\xa0]{1,3}"


def listed(words: str) -> tuple[str, ...]:
    """Return the words of a list that is written as one string."""
    return tuple(words.split())


MONTH_NAMES = listed(
    "january february march april may june july august september october november december"
)
MONTHS: Mapping[str, int] = {
    **{name: i for i, name in enumerate(MONTH_NAMES, 1)},
    **{name[:3]: i for i, name in enumerate(MONTH_NAMES, 1)},
    "sept": 9,
}
WEEKDAY_NAMES = listed("monday tuesday wednesday thursday friday saturday sunday")
SHORT_WEEKDAYS: Mapping[str, int] = {
    "mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thur": 3, "thurs": 3,
    "fri": 4, "sat": 5, "sun": 6,
}  # fmt: skip
WEEKDAYS: Mapping[str, int] = {
    **{name: i for i, name in enumerate(WEEKDAY_NAMES)},
    **SHORT_WEEKDAYS,
}
ORDINALS: Mapping[str, int] = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5,
    "1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "5th": 5, "last": -1, "final": -1,
}  # fmt: skip
_NUMBER_WORDS = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
)
_AMOUNTS: Mapping[str, tuple[int, int]] = {
    **{word: (i, i) for i, word in enumerate(_NUMBER_WORDS)},
    "thirty": (30, 30),
    "couple": (2, 2),
    "few": (2, 5),
    "some": (2, 5),
    "several": (3, 7),
    "a": (1, 1),
    "an": (1, 1),
}


def either(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, the longest first."""
    return "(?:" + "|".join(sorted(words, key=len, reverse=True)) + ")"


AMOUNT = (
    r"(?:[0-9]{1,3}|a[ ]couple(?:[ ]of)?|couple(?:[ ]of)?|a[ ]few|few|some|several|thirty|"
    + either(_NUMBER_WORDS[1:])
    + "|an?)"
)
WEEKDAY = either(WEEKDAYS)
MONTH = f"(?P<month>{either(MONTHS)})" + r"(?![^\W\d_])"
DAY = r"(?P<day>[0-3]?[0-9])(?![0-9])(?P<ordinal>st|nd|rd|th)?(?![^\W_])"
TO_DAY = r"(?:\s?[-–]\s?(?P<to_day>[0-3]?[0-9])(?![0-9])(?:st|nd|rd|th)?(?![^\W_]))?"
YEAR = r"(?P<year>[12][0-9]{3}|['’][0-9]{2})(?!\w)"
RELATION = (
    rf"(?P<relation>this{SPACE}past|this{SPACE}coming|last|next|this|past|previous|upcoming|coming)"
)


CUES = frozenset(
    listed(
        "in on of by during since until till from to before after through throughout around early "
        "mid late and or between for over towards toward"
    )
)
"""Words after which a month or a weekday is one."""


@dataclass(frozen=True, slots=True)
class DateOptions:
    """How ambiguous dates are read.

    Attributes:
        day_first: Whether 5/8/2023 is 5 August; a part above 12 settles it either way.
        week_starts_on: First weekday of "this week" and "last week", Monday 0.
        southern: Whether seasons are those of the southern hemisphere.
    """

    day_first: bool = False
    week_starts_on: int = 0
    southern: bool = False

    @property
    def identity(self) -> str:
        """A short name of these options, for what is stored with them."""
        order, side = "dm" if self.day_first else "md", "s" if self.southern else "n"
        return f"{order}{self.week_starts_on}{side}"


class Resolved(NamedTuple):
    """What a form means; ``form`` is set when the year is open ("in May")."""

    days: Days
    granularity: Granularity
    form: YearForm | None = None
    relative: bool = False


_WORD_BEFORE = re.compile(r"([^\W\d_]+)[\s'’-]{1,3}$")
_SENTENCE_END = re.compile(r"[.!?\n]")
_FUTURE = re.compile(
    r"['’]ll\b|\b(?:will|shall|going to|gonna|plan(?:s|ning)?|hop(?:e|ing) to|about to"
    r"|want(?:s|ing)? to|looking forward|can['’]?t wait|excited for|upcoming|coming up"
    r"|ready for|let['’]s|scheduled|booked for|see you)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, the moment at which it was said, and the options."""

    text: str
    now: datetime
    options: DateOptions

    @property
    def today(self) -> date:
        """The calendar day of ``now``."""
        return self.now.date()

    def word_before(self, start: int) -> str:
        """Return the word right before ``start``: lower case, "" when there is none."""
        found = _WORD_BEFORE.search(self.text[max(0, start - 16) : start])
        return plain(found[1]) if found else ""

    def opens_sentence(self, start: int) -> bool:
        """Return whether nothing of the sentence stands before ``start``."""
        before = self.text[max(0, start - 8) : start].rstrip(" \t\"'“‘(*")
        return not before or before[-1] in ".!?\n:;"

    def future(self, start: int) -> bool:
        """Return whether the sentence up to ``start`` looks ahead ("will", "planning to")."""
        before = _SENTENCE_END.split(self.text[max(0, start - 80) : start])[-1]
        return bool(_FUTURE.search(before))


Builder = Callable[[re.Match[str], Reading], Resolved | None]


class Form(NamedTuple):
    """A pattern, tried when the text holds triggers of all classes that it needs.

    The mention is the group ``core`` where the pattern has one, else the whole match.
    """

    needs: str
    pattern: re.Pattern[str]
    build: Builder


def pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern that disregards case."""
    return re.compile(text, re.IGNORECASE)


def yearly(
    match: re.Match[str],
    reading: Reading,
    form: YearForm,
    granularity: Granularity,
    default: Callable[[YearForm, date], Days] = calendar.most_recent,
) -> Resolved:
    """Resolve a range that recurs every year, with the relation that the match may have.

    "Last May" and "this May" name one year; a plain "in May" leaves it open. "This summer" is
    the nearest one, so that in March "this winter" is the one that has just ended.
    """
    today = reading.today
    relation = relation_of(match) if "relation" in match.re.groupindex else ""
    if relation == "last":
        return Resolved(calendar.last_completed(form, today), granularity, relative=True)
    if relation == "next":
        return Resolved(calendar.next_one(form, today), granularity, relative=True)
    if relation:
        month = granularity is Granularity.MONTH
        found = form(today.year) if month else calendar.nearest(form, today)
        return Resolved(found, granularity, relative=True)
    choose = calendar.upcoming if reading.future(match.start()) else default
    return Resolved(choose(form, today), granularity, form, relative=True)


def plain(text: str) -> str:
    """Return ``text`` in lower case, white space collapsed, with plain letters i, k and s."""
    folded = text.casefold().replace("ı", "i").replace("\u0307", "")
    return " ".join(folded.split())


def relation_of(match: re.Match[str]) -> str:
    """Return "last", "this", "next" or "" for the group ``relation``."""
    words = plain(match["relation"] or "").split()
    if not words:
        return ""
    if words[-1] in ("coming", "upcoming"):
        return "next"
    return "last" if words[-1] in ("past", "previous") else words[-1]


def amount(text: str) -> tuple[int, int]:
    """Return the least and the greatest number that "two", "a few" or "12" stands for."""
    words = plain(text).removesuffix(" of").split()
    if words[-1].isdecimal():
        return int(words[-1]), int(words[-1])
    return _AMOUNTS[words[-1]]


def full_year(digits: str) -> int:
    """Return the year of "2023", "'23" or "98"; two digits below 70 are of this century."""
    number = int(digits.lstrip("'’"))
    if number >= 100:
        return number
    return number + (2000 if number < 70 else 1900)


_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_DAYS_IN = {"week": 7, "weekend": 7}


def shift(day: date, count: int, unit: str) -> date:
    """Move ``day`` by a number of units; in a shorter month, to its last day at most."""
    if unit not in _MONTHS_IN:
        return day + timedelta(count * _DAYS_IN.get(unit, 1))
    first, end = calendar.month(day.year, day.month + count * _MONTHS_IN[unit])
    return min(first + timedelta(day.day - 1), end - timedelta(1))


def unit_of(day: date, unit: str, options: DateOptions) -> tuple[Days, Granularity]:
    """Return the calendar unit that holds ``day``; what is no longer unit is a day."""
    if unit == "week":
        return calendar.week(day, options.week_starts_on), Granularity.WEEK
    if unit == "weekend":
        return calendar.weekend(day), Granularity.WEEKEND
    if unit == "month":
        return calendar.month(day.year, day.month), Granularity.MONTH
    if unit == "quarter":
        return calendar.quarter(day.year, (day.month + 2) // 3), Granularity.QUARTER
    if unit == "year":
        return calendar.year(day.year), Granularity.YEAR
    if unit == "decade":
        return calendar.decade(day.year // 10 * 10), Granularity.DECADE
    return calendar.days(day), Granularity.DAY
