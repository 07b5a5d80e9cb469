"""The literal search: what no index term can find is found where it stands."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from evicortex.errors import InputError
from evicortex.ledger import Ledger, LedgerOptions, evidence
from evicortex.ledger.evidence import CheckedDraft
from evicortex.projections.literal import LiteralHits, LiteralOptions, find, needles
from evicortex.projections.resident import Mask, ResidentRows


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(
        tmp_path / "m.db", clock=FixedClock(), options=LedgerOptions(synchronous="NORMAL")
    ) as opened:
        yield opened


def store(ledger: Ledger, texts: Sequence[str], namespace: str = "a") -> None:
    with ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        evidence.add(tx, ns, [CheckedDraft(text) for text in texts])


def search(
    ledger: Ledger,
    query: str,
    mask: Mask | None = None,
    options: LiteralOptions | None = None,
    namespace_id: int = 1,
) -> LiteralHits:
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, namespace_id)
        return find(tx.connection, rows, query, mask, options)


TEXTS = [
    "a * b",
    "i++ and C++",
    "To be, or not to be: that is the question",
    "we flew to Portugal",
    "we flew to PORTO",
    "NUL \x00 inside",
    "cafe\u0301 noir",
    "100% sure",
    "家族",
    "",
]


@pytest.mark.parametrize(
    ("query", "needle", "form", "rows"),
    [
        ("*", "*", "exact", [0]),
        ("++", "++", "exact", [1]),
        (" ++\n", "++", "exact", [1]),
        ("not to be", "not to be", "exact", [2]),
        ("TO BE, OR NOT", "TO BE, OR NOT", "caseless", [2]),
        ("ortug", "ortug", "exact", [3]),
        ("Port", "Port", "exact", [3]),
        ("porTO", "porTO", "caseless", [4]),
        ("\x00", "\x00", "exact", [5]),
        ("CAFÉ", "CAFÉ", "caseless", [6]),
        ("0% s", "0% s", "exact", [7]),
        ("族", "族", "exact", [8]),
        ("what is ++?", "++", "exact", [1]),
        ("who is the ortugal?", "ortugal", "exact", [3]),
        ("about “ortuga”", "ortuga", "exact", [3]),
        ("'flew'", "flew", "exact", [4, 3]),
        ("zzz", "", "exact", []),
        ("", "", "exact", []),
        ("\ud800", "", "exact", []),
        ("\ud800 ++", "++", "exact", [1]),
    ],
)
def test_found_where_it_stands(
    ledger: Ledger, query: str, needle: str, form: str, rows: list[int]
) -> None:
    store(ledger, ["++ * ortug elsewhere"], "other")
    store(ledger, TEXTS)
    hits = search(ledger, query, namespace_id=2)
    assert (hits.needle, hits.form, hits.rows.tolist()) == (needle, form, rows)
    assert hits.diagnostics == ()


@pytest.mark.parametrize("spread", [1, 100])
def test_only_allowed_rows_are_searched(ledger: Ledger, spread: int) -> None:
    store(ledger, [f"++ Word {n}" for n in range(3 * spread)])
    mask = np.zeros(3 * spread, dtype=np.bool_)
    mask[[0, 2 * spread]] = True
    assert search(ledger, "++", mask).rows.tolist() == [2 * spread, 0]
    assert search(ledger, "WORD", mask).rows.tolist() == [2 * spread, 0]
    assert search(ledger, "++", np.zeros_like(mask)).rows.tolist() == []


def test_the_cap_is_told_and_newest_texts_go_first(ledger: Ledger) -> None:
    store(ledger, [f"++ {n}" for n in range(10)])
    hits = search(ledger, "++", options=LiteralOptions(max_rows=3))
    assert hits.rows.tolist() == [9, 8, 7]
    (diagnostic,) = hits.diagnostics
    assert diagnostic.code == "literal_scan_capped"
    assert diagnostic.details == {"searched": 3, "rows": 10}
    by_bytes = search(ledger, "++", options=LiteralOptions(max_bytes=9))
    assert by_bytes.rows.tolist() == [9, 8]
    assert search(ledger, "++", options=LiteralOptions(max_bytes=1)).rows.tolist() == [9]


def test_an_empty_namespace(ledger: Ledger) -> None:
    assert search(ledger, "++", namespace_id=77).rows.tolist() == []


def test_a_query_of_100_kb(ledger: Ledger) -> None:
    text = "to be or not " * 8_000
    store(ledger, ["x", text])
    assert search(ledger, text).rows.tolist() == [1]


def test_needles_are_few_and_longest_first() -> None:
    assert needles("is 'xyz' the ab?") == ("is 'xyz' the ab?", "'xyz'", "xyz", "ab?", "ab")
    assert len(needles(" ".join(f"w{n}" for n in range(10_000)))) == 8
    assert needles('"to be"') == ('"to be"', "to be")


@pytest.mark.parametrize("name", ["max_rows", "max_bytes"])
def test_options_are_checked(name: str) -> None:
    with pytest.raises(InputError):
        LiteralOptions(**{name: 0})
