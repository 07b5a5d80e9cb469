"""Vectors in the ledger's file: due, stored, loaded, removed, and never mixed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evicortex import EviCortex
from evicortex.errors import CorruptLedgerError, InputError
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.semantic import SemanticOptions, VectorRow
from evicortex.testing import DeterministicEmbedder
from evicortex.types import Span
from evicortex.validation import CheckedEmbedder

FIRST = CheckedEmbedder(DeterministicEmbedder(8))
OTHER = CheckedEmbedder(DeterministicEmbedder(8, revision="2"))


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Rooms]:
    with EviCortex.open(tmp_path / "m.db", embedder=None) as cortex:
        for number in range(5):
            cortex.remember("a", f"text {number}", session="s")
        cortex.remember("b", "text 0")
        yield cortex._open


def store(
    rooms: Rooms,
    embedder: CheckedEmbedder,
    items: range | list[int],
    *,
    parts: int = 1,
    namespace_id: int = 1,
) -> int:
    with rooms.ledger.write() as tx:
        due = {
            row[0]: row[1:]
            for row in tx.connection.execute("SELECT row_id, content, digest FROM evidence")
        }
        rows = []
        for number in items:
            item = (namespace_id << 40) + number
            text, digest = due.get(item, ("gone", "0" * 64))
            for part in range(parts):
                vector = embedder.embed([f"{text}/{part}" if part else text]).vectors[0]
                span = Span(part, part + 1) if parts > 1 else None
                rows.append(VectorRow(item, part, span, digest, vector))
        return rooms.semantic.store(
            tx.connection, namespace_id, embedder.profile, embedder.digest, "evidence", rows
        )


def coverage(rooms: Rooms, embedder: CheckedEmbedder = FIRST) -> tuple[int, int, int, int]:
    with rooms.ledger.read() as tx:
        found = rooms.semantic.coverage(tx.connection, 1, embedder.digest)
    return (found.indexed, found.missing, found.stale, found.foreign)


def scores(rooms: Rooms, query: str, embedder: CheckedEmbedder = FIRST) -> np.ndarray:
    with rooms.ledger.read() as tx:
        rows = rooms.resident.get(tx.connection, 1)
        view = rooms.semantic.view(tx.connection, rows, embedder.digest, 8)
        return view.scores(embedder.embed_query(query))


def test_what_is_due_is_what_lacks_a_vector_of_its_text(rooms: Rooms) -> None:
    assert coverage(rooms) == (0, 5, 0, 0)
    assert store(rooms, FIRST, [1, 3]) == 2
    with rooms.ledger.read() as tx:
        due = rooms.semantic.due(tx.connection, 1, FIRST.digest)
        later = rooms.semantic.due(tx.connection, 1, FIRST.digest, after=due[0].item, limit=1)
    assert [each.text for each in due] == ["text 1", "text 3", "text 4"]
    assert [each.text for each in later] == ["text 3"]
    assert not any(each.stale for each in due)
    assert coverage(rooms) == (2, 3, 0, 0)


def test_another_profile_is_foreign_and_replaced_item_by_item(rooms: Rooms) -> None:
    store(rooms, FIRST, range(1, 6))
    with rooms.ledger.read() as tx:
        assert rooms.semantic.foreign(tx.connection, 1, OTHER.digest)
        assert not rooms.semantic.foreign(tx.connection, 1, FIRST.digest)
        assert not rooms.semantic.foreign(tx.connection, 2, OTHER.digest)
        assert rooms.semantic.foreign_namespaces(tx.connection, OTHER.digest) == ("a",)
        assert all(each.stale for each in rooms.semantic.due(tx.connection, 1, OTHER.digest))
    assert coverage(rooms, OTHER) == (0, 0, 0, 5)
    store(rooms, OTHER, [1, 2])
    assert coverage(rooms, OTHER) == (2, 0, 0, 3)
    store(rooms, OTHER, [3, 4, 5])
    with rooms.ledger.read() as tx:
        count = tx.connection.execute("SELECT count(*) FROM vector_profiles").get
    assert count == 1
    assert not (scores(rooms, "text 2", OTHER) == 0).any()


def test_loaded_vectors_follow_appends_replacements_and_removals(rooms: Rooms) -> None:
    expected = np.zeros(5, dtype=np.float32)
    assert (scores(rooms, "text 2") == expected).all()
    store(rooms, FIRST, [1, 2])
    first = scores(rooms, "text 1")
    assert first[1] == pytest.approx(1.0, abs=1e-5)
    assert first[2] == 0
    store(rooms, FIRST, [3, 4, 5])
    assert scores(rooms, "text 3")[3] == pytest.approx(1.0, abs=1e-5)
    assert (scores(rooms, "text 1")[:2] == first[:2]).all()
    with rooms.ledger.write() as tx:
        rooms.semantic.remove(tx.connection, 1, [(1 << 40) + 4])
    after = scores(rooms, "text 3")
    assert after[3] == 0
    assert after[4] != 0
    rooms.semantic.drop()
    assert (scores(rooms, "text 3") == after).all()


def test_several_parts_of_one_text_score_as_the_best(rooms: Rooms) -> None:
    store(rooms, FIRST, [1], parts=3)
    found = scores(rooms, "text 0/2")
    assert found[0] == pytest.approx(1.0, abs=1e-5)
    with rooms.ledger.read() as tx:
        rows = rooms.resident.get(tx.connection, 1)
        view = rooms.semantic.view(tx.connection, rows, FIRST.digest, 8)
    assert view.present.tolist() == [True, False, False, False, False]
    assert view.means().shape == (5, 8)
    assert (view.means()[0] == view.matrix[0]).all()


def test_purged_items_are_not_stored(rooms: Rooms) -> None:
    assert store(rooms, FIRST, [1, 99]) == 1
    assert store(rooms, FIRST, []) == 0


def test_a_vector_of_another_length_is_corruption(rooms: Rooms) -> None:
    store(rooms, FIRST, [1])
    with rooms.ledger.write() as tx:
        tx.connection.execute("UPDATE vectors SET vector = x'00'")
    with pytest.raises(CorruptLedgerError, match="sync_semantic"):
        scores(rooms, "text")


def test_least_recently_used_namespaces_leave_memory(rooms: Rooms) -> None:
    rooms.semantic.options = SemanticOptions(max_vectors=3)
    store(rooms, FIRST, [1, 2, 3])
    store(rooms, FIRST, [1], namespace_id=2)
    scores(rooms, "text")
    with rooms.ledger.read() as tx:
        rows = rooms.resident.get(tx.connection, 2)
        rooms.semantic.view(tx.connection, rows, FIRST.digest, 8)
    assert len(rooms.semantic._resident) == 1


def test_the_encoding_is_little_endian_float32(rooms: Rooms) -> None:
    store(rooms, FIRST, [2])
    with rooms.ledger.read() as tx:
        blob = tx.connection.execute("SELECT vector FROM vectors").get
    assert (np.frombuffer(blob, "<f4") == FIRST.embed(["text 1"]).vectors[0]).all()


def test_limits_are_counts() -> None:
    with pytest.raises(InputError):
        SemanticOptions(scan_cap=0)
