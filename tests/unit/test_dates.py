from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from evicortex.errors import NaiveDatetimeError
from evicortex.text.times.mentions import DateOptions, FoundTime, find_times

MONDAY = datetime(2026, 3, 9, 10, tzinfo=UTC)


def said(text: str, now: datetime = MONDAY, **options: object) -> list[tuple[str, str, str, str]]:
    """Mentions as (text, first day, last day, granularity)."""
    return [
        (
            mention.text,
            mention.start.date().isoformat(),
            (mention.end - timedelta(days=1)).date().isoformat(),
            mention.granularity.value,
        )
        for mention in find_times(text, now, options=DateOptions(**options))  # type: ignore[arg-type]
    ]


def only(text: str, now: datetime = MONDAY, **options: object) -> tuple[str, str, str, str]:
    found = said(text, now, **options)
    assert len(found) == 1, found
    return found[0]


def days(text: str, now: datetime = MONDAY, **options: object) -> tuple[str, str]:
    return only(text, now, **options)[1:3]


def test_the_issue_s_two_examples() -> None:
    assert only("I moved last Saturday.") == ("last Saturday", "2026-03-07", "2026-03-07", "day")
    assert only("We met last year.") == ("last year", "2025-01-01", "2025-12-31", "year")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-03-09T10:00:00Z", "2026-03-09"),
        ("on 2023/05/30 (Tue)", "2023-05-30"),
        ("am 04.01.2024.", "2024-01-04"),
        ("am 4. 1. 2024", "2024-01-04"),
        ("5/8/2023", "2023-05-08"),
        ("15/8/2023", "2023-08-15"),
        ("5/15/23", "2023-05-15"),
        ("5-8-2023", "2023-05-08"),
        ("5/8/98", "1998-05-08"),
        ("2023年5月8日", "2023-05-08"),
        ("8 May 2023", "2023-05-08"),
        ("8th of May, 2023", "2023-05-08"),
        ("8-May-2023", "2023-05-08"),
        ("the 8th day of may 2023", "2023-05-08"),
        ("May 8, 2023", "2023-05-08"),
        ("May 8th, 2023", "2023-05-08"),
        ("May the 8th of 2023", "2023-05-08"),
        ("December 1,2023", "2023-12-01"),
        ("Dec. 1 2023", "2023-12-01"),
        ("Friday, May 5, 2023", "2023-05-05"),
        ("Fri 5 May '23", "2023-05-05"),
        ("Christmas 2022", "2022-12-25"),
        ("New Year's Eve 2023", "2023-12-31"),
        ("New Year 2025", "2025-01-01"),
        ("Thanksgiving of 2023", "2023-11-23"),
    ],
)
def test_days_named_in_full(text: str, day: str) -> None:
    (mention,) = find_times(text, MONDAY)
    assert mention.start == datetime.fromisoformat(day).replace(tzinfo=UTC)
    assert mention.end - mention.start == timedelta(days=1)
    assert mention.granularity == "day"
    assert not mention.relative
    assert not mention.open_year


@pytest.mark.parametrize(
    ("text", "found", "day"),
    [
        ("book it for the 8th of this month", "8th of this month", "2026-03-08"),
        ("the 31st of last month", "last month", "2026-02-01"),
        ("on the 3rd of next month.", "3rd of next month", "2026-04-03"),
        ("Wednesday next week", "Wednesday next week", "2026-03-18"),
        ("on Sunday of this week", "Sunday of this week", "2026-03-15"),
        ("Monday last week", "Monday last week", "2026-03-02"),
        ("they sat next week", "next week", "2026-03-16"),
    ],
)
def test_a_day_of_a_week_or_month_nearby(text: str, found: str, day: str) -> None:
    assert only(text)[:2] == (found, day)


def test_a_numeric_date_follows_the_option_unless_a_part_settles_it() -> None:
    assert days("5/8/2023", day_first=True)[0] == "2023-08-05"
    assert days("5/18/2023", day_first=True)[0] == "2023-05-18"


