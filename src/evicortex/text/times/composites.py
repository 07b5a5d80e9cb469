"""Forms that build on another date: "the week before 16 November", "the end of May"."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

from evicortex.text.times import calendar
from evicortex.text.times.calendar import Days
from evicortex.text.times.words import (
    AMOUNT,
    ORDINALS,
    SPACE,
    WEEKDAY,
    WEEKDAYS,
    DateOptions,
    Resolved,
    amount,
    plain,
    shift,
    unit_of,
)
from evicortex.types import Granularity

Change = Callable[[Days], Days]
_UNITS = "weekend|week|month|year"
_BEFORE = rf"(?P<how>before|prior{SPACE}to|preceding|after|following|of)"
_NEIGHBOUR = re.compile(
    rf"\b(?:(?:the|last){SPACE})?(?P<what>{WEEKDAY}|day|night|evening|morning|afternoon|{_UNITS})"
    rf"{SPACE}{_BEFORE}{SPACE}(?:the{SPACE})?$",
    re.IGNORECASE,
)
_APART = re.compile(
    rf"\b(?P<amount>{AMOUNT}){SPACE}(?P<unit>day|week|month|year)s?{SPACE}"
    rf"(?P<how>before|prior{SPACE}to|after|following){SPACE}(?:the{SPACE})?$",
    re.IGNORECASE,
)
_NTH = re.compile(
    rf"\b(?:the{SPACE})?(?P<nth>{'|'.join(ORDINALS)}){SPACE}"
    rf"(?P<what>{WEEKDAY}|day|{_UNITS}|quarter){SPACE}(?:of|in){SPACE}(?:the{SPACE})?$",
    re.IGNORECASE,
)
_PART = re.compile(
    rf"\b(?:(?P<early>early|(?:the{SPACE})?(?:beginning|start){SPACE}of)"
    rf"|(?P<middle>mid|(?:the{SPACE})?middle{SPACE}of)"
    rf"|late|(?:the{SPACE})?end{SPACE}of)(?:{SPACE}|-)(?:the{SPACE})?$",
    re.IGNORECASE,
)
Composed = tuple[Change, Granularity] | None


def _neighbour(match: re.Match[str], base: Resolved, options: DateOptions) -> Composed:
    what, how = plain(match["what"]), plain(match["how"])
    if how == "of":
        return _within(what, base, options)
    back = how in ("before", "prior to", "preceding")
    if what in WEEKDAYS:
        return _weekday_beside(WEEKDAYS[what], back=back), Granularity.DAY
    if what == "weekend":
        return _weekend_beside(back=back), Granularity.WEEKEND
    if what == "week":
        return (
            lambda days: calendar.days(days[0] - timedelta(7) if back else days[1], 7)
        ), Granularity.WEEK
    if what in ("month", "year"):
        return _unit_beside(what, options, back=back), Granularity(what)
    return (
        lambda days: calendar.days(days[0] - timedelta(1) if back else days[1])
    ), Granularity.DAY


def _within(what: str, base: Resolved, options: DateOptions) -> Composed:
    # "the week of May 8", "the night of 10.01.2024"; "the month of May" is just May.
    if base.granularity is not Granularity.DAY or what in WEEKDAYS or what in ("month", "year"):
        return None
    granularity = unit_of(base.days[0], what, options)[1]
    return (lambda days: unit_of(days[0], what, options)[0]), granularity


def _weekday_beside(weekday: int, *, back: bool) -> Change:
    def change(days: Days) -> Days:
        if back:
            last = days[0] - timedelta(1)
            return calendar.days(last - timedelta((last.weekday() - weekday) % 7))
        return calendar.days(days[1] + timedelta((weekday - days[1].weekday()) % 7))

    return change


def _weekend_beside(*, back: bool) -> Change:
    def change(days: Days) -> Days:
        if back:
            return calendar.weekend(days[0] - timedelta(7))
        return calendar.weekend(days[1] + timedelta(days[1].weekday() == 6))

    return change


def _unit_beside(unit: str, options: DateOptions, *, back: bool) -> Change:
    def change(days: Days) -> Days:
        day = shift(days[0], -1, unit) if back else shift(days[1] - timedelta(1), 1, unit)
        return unit_of(day, unit, options)[0]

    return change


def _apart(match: re.Match[str], _: Resolved, options: DateOptions) -> Composed:
    low, high = amount(match["amount"])
    unit, after = plain(match["unit"]), plain(match["how"]) in ("after", "following")

    def change(days: Days) -> Days:
        sign, day = (1, days[1] - timedelta(1)) if after else (-1, days[0])
        ends = sorted(shift(day, sign * count, unit) for count in (low, high))
        return unit_of(ends[0], unit, options)[0][0], unit_of(ends[1], unit, options)[0][1]

    return change, Granularity(unit)


def _nth(match: re.Match[str], base: Resolved, options: DateOptions) -> Composed:
    nth, what = ORDINALS[plain(match["nth"])], plain(match["what"])
    if base.granularity not in (Granularity.MONTH, Granularity.YEAR, Granularity.SEASON):
        return None
    if what == "year":
        return None
    if what in WEEKDAYS:
        return _nth_start(WEEKDAYS[what], nth, 1), Granularity.DAY
    if what == "weekend":
        return _nth_start(5, nth, 2), Granularity.WEEKEND
    length = {"day": 1, "week": 7}.get(what)
    if length:
        return _nth_run(nth, length), Granularity(what)
    return _nth_months(nth, {"month": 1, "quarter": 3}[what]), Granularity(what)


def _nth_start(weekday: int, nth: int, count: int) -> Change:
    def change(days: Days) -> Days:
        if nth < 0:
            last = days[1] - timedelta(1)
            return calendar.days(last - timedelta((last.weekday() - weekday) % 7), count)
        first = days[0] + timedelta((weekday - days[0].weekday()) % 7 + 7 * (nth - 1))
        return _inside(calendar.days(first, count), days)

    return change


def _nth_run(nth: int, length: int) -> Change:
    # The second week of a month is its days 8 to 14, whatever the weekday.
    def change(days: Days) -> Days:
        if nth < 0:
            return calendar.days(days[1] - timedelta(length), length)
        return _inside(calendar.days(days[0] + timedelta(length * (nth - 1)), length), days)

    return change


def _nth_months(nth: int, months: int) -> Change:
    def change(days: Days) -> Days:
        first = days[1] if nth < 0 else days[0]
        begin = shift(first, (nth if nth < 0 else nth - 1) * months, "month")
        return _inside((begin, shift(begin, months, "month")), days)

    return change


def _inside(part: Days, whole: Days) -> Days:
    if part[0] >= whole[1]:
        raise ValueError("the whole has no such part")
    return part


def _part(match: re.Match[str], base: Resolved, _: DateOptions) -> Composed:
    if (base.days[1] - base.days[0]).days < 7:
        return None
    which = 0 if match["early"] else 1 if match["middle"] else 2
    return (lambda days: calendar.third(days, which)), base.granularity


COMPOSITES: tuple[
    tuple[re.Pattern[str], Callable[[re.Match[str], Resolved, DateOptions], Composed]], ...
] = ((_NTH, _nth), (_APART, _apart), (_NEIGHBOUR, _neighbour), (_PART, _part))
