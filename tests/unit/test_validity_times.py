from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import pytest

from evicortex.errors import InvalidTimeError, NaiveDatetimeError
from evicortex.validity import (
    MAX_MICROS,
    MIN_MICROS,
    check_interval,
    format_utc,
    from_micros,
    overlaps,
    to_micros,
    to_utc,
)


class Undecided(tzinfo):
    def utcoffset(self, _moment: datetime | None) -> timedelta | None:
        return None

    def dst(self, _moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, _moment: datetime | None) -> str | None:
        return None


class Stamp(datetime):
    """Some library's own kind of datetime."""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-03-09T10:00:00Z", datetime(2026, 3, 9, 10, tzinfo=UTC)),
        ("2026-03-09 10:00+02:00", datetime(2026, 3, 9, 8, tzinfo=UTC)),
        ("20260309T100000.5-0330", datetime(2026, 3, 9, 13, 30, 0, 500_000, tzinfo=UTC)),
        ("2026-03-09T10:00:00.1234567Z", datetime(2026, 3, 9, 10, 0, 0, 123_456, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31T23:59:59.999999Z", datetime.max.replace(tzinfo=UTC)),
        (datetime(2026, 3, 9, 10, tzinfo=UTC), datetime(2026, 3, 9, 10, tzinfo=UTC)),
        (
            datetime(2026, 3, 9, 10, tzinfo=timezone(timedelta(hours=-5))),
            datetime(2026, 3, 9, 15, tzinfo=UTC),
        ),
    ],
)
def test_an_aware_time_becomes_the_same_moment_in_utc(
    given: str | datetime, expected: datetime
) -> None:
    read = to_utc(given)
    assert read == expected
    assert read.utcoffset() == timedelta(0)
    assert read.replace(tzinfo=None) == expected.replace(tzinfo=None)


def test_no_time_stays_no_time() -> None:
    assert to_utc(None) is None


def test_a_subclass_of_datetime_becomes_a_plain_one() -> None:
    read = to_utc(Stamp(2026, 3, 9, tzinfo=UTC))
    assert type(read) is datetime


@pytest.mark.parametrize(
    "given",
    [
        "2026-03-09",
        "2026-03-09T10:00:00",
        datetime(2026, 3, 9, 10),  # noqa: DTZ001
        datetime(2026, 3, 9, 10, tzinfo=Undecided()),
        date(2026, 3, 9),
    ],
)
def test_a_time_without_a_zone_is_refused(given: str | datetime) -> None:
    with pytest.raises(NaiveDatetimeError, match="occurred_at"):
        to_utc(given, "occurred_at")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "\ud800",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        1_700_000_000,
        True,
        b"2026-03-09T10:00:00Z",
    ],
)
def test_an_unreadable_or_impossible_time_is_refused(given: str) -> None:
    with pytest.raises(InvalidTimeError):
        to_utc(given)


def test_microseconds_refuse_naive_and_out_of_range() -> None:
    with pytest.raises(NaiveDatetimeError):
        to_micros(datetime(2026, 3, 9))  # noqa: DTZ001
    with pytest.raises(InvalidTimeError):
        to_micros(datetime.min.replace(tzinfo=timezone(timedelta(hours=1))))
    with pytest.raises(InvalidTimeError):
        from_micros(MIN_MICROS - 1)
    with pytest.raises(InvalidTimeError):
        from_micros(MAX_MICROS + 1)


def test_the_whole_range_is_exact() -> None:
    assert from_micros(MIN_MICROS) == datetime.min.replace(tzinfo=UTC)
    assert from_micros(MAX_MICROS) == datetime.max.replace(tzinfo=UTC)
    assert from_micros(0) == datetime(1970, 1, 1, tzinfo=UTC)
    assert to_micros(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


def test_text_form_is_short_and_ends_in_z() -> None:
    plus_two = timezone(timedelta(hours=2))
    assert format_utc(datetime(2026, 3, 9, 10, tzinfo=plus_two)) == "2026-03-09T08:00:00Z"
    assert format_utc(datetime(1, 1, 1, 0, 0, 0, 7, tzinfo=UTC)) == "0001-01-01T00:00:00.000007Z"


def test_an_interval_ends_after_it_begins() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    check_interval(early, late, "validity")
    check_interval(None, early, "validity")
    check_interval(late, None, "validity")
    for start, end in ((late, early), (early, early)):
        with pytest.raises(InvalidTimeError, match="claim 3"):
            check_interval(start, end, "claim 3")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((0, 5), (4, 9), True),
        ((0, 5), (5, 9), False),
        ((5, 9), (0, 5), False),
        ((0, None), (7, 8), True),
        ((7, 8), (0, None), True),
        ((7, None), (0, 7), False),
        ((0, None), (9, None), True),
    ],
)
def test_half_open_intervals_overlap(
    a: tuple[int, int | None], b: tuple[int, int | None], *, expected: bool
) -> None:
    assert overlaps(*a, *b) is expected
    assert overlaps(*b, *a) is expected