@pytest.mark.parametrize(
    ("text", "first", "last", "granularity"),
    [
        ("in May 2023", "2023-05-01", "2023-05-31", "month"),
        ("May of the year 2023", "2023-05-01", "2023-05-31", "month"),
        ("2023-05", "2023-05-01", "2023-05-31", "month"),
        ("05/2023", "2023-05-01", "2023-05-31", "month"),
        ("2023年5月", "2023-05-01", "2023-05-31", "month"),
        ("May 8-10, 2023", "2023-05-08", "2023-05-10", "day"),
        ("8-10 May 2023", "2023-05-08", "2023-05-10", "day"),
        ("summer of 2022", "2022-06-01", "2022-08-31", "season"),
        ("spring break of 2024", "2024-03-01", "2024-05-31", "season"),
        ("Q3 2023", "2023-07-01", "2023-09-30", "quarter"),
        ("the third quarter of 2022", "2022-07-01", "2022-09-30", "quarter"),
        ("the 2nd quarter of 2022", "2022-04-01", "2022-06-30", "quarter"),
        ("in 2023", "2023-01-01", "2023-12-31", "year"),
        ("2019-2021", "2019-01-01", "2021-12-31", "year"),
        ("2019-21", "2019-01-01", "2021-12-31", "year"),
        ("since 1850.", "1850-01-01", "1850-12-31", "year"),
        ("the 90s", "1990-01-01", "1999-12-31", "decade"),
        ("the '20s", "2020-01-01", "2029-12-31", "decade"),
        ("the early 1990s", "1990-01-01", "1993-05-01", "decade"),
        ("the eighties", "1980-01-01", "1989-12-31", "decade"),
        ("the year before 2020", "2019-01-01", "2019-12-31", "year"),
        ("from May to July 2022", "2022-05-01", "2022-07-31", "month"),
        ("between August 11 and August 15 2023", "2023-08-11", "2023-08-15", "day"),
        ("between summer 2021 and 2023", "2021-06-01", "2023-12-31", "year"),
    ],
)
def test_longer_times_named_in_full(text: str, first: str, last: str, granularity: str) -> None:
    assert only(text)[1:] == (first, last, granularity)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("today", "2026-03-09", "2026-03-09"),
        ("this morning", "2026-03-09", "2026-03-09"),
        ("yesterday", "2026-03-08", "2026-03-08"),
        ("last night", "2026-03-08", "2026-03-08"),
        ("tomorrow", "2026-03-10", "2026-03-10"),
        ("the day before yesterday", "2026-03-07", "2026-03-07"),
        ("day after tomorrow", "2026-03-11", "2026-03-11"),
        ("the other day", "2026-03-02", "2026-03-08"),
        ("last Monday", "2026-03-02", "2026-03-02"),
        ("this past Friday", "2026-03-06", "2026-03-06"),
        ("next Friday", "2026-03-13", "2026-03-13"),
        ("this coming Monday", "2026-03-16", "2026-03-16"),
        ("this Friday", "2026-03-13", "2026-03-13"),
        ("last Sat", "2026-03-07", "2026-03-07"),
        ("It was on Friday.", "2026-03-06", "2026-03-06"),
        ("Friday was fun", "2026-03-06", "2026-03-06"),
        ("Monday is here", "2026-03-09", "2026-03-09"),
        ("on Fri", "2026-03-06", "2026-03-06"),
        ("We will meet on Friday", "2026-03-13", "2026-03-13"),
        ("last week", "2026-03-02", "2026-03-08"),
        ("this week", "2026-03-09", "2026-03-15"),
        ("next week", "2026-03-16", "2026-03-22"),
        ("last weekend", "2026-03-07", "2026-03-08"),
        ("this weekend", "2026-03-14", "2026-03-15"),
        ("next weekend", "2026-03-21", "2026-03-22"),
        ("over the weekend", "2026-03-07", "2026-03-08"),
        ("We will rest over the weekend", "2026-03-14", "2026-03-15"),
        ("last month", "2026-02-01", "2026-02-28"),
        ("next month", "2026-04-01", "2026-04-30"),
        ("last quarter", "2025-10-01", "2025-12-31"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last decade", "2010-01-01", "2019-12-31"),
        ("the past year", "2025-03-09", "2026-03-09"),
        ("in the last month", "2026-02-09", "2026-03-09"),
        ("in the next week", "2026-03-09", "2026-03-16"),
        ("the week before last", "2026-02-23", "2026-03-01"),
        ("the year after next", "2028-01-01", "2028-12-31"),
        ("the last two weeks", "2026-02-23", "2026-03-09"),
        ("past 3 nights", "2026-03-06", "2026-03-09"),
        ("the next few days", "2026-03-09", "2026-03-14"),
        ("two days ago", "2026-03-07", "2026-03-07"),
        ("two weeks ago", "2026-02-23", "2026-03-01"),
        ("a weekend ago", "2026-03-07", "2026-03-08"),
        ("a couple of months ago", "2026-01-01", "2026-01-31"),
        ("a few years back", "2021-01-01", "2024-12-31"),
        ("several days ago", "2026-03-02", "2026-03-06"),
        ("12 years ago", "2014-01-01", "2014-12-31"),
        ("a decade ago", "2010-01-01", "2019-12-31"),
        ("a year and a half ago", "2024-09-01", "2024-09-30"),
        ("two and a half years ago", "2023-09-01", "2023-09-30"),
        ("11 hours ago", "2026-03-08", "2026-03-08"),
        ("an hour from now", "2026-03-09", "2026-03-09"),
        ("three weeks from now", "2026-03-30", "2026-04-05"),
        ("in two weeks' time", "2026-03-23", "2026-03-29"),
        ("I will leave in 3 days", "2026-03-12", "2026-03-12"),
        ("on the 5th.", "2026-03-05", "2026-03-05"),
        ("on the 15th.", "2026-02-15", "2026-02-15"),
        ("We will go on the 15th", "2026-03-15", "2026-03-15"),
        ("on the 30th", "2026-01-30", "2026-01-30"),
    ],
)
def test_times_counted_from_the_moment_of_speaking(text: str, first: str, last: str) -> None:
    assert days(text) == (first, last)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("in May", "2025-05-01", "2025-05-31"),
        ("in march", "2026-03-01", "2026-03-31"),
        ("last March", "2025-03-01", "2025-03-31"),
        ("this May", "2026-05-01", "2026-05-31"),
        ("next may", "2026-05-01", "2026-05-31"),
        ("We are planning it for May", "2026-05-01", "2026-05-31"),
        ("January was hard", "2026-01-01", "2026-01-31"),
        ("between May and August", "2025-05-01", "2025-08-31"),
        ("in Dec", "2025-12-01", "2025-12-31"),
        ("Jan 4", "2026-01-04", "2026-01-04"),
        ("4th of July", "2025-07-04", "2025-07-04"),
        ("on may 8", "2025-05-08", "2025-05-08"),
        ("Feb 29", "2024-02-29", "2024-02-29"),
        ("New Year", "2026-01-01", "2026-01-01"),
        ("last Christmas", "2025-12-25", "2025-12-25"),
        ("next Easter", "2026-04-05", "2026-04-05"),
        ("Halloween", "2025-10-31", "2025-10-31"),
        ("St. Patrick's Day", "2026-03-17", "2026-03-17"),
        ("in the summer", "2025-06-01", "2025-08-31"),
        ("this winter", "2025-12-01", "2026-02-28"),
        ("this summer", "2026-06-01", "2026-08-31"),
        ("Q4 was good", "2025-10-01", "2025-12-31"),
    ],
)
def test_times_without_a_year(text: str, first: str, last: str) -> None:
    assert days(text) == (first, last)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("the Friday before 15 July 2023", "2023-07-14", "2023-07-14"),
        ("on Friday before 10.01.2024", "2024-01-05", "2024-01-05"),
        ("the Monday after 15 July 2023", "2023-07-17", "2023-07-17"),
        ("the day after Christmas 2022", "2022-12-26", "2022-12-26"),
        ("the night before 1 May 2023", "2023-04-30", "2023-04-30"),
        ("the night of 10.01.2024", "2024-01-10", "2024-01-10"),
        ("the week before 16 November 2023", "2023-11-09", "2023-11-15"),
        ("the week following 16 November 2023", "2023-11-17", "2023-11-23"),
        ("the week of May 8 2023", "2023-05-08", "2023-05-14"),
        ("last weekend before April 10, 2023", "2023-04-08", "2023-04-09"),
        ("the weekend after 15 July 2023", "2023-07-22", "2023-07-23"),
        ("the weekend after 14 July 2023", "2023-07-15", "2023-07-16"),
        ("the weekend of 22 October 2023", "2023-10-21", "2023-10-22"),
        ("the month before May 2023", "2023-04-01", "2023-04-30"),
        ("the month after 31 January 2023", "2023-02-01", "2023-02-28"),
        ("two days before 15 July 2023", "2023-07-13", "2023-07-13"),
        ("two weeks before August 11, 2023", "2023-07-24", "2023-07-30"),
        ("a few months after May 2023", "2023-07-01", "2023-10-31"),
        ("the second week of August 2023", "2023-08-08", "2023-08-14"),
        ("the first week of 2024", "2024-01-01", "2024-01-07"),
        ("the last week of August 2023", "2023-08-25", "2023-08-31"),
        ("the last Friday of July 2023", "2023-07-28", "2023-07-28"),
        ("the first Monday in May 2023", "2023-05-01", "2023-05-01"),
        ("the first weekend of August 2023", "2023-08-05", "2023-08-06"),
        ("the third day of May 2023", "2023-05-03", "2023-05-03"),
        ("the second month of 2023", "2023-02-01", "2023-02-28"),
        ("the last quarter of 2023", "2023-10-01", "2023-12-31"),
        ("mid-August 2023", "2023-08-11", "2023-08-20"),
        ("early 2022", "2022-01-01", "2022-05-01"),
        ("towards the end of summer 2023", "2023-08-01", "2023-08-31"),
        ("the beginning of last month", "2026-02-01", "2026-02-09"),
        ("the middle of May 2023", "2023-05-11", "2023-05-20"),
        ("two days before the end of May 2023", "2023-05-19", "2023-05-19"),
    ],
)
def test_times_that_build_on_another(text: str, first: str, last: str) -> None:
    assert days(text) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "it may be, may I? this may take 5 minutes, 8 may come",
        "I sat in the sun, we wed and the mon",
        "Mark will march on; mar the paint",
        "2000 steps, 1,999 points, $2023, 2023%, v2.2023.1, 1850 people",
        "Cyberpunk 2077 and Blade Runner 2049",
        "the previous 2016 blocks",
        "every Friday, on Fridays, a Sunday, black cat",
        "on the 2nd floor, the 3rd time, for the 4th time",
        "her early 20s, in his late thirties",
        "the fourth quarter was close, the new year's resolution",
        "I fall asleep, a spring in the sofa, winter is coming",
        "in two weeks I learned it",
        "4 hours back and forth",
        "June said hi and April came, May left",
        "31/31/2023, 2023-13-01, 99.99.2023, 1.2.3, 10:30, 5/8",
        "Jan, Dec, Sep are short; on the 39th, on the 0th",
        "in mar a lot",
        "on Sun-dried tomatoes? on sun",
        "last week of school",
        "2021-2019",
        "1/2 3/4 50% 3.14",
        "",
        "Nothing of time here at all.",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert said(text) == []


