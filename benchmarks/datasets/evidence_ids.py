"""Dialogue ids as people typed them: several in one string, ranges, stray colons, zero padding."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.datasets.base import DatasetError, Repair, repairs_digest

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


@dataclass(frozen=True, slots=True)
class Pin:
    """One malformed label that is known. ``None`` leaves a field open.

    A pin with an open field answers for one label in a conversation that this project does not
    look at; a pin that names everything answers for exactly that label.
    """

    reason: str
    raw: str | None = None
    conversation_id: str | None = None
    index: int | None = None
    resolved: tuple[str, ...] | None = None
    elsewhere: frozenset[str] = frozenset()
    """Conversations whose malformed labels are all named, so that an open pin says nothing of them."""

    def covers(self, repair: Repair) -> bool:
        """Whether this pin is about that label."""
        return repair.conversation_id not in self.elsewhere and all(
            mine is None or mine == theirs
            for mine, theirs in (
                (self.reason, repair.reason),
                (self.raw, repair.raw),
                (self.conversation_id, repair.conversation_id),
                (self.index, repair.index),
                (self.resolved, repair.resolved),
            )
        )


def check_pinned(
    repairs: Sequence[Repair],
    pins: Sequence[Pin],
    *,
    where: str,
    exact: bool = False,
    accepted: str | None = None,
) -> None:
    """Refuse malformed labels that no pin covers; each pin answers for one label.

    Args:
        repairs: What was malformed in the file.
        pins: What is known to be malformed, the narrowest first.
        where: The file, for the message.
        exact: Whether every pin must have answered, as for the official file.
        accepted: The digest of a repair log that the caller has read and accepts.

    Raises:
        DatasetError: A malformed label is not pinned; the message has the digest to accept.
    """
    digest = repairs_digest(repairs)
    if accepted is not None:
        if accepted != digest:
            raise DatasetError(f"{where}: its repair log is {digest}, but {accepted} was accepted")
        return
    left = list(pins)
    for repair in repairs:
        pin = next((pin for pin in left if pin.covers(repair)), None)
        if pin is None:
            raise DatasetError(
                f"{where}: {repair.conversation_id}, question {repair.index}: evidence "
                f"{repair.raw!r} is malformed ({repair.reason}) and not in the pinned list; "
                f"read the log and pass its digest to accept it: {digest}"
            )
        left.remove(pin)
    if exact and left:
        raise DatasetError(f"{where}: {len(left)} labels known to be malformed are not there")
