"""Tables of a report, derived from records alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks import calibration
from benchmarks.metrics.intervals import Interval, bootstrap, paired
from benchmarks.results import Ingest, Record, Slice, select
from benchmarks.systems.catalog import ABLATION_BASE

RESAMPLES = 2_000
HEADLINES = {"locomo-plus": "any"}
REFERENCES = ("hybrid chunks", "BM25 + hashing diagnostic", "rrf-k60", "bm25")
CROSSED = (
    ("evicortex", "turns under the hybrid's retriever"),
    ("chunks under evicortex's retriever", "hybrid chunks"),
    ("evicortex", "chunks under evicortex's retriever"),
    ("turns under the hybrid's retriever", "hybrid chunks"),
)
"""The first two change the retriever, the others the representation."""
HOW = ("question", "conversation")
NOT_ASKED = "–"
RELEASED = tuple(
    f"{level}/{name}"
    for level in ("turn", "session", "session corpus")
    for name in ("recall_all", "ndcg_any")
)


@dataclass(frozen=True, slots=True)
class Table:
    """A title, a note on what is shown, column names, and rows of text."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def headline(suite: str) -> str:
    """Return the measure that a suite's tables show."""
    kinds = [measure for kind, measure in HEADLINES.items() if suite.startswith(kind)]
    return kinds[0] if kinds else "strict"


def percent(found: Interval) -> str:
    """Return ``81.3 [79.2, 83.4]``."""
    return f"{100 * found.mean:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def signed(found: Interval) -> str:
    """Return ``+2.1 [0.8, 3.4]``."""
    return f"{100 * found.mean:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def suites(records: Sequence[Record]) -> list[str]:
    """Return the suites in the order of the records."""
    return list(dict.fromkeys(record.suite for record in records))


def systems(records: Sequence[Record], suite: str) -> list[str]:
    """Return the systems of a suite in the order of the records."""
    return list(dict.fromkeys(r.system for r in records if r.suite == suite))


def budgets(records: Sequence[Record], suite: str) -> list[int]:
    """Return the budgets of a suite, ascending."""
    return sorted({r.budget for r in records if r.suite == suite})


def complete(records: Sequence[Record], suite: str) -> list[str]:
    """Return the systems that answered every question of a suite that any system answered.

    A system need not have been asked at every budget, but at each of its budgets it was asked
    every question.
    """
    asked: set[tuple[str, str]] = set()
    answered: dict[str, dict[int, set[tuple[str, str]]]] = {}
    for r in records:
        if r.suite == suite:
            asked.add((r.conversation, r.query))
            answered.setdefault(r.system, {}).setdefault(r.budget, set()).add(
                (r.conversation, r.query)
            )
    return [
        name
        for name, by_budget in answered.items()
        if all(found == asked for found in by_budget.values())
    ]


def pooled(records: Sequence[Record]) -> list[Record]:
    """Return the records of seeded suites as one suite each, a seed standing for a conversation.

    So an interval by conversation is one by seed. Suites without seeds are left out.
    """
    seeded: dict[str, list[str]] = {}
    for suite in suites(records):
        base, comma, seed = suite.rpartition(", seed ")
        if comma and seed.isdigit():
            seeded.setdefault(base, []).append(suite)
    names = {
        suite: f"{base}, {len(found)} seeds together"
        for base, found in seeded.items()
        for suite in found
        if len(found) > 1
    }
    return [
        replace(r, suite=names[r.suite], conversation=r.suite, query=f"{r.conversation}/{r.query}")
        for r in records
        if r.suite in names
    ]


def _slice(records: Sequence[Record], suite: str, system: str, budget: int) -> Slice:
    return select(records, suite=suite, system=system, budget=budget)


def _found(
    records: Sequence[Record], suite: str, system: str, budget: int, how: str
) -> Interval | None:
    """Return the headline with its interval; None when it was not asked at this budget."""
    chosen = _slice(records, suite, system, budget)
    if not chosen.records:
        return None
    clusters = chosen.clusters() if how == "conversation" else None
    return bootstrap(chosen.values(headline(suite)), clusters=clusters, resamples=RESAMPLES)


def recall_table(records: Sequence[Record], suite: str) -> Table:
    """Return the headline measure by system and budget, by question and by conversation."""
    columns = budgets(records, suite)
    rows = []
    for name in complete(records, suite):
        for how in HOW:
            cells = [_found(records, suite, name, budget, how) for budget in columns]
            rows.append((name, how, *(NOT_ASKED if c is None else percent(c) for c in cells)))
    counted = {(r.conversation, r.query) for r in records if r.suite == suite and r.counted}
    conversations = {conversation for conversation, _ in counted}
    note = (
        f"{headline(suite)} evidence recall after packing, percent, n = {len(counted)} in "
        f"{len(conversations)} conversations, 95 % bootstrap by question and by conversation"
    )
    names = ("system", "resampled by", *_at(columns))
    return Table(f"{suite}: recall within a budget", note, names, tuple(rows))


def _at(columns: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"@{budget}" for budget in columns)


