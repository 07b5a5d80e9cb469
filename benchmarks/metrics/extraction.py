"""Judging extracted claims against labelled ones, dialogue by dialogue.

Four matches, each against the gold of the dialogue:

- ``span_exact`` and ``span_overlap``: the same turn and the same (or overlapping) characters,
  whatever the predicate; only where the data labels spans.
- ``claim_exact``: the same turn and characters, and a predicate that says the label.
- ``spo``: subject, predicate and object, and the same turn where the data gives one. Objects are
  the same when they are equal after case folding, name the same person, or one's words are part
  of the other's.

A claim is *unjudged* when the labels can neither confirm nor refute it: its predicate is not in
the mapping table, it denies (only impressions are labelled with both polarities), or, on data
without spans, it names a person that is no argument of the record, or likes something that is no
name. Precision is reported twice: over judged claims, and over all (unjudged ones count as wrong).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from benchmarks.datasets.labelled import Dialogue, GoldClaim, Labelled
from benchmarks.metrics.intervals import RESAMPLES, Interval

MATCHES = ("span_exact", "span_overlap", "claim_exact", "spo")
SINGLE = frozenset("age birthday born_in hometown lives_in name nationality spouse".split())
_NAMING = frozenset(("name", "nickname"))


@dataclass(frozen=True, slots=True)
class Emitted:
    """One extracted claim. ``day`` is how its date was read, if it is one."""

    turn: int
    subject: str
    predicate: str
    object: str
    span: tuple[int, int] | None
    negative: bool
    confidence: float
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What one system did on one dialogue: ids and counts, never a text."""

    dialogue_id: str
    turns: int
    silent_turns: int
    emitted: int
    judged: int
    gold: int
    mapped: int
    right: Mapping[str, int]
    """Judged claims that are right, by match."""
    found: Mapping[str, int]
    """Gold claims that are found, by match."""
    by_label: Mapping[str, tuple[int, int]]
    """Label to (found by the headline match, gold)."""
    by_predicate: Mapping[str, tuple[int, int]]
    """Predicate to (right by the headline match, judged)."""
    coverage: Mapping[str, tuple[int, int]]
    """Predicates that say a gold claim, joined by ``|`` (``none``), to (found, gold)."""
    on_silent: int
    on_silent_judged: int
    contradictions: int
    boundaries: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Dates with a labelled day: read as labelled, read otherwise, claimed but not read, and not
    claimed at all."""
    supersession: Mapping[str, int] = field(default_factory=dict)
    abstained: int = 0
    refused: int = 0
    cost: Mapping[str, float] = field(default_factory=dict)


class _Names:
    """Which texts name the same person or thing in one dialogue."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._names = dialogue.names
        self._arguments = {
            text.casefold() for gold in dialogue.gold for text in (gold.subject, gold.object)
        }

    def leader(self, text: str) -> str:
        folded = text.casefold()
        if folded in self._names:
            return self._names[folded]
        for name, leader in self._names.items():
            if folded in name.split():
                return leader
        return folded

    def same(self, one: str, other: str) -> bool:
        first, second = one.casefold(), other.casefold()
        if first == second or self.leader(first) == self.leader(second):
            return True
        short, long = sorted((first.split(), second.split()), key=len)
        return bool(short) and any(
            long[at : at + len(short)] == short for at in range(len(long) - len(short) + 1)
        )

    def unlisted(self, text: str) -> bool:
        """Whether a name is no argument of the record: annotators wrote ``Speaker N`` for it."""
        return text[:1].isupper() and not any(self.same(text, each) for each in self._arguments)


def judge(labelled: Labelled, dialogue: Dialogue, emitted: Sequence[Emitted]) -> Counts:
    """Return the counts of one dialogue; costs and supersession are added by the runner."""
    names = _Names(dialogue)
    headline = "claim_exact" if labelled.has_spans else "spo"
    judged = [each for each in emitted if _can_be_judged(labelled, names, each)]
    kept = judged if labelled.has_spans else _once(judged)
    right = dict.fromkeys(MATCHES, 0)
    found: dict[str, set[int]] = {match: set() for match in MATCHES}
    by_predicate: dict[str, tuple[int, int]] = {}
    contradictions = 0
    for each in kept:
        hits = {match: _hits(labelled, dialogue, names, each, match) for match in MATCHES}
        for match, gold in hits.items():
            right[match] += bool(gold)
            found[match] |= gold
        ok, total = by_predicate.get(each.predicate, (0, 0))
        by_predicate[each.predicate] = (ok + bool(hits[headline]), total + 1)
        contradictions += not hits["spo"] and _contradicts(dialogue, names, each)
    by_label: dict[str, tuple[int, int]] = {}
    coverage: dict[str, tuple[int, int]] = {}
    for number, gold_claim in enumerate(dialogue.gold):
        meaning = "|".join(sorted(gold_claim.predicates)) or "none"
        for table, name in ((by_label, gold_claim.label), (coverage, meaning)):
            ok, total = table.get(name, (0, 0))
            table[name] = (ok + (number in found[headline]), total + 1)
    return Counts(
        dialogue_id=dialogue.dialogue_id,
        turns=len(dialogue.turns),
        silent_turns=len(dialogue.silent),
        emitted=len(emitted) - len(judged) + len(kept),
        judged=len(kept),
        gold=len(dialogue.gold),
        mapped=sum(bool(each.predicates) for each in dialogue.gold),
        right=right,
        found={match: len(numbers) for match, numbers in found.items()},
        by_label=by_label,
        by_predicate=by_predicate,
        coverage=coverage,
        on_silent=sum(each.turn in dialogue.silent for each in emitted),
        on_silent_judged=sum(each.turn in dialogue.silent for each in kept),
        contradictions=contradictions,
        boundaries=_boundaries(dialogue, emitted),
    )


