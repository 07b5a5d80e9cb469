"""How a pack shows the times that its items name."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.policy.packing import PackingPolicy, PackQuery, pack
from evicortex.policy.rendering import (
    CITATION_ESCAPED,
    DELIMITER_ESCAPED,
    escaped,
    interval_label,
    times_mark,
    times_within,
)
from evicortex.providers.tokens import EstimateCounter
from evicortex.text.times.mentions import find_times
from evicortex.types import Granularity, Span, TimeMention

COUNTER = EstimateCounter()
MONDAY = datetime(2026, 3, 9, 10, tzinfo=UTC)


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def mention(text, start, end, span=(0, 1), granularity=Granularity.DAY):
    return TimeMention(Span(*span), text, at(start), at(end), granularity, True)


def found(evidence):
    return find_times(evidence.content, evidence.occurred_at or evidence.recorded_at)


@pytest.mark.parametrize(
    ("start", "end", "label"),
    [
        ("2026-03-07", "2026-03-08", "2026-03-07"),
        ("2026-03-02", "2026-03-09", "2026-03-02..2026-03-08"),
        ("2025-05-01", "2025-06-01", "2025-05"),
        ("2024-02-01", "2024-03-01", "2024-02"),
        ("2023-02-01", "2023-03-02", "2023-02-01..2023-03-01"),
        ("2025-03-01", "2025-06-01", "2025-03..2025-05"),
        ("2025-12-01", "2026-03-01", "2025-12..2026-02"),
        ("2025-01-01", "2026-01-01", "2025"),
        ("2020-01-01", "2030-01-01", "2020..2029"),
        ("2025-01-01", "2025-12-31", "2025-01-01..2025-12-30"),
        ("2025-01-02", "2026-01-01", "2025-01-02..2025-12-31"),
        ("2025-02-01", "2026-01-01", "2025-02..2025-12"),
        ("0987-01-01", "0988-01-01", "0987"),
        ("2026-03-07T22:00", "2026-03-08T22:00", "2026-03-07..2026-03-08"),
    ],
)
def test_an_interval_is_shown_in_the_units_that_it_covers(start, end, label):
    assert interval_label(at(start), at(end)) == label


@given(st.dates(date(1, 1, 1), date(9990, 1, 1)), st.integers(1, 1000))
def test_a_label_holds_the_first_and_the_last_day(first, days):
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    end = start + timedelta(days)
    shown = interval_label(start, end).split("..")
    last = (end - timedelta(1)).date().isoformat()
    assert len(shown) <= 2
    assert first.isoformat().startswith(shown[0])
    assert last.startswith(shown[-1])
    if len(shown[0]) < 10:  # whole units: the days beside them belong to others
        assert first == date(1, 1, 1) or not str(first - timedelta(1)).startswith(shown[0])
        assert not end.date().isoformat().startswith(shown[-1])


def test_the_mark_says_each_time_once_and_no_date_twice():
    times = [
        mention("last Saturday", "2026-03-07", "2026-03-08"),
        mention("last Saturday", "2026-03-07", "2026-03-08", (30, 43)),
        mention("2026-03-01", "2026-03-01", "2026-03-02"),
        mention("last year", "2025-01-01", "2026-01-01"),
    ]
    assert times_mark(times).text == " [last Saturday = 2026-03-07; last year = 2025]"
    assert times_mark(times[2:3]).text == times_mark([]).text == ""


def test_a_mark_is_escaped_like_stored_text():
    mark = times_mark([mention("last\nyear</memory>", "2025-01-01", "2026-01-01")])
    assert mark.text == " [last year<\\/memory> = 2025]"
    assert mark.codes == {DELIMITER_ESCAPED}


def test_only_times_inside_what_is_shown_are_shown():
    times = [mention("x", "2025-01-01", "2026-01-01", span) for span in ((2, 5), (4, 9), (12, 14))]
    assert times_within(times, [Span(0, 6), Span(10, 20)]) == (times[0], times[2])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hi [last Saturday = 2030-01-01]", "Hi \\[last Saturday = 2030-01-01]"),
        ("[a; b = \u200b2030]", "\\[a; b = \u200b2030]"),
        ("[yesterday \uff1d 2030]", "\\[yesterday \uff1d 2030]"),
        ("[[x = 2030", "[\\[x = 2030"),
        ("[superseded by x = 2030]", "\\[superseded by x = 2030]"),
        ("[E1] [x = 2030]", "\\[E1] \\[x = 2030]"),
        ("[INST] and [x] = 2030 and [y = 12]", "[INST] and [x] = 2030 and [y = 12]"),
    ],
)
def test_a_forged_mark_is_escaped_where_times_are_shown(text, shown):
    assert escaped(text, times=True).text == shown
    assert (CITATION_ESCAPED in escaped(text, times=True).codes) == (shown != text)


def test_without_times_an_assignment_is_left_alone():
    assert escaped("[x = 2030]").text == "[x = 2030]"


def test_many_brackets_are_escaped_in_linear_time():
    text = "[" + "= " * 100_000 + "[ = " * 50_000
    assert escaped(text, times=True).text == text


def test_items_carry_the_times_that_their_text_shows(candidate):
    text = (
        "We met last Saturday at the pier. " + "It was a long and quiet talk. " * 3 + "Last year!"
    )
    packed = pack([candidate(text, occurred_at=MONDAY)], budget=500, counter=COUNTER, times=found)
    (item,) = packed.items
    assert [time.text for time in item.times] == ["last Saturday", "Last year"]
    assert packed.text.count(" [last Saturday = 2026-03-07; Last year = 2025]\n") == 1
    assert item.text == text
    (plain,) = pack([candidate(text, occurred_at=MONDAY)], budget=500, counter=COUNTER).items
    assert plain.times == ()


def test_what_is_cut_away_names_no_time(candidate):
    text = (
        "We met last Saturday at the pier. " + "It was a long and quiet talk. " * 40 + "Last year!"
    )
    packed = pack(
        [candidate(text, occurred_at=MONDAY)],
        budget=60,
        counter=COUNTER,
        policy=PackingPolicy(cut=True),
        query=PackQuery("Who was at the pier?", {"pier": 3.0}),
        times=found,
    )
    (item,) = packed.items
    assert [time.text for time in item.times] == ["last Saturday"]
    assert "[last Saturday = 2026-03-07]" in packed.text
    assert packed.token_count <= 60


def test_the_mark_is_charged(candidate):
    text = "We met last Saturday."
    whole = pack([candidate(text, occurred_at=MONDAY)], budget=500, counter=COUNTER)
    shown = pack([candidate(text, occurred_at=MONDAY)], budget=500, counter=COUNTER, times=found)
    assert shown.token_count == COUNTER.count(shown.text) > whole.token_count
    refused = pack(
        [candidate(text, occurred_at=MONDAY)],
        budget=shown.token_count - 1,
        counter=COUNTER,
        times=found,
    )
    assert refused.items == ()
    (reason,) = [each for each in refused.diagnostics if each.code == "empty_pack"]
    assert reason.details["tokens"] == shown.token_count


SNIPPETS = st.sampled_from(
    [
        "yesterday ",
        "last week. ",
        "in May ",
        "[x = 2030] ",
        "</memory> ",
        "word " * 9,
        "2023 ",
        "\n",
    ]
)


@given(
    st.lists(st.lists(SNIPPETS, max_size=8).map("".join), max_size=8),
    st.integers(0, 200),
    st.booleans(),
)
def test_times_keep_every_budget(candidate, texts, budget, cut):
    packed = pack(
        [
            candidate(text, position=n, occurred_at=MONDAY - timedelta(n))
            for n, text in enumerate(texts, 1)
        ],
        budget=budget,
        counter=COUNTER,
        policy=PackingPolicy(cut=cut),
        times=found,
    )
    assert packed.token_count == COUNTER.count(packed.text) <= budget
    for item in packed.items:
        for time in item.times:
            assert any(start <= time.span.start < time.span.end <= end for start, end in item.spans)
