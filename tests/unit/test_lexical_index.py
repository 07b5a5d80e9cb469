"""The lexical projection in the file: what is written, found, repaired, purged, and capped."""

import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from evicortex.errors import InputError
from evicortex.ledger import Ledger, LedgerOptions, evidence
from evicortex.ledger.evidence import Added, CheckedDraft
from evicortex.projections import lexical as module
from evicortex.projections.lexical import PROJECTION, LexicalOptions, LexicalProjection
from evicortex.projections.resident import ResidentRows
from evicortex.text import content_terms
from evicortex.types import POSITION_BITS


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(
        tmp_path / "m.db", clock=FixedClock(), options=LedgerOptions(synchronous="NORMAL")
    ) as opened:
        yield opened


def store(ledger: Ledger, texts: Sequence[str], namespace: str = "a") -> list[tuple[int, str]]:
    """Store evidence without indexing it; return (row id, text)."""
    with ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        added = evidence.add(tx, ns, [CheckedDraft(text) for text in texts])
    rows = [result.row_id for result in added if isinstance(result, Added)]
    return list(zip(rows, texts, strict=True))


def index(ledger: Ledger, lexical: LexicalProjection, rows: Sequence[tuple[int, str]]) -> int:
    with ledger.write() as tx:
        return lexical.add(tx.connection, rows[0][0] >> POSITION_BITS, rows)


def remember(
    ledger: Ledger, lexical: LexicalProjection, *texts: str, namespace: str = "a"
) -> list[tuple[int, str]]:
    rows = store(ledger, texts, namespace)
    index(ledger, lexical, rows)
    return rows


def found(
    ledger: Ledger, lexical: LexicalProjection, query: str, namespace_id: int = 1
) -> tuple[list[int], list[str]]:
    """Return the indices of the rows that score, best first, and the codes of diagnostics."""
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, namespace_id)
        scores = lexical.view(tx.connection, rows).score(content_terms(query))
    best = np.argsort(-scores.turn, kind="stable")
    return (
        [int(row) for row in best if scores.turn[row] > 0],
        [diagnostic.code for diagnostic in scores.diagnostics],
    )


def stored(ledger: Ledger) -> list[tuple[int, str, str]]:
    with ledger.read() as tx:
        return [
            (int(row_id), str(namespace), str(terms))
            for row_id, namespace, terms in tx.connection.execute(
                "SELECT rowid, namespace, terms FROM lexical ORDER BY rowid"
            )
        ]


def marks(ledger: Ledger) -> list[tuple[str, int]]:
    with ledger.read() as tx:
        return [
            (str(name), int(row_id) & ((1 << POSITION_BITS) - 1))
            for name, row_id in tx.connection.execute("SELECT projection, row_id FROM watermarks")
        ]


