"""Sentence vectors through the public calls: written with the turn's, repaired, erased, off."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex import EviCortex, EvidenceDraft, Settings
from evicortex.errors import CorruptLedgerError, ProviderUnavailableError, TextTooLongError
from evicortex.pipeline import sentences
from evicortex.pipeline.sentences import clipped, sentence_scores, sentences_of, within
from evicortex.pipeline.sight import check_question, look
from evicortex.pipeline.wiring import RoomOptions
from evicortex.policy.pieces import PIECES, piece_spans, pieces
from evicortex.projections.semantic import SemanticOptions
from evicortex.projections.sentences import encoded
from evicortex.testing import (
    SPAN_LIES,
    DeterministicEmbedder,
    DeterministicSpanEmbedder,
    LyingSpanEmbedder,
)
from evicortex.types import Span

TWO = "I adopted a cat. Her name is Miso."
THREE = "We fly to Porto. It is in May! Will you come?"
ONE = "The garden needs water"
OFF = Settings(RoomOptions(semantic=SemanticOptions(sentences=False)))


class Capped(DeterministicSpanEmbedder):
    """Takes 20 characters, offers windows of that many, and refuses longer texts."""

    def embed_spans(self, texts: Any, spans: Any) -> Any:
        if any(len(text) > 20 for text in texts):
            raise TextTooLongError("more than 20 characters")
        return super().embed_spans(texts, spans)

    def windows(self, text: str) -> list[Span]:
        return [Span(start, min(start + 20, len(text))) for start in range(0, len(text), 20)]


class Refusing(DeterministicSpanEmbedder):
    """Has no windows and takes 20 characters."""

    def embed(self, texts: Any, *, input_type: Any = "document") -> Any:
        self._check(texts)
        return super().embed(texts, input_type=input_type)

    def embed_spans(self, texts: Any, spans: Any) -> Any:
        self._check(texts)
        return super().embed_spans(texts, spans)

    def _check(self, texts: Iterable[str]) -> None:
        if any(len(text) > 20 for text in texts):
            raise TextTooLongError("more than 20 characters")


class Failing(DeterministicSpanEmbedder):
    """Fails at spans as often as it is told to."""

    failures = 10**9

    def embed_spans(self, texts: Any, spans: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("no spans today")
        return super().embed_spans(texts, spans)


def fill(cortex: EviCortex, namespace: str = "a", texts: Iterable[str] = (TWO, ONE, THREE)) -> None:
    cortex.remember_many(namespace, [EvidenceDraft(content=text) for text in texts])


def rows(cortex: EviCortex) -> list[tuple[Any, ...]]:
    with cortex._open.ledger.read() as tx:
        return list(
            tx.connection.execute(
                "SELECT row_id & 0xffffffff, identity, input_digest, spans, vectors "
                "FROM sentence_vectors JOIN sentence_profiles USING (namespace_id, profile_id) "
                "ORDER BY row_id"
            )
        )


def turns(cortex: EviCortex) -> list[tuple[Any, ...]]:
    with cortex._open.ledger.read() as tx:
        return [
            *tx.connection.execute("SELECT item, part, vector FROM vectors ORDER BY item, part"),
            *tx.connection.execute("SELECT * FROM vector_versions"),
        ]


def spans_of(row: tuple[Any, ...]) -> list[tuple[int, ...]]:
    return [tuple(pair) for pair in np.frombuffer(row[3], "<u4").reshape(-1, 2).tolist()]


def scores(
    cortex: EviCortex, query: str, namespace: str = "a"
) -> dict[int, tuple[tuple[Span, ...], list[float]]]:
    rooms = cortex._open
    asked: dict[str, Any] = dict.fromkeys(("query_actor", "as_of", "known_at", "sessions"))
    question = check_question(
        rooms, namespace, query, **asked, actors=None, include_superseded=False
    )
    vector = np.asarray(DeterministicEmbedder(16).embed([query])[0])
    with rooms.ledger.read() as tx:
        ns = tx.namespace(namespace)
        assert ns is not None
        sight = look(rooms, tx, ns, question)
        found = sentence_scores(rooms, sight, range(len(sight.rows)), vector)
    return {row: (spans, values.tolist()) for row, (spans, values) in found.items()}


def codes(diagnostics: tuple[Any, ...]) -> set[str]:
    return {each.code for each in diagnostics}


def counts(report: Any) -> tuple[int, int, int, int]:
    return (report.indexed, report.missing, report.stale, report.failed)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


def test_one_pass_gives_turns_and_sentences(path: Path) -> None:
    embedder = DeterministicSpanEmbedder(16)
    with EviCortex.open(path, embedder=embedder) as cortex:
        fill(cortex)
        assert len(embedder.span_calls[0][0]) == 3
        stored = rows(cortex)
        identity = cortex.capabilities().embedder["sentences"]  # type: ignore[index]
        assert {row[1] for row in stored} == {identity}
        expected = [list(map(tuple, sentences_of(text))) for text in (TWO, ONE, THREE)]
        assert [spans_of(row) for row in stored] == expected
        assert expected[1] == []
        parts = [TWO[start:end] for start, end in expected[0]]
        assert stored[0][4] == encoded(embedder.embed(parts))
        vectors = [row[2] for row in turns(cortex)[:3]]
        plain = DeterministicEmbedder(16).embed([TWO, ONE, THREE])
        assert vectors == [row.astype("<f4").tobytes() for row in plain]
        calls = len(embedder.span_calls)
        assert counts(cortex.sync_semantic("a")) == (0, 0, 0, 0)
        assert len(embedder.span_calls) == calls
        assert cortex.verify().ok


def test_scores_are_by_row_and_find_the_sentence(path: Path) -> None:
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        fill(cortex)
        fill(cortex, "b", [THREE])
        found = scores(cortex, "Her name is Miso.")
        assert set(found) == {0, 2}
        spans, cosines = found[0]
        assert TWO[spans[1].start : spans[1].end] == "Her name is Miso."
        assert cosines[1] == pytest.approx(1.0, abs=0.01)
        assert max(cosines[0], *found[2][1]) < 0.9
        assert set(scores(cortex, "x", "b")) == {0}


@pytest.mark.parametrize("settings", [None, OFF])
def test_an_encoder_without_spans_or_a_setting_means_none(
    path: Path, settings: Settings | None
) -> None:
    plain = DeterministicEmbedder(16) if settings is None else DeterministicSpanEmbedder(16)
    with EviCortex.open(path, embedder=plain, settings=settings) as cortex:
        fill(cortex)
        assert rows(cortex) == []
        assert scores(cortex, "Miso") == {}
        assert cortex.capabilities().embedder["sentences"] is None  # type: ignore[index]
    with EviCortex.open(path, embedder=None) as cortex:
        assert scores(cortex, "Miso") == {}


def test_a_store_made_before_is_repaired_and_its_vectors_are_left(path: Path) -> None:
    embedder = DeterministicSpanEmbedder(16)
    with EviCortex.open(path, embedder=embedder, settings=OFF) as cortex:
        fill(cortex, texts=[TWO, "  ", ONE, THREE])
        before = turns(cortex)
    with EviCortex.open(path, embedder=embedder) as cortex:
        embedder.span_calls.clear()
        assert counts(cortex.sync_semantic("a")) == (4, 4, 0, 0)
        assert set(embedder.span_calls[0][0]) == {TWO, THREE}
        assert turns(cortex) == before
        assert [len(spans_of(row)) for row in rows(cortex)] == [2, 0, 0, 3]
        assert counts(cortex.sync_semantic("a")) == (0, 0, 0, 0)


def test_only_what_is_missing_is_made_again(path: Path) -> None:
    embedder = DeterministicSpanEmbedder(16)
    with EviCortex.open(path, embedder=embedder) as cortex:
        fill(cortex)
        fill(cortex, "b")
        before, vectors = rows(cortex), turns(cortex)
        with cortex._open.ledger.write() as tx:
            tx.connection.execute("DELETE FROM sentence_vectors WHERE row_id & 0xff = 3")
        embedder.span_calls.clear()
        assert counts(cortex.sync_semantic("a")) == (1, 1, 0, 0)
        assert [texts for texts, _ in embedder.span_calls] == [(THREE,)]
        assert len(rows(cortex)) == 5
        assert counts(cortex.sync_semantic("b")) == (1, 1, 0, 0)
        assert (rows(cortex), turns(cortex)) == (before, vectors)


def test_another_splitter_is_another_identity(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        fill(cortex)
        before, vectors = rows(cortex), turns(cortex)
    monkeypatch.setattr(sentences, "PIECES", "pieces-next")
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        assert scores(cortex, "Miso") == {}
        cortex.remember("a", THREE + TWO)
        assert set(scores(cortex, "Miso")) == {3}
        assert counts(cortex.sync_semantic("a")) == (3, 0, 3, 0)
        assert set(scores(cortex, "Miso")) == {0, 2, 3}
        after = rows(cortex)
        assert [row[2:] for row in after[:3]] == [row[2:] for row in before]
        assert {row[1] for row in after}.isdisjoint({row[1] for row in before})
        assert turns(cortex)[:3] == vectors[:3]


def test_another_encoder_replaces_both_or_drops_the_sentences(path: Path) -> None:
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        fill(cortex)
        fill(cortex, "b")
        before = rows(cortex)
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16, revision="2")) as cortex:
        assert "semantic_identity_mismatch" in codes(cortex.remember("a", TWO + THREE).diagnostics)
        assert rows(cortex) == before
        assert counts(cortex.sync_semantic("a")) == (4, 1, 3, 0)
        assert len({row[1] for row in rows(cortex)}) == 2
        assert rows(cortex)[4:] == before[3:]
    with EviCortex.open(path, embedder=DeterministicEmbedder(16)) as cortex:
        assert cortex.sync_semantic("a").indexed == 4
        assert rows(cortex) == before[3:]
        assert cortex.verify().ok


def test_switched_off_a_sync_gives_the_room_back(path: Path) -> None:
    embedder = DeterministicSpanEmbedder(16)
    with EviCortex.open(path, embedder=embedder) as cortex:
        fill(cortex)
        vectors = turns(cortex)
    with EviCortex.open(path, embedder=embedder, settings=OFF) as cortex:
        assert len(rows(cortex)) == 3
        assert counts(cortex.sync_semantic("a")) == (0, 0, 0, 0)
        assert rows(cortex) == []
        assert turns(cortex) == vectors


@pytest.mark.parametrize("lie", SPAN_LIES)
def test_a_lie_about_spans_costs_no_turn_its_vector(path: Path, lie: str) -> None:
    with EviCortex.open(path, embedder=LyingSpanEmbedder(lie)) as cortex:
        receipts = cortex.remember_many("a", [EvidenceDraft(content=t) for t in (TWO, THREE)])
        assert rows(cortex) == []
        plain = DeterministicEmbedder(16).embed([TWO, THREE])
        assert [row[2] for row in turns(cortex)[:2]] == [row.tobytes() for row in plain]
        diagnostics = receipts[0].diagnostics  # type: ignore[union-attr]
        assert codes(diagnostics) == {"sentences_not_indexed"}
        assert "testing/lying-spans" in diagnostics[0].message
        assert counts(cortex.sync_semantic("a")) == (0, 2, 0, 2)
        assert rows(cortex) == []
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        cortex.sync_semantic("a")
        assert len(rows(cortex)) == 2


def test_a_failure_at_spans_is_said_and_repaired(path: Path) -> None:
    embedder = Failing(16)
    with EviCortex.open(path, embedder=embedder) as cortex:
        receipt = cortex.remember("a", TWO)
        assert codes(receipt.diagnostics) == {"sentences_not_indexed"}
        assert ProviderUnavailableError.__name__ in str(receipt.diagnostics[0].details)
        assert cortex.search("a", TWO).hits[0].channels["dense_turn"].score > 0.99
        vectors = turns(cortex)
        embedder.failures = 0
        assert counts(cortex.sync_semantic("a")) == (1, 1, 0, 0)
        assert turns(cortex) == vectors
        assert len(spans_of(rows(cortex)[0])) == 2


def test_a_sentence_without_tokens_is_left_out(path: Path) -> None:
    text = "Really?\n\n!!!\n\nYes, really."
    assert [text[start:end] for start, end in sentences_of(text)] == [
        "Really?",
        "!!!",
        "Yes, really.",
    ]
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        assert cortex.remember("a", text).diagnostics == ()
        (row,) = rows(cortex)
        assert [text[start:end] for start, end in spans_of(row)] == ["Really?", "Yes, really."]
        assert cortex.verify().ok


class Wordless(DeterministicSpanEmbedder):
    """Gives no usable vector of any span of the texts in ``mute``."""

    mute: tuple[str, ...] = (TWO,)

    def embed_spans(self, texts: Any, spans: Any) -> Any:
        vectors, found = super().embed_spans(texts, spans)
        for rows, text in zip(found, texts, strict=True):
            if text in self.mute:
                rows[:] = np.nan
        return vectors, found


def test_a_text_none_of_whose_sentences_has_a_vector_stays_due_and_is_said(path: Path) -> None:
    embedder = Wordless(16)
    with EviCortex.open(path, embedder=embedder) as cortex:
        receipt = cortex.remember("a", TWO)
        assert not receipt.indexed
        (said,) = receipt.diagnostics
        assert said.code == "sentences_rejected"
        assert "no sentence of it has a usable vector" in str(said.details)
        assert cortex.search("a", TWO).hits[0].channels["dense_turn"].score > 0.99
        assert cortex.remember("a", THREE).indexed
        assert [row[0] for row in rows(cortex)] == [2]
        report = cortex.sync_semantic("a")
        assert counts(report) == (0, 1, 0, 1)
        assert codes(report.diagnostics) == {"sentences_rejected"}
        embedder.mute = ()
        assert counts(cortex.sync_semantic("a")) == (1, 1, 0, 0)
        assert [len(spans_of(row)) for row in rows(cortex)] == [2, 3]


def test_sentences_without_a_letter_or_digit_need_no_vector(path: Path) -> None:
    text = "!!!\n\n???"
    assert len(sentences_of(text)) == 2
    with EviCortex.open(path, embedder=Wordless(16)) as cortex:
        assert cortex.remember("a", text).indexed
        assert [spans_of(row) for row in rows(cortex)] == [[]]
        assert counts(cortex.sync_semantic("a")) == (0, 0, 0, 0)


def test_a_long_text_is_embedded_window_by_window(path: Path) -> None:
    text = "One is here. Two is cut in half. Three ok. Four fits."
    with EviCortex.open(path, embedder=Capped(16)) as cortex:
        cortex.remember("a", text)
        (row,) = rows(cortex)
        kept = [text[start:end] for start, end in spans_of(row)]
        assert kept == ["One is here.", "Two is cut in half.", "Three ok.", "Four fits."]
        parts = ["One is here.", "cut in half.", "Three o", "Four fits."]
        assert row[4] == encoded(DeterministicEmbedder(16).embed(parts))
        assert [part for _, part, _ in turns(cortex)[:3]] == [0, 1, 2]
        assert counts(cortex.sync_semantic("a")) == (0, 0, 0, 0)


def test_a_text_that_is_too_long_costs_its_fellows_nothing(path: Path) -> None:
    short = "Hello. It is me."
    with EviCortex.open(path, embedder=Refusing(16)) as cortex:
        receipts = cortex.remember_many("a", [EvidenceDraft(content=t) for t in (short, TWO)])
        assert codes(receipts[0].diagnostics) == {"vectors_rejected"}  # type: ignore[union-attr]
        assert [len(spans_of(row)) for row in rows(cortex)] == [2]
        assert set(scores(cortex, "Hello.")) == {0}


def test_a_rejected_turn_keeps_no_sentences(path: Path) -> None:
    class Half(DeterministicSpanEmbedder):
        def embed_spans(self, texts: Any, spans: Any) -> Any:
            vectors, found = super().embed_spans(texts, spans)
            for row, text in zip(vectors, texts, strict=True):
                if text == TWO:
                    row[0] = np.nan
            return vectors, found

    with EviCortex.open(path, embedder=Half(16)) as cortex:
        fill(cortex)
        assert [row[0] for row in rows(cortex)] == [2, 3]
        assert [row[0] & 0xFF for row in turns(cortex)[:2]] == [2, 3]
        assert counts(cortex.sync_semantic("a")) == (0, 1, 0, 1)


def test_damage_is_said_by_verify_and_recall_and_a_sync_mends_it(path: Path) -> None:
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        fill(cortex)
        fill(cortex, "b")
        whole = rows(cortex)
        with cortex._open.ledger.write() as tx:
            tx.connection.execute(
                "UPDATE sentence_vectors SET vectors = x'00' WHERE row_id = (1 << 40) + 1"
            )
        with pytest.raises(CorruptLedgerError, match="run sync_semantic"):
            scores(cortex, "Miso")
        report = cortex.verify("a")
        assert [(each.code, each.namespace) for each in report.problems] == [
            ("sentences.altered", "a")
        ]
        assert not report.ok
        assert not cortex.verify().ok
        assert cortex.verify("b").ok
        assert counts(cortex.sync_semantic("a")) == (1, 1, 0, 0)
        assert rows(cortex) == whole
        assert cortex.verify().ok


def test_a_rebuild_leaves_them_alone_and_asks_nobody(path: Path) -> None:
    embedder = DeterministicSpanEmbedder(16)
    with EviCortex.open(path, embedder=embedder) as cortex:
        fill(cortex)
        before, calls = rows(cortex), (len(embedder.calls), len(embedder.span_calls))
        cortex.rebuild("a")
        assert rows(cortex) == before
        assert (len(embedder.calls), len(embedder.span_calls)) == calls


def test_an_export_that_is_loaded_has_the_same_sentences(path: Path, tmp_path: Path) -> None:
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        fill(cortex)
        cortex.export("a", tmp_path / "a.jsonl")
        before = rows(cortex)
    with EviCortex.open(tmp_path / "n.db", embedder=DeterministicSpanEmbedder(16)) as cortex:
        assert cortex.load("a", tmp_path / "a.jsonl").diagnostics == ()
        assert rows(cortex) == before


def test_the_local_encoder_finds_the_sentence(path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
    from evicortex.providers.onnx import OnnxEmbedder

    embedder = OnnxEmbedder()
    with EviCortex.open(path, embedder=embedder) as cortex:
        fill(cortex)
        plain = embedder.embed([TWO, ONE, THREE])
        assert [row[2] for row in turns(cortex)[:3]] == [row.tobytes() for row in plain]
        (query,) = embedder.embed(["When is the trip?"])
        with cortex._open.ledger.read() as tx:
            found = cortex._open.sentences.scores(
                tx.connection, 1, [(1 << 40) + 3], rows(cortex)[0][1], query
            )
        ((spans, cosines),) = found.values()
        best = spans[int(cosines.argmax())]
        assert THREE[best.start : best.end] == "It is in May!"
        _, (exact,) = embedder.embed_spans([THREE], [spans])
        assert np.abs(cosines - exact @ query).max() < 0.005


def shards(blobs: Iterable[bytes]) -> set[bytes]:
    """Return some pieces of 16 bytes of each vector; a chance match has odds of 2**-128."""
    return {blob[at : at + 16] for blob in blobs for at in range(4, len(blob) - 16, 40)}


def found_in(folder: Path, wanted: set[bytes]) -> set[bytes]:
    data = b"\0".join(file.read_bytes() for file in folder.iterdir())
    return {shard for shard in wanted if shard in data}


def test_purged_sentence_vectors_are_in_no_file(tmp_path: Path) -> None:
    chance = random.Random(5)
    embedder = DeterministicSpanEmbedder(96)
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        for batch in range(6):
            drafts = [
                EvidenceDraft(
                    content=" ".join(
                        f"Word {chance.getrandbits(60)} of {batch}."
                        for _ in range(chance.choice((1, 2, 3, 9, 30)))
                    ),
                    session=f"s{chance.randrange(5)}",
                )
                for _ in range(40)
            ]
            cortex.remember_many(("a", "b")[batch % 2], drafts)
        with cortex._open.ledger.read() as tx:
            held = {
                gone: shards(
                    row[0]
                    for row in tx.connection.execute(
                        "SELECT v.vectors FROM sentence_vectors v JOIN evidence e USING (row_id) "
                        "JOIN sessions s ON s.namespace_id = e.namespace_id "
                        "AND s.session_id = e.session_id "
                        "WHERE (e.namespace_id = 1 AND s.name IN ('s1', 's3')) = ?",
                        (gone,),
                    )
                )
                for gone in (True, False)
            }
        assert min(map(len, held.values())) > 500
        assert found_in(tmp_path, held[True]) == held[True]
        for session in ("s1", "s3"):
            assert cortex.purge("a", session=session).complete
        assert found_in(tmp_path, held[True]) == set()
        assert cortex.verify().ok
        cortex.purge("a", everything=True)
        with cortex._open.ledger.read() as tx:
            profiles = tx.connection.execute(
                "SELECT namespace_id FROM sentence_profiles"
            ).fetchall()
        assert profiles == [(2,)]
    assert found_in(tmp_path, held[True]) == set()
    assert found_in(tmp_path, held[False]) != set()


_WRITER = """
import sys
from evicortex import EviCortex, EvidenceDraft
from evicortex.testing import DeterministicSpanEmbedder
class Stuck(DeterministicSpanEmbedder):
    def embed_spans(self, texts, spans):
        if sys.argv[2] in texts[0]:
            print("embedding", flush=True)
            sys.stdin.read()
        return super().embed_spans(texts, spans)
