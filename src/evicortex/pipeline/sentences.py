"""Sentence vectors: whether there are any, how a text is embedded with them, how they score."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from evicortex.pipeline.sight import Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.pieces import PIECES, piece_spans
from evicortex.projections.sentences import CODE
from evicortex.types import Span

Float32 = npt.NDArray[np.float32]
SentenceScores = tuple[tuple[Span, ...], Float32]
"""The sentences of a text in order, and the query's cosine with each."""


def sentence_identity(rooms: Rooms) -> str | None:
    """Return what can change a stored sentence: encoder, splitter and format.

    ``None``: there is no encoder, it gives no vectors of spans, or they are switched off.
    """
    embedder = rooms.embedder
    if embedder is None or not embedder.supports_spans or not rooms.options.semantic.sentences:
        return None
    return f"{embedder.spans_digest}/{PIECES}/{CODE}"


def sentences_of(text: str) -> tuple[Span, ...]:
    """Return the pieces of ``text`` that get vectors: none when there is only one."""
    spans = piece_spans(text)
    return spans if len(spans) > 1 else ()


def within(spans: Sequence[Span], windows: Sequence[Span]) -> list[list[Span]]:
    """Return, for each window, the spans that it holds most of; the first such window has them.

    The vector of what that window holds of a span stands for the whole span. A span that lies
    in no window is in none of the lists. ``windows`` begin and end in order.
    """
    found: list[list[Span]] = [[] for _ in windows]
    ends = [window.end for window in windows]
    for span in spans:
        held, best = 0, -1
        for at in range(bisect_right(ends, span.start), len(windows)):
            if windows[at].start >= span.end:
                break
            part = clipped(span, windows[at])
            if part.end - part.start > held:
                held, best = part.end - part.start, at
        if held:
            found[best].append(span)
    return found


def clipped(span: Span, window: Span) -> Span:
    """Return what of ``span`` lies in ``window``, which it overlaps."""
    return Span(max(span.start, window.start), min(span.end, window.end))


def sentence_scores(
    rooms: Rooms, sight: Sight, rows: Iterable[int], query: Float32
) -> dict[int, SentenceScores]:
    """Return the sentences of rows and their cosines with the query's vector.

    ``rows`` are indices of ``sight.rows``, and so are the keys; ``query`` has shape
    (dimensions,). A row without sentence vectors is left out, and so is every row when the
    encoder gives none: its sentences are scored by their words.

    Raises:
        CorruptLedgerError: stored bytes do not have the length that their format gives them.
    """
    identity = sentence_identity(rooms)
    if identity is None:
        return {}
    by_id = {int(sight.rows.row_ids[row]): int(row) for row in rows}
    found = rooms.sentences.scores(
        sight.tx.connection, sight.ns.namespace_id, by_id, identity, query
    )
    return {by_id[row_id]: scores for row_id, scores in found.items()}
