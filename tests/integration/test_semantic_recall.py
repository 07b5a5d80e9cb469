"""Vectors through the public calls: providers that fail or lie, identities, repair, determinism."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evicortex import Diagnostic, EviCortex, EvidenceDraft, RememberReceipt, Settings, Span
from evicortex.errors import MissingExtraError, TextTooLongError
from evicortex.pipeline.wiring import RoomOptions
from evicortex.projections.semantic import SemanticOptions
from evicortex.protocols import (
    Embedder,
    EmbeddingProfile,
    Float32Matrix,
    InputType,
    RerankCandidate,
)
from evicortex.testing import (
    EMBEDDER_LIES,
    DeterministicEmbedder,
    LyingEmbedder,
    OverlapReranker,
    RaisingEmbedder,
)

TEXTS = ["I adopted a cat", "The garden needs water", "We fly to Porto in May"]


def fill(cortex: EviCortex, namespace: str = "a") -> list[RememberReceipt]:
    return [cortex.remember(namespace, text, actor="Ann", session="s") for text in TEXTS]


def codes(diagnostics: tuple[object, ...]) -> set[str]:
    return {each.code for each in diagnostics}  # type: ignore[attr-defined]


def near(query: str, text: str) -> DeterministicEmbedder:
    return DeterministicEmbedder(4, vectors={query: (1, 0, 0, 0), text: (1, 0.1, 0, 0)})


def test_evidence_without_a_shared_word_is_found_by_its_vector(tmp_path: Path) -> None:
    embedder = near("Any pets?", TEXTS[0])
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        assert all(receipt.indexed for receipt in fill(cortex))
        hits = cortex.search("a", "Any pets?").hits
        assert hits[0].evidence.content == TEXTS[0]
        assert hits[0].channels["dense_turn"].rank == 1
        assert cortex.capabilities().channels["dense_turn"]
        roles = {role for _, role in embedder.calls}
        assert roles == {"document", "query"}


def test_a_diagnostic_encoder_makes_no_evidence_by_itself(tmp_path: Path) -> None:
    embedder = DeterministicEmbedder(4, semantic=False, vectors={"zebra": (1, 0, 0, 0)})
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        fill(cortex)
        pack = cortex.recall("a", "zebra", budget_tokens=500)
        assert pack.items == ()
        assert "semantic_diagnostic" in codes(pack.diagnostics)
        assert cortex.search("a", "cat").hits[0].evidence.content == TEXTS[0]


def test_a_raising_provider_loses_no_evidence_and_sync_repairs(tmp_path: Path) -> None:
    embedder = RaisingEmbedder(RuntimeError("out of memory"), failures=3)
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        receipts = fill(cortex)
        assert not any(receipt.indexed for receipt in receipts)
        assert "semantic_not_indexed" in codes(receipts[0].diagnostics)
        assert cortex.evidence("a", receipts[0].evidence_id).content == TEXTS[0]
        pack = cortex.recall("a", "cat", budget_tokens=500)
        assert "semantic_not_indexed" in codes(pack.diagnostics)
        assert TEXTS[0] in [item.text for item in pack.items]
        first, second = cortex.sync_semantic("a"), cortex.sync_semantic("a")
        assert (first.indexed, first.missing, first.failed) == (3, 3, 0)
        assert (second.indexed, second.missing, second.stale, second.failed) == (0, 0, 0, 0)


class Raw(DeterministicEmbedder):
    """Promises no length: the garden's vector is ten times as long as the others."""

    def __init__(self) -> None:
        half = (0.5, 0.75**0.5, 0, 0)
        given = {"pets": (1, 0, 0, 0), TEXTS[0]: (1, 0, 0, 0), TEXTS[1]: half}
        super().__init__(4, vectors=given | {TEXTS[2]: (0, 0, 1, 0)})
        self._profile = replace(self._profile, normalized=False)

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        rows = super().embed(texts, input_type=input_type)
        for row, text in zip(rows, texts, strict=True):
            row *= 10.0 if text == TEXTS[1] else 0.1
        return rows


