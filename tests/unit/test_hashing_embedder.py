from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.errors import InputError
from evicortex.providers.hashing import HashingEmbedder
from evicortex.validation import profile_digest


def test_it_is_labelled_diagnostic():
    profile = HashingEmbedder().profile
    assert profile.semantic is False
    assert "diagnostic" in profile.model_id
    assert "diagnostic" in profile.details["kind"]


def test_dimensions_are_part_of_the_identity():
    assert profile_digest(HashingEmbedder(64).profile) != profile_digest(HashingEmbedder().profile)
    with pytest.raises(InputError, match="at least 8"):
        HashingEmbedder(7)


def test_vectors_never_change_between_releases():
    row = HashingEmbedder(8).embed(["Lisbon"])[0]
    expected = [0.0, 0.3535534, 0.0, -0.7071068, 0.3535534, -0.3535534, -0.3535534, 0.0]
    assert row.tolist() == pytest.approx(expected, abs=1e-6)


def test_shared_words_bring_texts_nearer():
    texts = ["Mira lives in Lisbon", "where does Mira live", "the invoice was paid twice"]
    rows = HashingEmbedder().embed(texts)
    assert rows[0] @ rows[1] > 0.2 > rows[0] @ rows[2]


def test_case_width_and_marks_of_sentences_make_no_difference():
    rows = HashingEmbedder().embed(["Lisbon, 2026!", "lisbon 2026", "ＬＩＳＢＯＮ ２０２６"])
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])


@given(st.lists(st.text(), max_size=4))
def test_every_text_has_a_unit_vector_of_its_own(texts):
    embedder = HashingEmbedder(64)
    rows = embedder.embed(texts)
    assert rows.shape == (len(texts), 64)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    for row, text in zip(rows, texts, strict=True):
        assert np.array_equal(row, embedder.embed([text], input_type="query")[0])


def test_features_that_cancel_out_leave_a_vector(monkeypatch):
    signs = iter([1.0, -1.0, 1.0])
    monkeypatch.setattr(HashingEmbedder, "_place", lambda *_: (3, next(signs)))
    monkeypatch.setattr(
        "evicortex.providers.hashing._features", lambda _: [("word", "a"), ("word", "b")]
    )
    assert HashingEmbedder(8).embed(["a b"])[0].tolist() == [0, 0, 0, 1, 0, 0, 0, 0]


def test_lone_surrogates_are_no_part_of_a_word():
    rows = HashingEmbedder().embed(["a\ud800", "a"])
    assert np.array_equal(rows[0], rows[1])
