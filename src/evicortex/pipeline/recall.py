"""The way out: a question in, ranked evidence or a packed and cited context out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evicortex.errors import InputError
from evicortex.ledger import claims as claim_ledger
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.claim_texts import newest_claim
from evicortex.pipeline.channels import Ranking, rank
from evicortex.pipeline.reranking import reranked
from evicortex.pipeline.sentences import sentence_scores
from evicortex.pipeline.sight import Question, Sight, look
from evicortex.pipeline.times import times_of
from evicortex.pipeline.wiring import Rooms
from evicortex.policy.candidates import PackCandidate
from evicortex.policy.echo import is_mostly_recalled
from evicortex.policy.exclusion import rejects
from evicortex.policy.fusion import best, channel_scores
from evicortex.policy.packing import NothingBecause, PackQuery, pack
from evicortex.policy.query import QueryAnalysis, analyze
from evicortex.policy.support import SupportEvidence, assess
from evicortex.types import (
    Claim,
    ContextPack,
    Diagnostic,
    Evidence,
    Hit,
    SearchResult,
    Support,
)

MAX_LIMIT = 10_000
"""Most hits that one search returns."""

STARVED_FACTOR = 64
"""How many times the usual rows are looked at when most of the best ones may not be shown."""


class _Found:
    """What one recall found in one snapshot."""

    def __init__(
        self,
        candidates: Sequence[PackCandidate],
        analysis: QueryAnalysis,
        ranking: Ranking,
        sight: Sight,
        diagnostics: Sequence[Diagnostic],
    ) -> None:
        self.candidates = candidates
        self.analysis = analysis
        self.ranking = ranking
        self.sight = sight
        self.diagnostics = diagnostics


def analyzed(rooms: Rooms, sight: Sight, question: Question) -> QueryAnalysis:
    """Take the question apart, with the people that it may see."""
    return analyze(
        question.text,
        actors=tuple(sight.people.names.values()),
        aliases={alias: sight.people.names[actor] for alias, actor in sight.people.aliases.items()},
        now=question.now,
        query_actor=question.query_actor,
        rare=sight.is_rare,
        policy=rooms.options.query,
    )


def _find(rooms: Rooms, sight: Sight, question: Question, limit: int, *, cut: bool) -> _Found:
    """Return what is found; with ``cut`` also what tells which sentences to show of it."""
    analysis = analyzed(rooms, sight, question)
    ranking = rank(rooms, sight, question, analysis, limit)
    candidates, diagnostics = _candidates(rooms, sight, question, analysis, ranking)
    looked, cap = limit, limit * STARVED_FACTOR
    while _starved(question, candidates, limit) and len(ranking.rows) == looked < cap:
        looked = min(4 * looked, cap)
        ranking = replace(ranking, rows=best(ranking.scores, looked))
        candidates, diagnostics = _candidates(rooms, sight, question, analysis, ranking)
    if looked == cap and len(ranking.rows) == cap:
        diagnostics.append(
            Diagnostic(
                "candidate_cap",
                f"only the best {cap:,} rows were looked at, and most of them are left out",
                {"rows": cap},
            )
        )
    if cut:
        candidates = _with_sentences(rooms, sight, ranking, candidates)
    candidates, more = reranked(rooms, question.text, candidates)
    if rooms.options.packing.add_neighbours:
        candidates = _surrounded(rooms, sight, question, analysis, ranking, candidates)
    return _Found(candidates, analysis, ranking, sight, (*ranking.diagnostics, *diagnostics, *more))


def _surrounded(
    rooms: Rooms,
    sight: Sight,
    question: Question,
    analysis: QueryAnalysis,
    ranking: Ranking,
    candidates: Sequence[PackCandidate],
) -> list[PackCandidate]:
    """Give each candidate the turns right before and after it that the question may see."""
    beside = np.stack((sight.rows.previous[ranking.rows], sight.rows.next[ranking.rows]))
    wanted = np.unique(beside[beside >= 0])
    if sight.mask is not None:
        wanted = wanted[sight.mask[wanted]]
    around, _ = _candidates(
        rooms, sight, question, analysis, replace(ranking, rows=wanted.astype(np.intp))
    )
    by_position = {each.evidence.position: each for each in around}
    places = sight.rows.index([sight.row_id(each.evidence.position) for each in candidates])
    return [
        replace(
            each,
            neighbours=tuple(
                by_position[position]
                for position in sight.positions(
                    (int(sight.rows.previous[place]), int(sight.rows.next[place]))
                )
                if position in by_position
            ),
        )
        for each, place in zip(candidates, places.tolist(), strict=True)
    ]


def _starved(question: Question, candidates: Sequence[PackCandidate], limit: int) -> bool:
    """Return whether most of the best rows may not be shown, so that others must be looked at."""
    shown = sum(
        not each.excluded and (question.include_superseded or not each.superseded)
        for each in candidates
    )
    return 2 * shown < limit


def _candidates(
    rooms: Rooms, sight: Sight, question: Question, analysis: QueryAnalysis, ranking: Ranking
) -> tuple[list[PackCandidate], list[Diagnostic]]:
    """Return the ranked rows with their claims, marked where the question rules them out."""
    row_ids = sight.rows.row_ids[ranking.rows].tolist()
    stored = evidence_ledger.fetch(sight.tx, sight.ns, row_ids)
    channels = channel_scores(ranking.channels, sight.mask, ranking.rows)
    claims, replaced = _beliefs(rooms, sight, question, stored)
    candidates: list[PackCandidate] = []
    echoes: list[str] = []
    for row_id, row, found in zip(row_ids, ranking.rows.tolist(), channels, strict=True):
        evidence = stored[row_id]
        if is_mostly_recalled(evidence.content):
            echoes.append(evidence.evidence_id)
            continue
        ends = replaced.get(row_id, ())
        candidates.append(
            PackCandidate(
                evidence=evidence,
                score=float(ranking.scores[row]),
                channels=found,
                claims=claims.get(evidence.evidence_id, ()),
                superseded=row_id in replaced,
                superseded_by=ends,
                excluded=any(rejects(each, evidence.content) for each in analysis.exclusions),
            )
        )
    diagnostics: list[Diagnostic] = []
    if echoes:
        diagnostics.append(
            Diagnostic(
                "recalled_context",
                f"{len(echoes)} evidence are recalled context that was stored again; "
                "they are left out",
                {"evidence_ids": tuple(echoes)},
            )
        )
    return candidates, diagnostics


def _with_sentences(
    rooms: Rooms, sight: Sight, ranking: Ranking, candidates: Sequence[PackCandidate]
) -> list[PackCandidate]:
    """Give each candidate the query's similarity to those of its sentences that have vectors."""
    if ranking.dense is None or ranking.dense.query is None:
        return list(candidates)
    seen = ranking.closer.sentences if ranking.closer is not None else {}
    ids = [sight.row_id(each.evidence.position) for each in candidates]
    rows = sight.rows.index(ids).tolist()
    unknown = [row for row in rows if row not in seen]
    known = {**seen, **sentence_scores(rooms, sight, unknown, ranking.dense.query)}
    return [
        replace(each, similarities=dict(zip(known[row][0], known[row][1].tolist(), strict=True)))
        if row in known
        else each
        for each, row in zip(candidates, rows, strict=True)
    ]


