"""The context compiler: what it shows, what it leaves out and why."""

from datetime import UTC, datetime

import pytest

from evicortex.errors import BudgetError
from evicortex.policy import cutting
from evicortex.policy.filling import CHARACTERS_PER_TOKEN, COUNTED_CHARACTERS
from evicortex.policy.packing import MAX_BUDGET, PackingPolicy, checked_budget, pack
from evicortex.types import Polarity, Span


class Words:
    """Counts what stands between white space."""

    identity = "words"
    exact = True

    def count(self, text):
        return len(text.split())


class Guess(Words):
    identity = "guess"
    exact = False


WORDS = Words()
UNCUT = PackingPolicy(cut=False)


def codes(packed):
    return [diagnostic.code for diagnostic in packed.diagnostics]


def reasons(packed):
    return [(item.evidence_id, item.reason, item.tokens) for item in packed.omitted]


@pytest.mark.parametrize("budget", [0, 1, 1_000_000])
def test_budgets_that_are_integers_in_range(budget):
    assert checked_budget(budget) == budget


@pytest.mark.parametrize("budget", [-1, 1_000_001, 1.0, "512", None, True])
def test_other_budgets_are_refused(budget):
    with pytest.raises(BudgetError, match="0 to 1,000,000"):
        pack([], budget=budget, counter=WORDS)


def test_a_pack_in_full(candidate):
    packed = pack(
        [
            candidate("I moved to Lisbon.", position=3, day=9, score=2.0),
            candidate("Where to?", position=2, actor="Bob", role="user"),
            candidate("Big news today!", position=1),
        ],
        budget=100,
        counter=WORDS,
    )
    assert packed.text == (
        "<memory>\n"
        "## 8 May 2023\n"
        "[E1] Alice: Big news today!\n"
        "[E2] Bob: Where to?\n"
        "## 9 May 2023\n"
        "[E3] Alice: I moved to Lisbon.\n"
        "</memory>"
    )
    assert packed.token_count == WORDS.count(packed.text) == 25
    assert [item.citation for item in packed.items] == ["E1", "E2", "E3"]
    assert packed.omitted == ()
    assert packed.diagnostics == ()
    last = packed.items[-1]
    assert (last.evidence_id, last.external_id, last.text) == (
        "ev_0003",
        "D9:3",
        "I moved to Lisbon.",
    )
    assert (last.spans, last.complete, last.score) == ((Span(0, 18),), True, 2.0)
    assert (last.actor, last.role, last.session, last.source) == ("Alice", "user", "s9", "chat")
    assert last.occurred_at == datetime(2023, 5, 9, 13, 56, tzinfo=UTC)


def test_what_does_not_fit_is_skipped_and_what_follows_may_fit(candidate):
    packed = pack(
        [
            candidate("one two three", position=1),
            candidate("far too long for what is left of the budget", position=2),
            candidate("short", position=3),
        ],
        budget=14,
        counter=WORDS,
        policy=UNCUT,
    )
    assert [item.evidence_id for item in packed.items] == ["ev_0001", "ev_0003"]
    assert reasons(packed) == [("ev_0002", "budget", 12)]
    assert packed.token_count == 14


def test_a_session_header_is_charged_when_the_session_opens(candidate):
    opened = [candidate("one", position=1), candidate("two", position=2)]
    other = [candidate("one", position=1), candidate("two", position=2, day=9)]
    assert len(pack(opened, budget=12, counter=WORDS, policy=UNCUT).items) == 2
    assert len(pack(other, budget=15, counter=WORDS, policy=UNCUT).items) == 1
    assert len(pack(other, budget=16, counter=WORDS, policy=UNCUT).items) == 2
    assert pack(other, budget=15, counter=WORDS, policy=UNCUT).omitted[0].tokens == 7


