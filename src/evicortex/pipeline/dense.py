"""The semantic channels of one recall: the query's vector against turns and their windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicortex.errors import MissingExtraError, ProviderError, TextTooLongError
from evicortex.pipeline.sight import Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.bm25 import Bm25Options, Layout
from evicortex.projections.dense_windows import WindowLengths, window_scores
from evicortex.projections.semantic import VectorView
from evicortex.types import Diagnostic
from evicortex.validation import CheckedEmbedder

Float32 = npt.NDArray[np.float32]

DENSE_WINDOW = Bm25Options(window_turns=1_000, window_tokens=40)
"""Windows of the dense channel: 40 estimated tokens a side, within the session."""

_QUERY_WINDOWS = 8
"""Of a longer query (about 4,000 tokens with the local encoder) the rest is left out, and said."""


@dataclass(frozen=True, slots=True)
class DenseScores:
    """Scores of every row, or the reason why there are none (``usable`` is false)."""

    turn: Float32
    window: Float32
    usable: bool
    diagnostics: tuple[Diagnostic, ...]
    query: Float32 | None = None
    view: VectorView | None = None
    layout: Layout | None = None


def _off(code: str, message: str, **details: object) -> DenseScores:
    none = np.zeros(0, dtype=np.float32)
    return DenseScores(none, none, False, (Diagnostic(code, message, details),))


def dense_scores(rooms: Rooms, sight: Sight, text: str) -> DenseScores | None:
    """Score the allowed rows; ``None`` without an encoder, or without any evidence.

    A diagnostic encoder (``profile.semantic`` false) is used like any other, and says so; the
    guard against its collisions is in ``channels``.
    """
    embedder = rooms.embedder
    if embedder is None:
        return None
    connection, ns = sight.tx.connection, sight.ns
    coverage = rooms.semantic.coverage_of(connection, sight.rows, embedder.digest)
    if coverage.foreign:
        return _off(
            "semantic_identity_mismatch",
            "the vectors of this namespace were made by another encoder; the semantic channel "
            "is off until sync_semantic has embedded them again",
            namespace=ns.name,
            foreign=coverage.foreign,
        )
    if coverage.indexed == 0 and coverage.missing == 0 and coverage.stale == 0:
        return None
    if coverage.indexed == 0:
        return _off(
            "semantic_not_indexed",
            "no evidence of this namespace has a vector; run sync_semantic",
            namespace=ns.name,
            missing=coverage.missing,
        )
    if coverage.vectors > rooms.options.semantic.scan_cap:
        return _off(
            "scan_cap_reached",
            f"{coverage.vectors} vectors exceed the scan cap of "
            f"{rooms.options.semantic.scan_cap}; an incomplete scan is not exact, so the "
            "semantic channel is off",
            vectors=coverage.vectors,
            cap=rooms.options.semantic.scan_cap,
        )
    try:
        query, diagnostics = _query_vector(embedder, text)
    except (ProviderError, MissingExtraError) as error:
        return _off("semantic_query_failed", f"the query could not be embedded: {error}")
    behind = coverage.missing + coverage.stale
    if behind:
        message = f"{behind} evidence have no vector of their present text; run sync_semantic"
        diagnostics = (*diagnostics, Diagnostic("semantic_stale", message, {"missing": behind}))
    return _scored(rooms, sight, query, diagnostics)


def _query_vector(embedder: CheckedEmbedder, text: str) -> tuple[Float32, tuple[Diagnostic, ...]]:
    """Return the query's vector; of one beyond the encoder's capacity the mean of its windows'."""
    try:
        return embedder.embed_query(text), ()
    except TextTooLongError:
        windows = embedder.windows(text)
    used = windows[:_QUERY_WINDOWS]
    vectors = np.stack([embedder.embed_query(text[start:end]) for start, end in used])
    mean = vectors.mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean)) or 1.0
    message = (
        f"the query is longer than the encoder takes: the mean of the vectors of {len(used)} of "
        f"its {len(windows)} windows stands for it"
    )
    details = {"windows": len(windows), "used": len(used)}
    query: Float32 = (mean / length).astype(np.float32)
    return query, (Diagnostic("semantic_query_windows", message, details),)


def _scored(
    rooms: Rooms, sight: Sight, query: Float32, diagnostics: tuple[Diagnostic, ...]
) -> DenseScores:
    assert rooms.embedder is not None
    view = rooms.semantic.view(
        sight.tx.connection, sight.rows, rooms.embedder.digest, rooms.embedder.profile.dimensions
    )
    turn = view.scores(query)
    lengths, whole = view.kept(lambda means: _lengths(sight, means))
    layout = whole
    if sight.mask is not None and not sight.mask.all():
        layout = Layout(sight.rows, sight.rows.octets, sight.mask, DENSE_WINDOW)
    window = window_scores(turn, layout, lengths.of(layout))
    return DenseScores(turn, window, True, diagnostics, query, view, layout)


def _lengths(sight: Sight, means: npt.NDArray[np.float32]) -> tuple[WindowLengths, Layout]:
    whole = Layout(sight.rows, sight.rows.octets, None, DENSE_WINDOW)
    return WindowLengths(means, whole), whole
