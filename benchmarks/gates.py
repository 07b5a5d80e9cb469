"""Evidence gates: what has been shown, by which record, and what may therefore be said.

Each gate of the two specification documents (Prototype B, Phase C) is passed, failed or not run.
``passed`` means that the evidence exists and says what the gate asks; the wording that a gate
allows is generated from its figures, and nothing else may be claimed in README or docs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from benchmarks import tables
from benchmarks.metrics.intervals import paired
from benchmarks.results import (
    MANIFEST,
    Record,
    read_manifest,
    read_records,
    select,
)
from benchmarks.tuning import check_equal, read_trials

Status = Literal["passed", "failed", "not run"]
CURVE = (512, 1024, 2048, 4096, 8192)
COMPARATOR = "hybrid chunks"


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate. ``record`` is the file that proves it; ``wording`` what it allows, if passed."""

    key: str
    document: str
    question: str
    status: Status
    figure: str
    record: str
    wording: str


@dataclass(frozen=True, slots=True)
class Run:
    """One committed run: where it lies, its manifest and its records."""

    folder: Path
    manifest: dict[str, Any]
    records: Sequence[Record]


Check = Callable[[Path, Sequence[Run]], tuple[Status, str, str, str]]
NOT_RUN: tuple[Status, str, str, str] = ("not run", "", "", "")


@lru_cache(maxsize=4)
def _runs(folder: Path) -> tuple[Run, ...]:
    places = sorted(path.parent for path in folder.rglob(MANIFEST))
    return tuple(Run(place, read_manifest(place), read_records(place)) for place in places)


def _suites(runs: Sequence[Run], prefix: str) -> list[tuple[Run, str]]:
    return [(run, s) for run in runs for s in run.manifest["suites"] if s.startswith(prefix)]


def _pool(runs: Sequence[Run], suite: str) -> list[Record]:
    """Return the records of a suite over all runs that used the same data."""
    return [r for run in runs if suite in run.manifest["suites"] for r in run.records]


