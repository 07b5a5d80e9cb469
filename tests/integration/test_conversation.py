"""Turns said one after the other: context is read, spans are of the turn alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evicortex import EviCortex, InputError, errors
from evicortex.providers.rules import RuleExtractor
from evicortex.testing import FixedClock, RaisingExtractor, ScriptedExtractor
from evicortex.types import Span

MONDAY = datetime(2026, 3, 9, 10, tzinfo=UTC)


@pytest.fixture
def cortex(tmp_path):
    with EviCortex.open(tmp_path / "m.db", embedder=None, clock=FixedClock(MONDAY)) as opened:
        yield opened


def test_every_turn_is_read_with_the_turns_before_it(cortex):
    extractor = ScriptedExtractor()
    talk = cortex.conversation("ns", "s1", extractor=extractor, context_turns=2)
    assert talk.context == ()
    for actor, text in (("Ann", "one a"), ("Bo", "two b"), ("Ann", "three c"), ("Bo", "four d")):
        receipt = talk.say(text, actor=actor, role="user", occurred_at=MONDAY)
        assert cortex.evidence("ns", receipt.evidence_id).session == "s1"
    assert [context.previous for context in extractor.calls] == [
        (),
        (("Ann", "one a"),),
        (("Ann", "one a"), ("Bo", "two b")),
        (("Bo", "two b"), ("Ann", "three c")),
    ]
    assert talk.context == (("Ann", "three c"), ("Bo", "four d"))


def test_spans_are_of_the_current_turn_alone(cortex):
    extractor = RuleExtractor()
    talk = cortex.conversation("ns", "s1", extractor=extractor)
    talk.say("My wedding is on June 12.", actor="Ann", role="user", occurred_at=MONDAY)
    receipt = talk.say("Actually it's the 14th.", actor="Ann", role="user", occurred_at=MONDAY)
    (claim,) = cortex.claims("ns", as_of=MONDAY)
    assert (claim.subject, claim.object) == ("Ann's wedding", "the 14th")
    assert claim.claim_id in receipt.claim_ids
    assert claim.derivations[0].span == Span(14, 22)


def test_a_stored_session_goes_on_where_it_stopped(cortex):
    cortex.remember("ns", "other session", session="s2", actor="Cy")
    for text in ("one", "two", "three"):
        cortex.remember("ns", text, session="s1", actor="Ann", external_id=text)
    talk = cortex.conversation("ns", "s1", extractor=ScriptedExtractor(), context_turns=2)
    assert talk.context == (("Ann", "two"), ("Ann", "three"))
    assert cortex.conversation("ns", "s3").context == ()
    assert cortex.conversation("unknown", "s1").context == ()


def test_a_turn_said_again_is_read_as_it_was_read_first(cortex):
    extractor = ScriptedExtractor()
    talk = cortex.conversation("ns", "s1", extractor=extractor)
    first = talk.say("one a", external_id="1")
    talk.say("two b", external_id="2")
    again = talk.say("one a", external_id="1")
    assert (again.evidence_id, again.created) == (first.evidence_id, False)
    assert extractor.calls[-1].previous == ()
    assert talk.context == ((None, "one a"), (None, "two b"))


def test_a_turn_that_fails_is_no_context(cortex):
    talk = cortex.conversation("ns", "s1", extractor=RaisingExtractor(RuntimeError("boom")))
    with pytest.raises(errors.ProviderUnavailableError):
        talk.say("one a")
    assert talk.context == ()
    assert cortex.namespaces() == ()


def test_the_configured_extractor_is_the_default(tmp_path):
    extractor = ScriptedExtractor()
    with EviCortex.open(tmp_path / "m.db", embedder=None, extractor=extractor) as cortex:
        cortex.conversation("ns", "s1").say("one a")
    assert len(extractor.calls) == 1


@pytest.mark.parametrize("session", ["", " ", None, 5])
def test_a_conversation_needs_its_session(cortex, session):
    with pytest.raises(InputError):
        cortex.conversation("ns", session)


@pytest.mark.parametrize("turns", [-1, 65, 1.5, True])
def test_the_context_is_bounded(cortex, turns):
    with pytest.raises(InputError):
        cortex.conversation("ns", "s1", context_turns=turns)
    with pytest.raises(errors.NamespaceError):
        cortex.conversation("", "s1")