def test_the_direction_of_a_vector_counts_and_not_its_length(tmp_path: Path) -> None:
    with EviCortex.open(tmp_path / "m.db", embedder=Raw()) as cortex:
        fill(cortex)
        found = {hit.evidence.content: hit.channels for hit in cortex.search("a", "pets").hits}
        near, far = (found[text]["dense_turn"] for text in TEXTS[:2])
        assert near.rank < far.rank
        assert near.score == pytest.approx(1.0, abs=1e-6)
        assert far.score == pytest.approx(0.5, abs=1e-6)


def torn() -> Iterator[Span]:
    yield Span(0, 1)
    raise RuntimeError("torn off")


class Faulty(DeterministicEmbedder):
    """Fails in the way that ``fault`` names, once it is open."""

    fault = ""

    @property
    def profile(self) -> EmbeddingProfile:
        if self.fault == "profile":
            raise RuntimeError("no profile today")
        return super().profile

    def windows(self, text: str) -> Any:
        faults = {"no windows": None, "a number": 7, "torn": torn()}
        return faults.get(self.fault, (Span(0, len(text)),))

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        if self.fault == "extra":
            raise MissingExtraError("this encoder", "nothing")
        return super().embed(texts, input_type=input_type)


class FaultyAtSpans(Faulty):
    """And takes its library in at the first call for spans."""

    def embed_spans(self, texts: Any, spans: Any) -> Any:
        raise MissingExtraError("this encoder", "nothing")


@pytest.mark.parametrize("kind", [Faulty, FaultyAtSpans])
@pytest.mark.parametrize("fault", ["profile", "no windows", "a number", "torn", "extra"])
def test_nothing_that_a_provider_does_costs_the_receipt(
    tmp_path: Path, kind: type[Faulty], fault: str
) -> None:
    embedder = kind(4, model_id="testing/faulty")
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        embedder.fault = fault
        receipt = cortex.remember("a", TEXTS[0])
        (many,) = cortex.remember_many("a", [EvidenceDraft(content=TEXTS[1])])
        assert isinstance(many, RememberReceipt)
        for each in (receipt, many):
            assert not each.indexed
            (said,) = each.diagnostics
            assert said.code == "semantic_not_indexed"
            assert said.details["embedder"] == "embedder testing/faulty@1"
        assert cortex.stats("a").evidence == 2
        assert cortex.sync_semantic("a").failed == 2
        embedder.fault = ""
        cortex.sync_semantic("a")
        assert "dense_turn" in cortex.search("a", "cat").hits[0].channels


class Stuck(DeterministicEmbedder):
    """Answers at once, or, while it is ``stuck``, only after ``release`` is set."""

    def __init__(self) -> None:
        super().__init__(4, model_id="testing/stuck")
        self.stuck = False
        self.release = threading.Event()

    def embed(self, texts: Sequence[str], *, input_type: InputType = "document") -> Float32Matrix:
        if self.stuck:
            self.release.wait()
        return super().embed(texts, input_type=input_type)


IMPATIENT = Settings.from_environment(
    {"EVICORTEX_EMBEDDING_TIMEOUT": "0.05", "EVICORTEX_RERANK_TIMEOUT": "0.05"}
)


def test_an_embedder_that_does_not_answer_holds_nothing_up(tmp_path: Path) -> None:
    embedder = Stuck()
    with EviCortex.open(tmp_path / "m.db", embedder=embedder, settings=IMPATIENT) as cortex:
        assert all(receipt.indexed for receipt in fill(cortex))
        embedder.stuck = True
        receipt = cortex.remember("a", "The cat is called Miso")
        assert not receipt.indexed
        (said,) = receipt.diagnostics
        assert said.code == "semantic_not_indexed"
        assert "testing/stuck@1 gave no answer (TimeoutError: no answer within 0.05 s)" in (
            said.message
        )
        pack = cortex.recall("a", "cat", budget_tokens=500)
        assert "semantic_query_failed" in codes(pack.diagnostics)
        assert "dense_turn" not in pack.trace["channels"]
        assert "The cat is called Miso" in [item.text for item in pack.items]
        embedder.stuck = False
        embedder.release.set()
        assert cortex.sync_semantic("a").indexed == 1
        assert "dense_turn" in cortex.recall("a", "cat", budget_tokens=500).trace["channels"]


