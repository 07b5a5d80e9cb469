"""Time mentions in the ledger's file: read once, in step, removed, and never another reader's."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import pytest

from evicortex import EviCortex, EvidenceDraft
from evicortex.pipeline.times import KEPT_IN_STEP, sync_times
from evicortex.pipeline.wiring import Rooms
from evicortex.projections.times import Said, TimeProjection
from evicortex.text.times.mentions import find_times
from evicortex.types import Granularity, Span, TimeMention

MONDAY = datetime(2026, 3, 9, 10, tzinfo=UTC)
TEXT = "I moved last Saturday; it was my plan since last year."
SATURDAY = TimeMention(
    Span(8, 21),
    "last Saturday",
    datetime(2026, 3, 7, tzinfo=UTC),
    datetime(2026, 3, 8, tzinfo=UTC),
    Granularity.DAY,
    True,
)


@pytest.fixture
def cortex(tmp_path: Path) -> Iterator[EviCortex]:
    with EviCortex.open(tmp_path / "m.db", embedder=None) as cortex:
        yield cortex


def draft(text: str = TEXT, at: datetime | None = MONDAY) -> EvidenceDraft:
    return EvidenceDraft(content=text, occurred_at=at)


def stored(rooms: Rooms) -> list[tuple[int, int, int]]:
    with rooms.ledger.read() as tx:
        return list(
            tx.connection.execute(
                "SELECT namespace_id, row_id & 1048575, start FROM time_mentions ORDER BY 1, 2, 3"
            )
        )


def marks(rooms: Rooms) -> list[tuple[int, str, int]]:
    with rooms.ledger.read() as tx:
        return list(
            tx.connection.execute(
                "SELECT namespace_id, projection, row_id & 1048575 FROM watermarks "
                "WHERE projection GLOB 'times/*' ORDER BY 1"
            )
        )


def of(
    rooms: Rooms, position: int = 1, text: str = TEXT, namespace_id: int = 1
) -> tuple[TimeMention, ...]:
    row_id = (namespace_id << 40) + position
    with rooms.ledger.read() as tx:
        found = rooms.times.of(tx.connection, namespace_id, {row_id: Said(text, MONDAY)})
    return found[row_id]


def test_a_small_write_is_read_at_once(cortex: EviCortex) -> None:
    cortex.remember("a", TEXT, occurred_at=MONDAY)
    cortex.remember("b", "no time word", occurred_at=MONDAY)
    assert stored(cortex._open) == [(1, 1, 8), (1, 1, 44)]
    assert [(ns, at) for ns, _, at in marks(cortex._open)] == [(1, 1), (2, 1)]


def test_what_is_stored_is_what_is_found(cortex: EviCortex) -> None:
    texts = [
        TEXT,
        "in May",
        "8 May 2023",
        "between May and July",
        "nothing",
        "\0 yesterday 🏴 today",
    ]
    cortex.remember_many("a", [draft(text) for text in texts])
    read = [of(cortex._open, place, text) for place, text in enumerate(texts, 1)]
    with cortex._open.ledger.write() as tx:
        cortex._open.times.clear(tx.connection, 1)
    assert [of(cortex._open, place, text) for place, text in enumerate(texts, 1)] == read
    assert read[0][0] == SATURDAY
    assert read[1][0].open_year
    assert not read[2][0].relative
    assert read[4] == ()
    assert [each.text for each in read[5]] == ["yesterday", "today"]


def test_a_large_import_is_read_by_a_sync(cortex: EviCortex) -> None:
    rooms = cortex._open
    cortex.remember_many("a", [draft() for _ in range(KEPT_IN_STEP + 1)])
    assert (stored(rooms), marks(rooms)) == ([], [])
    assert of(rooms, KEPT_IN_STEP)[0] == SATURDAY
    cortex.remember_many("b", [draft() for _ in range(KEPT_IN_STEP)])
    assert len(stored(rooms)) == 2 * KEPT_IN_STEP
    cortex.sync_semantic("a")
    assert len(stored(rooms)) == 2 * (2 * KEPT_IN_STEP + 1)
    assert [at for *_, at in marks(rooms)] == [KEPT_IN_STEP + 1, KEPT_IN_STEP]


def test_a_book_is_read_by_a_sync(cortex: EviCortex) -> None:
    receipt = cortex.remember("a", f"{TEXT} " * 3_000, occurred_at=MONDAY)
    assert stored(cortex._open) == []
    assert len(cortex.times("a", receipt.evidence_id)) == 6_000
    cortex.sync_semantic("a")
    assert len(stored(cortex._open)) == 6_000


def test_a_sync_goes_on_where_it_stopped(
    cortex: EviCortex, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms = cortex._open
    cortex.remember_many("a", [draft() for _ in range(KEPT_IN_STEP + 6)])
    with rooms.ledger.write() as tx:
        assert rooms.times.sync(tx.connection, 1, 30) == 30
    assert marks(rooms)[0][2] == 30
    monkeypatch.setattr("evicortex.pipeline.times.BATCH", 10)
    sync_times(rooms, "a")
    assert marks(rooms)[0][2] == KEPT_IN_STEP + 6
    assert len(stored(rooms)) == 2 * (KEPT_IN_STEP + 6)
    sync_times(rooms, "a")
    sync_times(rooms, "nobody")
    assert len(stored(rooms)) == 2 * (KEPT_IN_STEP + 6)


def test_what_another_reader_found_never_counts(cortex: EviCortex) -> None:
    rooms = cortex._open
    cortex.remember("a", TEXT, occurred_at=MONDAY)
    other = TimeProjection(lambda text, at: find_times(text, at - timedelta(7)), "2-week-before")
    with rooms.ledger.read() as tx:
        row_id = (1 << 40) + 1
        found = other.of(tx.connection, 1, {row_id: Said(TEXT, MONDAY)})
    assert found[row_id][0].start == datetime(2026, 2, 28, tzinfo=UTC)
    with rooms.ledger.write() as tx:
        assert other.sync(tx.connection, 1, 10) == 1
    assert [name for _, name, _ in marks(rooms)] == ["times/2-week-before"]
    assert len(stored(rooms)) == 2
    assert of(rooms)[0] == SATURDAY
    cortex.remember("a", "another word", occurred_at=MONDAY)
    assert [name for _, name, _ in marks(rooms)] == [rooms.times.projection]
    assert of(rooms)[0] == SATURDAY


def test_namespaces_are_apart(cortex: EviCortex) -> None:
    rooms = cortex._open
    for name in ("a", "b"):
        cortex.remember(name, TEXT, occurred_at=MONDAY)
    with rooms.ledger.write() as tx:
        rooms.times.clear(tx.connection, 1)
    assert {ns for ns, *_ in stored(rooms)} == {ns for ns, *_ in marks(rooms)} == {2}
    with rooms.ledger.read() as tx:
        assert rooms.times.count(tx.connection, 1) == 0
        assert rooms.times.count(tx.connection, 2) == 2


def test_removed_rows_go_and_nothing_else(cortex: EviCortex) -> None:
    rooms = cortex._open
    cortex.remember_many("a", [draft(), draft()])
    with rooms.ledger.write() as tx:
        rooms.times.remove(tx.connection, 1, [(1 << 40) + 1])
    assert {row for _, row, _ in stored(rooms)} == {2}


def test_without_an_occurrence_the_time_of_recording_counts(cortex: EviCortex) -> None:
    receipt = cortex.remember("a", "It was yesterday.")
    recorded = cortex.evidence("a", receipt.evidence_id).recorded_at
    (mention,) = cortex.times("a", receipt.evidence_id)
    assert mention.start.date() == recorded.date() - timedelta(1)


@pytest.mark.parametrize(
    "change",
    [
        "row_id = row_id + (1 << 40)",
        "start = -1",
        "stop = start",
        "ends_at = begins_at",
        "relative = 2",
        "open_year = 2",
    ],
)
def test_the_file_refuses_rows_that_make_no_sense(cortex: EviCortex, change: str) -> None:
    cortex.remember("a", "It was yesterday.")
    with pytest.raises(apsw.ConstraintError), cortex._open.ledger.write() as tx:
        tx.connection.execute(f"UPDATE time_mentions SET {change}")
