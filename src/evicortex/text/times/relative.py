"""Forms that need the moment of speaking: "last week", "two days ago", "on Friday"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta

from evicortex.text.times import calendar
from evicortex.text.times.words import (
    AMOUNT,
    CUES,
    RELATION,
    SHORT_WEEKDAYS,
    SPACE,
    WEEKDAY,
    WEEKDAYS,
    Form,
    Reading,
    Resolved,
    amount,
    listed,
    pattern,
    plain,
    relation_of,
    shift,
    unit_of,
)
from evicortex.types import Granularity


def _names_weekday(match: re.Match[str], reading: Reading, relation: str) -> bool:
    short = plain(match["weekday"]) in SHORT_WEEKDAYS  # "sat" and "sun" are words
    if short and not match["weekday"][0].isupper():
        return False
    if relation:
        return True
    before = reading.word_before(match.start())
    if short:
        return before == "on"
    return before in CUES or reading.opens_sentence(match.start())


def _weekday(match: re.Match[str], reading: Reading) -> Resolved | None:
    relation, today = relation_of(match), reading.today
    if not _names_weekday(match, reading, relation):
        return None
    number = WEEKDAYS[plain(match["weekday"])]
    back = (today.weekday() - number) % 7
    if relation == "last":
        found = today - timedelta(back or 7)
    elif relation == "next":
        found = today + timedelta(7 - back)
    elif relation:
        first = calendar.week(today, reading.options.week_starts_on)[0]
        found = first + timedelta((number - first.weekday()) % 7)
    elif reading.future(match.start()):
        found = today + timedelta(-back % 7)
    else:
        found = today - timedelta(back)
    return Resolved(calendar.days(found), Granularity.DAY, relative=True)


_DAY_WORDS: Mapping[str, tuple[int, int]] = {
    "yesterday": (-1, 1),
    "tomorrow": (1, 1),
    "day before yesterday": (-2, 1),
    "day after tomorrow": (2, 1),
    "last night": (-1, 1),
    "other day": (-7, 7),
    "other night": (-7, 7),
}


def _day_word(match: re.Match[str], reading: Reading) -> Resolved:
    # What the table lacks is today: "tonight", "this morning" and the like.
    first, count = _DAY_WORDS.get(plain(match[0]).removeprefix("the "), (0, 1))
    found = calendar.days(reading.today + timedelta(first), count)
    return Resolved(found, Granularity.DAY, relative=True)


def _rolling_range(today: date, count: int, unit: str, *, ahead: bool) -> Resolved:
    begin = today if ahead else shift(today, -count, unit)
    end = shift(today, count if ahead else 0, unit) + timedelta(1)
    return Resolved((begin, end), Granularity(unit), relative=True)


def _relative_unit(match: re.Match[str], reading: Reading) -> Resolved:
    unit, relation, today = plain(match["unit"]), relation_of(match), reading.today
    words = plain(match["relation"]).split()
    the = reading.word_before(match.start()) == "the" and relation in ("last", "next")
    if unit != "weekend" and (the or words[-1] == "past"):
        return _rolling_range(today, 1, unit, ahead=relation == "next")
    step = {"last": -1, "next": 1}.get(relation, 0)
    days, granularity = unit_of(shift(today, step, unit), unit, reading.options)
    return Resolved(days, granularity, relative=True)


def _unit_but_one(match: re.Match[str], reading: Reading) -> Resolved:
    unit, step = plain(match["unit"]), -2 if match["last"] else 2
    days, granularity = unit_of(shift(reading.today, step, unit), unit, reading.options)
    return Resolved(days, granularity, relative=True)


def _the_weekend(match: re.Match[str], reading: Reading) -> Resolved:
    stay = reading.future(match.start()) or reading.today.weekday() >= 5
    found = calendar.weekend(reading.today - timedelta(0 if stay else 7))
    return Resolved(found, Granularity.WEEKEND, relative=True)


def _rolling(match: re.Match[str], reading: Reading) -> Resolved:
    unit = plain(match["unit"]).replace("night", "day")
    ahead = plain(match["direction"]) in ("next", "coming")
    return _rolling_range(reading.today, amount(match["amount"])[1], unit, ahead=ahead)


_SECONDS: Mapping[str, int] = {"second": 1, "minute": 60, "hour": 3600}


def _distance(match: re.Match[str], reading: Reading) -> Resolved | None:
    groups = match.groupdict()
    ahead = groups.get("back") is None
    if ahead and not (groups.get("now") or groups.get("time") or reading.future(match.start())):
        return None
    (low, high), unit, sign = amount(match["amount"]), plain(match["unit"]), 1 if ahead else -1
    if unit in _SECONDS:
        moved = reading.now + timedelta(seconds=sign * low * _SECONDS[unit])
        return Resolved(calendar.days(moved.date()), Granularity.DAY, relative=True)
    if unit == "year" and (groups["half"] or groups.get("half_after")):
        low, high, unit = low * 12 + 6, high * 12 + 6, "month"
    ends = sorted(shift(reading.today, sign * count, unit) for count in (low, high))
    first, granularity = unit_of(ends[0], unit, reading.options)
    last, _ = unit_of(ends[1], unit, reading.options)
    return Resolved((first[0], last[1]), granularity, relative=True)


def _day_of_month(match: re.Match[str], reading: Reading) -> Resolved | None:
    number, today = int(match["day"]), reading.today
    ahead = reading.future(match.start())
    for step in range(3):  # one of three neighbouring months has the day
        first = calendar.month(today.year, today.month + (step if ahead else -step))[0]
        found = first + timedelta(number - 1)
        if found.month == first.month and (found >= today if ahead else found <= today):
            return Resolved(calendar.days(found), Granularity.DAY, relative=True)
    return None


def _day_of_near_month(match: re.Match[str], reading: Reading) -> Resolved | None:
    step = {"last": -1, "next": 1}.get(relation_of(match), 0)
    first, end = calendar.month(reading.today.year, reading.today.month + step)
    found = first + timedelta(int(match["day"]) - 1)
    if not first <= found < end:
        return None
    return Resolved(calendar.days(found), Granularity.DAY, relative=True)


def _weekday_of_week(match: re.Match[str], reading: Reading) -> Resolved | None:
    if not _names_weekday(match, reading, relation_of(match)):
        return None
    step = {"last": -1, "next": 1}.get(relation_of(match), 0)
    starts_on = reading.options.week_starts_on
    first, _ = calendar.week(shift(reading.today, step, "week"), starts_on)
    number = WEEKDAYS[plain(match["weekday"])]
    found = first + timedelta((number - first.weekday()) % 7)
    return Resolved(calendar.days(found), Granularity.DAY, relative=True)


_UNIT = "(?P<unit>weekend|week|month|year|decade)"
_HALF = rf"{SPACE}and{SPACE}a{SPACE}half"

RELATIVE_FORMS: tuple[Form, ...] = (
    Form(
        "UP",
        pattern(rf"\b(?P<day>[0-3]?[0-9])(?:st|nd|rd|th){SPACE}of{SPACE}{RELATION}{SPACE}month\b"),
        _day_of_near_month,
    ),
    Form(
        "WUP",
        pattern(
            rf"\b(?P<weekday>{WEEKDAY})(?![^\W_]|-){SPACE}(?:of{SPACE})?{RELATION}{SPACE}week\b"
        ),
        _weekday_of_week,
    ),
    Form(
        "T",
        pattern(
            rf"\b(?:(?:the{SPACE})?day{SPACE}(?:before{SPACE}yesterday|after{SPACE}tomorrow)"
            rf"|yesterday|today|tonight|tomorrow|last{SPACE}night"
            rf"|the{SPACE}other{SPACE}(?:day|night)|this{SPACE}(?:morning|afternoon|evening))\b"
        ),
        _day_word,
    ),
    Form(
        "UP",
        pattern(
            rf"\b(?:the{SPACE})?{_UNIT}{SPACE}(?:(?P<last>before{SPACE}last)|after{SPACE}next)\b"
        ),
        _unit_but_one,
    ),
    Form(
        "UP",
        pattern(
            rf"\b(?P<direction>last|past|previous|next|coming){SPACE}(?P<amount>{AMOUNT}){SPACE}"
            r"(?P<unit>day|night|week|month|year|decade)s?\b"
        ),
        _rolling,
    ),
    Form(
        "UA",
        pattern(
            rf"\b(?P<amount>{AMOUNT})(?P<half>{_HALF})?{SPACE}"
            r"(?P<unit>second|minute|hour|day|night|weekend|week|month|year|decade)s?"
            rf"(?P<half_after>{_HALF})?{SPACE}(?:(?P<back>ago|back(?!{SPACE}and{SPACE}forth))|(?P<now>from{SPACE}(?:now|today)))\b"
        ),
        _distance,
    ),
    Form(
        "UI",
        pattern(
            rf"\bin{SPACE}(?P<amount>{AMOUNT})(?P<half>{_HALF})?{SPACE}"
            rf"(?P<unit>day|week|month|year|decade)s?(?P<time>['’]?{SPACE}time)?\b"
        ),
        _distance,
    ),
    Form(
        "UP",
        pattern(
            rf"\b{RELATION}{SPACE}(?P<unit>weekend|week|month|year|quarter|decade)\b"
            rf"(?!{SPACE}of\b)"
        ),
        _relative_unit,
    ),
    Form(
        "U",
        pattern(
            rf"\b(?:over|at|on|during|for){SPACE}(?P<core>the{SPACE}weekend)\b"
            rf"(?!{SPACE}(?:of|before|after)\b)"
        ),
        _the_weekend,
    ),
    Form(
        "W",
        pattern(rf"\b(?:{RELATION}{SPACE})?(?P<weekday>{WEEKDAY})(?![^\W_]|-)"),
        _weekday,
    ),
    Form(
        "ON",
        pattern(
            rf"\bon{SPACE}(?P<core>(?:the{SPACE})?(?P<day>[0-3]?[0-9])(?:st|nd|rd|th))"
            r"(?=\s{0,3}(?:[.,;:!?)]|$|and\b|at\b|or\b))"
        ),
        _day_of_month,
    ),
)

RELATIVE_TRIGGERS: Mapping[str, str] = {
    **dict.fromkeys(WEEKDAYS, "W"),
    **dict.fromkeys(
        listed(
            "day days week weeks weekend weekends month months quarter year years decade decades "
            "night nights hour hours minute minutes second seconds"
        ),
        "U",
    ),
    **dict.fromkeys(listed("yesterday tonight tomorrow morning afternoon evening"), "T"),
    **dict.fromkeys(("day", "night"), "UT"),
    **dict.fromkeys(listed("last next this past previous coming upcoming"), "P"),
    "last": "PT",
    "today": "TA",
    **dict.fromkeys(("ago", "back", "now"), "A"),
    "in": "I",
    **dict.fromkeys(("st", "nd", "rd", "th"), "O"),
}
"""Lower-case words, and the classes of forms for which they are a reason to look."""
