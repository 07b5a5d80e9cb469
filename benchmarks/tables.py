"""Tables of a report, derived from records alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.metrics.intervals import Interval, bootstrap, paired
from benchmarks.results import Ingest, Record, Slice, select

RESAMPLES = 2_000
HEADLINES = {"locomo-plus": "any"}
REFERENCES = ("hybrid chunks", "BM25 + hashing diagnostic", "bm25")
RELEASED = ("turn/recall_all", "turn/ndcg_any", "session/recall_all", "session/ndcg_any")


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


def _slice(records: Sequence[Record], suite: str, system: str, budget: int) -> Slice:
    return select(records, suite=suite, system=system, budget=budget)


def recall_table(records: Sequence[Record], suite: str) -> Table:
    """Return the headline measure by system and budget, with intervals by question."""
    measure = headline(suite)
    columns = budgets(records, suite)
    rows = []
    for name in complete(records, suite):
        cells = [
            percent(bootstrap(found.values(measure), resamples=RESAMPLES))
            for found in (_slice(records, suite, name, budget) for budget in columns)
            if found.records
        ]
        rows.append((name, *cells))
    count = len(_slice(records, suite, rows[0][0], columns[0]).records) if rows else 0
    note = (
        f"{measure} all-evidence recall after packing, percent, n = {count}, "
        "95 % bootstrap by question"
    )
    return Table(f"{suite}: recall within a budget", note, ("system", *_at(columns)), tuple(rows))


def _at(columns: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"@{budget}" for budget in columns)


def paired_table(records: Sequence[Record], suite: str) -> Table:
    """Return EviCortex less each reference, by question and by conversation."""
    measure = headline(suite)
    columns = budgets(records, suite)
    named = complete(records, suite)
    rows: list[tuple[str, ...]] = []
    for own in [name for name in named if name.startswith("evicortex")]:
        for base in [name for name in REFERENCES if name in named]:
            for how in ("question", "conversation"):
                cells = [
                    signed(_difference(records, suite, own, base, budget, measure, how))
                    for budget in columns
                ]
                rows.append((f"{own} - {base}", how, *cells))
    note = f"{measure}, points; paired bootstrap, 95 %; an interval off 0 is a difference"
    columns_ = ("difference", "resampled by", *_at(columns))
    return Table(f"{suite}: paired differences", note, columns_, tuple(rows))


def _difference(
    records: Sequence[Record],
    suite: str,
    own: str,
    base: str,
    budget: int,
    measure: str,
    how: str,
) -> Interval:
    mine, other = _slice(records, suite, own, budget), _slice(records, suite, base, budget)
    clusters = mine.clusters() if how == "conversation" else None
    return paired(
        mine.values(measure), other.values(measure), clusters=clusters, resamples=RESAMPLES
    )


def category_table(records: Sequence[Record], suite: str, budget: int) -> Table:
    """Return the headline measure by category at one budget."""
    measure = headline(suite)
    categories = sorted({r.category for r in records if r.suite == suite and r.counted})
    sizes = {
        category: len({r.query for r in records if r.category == category and r.suite == suite})
        for category in categories
    }
    rows = []
    for name in complete(records, suite):
        cells = []
        for category in categories:
            found = select(records, suite=suite, system=name, budget=budget, category=category)
            cells.append(f"{100 * statistics.fmean(found.values(measure)):.1f}")
        rows.append((name, *cells))
    columns = tuple(f"{category} (n={sizes[category]})" for category in categories)
    note = f"{measure}, percent, at {budget} tokens"
    return Table(f"{suite}: by category", note, ("system", *columns), tuple(rows))


def refusal_table(records: Sequence[Record], suite: str, budget: int) -> Table:
    """Return retrieval-only abstention: refusals of unanswerable and of answerable questions."""
    rows = []
    for name in complete(records, suite):
        mine = [r for r in records if (r.suite, r.system, r.budget) == (suite, name, budget)]
        none = [r for r in mine if not r.answerable]
        some = [r for r in mine if r.counted]
        if none:
            rows.append((name, _share(none), _share(some)))
    note = f"share refused at {budget} tokens, no reader; the first should be high, the other low"
    columns = ("system", "unanswerable refused", "answerable refused")
    return Table(f"{suite}: abstention, retrieval only", note, columns, tuple(rows))


def _share(records: Sequence[Record]) -> str:
    refused = sum(r.refused for r in records)
    return f"{refused}/{len(records)} ({100 * refused / max(len(records), 1):.1f} %)"


def cost_table(records: Sequence[Record], ingests: Sequence[Ingest], suite: str) -> Table:
    """Return compute on both sides: ingestion and questions."""
    rows = []
    for name in complete(records, suite):
        mine = [r for r in records if r.suite == suite and r.system == name]
        slowest: dict[tuple[str, str], float] = {}
        for r in mine:
            key = (r.conversation, r.query)
            slowest[key] = max(slowest.get(key, 0.0), r.cpu_ms)
        times = sorted(slowest.values())
        taken = [i for i in ingests if i.suite == suite and i.system == name]
        rows.append(
            (
                name,
                f"{sum(i.cpu_s for i in taken):.1f}",
                f"{sum(i.embedded for i in taken):,}",
                f"{max((i.peak_rss_mib for i in taken), default=0.0):,.0f}",
                f"{statistics.fmean(r.costs.get('scored', 0.0) for r in mine):,.0f}",
                f"{statistics.fmean(r.costs.get('embedded', 0.0) for r in mine):.0f}",
                f"{statistics.fmean(r.costs.get('rerank_pairs', 0.0) for r in mine):.0f}",
                f"{times[len(times) // 2]:.1f}",
                f"{times[min(len(times) - 1, int(0.95 * len(times)))]:.1f}",
                str(sum(r.status == "failed" for r in mine)),
            )
        )
    columns = (
        "system",
        "ingest CPU s",
        "texts embedded",
        "peak RSS MiB so far",
        "scored per question",
        "embedded per question",
        "rerank pairs",
        "CPU ms p50",
        "CPU ms p95",
        "failed",
    )
    note = (
        "Embedded texts are those a system asks for, whether or not another system had asked "
        "before; ingest CPU profits from vectors made earlier in the run. CPU of a question is its "
        "slowest budget. The peak is that of the process, all systems so far."
    )
    return Table(f"{suite}: compute", note, columns, tuple(rows))


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
