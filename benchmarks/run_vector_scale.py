"""Exact nearest rows at 1,000, 10,000 and 100,000 vectors, and where an ANN index would pay.

``python -m benchmarks.run_vector_scale --json OUT [--ann]``

Seeded synthetic unit vectors of 384 dimensions, in clusters (as turns of conversations are) and
uniform (the worst case for any bound). Every query is answered by the float32 scan, which is the
reference, and by the certified int8 scan, one after the other; times are CPU times of one thread,
so ratios within a run mean something on a busy machine. ``--ann`` adds an inverted-file index of
faiss, tuned to the least probing that reaches the recall goal on queries of its own: the
crossover. EviCortex itself has no such layer.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.encoder import processor
from benchmarks.manifest import git_commit, versions
from benchmarks.metrics.intervals import bootstrap
from evicortex.projections.scan import CertifiedScan, ExactScan, int8_dot

SIZES = (1_000, 10_000, 100_000)
SHAPES = ("clustered", "uniform")
DIMENSIONS = 384
LIMIT = 50
RECALL_GOAL = 0.95
TUNED_ON = 50
"""Further queries, on which an ANN index is tuned."""
INSTALL = "faiss is not installed: pip install faiss-cpu"

Vectors = npt.NDArray[np.float32]
Search = Callable[[Vectors], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Timed:
    """CPU milliseconds of every query, and the rows found for it."""

    ms: tuple[float, ...]
    rows: tuple[tuple[int, ...], ...]

    def record(self) -> dict[str, float]:
        """Return the percentiles."""
        low, high = np.percentile(self.ms, [50, 95])
        return {"p50_ms": round(float(low), 4), "p95_ms": round(float(high), 4)}


def vectors(shape: str, size: int, queries: int, seed: int) -> tuple[Vectors, Vectors]:
    """Return unit rows (size, 384) and queries (queries, 384) of the same distribution.

    Clusters have about 100 rows; noise of .8 beside a centre of length 1 leaves cosines of about
    .6 within a cluster, which is what turns about one matter have under a sentence encoder.
    """
    random = np.random.default_rng([seed, size, SHAPES.index(shape)])
    drawn = random.standard_normal((size + queries, DIMENSIONS), dtype=np.float32)
    if shape == "clustered":
        centres = _unit(random.standard_normal((max(size // 100, 1), DIMENSIONS), dtype=np.float32))
        drawn = centres[random.integers(len(centres), size=len(drawn))] + 0.8 * _unit(drawn)
    rows = _unit(drawn)
    return rows[:size], rows[size:]


def _unit(rows: Vectors) -> Vectors:
    found: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found


def timed(search: Search, queries: Vectors) -> Timed:
    """Answer every query; the first one also once before, unmeasured."""
    search(queries[0])
    spent, found = [], []
    for query in queries:
        started = time.process_time()
        rows = search(query)
        spent.append(1000 * (time.process_time() - started))
        found.append(tuple(int(row) for row in rows))
    return Timed(tuple(spent), tuple(found))


def point(shape: str, size: int, queries: int, seed: int, *, ann: bool) -> dict[str, Any]:
    """Measure one size."""
    matrix, drawn = vectors(shape, size, queries + TUNED_ON, seed)
    asked, apart = drawn[:queries], drawn[queries:]
    exact = ExactScan(matrix)
    started = time.process_time()
    certified = CertifiedScan(matrix)
    built = time.process_time() - started
    rescored: list[int] = []

    def by_bound(query: Vectors) -> list[int]:
        found = [candidate.row for candidate in certified.search(query, LIMIT)]
        rescored.append(certified.report.rescored)
        return found

    reference = timed(lambda query: [c.row for c in exact.search(query, LIMIT)], asked)
    own = timed(by_bound, asked)
    counts = rescored[1:]
    return {
        "shape": shape,
        "size": size,
        "queries": queries,
        "float32": reference.record(),
        "certified": {
            **own.record(),
            "build_cpu_s": round(built, 4),
            "identical": sum(a == b for a, b in zip(own.rows, reference.rows, strict=True)),
            "rescored_p50": float(np.percentile(counts, 50)),
            "rescored_p95": float(np.percentile(counts, 95)),
            "ratio": _ratio(own, reference),
        },
        "ann": _ann(matrix, asked, reference, apart) if ann else None,
    }


def _ratio(own: Timed, reference: Timed) -> dict[str, float]:
    """Return how much of the reference's CPU time was taken, query by query."""
    return asdict(bootstrap([a / b for a, b in zip(own.ms, reference.ms, strict=True)]))


