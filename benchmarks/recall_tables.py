"""The recall ladder's record as plain tables, in percent and points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAME, _CELL = 34, 22


def render(found: Mapping[str, Any]) -> str:
    """Return one suite's figures: recall, differences, categories, CPU."""
    budgets = found["budgets"]
    data = ", ".join(f"{name} {digest[:16]}" for name, digest in found["data"].items())
    lines = [
        f"{found['suite']} ({found['label']}; {data}; n={found['n']}; {found['measure']})",
        *found["notes"],
        "",
        _row("recall, 95 % by question", [f"@{budget}" for budget in budgets]),
    ]
    systems = found["systems"]
    for name, entry in systems.items():
        cells = [_share(entry["budgets"][budget]["all"]) for budget in budgets]
        lines.append(_row(name + ("*" if entry["diagnostic"] else ""), cells))
    if any(entry["diagnostic"] for entry in systems.values()):
        lines.append("* feature hashing is a diagnostic encoder, no semantic model")
    lines += _differences(found)
    lines += _categories(found)
    lines += ["", _row("CPU ms a query, p50 / p95", [f"@{budget}" for budget in budgets])]
    for name, entry in systems.items():
        times = [entry["cost"]["query_ms"][budget] for budget in budgets]
        lines.append(_row(name, [f"{each['p50']:.1f} / {each['p95']:.1f}" for each in times]))
    return "\n".join(lines)


def _differences(found: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, by_budget in found["differences"].items():
        cells = list(by_budget.values())
        lines.append(_row(name, [_points(each["all"]) for each in cells]))
        if all(each["by_conversation"] for each in cells):
            grouped = [_points(each["by_conversation"]) for each in cells]
            lines.append(_row("  by conversation", grouped))
    return ["", "differences in points, paired", *lines] if lines else []


def _categories(found: Mapping[str, Any]) -> list[str]:
    if len(found["categories"]) < 2:
        return []
    lines: list[str] = []
    for category, number in found["categories"].items():
        lines += ["", f"{category}, n={number}"]
        for name, entry in found["systems"].items():
            cells = [each["categories"][category] for each in entry["budgets"].values()]
            lines.append(_row(name, [_share(each) for each in cells]))
        for name, by_budget in found["differences"].items():
            cells = [each["categories"][category] for each in by_budget.values()]
            lines.append(_row(name, [_points(each) for each in cells]))
    return lines


def _row(name: str, cells: list[str]) -> str:
    return f"{name:{_NAME}}" + "".join(cell.rjust(_CELL) for cell in cells)


def _share(cell: Mapping[str, float]) -> str:
    return f"{100 * cell['mean']:.1f} [{100 * cell['low']:.1f}, {100 * cell['high']:.1f}]"


def _points(cell: Mapping[str, float]) -> str:
    return f"{100 * cell['mean']:+.1f} [{100 * cell['low']:+.1f}, {100 * cell['high']:+.1f}]"
