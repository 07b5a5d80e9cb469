"""Embedders for tests: honest ones, and one for every way to lie."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evicortex.protocols import EmbeddingProfile, Float32Matrix, InputType
from evicortex.types import Span

_NO_VECTORS: Mapping[str, Sequence[float]] = {}


class DeterministicEmbedder:
    """Maps every text to a unit vector that depends on the text and the revision alone.

    Unrelated texts get unrelated vectors; give ``vectors`` where a test needs a geometry.
    ``calls`` records what it was asked, as (texts, input_type).

    Args:
        dimensions: Length of the vectors.
        model_id: Name in the profile.
        revision: Another revision gives other vectors and another identity.
        vectors: Vectors by text, scaled to unit length; any other text gets its own.
        semantic: What the profile declares.
    """

    def __init__(
        self,
        dimensions: int = 16,
        *,
        model_id: str = "testing/deterministic",
        revision: str = "1",
        vectors: Mapping[str, Sequence[float]] = _NO_VECTORS,
        semantic: bool = True,
    ) -> None:
        self.calls: list[tuple[tuple[str, ...], InputType]] = []
        self._vectors = dict(vectors)
        self._profile = EmbeddingProfile(
            model_id=model_id,
            revision=revision,
            dimensions=dimensions,
            implementation="evicortex.testing.DeterministicEmbedder/1",
            semantic=semantic,
        )

    @property
    def profile(self) -> EmbeddingProfile:
        """The identity."""
        return self._profile

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Return unit vectors, shape (len(texts), dimensions)."""
        self.calls.append((tuple(texts), input_type))
        rows = np.zeros((len(texts), self._profile.dimensions), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._vector(text)
        return rows

    def _vector(self, text: str) -> Float32Matrix:
        given = self._vectors.get(text)
        if given is None:
            seed = hashlib.sha256(f"{self._profile.revision}\0{text}".encode()).digest()
            values = np.random.default_rng(list(seed)).standard_normal(self._profile.dimensions)
        else:
            values = np.asarray(given, dtype=np.float64)
        return np.asarray(values / np.linalg.norm(values), dtype=np.float32)


class SymmetricEmbedder:
    """A provider of the plain kind, whose ``embed`` knows no ``input_type``."""

    def __init__(self, dimensions: int = 16) -> None:
        self._inner = DeterministicEmbedder(dimensions, model_id="testing/symmetric")

    @property
    def profile(self) -> EmbeddingProfile:
        """The identity."""
        return self._inner.profile

    def embed(self, texts: Sequence[str]) -> Float32Matrix:
        """Return unit vectors, shape (len(texts), dimensions)."""
        return self._inner.embed(texts)


class DeterministicSpanEmbedder(DeterministicEmbedder):
    """One that also gives vectors of spans: for a span that of its characters.

    A span without a letter or digit has no tokens, so its row is NaN. ``span_calls`` records the
    texts and spans that it was asked for.
    """

    def __init__(
        self,
        dimensions: int = 16,
        *,
        model_id: str = "testing/deterministic-spans",
        revision: str = "1",
        vectors: Mapping[str, Sequence[float]] = _NO_VECTORS,
        semantic: bool = True,
    ) -> None:
        super().__init__(
            dimensions, model_id=model_id, revision=revision, vectors=vectors, semantic=semantic
        )
        self.span_calls: list[tuple[tuple[str, ...], tuple[tuple[Span, ...], ...]]] = []

    def embed_spans(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Float32Matrix, list[Float32Matrix]]:
        """Return the texts' vectors, those of ``embed``, and a matrix of span vectors a text."""
        self.span_calls.append((tuple(texts), tuple(map(tuple, spans))))
        rows = np.array([self._vector(text) for text in texts], dtype=np.float32)
        pieces = [
            np.full((len(wanted), self.profile.dimensions), np.nan, dtype=np.float32)
            for wanted in spans
        ]
        for text, wanted, found in zip(texts, spans, pieces, strict=True):
            for row, (start, end) in zip(found, wanted, strict=True):
                if any(map(str.isalnum, text[start:end])):
                    row[:] = self._vector(text[start:end])
        return rows.reshape(len(texts), self.profile.dimensions), pieces


class RaisingEmbedder(DeterministicEmbedder):
    """Raises ``error`` in place of an answer; ``failures`` None means every time."""

    def __init__(self, error: Exception, *, failures: int | None = None) -> None:
        super().__init__(model_id="testing/raising")
        self._error = error
        self._left = failures

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Raise, or answer once the failures are used up."""
        if self._left is None:
            raise self._error
        if self._left > 0:
            self._left -= 1
            raise self._error
        return super().embed(texts, input_type=input_type)


class SlowEmbedder(DeterministicEmbedder):
    """Answers only after ``release`` is set, and tells through ``started`` that it was asked."""

    def __init__(self) -> None:
        super().__init__(model_id="testing/slow")
        self.started = threading.Event()
        self.release = threading.Event()

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Wait for ``release``, then return unit vectors."""
        self.started.set()
        self.release.wait()
        return super().embed(texts, input_type=input_type)


class LyingEmbedder(DeterministicEmbedder):
    """Breaks the contract in the one way that ``lie`` names (see ``EMBEDDER_LIES``).

    ``"nan row"`` is the lie that costs only the row; ``row`` says which one.
    """

    def __init__(self, lie: str, *, row: int = 0) -> None:
        super().__init__(model_id="testing/lying")
        self._lie = _LIES[lie]
        self._changes = lie == "profile"
        self._row = row

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Any:
        """Return something that breaks the contract."""
        honest = super().embed(texts, input_type=input_type)
        if self._changes:
            self._profile = replace(self._profile, revision=self._profile.revision + "+")
        return self._lie(honest, self._row)


def _nan_row(rows: Float32Matrix, row: int) -> Float32Matrix:
    if row < len(rows):
        rows[row, 0] = np.nan
    return rows


_LIES: Mapping[str, Callable[[Float32Matrix, int], object]] = {
    "too few": lambda rows, _: rows[:-1],
    "too many": lambda rows, _: np.concatenate([rows, rows[:1]]),
    "dimensions": lambda rows, _: rows[:, :-1],
    "one row": lambda rows, _: rows[0],
    "dtype": lambda rows, _: rows.astype(np.float64),
    "list": lambda rows, _: rows.tolist(),
    "nothing": lambda _, __: None,
    "norm": lambda rows, _: rows * np.float32(1.01),
    "zero": lambda rows, _: rows * np.float32(0.0),
    "order": lambda rows, _: np.ascontiguousarray(rows[::-1]),
    "profile": lambda rows, _: rows,
    "nan row": _nan_row,
}

EMBEDDER_LIES: tuple[str, ...] = tuple(_LIES)
"""Every ``lie`` that ``LyingEmbedder`` knows."""


class LyingSpanEmbedder(DeterministicSpanEmbedder):
    """Tells the truth about texts and lies about spans as ``lie`` names (see ``SPAN_LIES``)."""

    def __init__(self, lie: str) -> None:
        super().__init__(model_id="testing/lying-spans")
        self._lie = _SPAN_LIES[lie]

    def embed_spans(self, texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> Any:
        """Return something that breaks the contract."""
        return self._lie(*super().embed_spans(texts, spans))


_SPAN_LIES: Mapping[str, Callable[[Float32Matrix, list[Float32Matrix]], object]] = {
    "no pair": lambda rows, _: rows,
    "no list": lambda rows, pieces: (rows, tuple(pieces)),
    "a text missing": lambda rows, pieces: (rows, pieces[:-1]),
    "too few": lambda rows, pieces: (rows, [found[:-1] for found in pieces]),
    "dimensions": lambda rows, pieces: (rows, [found[:, :-1] for found in pieces]),
    "dtype": lambda rows, pieces: (rows, [found.astype(np.float64) for found in pieces]),
    "norm": lambda rows, pieces: (rows, [found * np.float32(1.01) for found in pieces]),
    "order": lambda rows, pieces: (rows, [found[::-1] for found in pieces]),
    "other texts": lambda rows, pieces: (rows[::-1], pieces),
}

SPAN_LIES: tuple[str, ...] = tuple(_SPAN_LIES)
"""Every ``lie`` that ``LyingSpanEmbedder`` knows."""
