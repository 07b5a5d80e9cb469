"""Claims through the public API: what is held, when, as known when, and who overrides whom."""

from datetime import UTC, datetime, timedelta

import pytest

from evicortex import Authority, ClaimDraft, EviCortex, InputError, Settings, errors
from evicortex.protocols import ExtractedClaim, ExtractionResult
from evicortex.testing import FixedClock, ScriptedExtractor
from evicortex.types import ClaimStatus, Span

START = datetime(2026, 1, 1, tzinfo=UTC)


def year(number):
    return datetime(number, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock():
    return FixedClock(START)


@pytest.fixture
def cortex(tmp_path, clock):
    with EviCortex.open(tmp_path / "memory.db", embedder=None, clock=clock) as opened:
        yield opened


@pytest.fixture
def lives(cortex, clock):
    """Record that Alice lives somewhere, one minute after the last record."""

    def add(place, since, *, role="user", until=None, **fields):
        clock.advance(timedelta(minutes=1))
        claim = ClaimDraft("Alice", "lives_in", place, valid_from=since, valid_to=until, **fields)
        text = f"Alice lives in {place}."
        return cortex.remember("ns", text, role=role, occurred_at=since, claims=[claim])

    return add


def objects(claims):
    return [claim.object for claim in claims]


def test_a_correction_closes_what_it_overlaps_and_the_past_stays_readable(cortex, clock, lives):
    lives("Berlin", year(2020))
    before = clock.now()
    lives("Lisbon", year(2024))
    assert objects(cortex.claims("ns")) == ["Lisbon"]
    assert objects(cortex.claims("ns", as_of=year(2022))) == ["Berlin"]
    assert objects(cortex.claims("ns", as_of=year(2024))) == ["Lisbon"]
    assert objects(cortex.claims("ns", as_of=year(2024) - timedelta(microseconds=1))) == ["Berlin"]
    assert objects(cortex.claims("ns", as_of=year(2019))) == []
    assert objects(cortex.claims("ns", known_at=before)) == ["Berlin"]
    assert objects(cortex.claims("ns", known_at=START)) == []
    berlin, lisbon = cortex.claims("ns", include_superseded=True)
    assert (berlin.status, lisbon.status) == (ClaimStatus.SUPERSEDED, ClaimStatus.HELD)
    assert (berlin.valid_from, berlin.valid_to) == (year(2020), year(2024))
    assert berlin.superseded_by == (lisbon.claim_id,)
    assert berlin.superseded_at == lisbon.recorded_at == clock.now()
    assert (berlin.asserted_from, berlin.asserted_to) == (year(2020), None)


def test_old_news_that_arrives_late_never_counts_as_new(cortex, lives):
    lives("Lisbon", year(2024))
    lives("Berlin", year(2019))
    assert objects(cortex.claims("ns")) == ["Lisbon"]
    assert objects(cortex.claims("ns", as_of=year(2020))) == ["Berlin"]
    berlin = cortex.history("ns", "Alice", "lives_in")
    ends = {claim.object: claim.valid_to for claim in berlin}
    assert ends == {"Lisbon": None, "Berlin": year(2024)}


def test_old_evidence_without_claim_times_takes_the_time_it_speaks_of(cortex, clock):
    cortex.remember(
        "ns", "Now Lisbon.", occurred_at=year(2024), claims=[ClaimDraft("A", "lives_in", "Lisbon")]
    )
    clock.advance()
    cortex.remember(
        "ns", "Now Berlin.", occurred_at=year(2019), claims=[ClaimDraft("A", "lives_in", "Berlin")]
    )
    assert objects(cortex.claims("ns")) == ["Lisbon"]
    assert [c.valid_from for c in cortex.claims("ns", as_of=year(2020))] == [year(2019)]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_the_timeline_does_not_depend_on_the_order_of_arrival(cortex, lives, order):
    moves = [("Berlin", year(2018)), ("Lisbon", year(2021)), ("Oslo", year(2025))]
    for number in order:
        lives(*moves[number])
    for when, place in ((2019, "Berlin"), (2022, "Lisbon"), (2025, "Oslo")):
        assert objects(cortex.claims("ns", as_of=year(when))) == [place]
    assert objects(cortex.claims("ns")) == ["Oslo"]


def test_a_bounded_claim_leaves_the_earlier_one_current_after_it(cortex, lives):
    lives("Berlin", year(2018))
    lives("Rome", year(2020), until=year(2021))
    assert objects(cortex.claims("ns", as_of=year(2019))) == ["Berlin"]
    assert objects(cortex.claims("ns", as_of=year(2020))) == ["Rome"]
    assert objects(cortex.claims("ns", as_of=year(2021))) == ["Berlin"]
    assert objects(cortex.claims("ns")) == ["Berlin"]


def test_equal_values_corroborate_and_supersede_nothing(cortex, lives):
    lives("Lisbon", year(2024))
    lives("lisbon ", year(2025))
    held = cortex.claims("ns")
    assert len(held) == 2
    assert all(claim.status is ClaimStatus.HELD for claim in held)
    assert held[0].corroborated_by == (held[1].claim_id,)
    assert held[1].corroborated_by == (held[0].claim_id,)
    assert all(claim.superseded_by == () == claim.conflicts_with for claim in held)


def test_different_values_stay_apart_however_similar_their_texts_are(cortex):
    for digit in "0123456789":
        cortex.remember(
            "ns",
            f"The code of the main door is 1234567{digit}.",
            claims=[ClaimDraft("door", "opens_with", f"1234567{digit}", cardinality="multi")],
        )
    assert len(cortex.claims("ns")) == 10
    pack = cortex.recall("ns", "code of the main door", budget_tokens=4000)
    assert len(pack.items) == 10
    assert not [omitted for omitted in pack.omitted if omitted.reason == "duplicate"]


def test_five_hundred_unrelated_claims_supersede_nothing(cortex):
    for number in range(500):
        cortex.remember(
            "ns",
            f"Person {number} lives in Town {number}.",
            claims=[ClaimDraft(f"Person {number}", "lives_in", f"Town {number}")],
        ) if number % 50 == 0 else None
    cortex.remember(
        "ns",
        "The register.",
        claims=[
            ClaimDraft(f"Person {number}", "lives_in", f"Town {number}")
            for number in range(500)
            if number % 50
        ],
    )
    claims = cortex.claims("ns", include_superseded=True)
    assert len(claims) == 500
    assert all(claim.status is ClaimStatus.HELD for claim in claims)
    assert not any(claim.superseded_by or claim.conflicts_with for claim in claims)
    assert cortex.verify().conflicts == ()


def test_a_declared_cardinality_decides_and_multi_values_stand_side_by_side(cortex, clock):
    for cardinality, subject in (("multi", "M"), ("single", "S")):
        for value in ("tea", "coffee"):
            clock.advance()
            cortex.remember(
                "ns",
                f"{subject} drinks {value}",
                claims=[ClaimDraft(subject, "drinks_daily", value, cardinality=cardinality)],
            )
    assert objects(cortex.claims("ns", subject="M")) == ["tea", "coffee"]
    assert objects(cortex.claims("ns", subject="S")) == ["coffee"]


def test_a_denial_ends_a_value_of_a_multi_valued_predicate_only(cortex, clock):
    cortex.remember("ns", "likes", claims=[ClaimDraft("A", "likes", v) for v in ("tea", "coffee")])
    clock.advance()
    cortex.remember("ns", "no", claims=[ClaimDraft("A", "likes", "tea", polarity="negative")])
    assert [(c.object, str(c.polarity)) for c in cortex.claims("ns")] == [
        ("coffee", "positive"),
        ("tea", "negative"),
    ]


def test_subject_and_predicate_match_in_any_spelling(cortex, clock, lives):
    lives("Berlin", year(2020))
    clock.advance()
    cortex.remember(
        "ns", "moved", claims=[ClaimDraft(" ALICE ", "Lives_In", "Oslo", valid_from=year(2024))]
    )
    assert objects(cortex.claims("ns", subject="alice", predicate="LIVES_IN")) == ["Oslo"]
    assert len(cortex.history("ns", "aLiCe", "lives_in")) == 2


RANKING = ["system", "user", "assistant", "tool", "document", "untrusted"]


@pytest.mark.parametrize("low", range(1, 6))
def test_a_lower_authority_never_supersedes_and_shows_as_a_conflict(cortex, clock, low):
    high, lower = RANKING[low - 1], RANKING[low]
    for place, authority, since in (("Lisbon", high, 2020), ("Oslo", lower, 2025)):
        clock.advance()
        cortex.remember(
            "ns",
            f"Alice lives in {place}",
            authority=authority,
            claims=[ClaimDraft("Alice", "lives_in", place, valid_from=year(since))],
        )
    assert objects(cortex.claims("ns")) == ["Lisbon"]
    every = {c.object: c for c in cortex.claims("ns", include_superseded=True)}
    assert every["Oslo"].status is ClaimStatus.CONFLICTING
    assert every["Oslo"].conflicts_with == (every["Lisbon"].claim_id,)
    assert every["Lisbon"].superseded_by == ()
    report = cortex.verify("ns")
    assert report.ok
    assert len(report.conflicts) == 1
    shown = str(report.conflicts[0])
    assert every["Oslo"].claim_id in shown
    assert every["Lisbon"].claim_id in shown


@pytest.mark.parametrize("low", range(1, 6))
def test_a_higher_authority_supersedes_a_lower_one_for_its_own_time(cortex, clock, low):
    for place, authority, since in (("Oslo", RANKING[low], 2020), ("Rome", RANKING[low - 1], 2025)):
        clock.advance()
        cortex.remember(
            "ns",
            place,
            authority=authority,
            claims=[ClaimDraft("Alice", "lives_in", place, valid_from=year(since))],
        )
    assert objects(cortex.claims("ns")) == ["Rome"]
    assert objects(cortex.claims("ns", as_of=year(2021))) == ["Oslo"]


def test_the_order_of_authority_can_be_set(tmp_path):
    from dataclasses import replace

    from evicortex.validity import AuthorityOrder

    ranking = ("document", "system", "user", "assistant", "tool", "untrusted")
    base = Settings()
    order = AuthorityOrder(tuple(Authority(name) for name in ranking))
    settings = Settings(options=replace(base.options, authorities=order))
    with EviCortex.open(
        tmp_path / "m.db", embedder=None, settings=settings, clock=FixedClock()
    ) as cortex:
        for place, authority, since in (("Lisbon", "document", 2020), ("Oslo", "user", 2025)):
            cortex.remember(
                "ns",
                place,
                authority=authority,
                claims=[ClaimDraft("Alice", "lives_in", place, valid_from=year(since))],
            )
        assert objects(cortex.claims("ns")) == ["Lisbon"]


def test_an_assistants_words_do_not_become_the_users_claim(cortex, clock, lives):
    lives("Lisbon", year(2020))
    lives("Oslo", year(2025), role="assistant")
    assert objects(cortex.claims("ns")) == ["Lisbon"]

    def script(context):
        claim = ExtractedClaim(
            context.evidence_id,
            context.digest,
            "Alice",
            "lives_in",
            "Paris",
            Span(0, 5),
            context.content[:5],
            0.9,
        )
        return ExtractionResult((claim,))

    clock.advance()
    receipt = cortex.remember_extracted(
        "ns", "Paris is where you live.", extractor=ScriptedExtractor(script), role="assistant"
    )
    assert objects(cortex.claims("ns")) == ["Lisbon"]
    (paris,) = [c for c in cortex.history("ns", "Alice", "lives_in") if c.object == "Paris"]
    assert paris.authority is Authority.ASSISTANT
    assert receipt.claim_ids == (paris.claim_id,)


def test_retracting_brings_back_what_was_superseded_and_keeps_the_past(cortex, clock, lives):
    lives("Berlin", year(2020))
    receipt = lives("Lisbon", year(2024))
    before = clock.now()
    clock.advance()
    retraction = cortex.retract("ns", receipt.claim_ids[0], reason="she was joking")
    assert retraction.created
    assert retraction.retracted_at == clock.now()
    (berlin,) = cortex.claims("ns")
    assert (berlin.object, berlin.valid_to, berlin.superseded_by) == ("Berlin", None, ())
    assert retraction.reinstated == (berlin.claim_id,)
    assert objects(cortex.claims("ns", known_at=before)) == ["Lisbon"]
    assert objects(cortex.claims("ns", as_of=year(2022), known_at=before)) == ["Berlin"]
    lisbon = cortex.history("ns", "Alice", "lives_in")[1]
    assert lisbon.status is ClaimStatus.RETRACTED
    assert lisbon.superseded_at == retraction.retracted_at
    again = cortex.retract("ns", receipt.claim_ids[0], reason="again")
    assert not again.created
    assert again.retracted_at == retraction.retracted_at
    assert cortex.evidence("ns", receipt.evidence_id).content == "Alice lives in Lisbon."
    assert cortex.verify().ok


def test_a_retracted_claim_does_not_return_when_its_message_is_retried(cortex, clock):
    claims = [ClaimDraft("A", "likes", "tea")]
    receipt = cortex.remember("ns", "tea", external_id="x", claims=claims)
    clock.advance()
    cortex.retract("ns", receipt.claim_ids[0], reason="no")
    clock.advance()
    cortex.remember("ns", "tea", external_id="x", claims=claims)
    assert cortex.claims("ns") == ()


@pytest.mark.parametrize("reason", ["", "  ", None, 5, "\ud800"])
def test_a_retraction_needs_a_reason(cortex, lives, reason):
    receipt = lives("Berlin", year(2020))
    with pytest.raises(InputError):
        cortex.retract("ns", receipt.claim_ids[0], reason=reason)
    assert len(cortex.claims("ns")) == 1


IMPOSSIBLE = [
    ClaimDraft("", "likes", "tea"),
    ClaimDraft("A", " ", "tea"),
    ClaimDraft("A", "likes", ""),
    ClaimDraft(1, "likes", "tea"),
    ClaimDraft("A", None, "tea"),
    ClaimDraft("A", "likes", b"tea"),
    ClaimDraft("A", "likes", "tea", span=(3, 3)),
    ClaimDraft("A", "likes", "tea", span=(4, 2)),
    ClaimDraft("A", "likes", "tea", span=(-1, 2)),
    ClaimDraft("A", "likes", "tea", span=(0, 10)),
    ClaimDraft("A", "likes", "tea", span=(0.0, 2.0)),
    ClaimDraft("A", "likes", "tea", span=(False, True)),
    ClaimDraft("A", "likes", "tea", span=(1,)),
    ClaimDraft("A", "likes", "tea", span="ab"),
    ClaimDraft("A", "likes", "tea", span=5),
    ClaimDraft("A", "likes", "tea", confidence=1.5),
    ClaimDraft("A", "likes", "tea", confidence=-0.1),
    ClaimDraft("A", "likes", "tea", confidence=float("nan")),
    ClaimDraft("A", "likes", "tea", confidence="high"),
    ClaimDraft("A", "likes", "tea", confidence=None),
    ClaimDraft("A", "likes", "tea", confidence=True),
    ClaimDraft("A", "likes", "tea", polarity="maybe"),
    ClaimDraft("A", "likes", "tea", polarity=None),
    ClaimDraft("A", "likes", "tea", authority="emperor"),
    ClaimDraft("A", "likes", "tea", authority="system"),
    ClaimDraft("A", "likes", "tea", cardinality="some"),
    ClaimDraft("A", "likes", "tea", valid_from=year(2025), valid_to=year(2024)),
    ClaimDraft("A", "likes", "tea", valid_from=year(2025), valid_to=year(2025)),
    {"subject": "A", "predicate": "likes", "object": "tea"},
    None,
]


def test_an_impossible_claim_refuses_the_whole_message(cortex):
    good = ClaimDraft("A", "owns", "a cup")
    for draft in IMPOSSIBLE:
        with pytest.raises(InputError):
            cortex.remember("ns", "tea tea", role="user", session="s", claims=[good, draft])
    assert cortex.namespaces() == ()
    assert cortex.stats("ns").claims == 0


def test_spans_count_code_points_and_are_shown_with_the_evidences_digest(cortex):
    text = "👨‍👩‍👧 Alice moved to Köln\x00."
    start = text.index("Köln")
    receipt = cortex.remember(
        "ns",
        text,
        claims=[
            ClaimDraft("Alice", "lives_in", "Köln", span=(start, start + 4)),
            ClaimDraft("Alice", "likes", "moving"),
        ],
    )
    spanned, whole = cortex.claims("ns")
    (derivation,) = spanned.derivations
    assert text[slice(*derivation.span)] == "Köln"
    assert derivation.evidence_id == receipt.evidence_id
    assert derivation.evidence_digest == receipt.digest
    assert whole.derivations[0].span is None


def test_a_claim_of_the_future_is_not_held_yet(cortex, lives):
    lives("Berlin", year(2020))
    lives("Mars", year(2040))
    assert objects(cortex.claims("ns")) == ["Berlin"]
    assert objects(cortex.claims("ns", as_of=year(2041))) == ["Mars"]
    status = {c.object: c.status for c in cortex.claims("ns", include_superseded=True)}
    assert status == {"Berlin": ClaimStatus.HELD, "Mars": ClaimStatus.FUTURE}


def test_history_is_everything_ever_recorded_oldest_first(cortex, lives):
    for place, since in (("Lisbon", 2024), ("Berlin", 2019), ("Rome", 2021)):
        lives(place, year(since))
    recorded = [c.recorded_at for c in cortex.history("ns", "Alice", "lives_in")]
    assert len(recorded) == 3
    assert objects(cortex.claims("ns", include_superseded=True)) == objects(
        cortex.history("ns", "Alice", "lives_in")
    )
    assert cortex.history("ns", "Alice", "likes") == ()
    assert cortex.history("nowhere", "Alice", "lives_in") == ()


@pytest.mark.parametrize("value", [5, b"Alice", ["Alice"], "\ud800"])
def test_filters_of_claims_are_texts(cortex, lives, value):
    lives("Berlin", year(2020))
    with pytest.raises(InputError):
        cortex.claims("ns", subject=value)
    with pytest.raises(InputError):
        cortex.claims("ns", predicate=value)
    with pytest.raises(InputError):
        cortex.history("ns", value, "lives_in")
    with pytest.raises(InputError):
        cortex.history("ns", "Alice", value)


def test_a_recall_answers_as_of_and_as_known(cortex, clock, lives):
    lives("Berlin", year(2020))
    between = clock.now()
    lives("Lisbon", year(2024))

    def shown(**when):
        pack = cortex.recall("ns", "Where does Alice live?", budget_tokens=500, **when)
        found = cortex.search("ns", "Where does Alice live?", **when)
        texts = [item.text for item in pack.items]
        assert [hit.evidence.content for hit in found.hits] == texts
        return texts

    assert shown() == ["Alice lives in Lisbon."]
    assert shown(as_of=year(2022)) == ["Alice lives in Berlin."]
    assert shown(known_at=between) == ["Alice lives in Berlin."]
    assert shown(as_of=year(2019)) == []
    assert shown(known_at=START) == []


def test_superseded_evidence_is_left_out_or_marked_with_what_replaced_it(cortex, lives):
    berlin, lisbon = lives("Berlin", year(2020)), lives("Lisbon", year(2024))
    pack = cortex.recall("ns", "Where does Alice live?", budget_tokens=500)
    assert [item.evidence_id for item in pack.items] == [lisbon.evidence_id]
    assert [(o.evidence_id, o.reason) for o in pack.omitted] == [(berlin.evidence_id, "superseded")]
    assert "Berlin" not in pack.text
    both = cortex.recall("ns", "Where does Alice live?", budget_tokens=500, include_superseded=True)
    marked = {item.evidence_id: item for item in both.items}
    assert set(marked) == {berlin.evidence_id, lisbon.evidence_id}
    assert marked[berlin.evidence_id].superseded
    assert marked[berlin.evidence_id].superseded_by == lisbon.claim_ids
    assert not marked[lisbon.evidence_id].superseded
    (line,) = [each for each in both.text.splitlines() if "lives in Berlin" in each]
    after = both.text.split("lives in Berlin", 1)[1].split("lives in Lisbon")[0]
    assert "supersede" in line.lower() + after.lower() or "replaced" in line.lower() + after.lower()


def test_evidence_with_one_living_claim_is_not_superseded(cortex, clock):
    cortex.remember(
        "ns",
        "Alice lives in Berlin and likes tea.",
        claims=[ClaimDraft("Alice", "lives_in", "Berlin"), ClaimDraft("Alice", "likes", "tea")],
    )
    clock.advance()
    cortex.remember("ns", "Alice moved.", claims=[ClaimDraft("Alice", "lives_in", "Lisbon")])
    pack = cortex.recall("ns", "What does Alice like? tea", budget_tokens=500)
    assert any("likes tea" in item.text for item in pack.items)


def test_retraction_is_seen_by_recall_and_the_past_is_not_changed(cortex, clock, lives):
    lives("Berlin", year(2020))
    lisbon = lives("Lisbon", year(2024))
    before = clock.now()
    clock.advance()
    cortex.retract("ns", lisbon.claim_ids[0], reason="wrong")
    now = cortex.recall("ns", "Where does Alice live? Berlin", budget_tokens=500)
    assert any("Berlin" in item.text for item in now.items)
    past = cortex.recall("ns", "Where does Alice live?", budget_tokens=500, known_at=before)
    assert [item.text for item in past.items] == ["Alice lives in Lisbon."]


def test_known_at_with_an_offset_means_the_same_instant(cortex, clock, lives):
    lives("Berlin", year(2020))
    instant = clock.now()
    lives("Lisbon", year(2024))
    text = instant.isoformat().replace("+00:00", "Z")
    shifted = instant.astimezone(tz=None).isoformat()
    for known in (instant, text, shifted):
        assert objects(cortex.claims("ns", known_at=known)) == ["Berlin"]


def test_extraction_failures_store_nothing_and_abstention_stores_the_observation(cortex):
    from evicortex.testing import EXTRACTOR_LIES, LyingExtractor, RaisingExtractor

    for rule in EXTRACTOR_LIES:
        with pytest.raises(errors.ProviderError):
            cortex.remember_extracted(
                "ns", "alpha beta", extractor=LyingExtractor(rule), role="user"
            )
    with pytest.raises(errors.ProviderError):
        cortex.remember_extracted(
            "ns", "alpha beta", extractor=RaisingExtractor(RuntimeError("boom"))
        )
    assert cortex.stats("ns").evidence == 0
    receipt = cortex.remember_extracted("ns", "alone", extractor=ScriptedExtractor())
    assert receipt.abstained
    assert receipt.claim_ids == ()
    record = cortex.get_extraction("ns", receipt.evidence_id)
    assert record.abstained
    assert record.evidence_digest == receipt.digest
    assert record.diagnostics[0].code == "short"
    with pytest.raises(InputError):
        cortex.remember_extracted("ns", "no extractor at all")
    assert cortex.verify().ok


def test_a_predicate_in_another_spelling_closes_the_claim_and_keeps_its_own_text(cortex, clock):
    for since, spelling, place in (
        (2020, "lives_in", "Berlin"),
        (2021, "lives in", "Lisbon"),
        (2022, "livesIn", "Oslo"),
        (2023, "Lives-In", "Rome"),
    ):
        clock.advance(timedelta(minutes=1))
        claim = ClaimDraft("Alice", spelling, place)
        cortex.remember("ns", f"I live in {place}.", occurred_at=year(since), claims=[claim])
    assert objects(cortex.claims("ns")) == ["Rome"]
    assert objects(cortex.claims("ns", predicate="LIVES IN", as_of=year(2021))) == ["Lisbon"]
    told = cortex.history("ns", "Alice", "livesIn")
    assert [claim.predicate for claim in told] == ["lives_in", "lives in", "livesIn", "Lives-In"]
    assert {claim.cardinality for claim in told} == {"single"}
    assert cortex.verify("ns").ok


def test_a_declared_cardinality_holds_for_every_spelling_of_its_predicate(cortex):
    drafts = [
        ClaimDraft("Alice", "lucky_number", "7", cardinality="single"),
        ClaimDraft("Alice", "luckyNumber", "8"),
    ]
    for draft, since in zip(drafts, (2020, 2021), strict=True):
        cortex.remember("ns", draft.object, occurred_at=year(since), claims=[draft])
    assert objects(cortex.claims("ns", predicate="lucky number")) == ["8"]
