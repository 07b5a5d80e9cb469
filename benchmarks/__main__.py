"""``python -m benchmarks``: run, tune, prereg, report and gates."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import gates, prereg, report, runner, tuning
from benchmarks.config import ConfigError, load
from benchmarks.datasets.base import DatasetError
from benchmarks.results import publish


def _run(options: argparse.Namespace) -> int:
    config = load(options.config)
    print(runner.run(runner.with_output(config, options.output) if options.output else config))
    return 0


def _prereg(options: argparse.Namespace) -> int:
    config = load(options.config)
    digest = prereg.freeze(config, runner.digests(runner.suites_of(config)), options.out)
    print(f"{options.out} sha256 {digest}")
    return 0


def _tune(options: argparse.Namespace) -> int:
    config = load(options.config)
    if config.split != "dev":
        raise ConfigError("tuning is for the development split only")
    suites = runner.suites_of(config)
    plan = tuning.Plan(
        [c for suite in suites for c in suite.stream.conversations()],
        tuple(options.budgets),
        options.trials,
        options.seed,
        options.trials_file,
        lambda line: print(line, file=sys.stderr, flush=True),
        options.every,
        runner.digests(suites),
    )
    bench = runner.bench_of(config)
    for found in tuning.tune(plan, bench, config.systems):
        print(
            f"{found.system}: {found.trials} trials, default {found.default:.4f}, "
            f"left out {found.left_out:.4f}, best {found.best.mean():.4f} "
            f"with {dict(found.best.config)}"
        )
    if bench.encoder is not None:
        bench.encoder.close()
    return 0


def _report(options: argparse.Namespace) -> int:
    folders = [runner.run(load(each)) if each.suffix == ".toml" else each for each in options.runs]
    for folder in folders if options.publish else ():
        publish(folder, options.publish / folder.name)
    report.write(folders, options.out, evidence=options.evidence, title=options.title)
    if options.png:
        report.write_images(options.out, options.png)
    print(options.out)
    return 0


def _gates(options: argparse.Namespace) -> int:
    print(gates.render(gates.evaluate(options.folder)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run a configuration, or go on with it")
    run.add_argument("config", type=Path)
    run.add_argument("--output", type=Path, help="folder of the records")
    run.set_defaults(call=_run)
    freeze = commands.add_parser("prereg", help="freeze a configuration and its data digests")
    freeze.add_argument("config", type=Path)
    freeze.add_argument("--out", type=Path, required=True)
    freeze.set_defaults(call=_prereg)
    tune = commands.add_parser("tune", help="tune comparator and EviCortex with equal trials")
    tune.add_argument("config", type=Path)
    tune.add_argument("--trials", type=int, default=24)
    tune.add_argument("--seed", type=int, default=0)
    tune.add_argument("--every", type=int, default=3, help="take every n-th question")
    tune.add_argument("--budgets", type=int, nargs="+", default=[512, 1024, 2048])
    tune.add_argument("--trials-file", type=Path, required=True)
    tune.set_defaults(call=_tune)
    page = commands.add_parser("report", help="tables, plots and one HTML file from records")
    page.add_argument(
        "runs", type=Path, nargs="+", help="folders of records, or configurations to run first"
    )
    page.add_argument("--publish", type=Path, help="copy the records here, gzipped")
    page.add_argument("--out", type=Path, required=True)
    page.add_argument("--png", type=Path, help="write the plots into this folder as well")
    page.add_argument(
        "--evidence", type=Path, help="folder with trials, exact search over size, extraction"
    )
    page.add_argument("--title", default="EviCortex: what was measured")
    page.set_defaults(call=_report)
    shown = commands.add_parser("gates", help="what may be said, and what may not")
    shown.add_argument("folder", type=Path, nargs="?", default=Path("benchmarks/reports"))
    shown.set_defaults(call=_gates)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, or 2 when a configuration or data set cannot be used."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.call(options)
    except (ConfigError, DatasetError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    raise SystemExit(main())
