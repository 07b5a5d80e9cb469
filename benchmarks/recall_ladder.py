"""The rungs of the recall ladder, from plain BM25 to the default configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.encoders import WindowedHashing
from benchmarks.ranker_folds import Folds, HeldOutEviCortex
from benchmarks.systems import rrf
from benchmarks.systems.base import System
from benchmarks.systems.bm25 import BM25
from benchmarks.systems.catalog import Bench
from benchmarks.systems.dense import Dense, SharedEncoder
from benchmarks.systems.evicortex import EviCortexSystem
from evicortex import Settings

DEFAULT = "evicortex"
HAND = "evicortex-hand"
LADDER = ("bm25", "dense", "rrf-k60", "evicortex-lexical", "evicortex-hashing", HAND, DEFAULT)
ON_SLICES = ("bm25", "rrf-k60", HAND, DEFAULT)
DIFFERENCES = ((DEFAULT, "rrf-k60"), (DEFAULT, "bm25"), (DEFAULT, HAND), (HAND, "rrf-k60"))
"""Which pairs are compared, question by question: the first minus the second."""


class LadderError(ValueError):
    """A rung that there is not, or one that cannot be had here."""


_NEED_AN_ENCODER = frozenset({"dense", "rrf-k60", HAND, DEFAULT})


@dataclass(frozen=True, slots=True)
class Rung:
    """One system: how it is made for a file, and what its figures depend on.

    Rungs with the same ``ledger`` read one file, which the first of them writes.
    """

    make: Callable[[Path], System]
    ledger: str
    encoder: SharedEncoder | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)
    diagnostic: bool = False


def hand_fusion(settings: Settings) -> Settings:
    """Return the settings without the learned ranker and without cutting."""
    options = settings.options
    return Settings(
        replace(
            options,
            fusion=replace(options.fusion, ranker=False),
            packing=replace(options.packing, cut=False),
        )
    )


def plain(value: Any) -> Any:
    """Return options as what JSON knows; anything else by its text."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def ladder(names: Sequence[str], bench: Bench, folds: Folds | None = None) -> dict[str, Rung]:
    """Return the rungs by name, all that can be had by default.

    Raises:
        LadderError: A name that no rung has, or one that needs an encoder where there is none.
    """
    unknown = [name for name in names if name not in LADDER]
    if unknown:
        raise LadderError(f"no system {', '.join(unknown)}; there are {', '.join(LADDER)}")
    lacking = _NEED_AN_ENCODER if bench.encoder is None else frozenset[str]()
    refused = [name for name in names if name in lacking]
    if refused:
        raise LadderError(f"{', '.join(refused)}: no encoder, install evicortex[local]")
    made = {**_baselines(bench), **_evicortex(bench, folds)}
    return {
        name: made[name] for name in LADDER if name not in lacking and (not names or name in names)
    }


def _baselines(bench: Bench) -> dict[str, Rung]:
    return {
        "bm25": Rung(lambda path: BM25(bench.count), "bm25", None, {"k1": 1.2, "b": 0.75}),
        "dense": Rung(
            lambda path: Dense(bench.count, bench.vectors("dense")), "dense", bench.encoder
        ),
        "rrf-k60": Rung(
            lambda path: rrf.ReciprocalRankFusion(bench.count, bench.vectors("rrf-k60")),
            "rrf-k60",
            bench.encoder,
            {"k": rrf.K, "of": ["bm25", "dense"]},
        ),
    }


def _evicortex(bench: Bench, folds: Folds | None) -> dict[str, Rung]:
    settings = bench.settings
    hashing = SharedEncoder(WindowedHashing())
    return {
        "evicortex-lexical": _rung(bench, "evicortex-lexical", settings, None),
        "evicortex-hashing": replace(
            _rung(bench, "evicortex-hashing", settings, hashing), diagnostic=True
        ),
        HAND: replace(_rung(bench, HAND, hand_fusion(settings), bench.encoder), ledger=DEFAULT),
        DEFAULT: _rung(bench, DEFAULT, settings, bench.encoder, folds),
    }


def _rung(
    bench: Bench,
    name: str,
    settings: Settings,
    encoder: SharedEncoder | None,
    folds: Folds | None = None,
) -> Rung:
    options: dict[str, Any] = {
        "name": name,
        "embedder": encoder,
        "token_counter": bench.counter,
        "settings": settings,
    }

    def make(path: Path) -> System:
        if folds is None:
            return EviCortexSystem(path, **options)
        return HeldOutEviCortex(path, folds, **options)

    said = {
        "encoder": None if encoder is None else encoder.identity,
        "settings": plain(settings.options),
    }
    return Rung(make, name, encoder, said)
