"""What every channel says of every allowed row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicortex.pipeline.beliefs_channel import ClaimScores, claim_scores
from evicortex.pipeline.dense import DenseScores, dense_scores
from evicortex.pipeline.sight import Question, Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.fusion import ChannelWeights, fuse, gate, time_proximity
from evicortex.policy.query import QueryAnalysis
from evicortex.projections.lexical import LexicalScores
from evicortex.projections.resident import ROLE_ASSISTANT, ROLE_USER
from evicortex.types import Diagnostic
from evicortex.validity import to_micros

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Opinions:
    """What the channels say of every row, before anything is ranked."""

    channels: dict[str, Floats]
    lexical: LexicalScores
    dense: DenseScores | None
    weights: ChannelWeights
    lexical_factor: float
    claims: ClaimScores

    @property
    def usable(self) -> DenseScores | None:
        """The semantic scores, if there are any."""
        return self.dense if self.dense is not None and self.dense.usable else None

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the channels had to report."""
        dense = self.dense.diagnostics if self.dense else ()
        return self.lexical.diagnostics + dense + self.claims.diagnostics

    def fused(self, sight: Sight) -> npt.NDArray[np.float64]:
        """Return the hand fusion of every row; -inf where it is not allowed."""
        return fuse(self.channels, sight.mask, self.weights, lexical_factor=self.lexical_factor)


def opinions(rooms: Rooms, sight: Sight, question: Question, analysis: QueryAnalysis) -> Opinions:
    """Ask every channel about every allowed row."""
    lexical = sight.lexical.score(analysis.terms, sight.mask)
    dense = dense_scores(rooms, sight, analysis.text)
    options = rooms.options.fusion
    channels: dict[str, Floats] = {
        "turn": lexical.turn,
        "window": lexical.window,
        "session": lexical.session,
    }
    weights, factor = options.lexical, 1.0
    if dense is not None and dense.usable:
        channels |= {"dense_turn": dense.turn, "dense_window": dense.window}
        weights = options.hybrid
        factor = gate(float(lexical.coverage.max(initial=0.0)), options)
    channels |= _bonuses(sight, analysis, weights)
    claims = claim_scores(rooms, sight, question, analysis, dense)
    if claims.shares is not None:
        channels["claims"] = claims.shares
    return Opinions(channels, lexical, dense, weights, factor, claims)


def _bonuses(sight: Sight, analysis: QueryAnalysis, weights: ChannelWeights) -> dict[str, Floats]:
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
    return found
