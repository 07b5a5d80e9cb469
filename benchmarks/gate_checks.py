"""What each gate asks of the records. A check answers; it never makes evidence.

A check returns passed, failed or not run, the figure, the record that proves it, and the wording
that it would allow. Where no record exists yet, the check says what it will look for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks import calibration, tables
from benchmarks.results import Record
from benchmarks.systems.catalog import ABLATION_BASE

Status = Literal["passed", "failed", "not run"]
CURVE = (512, 1024, 2048, 4096, 8192)
OWN, COMPARATOR = "evicortex", "hybrid chunks"
PLAIN = "rrf-k60"
RERANKED = "evicortex, top-16 cross-encoder"
RULES = "evicortex/rules"
EXTERNAL = ("locomo", "realtalk")
SIZES = (1_000, 10_000, 100_000)
TOP = 16
CALIBRATION_GOAL = 0.05
"""The greatest mean gap between probability and share that may be called calibrated."""


@dataclass(frozen=True, slots=True)
class Run:
    """One committed run: where it lies, its manifest and its records."""

    folder: Path
    manifest: dict[str, Any]
    records: Sequence[Record]
    _by_suite: dict[str, list[Record]] = field(default_factory=dict)

    def suites(self) -> Mapping[str, Sequence[Record]]:
        """Return the records by suite."""
        if not self._by_suite:
            for record in self.records:
                self._by_suite.setdefault(record.suite, []).append(record)
        return self._by_suite


Verdict = tuple[Status, str, str, str]
"""Status, figure, the record that proves it, and the wording that it would allow."""

Check = Callable[[Path, Sequence[Run]], Verdict]
NOT_RUN: Verdict = ("not run", "", "", "")


def _suites(runs: Sequence[Run], prefix: str) -> list[tuple[Run, str]]:
    return [(run, s) for run in runs for s in run.manifest["suites"] if s.startswith(prefix)]


def pool_of(runs: Sequence[Run], suite: str) -> list[Record]:
    """Return the records of a suite over all runs that used the same data."""
    return [r for run in runs for r in run.suites().get(suite, ())]


def synthetic_curves(folder: Path, runs: Sequence[Run]) -> Verdict:
    """At least five seeds, at every budget of the curve, exact tokens."""
    found = _suites(runs, "synthetic")
    whole = [
        (run, suite)
        for run, suite in found
        if set(CURVE) <= set(tables.budgets(run.suites().get(suite, ()), suite))
        and "evicortex" in tables.complete(run.suites().get(suite, ()), suite)
        and run.manifest["token_counter_is_exact"]
    ]
    if not found:
        return NOT_RUN
    figure = f"{len(whole)} seeds complete at {', '.join(map(str, CURVE))} tokens"
    status: Status = "passed" if len(whole) >= 5 else "failed"
    names = sorted({str(run.folder.relative_to(folder)) for run, _ in found})
    wording = f"Synthetic curves over {len(whole)} seeds were measured with exact token counts."
    return status, figure, ", ".join(names), wording


def controls_present(folder: Path, runs: Sequence[Run]) -> Verdict:
    """No memory, full history, oracle, dense, the released retriever and the hybrid were run."""
    wanted = {
        "no memory",
        "full history",
        "oracle evidence",
        "dense",
        "longmemeval retriever, turn",
        "longmemeval retriever, session",
        COMPARATOR,
    }
    for suite in sorted({suite for run in runs for suite in run.manifest["suites"]}):
        if suite.startswith("locomo"):
            pool = pool_of(runs, suite)
            missing = wanted - set(tables.complete(pool, suite))
            where = where_of(folder, runs, suite)
            if not missing:
                return "passed", f"all {len(wanted)} on {suite}", where, ""
            return "failed", f"missing on {suite}: {', '.join(sorted(missing))}", where, ""
    return NOT_RUN


def where_of(folder: Path, runs: Sequence[Run], suite: str) -> str:
    """Return the folders of the runs that have the suite."""
    return ", ".join(
        str(run.folder.relative_to(folder)) for run in runs if suite in run.manifest["suites"]
    )


def external_comparison(folder: Path, runs: Sequence[Run]) -> Verdict:
    """EviCortex less the strongest comparator on every external data set, by conversation.

    The learned ranker was trained on the development conversations, so that on them the
    difference must be above 0 without it as well.
    """
    found = [
        compared
        for suite in EXTERNAL
        if {OWN, COMPARATOR} <= set(tables.complete(pool_of(runs, suite), suite))
        for compared in [_compared(runs, suite)]
        if compared is not None
    ]
    if not found:
        return NOT_RUN
    good = all(passed for passed, _, _ in found)
    where = {
        name: None
        for suite in EXTERNAL
        for name in where_of(folder, runs, suite).split(", ")
        if name
    }
    figure = "; ".join(told for _, told, _ in found)
    return "passed" if good else "failed", figure, ", ".join(where), " ".join(w for *_, w in found)


def _compared(runs: Sequence[Run], suite: str) -> tuple[bool, str, str] | None:
    """Return whether one data set passes, its figure, and the wording."""
    pool = pool_of(runs, suite)
    whole = tables.complete(pool, suite)
    differences = {
        other: tables.difference(pool, suite, OWN, other, 1024, "conversation")
        for other in (COMPARATOR, PLAIN)
        if other in whole
    }
    known = {other: each for other, each in differences.items() if each is not None}
    if COMPARATOR not in known:
        return None
    other = min(known, key=lambda name: known[name].mean)
    found = known[other]
    manifests = [run.manifest for run in runs if suite in run.manifest["suites"]]
    good = found.low > 0 and all(manifest["encoder_is_semantic"] for manifest in manifests)
    figure = (
        f"{suite}: {tables.signed(found)} points to {other} at 1024 tokens, n = {found.n}, by "
        "conversation"
    )
    label, told = manifests[0]["suites"][suite]["label"], "."
    if any(manifest["split"] == "dev" for manifest in manifests):
        plain = tables.difference(pool, suite, ABLATION_BASE, other, 1024, "conversation")
        without = "not run" if plain is None else tables.signed(plain)
        figure += f"; without the ranker, which was trained on them, {without}"
        good = good and plain is not None and plain.low > 0
        label += ", development, on which its ranker was trained"
        told = f"; without the ranker {without}."
    wording = (
        f"On {suite} ({label}), with the same encoder and 1,024 tokens, EviCortex packs all gold "
        f"evidence {tables.signed(found)} points more often than {other}, the strongest of the "
        f"tuned hybrid chunk comparator and plain rank fusion{told}"
    )
    return good, figure, wording


def official_split(folder: Path, runs: Sequence[Run]) -> Verdict:
    """An external conversation benchmark, its official file byte for byte, both systems whole."""
    for suite in sorted({s for run in runs for s in run.manifest["suites"]}):
        labels = [
            r.manifest["suites"][suite]["label"] for r in runs if suite in r.manifest["suites"]
        ]
        if not all(str(label).startswith("official") for label in labels):
            continue
        whole = {OWN, COMPARATOR} <= set(tables.complete(pool_of(runs, suite), suite))
        figure = f"{suite}: {labels[0]}"
        return "passed" if whole else "failed", figure, where_of(folder, runs, suite), ""
    return NOT_RUN


def crossed(folder: Path, runs: Sequence[Run]) -> Verdict:
    """Representation and retriever were crossed on one data set."""
    names = {"turns under the hybrid's retriever", "chunks under evicortex's retriever"}
    for suite in ("locomo", "realtalk"):
        pool = pool_of(runs, suite)
        if names <= set(tables.complete(pool, suite)):
            return "passed", f"both on {suite}", where_of(folder, runs, suite), ""
    return NOT_RUN


def official_longmemeval(folder: Path, runs: Sequence[Run]) -> Verdict:
    """The official S artifact, byte for byte, under a preregistered test configuration."""
    for run, suite in _suites(runs, "longmemeval"):
        entry = run.manifest["suites"][suite]
        if str(entry["label"]).startswith("official"):
            frozen = run.manifest["prereg_sha256"]
            where = str(run.folder.relative_to(folder))
            status: Status = "passed" if frozen and run.manifest["split"] == "test" else "failed"
            return status, f"{entry['label']}, preregistered {frozen}", where, ""
    return NOT_RUN


def calibrated(folder: Path, runs: Sequence[Run]) -> Verdict:
    """The refusal that the packs themselves give is a calibrated probability.

    It must be the product's own: its Brier score is below that of the constant share (by
    conversation) and its calibration error at most ``CALIBRATION_GOAL``. What the lab can fit on
    the signals of the packs is told beside it, and passes nothing.
    """
    for suite in EXTERNAL:
        pool = [r for r in pool_of(runs, suite) if r.system == OWN]
        own = calibration.own(pool, suite, OWN, 1024)
        found = own or calibration.left_out(pool, suite, OWN, 1024)
        if found is None:
            continue
        gain, error = found.gain(), found.calibration_error()
        figure = (
            f"AUROC {tables.fraction(found.auroc(by_conversation=True))}, Brier gain over the "
            f"constant share {tables.fraction(gain)}, calibration error {error:.3f}, n = {gain.n}, "
            "by conversation"
        )
        where = where_of(folder, runs, suite)
        if own is None:
            told = "packs give no probability; fitted by the lab on other conversations: "
            return "failed", f"{told}{figure}", where, ""
        status: Status = "passed" if gain.low > 0 and error <= CALIBRATION_GOAL else "failed"
        wording = f"On {suite} (development) the probability of support has {figure}."
        return status, figure, where, wording
    return NOT_RUN


def cross_encoder(folder: Path, runs: Sequence[Run]) -> Verdict:
    """No reranker against a pinned cross-encoder over at most 16, both whole on one data set."""
    for suite in EXTERNAL:
        pool = pool_of(runs, suite)
        pinned = [r.manifest["reranker"] for r in runs if r.manifest.get("reranker")]
        if not pinned or not {OWN, RERANKED} <= set(tables.complete(pool, suite)):
            continue
        pairs = max(r.costs.get("rerank_pairs", 0) for r in pool if r.system == RERANKED)
        found = tables.difference(pool, suite, RERANKED, OWN, 1024, "conversation")
        if found is None or not 0 < pairs <= TOP:
            return "failed", f"{pairs:.0f} pairs reranked", where_of(folder, runs, suite), ""
        figure = f"{tables.signed(found)} points at 1024 tokens with {pinned[0]}, n = {found.n}"
        return "passed", figure, where_of(folder, runs, suite), ""
    return NOT_RUN
