"""A diagnostic encoder: feature hashing, deterministic, without any model."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from evicortex.errors import InputError
from evicortex.protocols import EmbeddingProfile, Float32Matrix, InputType

WORD = re.compile(r"\w+")
TRIGRAM_WEIGHT = 0.5
BLANK = "blank"


class HashingEmbedder:
    """Diagnostic: hashes words and character trigrams into a vector that knows no meaning.

    Two texts are near each other exactly as far as they share words or letters, or as their
    features collide; it exists to exercise the vector path without a model. ``profile.semantic``
    is false, so nothing treats its neighbours as evidence of meaning.

    Features (NFKC, case-folded): each word, weight 1, and each trigram of ``<word>``, weight
    1/2, times 1 + ln(count). A feature's BLAKE2b digest picks its coordinate and sign (signed
    feature hashing, Weinberger et al. 2009, https://arxiv.org/abs/0902.2206).

    Args:
        dimensions: Length of the vectors, at least 8.

    Raises:
        InputError: Fewer than 8 dimensions.
    """

    def __init__(self, dimensions: int = 512) -> None:
        if dimensions < 8:
            raise InputError(f"dimensions must be at least 8, not {dimensions}")
        self._profile = EmbeddingProfile(
            model_id="evicortex/hashing-diagnostic",
            revision="1",
            dimensions=dimensions,
            implementation="evicortex.providers.hashing.HashingEmbedder/1",
            pooling="sum",
            semantic=False,
            details={"kind": "diagnostic feature hashing of words and character trigrams"},
        )

    @property
    def profile(self) -> EmbeddingProfile:
        """The identity; ``semantic`` is false."""
        return self._profile

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Return unit vectors, shape (len(texts), dimensions); ``input_type`` makes no difference."""
        rows = np.zeros((len(texts), self._profile.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._vector(text)
        return rows

    def _vector(self, text: str) -> Float32Matrix:
        counts = Counter(_features(text))
        total = np.zeros(self._profile.dimensions, dtype=np.float64)
        for (kind, feature), count in sorted(counts.items()):
            coordinate, sign = self._place(kind, feature)
            weight = TRIGRAM_WEIGHT if kind == "trigram" else 1.0
            total[coordinate] += sign * weight * (1.0 + math.log(count))
        length = math.sqrt(float(total @ total))
        if length == 0.0:
            coordinate, sign = self._place(BLANK, "")
            total[coordinate], length = sign, 1.0
        return (total / length).astype(np.float32)

    def _place(self, kind: str, feature: str) -> tuple[int, float]:
        content = f"{kind}\0{feature}".encode()
        number = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")
        return (number >> 1) % self._profile.dimensions, 1.0 if number & 1 else -1.0


def _features(text: str) -> Iterator[tuple[str, str]]:
    for match in WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        yield "word", word
        padded = f"<{word}>"
        for start in range(len(padded) - 2):
            yield "trigram", padded[start : start + 3]
