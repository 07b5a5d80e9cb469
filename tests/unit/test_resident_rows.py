"""A namespace's rows in memory: arrays, threads, snapshots, generations, eviction."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from evicortex.errors import InputError
from evicortex.ledger import Ledger, LedgerOptions, NamespaceRow, evidence
from evicortex.ledger.evidence import Added, CheckedDraft
from evicortex.projections.cache import NamespaceCache
from evicortex.projections.resident import ResidentOptions, ResidentRows, RowFilter
from evicortex.types import POSITION_BITS


class TickingClock:
    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(
        tmp_path / "m.db", clock=TickingClock(), options=LedgerOptions(synchronous="NORMAL")
    ) as opened:
        yield opened


def write(ledger: Ledger, namespace: str, *drafts: CheckedDraft) -> NamespaceRow:
    with ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        results = evidence.add(tx, ns, drafts)
        assert all(isinstance(result, Added) for result in results)
    return ns


def said(text: str, session: str | None = None, source: str | None = None) -> CheckedDraft:
    return CheckedDraft(text, session=session, source=source)


def links(values: np.ndarray) -> list[int]:
    return [int(value) for value in values]


def test_arrays_hold_what_the_ledger_holds(ledger: Ledger) -> None:
    ns = write(
        ledger,
        "a",
        CheckedDraft("héllo", actor="Ann", session="s1", occurred_at=7),
        CheckedDraft("", actor=None, session=None),
    )
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, ns.namespace_id)
    assert len(rows) == 2
    assert links(rows.row_ids & ((1 << POSITION_BITS) - 1)) == [1, 2]
    assert links(rows.session) == [1, 0]
    assert links(rows.actor) == [1, 0]
    assert links(rows.octets) == [6, 0]
    assert rows.effective_us[0] == 7
    assert rows.effective_us[1] == rows.recorded_us[1] > 0
    assert rows.last_row_id == rows.row_ids[1]


def test_neighbours_follow_the_session_not_the_row_order(ledger: Ledger) -> None:
    resident = ResidentRows()
    ns = write(ledger, "a", said("0", "s"), said("1", "t"), said("2", "s"))
    with ledger.read() as tx:
        first = resident.get(tx.connection, ns.namespace_id)
    write(ledger, "a", said("3", "t"), said("4", "u"), said("5", "s"))
    with ledger.read() as tx:
        rows = resident.get(tx.connection, ns.namespace_id)
    assert links(first.previous) == [-1, -1, 0]
    assert links(first.next) == [2, -1, -1]
    assert links(rows.sequence) == [0, 2, 5, 1, 3, 4]
    assert links(rows.previous) == [-1, -1, 0, 1, -1, 2]
    assert links(rows.next) == [2, 3, 5, -1, -1, -1]


def test_rows_without_a_session_are_one_thread_per_source(ledger: Ledger) -> None:
    ns = write(
        ledger,
        "a",
        said("0", source="mail"),
        said("1"),
        said("2", source="mail"),
        said("3", "s", "mail"),
        said("4"),
    )
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, ns.namespace_id)
    assert links(rows.thread) == [0, 1, 0, 2, 1]
    assert links(rows.next) == [2, 4, -1, -1, -1]


def test_an_older_snapshot_sees_its_own_rows(ledger: Ledger) -> None:
    resident = ResidentRows()
    ns = write(ledger, "a", said("0", "s"), said("1", "t"))
    with ledger.read() as old:
        write(ledger, "a", said("2", "s"), said("3", "t"))
        with ledger.read() as new:
            assert len(resident.get(new.connection, ns.namespace_id)) == 4
        rows = resident.get(old.connection, ns.namespace_id)
        assert len(rows) == 2
        assert links(rows.next) == [-1, -1]
        assert links(rows.sequence) == [0, 1]


def test_growth_leaves_earlier_snapshots_alone(ledger: Ledger) -> None:
    resident = ResidentRows()
    seen = []
    for count in range(40):
        ns = write(ledger, "a", said(str(count), f"s{count % 3}"))
        with ledger.read() as tx:
            seen.append(resident.get(tx.connection, ns.namespace_id))
    with ledger.read() as tx:
        fresh = ResidentRows().get(tx.connection, ns.namespace_id)
    assert links(seen[-1].sequence) == links(fresh.sequence)
    assert links(seen[-1].thread) == links(fresh.thread)
    for count, rows in enumerate(seen, start=1):
        assert links(rows.row_ids) == links(fresh.row_ids[:count])
        assert links(rows.octets) == links(fresh.octets[:count])
        assert int(rows.next.max(initial=-1)) < count


def test_a_new_generation_is_loaded_afresh(ledger: Ledger) -> None:
    resident = ResidentRows()
    ns = write(ledger, "a", said("0", "s"), said("1", "s"), said("2", "s"))
    with ledger.read() as old:
        assert len(resident.get(old.connection, ns.namespace_id)) == 3
        with ledger.write() as tx:
            tx.connection.execute(
                "DELETE FROM evidence WHERE row_id = ?", ((ns.namespace_id << POSITION_BITS) + 2,)
            )
            tx.bump_generation(ns)
        with ledger.read() as new:
            rows = resident.get(new.connection, ns.namespace_id)
            assert links(rows.octets) == [1, 1]
            assert links(rows.next) == [1, -1]
        assert len(resident.get(old.connection, ns.namespace_id)) == 3
        with ledger.read() as new:
            assert len(resident.get(new.connection, ns.namespace_id)) == 2


def test_a_write_that_is_undone_leaves_nothing(ledger: Ledger) -> None:
    resident = ResidentRows()
    ns = write(ledger, "a", said("0"))

    def undone() -> None:
        with ledger.write() as tx:
            evidence.add(tx, ns, [said("x"), said("y")])
            assert len(resident.get(tx.connection, ns.namespace_id)) == 3
            raise RuntimeError

    with pytest.raises(RuntimeError):
        undone()
    write(ledger, "a", said("longer"))
    with ledger.read() as tx:
        assert links(resident.get(tx.connection, ns.namespace_id).octets) == [1, 6]


def test_an_unknown_namespace_is_empty(ledger: Ledger) -> None:
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, 99)
    assert len(rows) == 0
    assert rows.last_row_id == 99 << POSITION_BITS
    assert links(rows.index([5])) == [-1]
    assert links(rows.next) == []


def test_index_finds_row_ids(ledger: Ledger) -> None:
    ns = write(ledger, "a", said("0"), said("1"))
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, ns.namespace_id)
    last = rows.last_row_id
    assert links(rows.index([last, last + 1, last - 1, 0])) == [1, -1, 0, -1]


def test_filters(ledger: Ledger) -> None:
    ns = write(
        ledger,
        "a",
        CheckedDraft("0", actor="a", session="s", occurred_at=10),
        CheckedDraft("1", actor="b", session="s", occurred_at=20),
    )
    write(ledger, "a", CheckedDraft("2", actor="a", session="t", occurred_at=5))
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, ns.namespace_id)

    def passed(row_filter: RowFilter) -> list[int]:
        mask = row_filter.mask(rows)
        assert mask is not None
        return links(np.flatnonzero(mask))

    assert RowFilter().mask(rows) is None
    assert passed(RowFilter(sessions=[1])) == [0, 1]
    assert passed(RowFilter(sessions=())) == []
    assert passed(RowFilter(actors={1})) == [0, 2]
    assert passed(RowFilter(as_of=10)) == [0, 2]
    assert passed(RowFilter(known_at=int(rows.recorded_us[0]))) == [0, 1]
    assert passed(RowFilter(sessions=[1], actors=[1], as_of=10, known_at=2**62)) == [0]


def test_least_recently_used_namespaces_go_first(ledger: Ledger) -> None:
    spaces = {name: write(ledger, name, *[said(str(n)) for n in range(4)]) for name in "abc"}
    resident = ResidentRows(ResidentOptions(max_rows=8))
    with ledger.read() as tx:
        for name in "abab":
            resident.get(tx.connection, spaces[name].namespace_id)
        assert resident.resident() == 8
        resident.get(tx.connection, spaces["c"].namespace_id)
        assert resident.resident() == 8
        assert len(resident.get(tx.connection, spaces["a"].namespace_id)) == 4
    resident.drop()
    assert resident.resident() == 0


def test_a_namespace_larger_than_the_limit_stays_while_in_use(ledger: Ledger) -> None:
    big = write(ledger, "big", *[said(str(n)) for n in range(9)])
    small = write(ledger, "small", said("x"))
    resident = ResidentRows(ResidentOptions(max_rows=2))
    with ledger.read() as tx:
        assert len(resident.get(tx.connection, big.namespace_id)) == 9
        assert resident.resident() == 9
        resident.get(tx.connection, small.namespace_id)
        assert resident.resident() == 1


def test_options_are_checked() -> None:
    with pytest.raises(InputError):
        ResidentOptions(max_rows=0)


class Loaded:
    def __init__(self, generation: int) -> None:
        self.generation = generation

    def __len__(self) -> int:
        return 1


def test_the_cache_never_hands_a_newer_generation_to_an_older_reader(ledger: Ledger) -> None:
    cache = NamespaceCache[Loaded](10)
    with ledger.read() as tx:
        new = cache.get(tx.connection, 1, 2, lambda: Loaded(2))
        assert cache.get(tx.connection, 1, 1, lambda: Loaded(1)).generation == 1
        assert cache.get(tx.connection, 1, 2, lambda: Loaded(2)) is new
        assert cache.get(tx.connection, 1, 3, lambda: Loaded(3)).generation == 3
    assert cache.rows() == 1
    cache.clear()
    assert cache.rows() == 0
