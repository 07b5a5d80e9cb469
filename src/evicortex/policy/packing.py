"""The context compiler: ranked evidence in, cited text inside a hard token budget out.

Packing is greedy in rank order: what does not fit into what is left is passed over. While it
fills, costs are added up from the parts of which the text is made; the finished text is then
counted as a whole, and what ranks lowest goes until that count is within the budget. So the
promise holds for any counter, also for one whose counts do not add up.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from evicortex.errors import BudgetError
from evicortex.policy.candidates import PackCandidate
from evicortex.policy.cutting import CUT_CHARACTERS, Cutter, CuttingPolicy
from evicortex.policy.duplicates import without_duplicates
from evicortex.policy.filling import (
    CHARACTERS_PER_TOKEN,
    Costs,
    Filling,
    Refusal,
    TimesOf,
)
from evicortex.policy.neighbours import NeighbourPolicy, with_neighbours
from evicortex.policy.page import Page
from evicortex.policy.pieces import PackQuery, PiecesOf, pieces
from evicortex.policy.rendering import (
    CITATION_ESCAPED,
    CLOSING,
    CONTROL_ESCAPED,
    DELIMITER_ESCAPED,
    OPENING,
)
from evicortex.protocols import TokenCounter
from evicortex.types import Diagnostic, OmittedItem, PackItem

__all__ = [
    "MAX_BUDGET",
    "CuttingPolicy",
    "NeighbourPolicy",
    "NothingBecause",
    "PackCandidate",
    "PackQuery",
    "PackedText",
    "PackingPolicy",
    "TimesOf",
    "checked_budget",
    "pack",
]

MAX_BUDGET: Final = 1_000_000

NothingBecause = Literal["no_match", "filtered_out", "namespace_empty"]


@dataclass(frozen=True, slots=True)
class PackingPolicy:
    """How a pack is made.

    ``include_superseded`` shows superseded evidence, marked with what replaced it. ``cut`` shows
    the best sentences of what ranks lower, as ``cutting`` says. ``add_neighbours`` adds the
    question to a short reply and the short reply to a question, as ``neighbours`` says.
    """

    include_superseded: bool = False
    cut: bool = True
    cutting: CuttingPolicy = field(default_factory=CuttingPolicy)
    add_neighbours: bool = False
    neighbours: NeighbourPolicy = field(default_factory=NeighbourPolicy)


@dataclass(frozen=True, slots=True)
class PackedText:
    """A pack's text, the count of exactly this text, and what it shows and leaves out."""

    text: str
    token_count: int
    items: tuple[PackItem, ...]
    omitted: tuple[OmittedItem, ...]
    diagnostics: tuple[Diagnostic, ...]


def checked_budget(budget: object) -> int:
    """Return ``budget`` if it is an integer from 0 to 1,000,000.

    Raises:
        BudgetError: It is anything else; booleans are no integers here.
    """
    if type(budget) is not int or not 0 <= budget <= MAX_BUDGET:
        raise BudgetError(f"a token budget is an integer from 0 to {MAX_BUDGET:,}, not {budget!r}")
    return budget


def pack(
    candidates: Sequence[PackCandidate],
    *,
    budget: int,
    counter: TokenCounter,
    policy: PackingPolicy | None = None,
    query: PackQuery | None = None,
    nothing_because: NothingBecause = "no_match",
    times: TimesOf | None = None,
    pieces_of: PiecesOf = pieces,
) -> PackedText:
    """Pack ``candidates`` (best first) into at most ``budget`` tokens.

    ``query`` chooses the sentences where items are cut; ``nothing_because`` says why there are
    no candidates when there are none. ``times`` returns the times that an evidence names, to be
    shown after its text; ``None`` shows none. ``pieces_of`` returns the pieces of a text.

    Raises:
        BudgetError: ``budget`` is not an integer from 0 to 1,000,000.
    """
    compiler = _Compiler(checked_budget(budget), counter, policy or PackingPolicy(), times)
    wanted = compiler.choose(candidates)
    page = compiler.compile(wanted, query or PackQuery(), pieces_of)
    diagnostics = []
    if not page.entries:
        diagnostics.append(compiler.why_empty(wanted, nothing_because))
    if not counter.exact:
        details = {"counter": counter.identity}
        message = f"token counts are estimates by {counter.identity}"
        diagnostics.append(Diagnostic("token_estimate", message, details))
    diagnostics += _escapes(page)
    diagnostics += compiler.too_long()
    return PackedText(
        page.text, page.tokens, page.items(), compiler.omitted(page), tuple(diagnostics)
    )


