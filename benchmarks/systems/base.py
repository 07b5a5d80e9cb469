"""The contract of a system under comparison, and the packing that every comparator shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.base import Label, Query, Turn

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Packed:
    """What a reader would see. ``shown`` maps turn ids to the text that the pack shows of them."""

    text: str
    token_count: int
    shown: Mapping[str, str]
    ranking: tuple[str, ...] = ()
    """Every candidate, best first, whether packed or not."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Compute: ``scored`` candidates, ``embedded`` texts, ``rerank_pairs``."""
    packed: tuple[str, ...] = ()
    """The packed turns, best first."""
    refused: bool = False
    """Whether the system says that the question is not supported."""
    probability: float | None = None
    """The calibrated probability of support, where the system has one."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Numbers that may tell whether the question is supported: what calibration is fitted on."""


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


@runtime_checkable
class LabelledControl(Protocol):
    """A control, no memory: the only thing in the lab that is shown a label, and says so."""

    @property
    def name(self) -> str:
        """The name in records and tables."""
        ...

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Store the turns of one conversation."""
        ...

    def ask_with_label(
        self, namespace: str, query: Query, label: Label, budget_tokens: int
    ) -> Packed:
        """Return a pack made with the gold."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def day(at: datetime | None) -> str:
    """Return ``8 May 2023``, or ``undated``."""
    return "undated" if at is None else f"{at.day} {at:%B %Y}"


def said(turn: Turn, text: str) -> str:
    """Return the text after its speaker's name, where there is one."""
    return f"{turn.actor}: {text}" if turn.actor else text


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
        lines.append(f"[E{number}] {said(turn, text)}")
    lines.append("</memory>")
    return "\n".join(lines)


Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A turn to pack, whole or as one range of its text."""

    turn: Turn
    span: Span | None = None


def visible(turns: Sequence[Turn], as_of: datetime | None) -> npt.NDArray[np.bool_]:
    """Return which turns had happened by then; undated turns always had."""
    return np.array(
        [as_of is None or t.occurred_at is None or t.occurred_at <= as_of for t in turns],
        dtype=bool,
    )


def pack_greedily(
    ranking: Sequence[Turn], order: Mapping[str, int], budget: int, count: CountTokens
) -> Packed:
    """Pack whole turns in rank order while they fit; see :func:`pack_pieces`."""
    return pack_pieces([Piece(turn) for turn in ranking], order, budget, count)


def pack_pieces(
    ranking: Sequence[Piece], order: Mapping[str, int], budget: int, count: CountTokens
) -> Packed:
    """Pack in rank order what still fits; what is too large is skipped.

    ``order`` gives the turns' place in the conversation, in which they are shown. Costs are added
    up line by line, which is exact for tokenizers that never cross a line; the count of the whole
    text decides in the end, and the last ones packed go when it is over.
    """
    packing = _Packing(order, budget, count)
    for piece in ranking:
        packing.offer(piece)
    return packing.close(tuple(dict.fromkeys(piece.turn.turn_id for piece in ranking)))


class _Packing:
    def __init__(self, order: Mapping[str, int], budget: int, count: CountTokens) -> None:
        self._order = order
        self._budget = budget
        self._count = count
        self._turns: dict[str, Turn] = {}
        self._spans: dict[str, tuple[Span, ...] | None] = {}
        self._lines: dict[str, int] = {}
        self._headers: set[tuple[str, str]] = set()
        self._accepted: list[tuple[str, tuple[Span, ...] | None]] = []
        self._used = count("<memory>\n</memory>")

    def offer(self, piece: Piece) -> None:
        """Take the piece if it fits."""
        turn = piece.turn
        known = turn.turn_id in self._turns
        held = self._spans.get(turn.turn_id)
        if known and held is None:
            return
        spans = None if piece.span is None else merged((*(held or ()), piece.span))
        line = self._count(f"{said(turn, shown_text(turn, spans))}\n")
        cost = line - self._lines.get(turn.turn_id, 0)
        header = (turn.session, day(turn.occurred_at))
        if not known:
            cost += self._count(f"[E{len(self._turns) + 1}] ")
        if header not in self._headers:
            cost += self._count(f"## {header[1]}\n")
        if self._used + cost > self._budget:
            return
        self._used += cost
        self._headers.add(header)
        self._turns[turn.turn_id] = turn
        self._accepted.append((turn.turn_id, held if known else ()))
        self._spans[turn.turn_id] = spans
        self._lines[turn.turn_id] = line

    def close(self, ranking: tuple[str, ...]) -> Packed:
        """Render what was taken; what breaks the budget after all is given up, the last first."""
        while True:
            turns = sorted(self._turns.values(), key=lambda turn: self._order[turn.turn_id])
            texts = {t.turn_id: shown_text(t, self._spans[t.turn_id]) for t in turns}
            text = serialize([replace(turn, text=texts[turn.turn_id]) for turn in turns])
            tokens = self._count(text)
            if tokens <= self._budget:
                packed = tuple(dict.fromkeys(turn for turn, _ in self._accepted))
                return Packed(text, tokens, texts, ranking, packed=packed)
            turn_id, before = self._accepted.pop()
            self._spans[turn_id] = before
            if before == ():
                del self._turns[turn_id]


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans in order, with those that touch or overlap made one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def shown_text(turn: Turn, spans: tuple[Span, ...] | None) -> str:
    """Return the turn's text, or its ranges with every gap marked."""
    if spans is None:
        return turn.text
    text = " … ".join(turn.text[start:end].strip() for start, end in spans)
    head = "… " if spans and turn.text[: spans[0][0]].strip() else ""
    tail = " …" if spans and turn.text[spans[-1][1] :].strip() else ""
    return f"{head}{text}{tail}"