def paired_table(records: Sequence[Record], suite: str) -> Table:
    """Return EviCortex less each reference, by question and by conversation."""
    named = complete(records, suite)
    own = [n for n in named if n.startswith("evicortex") and f"{ABLATION_BASE}, " not in n]
    pairs = [(mine, base) for mine in own for base in REFERENCES if base in named]
    note = f"{headline(suite)}, points; paired bootstrap, 95 %; an interval off 0 is a difference"
    return _differences(records, suite, pairs, "paired differences", note)


def ablation_table(records: Sequence[Record], suite: str) -> Table:
    """Return what hiding one channel costs, and what the learned ranker adds."""
    named = complete(records, suite)
    arms = [n for n in named if n.startswith(f"{ABLATION_BASE}, ")]
    pairs = [(arm, _base_of(arm)) for arm in arms] + [("evicortex", ABLATION_BASE)]
    note = (
        f"{headline(suite)}, points; the learned ranker sees the channels itself, so it is off on "
        "both sides of every ablation but its own; paired bootstrap, 95 %"
    )
    kept = [pair for pair in pairs if set(pair) <= set(named)]
    return _differences(records, suite, kept, "ablations", note)


def _base_of(arm: str) -> str:
    """Return what an arm is measured against: the same without its last word."""
    return arm.rpartition(", ")[0]


def crossed_table(records: Sequence[Record], suite: str) -> Table:
    """Return representation and retriever crossed: the four systems, and the paired steps."""
    named = complete(records, suite)
    note = (
        f"{headline(suite)}, points; each line changes one of the two, representation or "
        "retriever; paired bootstrap, 95 %"
    )
    kept = [pair for pair in CROSSED if set(pair) <= set(named)]
    return _differences(records, suite, kept, "representation and retriever crossed", note)


def _differences(
    records: Sequence[Record],
    suite: str,
    pairs: Sequence[tuple[str, str]],
    title: str,
    note: str,
) -> Table:
    columns = budgets(records, suite)
    rows: list[tuple[str, ...]] = []
    for own, base in pairs:
        for how in HOW:
            found = [difference(records, suite, own, base, budget, how) for budget in columns]
            cells = [NOT_ASKED if each is None else signed(each) for each in found]
            rows.append((f"{own} - {base}", how, *cells))
    names = ("difference", "resampled by", *_at(columns))
    return Table(f"{suite}: {title}", note, names, tuple(rows))


def difference(
    records: Sequence[Record], suite: str, own: str, base: str, budget: int, how: str
) -> Interval | None:
    """Return the paired difference of the headline; None when either was not asked."""
    mine, other = _slice(records, suite, own, budget), _slice(records, suite, base, budget)
    if not mine.records or not other.records:
        return None
    measure = headline(suite)
    clusters = mine.clusters() if how == "conversation" else None
    return paired(
        mine.values(measure), other.values(measure), clusters=clusters, resamples=RESAMPLES
    )


def category_table(records: Sequence[Record], suite: str, budget: int) -> Table:
    """Return the headline measure by category at one budget, with intervals by question."""
    measure = headline(suite)
    categories = sorted({r.category for r in records if r.suite == suite and r.counted})
    sizes = {
        category: len(
            {
                (r.conversation, r.query)
                for r in records
                if r.category == category and r.suite == suite and r.counted
            }
        )
        for category in categories
    }
    rows = []
    for name in complete(records, suite):
        cells = []
        for category in categories:
            found = select(records, suite=suite, system=name, budget=budget, category=category)
            cells.append(
                percent(bootstrap(found.values(measure), resamples=RESAMPLES))
                if found.records
                else NOT_ASKED
            )
        rows.append((name, *cells))
    columns = tuple(f"{category} (n={sizes[category]})" for category in categories)
    note = f"{measure}, percent, at {budget} tokens, 95 % bootstrap by question"
    return Table(f"{suite}: by category", note, ("system", *columns), tuple(rows))


def refusal_table(records: Sequence[Record], suite: str, budget: int) -> Table:
    """Return retrieval-only abstention: what was refused, and how well support is told."""
    rows = []
    for name in complete(records, suite):
        mine = [r for r in records if (r.suite, r.system, r.budget) == (suite, name, budget)]
        none = [r for r in mine if not r.answerable]
        some = [r for r in mine if r.counted]
        if none and some:
            rows.append((name, _share(none), _share(some), *_told(records, suite, name, budget)))
    note = (
        f"at {budget} tokens, no reader; the first share should be high, the other low. The area "
        "under the curve is of the packs' own probability or, where they give none, of one fitted "
        "on the other conversations from what the packs tell (left out); 95 % by conversation, .5 "
        "is chance. Gain is how much its Brier score is below that of the constant share"
    )
    columns = (
        "system",
        "unanswerable refused",
        "answerable refused",
        "probability",
        "AUROC",
        "Brier",
        "Brier gain",
        "calibration error",
    )
    return Table(f"{suite}: abstention, retrieval only", note, columns, tuple(rows))


