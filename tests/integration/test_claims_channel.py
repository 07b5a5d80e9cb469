"""Claims as a channel: filters first, replays exactly, and says when it stops looking."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evicortex import ClaimDraft, EviCortex, Settings
from evicortex.pipeline.wiring import RecallOptions, RoomOptions
from evicortex.testing import DeterministicEmbedder, FixedClock

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cortex(tmp_path: Path) -> Iterator[EviCortex]:
    with EviCortex.open(tmp_path / "m.db", embedder=None, clock=FixedClock(START)) as opened:
        yield opened


def say(cortex: EviCortex, text: str, claim: ClaimDraft, **fields: str) -> str:
    return cortex.remember("n", text, claims=[claim], **fields).claim_ids[0]  # type: ignore[arg-type]


def crowd(cortex: EviCortex, count: int = 100) -> list[str]:
    return [
        say(
            cortex,
            f"zzz{number}",
            ClaimDraft(f"Bob {number}", "home city", "Zurich", cardinality="multi"),
            session="z",
            actor="Zed",
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("asked", [{"sessions": ["a"]}, {"actors": ["Bob"]}])
def test_claims_that_may_not_be_seen_take_nobody_s_place(
    cortex: EviCortex, asked: dict[str, list[str]]
) -> None:
    crowd(cortex)
    say(cortex, "qqq", ClaimDraft("Bob", "home city", "Zurich"), session="a", actor="Bob")
    pack = cortex.recall("n", "What is Bob's home city?", budget_tokens=300, **asked)  # type: ignore[arg-type]
    assert [item.text for item in pack.items] == ["qqq"]
    assert pack.support.verdict == "supported"


def test_claims_that_are_not_held_take_nobody_s_place(cortex: EviCortex) -> None:
    for claim_id in crowd(cortex):
        cortex.retract("n", claim_id, reason="wrong")
    say(cortex, "qqq", ClaimDraft("Bob", "home city", "Zurich"), session="a", actor="Bob")
    hits = cortex.search("n", "What is Bob's home city?").hits
    assert [hit.evidence.content for hit in hits if "claims" in hit.channels] == ["qqq"]


def test_a_cap_on_looking_for_held_claims_is_said(tmp_path: Path) -> None:
    settings = Settings(RoomOptions(recall=RecallOptions(claim_cap=10)))
    with EviCortex.open(tmp_path / "m.db", embedder=None, settings=settings) as cortex:
        crowd(cortex, 12)
        found = cortex.search("n", "home city Zurich").diagnostics
    assert "claim_cap" in {each.code for each in found}


@pytest.mark.parametrize("vectors", [False, True])
def test_asked_then_and_asked_later_of_then_are_the_same(tmp_path: Path, vectors: bool) -> None:
    clock = FixedClock(START)
    embedder = DeterministicEmbedder(8) if vectors else None
    with EviCortex.open(tmp_path / "m.db", embedder=embedder, clock=clock) as cortex:
        for number, text in enumerate(["I like green tea", "mint syrup", "my drink is cider"]):
            say(cortex, text, ClaimDraft("Bob", "favourite drink", f"drink {number}"), actor="Bob")
            clock.advance(timedelta(hours=1))
        asked = "Bob's favourite green drink"
        live = cortex.recall("n", asked, budget_tokens=300, actors=["Bob"])
        then = clock.now()
        clock.advance(timedelta(hours=1))
        for number in range(30):
            say(
                cortex,
                f"other {number}",
                ClaimDraft("Ann", "favourite drink", f"green {number}", cardinality="multi"),
                actor="Bob",
            )
        cortex.retract("n", cortex.claims("n", subject="Bob")[0].claim_id, reason="later")
        later = cortex.recall(
            "n", asked, budget_tokens=300, actors=["Bob"], known_at=then, as_of=then
        )
    assert later.text == live.text
    assert later.support == live.support
    assert [item.score for item in later.items] == [item.score for item in live.items]
    assert [item.channels for item in later.items] == [item.channels for item in live.items]


def test_a_blank_turn_is_no_failure_of_the_encoder(tmp_path: Path) -> None:
    with EviCortex.open(tmp_path / "m.db", embedder=DeterministicEmbedder(8)) as cortex:
        receipt = cortex.remember("n", " \n ")
        assert receipt.indexed
        assert receipt.diagnostics == ()
        cortex.remember("n", "I live in Rome.")
        report = cortex.sync_semantic("n")
        assert (report.indexed, report.missing, report.failed) == (0, 0, 0)
        pack = cortex.recall("n", "Rome", budget_tokens=100)
        assert "semantic_stale" not in {each.code for each in pack.diagnostics}


def test_old_words_stay_when_what_replaced_them_was_said_later(cortex: EviCortex) -> None:
    lives = {"subject": "Ann", "predicate": "lives_in"}
    cortex.remember(
        "n",
        "I live in Berlin.",
        actor="Ann",
        occurred_at="2025-01-01T00:00:00Z",
        claims=[ClaimDraft(**lives, object="Berlin")],  # type: ignore[arg-type]
    )
    cortex.remember(
        "n",
        "I moved to Lisbon last Saturday.",
        actor="Ann",
        occurred_at="2025-03-09T00:00:00Z",
        claims=[ClaimDraft(**lives, object="Lisbon", valid_from="2025-03-01T00:00:00Z")],  # type: ignore[arg-type]
    )
    asked = "Where does Ann live?"
    between = cortex.recall("n", asked, budget_tokens=200, as_of="2025-03-05T00:00:00Z")
    after = cortex.recall("n", asked, budget_tokens=200, as_of="2025-03-10T00:00:00Z")
    assert [item.text for item in between.items] == ["I live in Berlin."]
    assert [item.text for item in after.items] == ["I moved to Lisbon last Saturday."]
