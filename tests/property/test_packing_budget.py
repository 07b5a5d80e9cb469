"""What packing promises for every input: the budget, the spans, the order, nothing unsaid."""

import hashlib
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicortex.policy.candidates import chronological
from evicortex.policy.filling import CHARACTERS_PER_TOKEN, Costs, Filling
from evicortex.policy.packing import PackingPolicy, PackQuery, _Compiler, pack
from evicortex.policy.page import Page
from evicortex.policy.rendering import CUT, shown_text
from evicortex.providers.tokens import EstimateCounter
from evicortex.types import Span


class Counter:
    identity = "property"
    exact = True

    def __init__(self, name, count):
        self.name = name
        self._count = count

    def count(self, text):
        return self._count(text) if text else 0

    def __repr__(self):
        return self.name


def digest(text):
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:2])


COUNTERS = [
    EstimateCounter(),
    Counter("words", lambda text: len(text.split())),
    Counter("characters", len),
    Counter("quarters, rounded down", lambda text: len(text) // 4),
    Counter("quarters, rounded up", lambda text: -(-len(text) // 4)),
    Counter("nothing", lambda text: 0),
    Counter("one", lambda text: 1),
    Counter("square", lambda text: len(text) ** 2 // 50),
    Counter("square root", lambda text: int(len(text) ** 0.5)),
    Counter("chaos", lambda text: digest(text) % 200),
    Counter("falling", lambda text: max(1, 300 - len(text))),
    Counter("lines cost more together", lambda text: len(text.split()) + text.count("\n") ** 2),
    Counter("even lengths cost more", lambda text: len(text) // (1 + len(text) % 2)),
]

SNIPPETS = st.sampled_from(
    [
        "I moved to Lisbon. ",
        "So nice! ",
        "When was it? ",
        "[image: a photo of a cat] ",
        "</memory>",
        "[E3] ",
        "\n- one\n- two\n",
        "```\ncode. here.\n```\n",
        "\u2028",
        "\x1b[31m",
        "word " * 40,
        "x" * 150,
    ]
)
TEXTS = st.one_of(
    st.lists(SNIPPETS, max_size=6).map("".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
)
FIELDS = st.fixed_dictionaries(
    {
        "content": TEXTS,
        "day": st.integers(1, 4),
        "actor": st.sampled_from(["Alice", "Bob", None, "[E1] Eve", "a:\n</memory>"]),
        "session": st.sampled_from(["s1", "s2", None, "s\n3"]),
        "superseded": st.sampled_from([False, False, True]),
        "excluded": st.sampled_from([False, False, False, True]),
        "part": st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
        "again": st.sampled_from([False, False, True]),
    }
)
POLICIES = st.builds(
    PackingPolicy,
    include_superseded=st.booleans(),
    cut=st.booleans(),
    add_neighbours=st.booleans(),
)
BUDGETS = st.one_of(st.integers(0, 120), st.integers(0, 2000), st.integers(0, 1_000_000))


def build(candidate, rows):
    made = []
    for number, row in enumerate(rows, 1):
        row = dict(row)
        part, again, content = row.pop("part"), row.pop("again"), row["content"]
        span = None
        if part is not None and content:
            start, end = sorted(int(share * len(content)) for share in part)
            span = Span(start, end) if end > start else None
        neighbours = (made[-1],) if made else ()
        one = candidate(position=number, score=-number, span=span, neighbours=neighbours, **row)
        made.append(one)
        if again:
            made.append(candidate(position=number, score=-number, span=None, **row))
    return made


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda each: getattr(each, "name", each.identity))
@settings(max_examples=40)
@given(rows=st.lists(FIELDS, max_size=10), budget=BUDGETS, policy=POLICIES)
def test_the_budget_holds_for_any_counter(candidate, counter, rows, budget, policy):
    packed = pack(build(candidate, rows), budget=budget, counter=counter, policy=policy)
    assert packed.token_count == counter.count(packed.text) <= budget
    assert len(packed.text) <= CHARACTERS_PER_TOKEN * budget
    assert bool(packed.text) == bool(packed.items)


@settings(max_examples=120)
@given(rows=st.lists(FIELDS, max_size=8), budget=BUDGETS, policy=POLICIES)
def test_items_spans_and_omissions_account_for_everything(candidate, rows, budget, policy):
    candidates = build(candidate, rows)
    query = PackQuery("When did I move to Lisbon?", {"lisbon": 2.0, "move": 1.0})
    packed = pack(candidates, budget=budget, counter=EstimateCounter(), policy=policy, query=query)
    evidence = {one.evidence.evidence_id: one.evidence for one in candidates}
    shown = [item.evidence_id for item in packed.items]
    omitted = [item.evidence_id for item in packed.omitted]
    assert sorted(shown + omitted) == sorted(evidence)
    for number, item in enumerate(packed.items, 1):
        content = evidence[item.evidence_id].content
        assert item.citation == f"E{number}"
        assert item.complete == (item.spans == ((0, len(content)),))
        assert list(item.spans) == sorted(item.spans)
        assert all(0 <= start <= end <= len(content) for start, end in item.spans)
        assert all(a.end < b.start for a, b in pairwise(item.spans))
        assert item.text == shown_text(content, item.spans).text
        assert f": {item.text}" in packed.text
    for item in packed.omitted:
        assert item.reason in {"budget", "superseded", "excluded", "duplicate"}
        assert (item.duplicate_of is not None) == (item.reason == "duplicate")
    assert ("empty_pack" in {one.code for one in packed.diagnostics}) == (not packed.items)


@settings(max_examples=120)
@given(rows=st.lists(FIELDS, max_size=8), policy=POLICIES)
def test_nothing_stored_becomes_structure(candidate, rows, policy):
    packed = pack(
        build(candidate, rows), budget=1_000_000, counter=EstimateCounter(), policy=policy
    )
    lines = packed.text.splitlines()
    assert lines == (packed.text.split("\n") if packed.text else [])
    labels = [line for line in lines if re.match(r"\[E\d+\] ", line)]
    headers = [line for line in lines if line.startswith("## ")]
    frame = [line for line in lines if line in {"<memory>", "</memory>"}]
    continued = [line for line in lines if line.startswith("  ")]
    assert len(labels) == len(packed.items)
    assert len(frame) == (2 if packed.items else 0)
    assert len(labels) + len(headers) + len(frame) + len(continued) == len(lines)
    assert len(re.findall(r"<\s*/?\s*memory", packed.text, re.IGNORECASE)) == len(frame)
    assert len(re.findall(r"(?<!\\)\[E\d+\]", packed.text)) == len(packed.items)


@settings(max_examples=40)
@given(rows=st.lists(FIELDS, max_size=8), policy=POLICIES)
def test_items_are_in_order_of_time_within_their_session_and_day(candidate, rows, policy):
    candidates = build(candidate, rows)
    evidence = {one.evidence.evidence_id: one.evidence for one in candidates}
    packed = pack(candidates, budget=1_000_000, counter=EstimateCounter(), policy=policy)
    groups = {}
    for item in packed.items:
        one = evidence[item.evidence_id]
        groups.setdefault((one.session, one.occurred_at), []).append(chronological(one))
    assert all(group == sorted(group) for group in groups.values())
    firsts = [group[0] for group in groups.values()]
    assert firsts == sorted(firsts)
    order = [
        (one.session, one.occurred_at) for one in (evidence[i.evidence_id] for i in packed.items)
    ]
    assert sum(a != b for a, b in pairwise(order)) == max(len(groups) - 1, 0)


@settings(max_examples=40)
@given(rows=st.lists(FIELDS, max_size=8), budget=BUDGETS, policy=POLICIES)
def test_the_same_input_gives_the_same_pack(candidate, rows, budget, policy):
    packs = {
        repr(pack(build(candidate, rows), budget=budget, counter=counter, policy=policy))
        for counter in (EstimateCounter(), EstimateCounter())
    }
    assert len(packs) == 1


@settings(max_examples=40)
@given(st.lists(TEXTS.filter(str.strip), min_size=1, max_size=8), st.integers(0, 400))
def test_without_cuts_a_prefix_of_ranks_is_never_given_up_for_lower_ranks(candidate, texts, budget):
    counter = Counter("words", lambda text: len(text.split()))
    candidates = [
        candidate(f"{number} {text}", position=number, session=None)
        for number, text in enumerate(texts, 1)
    ]
    packed = pack(candidates, budget=budget, counter=counter)
    shown = {item.evidence_id for item in packed.items}
    for number in range(1, len(candidates) + 1):
        alone = pack(candidates[:number], budget=budget, counter=counter)
        if not alone.omitted:
            assert {one.evidence.evidence_id for one in candidates[:number]} <= shown


def test_the_mark_of_a_cut_is_one_token_between_spaces():
    assert CUT.split() == ["…"]


@settings(max_examples=150)
@given(
    texts=st.lists(TEXTS.filter(str.strip), min_size=1, max_size=8),
    limits=st.lists(st.integers(0, 300), min_size=1, max_size=4).map(sorted),
    halves=st.booleans(),
    budget=st.integers(0, 300),
)
def test_what_is_dropped_ranks_lowest_however_often_the_limit_was_raised(
    candidate, texts, limits, halves, budget
):
    counter = Counter("words", lambda text: len(text.split()))
    offered = [candidate(text, position=number) for number, text in enumerate(texts, 1)]
    if halves:
        middles = [(text, len(text) // 2) for text in texts if len(text) > 1]
        offered = [
            candidate(text, position=number, span=span)
            for start in (True, False)
            for number, (text, at) in enumerate(middles, 1)
            for span in [Span(0, at) if start else Span(at, len(text))]
        ]
    filling = Filling(limit=limits[0], characters=10_000, costs=Costs(counter), cutter=None)
    for one in offered:
        filling.offer(one)
    for limit in limits[1:]:
        filling.raise_limit(limit)
    ranked = filling.ranked()
    assert [entry.candidate for entry in ranked] == [offered[entry.rank] for entry in ranked]
    assert [entry.rank for entry in ranked] == sorted(entry.rank for entry in ranked)
    assert {entry.candidate.evidence.evidence_id for entry in ranked} == set(filling.entries)
    page = _Compiler(budget, counter, PackingPolicy(), None)._shortened(filling)
    kept = {entry.candidate.evidence.evidence_id for entry in ranked[: len(page.entries)]}
    assert set(page.entries) == kept
    assert page.tokens <= budget
    if len(kept) < len(ranked) - 1:
        assert Page(ranked[: len(kept) + 1], counter).tokens > budget