def test_a_day_that_does_not_exist_falls_back_to_what_does() -> None:
    assert only("31 April 2023")[0] == "April 2023"
    assert said("May 10-8") == []
    assert only("the fifth Monday of February 2023")[0] == "February 2023"
    assert only("the fifth quarter of 2023")[0] == "2023"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the Friday of May 2023", "May 2023"),
        ("the month of May 2023", "May 2023"),
        ("the second week of the day 5 May 2023", "5 May 2023"),
        ("the first year of the 90s", "90s"),
        ("the first year of 2023", "2023"),
        ("early 5 May 2023", "5 May 2023"),
        ("the year of 5 May 2023", "5 May 2023"),
    ],
)
def test_what_cannot_be_composed_leaves_the_plain_time(text: str, shown: str) -> None:
    assert only(text)[0] == shown


def test_spans_are_exact_and_in_order() -> None:
    text = "Zoë 🙂 said: two weeks ago, on 8 May 2023, in the summer of 2020!"
    found = find_times(text, MONDAY)
    assert [text[m.span.start : m.span.end] for m in found] == [m.text for m in found]
    assert [m.text for m in found] == ["two weeks ago", "8 May 2023", "summer of 2020"]


def test_a_year_is_shared_only_by_like_times() -> None:
    assert said("Jan 4 and Feb 6 2023")[0][1] == "2023-01-04"
    assert said("in May and 2023")[0][1] == "2025-05-01"
    assert said("Feb 29 and March 2 2023")[0][1] == "2024-02-29"
    assert said("from May 8 and June 2021")[0][1:3] == ("2025-05-08", "2025-05-08")
    assert said("Jan 4, May 8 2023")[0][1] == "2026-01-04"
    assert said("from May 2023 to March 2023") == [
        ("May 2023", "2023-05-01", "2023-05-31", "month"),
        ("March 2023", "2023-03-01", "2023-03-31", "month"),
    ]


