"""Encoders behind an OpenAI-compatible ``/embeddings`` endpoint."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evicortex.errors import InputError, ProviderContractError, TextTooLongError
from evicortex.protocols import EmbeddingProfile, Float32Matrix, InputType
from evicortex.providers.http_json import HttpUsage, JsonClient, StatusError
from evicortex.providers.pooling import unit

IMPLEMENTATION = "evicortex.providers.openai_compatible.OpenAICompatibleEmbedder/1"
TOO_LONG = ("context_length_exceeded", "maximum context length", "too large to process")
"""What servers say when a text exceeds the model's capacity."""


@dataclass(frozen=True, slots=True)
class EmbeddingUsage:
    """What an embedder has cost so far; ``prompt_tokens`` as the server counted them."""

    texts: int
    prompt_tokens: int
    http: HttpUsage


class OpenAICompatibleEmbedder:
    """Embeds through ``POST {base_url}/embeddings``.

    Such servers do not say what weights they run. ``revision`` is the caller's word for it and
    part of the identity; a server that starts to name another model in its answers is refused.
    Texts are sent whole; a server that truncates them silently cannot be caught here, so give
    ``max_characters`` where the capacity is known.

    Args:
        client: The server, its key, timeouts and retries.
        model: The name sent as ``model``.
        revision: What the caller relies on, such as a release date or a weights digest.
        dimensions: Length of the vectors.
        send_dimensions: Whether to ask the server for that length.
        query_prefix: Text put before every query.
        document_prefix: Text put before every document.
        max_characters: Longer texts, prefix included, are refused unsent; None for no bound.
        batch_size: Most texts of one request.
        batch_characters: Most characters of one request that holds several texts.
        normalize: Whether vectors are scaled to length 1 on arrival.

    Raises:
        InputError: An option is impossible.
    """

    def __init__(
        self,
        client: JsonClient,
        *,
        model: str,
        revision: str,
        dimensions: int,
        send_dimensions: bool = False,
        query_prefix: str = "",
        document_prefix: str = "",
        max_characters: int | None = None,
        batch_size: int = 64,
        batch_characters: int = 100_000,
        normalize: bool = True,
    ) -> None:
        if min(dimensions, batch_size, batch_characters, max_characters or 1) < 1:
            raise InputError("dimensions, batch sizes and max_characters must be at least 1")
        self._client = client
        self._send_dimensions = send_dimensions
        self._max_characters = max_characters
        self._batch_size = batch_size
        self._batch_characters = batch_characters
        self._lock = threading.Lock()
        self._served_model: str | None = None
        self._texts = 0
        self._prompt_tokens = 0
        self._profile = EmbeddingProfile(
            model_id=model,
            revision=revision,
            dimensions=dimensions,
            implementation=IMPLEMENTATION,
            precision="as served",
            pooling="as served",
            query_prefix=query_prefix,
            document_prefix=document_prefix,
            normalized=normalize,
            details={
                "send_dimensions": str(send_dimensions).lower(),
                "max_characters": str(max_characters or ""),
            },
        )

    @property
    def profile(self) -> EmbeddingProfile:
        """The identity; the server's address is no part of it."""
        return self._profile

    @property
    def usage(self) -> EmbeddingUsage:
        """What has been spent so far."""
        with self._lock:
            return EmbeddingUsage(self._texts, self._prompt_tokens, self._client.usage)

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Return vectors, shape (len(texts), dimensions), rows in order.

        Raises:
            TextTooLongError: A text exceeds ``max_characters`` or, by its word, the server's
                capacity.
            ProviderUnavailableError: No success after all attempts.
            ProviderContractError: The answer is not what the protocol says.
        """
        profile = self._profile
        prefix = profile.query_prefix if input_type == "query" else profile.document_prefix
        sent = [prefix + text for text in texts]
        self._check_lengths(sent)
        rows = [self._request(batch) for batch in self._batches(sent)]
        return np.concatenate([np.zeros((0, profile.dimensions), dtype=np.float32), *rows])

    def _check_lengths(self, texts: Sequence[str]) -> None:
        if self._max_characters is None:
            return
        for index, text in enumerate(texts):
            if len(text) > self._max_characters:
                raise TextTooLongError(
                    f"text {index} has {len(text)} characters, more than the "
                    f"{self._max_characters} that {self._profile.model_id} takes"
                )

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        characters = 0
        for text in texts:
            full = len(batch) == self._batch_size
            if batch and (full or characters + len(text) > self._batch_characters):
                yield batch
                batch, characters = [], 0
            batch.append(text)
            characters += len(text)
        if batch:
            yield batch

    def _request(self, texts: Sequence[str]) -> Float32Matrix:
        body: dict[str, Any] = {
            "model": self._profile.model_id,
            "input": list(texts),
            "encoding_format": "float",
        }
        if self._send_dimensions:
            body["dimensions"] = self._profile.dimensions
        try:
            answer = self._client.post("/embeddings", body)
        except StatusError as error:
            if error.status == 413 or any(phrase in error.body for phrase in TOO_LONG):
                raise TextTooLongError(str(error)) from error
            raise
        rows = self._vectors(answer, len(texts))
        self._account(answer, len(texts))
        return unit(rows) if self._profile.normalized else rows

    def _vectors(self, answer: Any, count: int) -> Float32Matrix:
        items = answer.get("data") if isinstance(answer, Mapping) else None
        if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
            raise self._broken("there is no list of embeddings in data")
        indices = [item.get("index") for item in items]
        if any(type(index) is not int for index in indices) or sorted(indices) != list(
            range(count)
        ):
            raise self._broken(f"the indices are not 0 to {count - 1}, each once")
        rows = np.empty((count, self._profile.dimensions), dtype=np.float32)
        for item in items:
            values = item.get("embedding")
            if not isinstance(values, list) or len(values) != self._profile.dimensions:
                length = len(values) if isinstance(values, list) else "no list"
                raise self._broken(f"a vector has length {length}, not {self._profile.dimensions}")
            if not all(type(value) in (int, float) for value in values):
                raise self._broken("a vector holds something that is no number")
            with np.errstate(over="ignore"):  # beyond float32 is infinite, and refused as such
                rows[item["index"]] = values
        return rows

    def _account(self, answer: Mapping[str, Any], count: int) -> None:
        served = answer.get("model")
        usage = answer.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
        with self._lock:
            if self._served_model is not None and served != self._served_model:
                raise self._broken(f"it now serves {served!r}, no longer {self._served_model!r}")
            self._served_model = served if isinstance(served, str) else None
            self._texts += count
            self._prompt_tokens += tokens if type(tokens) is int and tokens > 0 else 0

    def _broken(self, reason: str) -> ProviderContractError:
        return ProviderContractError(f"embeddings of {self._profile.model_id}: {reason}")
