"""Dialogue ids as people typed them: several in one string, ranges, stray colons, zero padding."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from benchmarks.datasets.base import Repair

_WELL_FORMED = re.compile(r"D[1-9]\d*:[1-9]\d*")
_RANGE = re.compile(r"D\s*:?\s*(\d+)\s*[:;]\s*(\d+)\s*-\s*D?\s*:?\s*(\d+)\s*[:;]\s*(\d+)")
_LOOSE = re.compile(r"D?\s*:?\s*(\d+)\s*[:;]\s*(\d+)")


def _candidates(raw: str) -> list[str]:
    found: list[str] = []
    rest = raw
    for match in _RANGE.finditer(raw):
        first_session, first, last_session, last = (int(part) for part in match.groups())
        if first_session == last_session and first <= last:
            found += [f"D{first_session}:{turn}" for turn in range(first, last + 1)]
            rest = rest.replace(match.group(), " ")
    found += [f"D{int(a)}:{int(b)}" for a, b in _LOOSE.findall(rest)]
    return found


def resolve(
    raw_ids: Iterable[object], known: Collection[str], *, conversation_id: str, index: int
) -> tuple[tuple[str, ...], list[Repair]]:
    """Return the gold ids that exist, in order and without doubles, and what had to be repaired."""
    gold: dict[str, None] = {}
    repairs: list[Repair] = []
    for item in raw_ids:
        raw = str(item)
        if _WELL_FORMED.fullmatch(raw) and raw in known:
            if raw in gold:
                repairs.append(Repair(conversation_id, index, raw, (raw,), "duplicate"))
            gold[raw] = None
            continue
        candidates = _candidates(raw)
        resolved = tuple(c for c in candidates if c in known)
        if not candidates:
            reason = "unparseable"
        elif len(resolved) < len(candidates):
            reason = "no such turn"
        else:
            reason = "malformed"
        repairs.append(Repair(conversation_id, index, raw, resolved, reason))
        gold.update(dict.fromkeys(resolved))
    return tuple(gold), repairs
