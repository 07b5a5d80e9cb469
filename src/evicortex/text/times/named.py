"""Forms that name a date by itself: numeric dates, months, feasts, seasons, years, decades."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta

from evicortex.text.times import calendar
from evicortex.text.times.calendar import Days
from evicortex.text.times.words import (
    CUES,
    DAY,
    MONTH,
    MONTH_NAMES,
    MONTHS,
    ORDINALS,
    RELATION,
    SPACE,
    TO_DAY,
    WEEKDAY,
    YEAR,
    Form,
    Reading,
    Resolved,
    either,
    full_year,
    listed,
    pattern,
    plain,
    relation_of,
    yearly,
)
from evicortex.types import Granularity

_SURE_CUES = frozenset(listed("in on during since until till early mid late"))
_ALSO_WORDS = frozenset(("may", "march"))
_ALSO_NAMES = frozenset(("april", "may", "june", "august", "march"))


def _is_month(match: re.Match[str], reading: Reading, *, settled: bool) -> bool:
    # "may" and "march" are words first; in lower case only a sure sign makes them months.
    if settled or match["month"] not in _ALSO_WORDS:
        return True
    return reading.word_before(match.start()) in _SURE_CUES


def _month_and_day(match: re.Match[str], reading: Reading) -> Resolved | None:
    groups = match.groupdict()
    settled = bool(groups["ordinal"] or groups["year"] or groups.get("of"))
    if not _is_month(match, reading, settled=settled):
        return None
    number, first = MONTHS[plain(match["month"])], int(match["day"])
    last = int(match["to_day"] or first)

    def form(year: int) -> Days:
        begin, end = date(year, number, first), date(year, number, last)
        if end < begin:
            raise ValueError("a range that ends before it begins")
        return begin, end + timedelta(1)

    if groups["year"]:
        return Resolved(form(full_year(groups["year"])), Granularity.DAY)
    return yearly(match, reading, form, Granularity.DAY)


def _month_of_year(match: re.Match[str], reading: Reading) -> Resolved | None:
    number = MONTHS[plain(match["month"])]
    return Resolved(calendar.month(full_year(match["year"]), number), Granularity.MONTH)


_AFTER_MONTH = pattern(rf"\b{either(MONTHS)}\.?,?{SPACE}(?:and|or){SPACE}$")


def _has_cue(start: int, reading: Reading) -> bool:
    before = reading.word_before(start)
    if before in ("and", "or"):
        return bool(_AFTER_MONTH.search(reading.text, max(0, start - 20), start))
    return before in CUES


def _bare_month(match: re.Match[str], reading: Reading) -> Resolved | None:
    name, relation = plain(match["month"]), relation_of(match)
    if not _is_month(match, reading, settled=relation in ("last", "next")):
        return None
    short = name not in MONTH_NAMES
    cue = bool(relation) or _has_cue(match.start(), reading)
    if not cue and (short or name in _ALSO_NAMES):
        return None
    if short and match["month"].islower():
        return None
    number = MONTHS[name]
    return yearly(match, reading, lambda year: calendar.month(year, number), Granularity.MONTH)


def _numeric(match: re.Match[str], reading: Reading) -> Resolved:
    if match["iso_year"]:
        found = date(int(match["iso_year"]), int(match["iso_month"]), int(match["iso_day"] or 1))
        if not match["iso_day"]:
            return Resolved(calendar.month(found.year, found.month), Granularity.MONTH)
    elif match["dot_year"]:
        found = date(int(match["dot_year"]), int(match["dot_month"]), int(match["dot_day"]))
    elif match["month_year"]:
        number = date(int(match["month_year"]), int(match["month_only"]), 1)
        return Resolved(calendar.month(number.year, number.month), Granularity.MONTH)
    else:
        one, two, year = int(match["one"]), int(match["two"]), full_year(match["slash_year"])
        day_first = one > 12 or (reading.options.day_first and two <= 12)
        found = date(year, two, one) if day_first else date(year, one, two)
    return Resolved(calendar.days(found), Granularity.DAY)


_FEASTS: Mapping[str, str] = {
    "new year eve": rf"new{SPACE}years?['’]?s?['’]?{SPACE}eve",
    "new year": rf"new{SPACE}years?['’]?s?['’]?(?![\w'’])(?:{SPACE}day)?(?!{SPACE}resol)",
    "valentine": rf"valentine['’]?s(?:{SPACE}day)?",
    "patrick": rf"(?:st|saint)\.?{SPACE}(?:patrick|paddy)['’]?s{SPACE}day",
    "april fool": rf"april{SPACE}fools?['’]?s?{SPACE}day",
    "earth day": rf"earth{SPACE}day",
    "good friday": rf"good{SPACE}friday",
    "easter": rf"easter(?:{SPACE}sunday)?",
    "mother": rf"mother['’]?s['’]?{SPACE}day",
    "memorial day": rf"memorial{SPACE}day",
    "father": rf"father['’]?s['’]?{SPACE}day",
    "independence day": rf"independence{SPACE}day",
    "labor day": rf"labou?r{SPACE}day",
    "halloween": r"hallowe['’]?en",
    "veterans day": rf"veterans?['’]?s?{SPACE}day",
    "thanksgiving": rf"thanksgiving(?:{SPACE}day)?",
    "black friday": rf"black{SPACE}friday",
    "christmas eve": rf"(?:christmas|x-?mas){SPACE}eve",
    "christmas": rf"(?:christmas|x-?mas)(?:{SPACE}day)?",
    "boxing day": rf"boxing{SPACE}day",
}


def _group(feast: str) -> str:
    return feast.replace(" ", "_")


def _feast(match: re.Match[str], reading: Reading) -> Resolved:
    name = next(name for name in _FEASTS if match[_group(name)])
    if match["year"]:
        return Resolved(calendar.feast(full_year(match["year"]), name), Granularity.DAY)
    return yearly(
        match, reading, lambda year: calendar.feast(year, name), Granularity.DAY, calendar.nearest
    )


def _season(match: re.Match[str], reading: Reading) -> Resolved | None:
    name, southern = plain(match["season"]), reading.options.southern
    if match["year"]:
        found = calendar.season(full_year(match["year"]), name, southern=southern)
        return Resolved(found, Granularity.SEASON)
    if not (match["relation"] or match["cue"]):
        return None
    return yearly(
        match,
        reading,
        lambda year: calendar.season(year, name, southern=southern),
        Granularity.SEASON,
    )


def _quarter(match: re.Match[str], reading: Reading) -> Resolved:
    word = plain(match["nth"])
    number = ORDINALS[word] if word in ORDINALS else int(word)
    if match["year"]:
        return Resolved(calendar.quarter(full_year(match["year"]), number), Granularity.QUARTER)
    return yearly(match, reading, lambda year: calendar.quarter(year, number), Granularity.QUARTER)


_DECADES: Mapping[str, int] = {
    "twenties": 2020, "thirties": 1930, "forties": 1940, "fifties": 1950,
    "sixties": 1960, "seventies": 1970, "eighties": 1980, "nineties": 1990,
}  # fmt: skip


def _decade(match: re.Match[str], _: Reading) -> Resolved:
    if match["word"]:
        return Resolved(calendar.decade(_DECADES[plain(match["word"])]), Granularity.DECADE)
    tens = int(match["tens"])
    return Resolved(calendar.decade(tens + (2000 if tens <= 20 else 1900)), Granularity.DECADE)


def _full_decade(match: re.Match[str], _: Reading) -> Resolved:
    return Resolved(calendar.decade(int(match["first"])), Granularity.DECADE)


_COUNTED = frozenset(
    listed(
        "people dollars euros pounds bucks usd eur gbp calories kcal miles km kilometers meters "
        "metres feet steps words pages points votes followers square grams kg mg ml times hours "
        "minutes seconds days weeks months years percent mah rpm am pm pst est gmt"
    )
)
_FAR = 20
_NOT_PLURAL = frozenset(("does", "perhaps", "always"))
_NEXT_WORD = re.compile(r"[ \t\xa0]{1,3}([^\W\d_]{2,16})")
_YEAR_CUES = frozenset(
    listed(
        "in of by during since until till from to before after through around year early mid late "
        "and or between circa for"
    )
)


def _bare_year(match: re.Match[str], reading: Reading) -> Resolved | None:
    first = int(match["first"])
    if match["second"]:
        last = int(match["second"])
        last += first // 100 * 100 if last < 100 else 0
        if last < first:
            return None
        return Resolved((date(first, 1, 1), calendar.year(last)[1]), Granularity.YEAR)
    after = _NEXT_WORD.match(reading.text, match.end())
    word = after[1] if after else ""
    cue = reading.word_before(match.start()) in _YEAR_CUES
    if plain(word) in _COUNTED or (first < 1900 and (word or not cue)):
        return None
    if not cue and first > reading.today.year + _FAR:  # Cyberpunk 2077
        return None
    plural = len(word) > 4 and word.islower() and word[-1] == "s" and word[-2] not in "su"
    if plural and not cue and word not in _NOT_PLURAL:
        return None
    return Resolved(calendar.year(first), Granularity.YEAR)


_OF_YEAR = rf"(?:(?:\s{{0,2}},\s{{0,2}}|\.?{SPACE}(?:(?:of|in){SPACE})?|-){YEAR})?"
_NO_DATE_AFTER = r"(?!:[0-9])(?!\.[0-9])(?!,[0-9]{3}(?![0-9]))(?!%)"

NAMED_FORMS: tuple[Form, ...] = (
    Form(
        "N",
        re.compile(
            r"(?<![\w.:/$€£#+-])(?:"
            r"(?P<iso_year>[12][0-9]{3})(?P<sep>[-/.年])(?P<iso_month>[01]?[0-9])"
            r"(?:(?:(?P=sep)|月)(?P<iso_day>[0-3]?[0-9])日?|月|(?<=-[01][0-9])(?!-))"
            r"|(?P<dot_day>[0-3]?[0-9])\.[ ]?(?P<dot_month>[01]?[0-9])\.[ ]?(?P<dot_year>[12][0-9]{3})"
            r"|(?P<one>[0-3]?[0-9])(?P<slash>[/-])(?P<two>[0-3]?[0-9])(?P=slash)"
            r"(?P<slash_year>[12][0-9]{3}|(?<=/)[0-9]{2})"
            r"|(?P<month_only>[01]?[0-9])/(?P<month_year>(?:19|20)[0-9]{2})"
            r")(?![0-9%]|[/.-][0-9])"
        ),
        _numeric,
    ),
    Form(
        "MN",
        pattern(
            rf"(?:\b{WEEKDAY}\.?,?{SPACE}(?:the{SPACE})?)?(?<!\w)(?<![0-9][.,:/-]){DAY}{TO_DAY}"
            rf"(?:{SPACE}(?:day{SPACE})?(?P<of>of{SPACE})?|-){MONTH}{_OF_YEAR}"
        ),
        _month_and_day,
    ),
    Form(
        "MN",
        pattern(
            rf"\b(?:{WEEKDAY}\.?,?{SPACE})?{MONTH}\.?(?:{SPACE})?(?:the{SPACE})?"
            rf"{DAY}{_NO_DATE_AFTER}{TO_DAY}{_OF_YEAR}"
        ),
        _month_and_day,
    ),
    Form(
        "MN",
        pattern(rf"\b{MONTH}(?:\.?,?{SPACE}(?:of{SPACE}(?:the{SPACE}year{SPACE})?)?|-){YEAR}"),
        _month_of_year,
    ),
    Form(
        "F",
        pattern(
            rf"\b(?:{RELATION}{SPACE})?(?:"
            + "|".join(f"(?P<{_group(name)}>{words})" for name, words in _FEASTS.items())
            + rf")(?![^\W\d_])(?:{SPACE}(?:(?:of|in){SPACE})?{YEAR})?"
        ),
        _feast,
    ),
    Form("M", pattern(rf"\b(?:{RELATION}{SPACE})?{MONTH}"), _bare_month),
    Form(
        "S",
        pattern(
            rf"(?P<cue>\b(?:in|during|over|for|since|by|until|till|of|through|throughout|towards?"
            rf"|before|after|early|mid|late)(?:{SPACE}|-)(?:the{SPACE})?)?"
            rf"(?P<core>\b(?:{RELATION}{SPACE})?(?P<season>spring|summer|autumn|fall|winter)"
            rf"(?:time)?(?![^\W\d_])(?:{SPACE}(?:break|term|semester|vacation|holidays?)\b)?"
            rf"(?:,?{SPACE}(?:(?:of|in){SPACE})?{YEAR})?)"
        ),
        _season,
    ),
    Form(
        "QN",
        re.compile(rf"\bQ(?P<nth>[1-4])(?![^\W_])(?:(?:,?{SPACE}(?:of{SPACE})?|-|/)?{YEAR})?"),
        _quarter,
    ),
    Form(
        "QN",
        pattern(
            rf"\b(?P<nth>first|second|third|fourth|1st|2nd|3rd|4th){SPACE}quarter{SPACE}"
            rf"(?:(?:of|in){SPACE})?{YEAR}"
        ),
        _quarter,
    ),
    Form(
        "D",
        pattern(
            rf"\bthe{SPACE}(?:(?:early|mid|late)[ \t-]{{1,3}})?(?P<core>(?P<word>{either(_DECADES)})"
            r"|['’]?(?P<tens>[0-9]0)['’]?s)(?![^\W_])"
        ),
        _decade,
    ),
    Form("D", re.compile(r"\b(?P<first>(?:1[5-9]|20)[0-9]0)['’]?s(?![^\W_])"), _full_decade),
    Form(
        "N",
        re.compile(
            r"(?<![\w$€£#@/.,:+-])(?P<first>(?:1[789]|20)[0-9]{2})"
            r"(?:\s?[-–—/]\s?(?P<second>(?:19|20)?[0-9]{2}))?(?![\w%:/–—-])(?![.,][0-9])"
        ),
        _bare_year,
    ),
)

NAMED_TRIGGERS: Mapping[str, str] = {
    **dict.fromkeys(MONTHS, "M"),
    "april": "MF",
    "mas": "F",
    "q": "Q",
    **dict.fromkeys(listed("spring summer autumn fall winter"), "S"),
    **dict.fromkeys(listed("springtime summertime wintertime"), "S"),
    **dict.fromkeys(
        listed(
            "day friday year years valentine valentines easter halloween hallowe thanksgiving "
            "christmas xmas"
        ),
        "F",
    ),
    **dict.fromkeys(("second", "quarter"), "Q"),
    **dict.fromkeys(_DECADES, "D"),
}
"""Lower-case words, and the classes of forms for which they are a reason to look.

``dates`` adds the classes of figures: N for any digit, D for what looks like a decade.
"""
