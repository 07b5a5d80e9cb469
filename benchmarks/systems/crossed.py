"""Paired ablations that cross representation and retriever.

Representation is what is stored and ranked (single turns, or chunks); the retriever is how it is
ranked and chosen. If one of the two explains a difference, the crossed systems show which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Query, Turn
from benchmarks.systems.base import CountTokens, Packed, Span, merged, shown_text
from benchmarks.systems.chunks import Chunk, RecordLog, small_chunks
from benchmarks.systems.dense import SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem, as_packed
from benchmarks.systems.hybrid import HybridChunks, HybridConfig

WHOLE_TURN = 1_000_000


def turns_under_hybrid(
    count: CountTokens, encoder: SharedEncoder, config: HybridConfig
) -> HybridChunks:
    """Return EviCortex's representation, single whole turns, under the comparator's retriever."""
    turns = replace(config, small_tokens=WHOLE_TURN, parent_tokens=WHOLE_TURN, large=0.0)
    return HybridChunks(count, encoder, turns, name="turns under the hybrid's retriever")


class ChunksUnderEviCortex:
    """The comparator's representation, its chunks, under EviCortex's retriever and packing.

    Each small chunk is remembered as an evidence of its own. What a pack shows of a chunk counts
    for the turn that it was cut from.
    """

    name = "chunks under evicortex's retriever"

    def __init__(
        self, path: Path, count: CountTokens, config: HybridConfig, **options: Any
    ) -> None:
        self._count = count
        self._config = config
        self._chunks: dict[str, dict[str, Chunk]] = {}
        self._inner = EviCortexSystem(path, **options)

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Cut the turns and remember the pieces."""
        log = RecordLog()
        log.append(turns)
        chunks = small_chunks(log.records, self._config.small_tokens, self._count)
        named = {f"chunk-{number}": chunk for number, chunk in enumerate(chunks)}
        self._chunks[namespace] = named
        pieces: list[Turn] = []
        for key, chunk in named.items():
            (piece,) = chunk.pieces
            start, end = piece.span or (0, len(piece.turn.text))
            pieces.append(replace(piece.turn, turn_id=key, text=piece.turn.text[start:end]))
        self._inner.ingest(namespace, pieces)

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Recall chunks, and report the turns that they show."""
        pack = self._inner.cortex.recall(
            namespace,
            query.text,
            budget_tokens=budget_tokens,
            as_of=query.as_of,
            query_actor=query.query_actor,
        )
        spans: dict[str, list[Span]] = {}
        turns: dict[str, Turn] = {}
        for item in sorted(pack.items, key=lambda item: -item.score):
            (piece,) = self._chunks[namespace][str(item.external_id)].pieces
            start = piece.span[0] if piece.span else 0
            turns[piece.turn.turn_id] = piece.turn
            shown = spans.setdefault(piece.turn.turn_id, [])
            shown += [(start + a, start + b) for a, b in item.spans]
        texts = {turn: shown_text(turns[turn], merged(found)) for turn, found in spans.items()}
        packed = as_packed(pack, texts, tuple(turns))
        return replace(packed, ranking=tuple(turns))

    def close(self) -> None:
        """Close the ledger."""
        self._inner.close()
