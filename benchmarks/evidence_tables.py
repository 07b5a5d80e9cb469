"""Tables of what is measured apart from the runs: search over size, extraction, tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import tuning
from benchmarks.gates import Gate
from benchmarks.tables import NOT_ASKED, Table


def gates_table(found: Sequence[Gate]) -> Table:
    """Return every gate with its figure and the record that decided it."""
    rows = [
        (gate.key, gate.document, gate.question, gate.status, gate.figure, gate.record)
        for gate in found
    ]
    columns = ("gate", "document", "asks for", "state", "figure", "record")
    note = "decided by the records in this folder; what a gate does not allow is not claimed"
    return Table("Gates", note, columns, tuple(rows))


def scale_table(record: Mapping[str, Any]) -> Table:
    """Return exact search over size, as shares of the float32 scan of the same run."""
    rows = []
    for each in record["points"]:
        own, ann = each["certified"], each["ann"]
        rows.append(
            (
                f"{each['size']:,} {each['shape']}",
                f"{each['float32']['p50_ms']:.3f} / {each['float32']['p95_ms']:.3f}",
                f"{own['p50_ms']:.3f} / {own['p95_ms']:.3f}",
                _ratio(own["ratio"]),
                f"{own['identical']} of {each['queries']}",
                f"{own['rescored_p50']:,.0f} / {own['rescored_p95']:,.0f}",
                _ratio(ann["ratio"]) if ann else NOT_ASKED,
                _ratio(ann["recall"], places=3) if ann else NOT_ASKED,
                f"{ann['build_cpu_s']:.1f}" if ann else NOT_ASKED,
            )
        )
    columns = (
        "vectors",
        "float32 CPU ms p50 / p95",
        "certified int8 CPU ms p50 / p95",
        "share of float32",
        "same ids",
        "rescored p50 / p95",
        "ANN share of float32",
        f"ANN recall@{record['limit']}",
        "ANN build CPU s",
    )
    anns = {each["ann"]["index"].split()[0] for each in record["points"] if each["ann"]}
    note = (
        f"best {record['limit']} of seeded synthetic unit vectors, {record['dimensions']} "
        f"dimensions, seed {record['seed']}, kernel {record['kernel']}, one thread, "
        f"{record['machine']}, commit {record['git_commit'][:12]}; 95 % bootstrap by query"
        + (f"; ANN is {', '.join(anns)}, no part of EviCortex" if anns else "")
    )
    return Table("Exact search over size", note, columns, tuple(rows))


def _ratio(found: Mapping[str, float], *, places: int = 2) -> str:
    mean, low, high = (f"{found[key]:.{places}f}" for key in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def extraction_table(sets: Sequence[Mapping[str, Any]]) -> Table:
    """Return accuracy and cost of extraction, from the records of ``run_extraction``."""
    rows = []
    for found in sets:
        for name, each in found["systems"].items():
            match = each["matches"][each["headline"]]
            rows.append(
                (
                    f"{found['data']}, {found['dialogues']} dialogues, {found['gold']} claims",
                    name,
                    _rated(match["precision_judged"]),
                    _rated(match["recall"]),
                    f"{each['false_positives_per_100_silent_turns']['all']['value']:.1f}",
                    _rated(each["contradictions"]),
                    _kinds(each["supersession"]),
                    _kinds(each["temporal_boundaries"]),
                    f"{100 * each['abstention_rate']['value']:.1f}",
                    f"{each['cost_per_1000_turns']['cpu_s']:.2f}",
                )
            )
    columns = (
        "data",
        "extractor",
        "precision, judged",
        "recall of all gold",
        "false positives per 100 silent turns",
        "contradictions",
        "supersession",
        "dates",
        "abstained",
        "CPU s per 1,000 turns",
    )
    note = "percent with 95 % intervals by dialogue and the numbers behind them; human labels"
    return Table("Claims from raw text", note, columns, tuple(rows))


def _kinds(found: Mapping[str, Any] | None) -> str:
    """Return counts by kind; nothing where the data cannot tell."""
    counts = {name: each for name, each in (found or {}).items() if isinstance(each, int)}
    return ", ".join(f"{name} {each}" for name, each in counts.items()) or NOT_ASKED


def _rated(found: Mapping[str, float]) -> str:
    value, low, high = (f"{100 * found[key]:.1f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}] ({found['count']:.0f}/{found['of']:.0f})"


def tuning_table(trials: Sequence[tuning.Trial]) -> Table:
    """Return what the recorded trials of each system found."""
    rows = []
    for name in dict.fromkeys(trial.system for trial in trials):
        mine = [trial for trial in trials if trial.system == name]
        found = tuning.choose(mine)
        shipped = [str(trial.number) for trial in mine if trial.shipped]
        rows.append(
            (
                name,
                str(len(mine)),
                f"{100 * found.default:.1f}",
                ", ".join(shipped) or NOT_ASKED,
                f"{100 * found.left_out:.1f}",
                f"{100 * found.best.mean():.1f}",
                str(found.best.number),
                ", ".join(f"{key} {value}" for key, value in found.best.config.items())
                or "as shipped",
            )
        )
    columns = (
        "system",
        "trials",
        "shipped",
        "which is trial",
        "left one out",
        "best",
        "which is trial",
        "its changes",
    )
    plan = trials[0].plan
    number = sum(trials[0].questions.values())
    note = (
        f"strict recall, percent, mean of budgets {plan.get('budgets')}, n = {number} (every "
        f"{plan.get('every')}. question), drawn with seed {plan.get('seed')}; left one out: each "
        "conversation under the trial that is best on the others. The comparator runs with its "
        "best trial, EviCortex as it is shipped"
    )
    return Table("Trials", note, columns, tuple(rows))
