"""What an answer cost, in the same units for every system."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.systems.base import Packed


def with_costs(
    packed: Packed, *, scored: int = 0, embedded: int = 0, rerank_pairs: int = 0
) -> Packed:
    """Return the pack with its compute: candidates scored, texts embedded, pairs reranked."""
    costs = {"scored": scored, "embedded": embedded, "rerank_pairs": rerank_pairs}
    return replace(packed, costs={**packed.costs, **costs})
