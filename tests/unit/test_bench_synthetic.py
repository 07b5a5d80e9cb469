"""The synthetic stream: its grammar round-trips, and its answers are those of the rules."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.datasets.synthetic import (
    PREDICATES,
    Said,
    Statement,
    drafts,
    held,
    parse,
    visible,
)
from benchmarks.datasets.synthetic_stream import Shape, conversations, stream
from evicortex import EviCortex, EvidenceDraft

DAY = datetime(2023, 5, 1, tzinfo=UTC)
WORDS = st.from_regex(r"[A-Z][a-z]{1,8}", fullmatch=True)
DAYS = st.none() | st.integers(0, 900).map(lambda days: DAY + timedelta(days=days))


@given(
    statement=st.builds(
        Statement,
        subject=WORDS,
        predicate=st.sampled_from(sorted(PREDICATES)),
        value=st.lists(WORDS | st.integers(0, 99).map(str), min_size=1, max_size=3).map(" ".join),
        since=DAYS,
        until=DAYS,
        negative=st.booleans(),
        correction=st.booleans(),
    ),
    before=st.sampled_from(["", "It rained. ", "Ann's city is nice. "]),
)
def test_a_statement_reads_back_as_it_was_written(statement, before):
    text = f"{before}{statement.render()} I slept badly."
    ((found, (start, end)),) = parse(text)
    assert found == statement
    assert text[start:end] == statement.value
    (draft,) = drafts(text)
    assert (draft.subject, draft.object, draft.span) == (
        statement.subject,
        statement.value,
        (start, end),
    )
    assert draft.polarity == ("negative" if statement.negative else "positive")


@pytest.mark.parametrize(
    "text",
    [
        "Ann's city is Bonn.",
        "For the record, Ann's shoe is Bonn.",
        "For the record, Ann's city is Bonn",
        "For the record, Ann's city was Bonn.",
        "for the record, Ann's city is Bonn.",
    ],
)
def test_anything_else_is_no_statement(text):
    assert parse(text) == []


def said(order, value, *, at, since=None, until=None, negative=False, predicate="city"):
    statement = Statement("Ann", predicate, value, since, until, negative)
    return Said(f"t{order}", order, at, statement)


def test_changes_corrections_and_late_news_hold_when_the_rules_say():
    day = [DAY + timedelta(days=number) for number in range(10)]
    known = [
        said(0, "Bonn", at=day[0]),
        said(1, "Rome", at=day[4]),
        said(2, "Kiel", at=day[5], since=day[4]),
        said(3, "Oslo", at=day[6], since=day[0] - timedelta(90), until=day[0] - timedelta(9)),
    ]
    values = [held(known, "Ann", "city", at) for at in (day[0], day[3], day[4], day[9])]
    assert [found.statement.value for found in values] == ["Bonn", "Bonn", "Kiel", "Kiel"]
    assert held(known, "Ann", "city", day[0] - timedelta(30)).statement.value == "Oslo"
    assert held(known, "Ann", "city", day[0] - timedelta(5)) is None
    assert held(visible(known, day[4]), "Ann", "city", day[4]).statement.value == "Rome"


def test_a_denial_ends_one_value_of_several():
    known = [
        said(0, "chess", at=DAY, predicate="hobby"),
        said(1, "golf", at=DAY, predicate="hobby"),
        said(2, "chess", at=DAY + timedelta(days=2), negative=True, predicate="hobby"),
    ]
    late = DAY + timedelta(days=3)
    assert held(known, "Ann", "hobby", late, value="chess").statement.negative
    assert not held(known, "Ann", "hobby", late, value="golf").statement.negative


def test_a_seed_decides_everything_and_another_seed_says_something_else():
    shape = Shape(seed=3, namespaces=2, turns=120, questions=20)
    assert stream(shape).digest == stream(shape).digest
    assert list(stream(shape).conversations()) == list(conversations(shape))
    assert stream(shape).digest != stream(Shape(4, 2, 120, 20)).digest


def test_every_kind_of_question_occurs_and_gold_is_visible_when_asked():
    categories: Counter[str] = Counter()
    for seed in range(3):
        for conversation in conversations(Shape(seed)):
            times = {turn.turn_id: turn.occurred_at for turn in conversation.turns}
            for query in conversation.queries:
                label = conversation.labels[query.query_id]
                categories[label.category] += 1
                assert label.answerable == bool(label.gold)
                assert all(times[turn] <= query.as_of for turn in label.gold)
    assert set(categories) == {
        "changed, now",
        "changed, then",
        "correction",
        "negation",
        "nothing held",
        "never said",
        "old news told late",
        "stated once",
    }


def test_no_value_is_denied_twice_so_that_gold_is_one_turn():
    for conversation in conversations(Shape(seed=5)):
        said = [
            (s.subject, s.predicate, s.value, s.negative)
            for turn in conversation.turns
            for s, _ in parse(turn.text)
        ]
        assert len(set(said)) == len(said)
        assert any(negative for *_, negative in said)


def test_namespaces_share_people_but_not_answers():
    first, second = conversations(Shape(seed=1, namespaces=2))
    texts = [{turn.text for turn in each.turns if turn.claims} for each in (first, second)]
    assert not texts[0] & texts[1]
    people = [{c.subject for t in each.turns for c in t.claims} for each in (first, second)]
    assert people[0] & people[1]


def test_the_ledger_holds_what_the_stream_says_is_true(tmp_path):
    (conversation,) = conversations(Shape(seed=2, namespaces=1, turns=200, questions=0))
    everything = [
        Said(turn.turn_id, order, turn.occurred_at, statement)
        for order, (turn, statement) in enumerate(
            (turn, statement) for turn in conversation.turns for statement, _ in parse(turn.text)
        )
    ]
    with EviCortex.open(tmp_path / "a.db", embedder=None) as cortex:
        cortex.remember_many(
            "a",
            [
                EvidenceDraft(turn.text, occurred_at=turn.occurred_at, claims=turn.claims)
                for turn in conversation.turns
            ],
        )
        start, end = conversation.turns[0].occurred_at, conversation.turns[-1].occurred_at
        checked = 0
        for share in (-0.5, 0.2, 0.5, 0.8, 1.0):
            at = start + share * (end - start)
            for predicate in [name for name, kind in PREDICATES.items() if kind == "single"]:
                for subject in {each.statement.subject for each in everything}:
                    found = cortex.claims("a", subject=subject, predicate=predicate, as_of=at)
                    expected = held(everything, subject, predicate, at)
                    values = {claim.object for claim in found}
                    assert values == (set() if expected is None else {expected.statement.value})
                    checked += bool(values)
        assert checked > 20