def test_sessions_that_share_a_day_are_named_and_the_name_is_charged(candidate):
    candidates = [
        candidate("one", position=1, session="a"),
        candidate("two", position=2, session="b"),
        candidate("three", position=3, session=None),
        candidate("four", position=4, session="a"),
    ]
    packed = pack(candidates, budget=1000, counter=WORDS, policy=UNCUT)
    assert packed.text.splitlines() == [
        "<memory>",
        "## 8 May 2023 · session a",
        "[E1] Alice: one",
        "[E2] Alice: four",
        "## 8 May 2023 · session b",
        "[E3] Alice: two",
        "## 8 May 2023",
        "[E4] Alice: three",
        "</memory>",
    ]
    for budget in range(packed.token_count + 1):
        smaller = pack(candidates, budget=budget, counter=WORDS, policy=UNCUT)
        assert smaller.token_count == WORDS.count(smaller.text) <= budget
    assert pack(candidates, budget=packed.token_count, counter=WORDS, policy=UNCUT) == packed


def test_a_session_on_two_days_has_a_header_for_each(candidate):
    packed = pack(
        [
            candidate("late", position=1, session="x"),
            candidate("early", position=2, session="x", day=9),
            candidate("some time", position=3, session="x", occurred_at=None),
        ],
        budget=100,
        counter=WORDS,
    )
    headers = [line for line in packed.text.splitlines() if line.startswith("##")]
    assert headers == ["## 8 May 2023", "## 9 May 2023", "## undated"]
    assert packed.items[2].occurred_at is None


def test_superseded_evidence_is_left_out_by_default(candidate, claim):
    new = claim(sources=["ev_0002"])
    old = candidate("I live in Berlin.", superseded=True, superseded_by=(new,))
    packed = pack([old, candidate("I live in Lisbon.", position=2)], budget=99, counter=WORDS)
    assert reasons(packed) == [("ev_0001", "superseded", None)]
    assert "Berlin" not in packed.text


def test_superseded_evidence_on_request_names_what_replaced_it(candidate, claim):
    new = claim(sources=["ev_0009", "ev_0002"])
    elsewhere = claim(predicate="works_at", value="Acme", sources=["ev_0777"])
    denied = claim(predicate="owns", value="a car", polarity=Polarity.NEGATIVE)
    old = candidate(
        "I live in Berlin.", superseded=True, superseded_by=(new, elsewhere, denied, denied)
    )
    vague = candidate("I used to sing.", position=3, superseded=True)
    packed = pack(
        [old, candidate("I live in Lisbon.", position=2), vague],
        budget=99,
        counter=WORDS,
        policy=PackingPolicy(include_superseded=True),
    )
    replaced = "lives_in = Lisbon; works_at = Acme; owns != a car"
    assert packed.text.splitlines()[2:5] == [
        f"[E1] Alice: I live in Berlin. [superseded by E2: {replaced}]",
        "[E2] Alice: I live in Lisbon.",
        "[E3] Alice: I used to sing. [superseded]",
    ]
    assert packed.items[0].superseded
    assert packed.items[0].superseded_by[0] == new.claim_id
    assert packed.items[0].text == "I live in Berlin."
    assert packed.omitted == ()


def test_excluded_evidence_is_left_out_and_named(candidate):
    packed = pack(
        [candidate("an accessory", excluded=True), candidate("a coat", position=2)],
        budget=99,
        counter=WORDS,
    )
    assert reasons(packed) == [("ev_0001", "excluded", None)]


def test_duplicates_are_left_out_and_named(candidate):
    packed = pack(
        [candidate("Same here!"), candidate("same  here", position=2, day=9)],
        budget=99,
        counter=WORDS,
    )
    assert [item.evidence_id for item in packed.items] == ["ev_0001"]
    assert [(item.reason, item.duplicate_of) for item in packed.omitted] == [
        ("duplicate", "ev_0001")
    ]


