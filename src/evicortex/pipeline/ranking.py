"""The learned ranker on one recall: the best rows by hand fusion, looked at more closely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evicortex.pipeline.opinions import Opinions
from evicortex.pipeline.sentences import SentenceScores, sentence_scores
from evicortex.pipeline.sight import Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.policy import ranking, ranking_features
from evicortex.policy.fusion import best
from evicortex.policy.query import QueryAnalysis
from evicortex.policy.ranking_features import Candidates, Landscape, QueryContext
from evicortex.projections.bm25 import Layout, idf

Floats = npt.NDArray[np.floating]
Index = npt.NDArray[np.intp]

_MOST_TERMS = 64


@dataclass(frozen=True, slots=True)
class Closer:
    """The candidates' rows, best first by the hand fusion, and a row of features for each.

    ``sentences`` holds what is known of their sentences, by row.
    """

    rows: Index
    features: npt.NDArray[np.float32]
    sentences: Mapping[int, SentenceScores]


def corrected(
    rooms: Rooms,
    sight: Sight,
    analysis: QueryAnalysis,
    said: Opinions,
    scores: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], Closer | None]:
    """Return the fused ``scores`` of all rows with the ranker's correction of the best ones.

    Nothing is corrected without vectors, or where the gate is shut: few of the words are stored,
    as with an ambient statement or a paraphrase. What was looked at is returned too.
    """
    gate = said.lexical_factor
    closer = look_closer(rooms, sight, analysis, said, scores) if gate > 0 else None
    if closer is None:
        return scores, None
    ranker = rooms.ranker or ranking.bundled()
    after = scores.copy()
    after[closer.rows] += ranker.corrections(closer.features, gate)
    return after, closer


def look_closer(
    rooms: Rooms,
    sight: Sight,
    analysis: QueryAnalysis,
    said: Opinions,
    scores: npt.NDArray[np.float64],
) -> Closer | None:
    """Return the candidates with their features; ``None`` when there is nothing to rank."""
    rows = best(scores, rooms.options.fusion.ranker_candidates)
    dense, lexical, channels = said.usable, said.lexical, said.channels
    if len(rows) < 2 or dense is None:
        return None
    assert dense.layout is not None
    assert dense.view is not None
    assert dense.query is not None
    layout = dense.layout
    landscape = Landscape(
        channels={name: channels[name][layout.sequence] for name in ranking_features.GRADED},
        fused=scores[layout.sequence],
        coverage=lexical.coverage[layout.sequence],
        thread=layout.ordinal,
        speaker=sight.rows.actor[layout.sequence],
    )
    nothing = np.zeros(len(sight.rows), dtype=np.float32)
    at = layout.place[rows]
    sentences = sentence_scores(rooms, sight, rows.tolist(), dense.query)
    best_two = _best_two(rows, dense.turn[rows], sentences)
    candidates = Candidates(
        at=at,
        **_shared(sight, layout, at, lexical.idf),
        **_named(sight, layout, at, analysis),
        actor=channels.get("actor", nothing)[rows],
        time=channels.get("time", nothing)[rows],
        looks=rooms.looks.of(sight.tx.connection, sight.rows, rows),
        vectors=dense.view.means()[rows],
        sentence=best_two[0],
        sentence_2=best_two[1],
    )
    context = QueryContext(
        gate=said.lexical_factor,
        terms=len(lexical.idf),
        named="actor" in channels,
        several=len(analysis.actors) > 1,
        dated="time" in channels,
        asked=ranking_features.asked(analysis.query),
    )
    return Closer(rows, ranking_features.features(landscape, candidates, context), sentences)


def _best_two(
    rows: Index, turns: Floats, sentences: Mapping[int, SentenceScores]
) -> tuple[Floats, Floats]:
    """Return the best and second-best sentence's similarity of each row, else the turn's own."""
    best, second = turns.astype(np.float64), turns.astype(np.float64)
    for place, row in enumerate(rows.tolist()):
        if row in sentences:
            _, found = sentences[row]
            ordered = np.sort(found)
            best[place], second[place] = ordered[-1], ordered[-2:][0]
    return best, second


def _held(
    sight: Sight, layout: Layout, term: str, at: Index
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return for each place whether its row holds the term, and whether its window does."""
    places = layout.place[sight.lexical.rows_with(term)]
    places = np.sort(places[places < layout.count])

    def within(starts: Index, ends: Index) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = np.searchsorted(places, ends) > np.searchsorted(
            places, starts
        )
        return found

    return within(at, at + 1), within(layout.window_start[at], layout.window_end[at])


def _shared(
    sight: Sight, layout: Layout, at: Index, weights: Mapping[str, float]
) -> dict[str, Floats]:
    """Return what of the query's terms each candidate and its neighbours hold."""
    matched, rarest, around = np.zeros(len(at)), np.zeros(len(at)), np.zeros(len(at))
    rare_first = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    for term, weight in rare_first[:_MOST_TERMS]:
        own, near = _held(sight, layout, term, at)
        matched += own
        np.maximum(rarest, weight * own, out=rarest)
        around += weight * near
    return {
        "matched": matched,
        "rarest": rarest / idf(layout.count, 0),
        "around": around / max(sum(weights.values()), 1e-9),
    }


def _named(sight: Sight, layout: Layout, at: Index, analysis: QueryAnalysis) -> dict[str, Floats]:
    """Return the share of the query's capitalised words that each candidate holds."""
    wanted = ranking_features.name_terms(analysis.text)[:_MOST_TERMS]
    own, around = np.zeros(len(at)), np.zeros(len(at))
    for term in wanted:
        held, near = _held(sight, layout, term, at)
        own += held
        around += near
    count = max(len(wanted), 1)
    return {"names": own / count, "names_around": around / count}