def candidates(mention: FoundTime, first: int, last: int) -> list[tuple[date, date]]:
    return [
        (interval.start.date(), interval.end.date())
        for interval in mention.candidates(
            datetime(first, 4, 1, tzinfo=UTC), datetime(last, 4, 1, tzinfo=UTC)
        )
    ]


def test_an_open_year_means_every_year_of_the_data() -> None:
    (mention,) = find_times("When did they go camping in May?", MONDAY)
    assert mention.open_year
    assert [first for first, _ in candidates(mention, 2021, 2023)] == [
        date(2021, 5, 1),
        date(2022, 5, 1),
        date(2023, 5, 1),
    ]
    (winter,) = find_times("in the winter", MONDAY)
    found = winter.candidates(datetime(2023, 1, 5, tzinfo=UTC), datetime(2023, 9, 1, tzinfo=UTC))
    assert [interval.start.year for interval in found] == [2022, 2023]
    (leap,) = find_times("on Feb 29", MONDAY)
    assert candidates(leap, 2021, 2024) == [(date(2024, 2, 29), date(2024, 3, 1))]


def test_composed_times_keep_their_open_year() -> None:
    (mention,) = find_times("in the second week of November", MONDAY)
    assert mention.open_year
    assert candidates(mention, 2022, 2023) == [
        (date(2022, 11, 8), date(2022, 11, 15)),
        (date(2023, 11, 8), date(2023, 11, 15)),
    ]
    (between,) = find_times("between May and July", MONDAY)
    assert candidates(between, 2022, 2022) == [(date(2022, 5, 1), date(2022, 8, 1))]


