from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evicortex.errors import InvalidSpanError
from evicortex.providers.pooling import mean_pooled, pooled_spans, unit
from evicortex.types import Span

TOKENS = np.array([[9, 9], [1, 0], [0, 1], [1, 1], [9, 9]], dtype=np.float32)
OFFSETS = np.array([[0, 0], [0, 3], [3, 5], [6, 9], [0, 0]])


def test_a_text_is_the_unit_mean_of_all_its_tokens():
    assert mean_pooled(TOKENS).tolist() == pytest.approx([0.5**0.5] * 2)


def test_spans_pool_the_tokens_they_overlap_and_no_special_ones():
    rows = pooled_spans(TOKENS, OFFSETS, [Span(0, 3), Span(2, 4), Span(4, 5), Span(0, 9)], 9)
    half = 0.5**0.5
    assert np.allclose(rows, [[1, 0], [half, half], [0, 1], [half, half]])


def test_a_span_without_tokens_has_no_vector():
    rows = pooled_spans(TOKENS, OFFSETS, [Span(5, 6), Span(0, 1)], 9)
    assert np.isnan(rows[0]).all()
    assert np.isfinite(rows[1]).all()


@pytest.mark.parametrize("span", [(3, 3), (4, 3), (-1, 2), (0, 10)])
def test_impossible_spans_are_refused(span):
    with pytest.raises(InvalidSpanError, match="9 characters"):
        pooled_spans(TOKENS, OFFSETS, [Span(*span)], 9)


@given(arrays.arrays(np.float32, (3, 5), elements=st.floats(-(2.0**99), 2.0**99, width=32)))
def test_unit_rows_have_length_one_or_no_direction(rows):
    result = unit(rows)
    lengths = np.linalg.norm(result.astype(np.float64), axis=1)
    blank = ~rows.any(axis=1)
    assert np.isnan(lengths[blank]).all()
    assert np.allclose(lengths[~blank], 1.0, atol=1e-6)
