"""The checked embedder: no vector is stored or compared before it has passed here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from evicortex.errors import (
    InputError,
    ProviderContractError,
    ProviderError,
    TextTooLongError,
)
from evicortex.protocols import (
    Embedder,
    EmbeddingProfile,
    Float32Matrix,
    InputType,
    SpanEmbedder,
    WindowEmbedder,
)
from evicortex.providers.pooling import unit
from evicortex.types import Diagnostic, Span
from evicortex.validation.calls import checked_timeout, guarded
from evicortex.validation.profiles import profile_digest, span_profile_digest, validate_profile

T = TypeVar("T")

MAX_TEXTS = 128
"""Texts of one call, so that a limit of its time means something: a book has many windows."""

NORM_TOLERANCE = 1e-3
"""How far from 1 the length of a vector may be when the profile promises unit length."""


@dataclass(frozen=True, slots=True)
class RowError:
    """Why one row has no vector. ``code``: not_finite, zero_norm or text_too_long."""

    index: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class EmbeddedBatch:
    """The good rows of a batch.

    ``vectors`` has shape (len(indices), dimensions), float32, length 1, read-only;
    ``indices[k]`` is the position of row ``k`` in what was sent, ascending; ``errors`` names
    every other position.
    """

    vectors: Float32Matrix
    indices: tuple[int, ...]
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbeddedSpans:
    """The texts' vectors, and one batch of span vectors for each text sent, in order."""

    texts: EmbeddedBatch
    spans: tuple[EmbeddedBatch, ...]


