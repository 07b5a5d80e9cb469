"""The optional reranker: at most 16 candidates, and only their order is believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evicortex.errors import MissingExtraError, ProviderError
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.candidates import PackCandidate
from evicortex.policy.fusion import reciprocal_ranks
from evicortex.protocols import RerankCandidate
from evicortex.types import ChannelScore, Diagnostic
from evicortex.validation import MAX_RERANK


def reranked(
    rooms: Rooms, query: str, candidates: Sequence[PackCandidate]
) -> tuple[list[PackCandidate], tuple[Diagnostic, ...]]:
    """Return the candidates with the best few reordered; a reranker that fails changes nothing.

    The reranker's scores are recorded, but only their order counts: it is fused with the order
    before it by reciprocal ranks, since raw scores of a provider have no known scale.
    """
    if rooms.reranker is None:
        return list(candidates), ()
    sent = [each for each in candidates if not (each.excluded or each.superseded)][:MAX_RERANK]
    if not sent:
        return list(candidates), ()
    try:
        scores = rooms.reranker.rerank(
            query,
            [RerankCandidate(each.evidence.evidence_id, each.evidence.content) for each in sent],
        )
    except (ProviderError, MissingExtraError) as error:
        failed = Diagnostic("rerank_failed", f"the order before reranking was kept: {error}")
        return list(candidates), (failed,)
    places = range(len(sent))
    judged = [place for place in places if sent[place].evidence.evidence_id in scores]
    judged.sort(key=lambda place: (-scores[sent[place].evidence.evidence_id], place))
    fused = reciprocal_ranks([list(places), judged])
    order = sorted(places, key=lambda place: (-fused[place], place))
    ranks = {place: rank for rank, place in enumerate(judged, start=1)}
    tops = sorted((each.score for each in sent), reverse=True)
    moved = [
        _scored(sent[place], score, ranks.get(place), scores)
        for place, score in zip(order, tops, strict=True)
    ]
    ids = {each.evidence.evidence_id for each in sent}
    rest = [each for each in candidates if each.evidence.evidence_id not in ids]
    return sorted([*moved, *rest], key=lambda each: -each.score), ()


def _scored(
    candidate: PackCandidate, score: float, rank: int | None, scores: dict[str, float]
) -> PackCandidate:
    if rank is None:
        return replace(candidate, score=score)
    said = ChannelScore(rank, scores[candidate.evidence.evidence_id])
    return replace(candidate, score=score, channels={**candidate.channels, "rerank": said})
