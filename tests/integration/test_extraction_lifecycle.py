"""``remember_extracted`` end to end: whole or not at all, and audited."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from evicortex import Authority, ConflictError, EviCortex, InputError, Settings, errors
from evicortex.pipeline.wiring import ExtractionOptions
from evicortex.protocols import ExtractedClaim, ExtractionResult
from evicortex.testing import (
    EXTRACTOR_LIES,
    FixedClock,
    LyingExtractor,
    RaisingExtractor,
    ScriptedExtractor,
)
from evicortex.types import ClaimStatus, Diagnostic, Span
from evicortex.validity import AuthorityOrder

MONDAY = datetime(2026, 3, 9, 10, tzinfo=UTC)


@pytest.fixture
def clock():
    return FixedClock(MONDAY)


@pytest.fixture
def cortex(tmp_path, clock):
    with EviCortex.open(tmp_path / "memory.db", embedder=None, clock=clock) as opened:
        yield opened


def state(cortex, tmp_path):
    """Everything that an export holds, and every count."""
    path = tmp_path / "state.jsonl"
    digest = cortex.export("ns", path).digest
    path.unlink()
    return digest, cortex.stats("ns").evidence, cortex.claims("ns", include_superseded=True)


def claim(context, value, **fields):
    start = context.content.index(value)
    plain = ExtractedClaim(
        evidence_id=context.evidence_id,
        evidence_digest=context.digest,
        subject="Ann",
        predicate="likes",
        object=value,
        span=Span(start, start + len(value)),
        quote=value,
        confidence=0.75,
    )
    return replace(plain, **fields)


def emits(*values, revision="1", **fields):
    """An extractor that claims each value, and keeps a diagnostic for every ``?``."""

    def script(context):
        claims = tuple(claim(context, value, **fields) for value in values)
        unresolved = tuple(
            Diagnostic("unresolved_span", "what is it?", {"span": [at, at + 1]})
            for at, letter in enumerate(context.content)
            if letter == "?"
        )
        return ExtractionResult(claims, not claims, unresolved, {"calls": 1, "seconds": 0.5})

    return ScriptedExtractor(script, revision=revision)


@pytest.mark.parametrize("rule", EXTRACTOR_LIES)
def test_every_broken_rule_is_named_and_leaves_nothing(cortex, tmp_path, rule):
    with pytest.raises(errors.ExtractionError) as caught:
        cortex.remember_extracted("ns", "alpha beta", extractor=LyingExtractor(rule))
    assert caught.value.rule == rule
    assert f"{rule!r}" in str(caught.value)
    assert cortex.namespaces() == ()
    cortex.remember("ns", "kept")
    before = state(cortex, tmp_path)
    with pytest.raises(errors.ExtractionError):
        cortex.remember_extracted(
            "ns", "alpha beta", external_id="x", extractor=LyingExtractor(rule)
        )
    assert state(cortex, tmp_path) == before
    assert cortex.verify().ok


@pytest.mark.parametrize("rule", EXTRACTOR_LIES)
def test_a_broken_re_extraction_leaves_the_earlier_one_in_force(cortex, tmp_path, rule):
    first = cortex.remember_extracted("ns", "a b", external_id="x", extractor=emits("a"))
    before = state(cortex, tmp_path)
    with pytest.raises(errors.ExtractionError):
        cortex.remember_extracted("ns", "a b", external_id="x", extractor=LyingExtractor(rule))
    assert state(cortex, tmp_path) == before
    assert cortex.get_extraction("ns", first.evidence_id) == first.record


@pytest.mark.parametrize(
    "extractor",
    [
        RaisingExtractor(RuntimeError("boom")),
        RaisingExtractor(KeyError("claims")),
        ScriptedExtractor(lambda context: None),
        ScriptedExtractor(lambda context: '{"claims": []}'),
        ScriptedExtractor(lambda context: {"claims": []}),
        ScriptedExtractor(lambda context: ExtractionResult(())),
        ScriptedExtractor(lambda context: ExtractionResult(({"subject": "Ann"},))),
        ScriptedExtractor(
            lambda context: ExtractionResult(
                (), abstained=True, diagnostics=(Diagnostic("x", "y", {"no": {1, 2}}),)
            )
        ),
        ScriptedExtractor(
            lambda context: ExtractionResult((claim(context, "likes", subject="\ud800"),))
        ),
        object(),
        "an extractor's name",
    ],
    ids=range(11),
)
def test_a_malformed_reply_is_never_no_facts(cortex, extractor):
    with pytest.raises(errors.ProviderError):
        cortex.remember_extracted("ns", "Ann likes tea", extractor=extractor)
    assert cortex.namespaces() == ()


def test_an_extractor_whose_name_cannot_be_read_is_a_provider_error(cortex):
    class Nameless(ScriptedExtractor):
        @property
        def extractor_id(self):
            raise OSError("no such file")

    with pytest.raises(errors.ProviderUnavailableError, match="no such file"):
        cortex.remember_extracted("ns", "Ann likes tea", extractor=Nameless())


def test_the_typed_errors_of_a_provider_stay_what_they_are(cortex):
    too_long = errors.TextTooLongError("700 tokens")
    with pytest.raises(errors.TextTooLongError, match="700 tokens"):
        cortex.remember_extracted("ns", "Ann", extractor=RaisingExtractor(too_long))


@pytest.mark.parametrize("configured", [True, False], ids=["configured", "per call"])
def test_an_extractor_that_does_not_answer_in_time_leaves_nothing(tmp_path, clock, configured):
    release = threading.Event()
    slow = ScriptedExtractor(lambda context: release.wait() or ExtractionResult((), True))
    options = replace(Settings().options, extraction=ExtractionOptions(0.05))
    with EviCortex.open(
        tmp_path / "m.db",
        embedder=None,
        clock=clock,
        settings=Settings(options),
        extractor=slow if configured else emits("Ann"),
    ) as cortex:
        try:
            with pytest.raises(errors.ProviderUnavailableError, match=r"within 0\.05 s"):
                cortex.remember_extracted("ns", "Ann", extractor=None if configured else slow)
        finally:
            release.set()
        assert cortex.namespaces() == ()


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 1e300])
def test_the_time_limit_is_a_finite_number_of_seconds(limit):
    with pytest.raises(InputError):
        ExtractionOptions(limit)
    assert ExtractionOptions(None).timeout_seconds is None


def test_the_time_limit_is_a_setting():
    settings = Settings.from_environment({"EVICORTEX_EXTRACTION_TIMEOUT": "2.5"})
    assert settings.options.extraction.timeout_seconds == 2.5
    with pytest.raises(InputError, match="EXTRACTION_TIMEOUT"):
        Settings.from_environment({"EVICORTEX_EXTRACTION_TIMEOUT": "0"})


def test_the_record_holds_everything(cortex):
    receipt = cortex.remember_extracted(
        "ns",
        "Ann likes tea, jam and what?",
        extractor=emits("tea", "jam", revision="r7"),
        actor="Ann",
        occurred_at=MONDAY,
    )
    record = cortex.get_extraction("ns", receipt.evidence_id)
    assert record == receipt.record
    assert (record.extractor_id, record.extractor_revision) == ("testing/scripted", "r7")
    assert record.evidence_id == receipt.evidence_id
    assert (
        record.evidence_digest
        == receipt.digest
        == cortex.evidence("ns", receipt.evidence_id).digest
    )
    assert [each.span for each in record.derivations] == [Span(10, 13), Span(15, 18)]
    assert tuple(each.claim_id for each in record.derivations) == receipt.claim_ids
    assert {each.confidence for each in record.derivations} == {0.75}
    assert {each.authority for each in record.derivations} == {Authority.USER}
    assert [each.details for each in record.diagnostics] == [{"span": [27, 28]}]
    assert record.usage == {"calls": 1, "seconds": 0.5}
    assert not record.abstained
    held = cortex.claims("ns", as_of=MONDAY)
    assert [(c.object, c.derivations[0].span) for c in held] == [
        ("tea", Span(10, 13)),
        ("jam", Span(15, 18)),
    ]
    assert {c.derivations[0].evidence_digest for c in held} == {receipt.digest}


def test_an_abstention_is_a_claimless_observation_with_its_reasons(cortex):
    receipt = cortex.remember_extracted("ns", "What?", extractor=emits())
    assert receipt.abstained
    assert receipt.created
    assert receipt.claim_ids == ()
    assert cortex.evidence("ns", receipt.evidence_id).content == "What?"
    assert cortex.claims("ns") == ()
    record = cortex.get_extraction("ns", receipt.evidence_id)
    assert record.abstained
    assert [each.code for each in record.diagnostics] == ["unresolved_span"]
    assert [each.code for each in receipt.diagnostics] == ["unresolved_span"]


def test_re_extraction_supersedes_and_keeps_the_earlier_readable(cortex, clock):
    call = {"external_id": "x", "occurred_at": MONDAY}
    first = cortex.remember_extracted("ns", "Ann: tea, jam", extractor=emits("tea", "jam"), **call)
    before = clock.now()
    clock.advance(timedelta(days=1))
    second = cortex.remember_extracted(
        "ns", "Ann: tea, jam", extractor=emits("tea", revision="2"), **call
    )
    assert second.evidence_id == first.evidence_id
    assert not second.created
    assert second.claim_ids == first.claim_ids[:1]
    assert [c.object for c in cortex.claims("ns")] == ["tea"]
    assert [c.object for c in cortex.claims("ns", as_of=MONDAY, known_at=before)] == ["tea", "jam"]
    jam = cortex.history("ns", "Ann", "likes")[1]
    assert (jam.object, jam.status) == ("jam", ClaimStatus.RETRACTED)
    old, new = cortex.extraction_history("ns", first.evidence_id)
    assert new == second.record == cortex.get_extraction("ns", first.evidence_id)
    assert new.superseded_at is None
    assert old.superseded_at == new.recorded_at == clock.now()
    assert replace(old, superseded_at=None) == first.record
    clock.advance(timedelta(days=1))
    third = cortex.remember_extracted(
        "ns", "Ann: tea, jam", extractor=emits("jam", revision="3"), **call
    )
    assert [c.object for c in cortex.claims("ns")] == ["jam"]
    assert third.claim_ids != first.claim_ids[1:]
    clock.advance(timedelta(days=1))
    fourth = cortex.remember_extracted("ns", "Ann: tea, jam", extractor=emits(), **call)
    assert fourth.abstained
    assert cortex.claims("ns") == ()
    assert len(cortex.extraction_history("ns", first.evidence_id)) == 4
    assert cortex.verify().ok


def test_the_same_extraction_again_changes_nothing(cortex, clock, tmp_path):
    call = {"external_id": "x", "extractor": emits("tea")}
    first = cortex.remember_extracted("ns", "tea?", **call)
    before = state(cortex, tmp_path)
    clock.advance()
    again = cortex.remember_extracted("ns", "tea?", **call)
    assert (again.claim_ids, again.created) == (first.claim_ids, False)
    assert again.record == first.record
    assert state(cortex, tmp_path) == before


def test_re_extraction_sees_the_evidence_as_it_is_stored(cortex, clock):
    cortex.remember("ns", "tea", external_id="x", actor="Ann", role="document", occurred_at=MONDAY)
    clock.advance()
    extractor = emits("tea")
    receipt = cortex.remember_extracted(
        "ns", "tea", external_id="x", actor="Eve", role="system", extractor=extractor
    )
    (context,) = extractor.calls
    assert (context.actor, context.role) == ("Ann", "document")
    assert (context.authority, context.occurred_at) == (Authority.DOCUMENT, MONDAY)
    (found,) = cortex.claims("ns")
    assert (found.authority, found.valid_from) == (Authority.DOCUMENT, MONDAY)
    assert receipt.record.derivations[0].authority is Authority.DOCUMENT


def test_another_text_under_a_known_id_does_not_cost_an_extraction(cortex, tmp_path):
    cortex.remember("ns", "tea", external_id="x")
    before = state(cortex, tmp_path)
    extractor = emits("jam")
    with pytest.raises(ConflictError):
        cortex.remember_extracted("ns", "jam", external_id="x", extractor=extractor)
    assert extractor.calls == []
    assert state(cortex, tmp_path) == before


def test_evidence_that_another_stores_meanwhile_is_not_given_these_claims(cortex, tmp_path):
    def meanwhile(context):
        cortex.remember("ns", "I like tea", external_id="x", actor="Bo")
        return ExtractionResult((claim(context, "tea", subject=context.actor),))

    extractor = ScriptedExtractor(meanwhile)
    with pytest.raises(ConflictError, match="stored meanwhile"):
        cortex.remember_extracted(
            "ns", "I like tea", external_id="x", actor="Ann", extractor=extractor
        )
    assert cortex.claims("ns") == ()
    again = cortex.remember_extracted("ns", "I like tea", external_id="x", extractor=extractor)
    assert [c.subject for c in cortex.claims("ns")] == ["Bo"]
    assert not again.created
    assert cortex.verify().ok


def test_extractions_at_the_same_time_make_one_evidence_and_one_series(cortex):
    together = threading.Barrier(4)

    def script(context):
        together.wait(timeout=30)
        return ExtractionResult((claim(context, "tea"),))

    def extract(number):
        cortex.remember_extracted(
            "ns",
            "I like tea",
            external_id="x",
            extractor=ScriptedExtractor(script, revision=str(number)),
        )

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(extract, range(4)))
    (evidence,) = {each.evidence_id for c in cortex.claims("ns") for each in c.derivations}
    records = cortex.extraction_history("ns", evidence)
    assert {each.extractor_revision for each in records} == {"0", "1", "2", "3"}
    assert len(cortex.claims("ns")) == 1
    assert cortex.verify().ok


def test_a_purge_takes_the_records_of_an_extraction_with_it(cortex, tmp_path):
    text = "I like tea and Zanzibarville?"
    receipt = cortex.remember_extracted("ns", text, external_id="x", extractor=emits("tea"))
    cortex.purge("ns", evidence_id=receipt.evidence_id)
    for read in (cortex.get_extraction, cortex.extraction_history):
        with pytest.raises(errors.NotFoundError):
            read("ns", receipt.evidence_id)
    assert cortex.claims("ns", include_superseded=True) == ()
    for path in tmp_path.iterdir():
        assert b"Zanzibarville" not in path.read_bytes()
    assert cortex.verify().ok


def test_the_extractor_is_bound_to_the_text_and_its_highest_authority(cortex):
    extractor = emits("tea")
    cortex.remember_extracted(
        "ns",
        "tea",
        extractor=extractor,
        role="assistant",
        authority="system",
        previous=[("Bo", "Tea or jam?"), (None, "…")],
    )
    (context,) = extractor.calls
    assert context.authority is Authority.ASSISTANT
    assert context.previous == (("Bo", "Tea or jam?"), (None, "…"))
    assert context.evidence_id == f"sha256:{context.digest}"


def test_a_configured_order_of_authorities_holds_for_extractors(tmp_path, clock):
    ranking = ("assistant", "system", "user", "tool", "document", "untrusted")
    order = AuthorityOrder(tuple(Authority(name) for name in ranking))
    settings = Settings(replace(Settings().options, authorities=order))
    extractor = emits("tea")
    with EviCortex.open(
        tmp_path / "m.db", embedder=None, clock=clock, settings=settings, extractor=extractor
    ) as cortex:
        cortex.remember_extracted("ns", "tea", role="assistant", authority="user")
    assert extractor.calls[0].authority is Authority.USER


def test_an_interval_that_would_end_before_it_begins_is_refused(cortex):
    early = emits("tea", valid_to=MONDAY - timedelta(days=1))
    with pytest.raises(errors.ExtractionError, match="'validity'") as caught:
        cortex.remember_extracted("ns", "tea", extractor=early, occurred_at=MONDAY)
    assert caught.value.rule == "validity"
    assert cortex.namespaces() == ()


@pytest.mark.parametrize(
    "previous", [["tea"], [("Ann",)], [("Ann", 5)], [(7, "tea")], [("Ann", "\ud800")], [None]]
)
def test_previous_turns_are_pairs_of_texts(cortex, previous):
    extractor = emits("tea")
    with pytest.raises(InputError):
        cortex.remember_extracted("ns", "tea", extractor=extractor, previous=previous)
    assert extractor.calls == []


def test_a_draft_that_cannot_be_stored_is_refused_whole(cortex):
    with pytest.raises(InputError):
        cortex.remember_extracted("ns", "tea", extractor=emits("tea"), metadata={"no": object()})
    assert cortex.namespaces() == ()


def test_claims_on_recalled_context_are_left_out_and_said(cortex):
    text = "<memory>\n[E1] Ann: I like tea.\n</memory>\nI like jam, and that is what I say today of all days."
    receipt = cortex.remember_extracted("ns", text, extractor=emits("tea", "jam"))
    assert [c.object for c in cortex.claims("ns")] == ["jam"]
    assert [each.code for each in receipt.record.diagnostics] == ["recalled_context"]
    extractor = emits("tea")
    whole = text.partition("I like jam")[0]
    receipt = cortex.remember_extracted("ns", whole, extractor=extractor)
    assert receipt.abstained
    assert extractor.calls == []


def test_extraction_history_is_of_one_namespace(cortex):
    receipt = cortex.remember_extracted("ns", "tea", extractor=emits("tea"))
    cortex.remember("other", "tea")
    for namespace in ("other", "unknown"):
        with pytest.raises(errors.NotFoundError):
            cortex.extraction_history(namespace, receipt.evidence_id)
