"""The tables of a report, byte for byte, from records made for the test.

The expected page lies in ``report/tables.html``. Set ``EVICORTEX_UPDATE_GOLDEN=1`` to write it
anew, and read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks import evidence_tables, report, tables
from benchmarks.results import Ingest, Record
from benchmarks.tuning import Trial

GOLDEN = Path(__file__).parent / "report" / "tables.html"
QUALITY = {
    "bm25": 2,
    "hybrid chunks": 3,
    "turns under the hybrid's retriever": 4,
    "chunks under evicortex's retriever": 4,
    "evicortex": 6,
    "evicortex, ranker off": 5,
    "evicortex, ranker off, time off": 4,
}


def answered(suite: str, system: str, query: int, budget: int) -> Record:
    """Return a record: more questions are answered with quality and budget; every fifth cannot be."""
    answerable = query % 5 != 0
    good = answerable and query % 7 < QUALITY[system] * budget // 1024
    return Record(
        suite=suite,
        conversation=f"c{query % 3}",
        query=f"q{query}",
        system=system,
        budget=budget,
        category="multi-hop" if query % 2 else "temporal",
        answerable=answerable,
        counted=answerable,
        status="failed" if (system, query) == ("bm25", 3) else "ok",
        error=None,
        pack_sha256="",
        tokens=budget - query,
        items=3,
        gold=1,
        gold_ranks=(1 if good else None,),
        refused=system.startswith("evicortex") and query % 4 == 0,
        probability=0.9 - 0.8 * (query % 5 == 0) if system == "evicortex" else None,
        values={"strict": float(good)},
        costs={"scored": 100.0 * QUALITY[system], "embedded": 1.0, "rerank_pairs": 0.0},
        cpu_ms=QUALITY[system] + query / 10,
        embed_cpu_ms=1.0,
        signals={"top": float(query % 5 > 0) + query % 3},
    )


def records() -> list[Record]:
    """Return sixty questions of two systems and their ablations, at one or two budgets."""
    return [
        answered("locomo", system, query, budget)
        for system in QUALITY
        for budget in ((1024,) if "ranker off" in system else (512, 1024))
        for query in range(60)
    ]


def ingests() -> list[Ingest]:
    """Return what taking in cost each system."""
    return [
        Ingest("locomo", "all", name, 500, 2.0 * quality, 400 + quality, 100.0 + quality, 1.5)
        for name, quality in QUALITY.items()
    ]


def seeded() -> list[Record]:
    """Return two seeds of a synthetic stream."""
    return [
        answered(f"synthetic, seed {seed}", system, query + seed, 1024)
        for seed in (0, 1)
        for system in ("bm25", "evicortex")
        for query in range(20)
    ]


def trials() -> list[Trial]:
    """Return two trials of each system, the first as shipped."""
    plan = {"budgets": [512, 1024], "every": 3, "seed": 0}
    return [
        Trial(system, number, {"k": number} if number else {}, {"c0": share, "c1": 0.5},
              {"c0": 10, "c1": 30}, 1.0, plan, number == 0)
        for system, shares in (("hybrid chunks", (0.4, 0.6)), ("evicortex", (0.8, 0.7)))
        for number, share in enumerate(shares)
    ]  # fmt: skip


def page() -> str:
    """Return every table of the report, one after another."""
    found = tables.of_suite(records(), ingests(), "locomo")
    together = tables.pooled(seeded())
    (name,) = tables.suites(together)
    found.append(tables.recall_table(together, name))
    found.append(evidence_tables.tuning_table(trials()))
    return "\n".join(report.render(table).replace("<tr>", "\n<tr>") for table in found) + "\n"


def test_tables_are_what_they_always_were():
    made = page()
    if os.environ.get("EVICORTEX_UPDATE_GOLDEN"):
        GOLDEN.write_text(made, encoding="utf-8")
    assert made == GOLDEN.read_text(encoding="utf-8")


def test_every_kind_of_table_is_in_the_golden_page():
    titles = [table.title for table in tables.of_suite(records(), ingests(), "locomo")]
    assert titles == [
        "locomo: recall within a budget",
        "locomo: paired differences",
        "locomo: ablations",
        "locomo: representation and retriever crossed",
        "locomo: by category",
        "locomo: abstention, retrieval only",
        "locomo: compute",
    ]
