"""The one encoder of a run, by configuration. Nothing is ever downloaded."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.config import EncoderConfig
from benchmarks.systems.dense import SharedEncoder, Vectors
from evicortex.providers.hashing import HashingEmbedder
from evicortex.types import Span


class WindowedHashing:
    """The diagnostic encoder behind the interface that the lab expects of an encoder."""

    def __init__(self) -> None:
        self._inner = HashingEmbedder()

    @property
    def profile(self) -> Any:
        """The identity; ``semantic`` is false."""
        return self._inner.profile

    def embed(self, texts: Sequence[str], *, input_type: Any = "document") -> Vectors:
        """Return unit vectors."""
        return self._inner.embed(texts, input_type=input_type)

    def windows(self, text: str) -> tuple[Span, ...]:
        """Return the whole text: hashing has no capacity."""
        return (Span(0, len(text)),) if text.strip() else ()


def make_encoder(config: EncoderConfig) -> SharedEncoder | None:
    """Return the encoder, shared by all systems.

    Raises:
        evicortex.errors.EviCortexError: An extra or a model is missing, or is not what was pinned.
    """
    if config.kind == "none":
        return None
    if config.kind == "hashing":
        return SharedEncoder(WindowedHashing())
    if config.kind == "local":
        return SharedEncoder(importlib.import_module("evicortex.providers.onnx").OnnxEmbedder())
    module = importlib.import_module("evicortex.providers.transformers")
    options = asdict(config)
    del options["kind"]
    model = options.pop("model")
    return SharedEncoder(module.TransformersEmbedder(model, truncation="window", **options))


def make_counter() -> Any:
    """Return the exact packaged tokenizer's counter, or the estimate where it is not installed."""
    errors = importlib.import_module("evicortex.errors")
    tokens = importlib.import_module("evicortex.providers.tokens")
    try:
        return tokens.WordPieceCounter()
    except errors.MissingExtraError:
        return tokens.EstimateCounter()