def test_a_time_with_its_year_means_only_itself() -> None:
    (mention,) = find_times("on 8 May 2023", MONDAY)
    assert candidates(mention, 1990, 2030) == [(date(2023, 5, 8), date(2023, 5, 9))]


def test_days_are_those_of_the_anchor_s_zone() -> None:
    tokyo = timezone(timedelta(hours=9))
    (mention,) = find_times("today", datetime(2026, 3, 9, 1, tzinfo=tokyo))
    assert mention.start == datetime(2026, 3, 8, 15, tzinfo=UTC)
    assert mention.end == datetime(2026, 3, 9, 15, tzinfo=UTC)


def test_a_naive_anchor_is_refused() -> None:
    with pytest.raises(NaiveDatetimeError, match="time zone"):
        find_times("today", datetime(2026, 3, 9))  # noqa: DTZ001


def test_times_outside_the_calendar_are_no_mentions() -> None:
    assert said("last year, yesterday", datetime(1, 1, 1, tzinfo=UTC)) == []
    assert said("next year", datetime(9999, 12, 31, tzinfo=UTC)) == []
    east = timezone(timedelta(hours=9))
    assert find_times("today", datetime(1, 1, 1, 12, tzinfo=east)) == ()
    (mention,) = find_times("in May", datetime(2, 6, 1, tzinfo=UTC))
    assert mention.candidates(datetime(1, 1, 1, tzinfo=UTC), datetime(2, 1, 1, tzinfo=UTC))[
        0
    ].start == datetime(1, 5, 1, tzinfo=UTC)
    assert said("the week before today", datetime(1, 1, 1, tzinfo=UTC)) == [
        ("today", "0001-01-01", "0001-01-01", "day")
    ]


def test_weeks_and_seasons_follow_the_options() -> None:
    assert days("this week", week_starts_on=6) == ("2026-03-08", "2026-03-14")
    assert days("this Sunday", week_starts_on=6) == ("2026-03-08", "2026-03-08")
    assert days("in summer 2022", southern=True) == ("2022-12-01", "2023-02-28")


def test_look_alike_letters_do_not_break_the_tables() -> None:
    assert days("ın the wınter of 2022 (no winter)") == ("2022-12-01", "2023-02-28")
    assert said("the nınetıes? fıve weeKs ago on FRIDAY")[-1][0] == "FRIDAY"
