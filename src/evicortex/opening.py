"""Opening a cortex: which file, which providers, and what to do when an extra is absent."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Literal

from evicortex.errors import InputError, MissingExtraError, ModelIntegrityError, ProviderError
from evicortex.ledger import Ledger
from evicortex.pipeline.wiring import RoomOptions, Rooms, SystemClock
from evicortex.protocols import ClaimExtractor, Clock, Embedder, Reranker, TokenCounter
from evicortex.validation import (
    CheckedEmbedder,
    CheckedExtractor,
    CheckedReranker,
    CheckedTokenCounter,
    guarded,
)

_ASKED_OFF = "vectors were switched off when the cortex was opened (embedder=None)"


def connect(
    path: str | os.PathLike[str],
    options: RoomOptions,
    *,
    embedder: Embedder | Literal["auto"] | None,
    extractor: ClaimExtractor | None,
    reranker: Reranker | None,
    token_counter: TokenCounter | None,
    read_only: bool,
    clock: Clock | None,
) -> Rooms:
    """Open the ledger and connect the rooms; arguments as in ``EviCortex.open``."""
    _check_kinds(path, token_counter=token_counter, reranker=reranker, clock=clock)
    source = _embedder_source(embedder, options.providers.embedding_timeout_seconds)
    counter = CheckedTokenCounter(token_counter or _default_counter())
    checked_extractor = None
    if extractor is not None:
        checked_extractor = CheckedExtractor(
            extractor,
            authority_order=tuple(options.authorities.ranking),
            timeout_seconds=options.extraction.timeout_seconds,
        )
    checked_reranker = None
    if reranker is not None:
        checked_reranker = CheckedReranker(
            reranker, timeout_seconds=options.providers.rerank_timeout_seconds
        )
    present = clock or SystemClock()
    ledger = Ledger.open(path, clock=present, options=options.ledger, read_only=read_only)
    return Rooms(
        ledger,
        options,
        present,
        counter,
        embedder=source,
        extractor=checked_extractor,
        reranker=checked_reranker,
    )


_METHODS = {"token_counter": "count", "reranker": "rerank", "clock": "now"}


def _check_kinds(path: object, **providers: object) -> None:
    """Refuse what was put in the wrong place, before a file is made for it."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"the path of a ledger is a text or a Path, not {type(path).__name__}")
    for name, provider in providers.items():
        method = _METHODS[name]
        if provider is not None and not callable(getattr(provider, method, None)):
            raise InputError(f"{name} needs a method {method}(); {provider!r} has none")


def _embedder_source(
    embedder: Embedder | Literal["auto"] | None, timeout_seconds: float | None
) -> Callable[[], CheckedEmbedder | str]:
    if embedder is None:
        return lambda: _ASKED_OFF
    if isinstance(embedder, str):
        if embedder != "auto":
            raise InputError(f'embedder is "auto", None or an Embedder, not {embedder!r}')
        return lambda: _local_embedder(timeout_seconds)
    if not callable(getattr(embedder, "embed", None)):
        raise InputError(f'embedder is "auto", None or an Embedder, not {embedder!r}')
    checked = CheckedEmbedder(embedder, timeout_seconds=timeout_seconds)
    return lambda: checked


def _local_embedder(timeout_seconds: float | None) -> CheckedEmbedder | str:
    """Return the local encoder, or why there is none; a wrong model file is never used."""
    try:
        module = importlib.import_module("evicortex.providers.onnx")
        encoder: Embedder = guarded("the local encoder", module.OnnxEmbedder)
        return CheckedEmbedder(encoder, timeout_seconds=timeout_seconds)
    except (MissingExtraError, ProviderError) as error:
        return f"recall is lexical only: {error}"


def _default_counter() -> TokenCounter:
    """Return the local tokenizer's exact counter when it is installed, else the estimate."""
    module = importlib.import_module("evicortex.providers.tokens")
    try:
        counter: TokenCounter = module.WordPieceCounter()
    except (MissingExtraError, ModelIntegrityError):
        counter = module.EstimateCounter()
    return counter