_ROUNDS: Final = 4
"""Passes of filling, each with a limit corrected by what the one before really counted."""


class _Outcome(NamedTuple):
    """What a filling refused and what it took, by evidence, at the moment when its page was made."""

    refused: Mapping[str, Refusal]
    taken: Mapping[str, int]
    uncut: frozenset[str]

    @classmethod
    def of(cls, filling: Filling) -> _Outcome:
        """Return the outcome of ``filling`` as it is now; raising its limit changes the filling."""
        return cls(dict(filling.refused), dict(filling.taken), frozenset(filling.uncut))


class _Compiler:
    """One pack in the making."""

    def __init__(
        self, budget: int, counter: TokenCounter, policy: PackingPolicy, times: TimesOf | None
    ) -> None:
        self._budget = budget
        self._times = times
        self._counter = counter
        self._policy = policy
        self._costs = Costs(counter)
        self._order: dict[str, PackCandidate] = {}
        self._omitted: dict[str, OmittedItem] = {}
        self._passed = _Outcome({}, {}, frozenset())

    def choose(self, candidates: Sequence[PackCandidate]) -> list[PackCandidate]:
        """Return what may be shown, best first; note what is left out and why."""
        ranked = list(candidates)
        if self._policy.add_neighbours:
            ranked = with_neighbours(ranked, self._policy.neighbours)
        wanted = []
        for candidate in ranked:
            self._order.setdefault(candidate.evidence.evidence_id, candidate)
            if candidate.excluded:
                self._omit(candidate, "excluded")
            elif candidate.superseded and not self._policy.include_superseded:
                self._omit(candidate, "superseded")
            else:
                wanted.append(candidate)
        kept, duplicates = without_duplicates(wanted)
        for duplicate in duplicates:
            self._omit(duplicate.candidate, "duplicate", of=duplicate.of)
        return kept

    def _omit(
        self,
        candidate: PackCandidate,
        reason: str,
        *,
        tokens: int | None = None,
        of: str | None = None,
    ) -> None:
        evidence = candidate.evidence
        self._omitted.setdefault(
            evidence.evidence_id,
            OmittedItem(evidence.evidence_id, evidence.external_id, reason, tokens, of),
        )

    def compile(
        self, wanted: Sequence[PackCandidate], query: PackQuery, pieces_of: PiecesOf
    ) -> Page:
        """Return the fullest page within the budget that a few passes find."""
        cutter = None
        if self._policy.cut:
            cutter = Cutter(self._policy.cutting, query, self._budget, self._costs.of, pieces_of)
        limit = self._budget
        best = Page([], self._counter)
        overfull: Filling | None = None
        filling = self._pass(wanted, limit, cutter)
        rounds = 1
        while True:
            page = Page(filling.entries.values(), self._counter)
            fits = page.tokens <= self._budget
            if fits and page.tokens >= best.tokens:
                best, self._passed = page, _Outcome.of(filling)
            counted = page.tokens if page.entries else self._costs.of(f"{OPENING}\n{CLOSING}")
            corrected = self._budget + filling.used - counted
            if not fits:
                overfull, corrected = filling, min(corrected, limit - 1)
            if rounds == _ROUNDS or (fits and (corrected <= limit or not filling.refused)):
                break
            if fits:
                filling.raise_limit(corrected)
            else:
                filling = self._pass(wanted, corrected, cutter)
            limit = corrected
            rounds += 1
        if overfull is not None and not best.entries:
            best, self._passed = self._shortened(overfull), _Outcome.of(overfull)
        return best

    def _pass(self, wanted: Sequence[PackCandidate], limit: int, cutter: Cutter | None) -> Filling:
        characters = self._budget * CHARACTERS_PER_TOKEN
        filling = Filling(
            limit=limit, characters=characters, costs=self._costs, cutter=cutter, times=self._times
        )
        for candidate in wanted:
            filling.offer(candidate)
        return filling

    def _shortened(self, filling: Filling) -> Page:
        """Drop the lowest-ranked entries until the text fits: by bisection, as counts are dear."""
        entries = filling.ranked()
        fitting, page = 0, Page([], self._counter)
        too_many = len(entries)
        while too_many - fitting > 1:
            middle = (fitting + too_many) // 2
            tried = Page(entries[:middle], self._counter)
            if tried.tokens <= self._budget:
                fitting, page = middle, tried
            else:
                too_many = middle
        return page

    def omitted(self, page: Page) -> tuple[OmittedItem, ...]:
        """Return everything that ``page`` does not show, best-ranked first."""
        for evidence_id, candidate in self._order.items():
            if evidence_id not in page.entries and evidence_id not in self._omitted:
                self._omit(candidate, "budget", tokens=self._cost(evidence_id))
        return tuple(
            self._omitted[evidence_id]
            for evidence_id in self._order
            if evidence_id in self._omitted
        )

    def _cost(self, evidence_id: str) -> int | None:
        refusal = self._passed.refused.get(evidence_id)
        return refusal.tokens if refusal else self._passed.taken[evidence_id]

    def too_long(self) -> list[Diagnostic]:
        """Say which items were left out because they have too many characters."""
        refused = self._passed.refused
        uncut = tuple(key for key in refused if key in self._passed.uncut)
        too_long = tuple(key for key, refusal in refused.items() if refusal.too_long)
        found = []
        if too_long:
            message = (
                f"{len(too_long)} items are left out because the pack would exceed "
                f"{CHARACTERS_PER_TOKEN} characters for each token of the budget"
            )
            found.append(Diagnostic("character_limit", message, {"evidence_ids": too_long}))
        if uncut:
            message = (
                f"{len(uncut)} items do not fit whole and were not cut, because one pack cuts long "
                f"texts of at most {CUT_CHARACTERS:,} characters together; store long texts in parts"
            )
            found.append(Diagnostic("cut_limit", message, {"evidence_ids": uncut}))
        return found

    def why_empty(
        self, wanted: Sequence[PackCandidate], nothing_because: NothingBecause
    ) -> Diagnostic:
        """Say why the pack shows nothing."""
        if wanted:
            return self._budget_too_small(wanted[0])
        reason: str = nothing_because
        if self._omitted:
            reason = "_and_".join(sorted({item.reason for item in self._omitted.values()}))
        return Diagnostic("empty_pack", _EMPTY[reason], {"reason": reason})

    def _budget_too_small(self, first: PackCandidate) -> Diagnostic:
        evidence = first.evidence
        details: dict[str, object] = {"reason": "budget", "evidence_id": evidence.evidence_id}
        refusal = self._passed.refused.get(evidence.evidence_id)
        if refusal and refusal.too_long:
            message = (
                f"the best item has {len(evidence.content)} characters, too many for a budget "
                f"of {self._budget} tokens"
            )
            return Diagnostic("empty_pack", message, details | {"tokens": None})
        ample = Filling(
            limit=sys.maxsize,
            characters=sys.maxsize,
            costs=self._costs,
            cutter=None,
            times=self._times,
        )
        ample.offer(first)
        tokens = Page(ample.entries.values(), self._counter).tokens
        message = (
            f"the budget of {self._budget} tokens is too small for the best item, which needs "
            f"{tokens}"
        )
        return Diagnostic("empty_pack", message, details | {"tokens": tokens})


_EMPTY: Final[Mapping[str, str]] = {
    "no_match": "nothing matched",
    "filtered_out": "no evidence passes the filters of time, session and actor",
    "namespace_empty": "the namespace holds no evidence",
    "excluded": "the query excludes everything that matched",
    "superseded": "everything that matched is superseded",
    "excluded_and_superseded": "everything that matched is excluded by the query or superseded",
}


_ESCAPES: Final[Mapping[str, str]] = {
    DELIMITER_ESCAPED: "delimiters of the pack were found in stored text and escaped",
    CITATION_ESCAPED: "forged citations were found in stored text and escaped",
    CONTROL_ESCAPED: "control characters were found in stored text and are shown escaped",
}


def _escapes(page: Page) -> list[Diagnostic]:
    found = page.escapes()
    return [
        Diagnostic(code, message, {"evidence_ids": found[code]})
        for code, message in _ESCAPES.items()
        if code in found
    ]