class CheckedEmbedder:
    """Embeds with ``embedder`` and validates everything that comes back.

    Count, type, dtype, shape, finite values and the promised norm are checked on every call;
    the profile must stay what it was when the embedder was wrapped. The first batch of several
    different texts also checks the order: up to ``order_probes`` of its texts are embedded once
    more, each alone, and each must be nearest to its own row. The first batch with spans does so
    as well, and asks for a span of one text alone.

    Every vector that it returns has length 1, to a thousandth where the embedder promised it and
    by scaling where it did not: what is stored is compared by inner products, as cosines.

    Raises:
        ProviderContractError: On construction, when the profile is impossible.
        ProviderUnavailableError: On construction, when it has no profile to read.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        timeout_seconds: float | None = None,
        order_probes: int = 2,
    ) -> None:
        self._embedder = embedder
        self._timeout = checked_timeout(timeout_seconds)
        self._profile = guarded(
            f"embedder {type(embedder).__name__}", lambda: validate_profile(embedder.profile)
        )
        self._digest = profile_digest(self._profile)
        # Asked once: these checks read the profile too, outside the guard of a call.
        self._spanned = isinstance(embedder, SpanEmbedder)
        self._windowed = isinstance(embedder, WindowEmbedder)
        self._role_aware = _takes_input_type(embedder.embed)
        self._probes_left = dict.fromkeys(("embed", "embed_spans", "a span"), order_probes)

    @property
    def name(self) -> str:
        """What errors and diagnostics call the embedder."""
        return f"embedder {self._profile.model_id}@{self._profile.revision}"

    @property
    def profile(self) -> EmbeddingProfile:
        """The profile, as it was when the embedder was wrapped."""
        return self._profile

    @property
    def digest(self) -> str:
        """Digest of the profile: the identity that is stored with every vector."""
        return self._digest

    @property
    def spans_digest(self) -> str:
        """The identity of the vectors that ``embed_spans`` gives for spans."""
        return span_profile_digest(self._profile)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the embedder says of itself, such as a faster graph that it cannot use here."""
        try:
            found = guarded(self.name, lambda: getattr(self._embedder, "diagnostics", ()))
        except ProviderError as error:
            return (Diagnostic("embedder_diagnostics_failed", str(error)),)
        if not isinstance(found, tuple):
            return ()
        return tuple(item for item in found if isinstance(item, Diagnostic))

    @property
    def supports_spans(self) -> bool:
        """Whether ``embed_spans`` works."""
        return self._spanned

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> EmbeddedBatch:
        """Embed ``texts``; a row that has no usable vector becomes an error of its own.

        Raises:
            ProviderContractError: Anything else about the answer is wrong; nothing is returned.
            ProviderError: What the embedder raised (see ``guarded``).
        """
        if not texts:
            return EmbeddedBatch(self._no_rows(), ())
        try:
            matrix = self._matrix(texts, input_type)
        except TextTooLongError:
            return self._one_by_one(texts, input_type)
        batch = self._rows(matrix, range(len(texts)))
        self._probe_order("embed", texts, matrix, input_type)
        return batch

    def embed_query(self, text: str) -> Float32Matrix:
        """Return the query's vector, shape (dimensions,).

        Raises:
            ProviderContractError: It has no usable vector.
            ProviderError: What the embedder raised.
        """
        batch = self._rows(self._matrix([text], "query"), range(1))
        if batch.errors:
            raise ProviderContractError(f"{self.name}: {batch.errors[0].message}")
        vector: Float32Matrix = batch.vectors[0]
        return vector

    def embed_spans(self, texts: Sequence[str], spans: Sequence[Sequence[Span]]) -> EmbeddedSpans:
        """Embed texts and spans of theirs in one pass (documents only).

        A text beyond the embedder's capacity becomes an error of its own, without spans.

        Raises:
            InputError: The embedder cannot, or ``spans`` does not match ``texts``.
            ProviderContractError: Anything about the answer is wrong, apart from single rows.
            ProviderError: What the embedder raised.
        """
        if len(texts) != len(spans):
            raise InputError(f"{len(texts)} texts but {len(spans)} lists of spans")
        if not texts:
            return EmbeddedSpans(EmbeddedBatch(self._no_rows(), ()), ())
        try:
            matrix, found = self._span_rows(texts, spans)
        except TextTooLongError:
            return self._spans_one_by_one(texts, spans)
        batch = self._rows(matrix, range(len(texts)))
        self._probe_order("embed_spans", texts, matrix, "document")
        self._probe_span(texts, spans, found)
        return EmbeddedSpans(batch, found)

    def windows(self, text: str) -> tuple[Span, ...]:
        """Return the spans of ``text`` to be embedded one by one; none for a blank text.

        An embedder without this capability gets the whole text.

        Raises:
            ProviderContractError: The windows are out of order, out of range, or leave out
                characters that are not white space.
            ProviderError: What the embedder raised.
        """
        if not text.strip():
            return ()
        if not self._windowed:
            return (Span(0, len(text)),)
        embedder = cast("WindowEmbedder", self._embedder)
        return self._call(lambda: self._cut(text, embedder.windows(text)))

    def _no_rows(self) -> Float32Matrix:
        return np.zeros((0, self._profile.dimensions), dtype=np.float32)

    def _call(self, call: Callable[[], T]) -> T:
        """Run everything that touches what the embedder gives, its profile included, guarded."""

        def checked() -> T:
            self._same_profile()
            answer = call()
            self._same_profile()
            return answer

        return guarded(self.name, checked, timeout_seconds=self._timeout)

    def _same_profile(self) -> None:
        if profile_digest(validate_profile(self._embedder.profile)) != self._digest:
            raise ProviderContractError(
                f"{self.name}: the profile changed while the embedder was in use"
            )

    def _matrix(self, texts: Sequence[str], input_type: InputType) -> Float32Matrix:
        return np.concatenate(
            [self._call(partial(self._answer, part, input_type)) for part in _parts(tuple(texts))]
        )

    def _answer(self, texts: Sequence[str], input_type: InputType) -> Float32Matrix:
        if self._role_aware:
            return self._shaped(self._embedder.embed(texts, input_type=input_type), len(texts))
        return self._shaped(self._embedder.embed(texts), len(texts))

    def _cut(self, text: str, answer: object) -> tuple[Span, ...]:
        if not isinstance(answer, Iterable):
            raise ProviderContractError(
                f"{self.name}: windows must be a sequence, not {type(answer).__name__}"
            )
        windows = tuple(islice(answer, len(text) + 1))  # more cannot be in order
        problem = _window_problem(text, windows)
        if problem:
            raise ProviderContractError(f"{self.name}: {problem}")
        return tuple(Span(*window) for window in windows)

    def _shaped(self, answer: object, count: int) -> Float32Matrix:
        expected = (count, self._profile.dimensions)
        if not isinstance(answer, np.ndarray):
            raise ProviderContractError(
                f"{self.name}: vectors must be a numpy array, not {type(answer).__name__}"
            )
        if answer.dtype != np.float32:
            raise ProviderContractError(f"{self.name}: vectors must be float32, not {answer.dtype}")
        if answer.shape != expected:
            raise ProviderContractError(
                f"{self.name}: vectors must have shape {expected}, not {answer.shape}"
            )
        return np.array(answer, dtype=np.float32, order="C", copy=True)

    def _rows(self, matrix: Float32Matrix, indices: range) -> EmbeddedBatch:
        finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(matrix).all(axis=1))
        norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        if self._profile.normalized:
            wrong = np.flatnonzero(finite & ~(np.abs(norms - 1.0) <= NORM_TOLERANCE))
            if wrong.size:
                raise ProviderContractError(
                    f"{self.name}: promised unit vectors, but row {wrong[0]} "
                    f"has length {norms[wrong[0]]:.6g}"
                )
        good = finite & (norms > 0.0)
        errors = [_row_error(index, bool(finite[index])) for index in indices if not good[index]]
        kept = matrix[good] if self._profile.normalized else unit(matrix[good])
        kept.setflags(write=False)
        return EmbeddedBatch(kept, tuple(index for index in indices if good[index]), tuple(errors))

    def _span_rows(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Float32Matrix, tuple[EmbeddedBatch, ...]]:
        if not self._spanned:
            raise InputError(f"{self.name} has no span vectors")
        answers = [
            self._call(partial(self._span_answer, part, asked))
            for part, asked in zip(_parts(texts), _parts(spans), strict=True)
        ]
        return np.concatenate([vectors for vectors, _ in answers]), tuple(
            self._rows(piece, range(len(piece))) for _, pieces in answers for piece in pieces
        )

    def _span_answer(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Float32Matrix, list[Float32Matrix]]:
        embedder = cast("SpanEmbedder", self._embedder)
        answer: object = embedder.embed_spans(texts, spans)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ProviderContractError(f"{self.name}: embed_spans must return a pair")
        vectors, pieces = answer
        if not isinstance(pieces, list) or len(pieces) != len(spans):
            raise ProviderContractError(f"{self.name}: embed_spans must return a matrix a text")
        return self._shaped(vectors, len(spans)), [
            self._shaped(piece, len(wanted)) for piece, wanted in zip(pieces, spans, strict=True)
        ]

    def _spans_one_by_one(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> EmbeddedSpans:
        found: dict[int, EmbeddedBatch] = {}
        errors: list[RowError] = []
        matrix = np.full((len(texts), self._profile.dimensions), np.nan, dtype=np.float32)
        for index, (text, wanted) in enumerate(zip(texts, spans, strict=True)):
            try:
                row, (found[index],) = self._span_rows([text], [wanted])
            except TextTooLongError as error:
                errors.append(RowError(index, "text_too_long", str(error)))
            else:
                matrix[index] = row[0]
        batch = self._rows(matrix, range(len(texts)))
        errors += [error for error in batch.errors if error.index in found]
        errors.sort(key=lambda error: error.index)
        nothing = EmbeddedBatch(self._no_rows(), ())
        return EmbeddedSpans(
            EmbeddedBatch(batch.vectors, batch.indices, tuple(errors)),
            tuple(found.get(index, nothing) for index in range(len(texts))),
        )

    def _one_by_one(self, texts: Sequence[str], input_type: InputType) -> EmbeddedBatch:
        vectors: list[Float32Matrix] = []
        indices: list[int] = []
        errors: list[RowError] = []
        for index, text in enumerate(texts):
            try:
                row = self._rows(self._matrix([text], input_type), range(1))
            except TextTooLongError as error:
                errors.append(RowError(index, "text_too_long", str(error)))
                continue
            errors.extend(RowError(index, bad.code, bad.message) for bad in row.errors)
            vectors.append(row.vectors)
            indices.extend(index for _ in row.indices)
        matrix = np.concatenate([self._no_rows(), *vectors])
        matrix.setflags(write=False)
        return EmbeddedBatch(matrix, tuple(indices), tuple(errors))

    def _probe_order(
        self, call: str, texts: Sequence[str], matrix: Float32Matrix, input_type: InputType
    ) -> None:
        if self._probes_left[call] == 0 or len(set(texts)) < 2:
            return
        positions = dict.fromkeys((0, len(texts) - 1, *range(1, len(texts) - 1)))
        for position in list(positions)[: self._probes_left[call]]:
            alone = self._matrix([texts[position]], input_type)[0]
            if _elsewhere(alone, matrix, position):
                raise ProviderContractError(
                    f"{self.name}: row {position} is not the vector of text {position}; "
                    "rows must keep the order of the texts"
                )
        self._probes_left[call] = 0

    def _probe_span(
        self,
        texts: Sequence[str],
        spans: Sequence[Sequence[Span]],
        found: Sequence[EmbeddedBatch],
    ) -> None:
        """Ask for the last span of the first text that has several, alone."""
        several = (index for index, batch in enumerate(found) if len(batch.indices) > 1)
        text = next(several, None)
        if self._probes_left["a span"] == 0 or text is None:
            return
        last = found[text].indices[-1]
        _, (alone,) = self._span_rows([texts[text]], [[spans[text][last]]])
        row = len(found[text].indices) - 1
        if alone.errors or _elsewhere(alone.vectors[0], found[text].vectors, row):
            raise ProviderContractError(
                f"{self.name}: a span's vector must not depend on the other spans, "
                "and rows must keep the order of the spans"
            )
        self._probes_left["a span"] = 0


def _parts(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + MAX_TEXTS] for start in range(0, len(items), MAX_TEXTS)]