def _once(claims: Sequence[Emitted]) -> list[Emitted]:
    """A relation of a dialogue counts once, however often it is said."""
    return list(
        {(e.subject, e.predicate, e.object.casefold(), e.negative): e for e in claims}.values()
    )


def _can_be_judged(labelled: Labelled, names: _Names, each: Emitted) -> bool:
    if each.predicate not in labelled.judged or (each.negative and each.predicate != "likes"):
        return False
    if labelled.has_spans:
        return True
    if each.predicate == "likes":
        return each.object[:1].isupper()
    return not (each.predicate in _NAMING and names.unlisted(each.object))


def _hits(
    labelled: Labelled, dialogue: Dialogue, names: _Names, each: Emitted, match: str
) -> set[int]:
    if match != "spo" and not labelled.has_spans:
        return set()
    test = _spo if match == "spo" else _on_span
    return {
        number
        for number, gold in enumerate(dialogue.gold)
        if test(names, each, gold, match) and gold.turn in (None, each.turn)
    }


def _on_span(names: _Names, each: Emitted, gold: GoldClaim, match: str) -> bool:
    if each.span is None or gold.span is None:
        return False
    if match == "span_overlap":
        return each.span[0] < gold.span[1] and gold.span[0] < each.span[1]
    return each.span == gold.span and (match == "span_exact" or each.predicate in gold.predicates)


def _spo(names: _Names, each: Emitted, gold: GoldClaim, match: str) -> bool:
    if each.predicate not in gold.predicates or each.negative is not gold.negative:
        return False
    if not names.same(each.subject, gold.subject):
        return False
    speaker = gold.object.startswith("Speaker ") and names.unlisted(each.object)
    return speaker or names.same(each.object, gold.object)


def _contradicts(dialogue: Dialogue, names: _Names, each: Emitted) -> bool:
    """Whether the labels hold another value in the place of this one."""
    if dialogue.states:
        values = dialogue.states[each.turn].get(each.predicate)
        return values is not None and each.object.casefold() not in values
    if each.predicate not in SINGLE or each.negative:
        return False
    return any(
        each.predicate in gold.predicates and names.same(each.subject, gold.subject)
        for gold in dialogue.gold
    )


def _boundaries(dialogue: Dialogue, emitted: Sequence[Emitted]) -> tuple[int, int, int, int]:
    days = {(g.turn, g.span): g.day for g in dialogue.gold if g.day is not None}
    read = {(e.turn, e.span): e.day for e in emitted if (e.turn, e.span) in days}
    right = sum(day == days[place] for place, day in read.items())
    unread = sum(day is None for day in read.values())
    return right, len(read) - right - unread, unread, len(days) - len(read)


def changes(
    before: frozenset[str], after: frozenset[str], gold_before: frozenset[str], gold: frozenset[str]
) -> str | None:
    """Name what became of one single-valued fact in one turn; None when there was none to keep.

    ``before`` and ``after`` are the values held by the memory, ``gold_before`` and ``gold`` the
    accepted ones, all case-folded. A changed fact is ``right`` when a new value is held and no
    old one, else ``wrong`` when some third value took over, else ``missed``. A fact that did not
    change, and was held, is ``premature`` when the memory let go of every accepted value, else
    ``kept``.
    """
    if gold_before and gold and not gold_before & gold:
        if after & gold and not after & gold_before:
            return "right"
        return "wrong" if after - before - gold else "missed"
    if before & gold_before and gold_before & gold:
        return "kept" if after & gold else "premature"
    return None


def rate(
    counts: Sequence[Counts],
    numerator: Callable[[Counts], float],
    denominator: Callable[[Counts], float],
    *,
    scale: float = 1.0,
) -> dict[str, float]:
    """Return a ratio of sums with its interval by dialogue, and both sums."""
    top = np.array([numerator(each) for each in counts], dtype=np.float64)
    bottom = np.array([denominator(each) for each in counts], dtype=np.float64)
    drawn = _resampled(np.stack([top, bottom], axis=1))
    interval = _interval(float(top.sum()), float(bottom.sum()), drawn[:, 0], drawn[:, 1], scale)
    return {**interval, "count": float(top.sum()), "of": float(bottom.sum())}


def f1(counts: Sequence[Counts], match: str, *, judged: bool) -> dict[str, float]:
    """Return the harmonic mean of precision and recall with its interval by dialogue."""
    columns = np.array(
        [
            [c.right[match], c.judged if judged else c.emitted, c.found[match], c.gold]
            for c in counts
        ],
        dtype=np.float64,
    )
    sums = columns.sum(axis=0, keepdims=True)
    drawn = _harmonic(_resampled(columns))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return {"value": float(_harmonic(sums)[0]), "low": float(low), "high": float(high)}


def _harmonic(
    sums: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    precision = _quotient(sums[:, 0], sums[:, 1])
    recall = _quotient(sums[:, 2], sums[:, 3])
    return _quotient(2 * precision * recall, precision + recall)


def _quotient(
    top: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    bottom: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _resampled(
    columns: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    random = np.random.default_rng(0)
    rows = len(columns)
    picks = random.multinomial(rows, np.full(rows, 1 / rows), RESAMPLES)
    return picks @ columns


def _interval(
    top: float,
    bottom: float,
    tops: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    bottoms: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    scale: float,
) -> dict[str, float]:
    low, high = np.percentile(_quotient(tops, bottoms), [2.5, 97.5])
    value = top / bottom if bottom else 0.0
    found = Interval(scale * value, scale * float(low), scale * float(high), int(bottom))
    return {"value": found.mean, "low": found.low, "high": found.high}
