from datetime import date

import pytest

from evicortex.text.times import calendar


def test_weeks_run_from_the_chosen_weekday() -> None:
    monday = date(2026, 3, 9)
    assert calendar.week(monday) == (monday, date(2026, 3, 16))
    assert calendar.week(date(2026, 3, 15)) == (monday, date(2026, 3, 16))
    assert calendar.week(monday, starts_on=6) == (date(2026, 3, 8), date(2026, 3, 15))


@pytest.mark.parametrize("day", [9, 13, 14, 15])
def test_a_weekend_belongs_to_its_iso_week(day: int) -> None:
    assert calendar.weekend(date(2026, 3, day)) == (date(2026, 3, 14), date(2026, 3, 16))


@pytest.mark.parametrize(
    ("year", "number", "first", "end"),
    [
        (2023, 1, date(2023, 1, 1), date(2023, 2, 1)),
        (2023, 12, date(2023, 12, 1), date(2024, 1, 1)),
        (2023, 13, date(2024, 1, 1), date(2024, 2, 1)),
        (2023, 0, date(2022, 12, 1), date(2023, 1, 1)),
    ],
)
def test_months_run_over_the_year(year: int, number: int, first: date, end: date) -> None:
    assert calendar.month(year, number) == (first, end)


def test_quarters_years_and_decades() -> None:
    assert calendar.quarter(2023, 4) == (date(2023, 10, 1), date(2024, 1, 1))
    assert calendar.quarter(2023, 0) == (date(2022, 10, 1), date(2023, 1, 1))
    assert calendar.year(2024) == (date(2024, 1, 1), date(2025, 1, 1))
    assert calendar.decade(1990) == (date(1990, 1, 1), date(2000, 1, 1))


@pytest.mark.parametrize(
    ("name", "southern", "first_month"),
    [
        ("spring", False, 3),
        ("summer", False, 6),
        ("fall", False, 9),
        ("winter", False, 12),
        ("spring", True, 9),
        ("summer", True, 12),
        ("autumn", True, 3),
        ("winter", True, 6),
    ],
)
def test_seasons_are_three_months_from(name: str, southern: bool, first_month: int) -> None:
    first, end = calendar.season(2023, name, southern=southern)
    assert first == date(2023, first_month, 1)
    assert 89 <= (end - first).days <= 92


@pytest.mark.parametrize(
    ("year", "expected"),
    [
        # Dates of Western Easter as published by the U.S. Census Bureau (1600 to 2099).
        (1818, date(1818, 3, 22)),
        (1943, date(1943, 4, 25)),
        (2000, date(2000, 4, 23)),
        (2008, date(2008, 3, 23)),
        (2023, date(2023, 4, 9)),
        (2024, date(2024, 3, 31)),
        (2038, date(2038, 4, 25)),
    ],
)
def test_easter(year: int, expected: date) -> None:
    assert calendar.easter(year) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("thanksgiving", date(2023, 11, 23)),
        ("black friday", date(2023, 11, 24)),
        ("memorial day", date(2023, 5, 29)),
        ("mother", date(2023, 5, 14)),
        ("father", date(2023, 6, 18)),
        ("labor day", date(2023, 9, 4)),
        ("good friday", date(2023, 4, 7)),
        ("christmas", date(2023, 12, 25)),
    ],
)
def test_feasts(name: str, expected: date) -> None:
    assert calendar.feast(2023, name)[0] == expected


def test_a_month_may_lack_a_fifth_weekday() -> None:
    assert calendar.nth_weekday(2023, 12, 4, 5) == date(2023, 12, 29)
    with pytest.raises(ValueError, match="no such weekday"):
        calendar.nth_weekday(2023, 2, 0, 5)


def test_thirds_cover_the_whole() -> None:
    whole = calendar.month(2023, 5)
    parts = [calendar.third(whole, part) for part in range(3)]
    assert parts[0][0] == whole[0]
    assert parts[2][1] == whole[1]
    assert [part[1] for part in parts[:2]] == [part[0] for part in parts[1:]]


def _may(year: int) -> calendar.Days:
    return calendar.month(year, 5)


def _leap_day(year: int) -> calendar.Days:
    return calendar.days(date(year, 2, 29))


def test_occurrences_beside_a_day() -> None:
    in_may = date(2026, 5, 10)
    assert calendar.most_recent(_may, in_may)[0].year == 2026
    assert calendar.last_completed(_may, in_may)[0].year == 2025
    assert calendar.upcoming(_may, in_may)[0].year == 2026
    assert calendar.next_one(_may, in_may)[0].year == 2027
    assert calendar.nearest(_may, date(2026, 12, 1))[0].year == 2027


def test_occurrences_skip_years_without_the_day() -> None:
    assert calendar.most_recent(_leap_day, date(1903, 3, 1))[0] == date(1896, 2, 29)
    assert calendar.next_one(_leap_day, date(1897, 3, 1))[0] == date(1904, 2, 29)


def test_no_occurrence_at_the_edge_of_time() -> None:
    with pytest.raises(ValueError, match="no occurrence"):
        calendar.last_completed(_may, date(1, 1, 1))
