"""BM25 over turns, over windows of neighbouring turns, and over whole threads.

Pure NumPy over one namespace's rows. Statistics (document frequencies, document count, average
length) are those of the allowed rows only: the scores are the same, bit for bit, as if nothing
else existed, so that ``known_at`` replays exactly and no other tenant shows through.

Formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with Lucene's idf, ln(1 + (N - df + 0.5) / (df + 0.5)), which is never negative. A window and a
thread are documents of their own: their frequencies and lengths are sums over their turns, and
their document frequencies count windows and threads.

Rows are put in sequence order (thread by thread, in order of recording), in which a window is
one contiguous range; its frequency is then a difference of two running sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evicortex.errors import InputError
from evicortex.projections.resident import Int32, Int64, Mask, NamespaceRows
from evicortex.text.segments import BYTES_PER_TOKEN

_DENSE = 3
"""Above this share (one in three) of all windows, whole arrays are cheaper than lists."""

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Bm25Options:
    """``k1`` and ``b`` as in the literature; Lucene's defaults.

    A window reaches ``window_turns`` turns to either side, and, when ``window_tokens`` is set, no
    further than needed to hold that many estimated tokens on that side (a turn is never cut, so
    the nearest one is always in). Both stop at the ends of the thread.
    """

    k1: float = 1.2
    b: float = 0.75
    window_turns: int = 2
    window_tokens: int | None = None

    def __post_init__(self) -> None:
        if not (self.k1 > 0 and 0 <= self.b < 1):
            raise InputError("k1 is above 0, and b from 0 to below 1")
        if self.window_turns < 0 or (self.window_tokens is not None and self.window_tokens < 1):
            raise InputError("window_turns is at least 0, and window_tokens at least 1")


class Posting(NamedTuple):
    """Where a term stands: ascending row indices, and how often in each."""

    rows: Int32
    counts: Int32


@dataclass(frozen=True, slots=True)
class Bm25Scores:
    """One value per row of the namespace; 0 for rows that are not allowed.

    ``coverage`` is the share, from 0 to 1, of the query's idf mass that the row itself holds.
    """

    turn: Float32
    window: Float32
    session: Float32
    coverage: Float32


def idf(documents: int, frequency: int) -> float:
    """Return the weight of a term that stands in ``frequency`` of ``documents`` documents."""
    return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))


def _ranges(first: Index, after: Index) -> Index:
    """Return every index of the half-open ranges, one after the other."""
    width = after - first
    ends = np.cumsum(width)
    shifts: Index = np.repeat(first - ends + width, width)
    return shifts + np.arange(len(shifts))


def _running(first: Index, after: Index, counts: Int32, size: int) -> Float64:
    """Return for each of ``size`` places the sum of the counts whose range holds it."""
    steps = np.bincount(first, counts, size + 1)
    steps -= np.bincount(after, counts, size + 1)
    sums: Float64 = np.cumsum(steps[:-1])
    return sums


class Layout:
    """The allowed rows in sequence order, with their windows, threads and length norms.

    ``lengths`` holds a length per row of ``rows`` (terms, or anything proportional to them).
    """

    def __init__(
        self,
        rows: NamespaceRows,
        lengths: Int32,
        mask: Mask | None,
        options: Bm25Options,
    ) -> None:
        sequence = rows.sequence if mask is None else rows.sequence[mask[rows.sequence]]
        self.options = options
        self.count = len(sequence)
        self.place: Index = np.full(len(rows), self.count, dtype=np.intp)
        """Place in the sequence of every row; ``count`` when it is not allowed."""
        self.place[sequence] = np.arange(self.count)
        self.sequence = sequence
        """Row index of every place."""
        self._ascending = not (sequence[1:] < sequence[:-1]).any()
        self.whole = self._ascending and self.count == len(rows)
        """Every row's place is the row itself."""
        self._find_threads(rows.thread[sequence])
        self._find_windows(rows.octets[sequence])
        sizes = lengths[sequence]
        ends = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        total = int(ends[-1])
        windows = ends[self.window_end] - ends[self.window_start]
        threads = ends[self.thread_end] - ends[self.thread_start]
        self.turn_norm = self._norm(sizes, total)
        self.window_norm = self._norm(windows, int(windows.sum()))
        self.thread_norm = self._norm(threads, total)

    def _find_threads(self, thread: Int32) -> None:
        first = np.ones(self.count, dtype=np.bool_)
        first[1:] = thread[1:] != thread[:-1]
        self.ordinal: Index = np.cumsum(first) - 1
        """Which thread, counted from 0, every place belongs to."""
        self.thread_start: Index = np.flatnonzero(first)
        self.thread_end: Index = np.append(self.thread_start[1:], self.count)
        self.threads = len(self.thread_start)

    def _find_windows(self, octets: Int32) -> None:
        at = np.arange(self.count)
        turns = self.options.window_turns
        start, end = at - turns, at + turns + 1
        if self.options.window_tokens is not None:
            tokens = np.maximum(-(-octets.astype(np.int64) // BYTES_PER_TOKEN), 1)
            held = np.concatenate(([0], np.cumsum(tokens)))
            budget = self.options.window_tokens
            start = np.maximum(start, np.searchsorted(held, held[:-1] - budget, "right") - 1)
            end = np.minimum(end, np.searchsorted(held, held[1:] + budget, "left"))
        self.window_start: Index = np.maximum(start, self.thread_start[self.ordinal])
        self.window_end: Index = np.minimum(end, self.thread_end[self.ordinal])

    def _norm(self, sizes: Int32 | Int64, total: int) -> Float64:
        k1, b = self.options.k1, self.options.b
        relative = sizes.astype(np.float64) * (len(sizes) / max(total, 1))
        return k1 * (1 - b) + (k1 * b) * relative

    def places(self, posting: Posting) -> tuple[Index, Int32]:
        """Return the allowed places of a term, ascending, and its counts there."""
        if self.whole:
            return posting.rows.astype(np.intp), posting.counts
        at = self.place[posting.rows]
        counts = posting.counts
        allowed = at < self.count
        if not allowed.all():
            at, counts = at[allowed], counts[allowed]
        if not self._ascending:
            order = np.argsort(at)
            at, counts = at[order], counts[order]
        return at, counts


class Scorer:
    """Adds up the scores of one query, term by term."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._gain = layout.options.k1 + 1
        # One place more than needed: a row that is not allowed reads a zero there.
        self._turn = np.zeros(layout.count + 1)
        self._window = np.zeros(layout.count + 1)
        self._coverage = np.zeros(layout.count + 1)
        self._thread = np.zeros(layout.threads)
        self._mass = 0.0

    def add(self, at: Index, counts: Int32) -> float:
        """Add a term by its ascending places and counts there; return its idf over turns."""
        layout = self._layout
        weight = idf(layout.count, len(at))
        self._mass += weight
        if len(at):
            norm = layout.turn_norm[at]
            self._turn[at] += (weight * self._gain) * counts / (counts + norm)
            self._coverage[at] += weight
            self._add_windows(at, counts)
            self._add_threads(at, counts)
        return weight

    def _add_windows(self, at: Index, counts: Int32) -> None:
        layout = self._layout
        # Starts and ends of windows ascend, so the windows that hold a place are one range.
        if layout.options.window_tokens is None:
            first, after = layout.window_start[at], layout.window_end[at]
        else:
            first = np.searchsorted(layout.window_end, at, "right")
            after = np.searchsorted(layout.window_start, at, "right")
        if int((after - first).sum()) * _DENSE > layout.count:
            held = _running(first, after, counts, layout.count)
            weight = idf(layout.count, int(np.count_nonzero(held)))
            self._window[:-1] += (weight * self._gain) * held / (held + layout.window_norm)
            return
        # The windows touched, each once, are the ranges less what the range before has.
        start = first.copy()
        start[1:] = np.maximum(first[1:], after[:-1])
        touched = _ranges(start, after)
        end = np.cumsum(after - start)
        begin = end - (after - first)
        held = _running(begin, end, counts, len(touched))
        weight = idf(layout.count, len(touched))
        norm = layout.window_norm[touched]
        self._window[touched] += (weight * self._gain) * held / (held + norm)

    def _add_threads(self, at: Index, counts: Int32) -> None:
        layout = self._layout
        ordinal = layout.ordinal[at]
        new = np.ones(len(at), dtype=np.bool_)
        new[1:] = ordinal[1:] != ordinal[:-1]
        touched = ordinal[new]
        held = np.add.reduceat(counts, np.flatnonzero(new), dtype=np.float64)
        weight = idf(layout.threads, len(touched))
        self._thread[touched] += (weight * self._gain) * held / (held + layout.thread_norm[touched])

    def scores(self) -> Bm25Scores:
        """Return what was added, by row."""
        layout = self._layout
        session = np.zeros(layout.count + 1)
        session[:-1] = self._thread[layout.ordinal]
        covered = self._coverage / self._mass if self._mass > 0 else self._coverage
        return Bm25Scores(
            *(self._by_row(values) for values in (self._turn, self._window, session, covered))
        )

    def _by_row(self, values: Float64) -> Float32:
        single = values.astype(np.float32)
        if self._layout.whole:
            return single[:-1]
        return np.take(single, self._layout.place, mode="clip")
