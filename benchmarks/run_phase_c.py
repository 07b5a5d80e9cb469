"""Phase C: EviCortex and the metadata-aware hybrid comparator under one pinned encoder.

``python -m benchmarks.run_phase_c --dataset FILE --model DIRECTORY_OR_NAME --revision COMMIT
--pooling cls --query-prefix "..." --document-prefix= --max-length 128 --budget-tokens 256
--cutoffs 1,2``

Offline and reader-free. ``--model packaged`` takes the packaged ONNX encoder, ``--model
hashing-diagnostic`` the diagnostic one. A run that was killed goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import runner
from benchmarks.config import ConfigError, EncoderConfig, RunConfig
from benchmarks.datasets.base import DatasetError
from benchmarks.datasets.longmemeval import OFFICIAL_QUESTIONS, RELEASED_DENOMINATOR
from benchmarks.metrics.intervals import bootstrap, paired
from benchmarks.metrics.longmemeval import CUTOFFS, LEVELS, MEASURES
from benchmarks.results import Record, Slice, read_manifest, read_records, select
from evicortex import EviCortexError

SYSTEMS = (
    "evicortex",
    "hybrid chunks",
    "bm25",
    "dense",
    "longmemeval retriever, turn",
    "longmemeval retriever, session",
    "no memory",
    "full history",
    "oracle evidence",
)
CLAIM = (
    "The pinned local semantic plumbing and reader-free benchmark path execute end to end on the "
    "named fixture and configuration."
)
SUITE = "longmemeval"


def _encoder(options: argparse.Namespace) -> EncoderConfig:
    if options.model == "hashing-diagnostic":
        return EncoderConfig(kind="hashing")
    if options.model == "packaged":
        return EncoderConfig(kind="local")
    return EncoderConfig(
        kind="transformers",
        model=options.model,
        revision=options.revision,
        local_sha256=options.local_artifact_sha256,
        pooling=options.pooling,
        query_prefix=options.query_prefix,
        document_prefix=options.document_prefix,
        max_tokens=options.max_length,
        batch_size=options.batch_size,
        trust_remote_code=options.trust_remote_code,
        code_revision=options.code_revision,
    )


def configuration(options: argparse.Namespace) -> RunConfig:
    """Return the run that the command line asks for."""
    cutoffs = tuple(int(k) for k in options.cutoffs.split(","))
    dataset: dict[str, Any] = {"kind": "longmemeval", "path": str(options.dataset)}
    if options.strict_clock:
        dataset["strict_clock"] = True
    return RunConfig(
        name="phase-c",
        output=options.output or options.report.with_suffix(".run"),
        datasets=(dataset,),
        systems=tuple(options.systems.split(";")) if options.systems else SYSTEMS,
        budgets=(options.budget_tokens,),
        cutoffs=cutoffs,
        encoder=_encoder(options),
    )


def _means(chosen: Slice, measures: Sequence[str]) -> dict[str, Any]:
    if not chosen.records:
        return {"n": 0}
    found: dict[str, Any] = {"n": len(chosen.records)}
    for measure in measures:
        found[measure] = asdict(bootstrap(chosen.values(measure)))
    return found


def _abstention(records: Sequence[Record], system: str) -> dict[str, Any]:
    chosen = [r for r in records if r.system == system and not r.answerable]
    return {
        "n": len(chosen),
        "refused": sum(r.refused for r in chosen),
        "empty_packs": sum(r.items == 0 for r in chosen),
        "note": "retrieval only: what was packed for questions without an answer, no reader",
    }


def _system(
    records: Sequence[Record], system: str, budget: int, cutoffs: Sequence[int]
) -> dict[str, Any]:
    everyone = select(records, suite=SUITE, system=system, budget=budget)
    released = select(records, suite=SUITE, system=system, budget=budget, group="released")
    own = [f"{name}@{k}" for k in cutoffs for name in ("recall", "ndcg")]
    theirs = [
        f"after packing/{level}/{name}@{k}"
        for k in cutoffs
        for level in LEVELS
        for name in MEASURES
    ]
    mine = [r for r in records if r.system == system]
    return {
        "all_answerable": _means(everyone, ["strict", "all", "any", *own, *theirs]),
        "released_denominator": _means(released, theirs),
        "abstention": _abstention(records, system),
        "failed": sum(r.status == "failed" for r in mine),
        "mean_tokens": sum(r.tokens for r in mine) / max(len(mine), 1),
        "cpu_ms_per_question": sum(r.cpu_ms for r in mine) / max(len(mine), 1),
    }


def _pairs(records: Sequence[Record], systems: Sequence[str], budget: int) -> dict[str, Any]:
    """Return EviCortex less the comparators, question by question."""
    own = select(records, suite=SUITE, system="evicortex", budget=budget)
    found: dict[str, Any] = {}
    for name in [each for each in systems if each != "evicortex"]:
        other = select(records, suite=SUITE, system=name, budget=budget)
        if own.records and own.queries() == other.queries():
            found[f"evicortex - {name}"] = {
                measure: asdict(paired(own.values(measure), other.values(measure)))
                for measure in ("strict", "any")
            }
    return found


def _as_released(suite: dict[str, Any], questions: Collection[Record]) -> bool | None:
    """Return whether an official file has 500 questions and 419 counted; None for any other."""
    if not str(suite["label"]).startswith("official"):
        return None
    counted = sum("released" in record.groups for record in questions)
    return (len(questions), counted) == (OFFICIAL_QUESTIONS, RELEASED_DENOMINATOR)


def summarize(config: RunConfig) -> dict[str, Any]:
    """Return the machine-readable report, from records alone."""
    records = read_records(config.output)
    manifest = read_manifest(config.output)
    suite = manifest["suites"][SUITE]
    (budget,) = config.budgets
    names = list(dict.fromkeys(record.system for record in records))
    questions = {r.query: r for r in records}.values()
    return {
        "phase": "C",
        "dataset": suite,
        "official": str(suite["label"]).startswith("official"),
        "as_of": suite["condition"],
        "encoder": manifest["encoder"],
        "encoder_is_semantic": manifest["encoder_is_semantic"],
        "config_sha256": manifest["config_sha256"],
        "git_commit": manifest["git_commit"],
        "libraries": manifest["libraries"],
        "token_counter": manifest["token_counter"],
        "budget_tokens": budget,
        "cutoffs": list(config.cutoffs),
        "questions": len(questions),
        "answerable": sum(r.counted for r in questions),
        "released_denominator": sum("released" in r.groups for r in questions),
        "abstentions": sum(not r.answerable for r in questions),
        "as_the_release_counts": _as_released(suite, questions),
        "systems": {name: _system(records, name, budget, config.cutoffs) for name in names},
        "paired": _pairs(records, names, budget),
        "peak_rss_mib": manifest.get("peak_rss_mib"),
        "allowed_claim": CLAIM,
    }


def render(report: dict[str, Any]) -> str:
    """Return a short table for people."""
    official = "official" if report["official"] else "NOT official"
    title = (
        f"{report['dataset']['label']} ({official}), as_of {report['as_of']}, "
        f"{report['budget_tokens']} tokens, {report['answerable']} answerable of "
        f"{report['questions']}, encoder {report['encoder']}"
    )
    lines = [
        title,
        f"{'':34}{'strict':>8}{'any':>8}{'n':>5}{'refused':>10}",
    ]
    for name, entry in report["systems"].items():
        found, abstention = entry["all_answerable"], entry["abstention"]
        cells = "".join(f"{100 * found[m]['mean']:>8.1f}" for m in ("strict", "any") if m in found)
        refused = f"{abstention['refused']}/{abstention['n']}"
        lines.append(f"{name:34}{cells}{found['n']:>5}{refused:>10}")
    return "\n".join([*lines, report["allowed_claim"]])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_phase_c", description=__doc__)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--model", required=True, help="a directory, or a name in the local cache")
    parser.add_argument("--revision", help="40-digit commit of a named model")
    parser.add_argument("--local-artifact-sha256", help="digest of a model directory")
    parser.add_argument("--trust-remote-code", action="store_true")
    parser.add_argument("--code-revision", help="audited commit of the model's own code")
    parser.add_argument("--pooling", choices=("mean", "cls", "last"), default="mean")
    parser.add_argument("--query-prefix", default="")
    parser.add_argument("--document-prefix", default="")
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--budget-tokens", type=int, default=1024)
    parser.add_argument("--cutoffs", default=",".join(str(k) for k in CUTOFFS))
    parser.add_argument("--strict-clock", action="store_true", help="as_of is the question's time")
    parser.add_argument("--systems", default="", help="names, separated by semicolons")
    parser.add_argument("--report", type=Path, default=Path("bench-output/phase-c.json"))
    parser.add_argument("--output", type=Path, help="folder of the records")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or continue; returns 0, or 2 when data, model or arguments cannot be used."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    options = _parser().parse_args(arguments)
    try:
        config = configuration(options)
        runner.run(config)
    except (ConfigError, DatasetError, EviCortexError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    report = summarize(config)
    options.report.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=2, sort_keys=True)
    options.report.write_text(text + "\n", encoding="utf-8")
    print(render(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
