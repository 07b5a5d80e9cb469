"""Vectors of claims through the public calls: written, repaired, removed, and what they count for."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evicortex import ClaimDraft, EviCortex, EvidenceDraft, Settings
from evicortex.errors import CorruptLedgerError
from evicortex.ledger.claim_texts import first_claim
from evicortex.pipeline.wiring import RoomOptions
from evicortex.projections.claim_vectors import CLAIMS, ClaimVectors
from evicortex.projections.semantic import SemanticOptions
from evicortex.protocols import EvidenceContext, ExtractedClaim, ExtractionResult
from evicortex.testing import (
    DeterministicEmbedder,
    LyingEmbedder,
    RaisingEmbedder,
    ScriptedExtractor,
)
from evicortex.types import Polarity, Span

LIVES = ClaimDraft("Ann", "lives_in", "Lisbon")
WORKS = ClaimDraft("Ann", "employer", "Acme")
QUERY = "Any pets?"


def near(*texts: str, cosine: float = 0.9, semantic: bool = True) -> DeterministicEmbedder:
    """Return an encoder for which QUERY resembles these texts, and no note."""
    beside = (1 - cosine**2) ** 0.5
    vectors = {QUERY: (1.0, 0, 0, 0)} | dict.fromkeys(texts, (cosine, beside, 0, 0))
    unlike = ("Ann chose first dog", "Ann owns bicycle", *(f"note {n}" for n in range(9)))
    vectors = dict.fromkeys(unlike, (0, 0, 0, 1.0)) | vectors
    return DeterministicEmbedder(4, semantic=semantic, vectors=vectors)


def rows(cortex: EviCortex) -> list[tuple[Any, ...]]:
    with cortex._open.ledger.read() as tx:
        return list(
            tx.connection.execute(
                "SELECT namespace_id, item, part, input_digest, vector FROM vectors "
                "WHERE kind = 'claim' ORDER BY namespace_id, item, part"
            )
        )


def codes(diagnostics: tuple[object, ...]) -> set[str]:
    return {each.code for each in diagnostics}  # type: ignore[attr-defined]


def shares(cortex: EviCortex, query: str = QUERY, **asked: Any) -> dict[str, float]:
    """Return the claims channel by text, rounded."""
    hits = cortex.search("a", query, include_superseded=True, **asked).hits
    return {
        hit.evidence.content: round(hit.channels["claims"].score, 3)
        for hit in hits
        if "claims" in hit.channels
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def cortex(path: Path) -> Iterator[EviCortex]:
    with EviCortex.open(path, embedder=DeterministicEmbedder(8)) as cortex:
        yield cortex


def test_a_write_embeds_its_claims_after_the_commit(cortex: EviCortex) -> None:
    receipt = cortex.remember("a", "text", claims=[LIVES, WORKS])
    assert receipt.indexed
    encoder = DeterministicEmbedder(8)
    texts = ["Ann lives in Lisbon", "Ann employer Acme"]
    expected = encoder.embed(texts)
    stored = rows(cortex)
    assert [row[:3] for row in stored] == [(1, 1, 0), (1, 2, 0)]
    assert [row[3] for row in stored] == [hashlib.sha256(t.encode()).hexdigest() for t in texts]
    assert [np.frombuffer(row[4], "<f4").tolist() for row in stored] == expected.tolist()
    cortex.remember("a", "no claims")
    cortex.remember_many(
        "b", [EvidenceDraft("one", claims=(LIVES,)), EvidenceDraft("two", claims=(WORKS,))]
    )
    assert [row[:2] for row in rows(cortex)] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_extracted_claims_are_embedded(cortex: EviCortex) -> None:
    def script(context: EvidenceContext) -> ExtractionResult:
        source = (context.evidence_id, context.digest)
        claim = ExtractedClaim(*source, "Ann", "has_pet", "cat", Span(0, 3), "cat", 0.9)
        return ExtractionResult((claim,))

    receipt = cortex.remember_extracted("a", "cat", extractor=ScriptedExtractor(script))
    assert receipt.indexed
    assert len(rows(cortex)) == 1


def test_a_sync_embeds_what_is_missing_or_stale_and_only_that(path: Path) -> None:
    with EviCortex.open(path, embedder=None) as cortex:
        for number in range(3):
            cortex.remember("a", f"text {number}", claims=[LIVES, WORKS])
        cortex.remember("b", "text", claims=[LIVES])
    embedder = DeterministicEmbedder(8)
    with EviCortex.open(path, embedder=embedder) as cortex:
        cortex.remember("a", "text 3", claims=[WORKS])
        assert [row[1] for row in rows(cortex)] == [7]
        assert "claims_not_embedded" in codes(cortex.recall("a", "x", budget_tokens=9).diagnostics)
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.missing, report.stale, report.failed) == (9, 9, 0, 0)
        assert not codes(cortex.recall("a", "x", budget_tokens=9).diagnostics) & {
            "claims_not_embedded",
            "semantic_stale",
        }
        before = rows(cortex)
        assert [row[:2] for row in before] == [(1, seq) for seq in range(1, 8)]
        called = len(embedder.calls)
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.missing, report.stale, report.failed) == (0, 0, 0, 0)
        assert len(embedder.calls) == called
        with cortex._open.ledger.write() as tx:
            tx.connection.execute(
                "UPDATE vectors SET input_digest = 'other' WHERE kind = 'claim' AND item = 2"
            )
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.missing, report.stale) == (1, 0, 1)
        assert embedder.calls[-1] == (("Ann employer Acme",), "document")
        assert rows(cortex) == before


def test_many_claims_are_embedded_batch_by_batch(path: Path) -> None:
    drafts = tuple(ClaimDraft("Ann", "likes", f"thing {n}") for n in range(300))
    with EviCortex.open(path, embedder=None) as cortex:
        cortex.remember("a", "text", claims=drafts)
    embedder = DeterministicEmbedder(8)
    with EviCortex.open(path, embedder=embedder) as cortex:
        assert cortex.sync_semantic("a").indexed == 301
        sizes = [len(texts) for texts, _ in embedder.calls if len(texts) > 1]
        assert sizes == [128, 128, 44]
        assert len(rows(cortex)) == 300


def test_a_provider_that_fails_loses_no_claim(path: Path) -> None:
    embedder = RaisingEmbedder(RuntimeError("out of memory"), failures=1)
    with EviCortex.open(path, embedder=embedder) as cortex:
        receipt = cortex.remember("a", "text", claims=[LIVES])
        assert not receipt.indexed
        assert "semantic_not_indexed" in codes(receipt.diagnostics)
        assert [claim.object for claim in cortex.claims("a")] == ["Lisbon"]
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.missing, report.failed) == (2, 2, 0)


class FailsForClaims(DeterministicEmbedder):
    failing = True

    def embed(self, texts: Any, *, input_type: Any = "document") -> Any:
        if self.failing and "Ann lives in Lisbon" in texts:
            raise RuntimeError("out of memory")
        return super().embed(texts, input_type=input_type)


def test_a_provider_that_fails_at_the_claims_keeps_the_evidence_vectors(path: Path) -> None:
    embedder = FailsForClaims(8)
    with EviCortex.open(path, embedder=embedder) as cortex:
        receipt = cortex.remember("a", "text", claims=[LIVES])
        (problem,) = receipt.diagnostics
        assert problem.code == "semantic_not_indexed"
        assert problem.message.startswith("the claims are committed")
        assert rows(cortex) == []
        embedder.failing = False
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.missing) == (1, 1)


def test_a_nan_row_costs_its_own_claim_only(path: Path) -> None:
    with EviCortex.open(path, embedder=LyingEmbedder("nan row", row=1)) as cortex:
        receipt = cortex.remember("a", "text", claims=[LIVES, WORKS])
        assert "vectors_rejected" in codes(receipt.diagnostics)
        assert len(cortex.claims("a")) == 2
        assert len(rows(cortex)) == 1


def test_another_identity_embeds_claims_again(path: Path) -> None:
    with EviCortex.open(path, embedder=DeterministicEmbedder(8)) as cortex:
        cortex.remember("a", "text", claims=[LIVES])
        before = rows(cortex)
    with EviCortex.open(path, embedder=DeterministicEmbedder(8, revision="2")) as cortex:
        assert not cortex.remember("a", "news", claims=[WORKS]).indexed
        assert rows(cortex) == before
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.stale, report.missing) == (4, 2, 2)
        assert [row[1] for row in rows(cortex)] == [1, 2]
        assert rows(cortex)[0][4] != before[0][4]
        with cortex._open.ledger.read() as tx:
            assert tx.connection.execute("SELECT count(*) FROM vector_profiles").get == 1


def test_a_purge_takes_them_out_of_every_file(path: Path, cortex: EviCortex) -> None:
    gone = cortex.remember("a", "first", claims=[LIVES])
    cortex.remember("a", "second", claims=[WORKS])
    cortex.retract("a", gone.claim_ids[0], reason="wrong")
    blobs = [row[4] for row in rows(cortex)]
    assert len(blobs) == 2
    cortex.purge("a", evidence_id=gone.evidence_id)
    assert [row[4] for row in rows(cortex)] == blobs[1:]
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert [blob in data for blob in blobs] == [False, True]
    assert cortex.verify().ok


def test_a_rebuild_asks_nobody_and_a_load_embeds_anew(tmp_path: Path) -> None:
    embedder = DeterministicEmbedder(8)
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        cortex.remember("a", "text", claims=[LIVES, WORKS])
        before, called = rows(cortex), len(embedder.calls)
        cortex.rebuild("a")
        assert (rows(cortex), len(embedder.calls)) == (before, called)
        cortex.export("a", tmp_path / "a.jsonl")
    with EviCortex.open(tmp_path / "copy.db", embedder=embedder) as cortex:
        cortex.load("a", tmp_path / "a.jsonl")
        assert rows(cortex) == before
        assert cortex.sync_semantic("a").indexed == 0


def test_a_claim_without_a_shared_word_is_found_by_its_vector(path: Path) -> None:
    with EviCortex.open(path, embedder=near("Ann owns cat")) as cortex:
        cortex.remember("a", "note 1", claims=[ClaimDraft("Ann", "owns", "cat")])
        cortex.remember("a", "note 2", claims=[ClaimDraft("Ann", "owns", "bicycle")])
        assert shares(cortex)["note 1"] == 1.0
        assert cortex.search("a", QUERY).hits[0].evidence.content == "note 1"


@pytest.mark.parametrize(("cosine", "share"), [(0.2, None), (0.425, 0.5), (0.7, 1.0)])
def test_the_share_rises_with_the_cosine(path: Path, cosine: float, share: float | None) -> None:
    with EviCortex.open(path, embedder=near("Ann owns cat", cosine=cosine)) as cortex:
        cortex.remember("a", "note 1", claims=[ClaimDraft("Ann", "owns", "cat")])
        assert shares(cortex).get("note 1") == share


def test_words_and_vectors_are_two_signs(path: Path) -> None:
    draft = ClaimDraft("Ann", "pets", "cat", confidence=0.5)
    with EviCortex.open(path, embedder=near("Ann pets cat", cosine=0.425)) as cortex:
        cortex.remember("a", "note 1", claims=[draft])
        cortex.remember("a", "note 2", claims=[ClaimDraft("Ann", "owns", "bicycle")])
        assert shares(cortex)["note 1"] == 0.5
    with EviCortex.open(path, embedder=None) as cortex:
        assert shares(cortex)["note 1"] == 0.5
        assert "claims_not_embedded" not in codes(cortex.search("a", QUERY).diagnostics)


def test_a_diagnostic_encoder_gives_claims_no_vote(path: Path) -> None:
    with EviCortex.open(path, embedder=near("Ann owns cat", semantic=False)) as cortex:
        cortex.remember("a", "note 1", claims=[ClaimDraft("Ann", "owns", "cat")])
        assert len(rows(cortex)) == 1
        assert shares(cortex) == {}
        assert shares(cortex, "the cat") == {"note 1": 1.0}


def test_no_vector_makes_a_claim_held_that_is_not(path: Path) -> None:
    texts = [f"Ann {predicate} cat" for predicate in ("chose first", "lost", "denied", "lives in")]
    with EviCortex.open(path, embedder=near(*texts)) as cortex:
        old = {"valid_from": "2020-01-01T00:00:00Z"}
        cortex.remember(
            "a",
            "note 1",
            claims=[ClaimDraft("Ann", "chose_first", "cat", cardinality="single", **old)],
        )
        cortex.remember(
            "a", "note 2", claims=[ClaimDraft("Ann", "chose_first", "dog", cardinality="single")]
        )
        receipt = cortex.remember("a", "note 3", claims=[ClaimDraft("Ann", "lost", "cat")])
        cortex.retract("a", receipt.claim_ids[0], reason="found")
        expired = ClaimDraft("Ann", "lives_in", "cat", valid_to="2021-01-01T00:00:00Z", **old)
        cortex.remember("a", "note 4", claims=[expired])
        denied = ClaimDraft("Ann", "denied", "cat", polarity=Polarity.NEGATIVE)
        cortex.remember("a", "note 5", claims=[denied])
        assert shares(cortex) == {"note 5": 1.0}


def test_what_was_true_then_is_found_by_its_vector_then(path: Path) -> None:
    early, late = "2020-01-01T00:00:00Z", "2022-01-01T00:00:00Z"
    with EviCortex.open(
        path, embedder=near("Ann chose first cat", "Ann chose first dog")
    ) as cortex:
        for text, value, at in (("note 1", "cat", early), ("note 2", "dog", late)):
            claim = ClaimDraft("Ann", "chose_first", value, cardinality="single", valid_from=at)
            cortex.remember("a", text, occurred_at=at, claims=[claim])
        assert shares(cortex) == {"note 2": 1.0}
        assert shares(cortex, as_of="2021-01-01T00:00:00Z") == {"note 1": 1.0}


def test_claims_about_somebody_else_get_nothing_from_their_vectors(path: Path) -> None:
    embedder = near("Ann owns cat", "Bob owns cat", "the house owns cat")
    with EviCortex.open(path, embedder=embedder) as cortex:
        for place, name in enumerate(("Ann", "Bob", "the house"), 1):
            actor = name if place < 3 else "Ann"
            cortex.remember(
                "a", f"note {place}", actor=actor, claims=[ClaimDraft(name, "owns", "cat")]
            )
        assert shares(cortex) == {"note 1": 1.0, "note 2": 1.0, "note 3": 1.0}
        asked = shares(cortex, "Any pets? Bob")
        assert embedder.calls[-1] == ((QUERY,), "query")
        assert asked == {"note 2": 1.0, "note 3": 1.0}


def test_a_vector_alone_does_not_say_that_a_question_is_supported(path: Path) -> None:
    with EviCortex.open(path, embedder=near("Ann owns cat")) as cortex:
        cortex.remember("a", "note 1", claims=[ClaimDraft("Ann", "owns", "cat")])
        pack = cortex.recall("a", QUERY, budget_tokens=200)
        assert pack.items[0].channels["claims"].score == pytest.approx(1.0)
        assert pack.support.verdict == "insufficient"
        assert cortex.recall("a", "owns cat", budget_tokens=200).support.verdict == "supported"


def test_only_so_many_similar_claims_are_looked_at(path: Path) -> None:
    texts = [f"Ann owns{n} cat" for n in range(9)]
    options = RoomOptions()
    policy = type(options.claims)(candidates=2)
    settings = Settings(RoomOptions(claims=policy))
    with EviCortex.open(path, embedder=near(*texts), settings=settings) as cortex:
        for n in range(9):
            cortex.remember("a", f"note {n}", claims=[ClaimDraft("Ann", f"owns{n}", "cat")])
        assert shares(cortex) == {"note 0": 1.0, "note 1": 1.0}


def test_a_scan_cap_is_said_and_words_go_on(path: Path) -> None:
    settings = Settings(RoomOptions(semantic=SemanticOptions(scan_cap=2)))
    with EviCortex.open(path, embedder=near("Ann owns cat"), settings=settings) as cortex:
        claims = [ClaimDraft("Ann", "owns", thing) for thing in ("cat", "dog", "bird")]
        cortex.remember("a", "note 1", claims=claims)
        found = cortex.search("a", QUERY)
        assert "scan_cap_reached" in codes(found.diagnostics)
        assert shares(cortex) == {}
        assert shares(cortex, "dog") == {"note 1": 1.0}


def test_readers_of_other_snapshots_and_processes_keep_in_step(path: Path) -> None:
    embedder = near("Ann owns cat", "Ann owns dog")
    with (
        EviCortex.open(path, embedder=embedder) as writer,
        EviCortex.open(path, embedder=embedder, read_only=True) as reader,
    ):
        first = writer.remember("a", "note 1", claims=[ClaimDraft("Ann", "owns", "cat")])
        assert shares(reader) == {"note 1": 1.0}
        writer.remember("a", "note 2", claims=[ClaimDraft("Ann", "owns", "dog")])
        assert shares(reader) == shares(writer) == {"note 1": 1.0, "note 2": 1.0}
        writer.purge("a", evidence_id=first.evidence_id)
        assert shares(reader) == shares(writer) == {"note 2": 1.0}


def test_claim_vectors_stay_in_memory(path: Path) -> None:
    with EviCortex.open(path, embedder=near("Ann owns cat")) as cortex:
        cortex.remember("a", "note 1", claims=[ClaimDraft("Ann", "owns", "cat")])
        shares(cortex)
        with cortex._open.ledger.read() as tx:
            view = [
                cortex._open.semantic.claim_view(
                    tx.connection,
                    1,
                    0,
                    cortex.capabilities().embedder["digest"],
                    4,  # type: ignore[index]
                )
                for _ in range(2)
            ]
        assert np.shares_memory(view[0]._matrix, view[1]._matrix)
        with cortex._open.ledger.write() as tx:
            tx.connection.execute("UPDATE vectors SET vector = x'00' WHERE kind = 'claim'")
        assert shares(cortex) == {"note 1": 1.0}
    with (
        EviCortex.open(path, embedder=near("Ann owns cat")) as cortex,
        pytest.raises(CorruptLedgerError, match="sync_semantic"),
    ):
        shares(cortex)


def test_a_claim_in_several_parts_scores_as_its_best() -> None:
    matrix = np.array([[1, 0], [0, 1], [0.5, 0.5], [0.2, 0]], dtype=np.float32)
    view = ClaimVectors(np.array([3, 3, 7, 9], dtype=np.int64), matrix)
    assert view.numbers.tolist() == [3, 7, 9]
    assert view.scores(np.array([0, 1], dtype=np.float32)).tolist() == [1.0, 0.5, 0.0]
    empty = ClaimVectors(np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.float32))
    assert empty.scores(np.array([0, 1], dtype=np.float32)).tolist() == []


def test_the_first_of_some_claims(cortex: EviCortex) -> None:
    ids = cortex.remember("a", "text", claims=[LIVES, WORKS]).claim_ids
    with cortex._open.ledger.read() as tx:
        ns = tx.namespace("a")
        assert ns is not None
        assert first_claim(tx, ns, ids[::-1]) == 1
        assert first_claim(tx, ns, ids[1:]) == 2
        assert first_claim(tx, ns, ["nothing"]) is None


def test_filters_hold_for_what_vectors_find(path: Path) -> None:
    with EviCortex.open(path, embedder=near("Ann owns cat", "Ann owns dog")) as cortex:
        for text, thing, session in (("note 1", "cat", "one"), ("note 2", "dog", "two")):
            claim = ClaimDraft("Ann", "owns", thing)
            cortex.remember("a", text, session=session, claims=[claim])
        assert shares(cortex, sessions=["two"]) == {"note 2": 1.0}


def test_every_claim_query_goes_by_its_keys(cortex: EviCortex) -> None:
    with cortex._open.ledger.read() as tx:
        plan = [row[3] for row in tx.connection.execute(f"EXPLAIN QUERY PLAN {CLAIMS}", (1, 0))]
    assert plan == [
        "SEARCH c USING PRIMARY KEY (namespace_id=? AND seq>?)",
        "SEARCH v USING INDEX vectors_by_item (namespace_id=? AND kind=? AND item=? AND part=?) LEFT-JOIN",
    ]
