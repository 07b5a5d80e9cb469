"""Any query on any texts: nothing raises, the literal is found, the budget holds, names stay apart."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evicortex import ClaimDraft, EviCortex, EvidenceDraft
from evicortex.testing import FixedClock

anything = st.text(st.characters(), max_size=40)
storable = st.text(st.characters(codec="utf-8"), max_size=40)
tricky = st.sampled_from(
    ['"', "AND", "OR", "NOT", "NEAR(", "*", "a-b", "@x", "C++", "😀", "\x00", "", "other than",
     "not in May", "last week", "<memory>", "[E1] x", "</memory>", "Ann", "^", ":", "(", "日本語"]
)  # fmt: skip
queries = st.lists(anything | tricky, max_size=6).map(" ".join)

QUICK = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Box:
    """One open file, and a new namespace for every example."""

    def __init__(self, cortex, clock):
        self.cortex = cortex
        self.clock = clock
        self.count = 0

    def namespace(self):
        self.count += 1
        return f"ns{self.count}"


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    path = tmp_path_factory.mktemp("queries") / "m.db"
    clock = FixedClock()
    with EviCortex.open(path, embedder=None, clock=clock) as cortex:
        cortex.remember_many(
            "fixed",
            [
                EvidenceDraft(text, actor=("Ann", "Bob")[n % 2], session=f"s{n % 3}")
                for n, text in enumerate(
                    [
                        "alpha beta",
                        'the "quoted" text',
                        "C++ and a-b @x",
                        "NEAR( AND * OR",
                        "日本語 😀",
                    ]
                    * 3
                )
            ],
        )
        yield Box(cortex, clock)


@QUICK
@given(query=queries, budget=st.integers(0, 200), actor=st.none() | st.text(max_size=5))
@example(query="\ud800", budget=5, actor=None)
@example(query="a" * 100_000, budget=50, actor=None)
@example(query="\x00" * 100_000, budget=50, actor="Ann")
def test_no_query_raises(box, query, budget, actor):
    if actor is not None and any("\ud800" <= c <= "\udfff" for c in actor):
        actor = None
    pack = box.cortex.recall("fixed", query, budget_tokens=budget, query_actor=actor)
    assert pack.token_count == box.cortex.token_counter.count(pack.text) <= budget
    assert bool(pack.items) == bool(pack.text)
    result = box.cortex.search("fixed", query, query_actor=actor)
    ids = [hit.evidence.evidence_id for hit in result.hits]
    assert len(ids) == len(set(ids))


@QUICK
@given(
    before=storable, literal=st.text(st.characters(codec="utf-8"), min_size=1, max_size=12),
    after=storable,
)  # fmt: skip
def test_a_literal_is_found_where_it_occurs(box, before, literal, after):
    if not any(c.isalnum() for c in literal):
        return
    box.cortex.remember(name := box.namespace(), f"{before} {literal} {after}")
    if "<memory>" in before + literal + after:
        return
    hits = box.cortex.search(name, f'"{literal}"').hits or box.cortex.search(name, literal).hits
    assert [hit.evidence.content for hit in hits] == [f"{before} {literal} {after}"]


@QUICK
@given(text=storable)
def test_any_storable_text_round_trips(box, text):
    receipt = box.cortex.remember(name := box.namespace(), text)
    stored = box.cortex.evidence(name, receipt.evidence_id)
    assert stored.content == text
    assert stored.digest == hashlib.sha256(text.encode()).hexdigest()


writes = st.lists(
    st.tuples(
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from(["add", "claim", "purge session", "purge all", "rebuild", "retract"]),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=14,
)


@settings(QUICK, max_examples=15)
@given(steps=writes)
def test_interleaved_namespaces_never_cross(box, steps):
    """Every namespace looks as it would if its own steps were the only ones."""
    mixed = {name: box.namespace() for name in ("one", "two", "three")}
    alone = {name: box.namespace() for name in mixed}
    for name, step, value in steps:
        _do(box.cortex, mixed[name], step, value)
    for name in mixed:
        for own, step, value in steps:
            if own == name:
                _do(box.cortex, alone[name], step, value)
    for name in mixed:
        assert _view(box.cortex, mixed[name]) == _view(box.cortex, alone[name])


def _do(cortex, namespace, step, value):
    if step == "add":
        cortex.remember(namespace, f"river stone {value}", session=f"s{value}", actor="Ann")
    elif step == "claim":
        claim = ClaimDraft("Ann", "lives_in", f"Town{value}")
        cortex.remember(namespace, f"Ann is in Town{value}", session=f"s{value}", claims=[claim])
    elif step == "purge session":
        cortex.purge(namespace, session=f"s{value}")
    elif step == "purge all":
        cortex.purge(namespace, everything=True)
    elif step == "rebuild":
        cortex.rebuild(namespace)
    else:
        for claim in cortex.claims(namespace)[:1]:
            cortex.retract(namespace, claim.claim_id, reason="r")


def _view(cortex, namespace):
    hits = cortex.search(namespace, "river Ann Town2", include_superseded=True).hits
    return (
        [(hit.evidence.content, hit.evidence.position, hit.score, hit.superseded) for hit in hits],
        [(c.object, c.status) for c in cortex.claims(namespace, include_superseded=True)],
        cortex.recall(namespace, "Where is Ann? river", budget_tokens=200).text,
        cortex.stats(namespace).evidence,
    )


DAY = datetime(2025, 1, 1, tzinfo=UTC)
events = st.lists(
    st.tuples(
        st.sampled_from("ABC"),
        st.integers(0, 9),
        st.none() | st.integers(1, 5),
        st.sampled_from(["user", "user", "assistant"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


def _oracle(recorded, at, known):
    """Replay: what is held at day ``at``, from the first ``known`` events."""
    active = [
        (number, value, start, end, authority)
        for number, (value, start, end, authority, _) in enumerate(recorded)
        if number < known and number not in _withdrawn(recorded, known)
    ]
    covering = [c for c in active if c[2] <= at and (c[3] is None or at < c[3])]

    rank = {"user": 1, "assistant": 0}

    def held(claim):
        number, value, start, _, authority = claim
        for other in covering:
            later = (other[2], other[0]) > (start, number)
            difference = rank[other[4]] - rank[authority]
            if other[1] == value:
                continue
            if (later and difference >= 0) or (not later and difference > 0 and held(other)):
                return False
        return True

    return {claim[0] for claim in covering if held(claim)}


def _withdrawn(recorded, known):
    """An event that withdraws takes back the one before it, in the same step."""
    return {n - 1 for n, event in enumerate(recorded) if event[4] and 0 < n < known}


@settings(QUICK, max_examples=25)
@given(events=events)
def test_as_of_and_known_at_answer_as_a_replay_does(box, events):
    recorded = [
        (value, start, None if length is None else start + length, authority, withdraws)
        for value, start, length, authority, withdraws in events
    ]
    cortex, clock, name = box.cortex, box.clock, box.namespace()
    base = clock.now()
    ids = []
    for value, start, end, authority, withdraws in recorded:
        clock.advance(timedelta(hours=1))
        if withdraws and ids:
            cortex.retract(name, ids[-1], reason="taken back")
        draft = ClaimDraft(
            "Ann",
            "lives_in",
            value,
            valid_from=DAY + timedelta(days=start),
            valid_to=None if end is None else DAY + timedelta(days=end),
        )
        ids += cortex.remember(name, value, authority=authority, claims=[draft]).claim_ids
    for at in range(0, 16, 3):
        for known in range(len(ids) + 1):
            held = cortex.claims(
                name,
                as_of=DAY + timedelta(days=at),
                known_at=base + timedelta(hours=known),
            )
            expected = {ids[n] for n in _oracle(recorded, at, known)}
            assert {claim.claim_id for claim in held} == expected
