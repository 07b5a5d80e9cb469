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
from benchmarks.systems.vector_store import Item, Kept, VectorStore
from evicortex import Span

BATCH = 64
_SPANS = "spans "
Vectors = npt.NDArray[np.float32]


class SharedEncoder:
    """One encoder with one memory of vectors, so that all systems get the same ones.

    ``embedded`` counts the texts that were really encoded, ``calls`` the batches they came in and
    ``spent_s`` their CPU seconds. ``requested`` and ``charged_s`` are what was asked for,
    remembered or not: what a system would have cost alone. ``embed_spans`` is there when the
    encoder has it.
    """

    def __init__(self, encoder: Any, store: VectorStore | None = None) -> None:
        self._encoder = encoder
        self._store = store
        self._memory: dict[Item, Kept] = {}
        self.embedded = 0
        self.requested = 0
        self.calls = 0
        self.spent_s = 0.0
        self.charged_s = 0.0
        if hasattr(encoder, "embed_spans"):
            self.embed_spans = self._embed_spans

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
        if not texts:
            return np.empty((0, self.profile.dimensions), dtype=np.float32)
        items = [(input_type, text) for text in texts]
        self._prepare(items)
        rows: Vectors = np.stack([self._charged(item) for item in items])
        return rows

    def _embed_spans(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Vectors, list[Vectors]]:
        """Return vectors of the texts and of their spans, as the encoder makes them in one pass."""
        items = [
            (_SPANS + ",".join(f"{start}-{end}" for start, end in wanted), text)
            for text, wanted in zip(texts, spans, strict=True)
        ]
        self._prepare(items)
        rows = [self._charged(item).reshape(-1, self.profile.dimensions) for item in items]
        return np.stack([row[0] for row in rows]), [row[1:] for row in rows]

    def _charged(self, item: Item) -> Vectors:
        kept = self._memory[item]
        self.requested += 1
        self.charged_s += kept.cpu_s
        return kept.vector

    def _prepare(self, items: Sequence[Item]) -> None:
        missing = [item for item in dict.fromkeys(items) if item not in self._memory]
        if missing and self._store is not None:
            self._memory.update(self._store.get(missing))
            missing = [item for item in missing if item not in self._memory]
        for start in range(0, len(missing), BATCH):
            made = self._encoded(missing[start : start + BATCH])
            self._memory.update(made)
            if self._store is not None:
                self._store.put(made)

    def _encoded(self, batch: Sequence[Item]) -> dict[Item, Kept]:
        """Encode items of one kind; a batch's CPU time is shared out by length."""
        started = time.process_time()
        vectors = self._vectors(batch)
        spent = time.process_time() - started
        self.spent_s += spent
        self.embedded += len(batch)
        self.calls += 1
        total = sum(len(text) for _, text in batch) or 1
        return {
            item: Kept(vector, spent * len(item[1]) / total)
            for item, vector in zip(batch, vectors, strict=True)
        }

    def _vectors(self, batch: Sequence[Item]) -> Sequence[Vectors]:
        texts = [text for _, text in batch]
        if not batch[0][0].startswith(_SPANS):
            found: Vectors = self._encoder.embed(texts, input_type=batch[0][0])
            return list(found)
        spans = [_read_spans(role) for role, _ in batch]
        whole, pieces = self._encoder.embed_spans(texts, spans)
        return [
            np.concatenate([row[None], piece]).ravel()
            for row, piece in zip(whole, pieces, strict=True)
        ]

    def keep(self, texts: Collection[str]) -> None:
        """Forget all vectors but those of these texts, so that memory does not grow."""
        self._memory = {key: row for key, row in self._memory.items() if key[1] in texts}

    def turns(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, as :meth:`turn` does; zeros for a blank one."""
        zero = np.zeros(self.profile.dimensions, dtype=np.float32)
        short = {text for text in texts if text.strip() and len(self.windows(text)) == 1}
        self._prepare([("document", t) for t in sorted(short, key=lambda t: (len(t), t))])
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


def _read_spans(role: str) -> list[Span]:
    pairs = [pair.split("-") for pair in role.removeprefix(_SPANS).split(",") if pair]
    return [Span(int(start), int(end)) for start, end in pairs]


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
