"""Numbers of texts in memory: each text read once, and forgotten with its generation."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from evicortex import EviCortex
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.text_numbers import TextNumbers


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Rooms]:
    with EviCortex.open(tmp_path / "m.db", embedder=None) as cortex:
        for number in range(4):
            cortex.remember("a", "x" * number + "!", actor=str(number))
        cortex.remember("b", "other")
        yield cortex._open


class Counting:
    """Derives a text's length and a constant, and notes what it was asked."""

    def __init__(self, *, max_rows: int = 1_000) -> None:
        self.asked: list[str] = []
        self.numbers = TextNumbers(self.derive, 2, max_rows)

    def derive(self, text: str) -> tuple[float, float]:
        self.asked.append(text)
        return len(text), 7.0

    def of(self, rooms: Rooms, namespace: str, *wanted: int) -> list[list[float]]:
        with rooms.ledger.read() as tx:
            ns = tx.namespace(namespace)
            assert ns is not None
            rows = rooms.resident.get(tx.connection, ns.namespace_id)
            found = self.numbers.of(tx.connection, rows, np.array(wanted, dtype=np.intp))
        assert found.dtype == np.float32
        return found.tolist()


def test_only_what_is_asked_for_is_read_and_only_once(rooms: Rooms) -> None:
    counting = Counting()
    assert counting.of(rooms, "a", 2, 0) == [[3, 7], [1, 7]]
    assert counting.of(rooms, "a", 0, 3) == [[1, 7], [4, 7]]
    assert sorted(counting.asked) == ["!", "xx!", "xxx!"]
    assert counting.of(rooms, "a") == []


def test_namespaces_are_apart_and_new_rows_are_read(rooms: Rooms, tmp_path: Path) -> None:
    counting = Counting()
    assert counting.of(rooms, "b", 0) == [[5, 7]]
    assert counting.of(rooms, "a", 0) == [[1, 7]]
    with EviCortex.open(tmp_path / "m.db", embedder=None) as other:
        other.remember("a", "a longer text")
    assert counting.of(rooms, "a", 4, 1) == [[13, 7], [2, 7]]


def test_a_purge_forgets_what_was_known(rooms: Rooms, tmp_path: Path) -> None:
    counting = Counting()
    counting.of(rooms, "a", 0, 1, 2, 3)
    with EviCortex.open(tmp_path / "m.db", embedder=None) as other:
        other.purge("a", actor="1")
    assert counting.of(rooms, "a", 0, 1, 2) == [[1, 7], [3, 7], [4, 7]]
    assert len(counting.asked) == 7


def test_the_namespace_used_longest_ago_goes_first_and_close_forgets_all(rooms: Rooms) -> None:
    counting = Counting(max_rows=4)
    counting.of(rooms, "a", 0)
    counting.of(rooms, "b", 0)
    counting.of(rooms, "a", 0)
    assert counting.asked == ["!", "other", "!"]
    counting.numbers.close()
    counting.of(rooms, "a", 0)
    assert counting.asked == ["!", "other", "!", "!"]
