"""Rerankers and token counters for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evicortex.protocols import RerankCandidate


class WordCounter:
    """Counts words between white space, exactly that and nothing else."""

    identity = "testing/words"
    exact = True

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(text.split())


class OverlapReranker:
    """Scores a candidate by the share of the query's words that it contains."""

    identity = "testing/overlap"

    def rerank(self, query: str, candidates: Sequence[RerankCandidate]) -> Mapping[str, float]:
        """Return a score from 0 to 1 for every candidate."""
        words = set(query.casefold().split())
        return {
            candidate.evidence_id: len(words & set(candidate.text.casefold().split()))
            / max(1, len(words))
            for candidate in candidates
        }


class LyingReranker(OverlapReranker):
    """Breaks the contract in the one way that ``lie`` names (see ``RERANKER_LIES``)."""

    identity = "testing/lying-reranker"

    def __init__(self, lie: str) -> None:
        self._lie = _LIES[lie]

    def rerank(self, query: str, candidates: Sequence[RerankCandidate]) -> Any:
        """Return something that breaks the contract."""
        return self._lie(dict(super().rerank(query, candidates)))


def _first_score(value: object) -> Callable[[dict[str, float]], object]:
    return lambda scores: scores | {next(iter(scores)): value}


_LIES: Mapping[str, Callable[[dict[str, float]], object]] = {
    "unknown id": lambda scores: scores | {"ev_never_sent": 1.0},
    "nan": _first_score(float("nan")),
    "infinite": _first_score(float("inf")),
    "text": _first_score("high"),
    "bool": _first_score(True),
    "list": lambda scores: list(scores.items()),
}

RERANKER_LIES: tuple[str, ...] = tuple(_LIES)
"""Every ``lie`` that ``LyingReranker`` knows."""
