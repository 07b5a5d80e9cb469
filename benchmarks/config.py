"""The configuration of a run, from TOML, checked whole before anything starts."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.datasets.catalog import CATALOG
from benchmarks.systems.catalog import SYSTEMS
from benchmarks.systems.hybrid import HybridConfig

SPLITS = ("dev", "test")


class ConfigError(ValueError):
    """A configuration that cannot be run; the message says which key."""


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """Which encoder all systems share. ``kind`` is local, hashing, transformers or none."""

    kind: str = "local"
    model: str = ""
    revision: str | None = None
    local_sha256: str | None = None
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int | None = None
    batch_size: int = 16
    trust_remote_code: bool = False
    code_revision: str | None = None


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything that can change a figure, and where the records go."""

    name: str
    output: Path
    datasets: tuple[Mapping[str, Any], ...]
    systems: tuple[str, ...]
    budgets: tuple[int, ...] = (512, 1024, 2048, 4096, 8192)
    cutoffs: tuple[int, ...] = (1, 3, 5, 10, 30, 50)
    split: str = "dev"
    prereg: Path | None = None
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    hybrid: HybridConfig = field(default_factory=HybridConfig)

    def frozen(self) -> dict[str, Any]:
        """Return what a preregistration freezes: all but names and folders."""
        return {
            "systems": list(self.systems),
            "budgets": list(self.budgets),
            "cutoffs": list(self.cutoffs),
            "datasets": [
                {key: Path(value).name if key in _PLACES else value for key, value in each.items()}
                for each in self.datasets
            ],
            "encoder": {f.name: getattr(self.encoder, f.name) for f in fields(EncoderConfig)},
            "hybrid": self.hybrid.record(),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the frozen part."""
        return digest_of(self.frozen())


_PLACES = frozenset({"path", "haystack", "record", "corrections"})


def digest_of(value: object) -> str:
    """Return the SHA-256 of canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _build(kind: type[Any], table: Mapping[str, Any], where: str) -> Any:
    known = {each.name for each in fields(kind)}
    unknown = set(table) - known
    if unknown:
        raise ConfigError(f"[{where}] has no {', '.join(sorted(unknown))}")
    return kind(**table)


def _placed(options: Mapping[str, Any], base: Path) -> dict[str, Any]:
    return {key: str(base / value) if key in _PLACES else value for key, value in options.items()}


def parse(table: Mapping[str, Any], base: Path) -> RunConfig:
    """Check a configuration; relative paths are relative to ``base``.

    Raises:
        ConfigError: A key is unknown, missing or impossible.
    """
    given = dict(table)
    try:
        encoder = _build(EncoderConfig, given.pop("encoder", {}), "encoder")
        hybrid = _build(HybridConfig, given.pop("hybrid", {}), "hybrid")
        datasets = tuple(_placed(each, base) for each in given.pop("datasets"))
        prereg = given.pop("prereg", None)
        config = RunConfig(
            name=str(given.pop("name")),
            output=base / str(given.pop("output")),
            datasets=datasets,
            systems=tuple(given.pop("systems")),
            budgets=tuple(given.pop("budgets", RunConfig.__dataclass_fields__["budgets"].default)),
            cutoffs=tuple(given.pop("cutoffs", RunConfig.__dataclass_fields__["cutoffs"].default)),
            split=str(given.pop("split", "dev")),
            prereg=None if prereg is None else base / str(prereg),
            encoder=encoder,
            hybrid=hybrid,
        )
    except KeyError as error:
        raise ConfigError(f"the configuration lacks {error}") from error
    if given:
        raise ConfigError(f"the configuration has no {', '.join(sorted(given))}")
    _check(config)
    return config


def _check(config: RunConfig) -> None:
    if not config.systems or not config.datasets or not config.budgets:
        raise ConfigError("a run needs at least one system, one data set and one budget")
    strangers = [name for name in config.systems if name not in SYSTEMS]
    if strangers:
        raise ConfigError(f"no such system: {', '.join(strangers)}")
    for each in config.datasets:
        if each.get("kind") not in CATALOG:
            raise ConfigError(f"no data set {each.get('kind')!r}; there are {', '.join(CATALOG)}")
    if any(not isinstance(b, int) or b < 0 for b in (*config.budgets, *config.cutoffs)):
        raise ConfigError("budgets and cutoffs are counts")
    if config.split not in SPLITS:
        raise ConfigError(f"split is dev or test, not {config.split!r}")
    if config.split == "test" and config.prereg is None:
        raise ConfigError("a test run needs prereg = FILE: freeze it with `benchmarks prereg`")
    if config.encoder.kind not in ("local", "hashing", "transformers", "none"):
        raise ConfigError(f"no encoder {config.encoder.kind!r}")


def load(path: Path) -> RunConfig:
    """Read a TOML file; relative paths in it are relative to its folder."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return parse(table, path.parent)
