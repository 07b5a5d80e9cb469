"""Greedy filling of a budget with estimated costs: one candidate after another, best first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from evicortex.policy.candidates import PackCandidate
from evicortex.policy.cutting import Cutter
from evicortex.policy.rendering import (
    CLOSING,
    CUT,
    OPENING,
    Escaped,
    Line,
    citation,
    day_of,
    header,
    label,
    merged_spans,
    shown_text,
    speaker,
    superseded_mark,
    times_mark,
    times_within,
)
from evicortex.protocols import TokenCounter
from evicortex.types import Evidence, Span, TimeMention

TimesOf = Callable[[Evidence], Sequence[TimeMention]]
"""Returns the times that the text of an evidence names, in its order."""

CHARACTERS_PER_TOKEN: Final = 16
"""A pack has at most so many characters for each token of its budget.

Ordinary text has three to six. The bound keeps out texts that a tokenizer counts at next to
nothing: WordPiece gives none for white space and one for any word of more than 100 letters.
"""
COUNTED_CHARACTERS: Final = 250_000
"""A text that is too long to fit and longer than this is not counted to say what it would cost."""


class Size(NamedTuple):
    """What a part of a pack takes up."""

    tokens: int
    characters: int


class Costs:
    """Counts of the parts of a pack, each counted once."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        """Return the tokens of ``text``."""
        cost = self._known.get(text)
        if cost is None:
            cost = self._known[text] = self._counter.count(text)
        return cost

    def size(self, text: str) -> Size:
        """Return the tokens and characters of ``text``."""
        return Size(self.of(text), len(text))


@dataclass(frozen=True, slots=True)
class Entry:
    """What a pack shows of one evidence; ``candidate`` is the best-ranked one of it that is shown.

    ``rank`` is its place among all candidates offered, 0 for the best. ``part`` is what its line
    holds after the name, with the longest mark that it may get;
    ``times`` are those that what it shows names, if the pack shows times.
    """

    candidate: PackCandidate
    rank: int
    spans: tuple[Span, ...]
    line: Line
    codes: frozenset[str]
    part: str
    times: tuple[TimeMention, ...] = ()


class Refusal(NamedTuple):
    """A candidate that did not fit: its cost in tokens, and whether it had too many characters."""

    candidate: PackCandidate
    tokens: int | None
    too_long: bool


class Ranked(NamedTuple):
    """A candidate and its place among all that were offered, 0 for the best."""

    rank: int
    candidate: PackCandidate


class _Headers:
    """The headers of the sessions that are open, and what another one takes up."""

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self._open: dict[date | None, list[str | None]] = {}
        self._known: dict[tuple[date | None, str | None], Size] = {}

    def size(self, day: date | None, session: str | None) -> Size:
        """Return what opening ``session`` on ``day`` adds."""
        others = self._open.get(day)
        if not others:
            return self._header(day, None)
        if session in others:
            return _NOTHING
        added = self._header(day, session)
        if len(others) > 1:
            return added
        named, plain = self._header(day, others[0]), self._header(day, None)
        return Size(
            added.tokens + named.tokens - plain.tokens,
            added.characters + named.characters - plain.characters,
        )

    def _header(self, day: date | None, session: str | None) -> Size:
        size = self._known.get((day, session))
        if size is None:
            size = self._known[day, session] = self._costs.size(header(day, session).text)
        return size

    def open(self, day: date | None, session: str | None) -> None:
        others = self._open.setdefault(day, [])
        if session not in others:
            others.append(session)


_NOTHING: Final = Size(0, 0)


class Filling:
    """One greedy pass. ``limit`` is in estimated tokens, ``characters`` bounds the text.

    Candidates are offered best first. ``entries`` are in the order in which they came in, which
    is not that of their ranks once the limit was raised, and ``taken`` is what each costs;
    ``used`` is the estimate of the tokens of the whole text; ``refused`` holds what did not fit;
    ``uncut`` are those of the refused that were not cut because the pack had cut enough. All are
    by evidence. ``times`` says which times an evidence names; ``None`` shows none.
    """

    def __init__(
        self,
        *,
        limit: int,
        characters: int,
        costs: Costs,
        cutter: Cutter | None,
        times: TimesOf | None = None,
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.refused: dict[str, Refusal] = {}
        self.taken: dict[str, int] = {}
        self.uncut: set[str] = set()
        self._offered = 0
        self._passed_over: list[Ranked] = []
        self.used = costs.of(OPENING + "\n") + costs.of(CLOSING)
        self._limit = limit
        self._characters_left = characters - len(OPENING) - 1 - len(CLOSING)
        self._costs = costs
        self._cutter = cutter
        self._times = times
        self._headers = _Headers(costs)
        self._label = costs.size(label(1))
        self._speakers: dict[tuple[str | None, str | None], tuple[Escaped, Size]] = {}

    def offer(self, candidate: PackCandidate) -> None:
        """Take in what fits of ``candidate``; otherwise note what it would have cost."""
        self._offer(Ranked(self._offered, candidate))
        self._offered += 1

    def _offer(self, ranked: Ranked) -> None:
        candidate = ranked.candidate
        evidence = candidate.evidence
        entry = self.entries.get(evidence.evidence_id)
        opening = self._opening(evidence) if entry is None else _NOTHING
        unit = candidate.span or Span(0, len(evidence.content))
        preferred: Refusal | None = None
        for spans in self._forms(candidate, unit, self._limit - self.used - opening.tokens):
            refusal = self._try(ranked, spans, entry, opening)
            if refusal is None:
                return
            preferred = preferred or refusal
        self._passed_over.append(ranked)
        if entry is None and evidence.evidence_id not in self.refused:
            self.refused[evidence.evidence_id] = preferred or self._refusal(
                candidate, (unit,), opening
            )

    def raise_limit(self, limit: int) -> None:
        """Allow more tokens, and offer again what did not fit, best first."""
        self._limit = limit
        again, self._passed_over = self._passed_over, []
        for ranked in again:
            self._offer(ranked)

    def ranked(self) -> list[Entry]:
        """Return the entries, best first."""
        return sorted(self.entries.values(), key=lambda entry: entry.rank)

    def _opening(self, evidence: Evidence) -> Size:
        """Return what a new item needs beside its text."""
        header_size = self._headers.size(day_of(evidence), evidence.session)
        _, name_size = self._speaker(evidence)
        return Size(
            header_size.tokens + self._label.tokens + name_size.tokens,
            header_size.characters + self._label.characters + name_size.characters,
        )

    def _speaker(self, evidence: Evidence) -> tuple[Escaped, Size]:
        key = evidence.actor, evidence.role
        known = self._speakers.get(key)
        if known is None:
            name = speaker(evidence)
            known = self._speakers[key] = name, self._costs.size(f" {name.text}:")
        return known

    def _forms(self, candidate: PackCandidate, unit: Span, room: int) -> Iterable[tuple[Span, ...]]:
        """Return what may be shown of ``candidate``, the best form first."""
        if room < (_SMALLEST_TEXT if self._cutter is None else _SMALLEST_PIECE):
            return ()
        content = candidate.evidence.content
        if self._cutter is None:
            return ((unit,),)
        if not self._cutter.can_cut(content, unit):
            self.uncut.add(candidate.evidence.evidence_id)
            return ((unit,),)
        return self._cutter.forms(
            content,
            unit,
            similarities=candidate.similarities,
            used=self.used,
            room=room,
            first=not self.entries,
        )

    def _try(
        self,
        ranked: Ranked,
        spans: tuple[Span, ...],
        entry: Entry | None,
        opening: Size,
    ) -> Refusal | None:
        """Take in ``spans`` of a candidate, or say what they would have cost.

        Escapes and marks only add to a text, so what does not fit without them is not rendered.
        """
        candidate = ranked.candidate
        content = candidate.evidence.content
        spans = merged_spans(content, [*entry.spans, *spans] if entry else spans)
        if _characters(spans) > max(COUNTED_CHARACTERS, self._characters_left):
            return Refusal(candidate, None, too_long=True)
        added = self._added(_part(content, spans), entry, opening)
        if self._fits(added):
            shown = Ranked(entry.rank, entry.candidate) if entry else ranked
            wider = self._entry(min(shown, ranked, key=lambda each: each.rank), spans)
            added = self._added(wider.part, entry, opening)
            if self._fits(added):
                self._take(wider, added)
                return None
        return Refusal(candidate, added.tokens, added.characters > self._characters_left)

    def _refusal(self, candidate: PackCandidate, spans: tuple[Span, ...], opening: Size) -> Refusal:
        """Return the refusal of what was not even tried."""
        if _characters(spans) > COUNTED_CHARACTERS:
            return Refusal(candidate, None, too_long=True)
        added = self._added(_part(candidate.evidence.content, spans), None, opening)
        return Refusal(candidate, added.tokens, added.characters > self._characters_left)

    def _entry(self, ranked: Ranked, spans: tuple[Span, ...]) -> Entry:
        rank, candidate = ranked
        evidence = candidate.evidence
        name, _ = self._speaker(evidence)
        shown = shown_text(evidence.content, spans, times=self._times is not None)
        times = () if self._times is None else times_within(self._times(evidence), spans)
        mark = times_mark(times)
        line = Line(evidence, name.text, shown.text, mark.text)
        part = f" {shown.text}{mark.text}{_longest_mark(candidate)}\n"
        codes = name.codes | shown.codes | mark.codes
        return Entry(candidate, rank, spans, line, codes, part, times)

    def _added(self, part: str, entry: Entry | None, opening: Size) -> Size:
        tokens, characters = opening.tokens + self._costs.of(part), opening.characters + len(part)
        if entry is not None:
            tokens, characters = tokens - self._costs.of(entry.part), characters - len(entry.part)
        return Size(tokens, characters)

    def _fits(self, added: Size) -> bool:
        return self.used + added.tokens <= self._limit and added.characters <= self._characters_left

    def _take(self, entry: Entry, added: Size) -> None:
        evidence = entry.candidate.evidence
        self._headers.open(day_of(evidence), evidence.session)
        self.entries[evidence.evidence_id] = entry
        self.refused.pop(evidence.evidence_id, None)
        self.uncut.discard(evidence.evidence_id)
        self.taken[evidence.evidence_id] = self.taken.get(evidence.evidence_id, 0) + added.tokens
        self.used += added.tokens
        self._characters_left -= added.characters
        self._label = self._costs.size(label(len(self.entries) + 1))


_SMALLEST_TEXT: Final = 1
_SMALLEST_PIECE: Final = 3
"""With fewer tokens left, no turn, or no piece of one with its mark, is tried."""


def _characters(spans: Iterable[Span]) -> int:
    return sum([end - start for start, end in spans])


def _part(content: str, spans: Sequence[Span]) -> str:
    """Return what a line holds after its name, before any escape."""
    if len(spans) == 1:
        return f" {content[spans[0].start : spans[0].end]}\n"
    return f" {CUT.join([content[start:end] for start, end in spans])}\n"


_ANY_NUMBER: Final = 888


def _longest_mark(candidate: PackCandidate) -> str:
    """Return the mark that a superseded item gets at most; which items are cited comes later."""
    if not candidate.superseded:
        return ""
    cited = citation(_ANY_NUMBER)
    return superseded_mark([(cited, claim) for claim in candidate.superseded_by]).text