def test_passages_of_one_evidence_share_a_line(candidate):
    text = "First thing. Second thing. Third thing. Fourth thing."
    packed = pack(
        [
            candidate(text, span=Span(27, 39), score=3.0),
            candidate(text, span=Span(0, 12), score=2.0),
            candidate(text, span=Span(27, 39), score=1.0),
        ],
        budget=99,
        counter=WORDS,
    )
    assert packed.text.splitlines()[2] == "[E1] Alice: First thing. … Third thing. …"
    (item,) = packed.items
    assert item.spans == (Span(0, 12), Span(27, 39))
    assert (item.complete, item.score) == (False, 3.0)
    assert packed.token_count == WORDS.count(packed.text)


def test_passages_that_together_are_the_whole_make_it_complete(candidate):
    text = "First thing. Second thing. "
    spans = [Span(13, 26), Span(0, 12)]
    packed = pack([candidate(text, span=span) for span in spans], budget=99, counter=WORDS)
    (item,) = packed.items
    assert (item.spans, item.complete) == ((Span(0, 27),), True)


def test_a_passage_that_does_not_fit_any_more_leaves_its_item_as_it_is(candidate):
    text = "First thing. Second thing that is much longer than what is left. Third."
    packed = pack(
        [
            candidate(text, span=Span(0, 12)),
            candidate(text, span=Span(13, 64)),
            candidate(text, span=Span(65, 71)),
        ],
        budget=14,
        counter=WORDS,
    )
    assert packed.items[0].spans == (Span(0, 12), Span(65, 71))
    assert packed.omitted == ()


def test_a_passage_that_fits_after_one_that_did_not(candidate):
    text = "A first thing that is too long for this little budget. Short."
    candidates = [candidate(text, span=Span(0, 54)), candidate(text, span=Span(55, 61))]
    packed = pack(candidates, budget=12, counter=WORDS)
    assert packed.items[0].spans == (Span(55, 61),)
    assert packed.omitted == ()
    nothing = pack(candidates, budget=9, counter=WORDS)
    assert reasons(nothing) == [("ev_0001", "budget", 17)]


@pytest.mark.parametrize(
    ("because", "reason"), [("no_match", "no_match"), ("namespace_empty", "namespace_empty")]
)
def test_an_empty_pack_without_candidates_says_why(because, reason):
    packed = pack([], budget=99, counter=WORDS, nothing_because=because)
    assert (packed.text, packed.token_count, packed.items) == ("", 0, ())
    (diagnostic,) = packed.diagnostics
    assert (diagnostic.code, diagnostic.details["reason"]) == ("empty_pack", reason)


def test_an_empty_pack_because_all_is_excluded_or_superseded(candidate):
    excluded = candidate("a", excluded=True)
    superseded = candidate("b", position=2, superseded=True)
    for candidates, reason in (
        ([excluded], "excluded"),
        ([superseded], "superseded"),
        ([superseded, excluded], "excluded_and_superseded"),
    ):
        packed = pack(candidates, budget=99, counter=WORDS)
        assert packed.diagnostics[0].details["reason"] == reason


def test_an_empty_pack_because_of_the_budget_says_what_the_best_item_needs(candidate):
    packed = pack(
        [candidate("one two"), candidate("three", position=2)],
        budget=8,
        counter=WORDS,
        policy=UNCUT,
    )
    assert packed.text == ""
    details = packed.diagnostics[0].details
    assert details == {"reason": "budget", "evidence_id": "ev_0001", "tokens": 10}
    assert "needs 10" in packed.diagnostics[0].message
    assert pack([candidate("one two")], budget=10, counter=WORDS, policy=UNCUT).token_count == 10
    assert reasons(packed) == [("ev_0001", "budget", 8), ("ev_0002", "budget", 7)]


def test_the_best_item_alone_counts_for_what_is_needed(candidate):
    candidates = [candidate("one two three"), candidate("four", position=2)]
    packed = pack(candidates, budget=9, counter=WORDS, policy=UNCUT)
    assert [item.evidence_id for item in packed.items] == ["ev_0002"]
    assert "empty_pack" not in codes(packed)


