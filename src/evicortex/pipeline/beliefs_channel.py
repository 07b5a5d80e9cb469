"""Claims as a channel: evidence whose held claims share the question's words or resemble it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evicortex.ledger import claims as claim_ledger
from evicortex.ledger.claim_texts import ClaimText, newest_claim
from evicortex.pipeline.claim_words import Match, Similar, Visible
from evicortex.pipeline.dense import DenseScores
from evicortex.pipeline.sight import Question, Sight
from evicortex.pipeline.wiring import Rooms
from evicortex.policy import claim_shares
from evicortex.policy.query import QueryAnalysis
from evicortex.projections.claim_vectors import ClaimVectors
from evicortex.text import content_terms
from evicortex.types import ClaimStatus, Diagnostic
from evicortex.validity import match_key, to_micros

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ClaimScores:
    """For every row the best share of the question that a claim held on it answers.

    ``words`` are the shares of the words alone. ``None``: no claim says anything.
    """

    shares: Float32 | None
    words: Float32 | None
    diagnostics: tuple[Diagnostic, ...] = ()


def claim_scores(
    rooms: Rooms,
    sight: Sight,
    question: Question,
    analysis: QueryAnalysis,
    dense: DenseScores | None,
) -> ClaimScores:
    """Score the allowed rows by the claims that rest on them.

    Only claims on evidence that the question may see, known then and held at the time asked,
    count; a share is multiplied by the claim's confidence. The best ``claim_candidates`` pairs
    of subject and predicate of which something is held are used, each with its whole history. Vectors count only when they are of a semantic
    encoder, and only for claims about those whom the question is about.
    """
    vectors, diagnostics = _vectors(rooms, sight, dense)
    options = rooms.options.claims
    shares: Iterable[tuple[int, float]] = ()
    if vectors is not None and dense is not None and dense.query is not None:
        cosines = vectors.scores(dense.query)
        shares = claim_shares.similar(vectors.numbers, cosines, options)
    asked, people = _people(sight, analysis)
    similar = Similar(
        shares,
        lambda subject: not claim_shares.about_somebody_else(match_key(subject), asked, people),
        options.candidates,
    )
    terms = content_terms(question.text)
    visible = _visible(sight, question)
    found = rooms.claim_words.matches(sight.tx, sight.ns, terms, similar, visible)
    if vectors is not None and len(vectors.numbers) < found.claims:
        diagnostics = (_missing(found.claims - len(vectors.numbers)),)
    if not found.items:
        return ClaimScores(None, None, diagnostics)
    scores = _by_row(rooms, sight, question, found.items)
    return replace(scores, diagnostics=diagnostics + scores.diagnostics)


def _missing(count: int) -> Diagnostic:
    return Diagnostic(
        "claims_not_embedded",
        f"{count} claims have no vector and are found by their words only; run sync_semantic",
        {"missing": count},
    )


def _vectors(
    rooms: Rooms, sight: Sight, dense: DenseScores | None
) -> tuple[ClaimVectors | None, tuple[Diagnostic, ...]]:
    embedder = rooms.embedder
    if dense is None or not dense.usable or embedder is None or not embedder.profile.semantic:
        return None, ()
    newest, cap = newest_claim(sight.tx, sight.ns), rooms.options.semantic.scan_cap
    if newest == 0:
        return None, ()
    if newest > cap:
        message = (
            f"up to {newest} claims exceed the scan cap of {cap}; an incomplete scan is not "
            "exact, so claims are found by their words only"
        )
        details = {"claims": newest, "cap": cap}
        return None, (Diagnostic("scan_cap_reached", message, details),)
    vectors = rooms.semantic.claim_view(
        sight.tx.connection,
        sight.ns.namespace_id,
        sight.rows.generation,
        embedder.digest,
        embedder.profile.dimensions,
    )
    return vectors, ()


def _people(sight: Sight, analysis: QueryAnalysis) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names, folded, of those asked about, and of everybody who is known."""
    asked = {*analysis.actors, *((analysis.actor,) if analysis.actor else ())}
    names = {match_key(name): name for name in sight.people.names.values()}
    names |= {
        match_key(alias): sight.people.names[actor] for alias, actor in sight.people.aliases.items()
    }
    return frozenset(key for key, name in names.items() if name in asked), frozenset(names)


def _by_row(
    rooms: Rooms, sight: Sight, question: Question, matches: Sequence[Match]
) -> ClaimScores:
    ranked = sorted(
        matches, key=lambda match: (-match.share * match.claim.confidence, match.claim.seq)
    )
    held, diagnostics = _held(rooms, sight, question, ranked)
    ranked = [match for match in ranked if match.claim.claim_id in held]
    index = sight.rows.index([match.claim.row_id for match in ranked])
    shares, words = np.zeros((2, len(sight.rows)), dtype=np.float32)
    for match, row in zip(ranked, index.tolist(), strict=True):
        if row >= 0 and (sight.mask is None or sight.mask[row]):
            confidence = match.claim.confidence
            shares[row] = max(shares[row], match.share * confidence)
            words[row] = max(words[row], match.words * confidence)
    if not shares.any():
        return ClaimScores(None, None, diagnostics)
    return ClaimScores(shares, words, diagnostics)


def _held(
    rooms: Rooms, sight: Sight, question: Question, matches: Sequence[Match]
) -> tuple[frozenset[str], tuple[Diagnostic, ...]]:
    """Return the claims that are held among the best pairs of subject and predicate.

    Pairs of which nothing is held do not count; no more than ``claim_cap`` are looked at.
    """
    pairs = list(dict.fromkeys((match.claim.subject, match.claim.predicate) for match in matches))
    wanted, cap = rooms.options.recall.claim_candidates, rooms.options.recall.claim_cap
    held: set[str] = set()
    useful = 0
    for looked, (subject, predicate) in enumerate(pairs):
        if useful == wanted:
            break
        if looked == cap:
            return frozenset(held), (_capped(cap, len(pairs)),)
        found = claim_ledger.list_claims(
            sight.tx,
            sight.ns,
            subject=subject,
            predicate=predicate,
            as_of=question.now,
            known_at=question.known_at,
            order=rooms.options.authorities,
        )
        held |= {claim.claim_id for claim in found if claim.status is ClaimStatus.HELD}
        useful += bool(found)
    return frozenset(held), ()


def _capped(cap: int, pairs: int) -> Diagnostic:
    return Diagnostic(
        "claim_cap",
        f"{cap} of {pairs} matching subjects and predicates were looked at for a held claim",
        {"looked_at": cap, "matching": pairs},
    )


def _visible(sight: Sight, question: Question) -> Visible | None:
    """Return which claims the question may see: recorded by then, on evidence that is allowed."""
    if sight.mask is None and question.known_at is None:
        return None
    known = None if question.known_at is None else to_micros(question.known_at)

    def seen(claims: Sequence[ClaimText]) -> npt.NDArray[np.bool_]:
        index = sight.rows.index([claim.row_id for claim in claims])
        allowed = index >= 0
        if sight.mask is not None:
            allowed[allowed] = sight.mask[index[allowed]]
        if known is not None:
            recorded = np.fromiter((claim.recorded_at for claim in claims), np.int64, len(claims))
            allowed &= recorded <= known
        return np.asarray(allowed, dtype=np.bool_)

    return seen
