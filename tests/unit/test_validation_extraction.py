from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.errors import (
    ExtractionError,
    InputError,
    ProviderContractError,
    ProviderUnavailableError,
)
from evicortex.protocols import EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.testing import (
    EXTRACTOR_LIES,
    LyingExtractor,
    RaisingExtractor,
    ScriptedExtractor,
)
from evicortex.types import Authority, Diagnostic, Polarity, Span
from evicortex.validation import CheckedExtractor

TEXT = "Mira lives in Lisbon."


def context_of(text=TEXT, authority=Authority.USER):
    return EvidenceContext(
        evidence_id="ev_1",
        content=text,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        actor="Mira",
        role="user",
        authority=authority,
        occurred_at=None,
    )


def claim(**changes):
    base = ExtractedClaim(
        evidence_id="ev_1",
        evidence_digest=context_of().digest,
        subject="Mira",
        predicate="lives_in",
        object="Lisbon",
        span=Span(14, 20),
        quote="Lisbon",
        confidence=0.9,
    )
    return replace(base, **changes)


def extract(*claims, context=None, **result):
    script = ExtractionResult(tuple(claims), **result)
    return CheckedExtractor(ScriptedExtractor(lambda _: script)).extract(context or context_of())


def rule_of(*claims, context=None, **result):
    with pytest.raises(ExtractionError) as caught:
        extract(*claims, context=context, **result)
    assert repr(caught.value.rule) in str(caught.value)
    assert "testing/scripted@1" in str(caught.value)
    return caught.value.rule


def test_a_result_that_keeps_every_rule_passes_unchanged():
    provider = ScriptedExtractor()
    checked = CheckedExtractor(provider)
    context = context_of()
    result = checked.extract(context)
    assert [item.object for item in result.claims] == ["Mira", "lives"]
    assert provider.calls == [context]
    assert (checked.extractor_id, checked.revision) == ("testing/scripted", "1")


@pytest.mark.parametrize("rule", EXTRACTOR_LIES)
def test_every_broken_rule_is_named(rule):
    with pytest.raises(ExtractionError) as caught:
        CheckedExtractor(LyingExtractor(rule)).extract(context_of())
    assert caught.value.rule == rule


def test_an_abstention_carries_no_claims():
    reasons = (Diagnostic("nothing", "nothing to claim"),)
    assert extract(abstained=True, diagnostics=reasons).diagnostics == reasons
    assert rule_of() == "abstention"
    assert rule_of(claim(), abstained=True) == "abstention"
    assert rule_of(claim(), abstained=None) == "abstention"


@pytest.mark.parametrize(
    "result",
    [
        {"claims": [claim()]},
        {"claims": ("claim",)},
        {"claims": (claim(),), "diagnostics": ["late"]},
        {"claims": (claim(),), "diagnostics": ("late",)},
    ],
)
def test_collections_are_tuples_of_the_right_kind(result):
    checked = CheckedExtractor(ScriptedExtractor(lambda _: ExtractionResult(**result)))
    with pytest.raises(ExtractionError) as caught:
        checked.extract(context_of())
    assert caught.value.rule == "result-type"


@pytest.mark.parametrize(
    "usage", [{"calls": -1.0}, {"calls": "1"}, {"calls": True}, {1: 1.0}, ["calls"]]
)
def test_usage_maps_names_to_amounts(usage):
    assert rule_of(claim(), usage=usage) == "usage"


def test_usage_may_be_integers():
    assert extract(claim(), usage={"tokens": 12}).usage == {"tokens": 12}


@pytest.mark.parametrize(
    "span", [(3, 3), (4, 3), (-1, 3), (0, 22), (0.0, 4), (True, 4), [14, 20], (1, 2, 3), "ab"]
)
def test_spans_lie_inside_the_text(span):
    assert rule_of(claim(span=span)) == "span"


def test_the_quote_is_the_text_of_the_span():
    assert rule_of(claim(quote=None)) == "quote"
    assert rule_of(claim(quote="lisbon")) == "quote"
    assert rule_of(claim(span=None, quote="Lisbon")) == "quote"
    assert extract(claim(span=None, quote=None)).claims[0].span is None
    assert extract(claim(span=None, quote=TEXT)).claims[0].quote == TEXT