def test_a_reranker_that_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    release = threading.Event()

    class Waiting(OverlapReranker):
        def rerank(self, query: str, candidates: Sequence[RerankCandidate]) -> Mapping[str, float]:
            release.wait()
            return super().rerank(query, candidates)

    path = tmp_path / "m.db"
    with EviCortex.open(path, embedder=None) as cortex:
        fill(cortex)
        plain = cortex.recall("a", "cat", budget_tokens=500)
    with EviCortex.open(path, embedder=None, reranker=Waiting(), settings=IMPATIENT) as cortex:
        pack = cortex.recall("a", "cat", budget_tokens=500)
        release.set()
    assert pack.text == plain.text
    (said,) = [each for each in pack.diagnostics if each.code == "rerank_failed"]
    assert "testing/overlap gave no answer (TimeoutError: no answer within 0.05 s)" in said.message


class Torn(dict[str, float]):
    """Scores that cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("torn off")


@pytest.mark.parametrize("fault", ["extra", "torn"])
def test_a_reranker_that_fails_in_any_way_changes_nothing(tmp_path: Path, fault: str) -> None:
    class Failing(OverlapReranker):
        def rerank(self, query: str, candidates: Sequence[RerankCandidate]) -> Mapping[str, float]:
            if fault == "extra":
                raise MissingExtraError("this reranker", "nothing")
            return Torn(super().rerank(query, candidates))

    with EviCortex.open(tmp_path / "m.db", embedder=None, reranker=Failing()) as cortex:
        fill(cortex)
        pack = cortex.recall("a", "cat", budget_tokens=500)
        assert "rerank_failed" in codes(pack.diagnostics)
        assert TEXTS[0] in [item.text for item in pack.items]


def test_a_local_encoder_that_cannot_start_costs_no_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")

    def broken(_: object) -> None:
        raise OSError("no room left")

    monkeypatch.setattr("evicortex.providers.onnx.OnnxEmbedder.__init__", broken)
    with EviCortex.open(tmp_path / "m.db") as cortex:
        assert cortex.remember("a", TEXTS[0]).created
        assert cortex.recall("a", "cat", budget_tokens=500).items
        assert "no room left" in " ".join(cortex.capabilities().notes)


class Short(DeterministicEmbedder):
    """Says that it cuts nothing, and refuses texts of more than 20 characters."""

    def windows(self, text: str) -> tuple[Span, ...]:
        if len(text) > 20:
            raise TextTooLongError("more than 20 characters")
        return (Span(0, len(text)),)


@pytest.mark.parametrize("in_batches", [True, False])
def test_a_text_that_is_too_long_costs_its_own_vector_only(
    tmp_path: Path, *, in_batches: bool
) -> None:
    with EviCortex.open(tmp_path / "m.db", embedder=Short(4)) as cortex:
        if in_batches:
            cortex.remember_many("a", [EvidenceDraft(content=text) for text in TEXTS])
        else:
            fill(cortex)
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.failed, report.missing) == (0, 2, 2)
        (said,) = report.diagnostics
        assert said.code == "vectors_rejected"
        assert "more than 20 characters" in str(said.details)
        assert TEXTS[2] in [
            item.text for item in cortex.recall("a", "Porto", budget_tokens=500).items
        ]


def test_a_nan_row_costs_its_own_vector_only(tmp_path: Path) -> None:
    with EviCortex.open(tmp_path / "m.db", embedder=LyingEmbedder("nan row", row=0)) as cortex:
        drafts = [EvidenceDraft(content=text) for text in TEXTS]
        receipts = cortex.remember_many("a", drafts)
        assert len(receipts) == 3
        assert cortex.stats("a").evidence == 3
        assert "vectors_rejected" in codes(receipts[0].diagnostics)  # type: ignore[union-attr]
    with (
        EviCortex.open(tmp_path / "m.db", embedder=None) as cortex,
        cortex._open.ledger.read() as tx,
    ):
        assert tx.connection.execute("SELECT count(*) FROM vectors").get == 2


@pytest.mark.parametrize("lie", [lie for lie in EMBEDDER_LIES if lie != "nan row"])
def test_nothing_derived_from_a_lie_is_stored(tmp_path: Path, lie: str) -> None:
    with EviCortex.open(tmp_path / "m.db", embedder=LyingEmbedder(lie)) as cortex:
        receipts = cortex.remember_many("a", [EvidenceDraft(content=text) for text in TEXTS])
        assert not any(receipt.indexed for receipt in receipts)  # type: ignore[union-attr]
        with cortex._open.ledger.read() as tx:
            assert tx.connection.execute("SELECT count(*) FROM vectors").get == 0
        assert cortex.stats("a").evidence == 3


def test_another_identity_never_mixes_and_sync_embeds_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with EviCortex.open(path, embedder=DeterministicEmbedder(8)) as cortex:
        fill(cortex)
        fill(cortex, "b")
    swapped = DeterministicEmbedder(8, revision="2")
    with EviCortex.open(path, embedder=swapped) as cortex:
        assert "a, b" in " ".join(cortex.capabilities().notes)
        pack = cortex.recall("a", "cat", budget_tokens=500)
        assert "semantic_identity_mismatch" in codes(pack.diagnostics)
        assert "dense_turn" not in pack.trace["channels"]
        receipt = cortex.remember("a", "news")
        assert not receipt.indexed
        assert "semantic_identity_mismatch" in codes(receipt.diagnostics)
        report = cortex.sync_semantic("a")
        assert (report.indexed, report.stale, report.missing) == (4, 3, 1)
        assert "dense_turn" in cortex.recall("a", "cat", budget_tokens=500).trace["channels"]
        assert "semantic_identity_mismatch" in codes(
            cortex.recall("b", "cat", budget_tokens=500).diagnostics
        )


def test_a_graph_that_cannot_be_used_is_named_by_capabilities(tmp_path: Path) -> None:
    class Fallen(DeterministicEmbedder):
        diagnostics = (Diagnostic("encoder_graph_refused", "the fast graph fails here", {}),)

    with EviCortex.open(tmp_path / "m.db", embedder=Fallen(4)) as cortex:
        assert "the fast graph fails here" in cortex.capabilities().notes


def test_a_scan_cap_is_said_and_the_channel_stays_off(tmp_path: Path) -> None:
    settings = Settings(RoomOptions(semantic=SemanticOptions(scan_cap=2)))
    with EviCortex.open(
        tmp_path / "m.db", embedder=DeterministicEmbedder(8), settings=settings
    ) as cortex:
        fill(cortex)
        pack = cortex.recall("a", "cat", budget_tokens=500)
        assert "scan_cap_reached" in codes(pack.diagnostics)
        assert "dense_turn" not in pack.trace["channels"]


class Windowed(DeterministicEmbedder):
    """Takes 20 characters at once, as a document or as a query."""

    def embed(self, texts, *, input_type="document"):
        if any(len(text) > 20 for text in texts):
            raise TextTooLongError("more than 20 characters")
        return super().embed(texts, input_type=input_type)

    def windows(self, text: str) -> tuple[Span, ...]:
        return tuple(Span(start, min(start + 20, len(text))) for start in range(0, len(text), 20))


def test_the_scan_cap_counts_vectors_not_texts(tmp_path: Path) -> None:
    settings = Settings(RoomOptions(semantic=SemanticOptions(scan_cap=5)))
    with EviCortex.open(tmp_path / "m.db", embedder=Windowed(8), settings=settings) as cortex:
        cortex.remember("a", "The cat sat on the mat. " * 10)
        pack = cortex.recall("a", "cat", budget_tokens=500)
        (said,) = [each for each in pack.diagnostics if each.code == "scan_cap_reached"]
        assert said.details["vectors"] == 12


@pytest.mark.parametrize(("length", "windows", "used"), [(30, 2, 2), (400, 20, 8)])
def test_a_query_longer_than_the_encoder_takes_is_embedded_by_windows(
    tmp_path: Path, length: int, windows: int, used: int
) -> None:
    with EviCortex.open(tmp_path / "m.db", embedder=Windowed(8)) as cortex:
        cortex.remember("a", "I adopted a cat")
        query = ("zzz " * 200)[:length]
        pack = cortex.recall("a", query, budget_tokens=500)
        (said,) = [each for each in pack.diagnostics if each.code == "semantic_query_windows"]
        assert said.details == {"windows": windows, "used": used}
        assert [item.text for item in pack.items] == ["I adopted a cat"]


def test_an_emptied_namespace_lacks_no_vectors(tmp_path: Path) -> None:
    with EviCortex.open(tmp_path / "m.db", embedder=DeterministicEmbedder(8)) as cortex:
        fill(cortex)
        cortex.purge("a", everything=True)
        said = codes(cortex.recall("a", "cat", budget_tokens=500).diagnostics)
        assert "semantic_not_indexed" not in said
        assert "empty_pack" in said


def test_purge_and_rebuild_and_vectors(tmp_path: Path) -> None:
    embedder = DeterministicEmbedder(8)
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        receipts = fill(cortex)
        cortex.purge("a", evidence_id=receipts[0].evidence_id)
        with cortex._open.ledger.read() as tx:
            assert tx.connection.execute("SELECT count(*) FROM vectors").get == 2
        called = len(embedder.calls)
        cortex.rebuild("a")
        assert len(embedder.calls) == called
        assert cortex.sync_semantic("a").indexed == 0
        assert cortex.verify().ok


@pytest.mark.parametrize("make", [lambda: None, lambda: DeterministicEmbedder(8)])
def test_the_same_question_gives_the_same_pack_after_reopening(
    tmp_path: Path, make: "object"
) -> None:
    path = tmp_path / "m.db"
    embedder: Embedder | None = make()  # type: ignore[operator]
    with EviCortex.open(path, embedder=embedder) as cortex:
        for number in range(60):
            cortex.remember("a", f"{TEXTS[number % 3]} number {number}", session=f"s{number // 7}")
        first = cortex.recall("a", "water for the cat in Porto", budget_tokens=300)
        again = cortex.recall("a", "water for the cat in Porto", budget_tokens=300)
    with EviCortex.open(path, embedder=embedder, read_only=True) as cortex:
        reopened = cortex.recall("a", "water for the cat in Porto", budget_tokens=300)
    assert first.text == again.text == reopened.text
    scores = [[item.score for item in pack.items] for pack in (first, again, reopened)]
    assert scores[0] == scores[1] == scores[2]


_WRITER = """
import sys
from evicortex import EviCortex
from evicortex.testing import DeterministicEmbedder
class Stuck(DeterministicEmbedder):
    def embed(self, texts, *, input_type="document"):
        print("embedding", flush=True)
        sys.stdin.read()
with EviCortex.open(sys.argv[1], embedder=Stuck(8)) as cortex:
    cortex.remember("a", "killed between commit and indexing")
"""


def test_killed_between_the_commit_and_the_index(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "embedding\n"
        os.kill(writer.pid, signal.SIGKILL)
    with EviCortex.open(path, embedder=DeterministicEmbedder(8)) as cortex:
        assert cortex.verify().ok
        assert cortex.stats("a").evidence == 1
        assert cortex.sync_semantic("a").indexed == 1
        assert cortex.sync_semantic("a").indexed == 0
