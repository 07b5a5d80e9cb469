"""Claims as a channel: evidence whose held claims share the question's words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from evicortex.ledger import claims as claim_ledger
from evicortex.pipeline.claim_words import Match
from evicortex.pipeline.sight import Question, Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.types import ClaimStatus


def claim_scores(
    rooms: Rooms, sight: Sight, question: Question, terms: Sequence[str]
) -> npt.NDArray[np.float32] | None:
    """Return, for every row, the best share of the question's words in a claim held on it.

    Only claims that are held at the time asked, as known then, count; a share is multiplied by
    the claim's confidence. The best ``claim_candidates`` pairs of subject and predicate are
    looked at, each with its whole history. ``None`` when no claim shares a word.
    """
    matches = rooms.claim_words.matches(sight.tx, sight.ns, terms)
    if not matches:
        return None
    matches.sort(key=lambda match: (-match.share * match.claim.confidence, match.claim.seq))
    index = sight.rows.index([match.claim.row_id for match in matches])
    held = _held(rooms, sight, question, matches)
    scores = np.zeros(len(sight.rows), dtype=np.float32)
    for match, row in zip(matches, index.tolist(), strict=True):
        allowed = row >= 0 and (sight.mask is None or bool(sight.mask[row]))
        if allowed and match.claim.claim_id in held:
            scores[row] = max(scores[row], match.share * match.claim.confidence)
    return scores if scores.any() else None


def _held(
    rooms: Rooms, sight: Sight, question: Question, matches: Sequence[Match]
) -> frozenset[str]:
    pairs = dict.fromkeys((match.claim.subject, match.claim.predicate) for match in matches)
    limit = rooms.options.recall.claim_candidates
    return frozenset(
        claim.claim_id
        for subject, predicate in islice(pairs, limit)
        for claim in claim_ledger.list_claims(
            sight.tx,
            sight.ns,
            subject=subject,
            predicate=predicate,
            as_of=question.now,
            known_at=question.known_at,
            order=rooms.options.authorities,
        )
        if claim.status is ClaimStatus.HELD
    )
