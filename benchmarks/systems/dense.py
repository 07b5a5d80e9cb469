"""Dense retrieval over single turns, and the encoder that every system shares."""

from __future__ import annotations

import importlib
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, pack_greedily, visible
from benchmarks.systems.costs import with_costs
from benchmarks.systems.lexical_index import best_first
from benchmarks.systems.vector_store import Kept, VectorStore

BATCH = 64
Vectors = npt.NDArray[np.float32]


class SharedEncoder:
    """One encoder with one memory of vectors, so that all systems get the same ones.

    ``embedded`` counts the texts that were really encoded, ``calls`` the batches they came in and
    ``spent_s`` their CPU seconds. ``requested`` and ``charged_s`` are what was asked for,
    remembered or not: what a system would have cost alone.
    """

    def __init__(self, encoder: Any, store: VectorStore | None = None) -> None:
        self._encoder = encoder
        self._store = store
        self._memory: dict[tuple[str, str], Kept] = {}
        self.embedded = 0
        self.requested = 0
        self.calls = 0
        self.spent_s = 0.0
        self.charged_s = 0.0

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

    def keep_in(self, path: Path) -> None:
        """Keep vectors in this file from now on, and take from it what this encoder made."""
        self.close()
        self._store = VectorStore(path, self.identity)

    def close(self) -> None:
        """Close the file of vectors, if there is one."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def windows(self, text: str) -> Any:
        """Cut an over-long text as the encoder says."""
        return self._encoder.windows(text)

    def embed(self, texts: Sequence[str], *, input_type: str = "document") -> Vectors:
        """Return vectors (len(texts), dimensions), computed once per text and role."""
        self._prepare(input_type, texts)
        if not texts:
            return np.empty((0, self.profile.dimensions), dtype=np.float32)
        kept = [self._memory[input_type, text] for text in texts]
        self.requested += len(kept)
        self.charged_s += sum(each.cpu_s for each in kept)
        rows: Vectors = np.stack([each.vector for each in kept])
        return rows

    def _prepare(self, role: str, texts: Sequence[str]) -> None:
        missing = [text for text in dict.fromkeys(texts) if (role, text) not in self._memory]
        if missing and self._store is not None:
            found = self._store.get(role, missing)
            self._memory.update(((role, text), kept) for text, kept in found.items())
            missing = [text for text in missing if text not in found]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            made = self._encoded(role, batch)
            self._memory.update(((role, text), kept) for text, kept in made.items())
            if self._store is not None:
                self._store.put(role, made)

    def _encoded(self, role: str, batch: Sequence[str]) -> dict[str, Kept]:
        """Encode texts; a batch's CPU time is shared out by length."""
        started = time.process_time()
        vectors = self._encoder.embed(batch, input_type=role)
        spent = time.process_time() - started
        self.spent_s += spent
        self.embedded += len(batch)
        self.calls += 1
        total = sum(len(text) for text in batch) or 1
        return {
            text: Kept(vector, spent * len(text) / total)
            for text, vector in zip(batch, vectors, strict=True)
        }

    def keep(self, texts: Collection[str]) -> None:
        """Forget all vectors but those of these texts, so that memory does not grow."""
        self._memory = {key: row for key, row in self._memory.items() if key[1] in texts}

    def turns(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, as :meth:`turn` does; zeros for a blank one."""
        zero = np.zeros(self.profile.dimensions, dtype=np.float32)
        short = {text for text in texts if text.strip() and len(self.windows(text)) == 1}
        self._prepare("document", sorted(short, key=lambda text: (len(text), text)))
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

    def rank(
        self, namespace: str, text: str, as_of: datetime | None = None
    ) -> tuple[list[Turn], float]:
        """Return the turns that had happened, nearest first, ties by place, and the best score."""
        turns = self._turns[namespace]
        mask = visible(turns, as_of)
        query = self._encoder.embed([text], input_type="query")[0]
        scores = np.einsum("ij,j->i", self._vectors[namespace], query).astype(np.float64)
        top = float(scores[mask].max(initial=-1.0))
        return [turns[row] for row in best_first(scores, mask)], top

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Pack the nearest turns."""
        order = {turn.turn_id: place for place, turn in enumerate(self._turns[namespace])}
        ranking, top = self.rank(namespace, query.text, query.as_of)
        packed = pack_greedily(ranking, order, budget_tokens, self._count)
        costly = with_costs(packed, scored=len(ranking), embedded=1)
        return replace(costly, signals={"cosine": top})

    def close(self) -> None:
        """Nothing to release."""
