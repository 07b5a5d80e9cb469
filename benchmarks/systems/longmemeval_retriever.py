"""The released retriever setting of LongMemEval: dense, flat, keyword expansion off.

Source: ``src/retrieval/run_retrieval.py`` of xiaowu0162/LongMemEval. Documents are user turns, or
sessions as their user turns joined by spaces; a text beyond the encoder's capacity is truncated,
as there. What is read for a user turn is its round: the turn and the replies after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, Piece, pack_pieces, visible
from benchmarks.systems.costs import with_costs
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.lexical_index import best_first


@dataclass(frozen=True, slots=True)
class _Document:
    text: str
    turns: tuple[int, ...]


def _rounds(turns: Sequence[Turn]) -> list[_Document]:
    found: list[_Document] = []
    for row, turn in enumerate(turns):
        if turn.role != "user":
            continue
        end = row + 1
        while end < len(turns) and turns[end].role != "user" and turns[end].session == turn.session:
            end += 1
        found.append(_Document(turn.text, tuple(range(row, end))))
    return found


def _sessions(turns: Sequence[Turn]) -> list[_Document]:
    rows: dict[str, list[int]] = {}
    for row, turn in enumerate(turns):
        rows.setdefault(turn.session, []).append(row)
    return [
        _Document(" ".join(turns[r].text for r in found if turns[r].role == "user"), tuple(found))
        for found in rows.values()
    ]


class LongMemEvalRetriever:
    """Flat dense retrieval at one granularity."""

    def __init__(
        self, count: CountTokens, encoder: SharedEncoder, granularity: Literal["turn", "session"]
    ) -> None:
        self._count = count
        self._encoder = encoder
        self._granularity = granularity
        self._turns: dict[str, Sequence[Turn]] = {}
        self._documents: dict[str, list[_Document]] = {}
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}

    @property
    def name(self) -> str:
        """The name in records, with the granularity."""
        return f"longmemeval retriever, {self._granularity}"

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Embed the documents."""
        documents = _rounds(turns) if self._granularity == "turn" else _sessions(turns)
        self._turns[namespace] = turns
        self._documents[namespace] = documents
        self._vectors[namespace] = self._encoder.turns([self._truncated(d) for d in documents])

    def _truncated(self, document: _Document) -> str:
        if not document.text.strip():
            return ""
        start, end = self._encoder.windows(document.text)[0]
        return document.text[start:end]

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Pack the turns of the nearest documents."""
        turns, documents = self._turns[namespace], self._documents[namespace]
        seen = visible(turns, query.as_of)
        mask = np.array([bool(seen[list(d.turns)].all()) for d in documents], dtype=bool)
        vector = self._encoder.embed([query.text], input_type="query")[0]
        scores = np.einsum("ij,j->i", self._vectors[namespace], vector).astype(np.float64)
        ranking = [documents[place] for place in best_first(scores, mask)]
        pieces = [Piece(turns[row]) for document in ranking for row in document.turns]
        order = {turn.turn_id: place for place, turn in enumerate(turns)}
        packed = pack_pieces(pieces, order, budget_tokens, self._count)
        costly = with_costs(packed, scored=int(mask.sum()), embedded=1)
        return replace(costly, signals={"cosine": float(scores[mask].max(initial=-1.0))})

    def close(self) -> None:
        """Nothing to release."""
