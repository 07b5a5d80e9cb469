import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.text.times.mentions import find_times

WORDS = st.sampled_from(
    "the in on of last next this past two a few May may March Jan Friday Sun week weekend month "
    "year years day days ago back before after between and to from early mid end late Christmas "
    "New Year's eve summer winter Q3 2023 1999 8 8th 31 29 04.01.2024 5/8/2023 '23 90s the 90s "
    "yesterday tomorrow I will , . ! quarter first second ſun wınter １２ 年 2023-05 - –".split()
)
TEXTS = st.one_of(
    st.text(max_size=200), st.lists(WORDS, max_size=30).map(" ".join), st.lists(WORDS).map("".join)
)
ANCHORS = st.datetimes(timezones=st.just(UTC))


@given(TEXTS, ANCHORS)
def test_any_text_at_any_time_gives_exact_ordered_intervals(text: str, anchor: datetime) -> None:
    end = 0
    for mention in find_times(text, anchor):
        assert end <= mention.span.start < mention.span.end <= len(text)
        assert text[mention.span.start : mention.span.end] == mention.text
        assert mention.start < mention.end
        assert mention.start.tzinfo is UTC
        end = mention.span.end


@given(TEXTS, ANCHORS, st.integers(1990, 2030), st.integers(0, 20))
def test_candidates_of_a_closed_year_are_itself_and_of_an_open_one_fall_in_the_data(
    text: str, anchor: datetime, first: int, count: int
) -> None:
    since = datetime(first, 1, 1, tzinfo=UTC)
    until = datetime(first + count, 12, 31, tzinfo=UTC)
    for mention in find_times(text, anchor):
        found = mention.candidates(since, until)
        if mention.open_year:
            assert all(
                interval.start.year in range(first - 1, first + count + 2) for interval in found
            )
            assert list(found) == sorted(found)
        else:
            assert found == ((mention.start, mention.end),)


@given(st.integers(-70 * 366, 130 * 365))
def test_relative_times_lie_where_their_words_say(days: int) -> None:
    anchor = datetime(1970, 1, 1, 10, tzinfo=UTC) + timedelta(days=days)
    today = anchor.replace(hour=0, minute=0, second=0, microsecond=0)
    for name in ("last Friday", "last weekend", "last week", "last month", "last year"):
        (mention,) = find_times(name, anchor)
        assert mention.end <= today
        assert mention.start >= today - timedelta(days=731)
    for name in ("next Friday", "next weekend", "next week", "next month", "next year"):
        (mention,) = find_times(name, anchor)
        assert mention.start > today
    for name in ("this week", "this month", "this year", "today"):
        (mention,) = find_times(name, anchor)
        assert mention.start <= today < mention.end


@pytest.mark.parametrize(
    "unit",
    [
        "8 ",
        "2023-",
        "May ",
        "the day before ",
        "in ",
        "a few years ",
        "1",
        " ",
        "Q1",
        "90s",
        "(",
        "\x00",
    ],
)
def test_reading_time_is_linear_in_the_text(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            find_times(text, datetime(2026, 3, 9, tzinfo=UTC))
            best = min(best, time.process_time() - begin)
        return best

    # Quadratic work would take 64 times as long for 8 times the text.
    assert seconds(40_000) < 24 * max(seconds(5_000), 0.001)