def _told(records: Sequence[Record], suite: str, name: str, budget: int) -> tuple[str, ...]:
    found = calibration.own(records, suite, name, budget)
    found = found or calibration.left_out(records, suite, name, budget)
    if found is None:
        return (NOT_ASKED,) * 5
    return (
        found.how,
        fraction(found.auroc(by_conversation=True)),
        fraction(found.brier()),
        fraction(found.gain()),
        f"{found.calibration_error():.3f}",
    )


def fraction(found: Interval) -> str:
    """Return ``0.812 [0.770, 0.850]``."""
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _share(records: Sequence[Record]) -> str:
    refused = sum(r.refused for r in records)
    return f"{refused}/{len(records)} ({100 * refused / max(len(records), 1):.1f} %)"


def cost_table(records: Sequence[Record], ingests: Sequence[Ingest], suite: str) -> Table:
    """Return compute on both sides: ingestion and questions."""
    rows = []
    for name in complete(records, suite):
        mine = [r for r in records if r.suite == suite and r.system == name]
        smallest, largest = ([r for r in mine if r.budget == at] for at in _ends(mine))
        taken = [i for i in ingests if i.suite == suite and i.system == name]
        rows.append(
            (
                name,
                f"{sum(i.cpu_s for i in taken):.1f}",
                f"{sum(i.embed_cpu_s for i in taken):.1f}",
                f"{sum(i.embedded for i in taken):,}",
                f"{max((i.peak_rss_mib for i in taken), default=0.0):,.0f}",
                *(f"{_mean_cost(mine, cost):,.0f}" for cost in COSTS),
                *(_times(some) for some in (smallest, largest)),
                f"{sum(r.cpu_ms for r in mine) / 1000:.1f}",
                str(sum(r.status == "failed" for r in mine)),
            )
        )
    low, high = (f"{budget}" for budget in _ends([r for r in records if r.suite == suite]))
    columns = (
        "system",
        "ingest CPU s",
        "of it encoder",
        "texts embedded",
        "peak RSS MiB",
        "scored",
        "embedded",
        "rerank pairs",
        f"CPU ms @{low}",
        f"CPU ms @{high}",
        "all questions CPU s",
        "failed",
    )
    note = (
        "Every system is charged as if it ran alone: a vector that was made before counts with the "
        "CPU time that it took then. Scored candidates, embedded texts and reranked pairs are per "
        "question; CPU milliseconds of a question are p50 / p95 at the system's smallest and "
        "largest budget, its encoding included. The peak is of the process while the system ran"
    )
    return Table(f"{suite}: compute", note, columns, tuple(rows))


COSTS = ("scored", "embedded", "rerank_pairs")


def _ends(records: Sequence[Record]) -> tuple[int, int]:
    found = [r.budget for r in records]
    return min(found), max(found)


def _mean_cost(records: Sequence[Record], cost: str) -> float:
    return statistics.fmean(r.costs.get(cost, 0.0) for r in records)


def _times(records: Sequence[Record]) -> str:
    times = sorted(r.cpu_ms for r in records)
    return (
        f"{times[len(times) // 2]:.1f} / {times[min(len(times) - 1, int(0.95 * len(times)))]:.1f}"
    )


def released_table(records: Sequence[Record], suite: str, budget: int) -> Table | None:
    """Return the released LongMemEval columns over both denominators, or None without any."""
    cutoffs = sorted(
        {
            int(name.rsplit("@", 1)[1])
            for r in records
            if r.suite == suite
            for name in r.values
            if name.startswith("after packing/")
        }
    )
    if not cutoffs:
        return None
    shown = [k for k in cutoffs if k in (5, 10)] or cutoffs[:1]
    rows = []
    for name in complete(records, suite):
        for group, title in (("released", "released denominator"), (None, "all answerable")):
            found = select(records, suite=suite, system=name, budget=budget, group=group)
            for stage in ("after packing", "before packing"):
                cells = [
                    f"{100 * statistics.fmean(found.values(f'{stage}/{column}@{k}')):.1f}"
                    if found.records
                    else "not run"
                    for column in RELEASED
                    for k in shown
                ]
                rows.append((name, title, stage, str(len(found.records)), *cells))
    columns = (
        "system",
        "denominator",
        "stage",
        "n",
        *(f"{c}@{k}" for c in RELEASED for k in shown),
    )
    note = f"the released formulas, quirks included, percent, at {budget} tokens"
    return Table(f"{suite}: LongMemEval's own measures", note, columns, tuple(rows))


def of_suite(records: Sequence[Record], ingests: Sequence[Ingest], suite: str) -> list[Table]:
    """Return every table of a suite that has rows."""
    columns = budgets(records, suite)
    middle = 1024 if 1024 in columns else columns[len(columns) // 2]
    found = [
        recall_table(records, suite),
        paired_table(records, suite),
        ablation_table(records, suite),
        crossed_table(records, suite),
        category_table(records, suite, middle),
        refusal_table(records, suite, middle),
        cost_table(records, ingests, suite),
    ]
    released = released_table(records, suite, middle)
    return [table for table in [*found, *([released] if released else [])] if table.rows]


def incomplete(records: Sequence[Record], suite: str) -> list[str]:
    """Return the systems left out of a suite's tables because questions are still missing."""
    whole = set(complete(records, suite))
    return [name for name in systems(records, suite) if name not in whole]