def _beliefs(
    rooms: Rooms, sight: Sight, question: Question, stored: Mapping[int, Evidence]
) -> tuple[dict[str, tuple[Claim, ...]], dict[int, tuple[Claim, ...]]]:
    """Return claims by evidence id, and by row the claims that replaced a superseded one."""
    if newest_claim(sight.tx, sight.ns) == 0:
        return {}, {}
    of_evidence = partial(
        claim_ledger.of_evidence,
        sight.tx,
        sight.ns,
        as_of=question.now,
        known_at=question.known_at,
        order=rooms.options.authorities,
    )
    claims = of_evidence([evidence.evidence_id for evidence in stored.values()])
    ends = claim_ledger.superseded_evidence(
        sight.tx,
        sight.ns,
        stored,
        as_of=question.now,
        known_at=question.known_at,
        order=rooms.options.authorities,
    )
    # What replaced it may have been said after the time asked: then the old words are the best
    # that may be shown, and leaving them out would show nothing at all.
    ends = {row: end for row, end in ends.items() if sight.shows_any(end.row_ids)}
    wanted = {evidence_id for end in ends.values() for evidence_id in end.evidence_ids}
    newer = of_evidence(wanted)
    by_id = {claim.claim_id: claim for group in newer.values() for claim in group}
    replaced = {
        row: tuple(by_id[claim_id] for claim_id in end.claim_ids if claim_id in by_id)
        for row, end in ends.items()
    }
    return claims, replaced


def checked_limit(limit: object) -> int:
    """Return ``limit`` if it is an integer from 0 to 10,000; raises InputError."""
    if type(limit) is not int or not 0 <= limit <= MAX_LIMIT:
        raise InputError(f"limit is an integer from 0 to {MAX_LIMIT:,}, not {limit!r}")
    return limit


def search(rooms: Rooms, question: Question, limit: int) -> SearchResult:
    """Return ranked evidence; see ``EviCortex.search``."""
    with rooms.ledger.read() as tx:
        ns = tx.namespace(question.namespace)
        if ns is None:
            return SearchResult((), (_EMPTY,))
        sight = look(rooms, tx, ns, question)
        found = _find(rooms, sight, question, rooms.options.recall.candidates + limit, cut=False)
    shown = [
        candidate
        for candidate in found.candidates
        if not candidate.excluded and (question.include_superseded or not candidate.superseded)
    ]
    hits = tuple(
        Hit(candidate.evidence, place, candidate.score, candidate.channels, candidate.superseded)
        for place, candidate in enumerate(shown[:limit], start=1)
    )
    return SearchResult(hits, (*_diagnostics(rooms, found), *_left_out(found, shown)))


