"""Narrow contracts of everything that can be plugged in.

A provider is untrusted: the pipeline uses it only through the checked wrappers of
``evicortex.validation``. ``CONTRACT_VERSION`` changes when a protocol does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from evicortex.types import Authority, Cardinality, Diagnostic, Polarity, Span

CONTRACT_VERSION = 1

InputType = Literal["query", "document"]
Float32Matrix = npt.NDArray[np.float32]


@runtime_checkable
class Clock(Protocol):
    """Source of the present."""

    def now(self) -> datetime:
        """Return the present as an aware UTC datetime."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens of a text."""

    @property
    def identity(self) -> str:
        """A stable name of the tokenizer and its revision or digest."""
        ...

    @property
    def exact(self) -> bool:
        """False when the count is an estimate."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has; 0 for the empty text."""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingProfile:
    """Everything that can change a vector. Its digest is stored with every vector.

    ``details`` holds what else matters: implementation class and version, tokenizer digest,
    graph digest. ``semantic`` is false for diagnostic encoders such as feature hashing.
    """

    model_id: str
    revision: str
    dimensions: int
    implementation: str
    precision: str = "float32"
    pooling: str = "mean"
    query_prefix: str = ""
    document_prefix: str = ""
    max_tokens: int | None = None
    truncation: Literal["error", "window", "truncate"] = "error"
    normalized: bool = True
    semantic: bool = True
    details: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """Return the fields by name, as plain values that JSON can hold."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**found, "details": dict(self.details)}


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors, in order.

    A provider whose queries and documents differ takes ``input_type``; a symmetric one may
    omit the parameter altogether.
    """

    @property
    def profile(self) -> EmbeddingProfile:
        """The immutable identity of this encoder."""
        ...

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        """Return float32 vectors of shape (len(texts), dimensions), rows in order."""
        ...


@runtime_checkable
class SpanEmbedder(Embedder, Protocol):
    """Optional capability: vectors of spans pooled from the text's own token vectors."""

    def embed_spans(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Float32Matrix, list[Float32Matrix]]:
        """Return the texts' vectors, and for each text a (len(spans[i]), dimensions) matrix.

        A span that covers no token has no vector: its row is NaN, which the checked wrapper
        turns into an error of that span alone.
        """
        ...


@runtime_checkable
class WindowEmbedder(Embedder, Protocol):
    """Optional capability: says how to cut a text that exceeds the encoder's capacity.

    ``embed`` never truncates: it raises ``TextTooLongError``. Whoever indexes embeds
    ``text[start:end]`` of every window and keeps the vectors as several rows of one evidence.
    """

    def windows(self, text: str) -> Sequence[Span]:
        """Return spans in order, each within the capacity, that cover all but white space.

        A text that fits is one span over all of it; a blank text has none.
        """
        ...


@dataclass(frozen=True, slots=True)
class RerankCandidate:
    """A candidate sent to a reranker."""

    evidence_id: str
    text: str


@runtime_checkable
class Reranker(Protocol):
    """Scores candidates for a query; higher is better."""

    @property
    def identity(self) -> str:
        """A stable name with model and revision."""
        ...

    def rerank(self, query: str, candidates: Sequence[RerankCandidate]) -> Mapping[str, float]:
        """Return scores for a subset of the candidates' evidence ids."""
        ...


@dataclass(frozen=True, slots=True)
class EvidenceContext:
    """What an extractor sees: one evidence, and earlier turns that it may read but not cite."""

    evidence_id: str
    content: str
    digest: str
    actor: str | None
    role: str | None
    authority: Authority
    occurred_at: datetime | None
    previous: tuple[tuple[str | None, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractedClaim:
    """A claim as an extractor proposes it; ``quote`` must equal the text of ``span``."""

    evidence_id: str
    evidence_digest: str
    subject: str
    predicate: str
    object: str
    span: Span | None
    quote: str | None
    confidence: float
    authority: Authority | None = None
    polarity: Polarity = Polarity.POSITIVE
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    cardinality: Cardinality | None = None


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """All claims in order of their spans, or an abstention with its reasons."""

    claims: tuple[ExtractedClaim, ...]
    abstained: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)


@runtime_checkable
class ClaimExtractor(Protocol):
    """Finds claims in one evidence."""

    @property
    def extractor_id(self) -> str:
        """A stable name."""
        ...

    @property
    def revision(self) -> str:
        """Everything that can change its output, as a digest or version."""
        ...

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Return claims bound to the evidence, or an abstention."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row proposed by an index; ``score`` is higher for better."""

    row: int
    score: float


@runtime_checkable
class CandidateIndex(Protocol):
    """Finds rows near a query vector within a set of allowed rows."""

    @property
    def identity(self) -> str:
        """A stable name with its parameters."""
        ...

    @property
    def exact(self) -> bool:
        """True when ``search`` returns exactly the best rows."""
        ...

    def search(
        self, query: npt.NDArray[np.float32], limit: int, rows: npt.NDArray[np.int64] | None
    ) -> Sequence[Candidate]:
        """Return at most ``limit`` rows, best first, ties by row."""
        ...


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """A reader's answer, with the citations that it used."""

    text: str
    citations: tuple[str, ...] = ()
    usage: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Reader(Protocol):
    """Answers a question from a rendered pack."""

    @property
    def identity(self) -> str:
        """A stable name with model and revision."""
        ...

    def answer(self, question: str, context: str) -> ReaderAnswer:
        """Return an answer that rests on ``context`` alone."""
        ...
