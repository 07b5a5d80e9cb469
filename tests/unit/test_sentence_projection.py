"""Sentence vectors in the ledger's file: their format, their error, and what is never read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evicortex import EviCortex
from evicortex.errors import CorruptLedgerError, InputError
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.sentences import SentenceRow, cosines, encoded
from evicortex.testing import DeterministicEmbedder
from evicortex.types import Span

FIRST = DeterministicEmbedder(8)
IDENTITY = "first/pieces-1/int8-1"
TEXTS = ("One here. Two there.", "One. Two. Three.", "\0 \U0001f600. And more!")
QUERY = FIRST.embed(["a query"])[0]


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Rooms]:
    with EviCortex.open(tmp_path / "m.db", embedder=None) as cortex:
        for text in TEXTS:
            cortex.remember("a", text)
        cortex.remember("b", TEXTS[0])
        yield cortex._open


def row_id(position: int, namespace_id: int = 1) -> int:
    return (namespace_id << 40) + position


def row(position: int, spans: Sequence[Span], *, namespace_id: int = 1) -> SentenceRow:
    digest = hashlib.sha256(TEXTS[position - 1].encode()).hexdigest()
    vectors = np.zeros((len(spans), 8), np.float32)
    for each, span in zip(vectors, spans, strict=True):
        each[:] = FIRST.embed([f"{position} {span}"])[0]
    return SentenceRow(row_id(position, namespace_id), digest, spans, vectors)


def store(rooms: Rooms, *rows: SentenceRow, identity: str = IDENTITY, ns: int = 1) -> None:
    with rooms.ledger.write() as tx:
        rooms.sentences.store(tx.connection, ns, FIRST.profile, identity, rows)


def scores(
    rooms: Rooms, *positions: int, identity: str = IDENTITY, ns: int = 1
) -> dict[int, tuple[tuple[Span, ...], np.ndarray]]:
    with rooms.ledger.read() as tx:
        ids = [row_id(position, ns) for position in positions]
        return rooms.sentences.scores(tx.connection, ns, ids, identity, QUERY)


def damaged(rooms: Rooms, ns: int = 1) -> list[tuple[int, str]]:
    with rooms.ledger.read() as tx:
        return list(rooms.sentences.damaged(tx.connection, ns))


def query(rooms: Rooms, sql: str) -> Any:
    with rooms.ledger.read() as tx:
        return tx.connection.execute(sql).get


BOTH = row(1, (Span(0, 9), Span(10, 20)))
THREE = row(2, (Span(0, 4), Span(5, 9), Span(10, 16)))

finite = st.floats(-1.0, 1.0, width=32, allow_subnormal=False)


@st.composite
def vectors_and_query(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    count, dimensions = draw(st.integers(1, 6)), draw(st.integers(1, 48))
    both = draw(arrays(np.float32, (count + 1, dimensions), elements=finite))
    # A floor keeps every row in a direction without a lower bound on its other values.
    both[:, draw(st.integers(0, dimensions - 1))] += np.float32(1.5)
    return both[1:], both[0]


@given(vectors_and_query())
def test_the_error_is_within_the_bound(made: tuple[np.ndarray, np.ndarray]) -> None:
    vectors, raw = made
    unit = (raw / np.linalg.norm(raw.astype(np.float64))).astype(np.float32)
    blob = encoded(vectors)
    dimensions = len(unit)
    exact = vectors.astype(np.float64)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    records = np.frombuffer(blob, dtype=[("s", "<f4"), ("q", "i1", (dimensions,))])
    scales = records["s"].astype(np.float64)[:, None]
    rounding = 2.0**-20
    assert (np.abs(exact - scales * records["q"]) <= scales / 2 * (1 + rounding)).all()
    found = cosines(blob, unit)
    wide = unit.astype(np.float64)
    slack = (dimensions + 8) * 2.0**-23
    bound = scales[:, 0] / 2 * np.abs(wide).sum() + slack
    assert (np.abs(found - exact @ wide) <= bound).all()
    assert (bound <= scales[:, 0] / 2 * np.sqrt(dimensions) + 2 * slack).all()
    assert found.dtype == np.float32


@given(vectors_and_query(), st.data())
def test_a_cosine_does_not_depend_on_the_others(
    made: tuple[np.ndarray, np.ndarray], data: st.DataObject
) -> None:
    vectors, query = made
    whole = cosines(encoded(vectors), query)
    order = data.draw(st.permutations(range(len(vectors))))
    assert (cosines(encoded(vectors[order]), query) == whole[order]).all()
    for place, vector in enumerate(vectors):
        assert cosines(encoded(vector[None]), query)[0] == whole[place]


def test_the_format_is_a_scale_and_one_byte_a_dimension() -> None:
    vector = np.array([[0.6, -0.8, 0.0]], np.float32)
    blob = encoded(vector * np.float32(7))
    assert np.frombuffer(blob[:4], "<f4")[0] == pytest.approx(0.8 / 127, rel=1e-6)
    assert np.frombuffer(blob[4:], "i1").tolist() == [95, -127, 0]
    assert len(encoded(np.ones((5, 384), np.float32))) == 5 * 388
    assert encoded(np.zeros((0, 384), np.float32)) == b""


def test_scores_are_those_of_the_rows_that_are_asked_for(rooms: Rooms) -> None:
    store(rooms, BOTH, THREE, row(3, ()))
    found = scores(rooms, 2, 1, 3, 99)
    assert {key: value[0] for key, value in found.items()} == {
        row_id(1): BOTH.spans,
        row_id(2): THREE.spans,
    }
    for stored in (BOTH, THREE):
        exact = stored.vectors @ QUERY
        assert np.abs(found[stored.row_id][1] - exact).max() < 0.02
    assert (scores(rooms, 2)[row_id(2)][1] == found[row_id(2)][1]).all()
    assert scores(rooms, 3) == scores(rooms) == {}


def test_the_bytes_of_spans_are_little_endian_pairs(rooms: Rooms) -> None:
    store(rooms, BOTH)
    blob = query(rooms, "SELECT spans FROM sentence_vectors")
    assert np.frombuffer(blob, "<u4").tolist() == [0, 9, 10, 20]


def test_the_length_of_the_query_does_not_matter_but_its_direction_does(rooms: Rooms) -> None:
    store(rooms, BOTH)
    one = scores(rooms, 1)[row_id(1)][1]
    with rooms.ledger.read() as tx:
        ask = (tx.connection, 1, [row_id(1)], IDENTITY)
        longer = rooms.sentences.scores(*ask, QUERY * np.float32(4))
        assert (longer[row_id(1)][1] == one).all()
        for nothing in (np.zeros(8, np.float32), np.full(8, np.nan, np.float32)):
            with pytest.raises(InputError, match="no direction"):
                rooms.sentences.scores(*ask, nothing)


def test_another_identity_another_text_or_namespace_is_never_read(rooms: Rooms) -> None:
    store(rooms, BOTH, THREE)
    assert scores(rooms, 1, 2, identity="other") == {}
    with rooms.ledger.write() as tx:
        tx.connection.execute(
            "UPDATE sentence_vectors SET input_digest = '0' WHERE row_id = ?", (row_id(1),)
        )
    assert set(scores(rooms, 1, 2)) == {row_id(2)}
    store(rooms, row(1, BOTH.spans, namespace_id=2), ns=2)
    with rooms.ledger.read() as tx:
        mixed = [row_id(2), row_id(1, 2)]
        first = rooms.sentences.scores(tx.connection, 1, mixed, IDENTITY, QUERY)
        second = rooms.sentences.scores(tx.connection, 2, mixed, IDENTITY, QUERY)
    assert set(first) == {row_id(2)}
    assert set(second) == {row_id(1, 2)}


def test_a_new_identity_replaces_row_by_row_and_the_old_one_is_forgotten(rooms: Rooms) -> None:
    store(rooms, BOTH, THREE)
    store(rooms, row(1, (Span(0, 20),)), identity="second")
    assert scores(rooms, 1, 2, identity="second")[row_id(1)][0] == (Span(0, 20),)
    assert set(scores(rooms, 1, 2)) == {row_id(2)}
    store(rooms, THREE, identity="second")
    assert query(rooms, "SELECT group_concat(identity) FROM sentence_profiles") == "second"
    assert query(rooms, "SELECT json(profile) FROM sentence_profiles") == json.dumps(
        FIRST.profile.values(), sort_keys=True, separators=(",", ":")
    )


def test_removal_and_clearing_take_one_namespace_and_its_profiles(rooms: Rooms) -> None:
    store(rooms, BOTH, THREE)
    store(rooms, row(1, BOTH.spans, namespace_id=2), ns=2)
    with rooms.ledger.write() as tx:
        rooms.sentences.remove(tx.connection, 1, [row_id(1), row_id(1, 2)])
        assert rooms.sentences.count(tx.connection, 1) == 1
        assert rooms.sentences.count(tx.connection, 2) == 1
        rooms.sentences.clear(tx.connection, 1)
    assert query(rooms, "SELECT count(*) FROM sentence_profiles WHERE namespace_id = 1") == 0
    assert query(rooms, "SELECT count(*) FROM sentence_profiles WHERE namespace_id = 2") == 1
    assert scores(rooms, 2) == {}
    assert set(scores(rooms, 1, ns=2)) == {row_id(1, 2)}


def test_evidence_that_is_gone_or_has_another_text_is_passed_over(rooms: Rooms) -> None:
    store(rooms, BOTH._replace(row_id=row_id(99)), BOTH._replace(row_id=row_id(2)))
    assert query(rooms, "SELECT count(*) FROM sentence_vectors") == 0


@pytest.mark.parametrize(
    "change",
    ["spans = x'00'", "vectors = x'00'", "spans = x''", "vectors = zeroblob(36)"],
)
def test_lengths_that_do_not_fit_are_corruption(rooms: Rooms, change: str) -> None:
    store(rooms, BOTH)
    assert damaged(rooms) == []
    with rooms.ledger.write() as tx:
        tx.connection.execute(f"UPDATE sentence_vectors SET {change}")
    with pytest.raises(CorruptLedgerError, match="run sync_semantic"):
        scores(rooms, 1)
    assert damaged(rooms) == [(row_id(1), "do not fit its sentences")]


@pytest.mark.parametrize(
    ("bounds", "fits"),
    [
        ([0, 9, 9, 20], True),
        ([0, 9, 10, 21], False),
        ([0, 9, 8, 20], False),
        ([9, 9, 10, 20], False),
        ([10, 20, 0, 9], False),
        ([0, 9, 10, 2**32 - 1], False),
    ],
)
def test_spans_are_apart_in_order_and_inside_the_text(
    rooms: Rooms, bounds: list[int], fits: bool
) -> None:
    store(rooms, BOTH)
    with rooms.ledger.write() as tx:
        packed = np.array(bounds, "<u4").tobytes()
        tx.connection.execute("UPDATE sentence_vectors SET spans = ?", (packed,))
    expected = [] if fits else [(row_id(1), "have spans that are not in its text")]
    assert damaged(rooms) == expected


def test_spans_count_code_points_also_past_a_nul(rooms: Rooms) -> None:
    store(rooms, row(3, (Span(0, 4), Span(5, len(TEXTS[2])))))
    assert damaged(rooms) == []


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_is_finite_and_above_zero(rooms: Rooms, scale: float) -> None:
    store(rooms, BOTH)
    blob = query(rooms, "SELECT vectors FROM sentence_vectors")
    with rooms.ledger.write() as tx:
        changed = np.float32(scale).tobytes() + blob[4:]
        tx.connection.execute("UPDATE sentence_vectors SET vectors = ?", (changed,))
    assert damaged(rooms) == [(row_id(1), "have a scale that is not above 0")]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DELETE FROM sentence_profiles", "were made by an unknown encoder"),
        ("DELETE FROM evidence WHERE row_id = 1 << 40 | 1", "belong to no evidence"),
    ],
)
def test_rows_without_evidence_or_profile_are_named(tmp_path: Path, sql: str, says: str) -> None:
    path = tmp_path / "m.db"
    with EviCortex.open(path, embedder=None) as cortex:
        cortex.remember("a", TEXTS[0])
        store(cortex._open, BOTH)
        with pytest.raises(apsw.ConstraintError), cortex._open.ledger.write() as tx:
            tx.connection.execute(sql)
    connection = apsw.Connection(str(path))
    connection.pragma("foreign_keys", False)
    connection.execute(sql)
    connection.close()
    with EviCortex.open(path, embedder=None) as cortex:
        assert damaged(cortex._open) == [(row_id(1), says)]
        assert not cortex.verify("a").ok