def _left_out(found: _Found, shown: Sequence[PackCandidate]) -> list[Diagnostic]:
    """Name what a search found and does not show."""
    kept = {candidate.evidence.evidence_id for candidate in shown}
    gone = [each for each in found.candidates if each.evidence.evidence_id not in kept]
    diagnostics: list[Diagnostic] = []
    for code, rejected in (
        ("excluded", [each for each in gone if each.excluded]),
        ("superseded", [each for each in gone if not each.excluded]),
    ):
        if rejected:
            ids = tuple(each.evidence.evidence_id for each in rejected)
            message = f"{len(ids)} evidence that matched are left out: {code}"
            diagnostics.append(Diagnostic(code, message, {"evidence_ids": ids}))
    return diagnostics


_EMPTY = Diagnostic("namespace_empty", "nothing was ever stored in this namespace")


def recall(rooms: Rooms, question: Question, budget: int) -> ContextPack:
    """Return a pack; see ``EviCortex.recall``."""
    with rooms.ledger.read() as tx:
        ns = tx.namespace(question.namespace)
        if ns is None:
            return _nothing(rooms, budget, question.namespace)
        sight = look(rooms, tx, ns, question)
        wanted = budget // rooms.options.recall.tokens_per_candidate
        limit = rooms.options.recall.candidates + wanted
        found = _find(rooms, sight, question, limit, cut=rooms.options.packing.cut)
        return _packed(rooms, question, found, budget)


def _packed(rooms: Rooms, question: Question, found: _Found, budget: int) -> ContextPack:
    policy = replace(
        rooms.options.packing,
        include_superseded=question.include_superseded or rooms.options.packing.include_superseded,
    )
    packed = pack(
        found.candidates,
        budget=budget,
        counter=rooms.counter,
        policy=policy,
        query=PackQuery(question.text, found.ranking.lexical.idf),
        nothing_because=_nothing_because(found.sight),
        times=times_of(rooms, found.sight.tx, found.sight.ns) if question.show_times else None,
        pieces_of=rooms.pieces.of(found.sight.ns.namespace_id, found.sight.rows.generation),
    )
    return ContextPack(
        text=packed.text,
        token_count=packed.token_count,
        budget_tokens=budget,
        items=packed.items,
        omitted=packed.omitted,
        support=_support(rooms, found),
        diagnostics=(*_diagnostics(rooms, found), *packed.diagnostics),
        trace=_trace(question, found),
    )


def _nothing_because(sight: Sight) -> NothingBecause:
    if sight.count:
        return "no_match"
    return "filtered_out" if len(sight.rows) else "namespace_empty"


def _support(rooms: Rooms, found: _Found) -> Support:
    sight, ranking = found.sight, found.ranking
    return assess(
        SupportEvidence.measure(
            found.analysis,
            ranking.lexical,
            sight.rows.actor,
            sight.people.names,
            literal=bool(ranking.literal and len(ranking.literal.rows)),
            unknown=sight.unknown_names(found.analysis),
            claims=ranking.claim_words,
            times=ranking.channels.get("time"),
        ),
        policy=rooms.options.support,
        calibration=rooms.options.calibration,
    )


def _trace(question: Question, found: _Found) -> dict[str, Any]:
    """Return what is needed to see why the pack is what it is."""
    analysis, ranking = found.analysis, found.ranking
    return {
        "namespace": question.namespace,
        "as_of": None if question.as_of is None else question.as_of.isoformat(),
        "known_at": None if question.known_at is None else question.known_at.isoformat(),
        "now": question.now.isoformat(),
        "rows": len(found.sight.rows),
        "allowed": found.sight.count,
        "terms": tuple(analysis.terms),
        "text": analysis.text,
        "kind": analysis.kind,
        "actors": tuple(analysis.actors),
        "actor": analysis.actor,
        "exclusions": tuple(each.phrase for each in analysis.exclusions),
        "intervals": tuple(
            (start.isoformat(), end.isoformat()) for start, end in found.sight.intervals(analysis)
        ),
        "channels": tuple(ranking.channels),
        "lexical_factor": ranking.lexical_factor,
        "candidates": len(found.candidates),
        "ranker": ranking.closer is not None,
    }


def _diagnostics(rooms: Rooms, found: _Found) -> tuple[Diagnostic, ...]:
    return (*semantic_state(rooms), *found.diagnostics)


def semantic_state(rooms: Rooms) -> tuple[Diagnostic, ...]:
    """Say when the semantic channel is off, or only a diagnostic encoder is on."""
    if rooms.embedder is None:
        return (Diagnostic("semantic_off", rooms.semantic_off_because),)
    if not rooms.embedder.profile.semantic:
        return (
            Diagnostic(
                "semantic_diagnostic",
                f"{rooms.embedder.profile.model_id} is a diagnostic encoder, no semantic model",
            ),
        )
    return ()


def _nothing(rooms: Rooms, budget: int, namespace: str) -> ContextPack:
    packed = pack([], budget=budget, counter=rooms.counter, nothing_because="namespace_empty")
    return ContextPack(
        text=packed.text,
        token_count=packed.token_count,
        budget_tokens=budget,
        items=(),
        omitted=(),
        support=Support("insufficient", None, ("nothing was ever stored in this namespace",)),
        diagnostics=(*semantic_state(rooms), *packed.diagnostics),
        trace={"namespace": namespace, "rows": 0, "allowed": 0},
    )