def test_estimated_counts_are_said_to_be_estimates(candidate):
    packed = pack([candidate("one")], budget=99, counter=Guess())
    assert codes(packed) == ["token_estimate"]
    assert packed.diagnostics[0].details == {"counter": "guess"}


def test_text_that_costs_no_tokens_is_bounded_by_its_characters(candidate):
    spaces = candidate("a" + " " * 5000 + "b")
    whole = PackingPolicy(cut=False)
    packed = pack([spaces, candidate("c", position=2)], budget=100, counter=WORDS, policy=whole)
    assert [item.evidence_id for item in packed.items] == ["ev_0002"]
    assert codes(packed) == ["character_limit"]
    assert packed.diagnostics[0].details == {"evidence_ids": ("ev_0001",)}
    assert reasons(packed) == [("ev_0001", "budget", 8)]
    assert len(pack([spaces], budget=400, counter=WORDS).text) <= 400 * CHARACTERS_PER_TOKEN


def test_too_many_characters_for_the_budget_are_named_when_nothing_fits(candidate):
    whole = PackingPolicy(cut=False)
    packed = pack([candidate("a" + " " * 5000)], budget=100, counter=WORDS, policy=whole)
    assert packed.diagnostics[0].details == {
        "reason": "budget",
        "evidence_id": "ev_0001",
        "tokens": None,
    }
    assert "5001 characters" in packed.diagnostics[0].message


class Watched(Words):
    def __init__(self):
        self.longest = 0

    def count(self, text):
        self.longest = max(self.longest, len(text))
        return super().count(text)


@pytest.mark.parametrize(("cut", "budget"), [(False, 0), (False, 50), (True, 0), (True, 8)])
def test_what_is_hopelessly_long_is_not_even_counted(candidate, cut, budget):
    counter = Watched()
    long = candidate("word " * COUNTED_CHARACTERS)
    policy = PackingPolicy(cut=cut)
    packed = pack([long], budget=budget, counter=counter, policy=policy)
    assert packed.text == ""
    assert reasons(packed) == [("ev_0001", "budget", None)]
    assert counter.longest < COUNTED_CHARACTERS


def test_of_what_is_hopelessly_long_passages_are_counted_and_shown(candidate):
    counter = Watched()
    packed = pack([candidate("word " * COUNTED_CHARACTERS)], budget=90, counter=counter)
    assert packed.token_count <= 90
    assert packed.omitted == ()
    assert counter.longest < COUNTED_CHARACTERS


def test_what_is_not_cut_because_the_pack_cut_enough_is_named(candidate, monkeypatch):
    monkeypatch.setattr(cutting, "CUT_CHARACTERS", 40_000)
    candidates = [candidate(f"{n} " + "Some words. " * 2000, position=n) for n in (1, 2, 3)]
    packed = pack(candidates, budget=60, counter=WORDS)
    assert [item.evidence_id for item in packed.items] == ["ev_0001"]
    assert codes(packed) == ["character_limit", "cut_limit"]
    assert packed.diagnostics[1].details == {"evidence_ids": ("ev_0002", "ev_0003")}


def test_five_million_characters_fit_a_large_budget(candidate):
    text = "word " * 999_990
    packed = pack([candidate(text)], budget=MAX_BUDGET, counter=WORDS)
    assert packed.token_count == 999_998
    assert packed.items[0].complete


