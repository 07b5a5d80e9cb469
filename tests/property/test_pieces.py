"""What pieces and packs of them promise for any text, however long its sentences are."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicortex.policy.packing import PackingPolicy, PackQuery, pack
from evicortex.policy.pieces import LONGEST_SENTENCE, piece_spans, pieces
from evicortex.providers.tokens import EstimateCounter
from evicortex.text import blocks, estimate_tokens, words
from evicortex.text.segments import PASSAGE_TOKENS

QUERY = PackQuery("When did I move to Lisbon?", {"lisbon": 2.0, "move": 1.0})
SNIPPETS = st.sampled_from(
    [
        "I moved to Lisbon. ",
        "and then we went on ",
        "well-known, don't; ",
        "a/b_c-",
        "这是一个很长的句子",
        "，",
        "น้ำ",
        "e\u0301",
        "👍🏽\u200d",
        "[image: a photo of a cat] ",
        "[image: never closed ",
        "\n",
        "\n\n",
        "\n- one\n- two\n",
        "\n```\ncode. here.\n```\n",
        "\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        "   ",
        "x" * 90,
        "! ",
    ]
)
REPEATED = st.tuples(SNIPPETS, st.sampled_from([1, 1, 2, 7, 40])).map(
    lambda each: each[0] * each[1]
)
TEXTS = st.one_of(st.lists(REPEATED, max_size=12).map("".join), st.text(max_size=80))


def assert_between_words(text, spans):
    borders = {bound for span in spans for bound in span}
    for word in words(text):
        if estimate_tokens(word.text) <= PASSAGE_TOKENS:
            assert borders.isdisjoint(range(word.start + 1, word.end)), word


@settings(max_examples=300)
@given(TEXTS)
def test_pieces_are_exact_in_order_apart_and_short(text):
    spans = piece_spans(text)
    assert spans == tuple(piece.span for piece in pieces(text)) == piece_spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    held = "".join("".join(text[start:end].split()) for start, end in spans)
    assert held == "".join(text.split())
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert_between_words(text, spans)
    whole = [block for block in blocks(text) if block.kind != "prose"]
    assert {(block.start, block.end) for block in whole} <= set(spans)
    for start, end in spans:
        if estimate_tokens(text[start:end]) > LONGEST_SENTENCE:
            assert (start, end) in {(block.start, block.end) for block in whole}


@settings(max_examples=150)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=4), budget=st.integers(0, 1200), cut=st.booleans()
)
def test_any_text_at_any_budget(candidate, texts, budget, cut):
    candidates = [candidate(text, position=number) for number, text in enumerate(texts, 1)]
    contents = {each.evidence.evidence_id: each.evidence.content for each in candidates}
    policy, counter = PackingPolicy(cut=cut), EstimateCounter()
    packed = pack(candidates, budget=budget, counter=counter, policy=policy, query=QUERY)
    assert packed == pack(candidates, budget=budget, counter=counter, policy=policy, query=QUERY)
    assert packed.token_count == counter.count(packed.text) <= budget
    for item in packed.items:
        content = contents[item.evidence_id]
        assert all(0 <= start <= end <= len(content) for start, end in item.spans)
        assert all(before.end < after.start for before, after in pairwise(item.spans))
        assert_between_words(content, item.spans)
        shown = [content[start:end] for start, end in item.spans]
        for block in blocks(content):
            if block.kind != "prose":
                inside = [a <= block.start and block.end <= b for a, b in item.spans]
                outside = [b <= block.start or block.end <= a for a, b in item.spans]
                assert any(inside) or all(outside), shown


@settings(max_examples=60)
@given(
    prose=st.sampled_from(["and we went on ", "我们继续走", "so, "]), times=st.integers(200, 6000)
)
@pytest.mark.parametrize("budget", [256, 1024])
def test_every_long_turn_of_prose_shows_a_part(candidate, prose, times, budget):
    text = prose * times
    packed = pack([candidate(text)], budget=budget, counter=EstimateCounter(), query=QUERY)
    assert len(packed.items) == 1
    assert packed.token_count > budget * 0.6 or packed.items[0].complete