def _ann(matrix: Vectors, asked: Vectors, reference: Timed, tuned_on: Vectors) -> dict[str, Any]:
    try:
        faiss = importlib.import_module("faiss")
    except ImportError as error:
        raise SystemExit(INSTALL) from error
    faiss.omp_set_num_threads(1)
    lists = max(4, int(np.sqrt(len(matrix))))
    started = time.process_time()
    index = faiss.IndexIVFFlat(
        faiss.IndexFlatIP(DIMENSIONS), DIMENSIONS, lists, faiss.METRIC_INNER_PRODUCT
    )
    index.train(matrix)
    index.add(matrix)
    built = time.process_time() - started
    wanted = timed(lambda q: [c.row for c in ExactScan(matrix).search(q, LIMIT)], tuned_on)

    def search(query: Vectors) -> list[int]:
        found: list[int] = index.search(query[None, :], LIMIT)[1][0].tolist()
        return found

    probes = 1
    while True:
        index.nprobe = probes
        recall = _recalls(timed(search, tuned_on), wanted)
        if float(np.mean(recall)) >= RECALL_GOAL or probes >= lists:
            break
        probes = min(2 * probes, lists)
    found = timed(search, asked)
    return {
        "index": f"faiss {faiss.__version__} IVF{lists},Flat nprobe {probes}",
        "build_cpu_s": round(built, 3),
        **found.record(),
        "recall": asdict(bootstrap(_recalls(found, reference))),
        "ratio": _ratio(found, reference),
    }


def _recalls(found: Timed, wanted: Timed) -> list[float]:
    return [len(set(a) & set(b)) / len(b) for a, b in zip(found.rows, wanted.rows, strict=True)]


def measure(
    sizes: Sequence[int], shapes: Sequence[str], queries: int, seed: int, *, ann: bool
) -> dict[str, Any]:
    """Return the record of all points."""
    return {
        "what": "nearest rows by inner product, CPU milliseconds of one thread",
        "git_commit": git_commit(Path(__file__).parent),
        "libraries": versions(),
        "machine": processor(),
        "kernel": "numkong" if int8_dot() else "numpy",
        "dimensions": DIMENSIONS,
        "limit": LIMIT,
        "seed": seed,
        "recall_goal": RECALL_GOAL,
        "points": [
            point(shape, size, queries, seed, ann=ann) for shape in shapes for size in sizes
        ],
    }


def render(record: dict[str, Any]) -> str:
    """Return the record as a plain table."""
    columns = f"{'vectors':>20}{'float32':>10}{'certified':>11}{'share':>24}{'same ids':>11}"
    lines = [f"{columns}{'rescored':>10}{'ANN':>9}{'recall':>8}"]
    for each in record["points"]:
        own, ratio, ann = each["certified"], each["certified"]["ratio"], each["ann"]
        name = f"{each['size']:,} {each['shape']}"
        line = f"{name:>20}{each['float32']['p50_ms']:>10.3f}{own['p50_ms']:>11.3f}"
        share = f"{ratio['mean']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"
        same = f"{own['identical']}/{each['queries']}"
        line += f"{share:>24}{same:>11}{own['rescored_p50']:>10.0f}"
        if ann:
            line += f"{ann['p50_ms']:>9.3f}{ann['recall']['mean']:>8.3f}"
        lines.append(line)
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 0, or 1 when the certified scan missed a row of the float32 scan."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run_vector_scale", description=__doc__
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ann", action="store_true", help="measure a faiss index beside them")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    record = measure(options.sizes, options.shapes, options.queries, options.seed, ann=options.ann)
    print(render(record))
    if options.json:
        text = json.dumps(record, indent=2, sort_keys=True)
        options.json.write_text(text + "\n", encoding="utf-8")
    missed = [p for p in record["points"] if p["certified"]["identical"] != p["queries"]]
    for each in missed:
        print(f"{each['shape']} {each['size']}: rows differ from the float32 scan", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
