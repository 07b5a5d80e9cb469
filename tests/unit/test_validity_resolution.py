"""The rule of supersession, one story at a time. Times are small integers, recorded in order."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from evicortex.types import Authority, Cardinality, ClaimStatus, Polarity
from evicortex.validity import (
    Assertion,
    AuthorityOrder,
    ClaimState,
    Conflict,
    conflicts,
    resolve,
)

NO = Polarity.NEGATIVE


def claim(
    claim_id: str,
    value: str,
    start: int,
    end: int | None = None,
    *,
    recorded: int,
    polarity: Polarity = Polarity.POSITIVE,
    cardinality: Cardinality = "single",
    authority: Authority = Authority.USER,
    retracted: int | None = None,
    subject: str = "alice",
) -> Assertion:
    return Assertion(
        claim_id,
        recorded,
        subject,
        "lives_in",
        value,
        polarity,
        cardinality,
        authority,
        start,
        end,
        recorded,
        retracted,
    )


def held(claims: Iterable[Assertion], as_of: int, known_at: int | None = None) -> list[str]:
    states = resolve(claims, as_of=as_of, known_at=known_at)
    return sorted(s.claim_id for s in states.values() if s.status is ClaimStatus.HELD)


BERLIN = claim("berlin", "berlin", 10, recorded=1)
LISBON = claim("lisbon", "lisbon", 20, recorded=2)


def test_a_later_start_closes_the_earlier_claim_there() -> None:
    states = resolve([BERLIN, LISBON], as_of=25)
    assert states == {
        "berlin": ClaimState(
            "berlin", ClaimStatus.SUPERSEDED, 10, 20, ("lisbon",), superseded_at=2
        ),
        "lisbon": ClaimState("lisbon", ClaimStatus.HELD, 20, None),
    }
    assert held([BERLIN, LISBON], 19) == ["berlin"]
    assert held([BERLIN, LISBON], 20) == ["lisbon"]
    assert held([BERLIN, LISBON], 9) == []


def test_before_the_start_a_claim_is_future_and_unsuperseded() -> None:
    states = resolve([BERLIN, LISBON], as_of=15)
    assert states["lisbon"].status is ClaimStatus.FUTURE
    assert states["berlin"] == ClaimState("berlin", ClaimStatus.HELD, 10, 20)
    assert resolve([BERLIN], as_of=0)["berlin"] == ClaimState(
        "berlin", ClaimStatus.FUTURE, 10, None
    )


def test_old_news_that_arrives_late_never_becomes_current() -> None:
    porto = claim("porto", "porto", 5, recorded=3)
    assert held([BERLIN, LISBON, porto], 25) == ["lisbon"]
    assert held([BERLIN, LISBON, porto], 7) == ["porto"]
    late = resolve([BERLIN, LISBON, porto], as_of=25)["porto"]
    assert late == ClaimState("porto", ClaimStatus.SUPERSEDED, 5, 10, ("berlin",), superseded_at=3)


def test_what_is_recorded_later_is_unknown_before() -> None:
    assert held([BERLIN, LISBON], 25, known_at=1) == ["berlin"]
    assert "lisbon" not in resolve([BERLIN, LISBON], as_of=25, known_at=1)
    assert resolve([BERLIN, LISBON], as_of=25, known_at=0) == {}


def test_the_same_start_recorded_later_replaces() -> None:
    corrected = claim("corrected", "bern", 10, recorded=2)
    states = resolve([BERLIN, corrected], as_of=12)
    assert states["berlin"] == ClaimState(
        "berlin", ClaimStatus.SUPERSEDED, 10, 10, ("corrected",), superseded_at=2
    )
    assert states["corrected"] == ClaimState("corrected", ClaimStatus.HELD, 10, None)


def test_the_corrected_claim_is_named_as_the_end_not_the_mistake() -> None:
    mistake = claim("mistake", "lisbeth", 20, recorded=2)
    right = claim("right", "lisbon", 20, recorded=3)
    assert resolve([BERLIN, mistake, right], as_of=25)["berlin"].superseded_by == ("right",)
    assert resolve([BERLIN, mistake, right], as_of=25)["berlin"].superseded_at == 2


def test_equal_values_corroborate() -> None:
    again = claim("again", "berlin", 12, recorded=2)
    states = resolve([BERLIN, again], as_of=15)
    assert [s.status for s in states.values()] == [ClaimStatus.HELD] * 2
    assert states["berlin"].corroborated_by == ("again",)
    assert states["again"].corroborated_by == ("berlin",)
    assert resolve([BERLIN, again], as_of=11)["berlin"].corroborated_by == ()


def test_claims_of_another_era_do_not_corroborate() -> None:
    back = claim("back", "berlin", 30, recorded=3)
    states = resolve([BERLIN, LISBON, back], as_of=35)
    assert states["back"] == ClaimState("back", ClaimStatus.HELD, 30, None)
    assert states["berlin"].status is ClaimStatus.SUPERSEDED
    assert states["berlin"].corroborated_by == ()
    assert (states["berlin"].valid_from, states["berlin"].valid_to) == (10, 20)


def test_claims_that_fell_together_corroborate() -> None:
    again = claim("again", "berlin", 12, recorded=3)
    states = resolve([BERLIN, again, LISBON], as_of=25)
    assert states["berlin"].corroborated_by == ("again",)
    assert states["again"].superseded_by == ("lisbon",)


def test_a_bounded_claim_in_the_middle_gives_the_earlier_one_back() -> None:
    stay = claim("stay", "rome", 20, 30, recorded=2)
    assert held([BERLIN, stay], 19) == ["berlin"]
    assert held([BERLIN, stay], 20) == held([BERLIN, stay], 29) == ["stay"]
    after = resolve([BERLIN, stay], as_of=30)
    assert after["berlin"] == ClaimState("berlin", ClaimStatus.HELD, 30, None)
    assert after["stay"] == ClaimState("stay", ClaimStatus.EXPIRED, 20, 30)
    during = resolve([BERLIN, stay], as_of=25)["berlin"]
    assert (during.valid_from, during.valid_to) == (10, 20)


def test_a_claim_covered_from_its_start_is_held_later() -> None:
    stay = claim("stay", "rome", 12, 30, recorded=1)
    early = claim("early", "berlin", 12, recorded=0)
    state = resolve([stay, early], as_of=13)["early"]
    assert (state.status, state.valid_from, state.valid_to) == (ClaimStatus.SUPERSEDED, 30, None)


def test_retraction_gives_back_what_was_closed() -> None:
    gone = LISBON._replace(retracted_at=3)
    assert held([BERLIN, gone], 25) == ["berlin"]
    assert held([BERLIN, gone], 25, known_at=2) == ["lisbon"]
    assert resolve([BERLIN, gone], as_of=25)["lisbon"] == ClaimState(
        "lisbon", ClaimStatus.RETRACTED, 20, 20, superseded_at=3
    )


def test_a_denial_ends_the_claim_it_denies() -> None:
    left = claim("left", "berlin", 20, recorded=2, polarity=NO)
    states = resolve([BERLIN, left], as_of=25)
    assert states["left"].status is ClaimStatus.HELD
    assert states["berlin"].superseded_by == ("left",)
    assert held([BERLIN, left, claim("back", "berlin", 30, recorded=3)], 35) == ["back"]


def test_denials_of_other_values_stand_beside_the_claim() -> None:
    never = claim("never", "rome", 20, recorded=2, polarity=NO)
    nor = claim("nor", "oslo", 21, recorded=3, polarity=NO)
    assert held([BERLIN, never, nor], 25) == ["berlin", "never", "nor"]


def test_many_values_stand_side_by_side_where_the_predicate_allows() -> None:
    tea = claim("tea", "tea", 1, recorded=1, cardinality="multi")
    rye = claim("rye", "rye", 2, recorded=2, cardinality="multi")
    no_tea = claim("no tea", "tea", 3, recorded=3, cardinality="multi", polarity=NO)
    assert held([tea, rye], 5) == ["rye", "tea"]
    assert held([tea, rye, no_tea], 5) == ["no tea", "rye"]


def test_the_claim_that_would_win_says_whether_it_is_exclusive() -> None:
    many = claim("many", "red", 1, recorded=1, cardinality="multi")
    only = claim("only", "blue", 2, recorded=2)
    assert held([many, only], 5) == ["only"]
    both = claim("both", "green", 3, recorded=3, cardinality="multi")
    assert held([many, only, both], 5) == ["both", "only"]


def test_a_lower_authority_conflicts_and_never_supersedes() -> None:
    rumour = claim("rumour", "oslo", 20, recorded=2, authority=Authority.DOCUMENT)
    states = resolve([BERLIN, rumour], as_of=25)
    assert states["berlin"] == ClaimState(
        "berlin", ClaimStatus.HELD, 10, None, conflicts_with=("rumour",)
    )
    assert states["rumour"] == ClaimState(
        "rumour",
        ClaimStatus.CONFLICTING,
        20,
        20,
        conflicts_with=("berlin",),
        superseded_at=2,
    )


def test_a_lower_authority_counts_where_the_higher_is_silent() -> None:
    rumour = claim("rumour", "oslo", 0, 50, recorded=2, authority=Authority.DOCUMENT)
    stay = claim("stay", "rome", 20, 30, recorded=1)
    assert held([rumour, stay], 5) == ["rumour"]
    assert held([rumour, stay], 25) == ["stay"]
    assert held([rumour, stay], 35) == ["rumour"]


def test_a_higher_authority_that_starts_later_supersedes() -> None:
    file = claim("file", "oslo", 0, recorded=2, authority=Authority.DOCUMENT)
    state = resolve([file, BERLIN], as_of=25)["file"]
    assert state == ClaimState("file", ClaimStatus.SUPERSEDED, 0, 10, ("berlin",), superseded_at=2)


def test_an_assistant_that_repeats_the_newer_claim_is_no_conflict_with_the_older() -> None:
    echo = claim("echo", "lisbon", 22, recorded=3, authority=Authority.ASSISTANT)
    states = resolve([BERLIN, LISBON, echo], as_of=25)
    assert states["echo"] == ClaimState(
        "echo", ClaimStatus.HELD, 22, None, corroborated_by=("lisbon",)
    )
    assert list(conflicts([BERLIN, LISBON, echo])) == []


def test_authority_follows_the_configured_order() -> None:
    order = AuthorityOrder(tuple(reversed(Authority)))
    rumour = claim("rumour", "oslo", 5, recorded=2, authority=Authority.UNTRUSTED)
    states = resolve([BERLIN, rumour], as_of=25, order=order)
    assert states["rumour"].status is ClaimStatus.HELD
    assert states["berlin"].status is ClaimStatus.CONFLICTING


def test_conflicts_are_told_with_the_first_time_they_share() -> None:
    rumour = claim("rumour", "oslo", 20, 40, recorded=2, authority=Authority.DOCUMENT)
    denial = claim("denial", "berlin", 15, recorded=3, authority=Authority.TOOL, polarity=NO)
    assert list(conflicts([rumour, denial, BERLIN])) == [
        Conflict(denial, BERLIN, 15, None),
        Conflict(rumour, BERLIN, 20, 40),
    ]
    assert list(conflicts([rumour, denial, BERLIN], known_at=2)) == [
        Conflict(rumour, BERLIN, 20, 40)
    ]
    assert list(conflicts([BERLIN, LISBON])) == []


def test_a_conflict_that_was_superseded_since_is_not_told_for_later() -> None:
    rumour = claim("rumour", "oslo", 20, recorded=2, authority=Authority.DOCUMENT)
    truth = claim("truth", "bergen", 30, recorded=3)
    assert list(conflicts([BERLIN, rumour, truth])) == [Conflict(rumour, BERLIN, 20, 30)]


def test_the_earliest_known_overriding_claim_dates_the_conflict() -> None:
    rumour = claim("rumour", "oslo", 20, recorded=1, authority=Authority.DOCUMENT)
    first = claim("first", "rome", 10, recorded=4)
    second = claim("second", "rome", 11, recorded=3)
    state = resolve([rumour, first, second], as_of=25)["rumour"]
    assert state.conflicts_with == ("first", "second")
    assert state.superseded_at == 3


def test_only_a_held_claim_overrides() -> None:
    top = claim("top", "rome", 0, recorded=5, authority=Authority.SYSTEM)
    mid = claim("mid", "oslo", 1, recorded=1)
    low = claim("low", "bern", 2, recorded=2, authority=Authority.DOCUMENT)
    states = resolve([top, mid, low], as_of=5)
    assert states["mid"].status is states["low"].status is ClaimStatus.CONFLICTING
    assert states["low"].conflicts_with == ("top", "mid")
    assert states["low"].superseded_at == 5
    agreeing = low._replace(value="rome")
    assert resolve([top, mid, agreeing], as_of=5)["low"].status is ClaimStatus.HELD


def test_the_earliest_known_of_all_later_claims_dates_the_supersession() -> None:
    group = [
        claim("first", "a", 1, recorded=2),
        claim("second", "b", 2, recorded=4),
        claim("third", "c", 3, recorded=5),
        claim("fourth", "a", 4, recorded=3),
    ]
    states = resolve(group, as_of=9)
    assert states["first"].superseded_by == ("second",)
    assert states["first"].superseded_at == 4
    assert states["second"].superseded_at == 4
    assert states["third"].superseded_at == 5


def test_among_equals_only_the_later_claim_decides_and_nothing_conflicts() -> None:
    only = claim("only", "red", 1, recorded=1)
    both = claim("both", "green", 2, recorded=2, cardinality="multi")
    rumour = claim("rumour", "red", 3, recorded=3, authority=Authority.DOCUMENT)
    states = resolve([only, both, rumour], as_of=5)
    assert {s.status for s in states.values()} == {ClaimStatus.HELD}
    assert all(s.conflicts_with == () for s in states.values())


def test_five_hundred_unrelated_claims_supersede_nothing() -> None:
    many = [claim(f"c{i}", f"v{i}", i, recorded=i + 1, subject=f"subject {i}") for i in range(500)]
    states = resolve(many, as_of=1000)
    assert {s.status for s in states.values()} == {ClaimStatus.HELD}
    assert all(s.superseded_by == s.conflicts_with == () for s in states.values())


def test_no_assertions_have_no_states() -> None:
    assert resolve([], as_of=0) == {}


@pytest.mark.parametrize("shape", ["moves", "mixed", "camps"])
def test_a_thousand_claims_about_one_thing_resolve_fast(shape: str) -> None:
    def make(i: int) -> Assertion:
        if shape == "moves":
            return claim(f"c{i}", f"v{i}", i, recorded=i)
        if shape == "mixed":
            return claim(
                f"c{i}",
                f"v{i % 7}",
                i * 37 % 1000,
                i * 37 % 1000 + 1 + i % 90,
                recorded=i,
                authority=tuple(Authority)[i % 6],
                polarity=tuple(Polarity)[i % 5 == 0],
            )
        lower = bool(i % 2)
        return claim(
            f"c{i}",
            f"v{i}" if lower else "x",
            500 * lower + i // 100,
            recorded=i,
            authority=Authority.DOCUMENT if lower else Authority.USER,
        )

    group = [make(i) for i in range(1000)]

    def cpu() -> float:
        start = time.process_time()
        assert len(resolve(group, as_of=600)) == 1000
        return time.process_time() - start

    assert min(cpu() for _ in range(5)) < 0.1
