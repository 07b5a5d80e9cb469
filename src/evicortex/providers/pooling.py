"""From token vectors to text and span vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evicortex.errors import InvalidSpanError
from evicortex.protocols import Float32Matrix
from evicortex.types import Span


def unit(vector: npt.NDArray[np.floating]) -> Float32Matrix:
    """Return ``vector`` (..., dimensions) at length 1; NaN where it has no direction.

    In float64 no square of a float32 overflows or vanishes.
    """
    wide = vector.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = wide / np.sqrt((wide * wide).sum(axis=-1, keepdims=True))
    return np.asarray(scaled, dtype=np.float32)


def mean_pooled(tokens: Float32Matrix) -> Float32Matrix:
    """Return the unit mean of token vectors of shape (tokens, dimensions), special ones included."""
    return unit(tokens.mean(axis=0, dtype=np.float64))


def pooled_spans(
    tokens: Float32Matrix,
    offsets: npt.NDArray[np.int64],
    spans: Sequence[Span],
    length: int,
) -> Float32Matrix:
    """Return unit means of the tokens that overlap each span (late chunking).

    Source: Günther et al., Late Chunking, https://arxiv.org/abs/2409.04701. Special tokens
    belong to no span. A span that overlaps no token gets a row of NaN.

    Args:
        tokens: Token vectors, shape (tokens, dimensions).
        offsets: Ranges of characters of the tokens, shape (tokens, 2); (0, 0) for special ones.
        spans: Half-open ranges of code points of the text.
        length: Code points of the text.

    Raises:
        InvalidSpanError: A span is empty, reversed or outside the text.
    """
    rows = np.full((len(spans), tokens.shape[1]), np.nan, dtype=np.float32)
    for row, (start, end) in zip(rows, spans, strict=True):
        if not 0 <= start < end <= length:
            raise InvalidSpanError(f"span ({start}, {end}) in a text of {length} characters")
        inside = (offsets[:, 0] < end) & (offsets[:, 1] > start)
        if inside.any():
            row[:] = mean_pooled(tokens[inside])
    return rows
