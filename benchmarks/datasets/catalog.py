"""Every data set of the lab by name. Adding one is one declaration here and one mapper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.datasets import (
    locomo,
    locomo_plus,
    longmemeval,
    needles,
    realtalk,
    synthetic_stream,
)
from benchmarks.datasets.base import DatasetError, Source, Stream

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declaration:
    """How a data set is opened and scored.

    ``open`` yields one stream or, for a seeded data set, one a seed. ``shared`` says whether all
    conversations of a stream go into one memory, each as a namespace; otherwise each conversation
    gets a fresh one. ``headline`` is the value that tables show.
    """

    source: Source
    open: Callable[[Options], Iterator[Stream]]
    shared: bool = True
    headline: Literal["strict", "any"] = "strict"
    options: frozenset[str] = frozenset({"path"})


def _path(options: Options, key: str = "path") -> Path:
    path = Path(options[key]) if key in options else None
    if path is None or not path.is_file():
        raise DatasetError(f"{options.get('kind')}: {key} names no file: {path}")
    return path


def _locomo(options: Options) -> Iterator[Stream]:
    corrections = _path(options, "corrections") if "corrections" in options else None
    accepted = options.get("accept_repairs")
    yield locomo.load(_path(options), corrections=corrections, accept_repairs=accepted).stream()


def _realtalk(options: Options) -> Iterator[Stream]:
    accepted = options.get("accept_repairs")
    yield realtalk.load(_path(options), accept_repairs=accepted).stream()


def _implicit(options: Options) -> Iterator[Stream]:
    yield locomo_plus.stream(_path(options), _path(options, "haystack"))


def _needles(options: Options) -> Iterator[Stream]:
    yield needles.load(_path(options), _path(options, "record")).stream()


def _longmemeval(options: Options) -> Iterator[Stream]:
    yield longmemeval.stream(_path(options), strict_clock=bool(options.get("strict_clock")))


def _synthetic(options: Options) -> Iterator[Stream]:
    sizes = {key: options[key] for key in ("namespaces", "turns", "questions") if key in options}
    for seed in options.get("seeds", [0]):
        yield synthetic_stream.stream(synthetic_stream.Shape(seed=seed, **sizes))


CATALOG: Mapping[str, Declaration] = {
    "locomo": Declaration(
        locomo.SOURCE, _locomo, options=frozenset({"path", "corrections", "accept_repairs"})
    ),
    "realtalk": Declaration(
        realtalk.SOURCE, _realtalk, options=frozenset({"path", "accept_repairs"})
    ),
    "locomo-plus": Declaration(
        locomo_plus.SOURCE,
        _implicit,
        shared=False,
        headline="any",
        options=frozenset({"path", "haystack"}),
    ),
    "needles": Declaration(needles.SOURCE, _needles, options=frozenset({"path", "record"})),
    "longmemeval": Declaration(
        longmemeval.SOURCE,
        _longmemeval,
        shared=False,
        options=frozenset({"path", "strict_clock"}),
    ),
    "synthetic": Declaration(
        synthetic_stream.SOURCE,
        _synthetic,
        options=frozenset({"seeds", "namespaces", "turns", "questions"}),
    ),
}


def open_streams(options: Options) -> Iterator[tuple[str, Declaration, Stream]]:
    """Yield (suite name, declaration, stream) for one entry of a configuration.

    Raises:
        DatasetError: An unknown kind or option, or a file that is not what it should be.
    """
    kind = str(options.get("kind"))
    declaration = CATALOG.get(kind)
    if declaration is None:
        raise DatasetError(f"no data set {kind!r}; there are {', '.join(CATALOG)}")
    unknown = set(options) - declaration.options - {"kind", "name"}
    if unknown:
        raise DatasetError(f"{kind}: unknown options {', '.join(sorted(unknown))}")
    base = str(options.get("name", kind))
    streams = list(declaration.open(options))
    for stream in streams:
        suffix = f", {stream.label}" if len(streams) > 1 else ""
        corrected = " (corrected)" if stream.condition == "corrected" else ""
        yield f"{base}{corrected}{suffix}", declaration, stream
