"""What every channel says of every allowed row, fused into one ranking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicortex.pipeline.beliefs_channel import claim_scores
from evicortex.pipeline.dense import DenseScores, dense_scores
from evicortex.pipeline.sight import Question, Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.fusion import ChannelWeights, best, fuse, gate, time_proximity
from evicortex.policy.query import QueryAnalysis
from evicortex.projections import literal
from evicortex.projections.lexical import LexicalScores
from evicortex.projections.resident import ROLE_ASSISTANT, ROLE_USER
from evicortex.text import content_terms
from evicortex.types import Diagnostic
from evicortex.validity import to_micros

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows best first, with the fused score of every row and the channels behind it."""

    rows: npt.NDArray[np.intp]
    scores: npt.NDArray[np.float64]
    channels: Mapping[str, Floats]
    lexical: LexicalScores
    dense: DenseScores | None
    diagnostics: tuple[Diagnostic, ...]
    weights: ChannelWeights
    lexical_factor: float
    literal: literal.LiteralHits | None = None


def rank(
    rooms: Rooms, sight: Sight, question: Question, analysis: QueryAnalysis, limit: int
) -> Ranking:
    """Rank the allowed rows for a question, ``limit`` at most; rows about which no channel says anything are left out.

    When no informative term of the query is found and there are no vectors, the texts
    themselves are searched for the literal query.
    """
    lexical = sight.lexical.score(analysis.terms, sight.mask)
    dense = dense_scores(rooms, sight, analysis.text)
    options = rooms.options.fusion
    weights = options.lexical if dense is None or not dense.usable else options.hybrid
    channels: dict[str, Floats] = {
        "turn": lexical.turn,
        "window": lexical.window,
        "session": lexical.session,
    }
    factor = 1.0
    if dense is not None and dense.usable:
        channels |= {"dense_turn": dense.turn, "dense_window": dense.window}
        factor = gate(float(lexical.coverage.max(initial=0.0)), options)
    channels |= _bonuses(rooms, sight, question, analysis, weights)
    scores = fuse(channels, sight.mask, weights, lexical_factor=factor)
    diagnostics = [*lexical.diagnostics, *(dense.diagnostics if dense is not None else ())]
    semantic = rooms.embedder is not None and rooms.embedder.profile.semantic
    spoken = _spoken(channels, sight, semantic=semantic)
    found = None
    if analysis.literal is not None or not spoken.any():
        found = literal.find(
            sight.tx.connection, sight.rows, question.text, sight.mask, rooms.options.literal
        )
        diagnostics += found.diagnostics
        # Newest first among texts that hold the same literal; above everything else.
        lift = np.zeros(len(sight.rows))
        order = np.arange(len(found.rows), 0, -1) / max(len(found.rows), 1)
        lift[found.rows] = 1e3 + order
        channels["literal"] = (lift > 0).astype(np.float32)
        scores = scores + lift
        spoken |= lift > 0
    scores[~spoken] = -np.inf
    chosen = best(scores, limit)
    return Ranking(
        chosen, scores, channels, lexical, dense, tuple(diagnostics), weights, factor, found
    )


def _spoken(
    channels: Mapping[str, Floats], sight: Sight, *, semantic: bool
) -> npt.NDArray[np.bool_]:
    """Return the allowed rows of which some channel says more than nothing.

    A diagnostic encoder's vectors say nothing by themselves: a hashing collision must not become
    evidence, so such a row needs a word of the query, in itself or beside it, as well.
    """
    spoken = np.zeros(len(sight.rows), dtype=np.bool_)
    for name, values in channels.items():
        if name.startswith("dense"):
            spoken |= semantic
        elif name in ("turn", "window", "claims", "time"):
            spoken |= values > 0
    return spoken if sight.mask is None else spoken & sight.mask


def _bonuses(
    rooms: Rooms,
    sight: Sight,
    question: Question,
    analysis: QueryAnalysis,
    weights: ChannelWeights,
) -> dict[str, Floats]:
    found: dict[str, Floats] = {}
    if analysis.actor is not None:
        ids = [n for n, name in sight.people.names.items() if name == analysis.actor]
        found["actor"] = sum(
            ((sight.rows.actor == number).astype(np.float32) for number in ids),
            start=np.zeros(len(sight.rows), dtype=np.float32),
        )
    elif analysis.role is not None and analysis.kind != "statement":
        spoken = ROLE_USER if analysis.role == "user" else ROLE_ASSISTANT
        found["actor"] = (sight.rows.role == spoken).astype(np.float32)
    intervals = sight.intervals(analysis)
    if intervals:
        found["time"] = time_proximity(
            sight.rows.effective_us,
            [(to_micros(start), to_micros(end)) for start, end in intervals],
            after=weights.time_after,
            before=weights.time_before,
        )
    claims = claim_scores(rooms, sight, question, content_terms(question.text))
    if claims is not None:
        found["claims"] = claims
    return found