def _elsewhere(alone: Float32Matrix, matrix: Float32Matrix, position: int) -> bool:
    """Return whether another row is nearer to a vector than that of ``position``."""
    scores = unit(matrix) @ unit(alone)
    return bool(scores[position] < np.fmax.reduce(scores) - NORM_TOLERANCE)


def _takes_input_type(embed: Callable[..., object]) -> bool:
    try:
        parameters = inspect.signature(embed).parameters
    except (TypeError, ValueError):
        return True
    return "input_type" in parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _row_error(index: int, finite: bool) -> RowError:
    if finite:
        return RowError(index, "zero_norm", f"row {index} has length zero and no direction")
    return RowError(index, "not_finite", f"row {index} holds NaN or infinity")


def _window_problem(text: str, windows: Sequence[object]) -> str | None:
    covered = 0
    previous = (-1, -1)
    for window in windows:
        if (
            not isinstance(window, tuple)
            or len(window) != 2
            or not all(type(bound) is int for bound in window)
            or not 0 <= window[0] < window[1] <= len(text)
        ):
            return f"window {window!r} is no span of a text of {len(text)} characters"
        if window[0] <= previous[0] or window[1] <= previous[1]:
            return f"window {window!r} is out of order"
        if text[covered : window[0]].strip():
            return f"windows leave out characters {covered} to {window[0]}"
        previous, covered = (window[0], window[1]), window[1]
    if text[covered:].strip():
        return f"windows leave out characters {covered} to {len(text)}"
    return None
