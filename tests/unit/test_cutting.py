"""How much of a turn is shown, given what ranks above it."""

import pytest

from evicortex.policy import cutting
from evicortex.policy.cutting import Cutter, CuttingPolicy
from evicortex.policy.packing import PackingPolicy, pack
from evicortex.policy.pieces import PackQuery, pieces
from evicortex.providers.tokens import EstimateCounter
from evicortex.types import Span

TEXT = "Hello there! I moved to Lisbon in March. So nice. My cat likes it. Bye."
HELLO, MOVED, NICE, CAT, BYE = (piece.span for piece in pieces(TEXT))
QUERY = PackQuery("Where does the cat live?", {"cat": 2.0, "live": 1.0, "lisbon": 1.0})


def words(text):
    return len(text.split())


class Words:
    identity = "words"
    exact = True

    def count(self, text):
        return words(text)


def forms(
    content=TEXT,
    unit=None,
    *,
    used=50,
    room=50,
    first=False,
    budget=100,
    similarities=None,
    pieces_of=pieces,
    **policy,
):
    usual = {"whole_share": 0.35, "first_share": 1 / 3, "later_share": 0.1}
    cutter = Cutter(CuttingPolicy(**(usual | policy)), QUERY, budget, words, pieces_of)
    return list(
        cutter.forms(
            content,
            unit or Span(0, len(content)),
            similarities=similarities or {},
            used=used,
            room=room,
            first=first,
        )
    )


WHOLE = (Span(0, len(TEXT)),)


def test_whole_until_the_first_share_is_filled():
    assert forms(used=34)[0] == WHOLE
    assert forms(used=35)[0] == (MOVED, CAT)


def test_by_default_half_of_the_budget_goes_to_whole_turns():
    default = CuttingPolicy().whole_share
    assert forms(used=49, whole_share=default)[0] == WHOLE
    assert forms(used=50, whole_share=default)[0] == (MOVED, CAT)


def test_then_the_best_two_pieces_in_their_order_and_then_one():
    assert forms(used=74) == [(MOVED, CAT), (MOVED,)]
    assert forms(used=75) == [(MOVED,)]
    assert forms(used=99) == [(MOVED,)]


def test_a_turn_of_no_more_pieces_than_allowed_is_whole():
    text = "My cat likes it. Bye."
    assert forms(text, used=50)[0] == (Span(0, len(text)),)
    assert forms(text, used=80) == [(Span(0, 16),)]
    assert forms("My cat.", used=80)[0] == (Span(0, 7),)


def test_by_default_a_long_turn_is_whole_until_it_does_not_fit():
    caps = {"first_share": CuttingPolicy().first_share, "later_share": CuttingPolicy().later_share}
    assert forms(LONG, used=0, room=600, budget=600, long_turn=20, **caps)[0] == (
        Span(0, len(LONG)),
    )
    narrow = forms(LONG, used=0, room=40, budget=600, long_turn=20, **caps)[1]
    assert sum(words(LONG[start:end]) for start, end in narrow) <= 40


def test_a_short_turn_is_whole_or_left_out():
    assert forms(used=90, never_cut=15) == [WHOLE]


def test_a_short_turn_is_never_cut():
    assert forms(used=90, never_cut=14)[0] != WHOLE
    assert forms(used=90, never_cut=15)[0] == WHOLE


def test_what_does_not_fit_whole_is_offered_in_shorter_forms():
    found = forms(used=10, room=9)
    assert found[0] == WHOLE
    assert found[1:] == [(HELLO, MOVED), (MOVED,)]
    assert all(sum(words(TEXT[a:b]) for a, b in form) <= 9 for form in found[1:])


def test_similarities_of_pieces_decide_if_given():
    similarities = dict.fromkeys((HELLO, MOVED, CAT, BYE), 0.0) | {NICE: 1.0}
    assert forms(used=90, similarities=similarities)[0] == (NICE,)


def test_a_piece_without_a_vector_is_chosen_by_its_words():
    known = dict.fromkeys((HELLO, NICE, BYE), 0.4)
    assert forms(used=90, similarities=known | {CAT: 0.4})[0] == (MOVED,)
    assert forms(used=90, similarities=known | {MOVED: 0.1})[0] == (CAT,)
    assert forms(used=90, similarities=known | {MOVED: 0.9})[0] == (MOVED,)


