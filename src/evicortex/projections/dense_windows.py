"""Cosine of whole windows of neighbouring turns, from the scores of single turns.

The mean vector of a window points where the sum of its turns' vectors does, and an inner product
is linear: the window's cosine is the sum of its turns' scores divided by the length of the sum
of their vectors. The scores are one pass that the exact scan makes anyway; the lengths do not
depend on the query and are kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evicortex.projections.bm25 import Layout
from evicortex.protocols import Float32Matrix

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_CHUNK = 8_192
_SHORT = 1e-9


def window_lengths(
    matrix: Float32Matrix, layout: Layout, places: npt.NDArray[np.intp] | None = None
) -> Float64:
    """Return the length of the sum of the vectors of each place's window.

    ``matrix`` has one vector a row (zeros for none); ``places`` (ascending; ``None``: all) says
    for which windows.
    """
    wanted = np.arange(layout.count) if places is None else places
    lengths = np.zeros(len(wanted))
    for begin in range(0, len(wanted), _CHUNK):
        part = wanted[begin : begin + _CHUNK]
        starts, ends = layout.window_start[part], layout.window_end[part]
        first = int(starts.min())
        held = matrix[layout.sequence[first : int(ends.max())]].astype(np.float64)
        sums = np.concatenate((np.zeros((1, matrix.shape[1])), np.cumsum(held, axis=0)))
        lengths[begin : begin + len(part)] = np.linalg.norm(
            sums[ends - first] - sums[starts - first], axis=1
        )
    return lengths


class WindowLengths:
    """The lengths for all rows, kept, and from them those for any subset of the rows."""

    def __init__(self, matrix: Float32Matrix, whole: Layout) -> None:
        self._matrix = matrix
        self._whole = whole
        self._lengths = window_lengths(matrix, whole)

    def of(self, layout: Layout) -> Float64:
        """Return one length a place of ``layout``, a layout of all or some of the same rows.

        A window all of whose rows are still there is the same window; only others are summed
        again.
        """
        whole = self._whole
        if layout is whole or layout.count == whole.count:
            return self._lengths
        kept = np.zeros(whole.count + 1, dtype=np.int64)
        kept[1:] = np.cumsum(layout.place[whole.sequence] < layout.count)
        complete = kept[whole.window_end] - kept[whole.window_start] == (
            whole.window_end - whole.window_start
        )
        at = whole.place[layout.sequence]
        lengths = self._lengths[at]
        changed = np.flatnonzero(~complete[at])
        if len(changed):
            lengths[changed] = window_lengths(self._matrix, layout, changed)
        return lengths


def window_scores(scores: Float32, layout: Layout, lengths: Float64) -> Float32:
    """Return the cosine of every row's window; 0 for rows that are not in ``layout``.

    ``scores`` has one inner product a row, 0 for rows without a vector.
    """
    sums = np.zeros(layout.count + 1)
    np.cumsum(scores[layout.sequence].astype(np.float64), out=sums[1:])
    windows = sums[layout.window_end] - sums[layout.window_start]
    cosines = np.zeros(layout.count + 1)
    np.divide(windows, lengths, out=cosines[:-1], where=lengths > _SHORT)
    found: Float32 = np.take(cosines.astype(np.float32), layout.place, mode="clip")
    return found