@given(st.text(min_size=1), st.data())
def test_any_span_with_its_own_text_passes(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    context = replace(context_of(), content=text)
    assert extract(claim(span=Span(start, end), quote=text[start:end]), context=context).claims


@pytest.mark.parametrize("name", ["subject", "predicate", "object"])
@pytest.mark.parametrize("value", ["", " \n", None, 7, "\ud800"])
def test_fields_are_text_that_says_something(name, value):
    assert rule_of(claim(**{name: value})) == "field"


def test_fields_may_be_in_any_script():
    assert extract(claim(subject="ミラ", object="リスボン")).claims


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf"), "1", None, True])
def test_confidence_is_a_number_from_0_to_1(value):
    assert rule_of(claim(confidence=value)) == "confidence"


@pytest.mark.parametrize("value", [0, 0.0, 0.5, 1, 1.0])
def test_confidence_may_touch_both_ends(value):
    assert extract(claim(confidence=value)).claims


@pytest.mark.parametrize("evidence", list(Authority))
@pytest.mark.parametrize("asked", list(Authority))
def test_authority_is_never_above_the_evidence(evidence, asked):
    order = list(Authority)
    context = context_of(authority=evidence)
    if order.index(asked) < order.index(evidence):
        assert rule_of(claim(authority=asked), context=context) == "authority"
    else:
        assert extract(claim(authority=asked), context=context).claims


def test_the_order_of_authorities_is_a_setting():
    reverse = tuple(reversed(Authority))
    script = ExtractionResult((claim(authority=Authority.SYSTEM),))
    checked = CheckedExtractor(ScriptedExtractor(lambda _: script), authority_order=reverse)
    assert checked.extract(context_of()).claims
    with pytest.raises(InputError, match="every authority once"):
        CheckedExtractor(ScriptedExtractor(), authority_order=(Authority.USER,))


@pytest.mark.parametrize("value", ["user", "root", 3])
def test_authority_is_of_the_known_kind(value):
    assert rule_of(claim(authority=value)) == "authority"


@pytest.mark.parametrize("value", ["positive", None, "maybe"])
def test_polarity_is_of_the_known_kind(value):
    assert rule_of(claim(polarity=value)) == "polarity"


def test_cardinality_is_single_multi_or_open():
    for value in (None, "single", "multi"):
        assert extract(claim(cardinality=value)).claims
    assert rule_of(claim(cardinality="many")) == "cardinality"


EARLY = datetime(2026, 1, 1, tzinfo=UTC)
LATE = datetime(2026, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "bounds",
    [
        {"valid_from": datetime(2026, 1, 1)},  # noqa: DTZ001 - the naive datetime is the lie
        {"valid_to": "2026-01-01T00:00:00Z"},
        {"valid_from": LATE, "valid_to": EARLY},
        {"valid_from": EARLY, "valid_to": EARLY},
    ],
)
def test_validity_is_an_interval_with_time_zones(bounds):
    assert rule_of(claim(**bounds)) == "validity"


@pytest.mark.parametrize(
    "bounds",
    [{}, {"valid_from": EARLY}, {"valid_to": EARLY}, {"valid_from": EARLY, "valid_to": LATE}],
)
def test_validity_may_be_open(bounds):
    assert extract(claim(**bounds)).claims


def test_claims_come_in_the_order_of_their_spans():
    first = claim(object="Mira", span=Span(0, 4), quote="Mira")
    whole = claim(object="all", span=None, quote=None)
    assert extract(first, claim()).claims
    assert extract(first, whole, claim()).claims
    assert rule_of(claim(), first) == "order"
    assert rule_of(claim(), whole) == "order"


def test_the_same_claim_twice_is_refused_whatever_its_spelling():
    assert rule_of(claim(), claim()) == "duplicate"
    assert rule_of(claim(), claim(subject=" MIRA ", confidence=0.1)) == "duplicate"
    assert extract(claim(), claim(polarity=Polarity.NEGATIVE)).claims
    assert extract(claim(), claim(valid_from=EARLY)).claims
    assert extract(claim(), claim(object="Porto")).claims


def test_failures_become_unavailable_and_keep_their_cause():
    cause = ValueError("malformed reply")
    with pytest.raises(ProviderUnavailableError) as caught:
        CheckedExtractor(RaisingExtractor(cause)).extract(context_of())
    assert caught.value.__cause__ is cause


def test_the_time_limit_is_passed_on():
    checked = CheckedExtractor(ScriptedExtractor(), timeout_seconds=60)
    assert checked.extract(context_of()).claims


def test_extractors_need_an_identity():
    with pytest.raises(ProviderContractError, match="revision must be a non-empty string"):
        CheckedExtractor(ScriptedExtractor(revision=" "))
