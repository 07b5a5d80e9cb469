"""Recall on external conversations, reader-free: a ladder of systems, paired intervals.

``python -m benchmarks.run_recall [--locomo FILE] [--realtalk FILE] [--implicit FILE --haystack
LOCOMO_FILE] [--needles FILE --record LONGMEMEVAL_FILE] [--slices] [--ranker-folds] --budgets
256,512,... --json OUT``

Takes any file of these formats and tunes nothing. Every value is taken after packing. Strict
means that every gold turn is packed and every word of the gold answer that it contains survives
the cutting; implicit items count any turn of the cue; an assistant's fact counts when its
sentence is shown. The bundled ranker was trained on the development files, so that its figures
there flatter; ``--ranker-folds`` asks each conversation with a ranker that has not seen it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from benchmarks.datasets import locomo, needles, realtalk
from benchmarks.datasets.base import DatasetError
from benchmarks.encoders import make_counter
from benchmarks.manifest import git_commit, versions
from benchmarks.ranker_folds import Folds, training_cases
from benchmarks.recall_ladder import (
    DEFAULT,
    ON_SLICES,
    LadderError,
    ladder,
    plain,
)
from benchmarks.recall_measure import report
from benchmarks.recall_suites import (
    Suite,
    answerable_suite,
    facts_suite,
    implicit_suite,
    slice_suites,
)
from benchmarks.recall_tables import render
from benchmarks.systems.catalog import Bench
from benchmarks.systems.dense import SharedEncoder
from benchmarks.train_ranker import Source, sources
from evicortex import Settings

DEVELOPMENT = {"locomo": "dev6", "realtalk": "dev4"}


def suites(options: argparse.Namespace) -> list[Suite]:
    """Return the suites that were asked for."""
    found: list[Suite] = []
    talks = None
    if options.locomo:
        talks = locomo.load(options.locomo, accept_repairs=options.accept_repairs)
        found.append(answerable_suite(talks))
    if options.realtalk:
        found.append(answerable_suite(realtalk.load(options.realtalk)))
    if options.implicit:
        found.append(implicit_suite(options.implicit, options.haystack))
    if options.needles:
        found.append(answerable_suite(needles.load(options.needles, options.record)))
        found.append(facts_suite(options.record))
    if options.slices and talks is not None:
        found += slice_suites(talks)
    return found if options.every == 1 else [suite.sampled(options.every) for suite in found]


def _ranker_record() -> dict[str, Any]:
    text = resources.files("evicortex").joinpath("policy/ranker.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return {key: found[key] for key in ("weights_sha256", "data_sha256")}


def notes(suite: Suite, ranker: Mapping[str, Any], *, folds: bool, every: int) -> list[str]:
    """Return what a reader of a suite's figures must know."""
    found = [f"a sample: one question in {every}"] if every > 1 else []
    if set(suite.data.values()) & set(ranker["data_sha256"].values()):
        found.append(
            f"{DEFAULT}: every conversation with a ranker that was trained without it"
            if folds
            else f"{DEFAULT}: the ranker was trained on these conversations, so that its figures"
            " flatter; for honest ones pass --ranker-folds or see policy/ranker.json"
        )
    if suite.is_slice:
        found.append("made by rule from the conversations; see benchmarks/datasets/slices.py")
    return found


def development(options: argparse.Namespace) -> list[Source]:
    """Return what the folds are trained on.

    Raises:
        DatasetError: Any other file than the development files, to which nothing may be fitted.
    """
    found = {"locomo": locomo.load, "realtalk": realtalk.load}
    for name, known in DEVELOPMENT.items():
        path = getattr(options, name)
        if path is None or found[name](path).label != known:
            raise DatasetError(
                f"--ranker-folds trains on the development files only: --{name} must be {known}"
            )
    return sources(options)


def _numbers(text: str) -> list[int]:
    return sorted({int(number) for number in text.split(",")})


