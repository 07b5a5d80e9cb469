"""What reached the pack. Every measure is taken after packing, on what a reader would see."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

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
