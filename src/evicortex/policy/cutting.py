"""How much of a turn to show when the budget does not hold everything.

What is ranked high is shown whole; the more of the budget is taken by what ranks above, the fewer
pieces of a turn are shown (measured: ranks alone do not tell where to begin, the share of the
budget does). Code, tables and lists are shown whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from evicortex.policy.pieces import (
    PackQuery,
    Piece,
    PieceScorer,
    PiecesOf,
    PieceWeights,
    pieces,
    pieces_within,
)
from evicortex.policy.rendering import CUT
from evicortex.types import Span


@dataclass(frozen=True, slots=True)
class CuttingPolicy:
    """How much of a turn is shown. Shares are of the budget, sizes in tokens.

    Turns are whole until those ranked above fill ``whole_share``, then their best two pieces up
    to ``two_share``, then the best one. A turn of at most ``never_cut`` tokens is shown whole or
    not at all.
    A turn of more than ``long_turn`` tokens gets its best pieces, and at most ``first_share`` of
    the budget if it is ranked first, else ``later_share``, but never less than ``long_turn``.

    Measured on development conversations (decision 0014): half of the budget is a little better to
    begin at than 35 %; two pieces, then one, are as good as a choice by the scores' distribution. A
    long turn that is capped although it would fit loses facts, so by default the caps are the
    whole budget: it is cut only when it does not fit.
    """

    whole_share: float = 0.5
    two_share: float = 0.75
    never_cut: int = 0
    long_turn: int = 128
    first_share: float = 1.0
    later_share: float = 1.0
    weights: PieceWeights = field(default_factory=PieceWeights)


_WHOLE_CHARACTERS: Final = 20_000
"""Of a longer text only the unit in question is cut, and its pieces are kept for the pack alone."""
CUT_CHARACTERS: Final = 2_000_000
"""Units of longer texts are cut until one pack has cut so many characters; a million take .4 s."""
_MISSES: Final = 64
"""When something is chosen and so many pieces in a row did not fit, no more are counted."""


class Cutter:
    """Offers for each unit (a turn, or a passage of one) what to show of it.

    ``tokens`` counts a text, ``budget`` is in tokens, ``pieces_of`` returns the pieces of a text.
    One cutter serves one pack, and remembers the pieces of long texts for it.
    """

    def __init__(
        self,
        policy: CuttingPolicy,
        query: PackQuery,
        budget: int,
        tokens: Callable[[str], int],
        pieces_of: PiecesOf = pieces,
    ) -> None:
        self._policy = policy
        self._scorer = PieceScorer(query, policy.weights)
        self._budget = budget
        self._tokens = tokens
        self._pieces_of = pieces_of
        self._long: dict[tuple[str, Span], tuple[Piece, ...]] = {}
        self._characters_left = CUT_CHARACTERS

    def can_cut(self, content: str, unit: Span) -> bool:
        """Return whether ``unit`` is still to be cut in this pack; most always are."""
        if len(content) <= _WHOLE_CHARACTERS or (content, unit) in self._long:
            return True
        return unit.end - unit.start <= self._characters_left

    def forms(
        self,
        content: str,
        unit: Span,
        *,
        similarities: Mapping[Span, float],
        used: int,
        room: int,
        first: bool,
    ) -> Iterator[tuple[Span, ...]]:
        """Yield what to show of ``unit``: first what is best, then what is shorter.

        ``similarities`` are those of its pieces to the query, where they are known. ``used``
        tokens of the budget are taken by what ranks above, about ``room`` tokens are left;
        ``first`` says that nothing ranks above. Each form is ranges of ``content`` in order;
        there may be none.
        """
        never_cut = self._policy.never_cut
        if never_cut and self._tokens(content[unit.start : unit.end]) <= never_cut:
            yield (unit,)
            return
        limit = self._pieces_allowed(used)
        cap = self._cap(first=first)
        if limit is None and self._within(cap, content, unit):
            yield (unit,)
        parts = self._parts(content, unit)
        if limit is not None and len(parts) <= limit and self._within(cap, content, unit):
            yield (unit,)
        ranked = self._ranked(parts, similarities)
        chosen = self._fitting(content, ranked, limit, min(cap, room))
        if not chosen:
            chosen = self._fitting(content, ranked, 1, min(self._cap(first=True), room))
        count = len(chosen)
        while count:
            yield tuple(sorted(chosen[:count]))
            count = count - 1 if count < 4 else count * 3 // 4

    def _within(self, cap: float, content: str, unit: Span) -> bool:
        """Return whether ``unit`` is within ``cap``; the budget itself is the filling's concern."""
        return cap >= self._budget or self._tokens(content[unit.start : unit.end]) <= cap

    def _pieces_allowed(self, used: int) -> int | None:
        policy = self._policy
        if used < policy.whole_share * self._budget:
            return None
        return 2 if used < policy.two_share * self._budget else 1

    def _cap(self, *, first: bool) -> float:
        policy = self._policy
        share = policy.first_share if first else policy.later_share
        return max(policy.long_turn, share * self._budget)

    def _parts(self, content: str, unit: Span) -> tuple[Piece, ...]:
        if len(content) <= _WHOLE_CHARACTERS:
            return pieces_within(content, self._pieces_of(content), unit)
        known = self._long.get((content, unit))
        if known is None:
            known = self._long[content, unit] = _pieces_alone(content, unit)
            self._characters_left -= unit.end - unit.start
        return known

    def _ranked(self, parts: Sequence[Piece], similarities: Mapping[Span, float]) -> list[Span]:
        """Return the spans of ``parts``, best first.

        One whose similarity is unknown, although others' are not, is taken to be as similar as
        those are on average: its words decide.
        """
        unknown = fmean(similarities.values()) if similarities else 0.0
        scored = [
            (-self._scorer.score(part, similarities.get(part.span, unknown)), part.span)
            for part in parts
        ]
        return [span for _, span in sorted(scored)]

    def _fitting(
        self, content: str, ranked: Sequence[Span], limit: int | None, cap: float
    ) -> list[Span]:
        """Return the best pieces, at most ``limit`` of them, that have ``cap`` tokens together."""
        chosen: list[Span] = []
        taken = misses = 0
        mark = self._tokens(CUT)
        for part in ranked:
            size = self._tokens(content[part.start : part.end])
            if taken + size <= cap:
                chosen.append(part)
                taken += size + mark
                misses = 0
            else:
                misses += 1
            if len(chosen) == limit or (chosen and misses > _MISSES):
                break
        return chosen


def _pieces_alone(content: str, unit: Span) -> tuple[Piece, ...]:
    """Return the pieces of ``unit`` of ``content`` without a look at what is around it."""
    return tuple(
        piece._replace(span=Span(piece.span.start + unit.start, piece.span.end + unit.start))
        for piece in pieces(content[unit.start : unit.end])
    )