_FILES = ("locomo", "realtalk", "implicit", "haystack", "needles", "record")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_recall", description=__doc__)
    for name in _FILES:
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument(
        "--accept-repairs", help="digest of the log of malformed labels of an unknown LoCoMo file"
    )
    parser.add_argument("--slices", action="store_true", help="also conversations made from LoCoMo")
    parser.add_argument(
        "--ranker-folds",
        action="store_true",
        help="ask each conversation with a ranker that was trained on the others",
    )
    parser.add_argument("--budgets", type=_numbers, default="256,512,1024,2048,4096,8192")
    parser.add_argument("--slice-budgets", type=_numbers, default="512,1024,2048")
    parser.add_argument("--systems", default="", help="names, comma-separated; all by default")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question only")
    parser.add_argument("--vectors", type=Path, help="keep vectors in this file between runs")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser


def _checked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.implicit and not options.haystack:
        parser.error("--implicit needs --haystack, the LoCoMo file that its items name")
    if options.needles and not options.record:
        parser.error("--needles needs --record, the LongMemEval record that they are about")
    if options.slices and not options.locomo:
        parser.error("--slices needs --locomo, the file that they are made from")
    if not (options.locomo or options.realtalk or options.implicit or options.needles):
        parser.error("name at least one data file")
    for path in (getattr(options, name) for name in _FILES):
        if path is not None and not path.is_file():
            parser.error(f"there is no file {path}")
    if options.every < 1 or min(*options.budgets, *options.slice_budgets) < 1:
        parser.error("budgets and --every are counts of at least 1")
    return options


def run(options: argparse.Namespace, bench: Bench, folder: Path) -> dict[str, Any]:
    """Return the record of a whole run; ledgers go to ``folder``."""
    started = time.process_time()
    chosen = suites(options)
    folds = None
    if options.ranker_folds:
        if bench.encoder is None:
            raise LadderError("--ranker-folds: no encoder, install evicortex[local]")
        folds = Folds(training_cases(development(options), bench.encoder, folder))
        folds.meet(each for suite in chosen for each, _ in suite.conversations)
    names = [name for name in options.systems.split(",") if name]
    rungs = ladder(names, bench, folds)
    ranker = _ranker_record()
    found: list[dict[str, Any]] = []
    for number, suite in enumerate(chosen):
        on_slice = {name: rung for name, rung in rungs.items() if name in ON_SLICES}
        some = on_slice if suite.is_slice else rungs
        budgets = options.slice_budgets if suite.is_slice else options.budgets
        each = report(suite, some, budgets, folder / str(number))
        told = notes(suite, ranker, folds=folds is not None, every=options.every)
        found.append({**each, "notes": told})
    return {
        "version": metadata.version("evicortex"),
        "git_commit": git_commit(Path(__file__).parent),
        "libraries": versions(),
        "token_counter": bench.counter.identity,
        "encoder": None if bench.encoder is None else bench.encoder.identity,
        "ranker": {**ranker, "folds": None if folds is None else folds.record()},
        "systems": {name: plain(rung.configuration) for name, rung in rungs.items()},
        "cpu_s": time.process_time() - started,
        "suites": found,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the ladder; returns 0, or 2 for arguments or files that cannot be used."""
    options = _checked(arguments)
    bench = Bench(make_counter(), SharedEncoder.local(), settings=Settings.from_environment())
    if bench.encoder is not None and options.vectors:
        bench.encoder.keep_in(options.vectors)
    with tempfile.TemporaryDirectory() as name:
        try:
            found = run(options, bench, Path(name))
        except (DatasetError, LadderError) as error:
            print(error, file=sys.stderr)
            return 2
        finally:
            if bench.encoder is not None:
                bench.encoder.close()
    print(f"evicortex {found['version']}, commit {found['git_commit']}")
    print(f"tokens {found['token_counter']}\nencoder {found['encoder']}\n")
    print("\n\n\n".join(map(render, found["suites"])))
    print(f"\n{found['cpu_s'] / 60:.1f} CPU minutes")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
