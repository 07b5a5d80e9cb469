"""Ranges of calendar days: months, weekends, seasons, feasts. Pure, no time zones.

A range is half-open, ``(first day, day after the last)``. Whatever does not exist (31 April,
29 February 2023) or lies outside the years 1 to 9999 raises ``ValueError`` or ``OverflowError``,
as ``datetime.date`` does; callers treat both as "no such time".

Conventions, where English leaves a choice: weeks run from Monday (ISO 8601, an option), a
weekend is Saturday and Sunday, seasons are the meteorological ones (winter begins in December
of the year that names it), and feasts that move are those of the United States and of the
Western churches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta

Days = tuple[date, date]
YearForm = Callable[[int], Days]
"""A range that recurs every year, such as "in May": the range in a given year."""


def days(first: date, count: int = 1) -> Days:
    """Return ``count`` days from ``first``."""
    return first, first + timedelta(count)


def week(day: date, starts_on: int = 0) -> Days:
    """Return the week that holds ``day``; ``starts_on`` is a weekday, Monday 0."""
    return days(day - timedelta((day.weekday() - starts_on) % 7), 7)


def weekend(day: date) -> Days:
    """Return Saturday and Sunday of the ISO week that holds ``day``."""
    return days(day + timedelta(5 - day.weekday()), 2)


def month(year: int, number: int) -> Days:
    """Return a month; ``number`` may run outside 1 to 12 and then changes the year."""
    first = year * 12 + number - 1
    return (
        date(first // 12, first % 12 + 1, 1),
        date((first + 1) // 12, (first + 1) % 12 + 1, 1),
    )


def quarter(year: int, number: int) -> Days:
    """Return a quarter; ``number`` may run outside 1 to 4 and then changes the year."""
    first = month(year, number * 3 - 2)[0]
    return first, month(year, number * 3)[1]


def year(number: int) -> Days:
    """Return a calendar year."""
    return date(number, 1, 1), date(number + 1, 1, 1)


def decade(first_year: int) -> Days:
    """Return the ten years from ``first_year``."""
    return date(first_year, 1, 1), date(first_year + 10, 1, 1)


_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


def season(in_year: int, name: str, *, southern: bool = False) -> Days:
    """Return the meteorological season that begins in ``in_year``."""
    first = _SEASONS[name]
    if southern:
        first = (first + 5) % 12 + 1
    return month(in_year, first)[0], month(in_year, first + 2)[1]


def nth_weekday(in_year: int, in_month: int, weekday: int, nth: int) -> date:
    """Return the ``nth`` (from 1; -1 is the last) given weekday of a month."""
    first, end = month(in_year, in_month)
    if nth < 0:
        last = end - timedelta(1)
        return last - timedelta((last.weekday() - weekday) % 7)
    found = first + timedelta((weekday - first.weekday()) % 7 + 7 * (nth - 1))
    if found >= end:
        raise ValueError(f"{in_year}-{in_month:02} has no such weekday number {nth}")
    return found


def easter(in_year: int) -> date:
    """Return Western Easter Sunday (Meeus/Jones/Butcher, Gregorian calendar)."""
    century, rest = divmod(in_year, 100)
    golden = in_year % 19
    epact = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    shift = (golden + 11 * epact + 22 * weekday) // 451
    number = epact + weekday - 7 * shift + 114
    return date(in_year, number // 31, number % 31 + 1)


def _fixed(in_month: int, day: int) -> Callable[[int], date]:
    return lambda in_year: date(in_year, in_month, day)


def _nth(in_month: int, weekday: int, nth: int) -> Callable[[int], date]:
    return lambda in_year: nth_weekday(in_year, in_month, weekday, nth)


FEASTS: Mapping[str, Callable[[int], date]] = {
    "new year": _fixed(1, 1),
    "new year eve": _fixed(12, 31),
    "valentine": _fixed(2, 14),
    "patrick": _fixed(3, 17),
    "april fool": _fixed(4, 1),
    "earth day": _fixed(4, 22),
    "good friday": lambda in_year: easter(in_year) - timedelta(2),
    "easter": easter,
    "mother": _nth(5, 6, 2),
    "memorial day": _nth(5, 0, -1),
    "father": _nth(6, 6, 3),
    "independence day": _fixed(7, 4),
    "labor day": _nth(9, 0, 1),
    "halloween": _fixed(10, 31),
    "veterans day": _fixed(11, 11),
    "thanksgiving": _nth(11, 3, 4),
    "black friday": lambda in_year: nth_weekday(in_year, 11, 3, 4) + timedelta(1),
    "christmas": _fixed(12, 25),
    "christmas eve": _fixed(12, 24),
    "boxing day": _fixed(12, 26),
}


def feast(in_year: int, name: str) -> Days:
    """Return the day of a feast of ``FEASTS``."""
    return days(FEASTS[name](in_year))


def third(of: Days, part: int) -> Days:
    """Return the early (0), middle (1) or late (2) third of a range, in whole days."""
    first, end = of
    length = (end - first).days
    return (
        first + timedelta(length * part // 3),
        first + timedelta(length * (part + 1) // 3),
    )


def _occurrences(form: YearForm, near: date) -> list[Days]:
    # Nine years on either side reach a 29 February even across 1900.
    found = []
    for number in range(near.year - 9, near.year + 10):
        try:
            found.append(form(number))
        except (ValueError, OverflowError):
            continue
    return found


def most_recent(form: YearForm, anchor: date) -> Days:
    """Return the last occurrence that has begun by ``anchor``."""
    return _pick([o for o in _occurrences(form, anchor) if o[0] <= anchor], -1)


def last_completed(form: YearForm, anchor: date) -> Days:
    """Return the last occurrence that was over before ``anchor``."""
    return _pick([o for o in _occurrences(form, anchor) if o[1] <= anchor], -1)


def upcoming(form: YearForm, anchor: date) -> Days:
    """Return the first occurrence that is not over at ``anchor``."""
    return _pick([o for o in _occurrences(form, anchor) if o[1] > anchor], 0)


def next_one(form: YearForm, anchor: date) -> Days:
    """Return the first occurrence that begins after ``anchor``."""
    return _pick([o for o in _occurrences(form, anchor) if o[0] > anchor], 0)


def nearest(form: YearForm, anchor: date) -> Days:
    """Return the occurrence whose beginning is nearest to ``anchor``, the earlier on a tie."""
    ordered = sorted(_occurrences(form, anchor), key=lambda o: (abs((o[0] - anchor).days), o[0]))
    return _pick(ordered, 0)


def _pick(found: list[Days], index: int) -> Days:
    if not found:
        raise ValueError("no occurrence between the years 1 and 9999")
    return found[index]
