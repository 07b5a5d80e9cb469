"""What a claim's vector is of, and the claim vectors of one namespace in memory."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from evicortex.projections.scan import exact_scores
from evicortex.protocols import Float32Matrix

CLAIMS = (
    "SELECT c.seq, c.subject, c.predicate, c.object, v.input_digest, v.profile_id "
    "FROM claims c LEFT JOIN vectors v ON v.namespace_id = c.namespace_id AND v.kind = 'claim' "
    "AND v.item = c.seq AND v.part = 0 WHERE c.namespace_id = ? AND c.seq > ? ORDER BY c.seq"
)


def claim_text(subject: str, predicate: str, obj: str) -> str:
    """Return a claim as the words that are indexed and embedded: ``Ann lives in Lisbon``.

    A denied claim has the words of the affirmed one: it answers the same question.
    """
    return f"{subject} {predicate.replace('_', ' ')} {obj}"


def text_digest(text: str) -> str:
    """Return the SHA-256 of the UTF-8 bytes of an input, in lower-case hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


class ClaimVectors:
    """Vectors by claim number: ``items`` (parts,) ascending, ``matrix`` (parts, dimensions)."""

    def __init__(self, items: npt.NDArray[np.int64], matrix: Float32Matrix) -> None:
        self.numbers, self._starts = np.unique(items, return_index=True)
        """The claims that have a vector, ascending."""
        self._matrix = matrix

    def scores(self, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return one inner product a claim, the best of its parts, in order of ``numbers``."""
        parts = exact_scores(self._matrix, query)
        if len(self.numbers) == len(parts):
            return parts
        best: npt.NDArray[np.float32] = np.maximum.reduceat(parts, self._starts)
        return best
