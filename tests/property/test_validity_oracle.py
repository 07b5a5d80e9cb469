"""The rules of validity against a plain oracle that replays what happened, event by event.

The oracle asks the definitions one claim, one moment and one knowledge at a time; it shares no
code and no data structure with what it checks. Moments are small integers, so that every
boundary and every tie is met often.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evicortex.types import Authority, Cardinality, ClaimStatus, Polarity
from evicortex.validity import (
    MAX_MICROS,
    MIN_MICROS,
    Assertion,
    AuthorityOrder,
    conflicts,
    format_utc,
    from_micros,
    match_key,
    overlaps,
    predicate_key,
    resolve,
    to_micros,
    to_utc,
)

HORIZON = 7
MOMENTS = range(-1, HORIZON + 2)
AUTHORITIES = (Authority.SYSTEM, Authority.USER, Authority.DOCUMENT)


@dataclass(frozen=True)
class Add:
    at: int
    subject: str
    value: str
    polarity: Polarity
    cardinality: Cardinality
    authority: Authority
    start: int
    end: int | None


@dataclass(frozen=True)
class Retract:
    at: int
    which: int


@dataclass(frozen=True)
class Purge:
    at: int
    which: int


Event = Add | Retract | Purge


@dataclass
class Belief:
    name: str
    number: int
    said: Add
    withdrawn: int | None = None


@dataclass
class Oracle:
    """Replays events up to a knowledge; a purge removes a claim from every knowledge."""

    events: list[Event]
    known_at: int | None
    order: AuthorityOrder
    beliefs: list[Belief] = field(default_factory=list)

    def __post_init__(self) -> None:
        purged = {event.which for event in self.events if isinstance(event, Purge)}
        number = 0
        for event in self.events:
            late = self.known_at is not None and event.at > self.known_at
            if isinstance(event, Add):
                if not late and number not in purged:
                    self.beliefs.append(Belief(f"c{number}", number, event))
                number += 1
            elif isinstance(event, Retract) and not late:
                for belief in self.beliefs:
                    if belief.number == event.which and belief.withdrawn is None:
                        belief.withdrawn = event.at

    def rank(self, belief: Belief) -> int:
        return -self.order.ranking.index(belief.said.authority)

    def later(self, a: Belief, b: Belief) -> bool:
        return (a.said.start, a.number) > (b.said.start, b.number)

    def covers(self, a: Belief, t: int) -> bool:
        return a.said.start <= t and (a.said.end is None or t < a.said.end)

    def active(self, t: int) -> list[Belief]:
        return [b for b in self.beliefs if b.withdrawn is None and self.covers(b, t)]

    def contradicts(self, winner: Belief, loser: Belief) -> bool:
        w, x = winner.said, loser.said
        if w.subject != x.subject:
            return False
        if w.value == x.value:
            return w.polarity != x.polarity
        both = w.polarity == x.polarity == Polarity.POSITIVE
        return both and w.cardinality == "single"

    def superseders(self, c: Belief, t: int) -> list[Belief]:
        return [
            d
            for d in self.active(t)
            if self.contradicts(d, c) and self.later(d, c) and self.rank(d) >= self.rank(c)
        ]

    def overriders(self, c: Belief, t: int) -> list[Belief]:
        return [
            d
            for d in self.active(t)
            if self.contradicts(d, c)
            and not self.later(d, c)
            and self.rank(d) > self.rank(c)
            and self.held(d, t)
        ]

    def held(self, c: Belief, t: int) -> bool:
        if c.withdrawn is not None or not self.covers(c, t):
            return False
        return not self.superseders(c, t) and not self.overriders(c, t)

    def status(self, c: Belief, t: int) -> ClaimStatus:
        if c.withdrawn is not None:
            return ClaimStatus.RETRACTED
        if t < c.said.start:
            return ClaimStatus.FUTURE
        if not self.covers(c, t):
            return ClaimStatus.EXPIRED
        if self.superseders(c, t):
            return ClaimStatus.SUPERSEDED
        return ClaimStatus.CONFLICTING if self.overriders(c, t) else ClaimStatus.HELD

    def stands(self, c: Belief, t: int) -> bool:
        return self.status(c, t) in (ClaimStatus.HELD, ClaimStatus.CONFLICTING)

    def ender(self, c: Belief, t: int) -> Belief | None:
        if self.status(c, t) is not ClaimStatus.SUPERSEDED:
            return None
        return min(self.superseders(c, t), key=lambda d: (d.said.start, -self.rank(d), -d.number))

    def interval(self, c: Belief, t: int) -> tuple[int, int | None]:
        runs: list[tuple[int, int | None]] = []
        for moment in MOMENTS:
            if self.held(c, moment):
                if runs and runs[-1][1] == moment:
                    runs[-1] = (runs[-1][0], moment + 1)
                else:
                    runs.append((moment, moment + 1))
        # Past the last moment nothing begins or ends any more.
        runs = [(a, None if b == MOMENTS[-1] + 1 else b) for a, b in runs]
        around = [(a, b) for a, b in runs if a <= t and (b is None or t < b)]
        return (around or runs or [(c.said.start, c.said.start)])[0]

    def contradicted(self, c: Belief, t: int) -> list[Belief]:
        found = []
        for d in self.active(t):
            if not (self.stands(c, t) and self.stands(d, t)) or self.rank(d) == self.rank(c):
                continue
            high, low = (d, c) if self.rank(d) > self.rank(c) else (c, d)
            if self.contradicts(high, low) and not self.later(high, low):
                found.append(d)
        return sorted(found, key=lambda d: (d.said.start, d.number))

    def agreeing(self, c: Belief, t: int) -> list[Belief]:
        found = [
            d
            for d in self.active(t)
            if c in self.active(t)
            and d is not c
            and d.said.subject == c.said.subject
            and (d.said.value, d.said.polarity) == (c.said.value, c.said.polarity)
            and self.stands(d, t) == self.stands(c, t)
            and self.ender(d, t) is self.ender(c, t)
        ]
        return sorted(found, key=lambda d: (d.said.start, d.number))

    def superseded_at(self, c: Belief, t: int) -> int | None:
        status = self.status(c, t)
        if status is ClaimStatus.RETRACTED:
            return c.withdrawn
        if status is ClaimStatus.SUPERSEDED:
            return max(c.said.at, min(d.said.at for d in self.superseders(c, t)))
        if status is ClaimStatus.CONFLICTING:
            return max(c.said.at, min(d.said.at for d in self.overriders(c, t)))
        return None


def assertions_of(events: list[Event]) -> list[Assertion]:
    """What a ledger would hold after these events."""
    adds = [event for event in events if isinstance(event, Add)]
    gone = {event.which for event in events if isinstance(event, Purge)}
    retracted: dict[int, int] = {}
    seen = 0
    for event in events:
        if isinstance(event, Add):
            seen += 1
        elif isinstance(event, Retract) and event.which < seen:
            retracted.setdefault(event.which, event.at)
    return [
        Assertion(
            f"c{n}",
            n + 1,
            add.subject,
            "p",
            add.value,
            add.polarity,
            add.cardinality,
            add.authority,
            add.start,
            add.end,
            add.at,
            retracted.get(n),
        )
        for n, add in enumerate(adds)
        if n not in gone
    ]


@st.composite
def stories(draw: st.DrawFn) -> list[Event]:
    events: list[Event] = []
    at = adds = 0
    for _ in range(draw(st.integers(0, 14))):
        at += draw(st.integers(0, 2))
        kind = draw(st.sampled_from("aaaaaaarp")) if adds else "a"
        if kind == "a":
            start = draw(st.integers(0, HORIZON - 1))
            length = draw(st.none() | st.none() | st.integers(1, HORIZON - start))
            events.append(
                Add(
                    at,
                    draw(st.sampled_from("ssssssst")),
                    draw(st.sampled_from("abc")),
                    draw(st.sampled_from((*[Polarity.POSITIVE] * 3, Polarity.NEGATIVE))),
                    draw(st.sampled_from(("single", "single", "multi"))),
                    draw(st.sampled_from(AUTHORITIES)),
                    start,
                    None if length is None else start + length,
                )
            )
            adds += 1
        else:
            which = draw(st.integers(0, adds - 1))
            events.append(Retract(at, which) if kind == "r" else Purge(at, which))
    return events


orders = st.permutations(tuple(Authority)).map(lambda names: AuthorityOrder(tuple(names)))
moments = st.integers(MOMENTS[0], MOMENTS[-1])
knowledge = st.none() | st.integers(-1, 28)


@settings(max_examples=400, deadline=None)
@given(stories(), moments, knowledge, orders, st.randoms(use_true_random=False))
def test_every_claim_is_what_the_oracle_says(
    events: list[Event], as_of: int, known_at: int | None, order: AuthorityOrder, rng: random.Random
) -> None:
    oracle = Oracle(events, known_at, order)
    assertions = assertions_of(events)
    rng.shuffle(assertions)
    states = resolve(assertions, as_of=as_of, known_at=known_at, order=order)

    assert set(states) == {belief.name for belief in oracle.beliefs}
    for belief in oracle.beliefs:
        state = states[belief.name]
        ender = oracle.ender(belief, as_of)
        assert state.status is oracle.status(belief, as_of)
        assert state.superseded_by == (() if ender is None else (ender.name,))
        assert (state.valid_from, state.valid_to) == oracle.interval(belief, as_of)
        opposed = oracle.contradicted(belief, as_of)
        assert state.conflicts_with == tuple(other.name for other in opposed)
        agreeing = oracle.agreeing(belief, as_of)
        assert state.corroborated_by == tuple(other.name for other in agreeing)
        assert state.superseded_at == oracle.superseded_at(belief, as_of)


@settings(max_examples=200, deadline=None)
@given(stories(), knowledge, orders)
def test_conflicts_are_the_pairs_that_the_oracle_finds_over_time(
    events: list[Event], known_at: int | None, order: AuthorityOrder
) -> None:
    oracle = Oracle(events, known_at, order)
    expected: dict[tuple[str, str], int] = {}
    for moment in reversed(MOMENTS):
        for belief in oracle.active(moment):
            if oracle.stands(belief, moment):
                for winner in oracle.overriders(belief, moment):
                    expected[belief.name, winner.name] = moment
    found = list(conflicts(assertions_of(events), known_at=known_at, order=order))
    starts = {(c.claim.claim_id, c.overridden_by.claim_id): c.valid_from for c in found}
    assert starts == expected
    assert len(found) == len(starts)
    by_name = {belief.name: belief for belief in oracle.beliefs}
    for c in found:
        for moment in MOMENTS:
            if c.valid_from <= moment and (c.valid_to is None or moment < c.valid_to):
                loser, winner = by_name[c.claim.claim_id], by_name[c.overridden_by.claim_id]
                assert winner in oracle.overriders(loser, moment)


@settings(max_examples=200, deadline=None)
@given(stories(), moments, st.randoms(use_true_random=False))
def test_the_order_of_arrival_matters_only_between_equal_starts(
    events: list[Event], as_of: int, rng: random.Random
) -> None:
    first: dict[tuple[str, int], Add] = {}
    for event in events:
        if isinstance(event, Add):
            first.setdefault((event.subject, event.start), event)
    adds = list(first.values())

    def held(arrival: list[Add]) -> set[Add]:
        events: list[Event] = [
            Add(at, a.subject, a.value, a.polarity, a.cardinality, a.authority, a.start, a.end)
            for at, a in enumerate(arrival)
        ]
        states = resolve(assertions_of(events), as_of=as_of)
        return {a for n, a in enumerate(arrival) if states[f"c{n}"].status is ClaimStatus.HELD}

    expected = held(adds)
    rng.shuffle(adds)
    assert held(adds) == expected


@settings(max_examples=200, deadline=None)
@given(stories(), moments, st.integers(0, 12))
def test_retraction_and_purge_leave_what_would_be_had_it_never_been_said(
    events: list[Event], as_of: int, which: int
) -> None:
    def held(events: list[Event]) -> set[str]:
        states = resolve(assertions_of(events), as_of=as_of).values()
        return {s.claim_id for s in states if s.status is ClaimStatus.HELD}

    at = max((event.at for event in events), default=0)
    without = held([*events, Purge(at, which)])
    assert held([*events, Retract(at, which)]) == without
    assert f"c{which}" not in without


@settings(max_examples=200, deadline=None)
@given(stories(), moments, knowledge)
def test_a_lower_authority_never_supersedes_a_higher_one(
    events: list[Event], as_of: int, known_at: int | None
) -> None:
    order = AuthorityOrder()
    assertions = {a.claim_id: a for a in assertions_of(events)}
    states = resolve(assertions.values(), as_of=as_of, known_at=known_at)
    for claim_id, state in states.items():
        own = assertions[claim_id].authority
        for ender in state.superseded_by:
            assert not order.exceeds(own, assertions[ender].authority)
    top = {a.authority for a in assertions.values() if a.claim_id in states}
    highest = max((order.ranks[authority] for authority in top), default=0)
    for claim_id, state in states.items():
        if order.ranks[assertions[claim_id].authority] == highest:
            assert state.status is not ClaimStatus.CONFLICTING


@settings(max_examples=200, deadline=None)
@given(stories(), moments)
def test_what_holds_together_contradicts_nothing(events: list[Event], as_of: int) -> None:
    assertions = {a.claim_id: a for a in assertions_of(events)}
    states = resolve(assertions.values(), as_of=as_of)
    held = [assertions[i] for i, s in states.items() if s.status is ClaimStatus.HELD]
    for a in held:
        for b in held:
            if a.subject == b.subject and a.value == b.value:
                assert a.polarity is b.polarity
            elif a.subject == b.subject and a.cardinality == b.cardinality == "single":
                assert Polarity.NEGATIVE in (a.polarity, b.polarity)


@given(st.integers(MIN_MICROS, MAX_MICROS))
@example(MIN_MICROS)
@example(MAX_MICROS)
@example(-1)
def test_every_microsecond_survives_each_form(micros: int) -> None:
    moment = from_micros(micros)
    assert to_micros(moment) == micros
    assert to_utc(format_utc(moment)) == moment
    assert to_micros(to_utc(moment.isoformat())) == micros


bounds = st.tuples(st.integers(0, 6), st.none() | st.integers(1, 7)).filter(
    lambda pair: pair[1] is None or pair[0] < pair[1]
)


@given(bounds, bounds)
def test_intervals_overlap_when_they_share_a_moment(
    a: tuple[int, int | None], b: tuple[int, int | None]
) -> None:
    shared = [
        t for t in range(9) if all(start <= t and (end is None or t < end) for start, end in (a, b))
    ]
    assert overlaps(*a, *b) is bool(shared)


@given(st.text())
def test_a_match_key_is_its_own_key(text: str) -> None:
    key = match_key(text)
    assert match_key(key) == key
    assert match_key(f" {text}\n") == key


@given(st.text() | st.text("aB \u00c9\u0301_-\u2010\u00a8", max_size=6))
def test_a_predicate_key_is_its_own_key_and_no_finer_than_a_match_key(text: str) -> None:
    key = predicate_key(text)
    assert predicate_key(key) == key
    assert predicate_key(match_key(text)) == key
    assert (key == "") == (match_key(text) == "")


@given(
    st.lists(st.text("abcxyz\u00e9\u0434", min_size=1), min_size=2, max_size=4),
    st.lists(st.sampled_from(["_", " ", "-", "\u2010", "\u2011", "\uff3f", "  "]), min_size=3),
)
def test_the_words_of_a_predicate_may_be_joined_in_any_way(
    words: list[str], joints: list[str]
) -> None:
    joined = words[0] + "".join(
        joints[index % len(joints)] + word for index, word in enumerate(words[1:])
    )
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    assert predicate_key(joined) == predicate_key(camel) == predicate_key("_".join(words))
