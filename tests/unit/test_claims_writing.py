from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evicortex.errors import (
    InvalidClaimError,
    InvalidSpanError,
    InvalidTextError,
    InvalidTimeError,
    NotFoundError,
    ReadOnlyError,
)
from evicortex.ledger import Ledger, NamespaceRow, Transaction, audit, claims
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.evidence import Added, CheckedDraft
from evicortex.types import (
    Authority,
    Claim,
    ClaimDraft,
    ClaimStatus,
    Evidence,
    RetractReceipt,
    Span,
)
from evicortex.validity import PredicateRegistry, to_micros

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2027, 1, 1, tzinfo=UTC)


class Ticking:
    """Each look at it is one second later."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "memory.db", clock=Ticking()) as opened:
        yield opened


def space(tx: Transaction, name: str = "alice") -> NamespaceRow:
    found = tx.namespace(name, create=tx.writable)
    assert found is not None
    return found


def say(
    ledger: Ledger,
    text: str,
    *drafts: ClaimDraft,
    occurred_at: datetime | None = None,
    role: str = "user",
    authority: str = "user",
    name: str = "alice",
    origin: claims.Origin = "call",
) -> tuple[Evidence, tuple[str, ...]]:
    with ledger.write() as tx:
        ns = space(tx, name)
        draft = CheckedDraft(
            text,
            role=role,
            authority=authority,
            occurred_at=None if occurred_at is None else to_micros(occurred_at),
        )
        (added,) = evidence_ledger.add(tx, ns, [draft])
        assert isinstance(added, Added)
        evidence = evidence_ledger.get(tx, ns, added.evidence_id)
        return evidence, claims.add(tx, ns, evidence, drafts, origin=origin)


def again(
    ledger: Ledger, evidence: Evidence, *drafts: ClaimDraft, origin: claims.Origin = "call"
) -> tuple[str, ...]:
    with ledger.write() as tx:
        return claims.add(tx, space(tx), evidence, drafts, origin=origin)


def listed(ledger: Ledger, *, everything: bool = True, name: str = "alice") -> tuple[Claim, ...]:
    with ledger.read() as tx:
        return claims.list_claims(tx, space(tx, name), as_of=LATER, include_superseded=everything)


def retract(ledger: Ledger, claim_id: str, cause: claims.Cause = "call") -> RetractReceipt:
    with ledger.write() as tx:
        return claims.retract(tx, space(tx), claim_id, reason="wrong", cause=cause)


def events(ledger: Ledger, event: str) -> int:
    with ledger.read() as tx:
        return sum(entry.event == event for entry in audit.entries(tx, space(tx)))


def lives_in(place: str, **fields: object) -> ClaimDraft:
    return ClaimDraft("Alice", "lives_in", place, **fields)  # type: ignore[arg-type]


def test_a_claim_keeps_its_words_and_points_at_its_evidence(ledger: Ledger) -> None:
    draft = lives_in(" LISBON ", span=(0, 3), confidence=0.5, polarity="negative")
    evidence, (claim_id,) = say(ledger, "Ça va?", draft, occurred_at=START)
    (claim,) = listed(ledger)
    assert claim.claim_id == claim_id
    assert (claim.subject, claim.predicate, claim.object) == ("Alice", "lives_in", " LISBON ")
    assert (claim.namespace, claim.confidence, claim.polarity) == ("alice", 0.5, "negative")
    assert claim.authority is Authority.USER
    assert claim.cardinality == "single"
    assert claim.valid_from == claim.asserted_from == START
    assert claim.valid_to is claim.asserted_to is claim.superseded_at is None
    assert claim.recorded_at == evidence.recorded_at
    assert claim.status is ClaimStatus.HELD
    (derivation,) = claim.derivations
    assert derivation.evidence_id == evidence.evidence_id
    assert derivation.evidence_digest == evidence.digest
    assert derivation.span == Span(0, 3)


def test_a_claim_on_the_whole_evidence_says_so(ledger: Ledger) -> None:
    say(ledger, "text", lives_in("Lisbon"))
    assert listed(ledger)[0].derivations[0].span is None


def test_without_a_time_a_claim_begins_when_its_evidence_was_recorded(ledger: Ledger) -> None:
    evidence, _ = say(ledger, "text")
    again(ledger, evidence, lives_in("Lisbon"))
    (claim,) = listed(ledger)
    assert claim.valid_from == evidence.recorded_at
    assert claim.recorded_at > evidence.recorded_at
    with pytest.raises(InvalidTimeError):
        again(ledger, evidence, lives_in("Porto", valid_to=evidence.recorded_at))


@pytest.mark.parametrize(
    ("draft", "error"),
    [
        (lives_in(""), InvalidClaimError),
        (lives_in("\udfff"), InvalidTextError),
        (lives_in("Porto", span=(0, 99)), InvalidSpanError),
        (lives_in("Porto", valid_from="then"), InvalidTimeError),
        (lives_in("Porto", authority="system"), InvalidClaimError),
    ],
)
def test_one_bad_draft_and_none_is_written(
    ledger: Ledger, draft: ClaimDraft, error: type[Exception]
) -> None:
    evidence, _ = say(ledger, "text")
    with ledger.write() as tx:
        ns, before = space(tx), tx.connection.total_changes()
        with pytest.raises(error):
            claims.add(tx, ns, evidence, [lives_in("Lisbon"), draft])
        assert tx.connection.total_changes() == before
    assert listed(ledger) == ()
    assert events(ledger, "claims") == 0


def test_the_same_claims_again_are_the_same_claims(ledger: Ledger) -> None:
    drafts = (lives_in("Lisbon", span=(0, 2)), ClaimDraft("Alice", "likes", "tea", confidence=1))
    evidence, first = say(ledger, "text", *drafts)
    before = listed(ledger)
    assert again(ledger, evidence, *drafts) == first
    assert again(ledger, evidence, *reversed(drafts)) == first[::-1]
    assert listed(ledger) == before
    assert events(ledger, "claims") == 1


def test_a_draft_twice_in_one_call_is_one_claim(ledger: Ledger) -> None:
    _, (first, second) = say(ledger, "text", lives_in("Lisbon"), lives_in("Lisbon"))
    assert first == second
    assert len(listed(ledger)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"span": (0, 1)},
        {"confidence": 0.9},
        {"polarity": "negative"},
        {"authority": "tool"},
        {"valid_from": "2025-01-01T00:00:00Z"},
        {"valid_to": "2029-01-01T00:00:00Z"},
        {"cardinality": "single"},
    ],
)
def test_a_claim_that_differs_in_anything_is_another_claim(
    ledger: Ledger, change: dict[str, object]
) -> None:
    _, ids = say(ledger, "text", lives_in("Lisbon"), lives_in("Lisbon", **change))
    assert len(set(ids)) == 2


def test_spelling_out_the_defaults_changes_nothing(ledger: Ledger) -> None:
    spelled = lives_in("Lisbon", authority="user", valid_from=START, confidence=1.0)
    _, ids = say(ledger, "text", lives_in("Lisbon"), spelled, occurred_at=START)
    assert len(set(ids)) == 1


def test_the_same_words_on_other_evidence_corroborate(ledger: Ledger) -> None:
    _, (first,) = say(ledger, "I live in Lisbon", lives_in("Lisbon"), occurred_at=START)
    _, (second,) = say(ledger, "Lisbon it is", lives_in("lisbon "), occurred_at=START)
    assert first != second
    a, b = listed(ledger, everything=False)
    assert (a.corroborated_by, b.corroborated_by) == ((second,), (first,))


def test_a_caller_and_an_extraction_make_claims_of_their_own(ledger: Ledger) -> None:
    evidence, by_call = say(ledger, "text", lives_in("Lisbon"))
    by_extraction = again(ledger, evidence, lives_in("Lisbon"), origin="extraction")
    assert by_call != by_extraction


def test_claims_of_the_same_text_in_two_namespaces_have_other_ids(ledger: Ledger) -> None:
    _, alice = say(ledger, "text", lives_in("Lisbon"))
    _, bob = say(ledger, "text", lives_in("Lisbon"), name="bob")
    assert alice != bob


def test_an_assistants_words_have_at_most_its_authority(ledger: Ledger) -> None:
    say(ledger, "You live in Lisbon", lives_in("Lisbon"), role="assistant")
    assert listed(ledger)[0].authority is Authority.ASSISTANT


def test_an_undeclared_predicate_follows_the_registry(ledger: Ledger) -> None:
    drafts = [ClaimDraft("Alice", p, "x") for p in ("lives_in", "likes", "collects")]
    evidence, _ = say(ledger, "text", *drafts)
    kinds = {claim.predicate: claim.cardinality for claim in listed(ledger)}
    assert kinds == {"lives_in": "single", "likes": "multi", "collects": "multi"}
    with ledger.write() as tx:
        registry = PredicateRegistry({"team": "single"})
        claims.add(tx, space(tx), evidence, [ClaimDraft("Alice", "team", "x")], registry=registry)
    assert {c.cardinality for c in listed(ledger) if c.predicate == "team"} == {"single"}


def test_an_undeclared_predicate_follows_the_newest_declaration(ledger: Ledger) -> None:
    def team(value: str, cardinality: str | None = None, predicate: str = "Team") -> ClaimDraft:
        return ClaimDraft("Alice", predicate, value, cardinality=cardinality)  # type: ignore[arg-type]

    say(ledger, "one", team("a"), team("b", "single"), team("c", predicate=" TEAM "))
    say(ledger, "two", team("d"), team("e", "multi"), team("f"))
    evidence, _ = say(ledger, "three", team("g"))
    kinds = {claim.object: claim.cardinality for claim in listed(ledger)}
    assert kinds == {
        "a": "multi",
        "b": "single",
        "c": "single",
        "d": "single",
        "e": "multi",
        "f": "multi",
        "g": "multi",
    }
    _, _ = say(ledger, "elsewhere", team("h"), name="bob")
    assert listed(ledger, name="bob")[0].cardinality == "multi"
    say(ledger, "four", team("i", "single"))
    before = listed(ledger)
    again(ledger, evidence, team("g"))
    assert listed(ledger) == before


def test_retraction_gives_back_what_the_claim_had_closed(ledger: Ledger) -> None:
    _, (berlin,) = say(ledger, "one", lives_in("Berlin"))
    _, (lisbon,) = say(ledger, "two", lives_in("Lisbon"))
    receipt = retract(ledger, lisbon)
    assert (receipt.claim_id, receipt.created) == (lisbon, True)
    assert receipt.reinstated == (berlin,)
    (held,) = listed(ledger, everything=False)
    assert held.claim_id == berlin
    gone = listed(ledger)[1]
    assert (gone.status, gone.superseded_at) == (ClaimStatus.RETRACTED, receipt.retracted_at)
    with ledger.read() as tx:
        moment = receipt.retracted_at - timedelta(microseconds=1)
        (then,) = claims.list_claims(tx, space(tx), as_of=LATER, known_at=moment)
    assert then.claim_id == lisbon


def test_a_second_retraction_changes_nothing(ledger: Ledger) -> None:
    _, (claim_id,) = say(ledger, "one", lives_in("Berlin"))
    first = retract(ledger, claim_id)
    second = retract(ledger, claim_id)
    assert second == RetractReceipt(claim_id, first.retracted_at, created=False)
    assert events(ledger, "retractions") == 1


def test_retraction_reinstates_only_what_holds_today(ledger: Ledger) -> None:
    over = lives_in("Rome", valid_from="2020-01-01T00:00:00Z", valid_to="2021-01-01T00:00:00Z")
    say(ledger, "one", over)
    _, (claim_id,) = say(ledger, "two", lives_in("Oslo", valid_from="2020-06-01T00:00:00Z"))
    assert retract(ledger, claim_id).reinstated == ()


def test_a_retry_never_undoes_a_retraction(ledger: Ledger) -> None:
    evidence, (claim_id,) = say(ledger, "one", lives_in("Berlin"))
    retract(ledger, claim_id)
    assert again(ledger, evidence, lives_in("Berlin")) == (claim_id,)
    assert listed(ledger, everything=False) == ()


def test_what_only_reextraction_withdrew_is_asserted_anew(ledger: Ledger) -> None:
    evidence, (first,) = say(ledger, "one", lives_in("Berlin"), origin="extraction")
    retract(ledger, first, "reextraction")
    (second,) = again(ledger, evidence, lives_in("Berlin"), origin="extraction")
    assert second != first
    assert [c.claim_id for c in listed(ledger, everything=False)] == [second]
    assert again(ledger, evidence, lives_in("Berlin"), origin="extraction") == (second,)
    retract(ledger, second, "reextraction")
    (third,) = again(ledger, evidence, lives_in("Berlin"), origin="extraction")
    assert len({first, second, third}) == 3
    retract(ledger, third)
    assert again(ledger, evidence, lives_in("Berlin"), origin="extraction") == (third,)


@pytest.mark.parametrize("claim_id", ["cl_000000000000000000000000", "", "\ud800", "x\0y"])
def test_an_unknown_claim_cannot_be_retracted(ledger: Ledger, claim_id: str) -> None:
    say(ledger, "one", lives_in("Berlin"))
    with pytest.raises(NotFoundError):
        retract(ledger, claim_id)


def test_a_claim_of_another_namespace_cannot_be_retracted(ledger: Ledger) -> None:
    say(ledger, "one")
    _, (claim_id,) = say(ledger, "one", lives_in("Berlin"), name="bob")
    with pytest.raises(NotFoundError):
        retract(ledger, claim_id)
    assert listed(ledger, name="bob")[0].status is ClaimStatus.HELD


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("", InvalidClaimError),
        (" \n", InvalidClaimError),
        (None, InvalidClaimError),
        ("\ud800", InvalidTextError),
    ],
)
def test_a_retraction_needs_a_reason(ledger: Ledger, reason: str, error: type[Exception]) -> None:
    _, (claim_id,) = say(ledger, "one", lives_in("Berlin"))
    with ledger.write() as tx, pytest.raises(error, match="reason"):
        claims.retract(tx, space(tx), claim_id, reason=reason)
    assert listed(ledger)[0].status is ClaimStatus.HELD


def test_a_read_writes_nothing(ledger: Ledger) -> None:
    evidence, (claim_id,) = say(ledger, "one", lives_in("Berlin"))
    with ledger.read() as tx:
        ns = space(tx)
        with pytest.raises(ReadOnlyError):
            claims.add(tx, ns, evidence, [])
        with pytest.raises(ReadOnlyError):
            claims.retract(tx, ns, claim_id, reason="wrong")
        with pytest.raises(ReadOnlyError):
            claims.remove(tx, ns, [])


def test_a_write_that_fails_leaves_no_claim(ledger: Ledger) -> None:
    evidence, _ = say(ledger, "one")

    def fail() -> None:
        with ledger.write() as tx:
            claims.add(tx, space(tx), evidence, [lives_in("Berlin")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert listed(ledger) == ()
    (claim_id,) = again(ledger, evidence, lives_in("Berlin"))
    assert [c.claim_id for c in listed(ledger)] == [claim_id]
