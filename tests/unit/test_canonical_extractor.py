"""The canonical grammar: exactly its statements, and nothing else."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.datasets import synthetic, synthetic_stream
from evicortex import EviCortex
from evicortex.errors import InputError
from evicortex.protocols import EvidenceContext
from evicortex.providers.canonical import PREDICATES, CanonicalGrammarExtractor
from evicortex.testing import FixedClock, check_extractor
from evicortex.types import Authority, Polarity
from evicortex.validation import CheckedExtractor

MONDAY = datetime(2026, 3, 9, 10, tzinfo=UTC)


def extract(text, occurred_at=MONDAY, extractor=None):
    context = EvidenceContext(
        "ev_1",
        text,
        hashlib.sha256(text.encode()).hexdigest(),
        "Gita",
        "user",
        Authority.USER,
        occurred_at,
    )
    return CheckedExtractor(extractor or CanonicalGrammarExtractor()).extract(context)


def test_a_statement_is_a_claim_on_its_value():
    text = "It rained. For the record, Ann's phone number is 555-12 34 since 2024-01-02. Well."
    (claim,) = extract(text).claims
    assert (claim.subject, claim.predicate, claim.object) == ("Ann", "phone_number", "555-12 34")
    assert claim.quote == "555-12 34"
    assert claim.valid_from == datetime(2024, 1, 2, tzinfo=UTC)
    assert claim.valid_to is None
    assert (claim.polarity, claim.cardinality) == (Polarity.POSITIVE, "single")


def test_negation_until_and_several_statements():
    text = (
        "For the record, Ann Marie's hobby is not chess until 2027-01-01. "
        "Correction: Boris's city is Oslo."
    )
    first, second = extract(text).claims
    assert (first.subject, first.polarity) == ("Ann Marie", Polarity.NEGATIVE)
    assert (first.valid_from, first.valid_to) == (None, datetime(2027, 1, 1, tzinfo=UTC))
    assert (second.subject, second.object) == ("Boris", "Oslo")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ann's city is Oslo.",
        "for the record, Ann's city is Oslo.",
        "For the record, Ann's city is Oslo",
        "For the record, Ann's city is Oslo!",
        "For the record, Ann's town is Oslo.",
        "For the record, Ann's city is  Oslo.",
        "For the record, Änn's city is Oslo.",
    ],
)
def test_anything_else_is_an_abstention_with_a_reason(text):
    result = extract(text)
    assert result.abstained
    assert [each.code for each in result.diagnostics] == ["no_statement"]


def test_a_date_that_does_not_exist_is_kept_as_a_diagnostic():
    text = "For the record, Ann's city is Oslo since 2023-02-30. Correction: Ann's car is red."
    result = extract(text)
    assert [claim.object for claim in result.claims] == ["red"]
    (told,) = result.diagnostics
    assert told.code == "unresolved_span"
    start, end = told.details["span"]
    assert text[start:end].startswith("For the record, Ann's city")


@pytest.mark.parametrize(
    ("text", "occurred_at"),
    [
        ("For the record, Ann's city is Oslo since 2024-01-02 until 2024-01-02.", MONDAY),
        ("For the record, Ann's city is Oslo until 2024-01-02.", MONDAY),
        ("For the record, Ann's city is Oslo until 2027-01-02.", None),
    ],
)
def test_what_would_end_before_it_begins_is_kept_as_a_diagnostic(text, occurred_at):
    result = extract(text, occurred_at)
    assert result.abstained
    assert [each.code for each in result.diagnostics] == ["impossible_interval"]


def test_predicates_can_be_chosen_and_are_part_of_the_revision():
    own = CanonicalGrammarExtractor({"shoe": "multi", "shoe_size": "single"})
    (claim,) = extract("For the record, Ann's shoe size is 42.", extractor=own).claims
    assert (claim.predicate, claim.object) == ("shoe_size", "42")
    assert own.revision != CanonicalGrammarExtractor().revision
    assert CanonicalGrammarExtractor().revision == CanonicalGrammarExtractor(PREDICATES).revision
    for bad in ({}, {"Shoe": "multi"}, {"a|b": "multi"}):
        with pytest.raises(InputError):
            CanonicalGrammarExtractor(bad)


def test_it_keeps_the_contract_of_an_extractor():
    check_extractor(CanonicalGrammarExtractor())


@given(st.text(max_size=80), st.sampled_from(sorted(PREDICATES)), st.integers(0, 9999))
def test_a_statement_is_found_in_any_surroundings(noise, predicate, number):
    spoken = predicate.replace("_", " ")
    text = f"{noise} For the record, Ann's {spoken} is v-{number}. {noise}"
    assert f"v-{number}" in [claim.object for claim in extract(text).claims]


def test_it_reads_the_synthetic_stream_as_declared():
    shape = synthetic_stream.Shape(seed=7, namespaces=1, turns=200)
    (conversation,) = synthetic_stream.conversations(shape)
    seen = 0
    for turn in conversation.turns:
        found = extract(turn.text, turn.occurred_at)
        declared = synthetic.drafts(turn.text)
        assert [
            (c.subject, c.predicate, c.object, c.span, c.polarity, c.valid_from, c.valid_to)
            for c in found.claims
        ] == [
            (d.subject, d.predicate, d.object, d.span, d.polarity, d.valid_from, d.valid_to)
            for d in declared
        ]
        seen += len(declared)
    assert seen > 30


def test_the_past_and_the_present_of_a_stream(tmp_path):
    extractor = CanonicalGrammarExtractor()
    with EviCortex.open(
        tmp_path / "m.db", embedder=None, extractor=extractor, clock=FixedClock(MONDAY)
    ) as cortex:
        for day, text in (
            (1, "For the record, Ann's city is Oslo."),
            (2, "Correction: Ann's city is Rome since 2026-03-01."),
            (3, "For the record, Ann's city is Bonn since 2020-01-01 until 2020-03-01."),
        ):
            cortex.remember_extracted("ns", text, occurred_at=datetime(2026, 3, day, tzinfo=UTC))
        assert [claim.object for claim in cortex.claims("ns")] == ["Rome"]
        then = datetime(2020, 2, 1, tzinfo=UTC)
        assert [claim.object for claim in cortex.claims("ns", as_of=then)] == ["Bonn"]
