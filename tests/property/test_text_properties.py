"""Whatever the text: no analysis raises, and every range is exact."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from evicortex.text import (
    blocks,
    content_terms,
    estimate_tokens,
    normalized,
    passages,
    sentences,
    terms,
    words,
)

ANY = st.text(st.characters(), max_size=200)
MARKUP = st.text(
    st.sampled_from(
        list("aB1 .,!?…\n\n\t\"'”|-*`~#@+:/\\_&=%()[]。！東タ서กहि\u0301\u200d😀👍🏽🇵🇹\x00")
    ),
    max_size=200,
)
TEXT = st.one_of(ANY, MARKUP)


@given(TEXT)
def test_terms_hold_no_separator(text: str) -> None:
    found = terms(text)
    assert all(
        term and not any(c.isspace() or c < " " or c == "\x7f" for c in term) for term in found
    )
    assert " ".join(found).encode().decode().split(" ") == (found or [""])


@given(TEXT)
def test_content_terms_are_terms(text: str) -> None:
    remaining = iter(terms(text))
    assert all(term in remaining for term in content_terms(text))


@given(TEXT, TEXT)
def test_chunks_are_independent(one: str, other: str) -> None:
    assert terms(f"{one} {other}") == terms(one) + terms(other)


@given(TEXT)
def test_canonical_forms_have_the_same_terms(text: str) -> None:
    clean = "".join(c for c in text if unicodedata.category(c) != "Cs")
    assert terms(unicodedata.normalize("NFD", clean)) == terms(unicodedata.normalize("NFC", clean))


@given(TEXT)
def test_sentences_hold_everything_but_white_space_and_cut_no_word(text: str) -> None:
    at = 0
    for start, end in sentences(text):
        assert at <= start < end
        assert not text[at:start].strip()
        assert text[start:end] == text[start:end].strip()
        if start and start == at:
            assert not (text[start - 1].isalnum() and text[start].isalnum())
        at = end
    assert not text[at:].strip()


@given(TEXT)
def test_blocks_hold_everything_but_white_space(text: str) -> None:
    at = 0
    for block in blocks(text):
        assert at <= block.start < block.end
        assert not text[at : block.start].strip()
        at = block.end
    assert not text[at:].strip()


@given(TEXT, st.integers(1, 30))
def test_passages_cover_the_text(text: str, target: int) -> None:
    found = passages(text, target)
    assert "".join(text[start:end] for start, end in found) == (text if text.strip() else "")
    assert all(text[start:end].strip() for start, end in found)
    for start, end in found:
        body = text[start:end].strip()
        assert estimate_tokens(body) <= target or len(body) == 1 or target == 1


@given(TEXT)
def test_words_are_exact_and_ordered(text: str) -> None:
    at = 0
    for word in words(text):
        assert at <= word.start < word.end
        assert text[word.start : word.end] == word.text
        at = word.end


@given(TEXT)
def test_normalized_ignores_case_and_space_round_the_text(text: str) -> None:
    key = normalized(text)
    assert normalized(f"  {text}\n") == key
    assert key == key.casefold().strip()
    if any(character.isalnum() for character in key):
        assert normalized(key + ".") == normalized(key)


@given(
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.sampled_from(["{}", "at {}.", "({})", "'{}'"]),
)
def test_normalized_keeps_every_number(one: int, other: int, frame: str) -> None:
    assert (normalized(frame.format(one)) == normalized(frame.format(other))) == (one == other)
