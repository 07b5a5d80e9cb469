"""``make bench-encoder``: embedding throughput as a ratio to a plain ONNX Runtime loop.

``python -m benchmarks.encoder [--data LOCOMO_FILE] [--rounds N] [--json OUT]``

The plain loop is what anybody would write first: the packaged all-MiniLM-L6-v2, batches of 32 in
order, padded to the longest, mean pooling. A second loop sorts by length and takes batches of 8,
the best that the packaged graph gives. Every round encodes the same turns with all contenders, in
an order that rotates, and times are CPU times of one thread, so a busy machine disturbs all of
them alike. The plain loop computes in float32; cosines are against its vectors.

The exit status is 1 when the graph in use misses a goal: 2.5 times the plain loop, and a mean
cosine of .99.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import locomo
from benchmarks.metrics.intervals import bootstrap

DEFAULT_DATA = Path("../shared/data/locomo/locomo_dev6.json")
TURNS_A_ROUND = 128
WARM_UP = 8
RATIO_GOAL = 2.5
COSINE_GOAL = 0.99
PLAIN = "plain loop, batches of 32 in order"
SORTED = "plain loop, sorted, batches of 8"

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]


class PlainLoop:
    """The packaged graph in ONNX Runtime on one thread, without anything of EviCortex around it."""

    def __init__(self, model: bytes, tokenizer: bytes, capacity: int) -> None:
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer = importlib.import_module("tokenizers").Tokenizer.from_buffer(tokenizer)
        self._tokenizer.enable_truncation(capacity)
        self._tokenizer.enable_padding()

    def in_order(self, texts: Sequence[str]) -> Vectors:
        """Encode in batches of 32, in the order given."""
        return self._batched(texts, 32)

    def by_length(self, texts: Sequence[str]) -> Vectors:
        """Encode in batches of 8 of texts alike in length; rows come back in the order given."""
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        rows = self._batched([texts[row] for row in order], 8)
        placed = np.empty_like(rows)
        placed[order] = rows
        return placed

    def _batched(self, texts: Sequence[str], size: int) -> Vectors:
        parts = [self._run(texts[start : start + size]) for start in range(0, len(texts), size)]
        return np.concatenate(parts)

    def _run(self, texts: Sequence[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch(list(texts))
        ids = np.array([item.ids for item in encodings], dtype=np.int64)
        mask = np.array([item.attention_mask for item in encodings], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, feed)[0]
        weights = mask[..., np.newaxis].astype(np.float32)
        means = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        vectors: Vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors


def measure(
    contenders: dict[str, Encode], texts: Sequence[str], rounds: int
) -> tuple[dict[str, list[float]], dict[str, Vectors]]:
    """Return CPU seconds by contender and round, and each one's vectors, rows as ``texts``."""
    names = list(contenders)
    spent: dict[str, list[float]] = {name: [] for name in names}
    vectors: dict[str, list[Vectors]] = {name: [] for name in names}
    for name in names:
        contenders[name](texts[:WARM_UP])
    for number in range(rounds):
        share = texts[number * len(texts) // rounds : (number + 1) * len(texts) // rounds]
        first = number % len(names)
        for name in names[first:] + names[:first]:
            started = time.process_time()
            rows = contenders[name](share)
            spent[name].append(time.process_time() - started)
            vectors[name].append(rows)
    return spent, {name: np.concatenate(parts) for name, parts in vectors.items()}


def encoder_report(texts: Sequence[str], rounds: int) -> dict[str, Any]:
    """Compare the default encoder, on the graph it chose here, with the plain loops."""
    minilm = importlib.import_module("evicortex.providers.minilm")
    onnx = importlib.import_module("evicortex.providers.onnx")
    encoder = onnx.OnnxEmbedder()
    plain = PlainLoop(
        minilm.MODEL.read(minilm.FEATURE, minilm.EXTRA),
        minilm.TOKENIZER.read(minilm.FEATURE, minilm.EXTRA),
        onnx.MAX_TOKENS,
    )
    contenders = {"evicortex": encoder.embed, PLAIN: plain.in_order, SORTED: plain.by_length}
    spent, vectors = measure(contenders, texts, rounds)
    cosines = np.einsum("ij,ij->i", vectors["evicortex"], vectors[PLAIN])
    return {
        "graph": encoder.profile.details["graph"],
        "graph_sha256": encoder.profile.details["graph_sha256"],
        "refused": [item.message for item in encoder.diagnostics],
        "turns": len(texts),
        "rounds": rounds,
        "turns_per_cpu_second": {
            name: len(texts) / sum(seconds) for name, seconds in spent.items()
        },
        "ratio": {
            name: asdict(bootstrap(_ratios(spent[name], spent["evicortex"])))
            for name in (PLAIN, SORTED)
        },
        "cosine": {"mean": float(cosines.mean()), "minimum": float(cosines.min())},
    }


def _ratios(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(slow, fast, strict=True)]


def met(report: dict[str, Any]) -> bool:
    """Whether both goals are met; the ratio's mean over the rounds counts."""
    ratio: float = report["ratio"][PLAIN]["mean"]
    cosine: float = report["cosine"]["mean"]
    return ratio >= RATIO_GOAL and cosine >= COSINE_GOAL


def render(report: dict[str, Any]) -> str:
    """Return the report as plain tables."""
    lines = [
        f"machine {report['machine']}",
        f"runtime {report['runtime']}  data {report['data']}  turns {report['turns']:,}",
        f"graph   {report['graph']} {report['graph_sha256'][:16]}",
        *(f"        {message}" for message in report["refused"]),
        "",
        f"{'turns per CPU-second':40}{'':>8}{'evicortex is faster by':>28}",
    ]
    for name, speed in report["turns_per_cpu_second"].items():
        ratio = report["ratio"].get(name)
        shown = f"{ratio['mean']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]" if ratio else "1"
        lines.append(f"{name:40}{speed:>8.1f}{shown:>28}")
    cosine = report["cosine"]
    lines += [
        "",
        (
            f"cosine to the packaged graph (float32 compute): mean {cosine['mean']:.4f}, "
            f"minimum {cosine['minimum']:.4f}"
        ),
        f"goals: ratio {RATIO_GOAL}, mean cosine {COSINE_GOAL}: {'met' if met(report) else 'MISSED'}",
    ]
    return "\n".join(lines)


def spread(texts: Sequence[str], rounds: int) -> list[str]:
    """Return ``rounds`` stretches of consecutive texts, evenly spread: batches as they would come."""
    step = max(TURNS_A_ROUND, len(texts) // rounds)
    starts = range(0, len(texts), step)[:rounds]
    return [text for start in starts for text in texts[start : start + TURNS_A_ROUND]]


def processor() -> str:
    """Return the processor's architecture, and which of the instructions that matter it has."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            words = set(" ".join(islice(file, 64)).split())
    except OSError:
        return platform.machine()
    found = sorted(words & {"avx2", "avx512f", "avx512_vnni", "avx_vnni", "asimddp", "i8mm"})
    return " ".join([platform.machine(), *found])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; returns 0, 1 when a goal is missed, or 2 when the data is absent."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encoder", description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="a LoCoMo file")
    parser.add_argument("--rounds", type=int, default=9, help=f"of {TURNS_A_ROUND} turns each")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    if not options.data.is_file():
        print(f"{options.data} is absent: pass --data FILE (a LoCoMo file)", file=sys.stderr)
        return 2
    dataset = locomo.load(options.data)
    every = [f"{turn.actor}: {turn.text}" for c in dataset.conversations for turn in c.turns]
    texts = spread(every, options.rounds)
    report = {
        "machine": processor(),
        "runtime": f"onnxruntime {importlib.import_module('onnxruntime').__version__}",
        "data": dataset.label,
        **encoder_report(texts, options.rounds),
    }
    print(render(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")
    return 0 if met(report) else 1


if __name__ == "__main__":
    raise SystemExit(main())
