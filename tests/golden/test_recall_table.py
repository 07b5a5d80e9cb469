"""The recall ladder's table, byte for byte, from a record made for the test.

The expected text lies in ``report/recall.txt``. Set ``EVICORTEX_UPDATE_GOLDEN=1`` to write it
anew, and read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.recall_tables import render

GOLDEN = Path(__file__).parent / "report" / "recall.txt"
BUDGETS = (512, 1024)
CATEGORIES = {"multi-hop": 3, "single-hop": 5}


def interval(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.125, "high": mean + 0.125, "n": 8}


def cell(mean: float, *, grouped: bool = True) -> dict[str, object]:
    return {
        "all": interval(mean),
        "by_conversation": interval(mean) if grouped else None,
        "categories": {name: interval(mean - 0.0625 * n) for n, name in enumerate(CATEGORIES)},
    }


def record(*, grouped: bool) -> dict[str, object]:
    systems = {"rrf-k60": 0.5, "evicortex-hashing": 0.625, "evicortex": 0.875}
    return {
        "suite": "locomo, no dates",
        "label": "dev6",
        "data": {"locomo": "ab" * 32},
        "measure": "all evidence, strict",
        "n": 8,
        "notes": ["made by rule from the conversations"],
        "budgets": list(BUDGETS),
        "categories": CATEGORIES if grouped else {"user fact": 8},
        "systems": {
            name: {
                "diagnostic": name == "evicortex-hashing",
                "cost": {"query_ms": {budget: {"p50": 1.25, "p95": 4.5} for budget in BUDGETS}},
                "budgets": {budget: cell(mean, grouped=grouped) for budget in BUDGETS},
            }
            for name, mean in systems.items()
        },
        "differences": {
            "evicortex over rrf-k60": {budget: cell(0.375, grouped=grouped) for budget in BUDGETS}
        },
    }


def test_the_table_is_the_golden_one() -> None:
    text = "\n\n\n".join(render(record(grouped=grouped)) for grouped in (True, False)) + "\n"
    if os.environ.get("EVICORTEX_UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text("utf-8")
