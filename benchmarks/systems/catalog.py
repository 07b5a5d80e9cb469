"""Every system of the lab by name, made anew for a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.systems import controls, crossed
from benchmarks.systems.base import LabelledControl, System
from benchmarks.systems.bm25 import BM25
from benchmarks.systems.dense import Dense, SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem, ablated
from benchmarks.systems.hybrid import DIAGNOSTIC, HybridChunks, HybridConfig
from benchmarks.systems.longmemeval_retriever import LongMemEvalRetriever
from benchmarks.systems.rrf import ReciprocalRankFusion
from evicortex import Settings
from evicortex.protocols import TokenCounter

Participant = System | LabelledControl
REMEMBERED_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Bench:
    """What all systems share: counter, encoder, and the comparator's tuned configuration."""

    counter: TokenCounter
    encoder: SharedEncoder | None
    hybrid: HybridConfig = field(default_factory=HybridConfig)
    settings: Settings = field(default_factory=Settings)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, text: str) -> int:
        """Count the tokens of a text; lines are counted once, as a store of chunks would."""
        if len(text) > REMEMBERED_CHARACTERS:
            return self.counter.count(text)
        if text not in self.counts:
            self.counts[text] = self.counter.count(text)
        return self.counts[text]

    def vectors(self, system: str) -> SharedEncoder:
        """Return the encoder; raises ValueError for a system that cannot do without."""
        if self.encoder is None:
            raise ValueError(f"{system!r} needs an encoder: set [encoder] in the configuration")
        return self.encoder


Maker = Callable[[Bench, Path], Participant]


def _evicortex(
    name: str,
    *,
    off: tuple[str, ...] | None = None,
    vectors: bool = True,
    declared: bool = False,
    named: bool = True,
) -> Maker:
    """Return the maker of EviCortex; with ``off``, even empty, it is an arm of the ablations."""

    def make(bench: Bench, folder: Path) -> System:
        return EviCortexSystem(
            folder / "ledger.db",
            name=name,
            declared=declared,
            named=named,
            embedder=bench.encoder if vectors else None,
            token_counter=bench.counter,
            settings=bench.settings if off is None else ablated(*off, settings=bench.settings),
        )

    return make


def _chunks_crossed(bench: Bench, folder: Path) -> System:
    return crossed.ChunksUnderEviCortex(
        folder / "ledger.db",
        bench.count,
        bench.hybrid,
        embedder=bench.encoder,
        token_counter=bench.counter,
        settings=bench.settings,
    )


ABLATION_BASE = "evicortex, ranker off"
"""What every ablation is measured against.

The learned ranker sees the channels itself, so it is off on both sides of an ablation: otherwise
a channel without weight would still speak through it.
"""

_ABLATIONS: Mapping[str, dict[str, Any]] = {
    "windows off": {"off": ("window", "dense_window")},
    "time off": {"off": ("time",)},
    "names off": {"off": ("actor",), "named": False},
    "declared claims": {"off": (), "declared": True},
    "declared claims, claims channel off": {"off": ("claims",), "declared": True},
}

SYSTEMS: Mapping[str, Maker] = {
    "no memory": lambda bench, folder: controls.NoMemory(),
    "full history": lambda bench, folder: controls.FullHistory(bench.count),
    "oracle evidence": lambda bench, folder: controls.OracleEvidence(bench.count),
    "bm25": lambda bench, folder: BM25(bench.count),
    "dense": lambda bench, folder: Dense(bench.count, bench.vectors("dense")),
    "rrf-k60": lambda bench, folder: ReciprocalRankFusion(bench.count, bench.vectors("rrf-k60")),
    "hybrid chunks": lambda bench, folder: HybridChunks(
        bench.count, bench.vectors("hybrid chunks"), bench.hybrid
    ),
    "longmemeval retriever, turn": lambda bench, folder: LongMemEvalRetriever(
        bench.count, bench.vectors("longmemeval retriever"), "turn"
    ),
    "longmemeval retriever, session": lambda bench, folder: LongMemEvalRetriever(
        bench.count, bench.vectors("longmemeval retriever"), "session"
    ),
    "evicortex": _evicortex("evicortex"),
    "evicortex, lexical": _evicortex("evicortex, lexical", vectors=False),
    "evicortex, declared claims": _evicortex("evicortex, declared claims", declared=True),
    ABLATION_BASE: _evicortex(ABLATION_BASE, off=()),
    **{
        f"{ABLATION_BASE}, {name}": _evicortex(f"{ABLATION_BASE}, {name}", **options)
        for name, options in _ABLATIONS.items()
    },
    "turns under the hybrid's retriever": lambda bench, folder: crossed.turns_under_hybrid(
        bench.count, bench.vectors("turns under the hybrid's retriever"), bench.hybrid
    ),
    "chunks under evicortex's retriever": _chunks_crossed,
}
"""Name to maker. A maker gets an empty folder of its own."""


def label(name: str, bench: Bench) -> str:
    """Return the name for records: the comparator says so when its encoder is a diagnostic one."""
    diagnostic = bench.encoder is not None and not bench.encoder.profile.semantic
    return DIAGNOSTIC if name == "hybrid chunks" and diagnostic else name


def make(name: str, bench: Bench, folder: Path) -> Participant:
    """Make a system.

    Raises:
        ValueError: No such system, or it needs an encoder and there is none.
    """
    if name not in SYSTEMS:
        raise ValueError(f"no system {name!r}; there are {', '.join(SYSTEMS)}")
    folder.mkdir(parents=True, exist_ok=True)
    return SYSTEMS[name](bench, folder)