with EviCortex.open(sys.argv[1], embedder=Stuck(16)) as cortex:
    cortex.remember("a", "The first. It is whole.")
    cortex.remember("a", "The second. It is killed between commit and indexing.")
"""


def test_killed_between_the_commit_and_the_index(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path), "second"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "embedding\n"
        os.kill(writer.pid, signal.SIGKILL)
    with EviCortex.open(path, embedder=DeterministicSpanEmbedder(16)) as cortex:
        assert cortex.stats("a").evidence == 2
        assert [row[0] for row in rows(cortex)] == [1]
        assert counts(cortex.sync_semantic("a")) == (1, 1, 0, 0)
        assert [len(spans_of(row)) for row in rows(cortex)] == [2, 2]
        assert counts(cortex.sync_semantic("a")) == (0, 0, 0, 0)
        assert cortex.verify().ok


_SPLITS = """Well, hello Dr. Smith! How are you? [image: a dog, a cat. Both sleep.] Fine...

- one thing. Another.
- two

```py
print("a. b")
```

| a | b |
|---|---|
| 1. | 2. |

这是第一句。这是第二句！ Et voilà. « Oui. » She said "No way." and left""" + (
    " and then, as nobody stopped, we went on" * 20
)


def test_a_splitter_that_gives_something_else_needs_another_name() -> None:
    digest = hashlib.sha256(repr([tuple(s) for s in piece_spans(_SPLITS)]).encode()).hexdigest()
    assert {PIECES: digest[:16]} == {"pieces-2": "3690e07743f6c387"}


@given(st.text("ab .!\n|-`[]:", max_size=60), st.lists(st.integers(1, 9), max_size=20))
def test_sentences_are_pieces_and_each_is_in_the_window_that_holds_most(
    text: str, sizes: list[int]
) -> None:
    spans = sentences_of(text)
    every = tuple(piece.span for piece in pieces(text))
    assert spans == (every if len(every) > 1 else ())
    windows, start = [], 0
    for size in sizes:
        windows.append(Span(start, start + size + 3))
        start += size
    inside = within(spans, windows)
    flat = [span for found in inside for span in found]
    assert len(flat) == len(set(flat))
    for span in spans:
        held = [min(span.end, w.end) - max(span.start, w.start) for w in windows]
        most = max(held, default=0)
        assert (span in flat) == (most > 0)
        if most > 0:
            at = held.index(most)
            assert span in inside[at]
            part = clipped(span, windows[at])
            assert windows[at].start <= part.start < part.end <= windows[at].end
            assert part.end - part.start == most
