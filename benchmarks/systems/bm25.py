"""Plain BM25 over turns: stemmed, with a full English stop list, nothing else.

Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009; k1 and b at the values that
Lucene ships. Written apart from the product on purpose: it is a reference, not a caller of it.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import Stemmer

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, pack_greedily
from benchmarks.systems.stop_words import ENGLISH

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class BM25:
    """BM25 over single turns."""

    name = "bm25"

    def __init__(self, count: CountTokens, *, k1: float = 1.2, b: float = 0.75) -> None:
        self._count = count
        self._k1 = k1
        self._b = b
        self._stem = Stemmer.Stemmer("english")
        self._turns: dict[str, Sequence[Turn]] = {}
        self._postings: dict[str, dict[str, dict[int, int]]] = {}
        self._lengths: dict[str, list[int]] = {}

    def _terms(self, text: str) -> list[str]:
        words = [word.replace("’", "'") for word in _WORD.findall(text.casefold())]
        kept = [word.removesuffix("'s") for word in words if word not in ENGLISH]
        stems: list[str] = self._stem.stemWords(kept)
        return stems

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Index one conversation."""
        postings: dict[str, dict[int, int]] = defaultdict(dict)
        lengths: list[int] = []
        for row, turn in enumerate(turns):
            terms = self._terms(f"{turn.actor}: {turn.text}")
            lengths.append(len(terms))
            for term, frequency in Counter(terms).items():
                postings[term][row] = frequency
        self._turns[namespace] = turns
        self._postings[namespace] = dict(postings)
        self._lengths[namespace] = lengths

    def rank(self, namespace: str, text: str) -> list[Turn]:
        """Return all turns, best first; ties by place in the conversation."""
        turns, lengths = self._turns[namespace], self._lengths[namespace]
        average = sum(lengths) / max(len(lengths), 1) or 1.0
        scores = [0.0] * len(turns)
        for term in self._terms(text):
            rows = self._postings[namespace].get(term, {})
            idf = math.log(1 + (len(turns) - len(rows) + 0.5) / (len(rows) + 0.5))
            for row, frequency in rows.items():
                length = 1 - self._b + self._b * lengths[row] / average
                scores[row] += idf * frequency * (self._k1 + 1) / (frequency + self._k1 * length)
        return [turns[row] for row in sorted(range(len(turns)), key=lambda r: (-scores[r], r))]

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Pack the best turns."""
        order = {turn.turn_id: place for place, turn in enumerate(self._turns[namespace])}
        return pack_greedily(self.rank(namespace, query.text), order, budget_tokens, self._count)

    def close(self) -> None:
        """Nothing to release."""
