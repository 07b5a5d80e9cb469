"""Dense retrieval over single turns, and the encoder that every system shares."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, pack_greedily

Vectors = npt.NDArray[np.float32]


class SharedEncoder:
    """One encoder with one memory of vectors, so that all systems get the same ones."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._memory: dict[tuple[str, str], Vectors] = {}

    @classmethod
    def local(cls) -> SharedEncoder | None:
        """Return the default local encoder, or ``None`` when its extra is not installed."""
        errors = importlib.import_module("evicortex.errors")
        module = importlib.import_module("evicortex.providers.onnx")
        try:
            return cls(module.OnnxEmbedder())
        except errors.MissingExtraError:
            return None

    @property
    def profile(self) -> Any:
        """The encoder's identity."""
        return self._encoder.profile

    @property
    def identity(self) -> str:
        """Model and graph, for records."""
        profile = self.profile
        return f"{profile.model_id}@{profile.revision} {dict(profile.details)}"

    def windows(self, text: str) -> Any:
        """Cut an over-long text as the encoder says."""
        return self._encoder.windows(text)

    def embed(self, texts: Sequence[str], *, input_type: str = "document") -> Vectors:
        """Return vectors (len(texts), dimensions), computed once per text and role."""
        for text in texts:
            if (input_type, text) not in self._memory:
                (vector,) = self._encoder.embed([text], input_type=input_type)
                self._memory[input_type, text] = vector
        rows: Vectors = np.stack([self._memory[input_type, text] for text in texts])
        return rows

    def turn(self, text: str) -> Vectors:
        """Return one vector of a turn: the mean of its windows' when it is over-long."""
        windows = self.windows(text)
        if len(windows) <= 1:
            whole: Vectors = self.embed([text])[0]
            return whole
        mean = self.embed([text[start:end] for start, end in windows]).mean(axis=0)
        unit: Vectors = mean / np.linalg.norm(mean)
        return unit


class Dense:
    """Cosine of the question as it is against single turns."""

    name = "dense"

    def __init__(self, count: CountTokens, encoder: SharedEncoder) -> None:
        self._count = count
        self._encoder = encoder
        self._turns: dict[str, Sequence[Turn]] = {}
        self._vectors: dict[str, Vectors] = {}

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Embed the turns; a blank one gets a vector of zeros."""
        zero = np.zeros(self._encoder.profile.dimensions, dtype=np.float32)
        rows = [self._encoder.turn(t.text) if t.text.strip() else zero for t in turns]
        self._turns[namespace] = turns
        self._vectors[namespace] = np.stack(rows)

    def rank(self, namespace: str, text: str) -> list[Turn]:
        """Return all turns, nearest first; ties by place."""
        query = self._encoder.embed([text], input_type="query")[0]
        scores = np.einsum("ij,j->i", self._vectors[namespace], query)
        order = np.lexsort((np.arange(len(scores)), -scores))
        return [self._turns[namespace][row] for row in order]

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Pack the nearest turns."""
        order = {turn.turn_id: place for place, turn in enumerate(self._turns[namespace])}
        ranking = self.rank(namespace, query.text)
        return pack_greedily(ranking, order, budget_tokens, self._count)

    def close(self) -> None:
        """Nothing to release."""