def test_pieces_that_are_remembered_are_used_as_they_are():
    assert forms(used=90, pieces_of=lambda text: pieces(text)[:2]) == [(MOVED,)]


def test_only_pieces_of_the_unit_are_offered():
    unit = Span(MOVED.start, NICE.end)
    assert forms(unit=unit, used=90) == [(MOVED,)]
    assert forms(unit=unit, used=50)[0] == (unit,)


LONG = " ".join(f"Sentence number {n} is here." for n in range(40))


def test_a_long_turn_has_a_share_of_the_budget_by_its_best_pieces():
    sizes = {}
    for first in (True, False):
        best = forms(LONG, used=0, room=600, first=first, budget=600, long_turn=20)[0]
        sizes[first] = sum(words(LONG[a:b]) for a, b in best)
    assert 190 <= sizes[True] <= 200
    assert 50 <= sizes[False] <= 60


def test_a_long_turn_never_gets_less_than_the_size_that_makes_it_long():
    best = forms(LONG, used=0, room=600, budget=60, long_turn=40)[0]
    assert 30 <= sum(words(LONG[a:b]) for a, b in best) <= 40


def test_shorter_forms_of_a_long_turn_shrink_fast():
    found = forms(LONG, used=0, room=600, first=True, budget=600, long_turn=20)
    assert [len(form) for form in found][-3:] == [3, 2, 1]
    assert len(found) < 14


def test_a_piece_longer_than_the_share_may_take_that_of_the_first():
    block = "```\n" + "word " * 30 + "\n```"
    assert forms(block, used=0, room=99, budget=120, long_turn=10) == [(Span(0, len(block)),)]
    assert forms(block, used=0, room=99, budget=60, long_turn=10) == []


def test_code_tables_and_lists_are_whole_or_left_out():
    text = "My cat.\n\n- one. two.\n- three. four.\n\nSo it is. Bye."
    for used in (10, 50, 80):
        for form in forms(text, used=used, room=7):
            for start, end in form:
                shown = text[start:end]
                assert ("- one" in shown) == ("four." in shown)


def test_of_a_very_long_text_only_the_unit_is_looked_at():
    text = "Nothing here. " * 2000 + TEXT
    start = len(text) - len(TEXT)
    found = forms(text, Span(start, len(text)), used=50)
    assert found[0] == tuple(Span(a + start, b + start) for a, b in (MOVED, CAT))


def test_pieces_of_a_very_long_text_are_remembered_for_the_pack(monkeypatch):
    text = "Nothing here. " * 2000
    calls = []
    monkeypatch.setattr(cutting, "pieces", lambda part: calls.append(len(part)) or pieces(part))
    cutter = Cutter(CuttingPolicy(), QUERY, 100, words)
    asked = {"similarities": {}, "used": 90, "room": 9, "first": False}
    units = (Span(0, len(text)), Span(0, 140), Span(0, len(text)))
    found = [list(cutter.forms(text, unit, **asked)) for unit in units]
    assert found[0] == found[2] != []
    assert calls == [len(text), 140]


def test_a_pack_cuts_so_many_characters_of_long_texts(monkeypatch):
    monkeypatch.setattr(cutting, "CUT_CHARACTERS", 28_000)
    text = "Nothing here. " * 2000
    cutter = Cutter(CuttingPolicy(), QUERY, 100, words)
    unit = Span(0, len(text))
    assert cutter.can_cut(text, unit)
    assert cutter.can_cut(TEXT, Span(0, len(TEXT)))
    list(cutter.forms(text, unit, similarities={}, used=90, room=9, first=False))
    assert cutter.can_cut(text, unit)
    assert not cutter.can_cut(text + " More.", unit)
    assert cutter.can_cut(TEXT, Span(0, len(TEXT)))