class Ceiling:
    """Adds a token for every part that is counted alone: sums are too high."""

    identity = "ceiling"
    exact = True

    def count(self, text):
        return -(-len(text) // 4)


class Floor(Ceiling):
    """Sums are too low."""

    identity = "floor"

    def count(self, text):
        return len(text) // 4


@pytest.mark.parametrize("counter", [Ceiling(), Floor()])
@pytest.mark.parametrize("budget", [20, 60, 100, 250])
def test_counts_that_do_not_add_up_still_fill_the_budget(candidate, counter, budget):
    candidates = [
        candidate(f"{number:02}" + "x" * (number % 5), position=number + 1, day=1 + number % 7)
        for number in range(60)
    ]
    packed = pack(candidates, budget=budget, counter=counter)
    assert budget - 12 <= packed.token_count <= budget
    assert packed.token_count == counter.count(packed.text)


class Surcharge(Words):
    """Whole packs cost much more than their parts, and ever more the longer they are."""

    identity = "surcharge"

    def count(self, text):
        lines = text.count("\n[E")
        return len(text.split()) + (lines**3 if text.startswith("<memory>\n#") else 0)


def test_the_lowest_ranks_go_when_the_whole_costs_more_than_its_parts(candidate):
    candidates = [
        candidate(f"text number {number}", position=number, score=100 - number)
        for number in range(1, 40)
    ]
    packed = pack(candidates, budget=200, counter=Surcharge())
    assert packed.token_count == Surcharge().count(packed.text) <= 200
    kept = [item.evidence_id for item in packed.items]
    assert kept == [f"ev_{number:04}" for number in range(1, len(kept) + 1)]
    assert len(kept) == 5
    assert {item.reason for item in packed.omitted} == {"budget"}
    assert all(item.tokens for item in packed.omitted)


class Hostile(Words):
    """Any text but the empty one costs a million tokens once it is a pack."""

    identity = "hostile"

    def count(self, text):
        return 10**6 + 1 if text.startswith("<memory>\n#") else len(text.split())


def test_a_counter_that_nothing_satisfies_gives_an_empty_pack(candidate):
    packed = pack([candidate("one"), candidate("two", position=2)], budget=50, counter=Hostile())
    assert (packed.text, packed.token_count) == ("", 0)
    assert packed.diagnostics[0].details["reason"] == "budget"
    assert [item.reason for item in packed.omitted] == ["budget", "budget"]


def test_an_additive_counter_counts_the_whole_text_once(candidate):
    class Whole(Words):
        calls = 0

        def count(self, text):
            self.calls += text.startswith("<memory>\n#")
            return super().count(text)

    counter = Whole()
    candidates = [candidate(f"text {number}", position=number) for number in range(1, 90)]
    packed = pack(candidates, budget=300, counter=counter)
    assert packed.token_count > 290
    assert counter.calls == 1


def test_neighbours_are_added_on_request(candidate):
    question = candidate("Where do you live now?", position=1, actor="Bob")
    reply = candidate("In Lisbon.", position=2, neighbours=(question,), score=4.0)
    plain = pack([reply], budget=99, counter=WORDS)
    assert [item.evidence_id for item in plain.items] == ["ev_0002"]
    packed = pack([reply], budget=99, counter=WORDS, policy=PackingPolicy(add_neighbours=True))
    assert [(item.evidence_id, item.score) for item in packed.items] == [
        ("ev_0001", 4.0),
        ("ev_0002", 4.0),
    ]


def test_packing_is_deterministic(candidate):
    candidates = [
        candidate(f"Text {number % 9}. And more.", position=number + 1, day=1 + number % 3)
        for number in range(80)
    ]
    policy = PackingPolicy(cut=True)
    first = pack(candidates, budget=200, counter=WORDS, policy=policy)
    assert pack(candidates, budget=200, counter=WORDS, policy=policy) == first


class Shrinking(Words):
    """Each line of a finished pack costs two tokens less than its parts; a third one costs eight."""

    identity = "shrinking"

    def count(self, text):
        lines = text.count("\n[E") if text.startswith("<memory>\n#") else 0
        return len(text.split()) - 2 * lines + (8 if lines > 2 else 0)


def test_omissions_are_those_of_the_page_that_is_shown(candidate):
    texts = ["one two three four", "five six seven", "Eight nine ten eleven twelve. One. Two."]
    candidates = [candidate(text, position=number) for number, text in enumerate(texts, 1)]
    packed = pack(candidates, budget=21, counter=Shrinking())
    assert [item.evidence_id for item in packed.items] == ["ev_0001", "ev_0002"]
    assert reasons(packed) == [("ev_0003", "budget", 9)]
