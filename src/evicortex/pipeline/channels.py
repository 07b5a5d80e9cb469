"""From the channels' opinions to one ranking of the allowed rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicortex.pipeline.dense import DenseScores
from evicortex.pipeline.opinions import opinions
from evicortex.pipeline.ranking import Closer, corrected
from evicortex.pipeline.sight import Question, Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.fusion import ChannelWeights, best
from evicortex.policy.query import QueryAnalysis
from evicortex.projections import literal
from evicortex.projections.lexical import LexicalScores
from evicortex.types import Diagnostic

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
    closer: Closer | None = None
    """What the learned ranker looked at; ``None`` when it changed nothing."""
    claim_words: Floats | None = None
    """The claims channel without vectors: what a verdict on support may rest on."""


def rank(
    rooms: Rooms, sight: Sight, question: Question, analysis: QueryAnalysis, limit: int
) -> Ranking:
    """Rank the allowed rows for a question, ``limit`` at most; rows about which no channel says anything are left out.

    When no informative term of the query is found and there are no vectors, the texts
    themselves are searched for the literal query.
    """
    said = opinions(rooms, sight, question, analysis)
    channels = said.channels
    scores = said.fused(sight)
    diagnostics = list(said.diagnostics)
    semantic = rooms.embedder is not None and rooms.embedder.profile.semantic
    closer = None
    if rooms.ranks_closer:
        scores, closer = corrected(rooms, sight, analysis, said, scores)
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
    return Ranking(
        best(scores, limit),
        scores,
        channels,
        said.lexical,
        said.dense,
        tuple(diagnostics),
        said.weights,
        said.lexical_factor,
        found,
        closer,
        said.claims.words,
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
