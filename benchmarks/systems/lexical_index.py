"""BM25 over any documents of one namespace, filtered before anything is counted.

Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; k1 and b at the values that
Lucene ships. Written apart from the product on purpose: it is a reference, not a caller of it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import Stemmer

from benchmarks.systems.stop_words import ENGLISH

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_STEM = Stemmer.Stemmer("english")


def analysed(text: str) -> list[str]:
    """Return stemmed terms without function words."""
    words = [word.replace("’", "'") for word in _WORD.findall(text.casefold())]
    kept = [word.removesuffix("'s") for word in words if word not in ENGLISH]
    stems: list[str] = _STEM.stemWords(kept)
    return stems


class LexicalIndex:
    """Postings of documents; statistics are those of the allowed documents only."""

    def __init__(self, documents: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._k1 = k1
        self._b = b
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for row, text in enumerate(documents):
            terms = analysed(text)
            lengths.append(len(terms))
            for term, frequency in Counter(terms).items():
                found[term].append((row, frequency))
        self._lengths = np.array(lengths, dtype=np.float64)
        self._postings = {
            term: (np.array([r for r, _ in rows]), np.array([f for _, f in rows], dtype=float))
            for term, rows in found.items()
        }

    def scores(self, query: str, mask: Mask) -> Floats:
        """Return BM25 of every document; 0 for documents that ``mask`` does not allow."""
        scores = np.zeros(len(self._lengths))
        allowed = int(mask.sum())
        if not allowed:
            return scores
        average = float(self._lengths[mask].mean()) or 1.0
        for term in analysed(query):
            if term not in self._postings:
                continue
            rows, frequencies = self._postings[term]
            kept = mask[rows]
            rows, frequencies = rows[kept], frequencies[kept]
            idf = np.log(1 + (allowed - len(rows) + 0.5) / (len(rows) + 0.5))
            length = self._k1 * (1 - self._b + self._b * self._lengths[rows] / average)
            scores[rows] += idf * frequencies * (self._k1 + 1) / (frequencies + length)
        return scores


def best_first(scores: Floats, mask: Mask) -> npt.NDArray[np.intp]:
    """Return the allowed rows, best first, ties by row."""
    rows = np.flatnonzero(mask)
    return rows[np.lexsort((rows, -scores[rows]))]
