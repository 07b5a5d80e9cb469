"""Checked providers that score candidates: rerankers and candidate indexes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Real

import numpy as np
import numpy.typing as npt

from evicortex.errors import InputError, ProviderContractError
from evicortex.protocols import Candidate, CandidateIndex, RerankCandidate, Reranker
from evicortex.validation.calls import checked_name, checked_timeout, guarded

MAX_RERANK = 16
"""The most candidates one rerank may see, so that its cost has a bound."""


class CheckedReranker:
    """Reranks with ``reranker`` and refuses ids that were not sent and scores that are no numbers."""

    def __init__(self, reranker: Reranker, *, timeout_seconds: float | None = None) -> None:
        self._reranker = reranker
        self._timeout = checked_timeout(timeout_seconds)
        self._identity = checked_name("reranker", "identity", reranker.identity)

    @property
    def identity(self) -> str:
        """The reranker's identity, as it was when it was wrapped."""
        return self._identity

    def rerank(self, query: str, candidates: Sequence[RerankCandidate]) -> dict[str, float]:
        """Return finite scores by evidence id, higher is better; ids left out have no opinion.

        Raises:
            InputError: More than ``MAX_RERANK`` candidates, or the same id twice.
            ProviderContractError: No mapping, an id that was not sent, or a score that is no
                finite number.
            ProviderUnavailableError: The reranker raised or did not answer in time.
        """
        sent = {candidate.evidence_id for candidate in candidates}
        if len(candidates) > MAX_RERANK:
            raise InputError(
                f"at most {MAX_RERANK} candidates can be reranked, not {len(candidates)}"
            )
        if len(sent) != len(candidates):
            raise InputError("a candidate was sent to the reranker twice")
        if not candidates:
            return {}
        return guarded(
            f"reranker {self._identity}",
            lambda: self._scores(sent, self._reranker.rerank(query, tuple(candidates))),
            timeout_seconds=self._timeout,
        )

    def _scores(self, sent: Collection[str], scores: object) -> dict[str, float]:
        name = f"reranker {self._identity}"
        if not isinstance(scores, Mapping):
            raise ProviderContractError(
                f"{name}: scores must be a mapping, not {type(scores).__name__}"
            )
        unknown = sorted(str(key) for key in scores if key not in sent)
        if unknown:
            raise ProviderContractError(f"{name}: scored ids that were not sent: {unknown[:3]}")
        return {key: _finite(name, key, value) for key, value in scores.items()}


class CheckedCandidateIndex:
    """Searches with ``index`` and refuses rows outside the filter and lists that are not ranked."""

    def __init__(self, index: CandidateIndex) -> None:
        self._index = index
        self._identity = checked_name("candidate index", "identity", index.identity)
        exact: object = index.exact
        if type(exact) is not bool:
            raise ProviderContractError(
                f"candidate index {self._identity}: exact must be a bool, not {exact!r}"
            )
        self._exact = exact

    @property
    def identity(self) -> str:
        """The index's identity, as it was when it was wrapped."""
        return self._identity

    @property
    def exact(self) -> bool:
        """True when ``search`` returns exactly the best rows."""
        return self._exact

    def search(
        self, query: npt.NDArray[np.float32], limit: int, rows: npt.NDArray[np.int64] | None
    ) -> tuple[Candidate, ...]:
        """Return at most ``limit`` rows out of ``rows``, best first, ties by row.

        Raises:
            ProviderContractError: Too many rows, a row outside ``rows`` or below 0, a row
                twice, a score that is no finite number, or the wrong order.
            ProviderUnavailableError: The index raised.
        """
        name = f"candidate index {self._identity}"
        found = guarded(name, lambda: tuple(self._index.search(query, limit, rows)))
        if len(found) > limit:
            raise ProviderContractError(
                f"{name}: returned {len(found)} rows for a limit of {limit}"
            )
        for candidate in found:
            _check_row(name, candidate)
        numbers = [candidate.row for candidate in found]
        if len(set(numbers)) != len(numbers):
            raise ProviderContractError(f"{name}: returned a row twice")
        if rows is not None and not np.isin(np.asarray(numbers, dtype=np.int64), rows).all():
            raise ProviderContractError(f"{name}: returned a row outside the filter")
        ranked = sorted(found, key=lambda candidate: (-candidate.score, candidate.row))
        if list(found) != ranked:
            raise ProviderContractError(f"{name}: rows must come best first, ties by row")
        return found


def _check_row(name: str, candidate: object) -> None:
    if not isinstance(candidate, Candidate):
        raise ProviderContractError(f"{name}: returned {type(candidate).__name__}, not Candidate")
    row: object = candidate.row
    if not isinstance(row, int | np.integer) or isinstance(row, bool) or row < 0:
        raise ProviderContractError(f"{name}: a row must be an integer of at least 0, not {row!r}")
    _finite(name, row, candidate.score)


def _finite(name: str, key: object, value: object) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ProviderContractError(f"{name}: the score of {key!r} must be finite, not {value!r}")
    return float(value)
