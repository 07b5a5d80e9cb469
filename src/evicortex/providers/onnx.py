"""The default encoder: all-MiniLM-L6-v2 on ONNX Runtime, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evicortex.errors import (
    InputError,
    MissingExtraError,
    ModelIntegrityError,
    ProviderUnavailableError,
)
from evicortex.protocols import EmbeddingProfile, Float32Matrix, InputType
from evicortex.providers.minilm import (
    EXTRA,
    FEATURE,
    GRAPHS,
    MODEL,
    MODEL_ID,
    TOKENIZER,
    GraphName,
    GraphPin,
    graph_bytes,
)
from evicortex.providers.minilm_reference import TEXTS, reference_vectors
from evicortex.providers.pooling import mean_pooled, pooled_spans, unit
from evicortex.providers.wordpieces import EncodedText, WordPieces
from evicortex.types import Diagnostic, Span

DIMENSIONS = 384
MAX_TOKENS = 512
IMPLEMENTATION = "evicortex.providers.onnx.OnnxEmbedder/1"


class OnnxEmbedder:
    """Embeds with all-MiniLM-L6-v2 from packages, verified by SHA-256, offline.

    Every text is run alone: its vector depends on nothing but the text, and no padding is
    computed. Mean pooling over all tokens, unit length, no prefixes; queries and documents are
    treated alike. A text of more than 512 word pieces is never truncated: ``embed`` raises
    ``TextTooLongError`` and ``windows`` says how to cut it. Instances may be shared by threads.

    Args:
        graph: Which graph to run; ``"auto"`` takes the fastest that works here and passes the
            self-test (see ``evicortex.providers.minilm.GRAPHS``). The choice is part of the
            profile, so vectors of different graphs never mix.
        cache_dir: Where built graphs are kept; None for ``~/.cache/evicortex``.
        threads: Threads ONNX Runtime may use for one text. Vectors do not depend on it.

    Raises:
        MissingExtraError: ``evicortex[local]`` is not installed.
        ModelIntegrityError: A file's digest is wrong, or no graph passes the self-test.
        InputError: Unknown graph, or fewer than one thread.
    """

    def __init__(
        self,
        *,
        graph: GraphName | Literal["auto"] = "auto",
        cache_dir: Path | None = None,
        threads: int = 1,
    ) -> None:
        if graph != "auto" and graph not in GRAPHS:
            raise InputError(f"graph must be auto or one of {tuple(GRAPHS)}, not {graph!r}")
        if threads < 1:
            raise InputError(f"threads must be at least 1, not {threads}")
        self._pieces = WordPieces(_tokenizer(), MAX_TOKENS)
        *preferred, last = tuple(GRAPHS) if graph == "auto" else (graph,)
        self._diagnostics: tuple[Diagnostic, ...] = ()
        for name in preferred:
            try:
                self._open(name, cache_dir, threads)
            except (ModelIntegrityError, MissingExtraError, ProviderUnavailableError) as error:
                self._diagnostics += (_fallback(name, error),)
            else:
                return
        self._open(last, cache_dir, threads)

    @property
    def profile(self) -> EmbeddingProfile:
        """The identity: weights, tokenizer and graph by digest."""
        return self._profile

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """One ``encoder_graph_refused`` for each faster graph that could not be used."""
        return self._diagnostics

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Return unit vectors, shape (len(texts), 384); ``input_type`` makes no difference.

        Raises:
            TextTooLongError: A text has more than 512 word pieces.
            InvalidTextError: A text cannot be encoded as UTF-8.
        """
        rows = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = mean_pooled(self._tokens(self._pieces.encode(text)))
        return rows

    def embed_spans(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Float32Matrix, list[Float32Matrix]]:
        """Return the texts' vectors, bit for bit those of ``embed``, and vectors of their spans.

        A span's vector is the mean of the text's own token vectors in it; a span without
        tokens gets NaN.

        Raises:
            TextTooLongError: A text has more than 512 word pieces.
            InvalidSpanError: A span is empty, reversed or outside its text.
        """
        rows = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        pieces: list[Float32Matrix] = []
        for row, text, wanted in zip(rows, texts, spans, strict=True):
            encoded = self._pieces.encode(text)
            tokens = self._tokens(encoded)
            row[:] = mean_pooled(tokens)
            pieces.append(pooled_spans(tokens, encoded.offsets, wanted, len(text)))
        return rows, pieces

    def windows(self, text: str) -> tuple[Span, ...]:
        """Return touching spans of at most 512 word pieces each; none for a blank text."""
        return self._pieces.windows(text)

    def _open(self, name: GraphName, cache_dir: Path | None, threads: int) -> None:
        self._session = _session(graph_bytes(name, cache_dir), threads)
        self._masked = name == "packaged"
        self._self_test(name, GRAPHS[name])
        self._profile = _profile(name)

    def _tokens(self, encoded: EncodedText) -> Float32Matrix:
        ids = encoded.ids[np.newaxis]
        feed = {"input_ids": ids}
        if self._masked:
            feed |= {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden: Float32Matrix = self._session.run(None, feed)[0][0]
        return hidden

    def _self_test(self, name: GraphName, pin: GraphPin) -> None:
        """Compare the graph, on this processor, with what float32 gives."""
        with _runtime_errors(f"the graph {name!r}"):
            vectors = self.embed(TEXTS)
        cosine = float(np.einsum("ij,ij->i", vectors, unit(reference_vectors())).mean())
        if not cosine >= pin.minimum_cosine:
            raise ModelIntegrityError(
                f"the graph {name!r} computes wrong vectors on this processor: mean cosine "
                f"{cosine:.4f} to the reference, at least {pin.minimum_cosine} expected"
            )


def _profile(name: GraphName) -> EmbeddingProfile:
    return EmbeddingProfile(
        model_id=MODEL_ID,
        revision=f"sha256:{MODEL.sha256}",
        dimensions=DIMENSIONS,
        implementation=IMPLEMENTATION,
        precision=GRAPHS[name].precision,
        max_tokens=MAX_TOKENS,
        truncation="window",
        details={
            "graph": name,
            "graph_sha256": GRAPHS[name].sha256,
            "tokenizer_sha256": TOKENIZER.sha256,
        },
    )


def _fallback(name: GraphName, error: Exception) -> Diagnostic:
    return Diagnostic(
        "encoder_graph_refused",
        f"the encoder's graph {name!r} is not used here: {error}",
        {"graph": name, "error": type(error).__name__},
    )


def _tokenizer() -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(FEATURE, EXTRA) from error
    return Tokenizer.from_buffer(TOKENIZER.read(FEATURE, EXTRA))


def _session(model: bytes, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(FEATURE, EXTRA) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only: warnings about the graph are no user's concern
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    with _runtime_errors("the graph"):
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@contextmanager
def _runtime_errors(what: str) -> Iterator[None]:
    """Turn ONNX Runtime's own exceptions, which share no base, into ``ProviderUnavailableError``."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    known = (
        state.Fail,
        state.InvalidArgument,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NotImplemented,
        state.RuntimeException,
    )
    try:
        yield
    except known as error:
        raise ProviderUnavailableError(f"ONNX Runtime cannot run {what}: {error}") from error
