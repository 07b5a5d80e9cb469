"""From a pack and a label to the values of one record. The only place where the two meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.datasets.base import Label
from benchmarks.metrics import longmemeval
from benchmarks.metrics.retrieval import strict_evidence
from benchmarks.systems.base import Packed


def gold_ranks(label: Label, packed: Packed) -> tuple[int | None, ...]:
    """Return the rank of each gold turn among what was packed, from 1; None when it is not."""
    places = {turn: rank for rank, turn in enumerate(packed.packed, 1)}
    return tuple(places.get(turn) for turn in label.gold)


def groups(label: Label) -> tuple[str, ...]:
    """Return the denominators that a question belongs to."""
    if label.released is None:
        return ()
    counted = longmemeval.in_released_denominator(label.query_id, label.released)
    return ("released",) if counted else ()


def score(
    label: Label, packed: Packed, texts: Mapping[str, str], cutoffs: Sequence[int]
) -> dict[str, float]:
    """Return the values that ranks alone do not give; ``results.value`` derives the others.

    ``after packing`` values rank what was packed. ``before packing`` repeats the released
    measures over the whole ranking, in columns that say so.
    """
    if not label.counted:
        return {}
    order = packed.packed
    values = {"strict": strict_evidence(label.gold, packed.shown, texts, label.answer)}
    if label.released is not None:
        after = longmemeval.columns(label.released, order, cutoffs)
        before = longmemeval.columns(label.released, packed.ranking, cutoffs)
        values |= {f"after packing/{name}": value for name, value in after.items()}
        values |= {f"before packing/{name}": value for name, value in before.items()}
    return values