def synthetic_curves(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
    """At least five seeds, at every budget of the curve, exact tokens."""
    found = _suites(runs, "synthetic")
    whole = [
        (run, suite)
        for run, suite in found
        if set(CURVE) <= set(tables.budgets(run.records, suite))
        and "evicortex" in tables.complete(run.records, suite)
        and run.manifest["token_counter_is_exact"]
    ]
    if not found:
        return NOT_RUN
    figure = f"{len(whole)} seeds complete at {', '.join(map(str, CURVE))} tokens"
    status: Status = "passed" if len(whole) >= 5 else "failed"
    names = sorted({str(run.folder.relative_to(folder)) for run, _ in found})
    wording = f"Synthetic curves over {len(whole)} seeds were measured with exact token counts."
    return status, figure, ", ".join(names), wording


def tuned_equally(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
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


def controls_present(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
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
            pool = _pool(runs, suite)
            missing = wanted - set(tables.complete(pool, suite))
            where = _where(folder, runs, suite)
            if not missing:
                return "passed", f"all {len(wanted)} on {suite}", where, ""
            return "failed", f"missing on {suite}: {', '.join(sorted(missing))}", where, ""
    return NOT_RUN


def _where(folder: Path, runs: Sequence[Run], suite: str) -> str:
    return ", ".join(
        str(run.folder.relative_to(folder)) for run in runs if suite in run.manifest["suites"]
    )


def external_comparison(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
    """EviCortex less the tuned comparator on external conversations, same encoder, by conversation."""
    for suite in ("locomo", "realtalk"):
        pool = _pool(runs, suite)
        if not {"evicortex", COMPARATOR} <= set(tables.complete(pool, suite)):
            continue
        own = select(pool, suite=suite, system="evicortex", budget=1024)
        other = select(pool, suite=suite, system=COMPARATOR, budget=1024)
        measure = tables.headline(suite)
        found = paired(
            own.values(measure),
            other.values(measure),
            clusters=own.clusters(),
            resamples=tables.RESAMPLES,
        )
        manifests = [run.manifest for run in runs if suite in run.manifest["suites"]]
        semantic = all(manifest["encoder_is_semantic"] for manifest in manifests)
        figure = f"{tables.signed(found)} points at 1024 tokens, n = {found.n}, by conversation"
        label = manifests[0]["suites"][suite]["label"]
        wording = (
            f"On {suite} ({label}, development), with the same encoder and 1,024 tokens, EviCortex "
            f"packs all gold evidence {tables.signed(found)} points more often than the tuned "
            "hybrid chunk comparator."
        )
        status: Status = "passed" if found.low > 0 and semantic else "failed"
        return status, figure, _where(folder, runs, suite), wording
    return NOT_RUN


def crossed(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
    """Representation and retriever were crossed on one data set."""
    names = {"turns under the hybrid's retriever", "chunks under evicortex's retriever"}
    for suite in ("locomo", "realtalk"):
        pool = _pool(runs, suite)
        if names <= set(tables.complete(pool, suite)):
            return "passed", f"both on {suite}", _where(folder, runs, suite), ""
    return NOT_RUN


def official_longmemeval(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
    """The official S artifact, byte for byte, under a preregistered test configuration."""
    for run, suite in _suites(runs, "longmemeval"):
        entry = run.manifest["suites"][suite]
        if str(entry["label"]).startswith("official"):
            frozen = run.manifest["prereg_sha256"]
            where = str(run.folder.relative_to(folder))
            status: Status = "passed" if frozen and run.manifest["split"] == "test" else "failed"
            return status, f"{entry['label']}, preregistered {frozen}", where, ""
    return NOT_RUN


def smoke(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
    """The semantic path ran end to end on the synthetic fixture."""
    path = folder / "prototype-c-semantic-smoke.json"
    if not path.is_file():
        return NOT_RUN
    report = json.loads(path.read_text(encoding="utf-8"))
    failed = sum(entry["failed"] for entry in report["systems"].values())
    passed = report["encoder_is_semantic"] and failed == 0
    figure = f"{report['questions']} questions, {failed} failures"
    return "passed" if passed else "failed", figure, path.name, str(report["allowed_claim"])


def calibrated(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
    """Refusal has a calibrated probability, measured on questions without an answer."""
    known = [r for run in runs for r in run.records if r.probability is not None]
    if not known:
        return NOT_RUN
    return "failed", f"{len(known)} probabilities, no held-out calibration record", "", ""


def never(folder: Path, runs: Sequence[Run]) -> tuple[Status, str, str, str]:
    """A gate for which this project has no run."""
    return NOT_RUN


GATES: Sequence[tuple[str, str, str, Check]] = (
    ("semantic-smoke", "Phase C", "The pinned semantic path runs end to end", smoke),
    ("official-longmemeval-s", "Phase C", "Official LongMemEval-S, preregistered", official_longmemeval),
    ("controls", "Phase C", "No memory, full history, oracle, dense, released retriever", controls_present),
    ("cross-encoder", "Phase C", "No reranker against a pinned top-16 cross-encoder", never),
    ("shared-reader", "Phase C", "A shared reader with its exact tokenizer", never),
    ("calibrated-refusal", "Phase C", "Refusal calibrated on a development split", calibrated),
    ("ann-scale", "Phase C", "ANN recall against exact cosine at 10k and 100k", never),
    ("synthetic-curves", "Prototype B", "Five seeds at 512 to 8k tokens", synthetic_curves),
    ("vector-scale", "Prototype B", "1k and 10k exact scan, 100k crossover", never),
    ("extraction", "Prototype B", "Extraction accuracy and cost, apart from retrieval", never),
    ("crossover", "Prototype B", "Representation and retriever crossed, paired", crossed),
    ("equal-tuning", "Prototype B", "The comparator is tuned as often as EviCortex", tuned_equally),
    ("external", "Prototype B", "Better than the tuned hybrid on external conversations", external_comparison),
    ("efficiency", "Prototype B", "More efficient than RAG", never),
)  # fmt: skip


def evaluate(folder: Path) -> list[Gate]:
    """Return every gate as the records under ``folder`` decide it."""
    runs = _runs(folder.resolve())
    found: list[Gate] = []
    for key, document, question, check in GATES:
        status, figure, record, wording = check(folder.resolve(), runs)
        said = wording if status == "passed" else ""
        found.append(Gate(key, document, question, status, figure, record, said))
    return found


def render(gates: Sequence[Gate]) -> str:
    """Return the gates as text, with the wording that they allow."""
    lines = []
    for gate in gates:
        lines.append(f"{gate.status:8} {gate.document:12} {gate.key:24} {gate.question}")
        if gate.figure:
            lines.append(f"{'':22}{gate.figure} [{gate.record}]")
    lines += ["", "Allowed wording:"]
    lines += [f"- {gate.wording}" for gate in gates if gate.wording]
    lines.append('- "More efficient than RAG" remains an unverified research hypothesis.')
    return "\n".join(lines)


CLAIMS: Sequence[tuple[str, str]] = (
    (r"\b(?:out)?performs? (?:every|all|any|other|competing)\b", "external"),
    (r"\bbetter than (?:RAG|retrieval|vector|hybrid|chunk|other memor)", "external"),
    (r"\b(?:beats?|outperform\w*|surpass\w*) ", "external"),
    (r"\bmore (?:efficient|accurate) than\b", "efficiency"),
    (r"\b(?:replac\w+|supersed\w+) RAG\b", "efficiency"),
    (r"\bstate[- ]of[- ]the[- ]art\b", "official-longmemeval-s"),
    (r"\bSOTA\b", "official-longmemeval-s"),
    (r"\bon (?:the official )?LongMemEval[^.]*\d+(?:\.\d+)? ?%", "official-longmemeval-s"),
    (r"\bcalibrated (?:probabilit|confiden|refus)\w*", "calibrated-refusal"),
    (r"\b(?:fastest|best|leading|most accurate) (?:agent |long-term |LLM )?memory\b", "external"),
    (r"\bnever hallucinat\w*", "shared-reader"),
    (r"\banswers? (?:more )?(?:correctly|accurately)\b", "shared-reader"),
    (r"\bscales? to (?:millions|100k|1M|billions)\b", "ann-scale"),
)
"""Phrases that claim a result, with the gate whose generated wording would be needed."""

_DENIED = re.compile(
    r"\b(?:not|no|nothing|never|nor|unverified|hypothesis|until|without|cannot|stays? empty|"
    r"does not|is not|unless|would|when|whether)\b",
    re.IGNORECASE,
)


def overclaims(text: str, gates: Sequence[Gate]) -> list[str]:
    """Return the sentences of a document that claim what no passed gate allows.

    A sentence that denies, conditions or hypothesises is no claim. Wording generated by a passed
    gate is allowed word for word, and nothing freer: a gate passed on one configuration does not
    allow a claim about every other.
    """
    for gate in gates:
        if gate.wording:
            text = text.replace(gate.wording, "")
    flat = re.sub(r"\s+", " ", re.sub(r"```.*?```", " ", text, flags=re.DOTALL))
    found = []
    for sentence in re.split(r"(?<=[.!?:;])\s|\s\| ", flat):
        if _DENIED.search(sentence):
            continue
        for pattern, key in CLAIMS:
            if re.search(pattern, sentence, re.IGNORECASE):
                found.append(f"{key}: {sentence.strip()}")
                break
    return found
