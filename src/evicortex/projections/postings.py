"""Terms of a namespace's rows in memory: a sorted block, and a small tail of appended rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evicortex.projections.bm25 import Posting
from evicortex.projections.resident import Int32, Int64

_TAIL_ROWS = 2_048
_TAIL_SHARE = 8
_ROW_BITS = 32
_ROW_MASK = (1 << _ROW_BITS) - 1
_NOTHING = Posting(np.empty(0, np.int32), np.empty(0, np.int32))


class _Vocabulary(dict[str, int]):
    """Term to number; an unknown term gets the next one."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class _Block:
    """Postings of the first ``count`` rows, term by term; never changes once it is built.

    ``keys`` are (term << 32 | row), ascending and without repetition.
    """

    def __init__(self, keys: Int64, counts: Int32, vocabulary: int, count: int) -> None:
        self.count = count
        self.keys = keys
        self.counts = counts
        self.rows: Int32 = (keys & _ROW_MASK).astype(np.int32)
        self.starts = np.searchsorted(keys, np.arange(vocabulary + 1, dtype=np.int64) << _ROW_BITS)

    def of(self, number: int) -> Posting:
        if number + 1 >= len(self.starts):
            return _NOTHING
        part = slice(self.starts[number], self.starts[number + 1])
        return Posting(self.rows[part], self.counts[part])


def _counted(keys: Int64) -> tuple[Int64, Int32]:
    """Return the distinct keys, ascending, and how often each occurs."""
    keys.sort()
    new = np.ones(len(keys), dtype=np.bool_)
    new[1:] = keys[1:] != keys[:-1]
    first = np.flatnonzero(new)
    return keys[first], np.diff(first, append=len(keys)).astype(np.int32)


class Postings:
    """Grows row by row; safe to share between threads. Rows are never taken away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vocabulary = _Vocabulary()
        self._block = _Block(np.empty(0, np.int64), np.empty(0, np.int32), 0, 0)
        self._tail: dict[int, tuple[list[int], list[int]]] = {}
        self._lengths: Int32 = np.empty(0, np.int32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def lengths(self, count: int) -> Int32:
        """Return the number of terms of each of the first ``count`` rows."""
        return self._lengths[:count]

    def append(self, texts: Sequence[str]) -> None:
        """Add rows, each as its terms joined by single spaces."""
        with self._lock:
            lengths = np.fromiter(
                (text.count(" ") + 1 if text else 0 for text in texts), np.int32, len(texts)
            )
            tail = self._count - self._block.count + len(texts)
            if tail > max(_TAIL_ROWS, self._block.count // _TAIL_SHARE):
                self._merge(texts, lengths)
            else:
                self._append_to_tail(texts)
            self._grow(lengths)

    def _grow(self, lengths: Int32) -> None:
        needed = self._count + len(lengths)
        if needed > len(self._lengths):
            grown = np.empty(max(needed, 2 * len(self._lengths)), np.int32)
            grown[: self._count] = self._lengths[: self._count]
            self._lengths = grown
        self._lengths[self._count : needed] = lengths
        self._count = needed

    def _append_to_tail(self, texts: Sequence[str]) -> None:
        for row, text in enumerate(texts, start=self._count):
            counted: dict[str, int] = {}
            for term in text.split(" ") if text else ():
                counted[term] = counted.get(term, 0) + 1
            for term, count in counted.items():
                rows, counts = self._tail.setdefault(self._vocabulary[term], ([], []))
                rows.append(row)
                counts.append(count)

    def _merge(self, texts: Sequence[str], lengths: Int32) -> None:
        """Make one block of the old one, the tail and the new rows."""
        tokens = " ".join(filter(None, texts)).split(" ") if lengths.any() else []
        numbers = np.fromiter(map(self._vocabulary.__getitem__, tokens), np.int64, len(tokens))
        rows = np.arange(self._count, self._count + len(texts))
        keys, counts = _counted(numbers << _ROW_BITS | np.repeat(rows, lengths))
        parts = [(self._block.keys, self._block.counts), self._tail_arrays(), (keys, counts)]
        keys = np.concatenate([part[0] for part in parts])
        counts = np.concatenate([part[1] for part in parts])
        if len(self._block.keys) or self._tail:
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        self._block = _Block(keys, counts, len(self._vocabulary), self._count + len(texts))
        self._tail = {}

    def _tail_arrays(self) -> tuple[Int64, Int32]:
        keys = [
            number << _ROW_BITS | row for number, (rows, _) in self._tail.items() for row in rows
        ]
        counts = [count for _, counts in self._tail.values() for count in counts]
        return np.asarray(keys, dtype=np.int64), np.asarray(counts, dtype=np.int32)

    def of(self, term: str, count: int) -> Posting:
        """Return where a term stands in the first ``count`` rows."""
        with self._lock:
            number = self._vocabulary.get(term)
            if number is None:
                return _NOTHING
            found = self._block.of(number)
            tail = self._tail.get(number)
            if tail is not None:
                found = Posting(
                    np.concatenate((found.rows, np.asarray(tail[0], dtype=np.int32))),
                    np.concatenate((found.counts, np.asarray(tail[1], dtype=np.int32))),
                )
        return before(found, count)


def before(posting: Posting, count: int) -> Posting:
    """Return the part of a posting that lies in the first ``count`` rows."""
    rows: npt.NDArray[np.int32] = posting.rows
    if not len(rows) or rows[-1] < count:
        return posting
    inside = int(np.searchsorted(rows, count))
    return Posting(rows[:inside], posting.counts[:inside])
