"""Dense retrieval over single turns, and the encoder that every system shares."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, pack_greedily, visible
from benchmarks.systems.costs import with_costs
from benchmarks.systems.lexical_index import best_first

BATCH = 64
Vectors = npt.NDArray[np.float32]


class SharedEncoder:
    """One encoder with one memory of vectors, so that all systems get the same ones.

    ``embedded`` counts the texts that were really encoded, ``calls`` the batches they came in,
    ``requested`` the vectors that were asked for, remembered or not: what a system would have
    cost alone.
    """

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._memory: dict[tuple[str, str], Vectors] = {}
        self._stored: dict[str, Vectors] = {}
        self.embedded = 0
        self.requested = 0
        self.calls = 0

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
        self.requested += len(texts)
        missing = [t for t in dict.fromkeys(texts) if not self._remembered(input_type, t)]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors = self._encoder.embed(batch, input_type=input_type)
            self._memory.update(
                ((input_type, text), vector) for text, vector in zip(batch, vectors, strict=True)
            )
            self.embedded += len(batch)
            self.calls += 1
        if not texts:
            return np.empty((0, self.profile.dimensions), dtype=np.float32)
        rows: Vectors = np.stack([self._memory[input_type, text] for text in texts])
        return rows

    def save(self, path: Path) -> None:
        """Write the vectors by digest of role and text; no text is written."""
        keys = [_digest(role, text) for role, text in self._memory] + list(self._stored)
        rows = [*self._memory.values(), *self._stored.values()]
        path.parent.mkdir(parents=True, exist_ok=True)
        vectors = np.stack(rows) if rows else np.empty((0, self.profile.dimensions), np.float32)
        part = path.with_suffix(".part.npz")
        np.savez(part, identity=self.identity, keys=np.array(keys, dtype="U64"), vectors=vectors)
        part.replace(path)

    def load(self, path: Path) -> None:
        """Read vectors that this very encoder made; those of another are left alone."""
        if not path.is_file():
            return
        with np.load(path) as found:
            if str(found["identity"]) == self.identity:
                self._stored = dict(zip(found["keys"].tolist(), found["vectors"], strict=True))

    def keep(self, texts: Collection[str]) -> None:
        """Forget all vectors but those of these texts, so that memory does not grow."""
        kept = {key: row for key, row in self._memory.items() if key[1] in texts}
        self._memory = kept

    def _remembered(self, role: str, text: str) -> bool:
        if (role, text) in self._memory:
            return True
        vector = self._stored.pop(_digest(role, text), None) if self._stored else None
        if vector is not None:
            self._memory[role, text] = vector
        return vector is not None

    def turns(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, as :meth:`turn` does; zeros for a blank one."""
        zero = np.zeros(self.profile.dimensions, dtype=np.float32)
        short = [t for t in texts if t.strip() and len(self.windows(t)) == 1]
        self.embed(sorted(set(short), key=len))
        self.requested -= len(set(short))
        rows = [self.turn(text) if text.strip() else zero for text in texts]
        return np.stack(rows) if rows else np.empty((0, len(zero)), dtype=np.float32)

    def turn(self, text: str) -> Vectors:
        """Return one vector of a turn: the mean of its windows' when it is over-long."""
        windows = self.windows(text)
        if len(windows) <= 1:
            whole: Vectors = self.embed([text])[0]
            return whole
        mean = self.embed([text[start:end] for start, end in windows]).mean(axis=0)
        unit: Vectors = mean / np.linalg.norm(mean)
        return unit


def _digest(role: str, text: str) -> str:
    return hashlib.sha256(f"{role}\0{text}".encode()).hexdigest()


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
        self._turns[namespace] = turns
        self._vectors[namespace] = self._encoder.turns([turn.text for turn in turns])

    def rank(self, namespace: str, text: str, as_of: datetime | None = None) -> list[Turn]:
        """Return the turns that had happened, nearest first; ties by place."""
        turns = self._turns[namespace]
        query = self._encoder.embed([text], input_type="query")[0]
        scores = np.einsum("ij,j->i", self._vectors[namespace], query).astype(np.float64)
        return [turns[row] for row in best_first(scores, visible(turns, as_of))]

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Pack the nearest turns."""
        order = {turn.turn_id: place for place, turn in enumerate(self._turns[namespace])}
        ranking = self.rank(namespace, query.text, query.as_of)
        packed = pack_greedily(ranking, order, budget_tokens, self._count)
        return with_costs(packed, scored=len(ranking), embedded=1)

    def close(self) -> None:
        """Nothing to release."""
