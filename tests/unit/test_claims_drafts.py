from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest

from evicortex.errors import (
    InvalidClaimError,
    InvalidSpanError,
    InvalidTextError,
    InvalidTimeError,
    NaiveDatetimeError,
)
from evicortex.ledger.claims import CheckedClaim, authority_cap, check_drafts
from evicortex.types import Authority, ClaimDraft, Polarity
from evicortex.validity import AuthorityOrder, to_micros

TEXT = "I moved from Berlin to Lisbon 🌊."
SPOKEN = datetime(2026, 3, 9, 10, tzinfo=UTC)


def check(draft: ClaimDraft, **evidence: object) -> CheckedClaim:
    fields = {"content": TEXT, "authority": Authority.USER, "occurred_at": SPOKEN} | evidence
    (checked,) = check_drafts([draft], **fields)  # type: ignore[arg-type]
    return checked


def lives_in(**fields: object) -> ClaimDraft:
    values = {"subject": "Alice", "predicate": "lives_in", "object": "Lisbon"} | fields
    return ClaimDraft(**values)  # type: ignore[arg-type]


def test_a_plain_draft_takes_its_evidence_for_the_rest() -> None:
    assert check(lives_in()) == CheckedClaim(
        "Alice",
        "lives_in",
        "Lisbon",
        None,
        None,
        Polarity.POSITIVE,
        1.0,
        Authority.USER,
        None,
        None,
        None,
    )


def test_everything_that_a_draft_says_is_kept() -> None:
    draft = lives_in(
        object=" Lisbon\0",
        span=[23, 29],
        polarity="negative",
        confidence=0.25,
        authority="document",
        valid_from="2026-03-07T01:00:00+01:00",
        valid_to=datetime(2026, 3, 8, tzinfo=UTC),
        cardinality="multi",
    )
    start = to_micros(datetime(2026, 3, 7, tzinfo=UTC))
    assert check(draft) == CheckedClaim(
        "Alice",
        "lives_in",
        " Lisbon\0",
        23,
        29,
        Polarity.NEGATIVE,
        0.25,
        Authority.DOCUMENT,
        start,
        start + 86_400_000_000,
        "multi",
    )


@pytest.mark.parametrize("field", ["subject", "predicate", "object"])
@pytest.mark.parametrize("value", ["", "  \n\u2003", None, 7, b"Lisbon"])
def test_a_blank_or_missing_part_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidClaimError, match=f"claim 1: {field}"):
        check(lives_in(**{field: value}))


@pytest.mark.parametrize("field", ["subject", "predicate", "object"])
def test_text_that_utf8_cannot_hold_is_refused(field: str) -> None:
    with pytest.raises(InvalidTextError, match=field):
        check(lives_in(**{field: "Lis\ud800bon"}))


@pytest.mark.parametrize("value", [0, 0.0, 1, 1.0, Fraction(1, 2), np.float32(0.5), 5e-324])
def test_confidence_is_any_number_from_zero_to_one(value: object) -> None:
    checked = check(lives_in(confidence=value))
    assert type(checked.confidence) is float
    assert checked.confidence == value


def test_negative_zero_is_zero() -> None:
    assert str(check(lives_in(confidence=-0.0)).confidence) == "0.0"


@pytest.mark.parametrize(
    "value",
    [-0.001, 1.000001, float("nan"), float("inf"), -1, 10**400, "1", None, True, 1j],
)
def test_other_confidences_are_refused(value: object) -> None:
    with pytest.raises(InvalidClaimError, match="confidence"):
        check(lives_in(confidence=value))


@pytest.mark.parametrize("span", [(0, 1), (31, 32), (0, 32), [30, 31]])
def test_a_span_counts_code_points(span: tuple[int, int]) -> None:
    checked = check(lives_in(span=span))
    assert (checked.start, checked.stop) == tuple(span)


