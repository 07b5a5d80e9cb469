"""Encoders of the Transformers library, offline and pinned."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args

import numpy as np

from evicortex.errors import InputError, TextTooLongError
from evicortex.protocols import EmbeddingProfile, Float32Matrix, InputType
from evicortex.providers.pinned_models import (
    PinnedModel,
    checked_capacity,
    import_torch,
    load_model,
    local_transformers_artifact_sha256,
)
from evicortex.providers.pooling import mean_pooled, pooled_spans, unit
from evicortex.providers.wordpieces import EncodedText, WordPieces
from evicortex.types import Span

__all__ = ["TransformersEmbedder", "local_transformers_artifact_sha256"]

Pooling = Literal["mean", "cls", "last"]
Precision = Literal["float32", "bfloat16", "float16"]
IMPLEMENTATION = "evicortex.providers.transformers.TransformersEmbedder/1"


class TransformersEmbedder:
    """Embeds with a pinned Transformers model.

    Loading never touches the network and reads safetensors only. A text beyond the capacity is
    never truncated: ``embed`` raises ``TextTooLongError``, and with ``truncation="window"``
    ``windows`` says how to cut it. Instances may be shared by threads.

    With ``pooling="mean"`` it is a ``SpanEmbedder``: ``embed_spans(texts, spans)`` returns the
    texts' vectors as documents, and unit means of the tokens of their spans. A query that is
    pooled otherwise lies elsewhere than the means of tokens, so then there is no ``embed_spans``.

    Args:
        model: A directory, or the hub's ``owner/name`` of a model in the local cache.
        revision: The hub commit (40 digits), needed for a hub name.
        local_sha256: ``local_transformers_artifact_sha256(model)``, needed for a directory.
        pooling: ``mean`` over all tokens, the first token (``cls``), or the ``last`` one.
        query_prefix: Text put before every query.
        document_prefix: Text put before every document.
        max_tokens: Capacity with special tokens; None for what the model states.
        truncation: ``error``, or ``window`` to offer windows for longer texts.
        normalize: Whether vectors are scaled to length 1.
        precision: Of the computation; vectors are float32 always.
        device: A torch device.
        batch_size: Texts run together, padded. With 1 a vector depends on its text alone;
            larger batches change the last bits.
        trust_remote_code: Whether the repository's own Python code may run.
        code_revision: The commit of that code, needed with ``trust_remote_code``.

    Raises:
        InputError: Something is not pinned, or an option is impossible.
        MissingExtraError: ``evicortex[transformers]`` is not installed.
        ModelIntegrityError: Files are missing or not those that were pinned.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        pooling: Pooling,
        revision: str | None = None,
        local_sha256: str | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
        max_tokens: int | None = None,
        truncation: Literal["error", "window"] = "error",
        normalize: bool = True,
        precision: Precision = "float32",
        device: str = "cpu",
        batch_size: int = 1,
        trust_remote_code: bool = False,
        code_revision: str | None = None,
    ) -> None:
        _check_options(pooling, truncation, precision, batch_size)
        source = PinnedModel(model, revision, local_sha256, trust_remote_code, code_revision)
        self._torch, _ = import_torch()
        loaded = load_model(source, "AutoModel", optional_weights="pooler.")
        self._model = loaded.model.to(device=device, dtype=getattr(self._torch, precision))
        self._device = device
        self._pooling = pooling
        if pooling == "mean":
            self.embed_spans = self._embed_spans
        self._normalize = normalize
        self._batch_size = batch_size
        self._windowed = truncation == "window"
        capacity = checked_capacity(loaded, max_tokens)
        backend = loaded.tokenizer.backend_tokenizer
        self._pieces = {
            "query": WordPieces(backend, capacity, prefix=query_prefix),
            "document": WordPieces(backend, capacity, prefix=document_prefix),
        }
        self._padding = loaded.tokenizer.pad_token_id or 0
        self._typed = "token_type_ids" in loaded.tokenizer.model_input_names
        self._profile = EmbeddingProfile(
            model_id=source.model_id,
            revision=source.pin,
            dimensions=int(self._model.config.hidden_size),
            implementation=IMPLEMENTATION,
            precision=precision,
            pooling=pooling,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
            max_tokens=capacity,
            truncation=truncation,
            normalized=normalize,
            details={
                "device": device.partition(":")[0],
                "batch_size": str(batch_size),
                "code_revision": code_revision or "",
            },
        )

    @property
    def profile(self) -> EmbeddingProfile:
        """The identity: model, commit or digest, pooling, prefixes, capacity, precision."""
        return self._profile

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Return vectors, shape (len(texts), dimensions), rows in order.

        Raises:
            TextTooLongError: A text exceeds the capacity.
            InvalidTextError: A text cannot be encoded as UTF-8.
        """
        encoded = [self._pieces[input_type].encode(text) for text in texts]
        rows = np.empty((len(texts), self._profile.dimensions), dtype=np.float32)
        for position, tokens in self._hidden(encoded):
            rows[position] = self._pooled(tokens)
        return rows

    def _embed_spans(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Float32Matrix, list[Float32Matrix]]:
        """As ``SpanEmbedder.embed_spans``.

        Raises:
            TextTooLongError: A text exceeds the capacity.
            InvalidSpanError: A span is empty, reversed or outside its text.
        """
        encoded = [self._pieces["document"].encode(text) for text in texts]
        rows = np.empty((len(texts), self._profile.dimensions), dtype=np.float32)
        pieces = [np.empty((0, self._profile.dimensions), dtype=np.float32) for _ in texts]
        for position, tokens in self._hidden(encoded):
            rows[position] = self._pooled(tokens)
            pieces[position] = pooled_spans(
                tokens, encoded[position].offsets, spans[position], len(texts[position])
            )
        return rows, pieces

    def windows(self, text: str) -> tuple[Span, ...]:
        """Return touching spans that fit the capacity as documents; none for a blank text.

        Raises:
            TextTooLongError: The text does not fit, and ``truncation`` is ``error``.
        """
        windows = self._pieces["document"].windows(text)
        if len(windows) > 1 and not self._windowed:
            raise TextTooLongError(
                f"a text of {len(text)} characters exceeds the encoder's "
                f"{self._profile.max_tokens} tokens; open it with truncation='window'"
            )
        return windows

    def _pooled(self, tokens: Float32Matrix) -> Float32Matrix:
        if self._pooling == "mean":
            if self._normalize:
                return mean_pooled(tokens)
            mean: Float32Matrix = tokens.mean(axis=0, dtype=np.float64).astype(np.float32)
            return mean
        chosen: Float32Matrix = tokens[0 if self._pooling == "cls" else -1]
        return unit(chosen) if self._normalize else chosen

    def _hidden(self, encoded: Sequence[EncodedText]) -> Iterator[tuple[int, Float32Matrix]]:
        """Yield (position, token vectors), longest texts first, padding removed."""
        order = sorted(range(len(encoded)), key=lambda item: -len(encoded[item].ids))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            hidden = self._run([encoded[position] for position in batch])
            for position, rows in zip(batch, hidden, strict=True):
                yield position, rows[: len(encoded[position].ids)]

    def _run(self, batch: Sequence[EncodedText]) -> Float32Matrix:
        shape = (len(batch), len(batch[0].ids))
        feed = {
            "input_ids": np.full(shape, self._padding, dtype=np.int64),
            "attention_mask": np.zeros(shape, dtype=np.int64),
        }
        if self._typed:
            feed["token_type_ids"] = np.zeros(shape, dtype=np.int64)
        for row, item in enumerate(batch):
            feed["input_ids"][row, : len(item.ids)] = item.ids
            feed["attention_mask"][row, : len(item.ids)] = 1
            if self._typed:
                feed["token_type_ids"][row, : len(item.ids)] = item.type_ids
        with self._torch.inference_mode():
            tensors = {
                name: self._torch.from_numpy(value).to(self._device) for name, value in feed.items()
            }
            output: Any = self._model(**tensors).last_hidden_state
            hidden: Float32Matrix = output.to("cpu", self._torch.float32).numpy()
        return hidden


def _check_options(pooling: str, truncation: str, precision: str, batch_size: int) -> None:
    if pooling not in get_args(Pooling):
        raise InputError(f"pooling must be one of {get_args(Pooling)}, not {pooling!r}")
    if truncation not in ("error", "window"):
        raise InputError(f"truncation must be error or window, not {truncation!r}")
    if precision not in get_args(Precision):
        raise InputError(f"precision must be one of {get_args(Precision)}, not {precision!r}")
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}")
