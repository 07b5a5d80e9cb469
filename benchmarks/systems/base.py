"""The contract of a system under comparison, and the packing that every comparator shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from benchmarks.datasets.base import Query, Turn

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Packed:
    """What a reader would see. ``shown`` maps turn ids to the text that the pack shows of them."""

    text: str
    token_count: int
    shown: Mapping[str, str]
    ranking: tuple[str, ...] = ()
    costs: Mapping[str, float] = field(default_factory=dict)


class System(Protocol):
    """A memory: it takes turns, then answers queries within a hard budget. It never sees labels."""

    @property
    def name(self) -> str:
        """The name in records and tables."""
        ...

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Store the turns of one conversation."""
        ...

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        """Return a pack of at most ``budget_tokens`` tokens."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def day(at: datetime | None) -> str:
    """Return ``8 May 2023``, or ``undated``."""
    return "undated" if at is None else f"{at.day} {at:%B %Y}"


def serialize(turns: Sequence[Turn]) -> str:
    """Render turns as EviCortex renders them: fenced, dated once a session, each one cited."""
    if not turns:
        return ""
    lines = ["<memory>"]
    opened: str | None = None
    for number, turn in enumerate(turns, 1):
        if turn.session != opened:
            lines.append(f"## {day(turn.occurred_at)}")
            opened = turn.session
        text = "\n  ".join(turn.text.splitlines())
        lines.append(f"[E{number}] {turn.actor}: {text}")
    lines.append("</memory>")
    return "\n".join(lines)


def pack_greedily(
    ranking: Sequence[Turn], order: Mapping[str, int], budget: int, count: CountTokens
) -> Packed:
    """Pack in rank order what still fits; the count of the whole text decides, turn by turn.

    ``order`` gives the turns' place in the conversation, in which they are shown.
    """
    chosen: list[Turn] = []
    text, used = "", 0
    upper = 0
    for turn in ranking:
        line = count(f"[E999] {turn.actor}: {turn.text}")
        if upper and upper - 12 + line > budget:
            continue
        trial = sorted([*chosen, turn], key=lambda t: order[t.turn_id])
        rendered = serialize(trial)
        tokens = count(rendered)
        if tokens <= budget:
            chosen, text, used, upper = trial, rendered, tokens, tokens
    return Packed(
        text,
        used,
        {turn.turn_id: turn.text for turn in chosen},
        tuple(turn.turn_id for turn in ranking),
    )