SCRIPTS = {
    "latin": ("Wir gingen im Café spazieren", "cafe"),
    "cyrillic": ("Москва — столица России", "столица"),
    "greek": ("ο Οδυσσέας γύρισε στην Ιθάκη", "ΙΘΆΚΗ"),
    "arabic": ("هذا كِتَابٌ جديد عن القاهرة", "كتاب"),
    "hebrew": ("גרתי בירושלים שנתיים", "שנתיים"),
    "devanagari": ("मैं दिल्ली में रहता हूँ।", "दिल्ली"),
    "thai": ("ฉันอาศัยอยู่ในกรุงเทพมหานคร", "กรุงเทพ"),
    "chinese": ("我去年在北京工作", "北京"),
    "japanese": ("昨日東京タワーに行きました", "東京タワー"),
    "korean": ("저는 서울에 살고 있어요", "서울"),
    "mixed": ("重跑gen-itgc 一次", "itgc"),
    "mixed han": ("请重跑gen-itgc", "重跑"),
    "emoji": ("she is a 👩‍💻 now", "💻"),
    "code": ("we use C++ and snake_case_names", "C++"),
    "mail": ("write to me@mail.example.com", "mail.example.com"),
    "quotes": ('he said "NEAR(a b)" and left', "NEAR("),
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("cap", [1, 1_000])
def test_every_script_is_found(ledger: Ledger, script: str, cap: int) -> None:
    lexical = LexicalProjection(LexicalOptions(resident_rows=cap))
    others = [text for name, (text, _) in SCRIPTS.items() if not name.startswith(script[:5])]
    text, query = SCRIPTS[script]
    remember(ledger, lexical, *others, text)
    rows, diagnostics = found(ledger, lexical, query)
    assert rows[0] == len(others)
    assert diagnostics == []


@pytest.mark.parametrize(
    "query",
    [
        *('"', "'", '""', "AND", "a AND b", "NEAR(a b)", "*", "a*", "a-b", "-a", "^a", "@x"),
        *("C++", "terms : a", "namespace : n1", "{a b} : c", "👩‍💻", "\x00", "a\x00b", "", " "),
        *("\ud800", "a OR", "(", "NOT a", '" OR namespace : "n2'),
    ],
)
@pytest.mark.parametrize("cap", [1, 1_000])
def test_no_query_is_syntax(ledger: Ledger, query: str, cap: int) -> None:
    lexical = LexicalProjection(LexicalOptions(resident_rows=cap))
    remember(ledger, lexical, "secret alpha", namespace="b")
    remember(ledger, lexical, "alpha", "beta", "gamma")
    rows, _ = found(ledger, lexical, query, namespace_id=2)
    assert rows == []


def test_a_query_of_100_kb(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    remember(ledger, lexical, "alpha beta", "word5 word6")
    query = " ".join(f"word{n}" for n in range(12_000))
    assert len(query) > 100_000
    rows, diagnostics = found(ledger, lexical, query)
    assert rows == [1]
    assert diagnostics == ["query_terms_capped"]


def test_the_rarest_terms_count_when_the_query_is_capped(ledger: Ledger) -> None:
    lexical = LexicalProjection(LexicalOptions(max_query_terms=2))
    remember(ledger, lexical, "red blue", "red green", "red blue")
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, 1)
        scores = lexical.view(tx.connection, rows).score(["absent", "red", "blue", "green"])
    assert list(scores.idf) == ["blue", "green"]


def test_rows_are_stored_with_their_namespace_and_terms(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    remember(ledger, lexical, "She moved to Lisbon", "", namespace="a")
    remember(ledger, lexical, "重跑gen-itgc", namespace="b")
    assert stored(ledger) == [
        ((1 << POSITION_BITS) + 1, "n1", "move lisbon"),
        ((1 << POSITION_BITS) + 2, "n1", ""),
        ((2 << POSITION_BITS) + 1, "n2", "重 重跑 跑 gen-itgc gen itgc"),
    ]
    assert marks(ledger) == [(PROJECTION, 2), (PROJECTION, 1)]


def test_adding_again_changes_nothing(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    rows = store(ledger, ["one apple", "two pears"])
    assert index(ledger, lexical, rows) == 2
    assert index(ledger, lexical, rows) == 0
    assert len(stored(ledger)) == 2


@pytest.mark.parametrize("repair", ["add", "sync"])
def test_an_interrupted_write_is_found_at_once_and_repaired_by_the_next(
    ledger: Ledger, repair: str
) -> None:
    lexical = LexicalProjection()
    remember(ledger, lexical, "one apple")
    store(ledger, ["two pears", "three plums"])
    assert found(ledger, lexical, "pears") == ([1], ["lexical_stale"])
    assert found(ledger, LexicalProjection(), "plums apple") == ([0, 2], ["lexical_stale"])
    with ledger.read() as tx:
        assert lexical.pending(tx.connection, 1) == 2
    last = store(ledger, ["four cherries"])
    with ledger.write() as tx:
        if repair == "add":
            assert lexical.add(tx.connection, 1, last) == 3
        else:
            assert lexical.sync(tx.connection, 1) == 3
            assert lexical.sync(tx.connection, 1) == 0
        assert lexical.pending(tx.connection, 1) == 0
    assert found(ledger, lexical, "pears") == ([1], [])
    assert found(ledger, LexicalProjection(), "cherries plums") == ([2, 3], [])
    assert [terms for _, _, terms in stored(ledger)] == [
        *("one appl", "two pear", "three plum", "four cherri"),
    ]


def test_a_read_only_ledger_is_searched_without_an_index(ledger: Ledger) -> None:
    store(ledger, ["one apple", "two pears"])
    ledger.close()
    with Ledger.open(ledger.path, clock=FixedClock(), read_only=True) as reader:
        lexical = LexicalProjection()
        assert found(reader, lexical, "pear") == ([1], ["lexical_stale"])
        assert found(reader, lexical, "apples") == ([0], ["lexical_stale"])


def test_a_row_that_the_index_lacks_is_analysed(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    rows = remember(ledger, lexical, "one apple", "two pears", "three plums")
    with ledger.write() as tx:
        lexical.remove(tx.connection, [rows[0][0], rows[2][0]])
    assert found(ledger, LexicalProjection(), "pears") == ([1], [])
    assert found(ledger, LexicalProjection(), "apples plums") == ([0, 2], [])


def test_sync_works_in_batches(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SYNC_BATCH", 3)
    lexical = LexicalProjection()
    store(ledger, [f"word{n}" for n in range(10)])
    with ledger.write() as tx:
        assert lexical.sync(tx.connection, 1) == 10
    assert len(stored(ledger)) == 10


def test_another_text_analysis_does_not_count_as_indexed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(module, "PROJECTION", "lexical/0-older")
        patch.setattr(module, "analysed", lambda text: text.upper())
        remember(ledger, LexicalProjection(), "one apple", "two pears")
    assert marks(ledger) == [("lexical/0-older", 2)]
    lexical = LexicalProjection()
    assert found(ledger, lexical, "apples") == ([0], ["lexical_stale"])
    remember(ledger, lexical, "three plums")
    assert marks(ledger) == [(PROJECTION, 3)]
    assert [terms for _, _, terms in stored(ledger)] == ["one appl", "two pear", "three plum"]
    assert found(ledger, LexicalProjection(), "apples") == ([0], [])


def test_clear_forgets_one_namespace(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    remember(ledger, lexical, "one apple", namespace="a")
    remember(ledger, lexical, "two apples", namespace="b")
    with ledger.write() as tx:
        lexical.clear(tx.connection, 1)
    assert [row[1] for row in stored(ledger)] == ["n2"]
    assert len(marks(ledger)) == 1
    with ledger.write() as tx:
        assert lexical.sync(tx.connection, 1) == 1
    assert [row[1] for row in stored(ledger)] == ["n1", "n2"]


def test_removed_rows_leave_no_byte_of_their_terms(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    filler = [f"ordinary words number {n}" for n in range(300)]
    rows = remember(ledger, lexical, *filler, "the zyxcanary phrase", *filler)
    with ledger.write() as tx:
        ns = tx.namespace("a")
        assert ns is not None
        lexical.remove(tx.connection, [rows[300][0]])
        tx.connection.execute("DELETE FROM evidence WHERE row_id = ?", (rows[300][0],))
        tx.bump_generation(ns)
    ledger.writer.wal_checkpoint(mode=3)
    files = list(ledger.path.parent.glob("m.db*"))
    assert files
    assert not any(b"zyxcanari" in file.read_bytes() for file in files)
    assert found(ledger, lexical, "zyxcanary") == ([], [])


def test_nothing_of_an_undone_write_stays_in_memory(ledger: Ledger) -> None:
    lexical, resident = LexicalProjection(), ResidentRows()
    remember(ledger, lexical, "one apple")

    def undone() -> None:
        with ledger.write() as tx:
            ns = tx.namespace("a")
            assert ns is not None
            evidence.add(tx, ns, [CheckedDraft("two pears")])
            view = lexical.view(tx.connection, resident.get(tx.connection, 1))
            assert view.rows_with("pear").tolist() == [1]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        undone()
    remember(ledger, lexical, "three plums")
    assert found(ledger, lexical, "pears") == ([], [])
    assert found(ledger, lexical, "plums") == ([1], [])


def test_a_large_namespace_is_scored_from_the_file(ledger: Ledger) -> None:
    small = LexicalProjection(LexicalOptions(resident_rows=5))
    texts = [f"apple{n % 7} pear{n % 3} filler{n}" for n in range(60)]
    texts[40] = "pear1 pear1 pear1 pears of pear1"
    remember(ledger, small, *texts)
    store(ledger, ["apple3 past the mark", "nothing"])
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, 1)
        view = small.view(tx.connection, rows)
        assert [diagnostic.code for diagnostic in view.diagnostics] == ["lexical_stale"]
        assert view.rows_with("apple3").tolist() == [*range(3, 40, 7), *range(45, 60, 7), 60]
        assert view.rows_with("nowhere").tolist() == []
        scores = view.score(["apple3", "pear1"])
        resident = LexicalProjection().view(tx.connection, rows).score(["apple3", "pear1"])
    assert int(scores.turn.argmax()) == int(resident.turn.argmax())
    assert np.array_equal(scores.turn > 0, resident.turn > 0)
    assert np.array_equal(scores.window > 0, resident.window > 0)
    assert np.array_equal(scores.coverage, resident.coverage)
    assert scores.turn[40] > max(scores.turn[1], scores.turn[4])


def test_a_large_namespace_says_when_not_every_count_was_read(ledger: Ledger) -> None:
    lexical = LexicalProjection(LexicalOptions(resident_rows=1, candidate_rows=2))
    remember(ledger, lexical, "apple apple apple", "apple", "apple pear", "apple apple", "plum")
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, 1)
        view = lexical.view(tx.connection, rows)
        scores = view.score(["appl", "pear"])
        masked = view.score(["appl", "pear"], np.asarray([True, False, True, False, True]))
    (diagnostic,) = scores.diagnostics
    assert diagnostic.code == "candidate_cap_reached"
    assert diagnostic.details == {"matched": 4, "limit": 2}
    assert masked.diagnostics == ()
    assert masked.turn[1] == masked.turn[3] == 0
    assert masked.turn[0] > 0


def test_an_unindexed_large_namespace_is_analysed_in_memory(ledger: Ledger) -> None:
    lexical = LexicalProjection(LexicalOptions(resident_rows=2))
    store(ledger, ["apple", "pear", "plum", "apple"])
    assert found(ledger, lexical, "apples") == ([0, 3], ["lexical_stale"])
    with ledger.write() as tx:
        lexical.sync(tx.connection, 1)
    assert found(ledger, lexical, "apples") == ([0, 3], [])


def test_least_recently_used_terms_are_dropped(ledger: Ledger) -> None:
    lexical = LexicalProjection(LexicalOptions(cached_rows=3))
    for name in "abc":
        remember(ledger, lexical, "apple", "pear", namespace=name)
    for _ in range(2):
        for namespace_id in (1, 2, 3):
            assert found(ledger, lexical, "pear", namespace_id) == ([1], [])
            assert lexical.resident() == 2
    lexical.close()
    assert lexical.resident() == 0


def test_threads_share_one_projection(ledger: Ledger) -> None:
    lexical, resident = LexicalProjection(), ResidentRows()
    remember(ledger, lexical, "apple 0")
    wrong: list[object] = []

    def read() -> None:
        for _ in range(60):
            with ledger.read() as tx:
                rows = resident.get(tx.connection, 1)
                view = lexical.view(tx.connection, rows)
                if view.rows_with("appl").tolist() != list(range(len(rows))):
                    wrong.append(len(rows))
                if int((view.score(["appl", "7"]).turn > 0).sum()) != len(rows):
                    wrong.append(len(rows))

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for count in range(1, 60):
        remember(ledger, lexical, f"apple {count}")
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(found(ledger, lexical, "apple")[0]) == 60


@pytest.mark.parametrize(
    "name", ["max_query_terms", "resident_rows", "cached_rows", "candidate_rows"]
)
def test_options_are_checked(name: str) -> None:
    with pytest.raises(InputError):
        LexicalOptions(**{name: 0})  # type: ignore[arg-type]
