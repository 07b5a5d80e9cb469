"""What gates ask of records that are no runs: trials, search over size, extraction, readers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gate_checks import COMPARATOR, NOT_RUN, OWN, RULES, SIZES, Run, Verdict
from benchmarks.tuning import check_equal, read_trials


def tuned_equally(folder: Path, runs: Sequence[Run]) -> Verdict:
    """The comparator and EviCortex had the same number of recorded trials."""
    path = folder / "tuning.jsonl"
    trials = read_trials(path)
    if not trials:
        return NOT_RUN
    try:
        number = check_equal(trials)
    except ValueError as error:
        return "failed", str(error), path.name, ""
    wording = f"The comparator was tuned with the same {number} recorded trials as EviCortex."
    return "passed", f"{number} trials each", path.name, wording


def smoke(folder: Path, runs: Sequence[Run]) -> Verdict:
    """The semantic path ran end to end on the synthetic fixture."""
    path = folder / "prototype-c-semantic-smoke.json"
    if not path.is_file():
        return NOT_RUN
    report = json.loads(path.read_text(encoding="utf-8"))
    failed = sum(entry["failed"] for entry in report["systems"].values())
    passed = report["encoder_is_semantic"] and failed == 0
    figure = f"{report['questions']} questions, {failed} failures"
    return "passed" if passed else "failed", figure, path.name, str(report["allowed_claim"])


def vector_scale(folder: Path, runs: Sequence[Run]) -> Verdict:
    """Exact search at every size returned the reference's ids; at the largest beside an ANN."""
    path = folder / "vector-scale.json"
    if not path.is_file():
        return NOT_RUN
    record = json.loads(path.read_text(encoding="utf-8"))
    points = {p["size"]: p for p in record["points"] if p["shape"] == "clustered"}
    missing = set(SIZES) - set(points)
    same = all(p["certified"]["identical"] == p["queries"] for p in record["points"])
    ann = points.get(SIZES[-1], {}).get("ann")
    if missing or not same or not ann:
        why = f"missing {sorted(missing)}" if missing else "ids differ" if not same else "no ANN"
        return "failed", why, path.name, ""
    shares = ", ".join(f"{points[size]['certified']['ratio']['mean']:.2f}" for size in SIZES)
    figure = (
        f"ids of the float32 scan on every query; share of its CPU time {shares} at "
        f"{', '.join(f'{size:,}' for size in SIZES)}; at {SIZES[-1]:,} {ann['index'].split()[0]} "
        f"takes {ann['ratio']['mean']:.2f} of it with recall {ann['recall']['mean']:.3f} "
        f"[{ann['recall']['low']:.3f}, {ann['recall']['high']:.3f}]; it is faster than the "
        f"certified scan {_crossovers(record['points'])}"
    )
    wording = (
        "Over clustered synthetic vectors of 384 dimensions the certified int8 scan returned "
        f"exactly the float32 scan's ids at 1,000, 10,000 and 100,000 rows, in {shares} of its "
        "CPU time."
    )
    return "passed", figure, path.name, wording


def _crossovers(points: Sequence[dict[str, Any]]) -> str:
    """Say for each shape from which size on the ANN index takes less CPU time."""
    told = []
    for shape in dict.fromkeys(point["shape"] for point in points):
        faster: list[int] = []
        for point in sorted((p for p in points if p["shape"] == shape), key=lambda p: -p["size"]):
            if not point["ann"] or point["ann"]["p50_ms"] >= point["certified"]["p50_ms"]:
                break
            faster.append(point["size"])
        told.append(f"from {min(faster):,} {shape} on" if faster else f"at no size of {shape}")
    return ", ".join(told)


def extraction(folder: Path, runs: Sequence[Run]) -> Verdict:
    """A record of extraction on human labels: counts, intervals and cost, apart from retrieval."""
    paths = sorted((folder / "extraction").glob("*.json"))
    # What claims do to recall is recorded beside it, and is no figure on labels.
    read = {path.name: json.loads(path.read_text("utf-8")).get("data") for path in paths}
    labelled = {name: sets for name, sets in read.items() if sets is not None}
    if not labelled:
        return NOT_RUN
    sets = [each for found in labelled.values() for each in found]
    names = ", ".join(f"extraction/{name}" for name in labelled)
    told = [_extracted(each) for each in sets if RULES in each["systems"]]
    dated = [
        s for s in sets if RULES in s["systems"] and all(s["systems"][RULES].get(k) for k in ERRORS)
    ]
    if not told or not all(told) or not dated:
        return "failed", "counts, intervals, kinds of error or cost are missing", names, ""
    figure = "; ".join(told)
    wording = f"Claims by the rules, against human labels, apart from retrieval: {figure}."
    return "passed", figure, names, wording


ERRORS = ("supersession", "temporal_boundaries")
"""Kinds of error that only data with states and dates can show; one data set must have them."""


def _extracted(found: dict[str, Any]) -> str:
    """Return the figures of one data set in words; empty when one is missing."""
    each = found["systems"][RULES]
    try:
        match = each["matches"][each["headline"]]
        right, recall = match["precision_judged"], match["recall"]
        cost = each["cost_per_1000_turns"]["cpu_s"]
        silent = each["false_positives_per_100_silent_turns"]["all"]["value"]
        against = _counted(each["contradictions"])
        shown = [_counted(rate) for rate in (right, recall)]
        labels = " and ".join(sorted(set(found["files"].values())))
    except KeyError:
        return ""
    return (
        f"{found['data']} ({labels}, {found['dialogues']} dialogues) precision {shown[0]}, recall "
        f"{shown[1]}, {silent:.1f} false positives per 100 silent turns, contradictions {against}, "
        f"{cost:.2f} CPU s per 1,000 turns"
    )


def _counted(rate: dict[str, float]) -> str:
    value, low, high = (f"{100 * rate[key]:.1f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}] of {rate['of']:.0f}"


def shared_reader(folder: Path, runs: Sequence[Run]) -> Verdict:
    """One pinned reader with its exact tokenizer answered from every system's packs."""
    path = folder / "shared-reader.json"
    if not path.is_file():
        return NOT_RUN
    record = json.loads(path.read_text(encoding="utf-8"))
    wanted = {OWN, COMPARATOR, "no memory", "oracle evidence"}
    missing = wanted - set(record["systems"])
    exact = bool(record["reader"] and record["tokenizer_is_exact"])
    if missing or not exact:
        why = f"missing {', '.join(sorted(missing))}" if missing else "reader or tokenizer unpinned"
        return "failed", why, path.name, ""
    own = record["systems"][OWN]
    figure = f"{record['measure']} {_counted(own)} with {record['reader']}"
    wording = f"With the reader {record['reader']} on {record['data']}: {figure}."
    return "passed", figure, path.name, wording


def ann_scale(folder: Path, runs: Sequence[Run]) -> Verdict:
    """The recall of EviCortex's own ANN layer against exact cosine at 10,000 and 100,000 rows."""
    path = folder / "ann-scale.json"
    if not path.is_file():
        return NOT_RUN
    record = json.loads(path.read_text(encoding="utf-8"))
    recalls = {point["size"]: point["recall"] for point in record["points"]}
    if not set(SIZES[1:]) <= set(recalls) or not record["layer"]:
        return "failed", f"sizes {sorted(recalls)}", path.name, ""
    shown = ", ".join(f"{recalls[size]['mean']:.3f} at {size:,}" for size in SIZES[1:])
    return "passed", f"{record['layer']}: recall {shown}", path.name, ""
