"""The learned ranker inside a recall: on, off, replayed, and blind to what may not be seen."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from evicortex import EviCortex, EvidenceDraft, Settings
from evicortex.pipeline.wiring import RoomOptions
from evicortex.policy.fusion import FusionWeights
from evicortex.policy.ranking import RECORD, VERSION
from evicortex.testing import DeterministicEmbedder

WORDS = "cat garden water boat piano bread letter winter market train lemon window".split()
START = datetime(2024, 3, 1, 12, tzinfo=UTC)


def drafts(count: int) -> list[EvidenceDraft]:
    return [
        EvidenceDraft(
            content=f"The {WORDS[n % 12]} and the {WORDS[(n * 5 + 1) % 12]} number {n}.",
            actor=("Ann", "Ben")[n % 2],
            session=f"s{n // 6}",
            occurred_at=START + timedelta(days=n),
        )
        for n in range(count)
    ]


def settings(**fusion: object) -> Settings:
    return Settings(RoomOptions(fusion=replace(FusionWeights(), **fusion)))


def scores(
    path: Path,
    query: str,
    chosen: Settings,
    *,
    semantic: bool = True,
    as_of: datetime | None = None,
) -> Mapping[str, float]:
    encoder = DeterministicEmbedder(8, semantic=semantic)
    with EviCortex.open(path, embedder=encoder, settings=chosen) as cortex:
        hits = cortex.search("a", query, limit=40, as_of=as_of).hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    return {hit.evidence.content: hit.score for hit in hits}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    with EviCortex.open(tmp_path / "m.db", embedder=DeterministicEmbedder(8)) as cortex:
        cortex.remember_many("a", drafts(30))
    return tmp_path / "m.db"


QUESTION = "What did Ann say about the piano and the boat?"


@pytest.mark.parametrize("on", [True, False])
def test_what_is_on_and_what_it_did_is_said(ledger: Path, *, on: bool) -> None:
    with EviCortex.open(
        ledger, embedder=DeterministicEmbedder(8), settings=settings(ranker=on)
    ) as cortex:
        said = cortex.capabilities().ranker
        assert (said is not None) is on
        if said is not None:
            record = json.loads(resources.files("evicortex.policy").joinpath(RECORD).read_text())
            assert said == {"version": VERSION, "weights_sha256": record["weights_sha256"]}
        assert cortex.recall("a", QUESTION, budget_tokens=200).trace["ranker"] is on


def test_the_ranker_corrects_scores_until_it_is_switched_off(ledger: Path) -> None:
    on, off = settings(ranker=True), settings(ranker=False)
    corrected, plain = scores(ledger, QUESTION, on), scores(ledger, QUESTION, off)
    assert corrected.keys() == plain.keys()
    assert corrected != plain
    assert scores(ledger, QUESTION, on) == corrected


def test_only_the_best_candidates_are_corrected(ledger: Path) -> None:
    plain = scores(ledger, QUESTION, settings(ranker=False))
    few = scores(ledger, QUESTION, settings(ranker=True, ranker_candidates=5))
    best = sorted(plain, key=lambda text: -plain[text])[:5]
    assert {text for text in plain if few[text] != plain[text]} == set(best)
    one = scores(ledger, QUESTION, settings(ranker=True, ranker_candidates=1))
    assert one == plain


@pytest.mark.parametrize("query", ["zebra yonder", "?"])
def test_where_the_gate_is_shut_nothing_is_corrected(ledger: Path, query: str) -> None:
    on, off = settings(ranker=True), settings(ranker=False)
    assert scores(ledger, query, on) == scores(ledger, query, off)


def test_a_diagnostic_encoder_is_not_ranked(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with EviCortex.open(path, embedder=DeterministicEmbedder(8, semantic=False)) as cortex:
        cortex.remember_many("a", drafts(30))
    on, off = settings(ranker=True), settings(ranker=False)
    found = scores(path, QUESTION, on, semantic=False)
    assert found == scores(path, QUESTION, off, semantic=False)


def test_rows_that_may_not_be_seen_leave_no_trace(ledger: Path, tmp_path: Path) -> None:
    with EviCortex.open(tmp_path / "n.db", embedder=DeterministicEmbedder(8)) as cortex:
        cortex.remember_many("a", drafts(18))
    then = START + timedelta(days=17, hours=1)
    on = settings(ranker=True)
    found = scores(ledger, QUESTION, on, as_of=then)
    assert found == scores(tmp_path / "n.db", QUESTION, on, as_of=then)
    assert len(found) == 18
