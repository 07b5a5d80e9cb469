"""What reached the pack. Every measure is taken after packing, on what a reader would see."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

_WORD = re.compile(r"\w+")


def all_evidence(gold: Collection[str], packed: Collection[str]) -> float:
    """1 when every gold turn is in the pack, else 0; 1 on empty gold."""
    return float(set(gold) <= set(packed))


def any_evidence(gold: Collection[str], packed: Collection[str]) -> float:
    """1 when at least one gold turn is in the pack, else 0."""
    return float(bool(set(gold) & set(packed)))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def strict_evidence(
    gold: Collection[str], shown: Mapping[str, str], full: Mapping[str, str], answer: str | None
) -> float:
    """1 when every gold turn is packed and no word of the answer was cut out of one.

    ``shown`` maps packed turn ids to the text the pack shows of them, ``full`` maps gold turn
    ids to their whole text: a word of the answer that the turn contains must still be shown.
    """
    if not set(gold) <= set(shown):
        return 0.0
    wanted = _words(answer or "")
    for turn in gold:
        if (wanted & _words(full[turn])) - _words(shown[turn]):
            return 0.0
    return 1.0


def recall_at(gold: Collection[str], ranking: Sequence[str], k: int) -> float:
    """Return the share of gold turns among the first ``k``; 0 on empty gold."""
    wanted = set(gold)
    return len(wanted & set(ranking[:k])) / len(wanted) if wanted else 0.0


def ndcg_at(gold: Collection[str], ranking: Sequence[str], k: int) -> float:
    """Return binary nDCG with discount log2(rank + 1) (Järvelin and Kekäläinen, 2002)."""
    wanted = set(gold)
    gain = sum(1 / math.log2(i + 1) for i, turn in enumerate(ranking[:k], 1) if turn in wanted)
    ideal = sum(1 / math.log2(i + 1) for i in range(1, min(len(wanted), k) + 1))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(gold: Collection[str], ranking: Sequence[str]) -> float:
    """Return 1 / rank of the first gold turn; 0 when none is ranked."""
    wanted = set(gold)
    return next((1 / i for i, turn in enumerate(ranking, 1) if turn in wanted), 0.0)


def average_precision(gold: Collection[str], ranking: Sequence[str]) -> float:
    """Return the mean over gold turns of the precision at their ranks; 0 when none is ranked."""
    wanted = set(gold)
    hits, total = 0, 0.0
    for i, turn in enumerate(ranking, 1):
        if turn in wanted:
            hits += 1
            total += hits / i
    return total / len(wanted) if wanted else 0.0