@pytest.mark.parametrize(
    "span",
    [
        (3, 3),
        (5, 3),
        (-1, 3),
        (0, 33),
        (40, 50),
        (0, 1, 2),
        (0,),
        "01",
        5,
        (0.0, 1.0),
        (False, True),
        (None, 3),
        {0, 1},
    ],
)
def test_an_impossible_span_is_refused(span: object) -> None:
    with pytest.raises(InvalidSpanError, match="claim 1"):
        check(lives_in(span=span))


def test_a_blank_evidence_has_no_span() -> None:
    with pytest.raises(InvalidSpanError):
        check(lives_in(span=(0, 1)), content="")
    assert check(lives_in(), content="").start is None


@pytest.mark.parametrize("polarity", ["maybe", "", None, 1, ["positive"]])
def test_other_polarities_are_refused(polarity: object) -> None:
    with pytest.raises(InvalidClaimError, match="polarity"):
        check(lives_in(polarity=polarity))


@pytest.mark.parametrize("cardinality", ["one", "", 1, True, ["single"]])
def test_other_cardinalities_are_refused(cardinality: object) -> None:
    with pytest.raises(InvalidClaimError, match="cardinality"):
        check(lives_in(cardinality=cardinality))


@pytest.mark.parametrize("authority", ["boss", "", 1, ["user"]])
def test_other_authorities_are_refused(authority: object) -> None:
    with pytest.raises(InvalidClaimError, match="authority is one of"):
        check(lives_in(authority=authority))


def test_an_authority_above_the_evidence_is_refused() -> None:
    with pytest.raises(InvalidClaimError, match="above document"):
        check(lives_in(authority="user"), authority=Authority.DOCUMENT)
    assert check(lives_in(authority="tool")).authority is Authority.TOOL
    order = AuthorityOrder(tuple(reversed(Authority)))
    with pytest.raises(InvalidClaimError, match="above user"):
        check(lives_in(authority="tool"), order=order)


@pytest.mark.parametrize("role", ["assistant", "Assistant ", "AI", "model"])
def test_what_an_assistant_said_is_no_claim_of_the_user(role: str) -> None:
    assert authority_cap(Authority.USER, role) is Authority.ASSISTANT
    assert authority_cap(Authority.UNTRUSTED, role) is Authority.UNTRUSTED
    assert check(lives_in(), role=role).authority is Authority.ASSISTANT
    with pytest.raises(InvalidClaimError, match="above assistant"):
        check(lives_in(authority="user"), role=role)


@pytest.mark.parametrize("role", [None, "user", "Alice"])
def test_other_roles_cap_nothing(role: str | None) -> None:
    assert authority_cap(Authority.USER, role) is Authority.USER


def test_an_interval_must_end_after_it_begins() -> None:
    with pytest.raises(InvalidTimeError, match="claim 1"):
        check(lives_in(valid_from="2026-03-07T00:00:00Z", valid_to="2026-03-07T00:00:00Z"))


def test_the_default_start_counts_for_the_interval() -> None:
    draft = lives_in(valid_to="2026-03-09T09:00:00Z")
    with pytest.raises(InvalidTimeError):
        check(draft)
    with pytest.raises(InvalidTimeError):
        check(draft, occurred_at=None, recorded_at=SPOKEN)
    assert check(draft, occurred_at=None).valid_to is not None


@pytest.mark.parametrize("field", ["valid_from", "valid_to"])
def test_bad_times_name_the_claim_and_the_field(field: str) -> None:
    with pytest.raises(NaiveDatetimeError, match=f"claim 1: {field}"):
        check(lives_in(**{field: "2026-03-07"}))
    with pytest.raises(InvalidTimeError, match=f"claim 1: {field}"):
        check(lives_in(**{field: "soon"}))


def test_messages_count_the_claims() -> None:
    with pytest.raises(InvalidClaimError, match="claim 2: object"):
        check_drafts([lives_in(), lives_in(object="")], content=TEXT, authority=Authority.USER)