@pytest.mark.parametrize("end", ["", "."])
@pytest.mark.parametrize("length", [20_000, 70_000])
@pytest.mark.parametrize("budget", [256, 512, 1024, 2048, 4096])
def test_the_best_part_of_a_long_turn_is_shown_at_any_budget(candidate, length, end, budget):
    filler = " ".join(f"and so {n} walks along the river went on{end}" for n in range(length // 40))
    middle = filler.index(" ", length // 2)
    fact = f" then my cat moved to Lisbon{end}"
    text = filler[:middle] + fact + filler[middle:]
    packed = pack([candidate(text)], budget=budget, counter=EstimateCounter(), query=QUERY)
    assert packed.token_count <= budget
    (item,) = packed.items
    assert fact.strip() in item.text
    assert not item.complete


def test_what_ranks_low_shows_one_passage_of_a_long_turn(candidate):
    first = candidate("My cat lives here. " * 100, position=1)
    long = candidate(
        "we went on " * 300 + "and my cat lives in Lisbon " + "we went on " * 300, position=2
    )
    packed = pack([first, long], budget=600, counter=EstimateCounter(), query=QUERY)
    (item,) = (item for item in packed.items if item.spans[0].start > 0)
    assert "my cat lives in Lisbon" in item.text
    assert len(item.spans) == 1


@pytest.mark.parametrize(
    "block",
    ["```\n" + "x = cat\n" * 400 + "```", "- cat\n" * 400, "| cat | b |\n" * 400],
    ids=["code", "list", "table"],
)
def test_long_code_tables_and_lists_stay_whole_or_left_out(candidate, block):
    text = f"Here is my cat.\n\n{block}\n\nThat is the cat."
    shown = {}
    for budget in (40, 200, 5000):
        packed = pack([candidate(text)], budget=budget, counter=EstimateCounter(), query=QUERY)
        shown[budget] = [text[start:end] for start, end in packed.items[0].spans]
    assert shown[40] == shown[200] == ["Here is my cat.", "That is the cat."]
    assert shown[5000] == [text]


def test_a_blank_unit_has_no_pieces():
    assert forms(" " * 20, used=90) == [(Span(0, 20),)]


def test_a_pack_with_cuts(candidate):
    packed = pack(
        [
            candidate("I adopted a grey cat last week. She is called Pixel.", position=3, day=9),
            candidate(TEXT, position=1),
            candidate("Well. Cats are great! Do you agree?", position=2, actor="Bob"),
        ],
        budget=45,
        counter=Words(),
        policy=PackingPolicy(cut=True, cutting=CuttingPolicy(whole_share=0.35)),
        query=QUERY,
    )
    assert packed.text.splitlines() == [
        "<memory>",
        "## 8 May 2023",
        "[E1] Alice: … I moved to Lisbon in March. … My cat likes it. …",
        "[E2] Bob: … Cats are great! …",
        "## 9 May 2023",
        "[E3] Alice: I adopted a grey cat last week. She is called Pixel.",
        "</memory>",
    ]
    assert packed.token_count == words(packed.text) <= 45
    cut, one, whole = packed.items
    assert (cut.spans, cut.complete) == ((MOVED, CAT), False)
    assert (one.text, whole.complete) == ("… Cats are great! …", True)
    assert packed.omitted == ()


def test_with_cuts_nothing_is_tried_in_the_last_two_tokens(candidate):
    policy = PackingPolicy(cut=True)
    candidates = [candidate("one two three"), candidate("Four. Five. Six.", position=2)]
    packed = pack(candidates, budget=15, counter=Words(), policy=policy)
    assert packed.omitted[0].tokens == 5
    assert packed.token_count == 11


@pytest.mark.parametrize("budget", [11, 13, 20, 30])
def test_passages_are_cut_within_themselves(candidate, budget):
    passage = Span(MOVED.start, CAT.end)
    packed = pack(
        [candidate(TEXT, span=passage), candidate("Other. Text. Here.", position=2)],
        budget=budget,
        counter=Words(),
        policy=PackingPolicy(cut=True),
        query=QUERY,
    )
    assert packed.items or budget == 11
    for item in (item for item in packed.items if item.evidence_id == "ev_0001"):
        assert item.spans[0].start >= passage.start
        assert item.spans[-1].end <= passage.end
