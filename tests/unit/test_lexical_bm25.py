"""BM25 over turns, windows and sessions against a plain-Python implementation."""

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from evicortex.errors import InputError
from evicortex.ledger import Ledger, LedgerOptions, evidence
from evicortex.ledger.evidence import CheckedDraft
from evicortex.projections.bm25 import Bm25Options, idf
from evicortex.projections.lexical import LexicalOptions, LexicalProjection, LexicalScores
from evicortex.projections.resident import Mask, NamespaceRows, ResidentRows, RowFilter
from evicortex.text import content_terms
from evicortex.types import POSITION_BITS

VOCABULARY = [f"{stem}{n}" for n in range(40) for stem in ("alpha", "beta", "gamma")]


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


def write(
    ledger: Ledger, lexical: LexicalProjection, namespace: str, drafts: Sequence[CheckedDraft]
) -> int:
    """Store and index drafts; return the namespace's id."""
    with ledger.write() as tx:
        ns = tx.namespace(namespace, create=True)
        assert ns is not None
        evidence.add(tx, ns, drafts)
    with ledger.write() as tx:
        lexical.sync(tx.connection, ns.namespace_id)
    return ns.namespace_id


def conversation(seed: int, count: int, sessions: int = 7) -> list[CheckedDraft]:
    chance = random.Random(seed)
    return [
        CheckedDraft(
            " ".join(chance.choice(VOCABULARY) for _ in range(chance.randrange(0, 12))),
            actor=chance.choice("ab"),
            session=f"s{chance.randrange(sessions)}",
            occurred_at=chance.randrange(1000),
        )
        for _ in range(count)
    ]


class Naive(NamedTuple):
    turn: list[float]
    window: list[float]
    session: list[float]
    coverage: list[float]


def sides(texts: Sequence[str], place: int, options: Bm25Options) -> list[int]:
    """Return the places of the window round a place of one thread, by definition."""
    inside = [place]
    for step in (-1, 1):
        held = 0
        for distance in range(1, options.window_turns + 1):
            other = place + step * distance
            full = options.window_tokens is not None and held >= options.window_tokens
            if not 0 <= other < len(texts) or full:
                break
            inside.append(other)
            held += max(1, -(-len(texts[other].encode()) // 4))
    return inside


def bm25(
    documents: Sequence[Counter[str]], query: Sequence[str], options: Bm25Options
) -> list[float]:
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths) if sum(lengths) else 1.0
    scores = [0.0] * len(documents)
    for term in dict.fromkeys(query):
        weight = idf(len(documents), sum(term in document for document in documents))
        for at, document in enumerate(documents):
            if term in document:
                norm = options.k1 * (1 - options.b + options.b * lengths[at] / mean)
                scores[at] += weight * document[term] * (options.k1 + 1) / (document[term] + norm)
    return scores


def naive(
    drafts: Sequence[CheckedDraft],
    allowed: Sequence[bool],
    query: Sequence[str],
    options: Bm25Options,
) -> Naive:
    """Score with nothing but dictionaries, as if only the allowed rows existed."""
    threads: dict[str | None, list[int]] = {}
    for row, draft in enumerate(drafts):
        if allowed[row]:
            threads.setdefault(draft.session, []).append(row)
    order = [row for rows in threads.values() for row in rows]
    terms = {row: Counter(content_terms(drafts[row].content)) for row in order}
    windows: dict[int, Counter[str]] = {}
    for rows in threads.values():
        texts = [drafts[row].content for row in rows]
        for place, row in enumerate(rows):
            windows[row] = Counter()
            for other in sides(texts, place, options):
                windows[row].update(terms[rows[other]])
    whole = [sum((terms[row] for row in rows), Counter()) for rows in threads.values()]
    by_thread = dict(zip(threads, bm25(whole, query, options), strict=True))
    turn = dict(zip(order, bm25([terms[row] for row in order], query, options), strict=True))
    window = dict(zip(order, bm25([windows[row] for row in order], query, options), strict=True))
    unique = list(dict.fromkeys(query))
    weights = {t: idf(len(order), sum(t in terms[row] for row in order)) for t in unique}
    mass = sum(weights.values())
    return Naive(
        [turn.get(row, 0.0) for row in range(len(drafts))],
        [window.get(row, 0.0) for row in range(len(drafts))],
        [by_thread[d.session] if allowed[row] else 0.0 for row, d in enumerate(drafts)],
        [
            sum(w for t, w in weights.items() if row in terms and t in terms[row]) / mass
            for row in range(len(drafts))
        ],
    )


def scored(
    ledger: Ledger,
    lexical: LexicalProjection,
    namespace_id: int,
    query: Sequence[str],
    mask: Mask | RowFilter | None = None,
) -> tuple[NamespaceRows, LexicalScores]:
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, namespace_id)
        if isinstance(mask, RowFilter):
            mask = mask.mask(rows)
        return rows, lexical.view(tx.connection, rows).score(query, mask)


def same(found: LexicalScores, expected: Naive) -> None:
    for name in Naive._fields:
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=2e-6, atol=1e-6, err_msg=name
        )


def identical(one: LexicalScores, other: LexicalScores) -> None:
    for name in Naive._fields:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


OPTIONS = [
    Bm25Options(),
    Bm25Options(k1=0.4, b=0.0, window_turns=0),
    Bm25Options(k1=2.0, b=0.99, window_turns=5),
    Bm25Options(window_turns=50, window_tokens=30),
    Bm25Options(window_turns=3, window_tokens=60),
    Bm25Options(window_turns=1, window_tokens=1),
]
QUERIES = [
    ["alpha1", "beta2", "gamma3", "alpha4", "beta5"],
    ["alpha1", "alpha1"],
    ["alpha", "1", "beta"],
    ["nowhere", "alpha7"],
    ["nowhere"],
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 60, 300])
def test_scores_are_those_of_the_definition(
    ledger: Ledger, options: Bm25Options, count: int
) -> None:
    lexical = LexicalProjection(LexicalOptions(bm25=options))
    drafts = conversation(count, count)
    namespace_id = write(ledger, lexical, "a", drafts)
    for query in QUERIES:
        same(
            scored(ledger, lexical, namespace_id, query)[1],
            naive(drafts, [True] * count, query, options),
        )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.95])
def test_masked_scores_are_those_of_the_allowed_rows_alone(
    ledger: Ledger, options: Bm25Options, share: float
) -> None:
    lexical = LexicalProjection(LexicalOptions(bm25=options))
    drafts = conversation(3, 200)
    namespace_id = write(ledger, lexical, "a", drafts)
    chance = random.Random(9)
    allowed = [chance.random() < share for _ in drafts]
    mask = np.asarray(allowed)
    for query in QUERIES[:3]:
        _, found = scored(ledger, lexical, namespace_id, query, mask)
        if not any(allowed):
            assert not found.turn.any()
            assert not found.window.any()
            continue
        same(found, naive(drafts, allowed, query, options))


def test_a_masked_score_equals_bit_for_bit_that_of_a_store_with_nothing_else(
    ledger: Ledger,
) -> None:
    lexical = LexicalProjection()
    drafts = conversation(4, 300)
    kept = [draft for draft in drafts if draft.occurred_at is not None and draft.occurred_at <= 500]
    whole = write(ledger, lexical, "whole", drafts)
    part = write(ledger, lexical, "part", kept)
    for query in QUERIES:
        rows, masked = scored(ledger, lexical, whole, query, RowFilter(as_of=500))
        _, alone = scored(ledger, lexical, part, query)
        at = rows.effective_us <= 500
        for name in Naive._fields:
            assert np.array_equal(getattr(masked, name)[at], getattr(alone, name)), name
            assert not getattr(masked, name)[~at].any()


def test_known_at_replays_an_earlier_recall_exactly(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    earlier = {}
    for step in range(5):
        namespace_id = write(ledger, lexical, "a", conversation(step, 60))
        rows, earlier[step] = scored(ledger, lexical, namespace_id, QUERIES[0])
        known_at = int(rows.recorded_us[-1])
        for past in range(step + 1):
            count = 60 * (past + 1)
            moment = int(rows.recorded_us[count - 1])
            assert moment <= known_at
            _, replayed = scored(
                ledger, lexical, namespace_id, QUERIES[0], RowFilter(known_at=moment)
            )
            for name in Naive._fields:
                assert np.array_equal(getattr(replayed, name)[:count], getattr(earlier[past], name))


def test_other_namespaces_change_no_bit(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    mine = write(ledger, lexical, "mine", conversation(5, 150))
    before = {tuple(q): scored(ledger, lexical, mine, q)[1] for q in QUERIES}
    other = write(ledger, lexical, "other", conversation(6, 900))
    for query, expected in before.items():
        identical(scored(ledger, lexical, mine, query)[1], expected)
        identical(scored(ledger, LexicalProjection(), mine, query)[1], expected)
    with ledger.write() as tx:
        lexical.clear(tx.connection, other)
    for query, expected in before.items():
        identical(scored(ledger, LexicalProjection(), mine, query)[1], expected)


def test_rows_added_one_by_one_score_as_if_loaded_at_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evicortex.projections import postings

    monkeypatch.setattr(postings, "_TAIL_ROWS", 7)
    lexical = LexicalProjection()
    drafts = conversation(7, 60)
    for count, draft in enumerate(drafts, start=1):
        namespace_id = write(ledger, lexical, "a", [draft])
        _, grown = scored(ledger, lexical, namespace_id, QUERIES[0])
        if count % 9 == 0:
            identical(grown, scored(ledger, LexicalProjection(), namespace_id, QUERIES[0])[1])
            same(grown, naive(drafts[:count], [True] * count, QUERIES[0], Bm25Options()))


def test_scores_after_a_removal_are_those_of_the_rest(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    drafts = conversation(8, 120)
    namespace_id = write(ledger, lexical, "a", drafts)
    scored(ledger, lexical, namespace_id, QUERIES[0])
    gone = [(namespace_id << POSITION_BITS) + position for position in (1, 50, 51, 120)]
    with ledger.write() as tx:
        ns = tx.namespace("a")
        assert ns is not None
        lexical.remove(tx.connection, gone)
        tx.connection.executemany(
            "DELETE FROM evidence WHERE row_id = ?", [(row_id,) for row_id in gone]
        )
        tx.bump_generation(ns)
    rest = [draft for at, draft in enumerate(drafts, start=1) if at not in (1, 50, 51, 120)]
    rows, found = scored(ledger, lexical, namespace_id, QUERIES[0])
    assert len(rows) == 116
    same(found, naive(rest, [True] * 116, QUERIES[0], Bm25Options()))
    namespace_id = write(ledger, lexical, "a", [drafts[0]])
    _, found = scored(ledger, lexical, namespace_id, QUERIES[0])
    same(found, naive([*rest, drafts[0]], [True] * 117, QUERIES[0], Bm25Options()))


def test_an_older_snapshot_scores_its_own_rows(ledger: Ledger) -> None:
    lexical, resident = LexicalProjection(), ResidentRows()
    drafts = conversation(9, 80)
    namespace_id = write(ledger, lexical, "a", drafts[:50])
    with ledger.read() as old:
        write(ledger, lexical, "a", drafts[50:])
        with ledger.read() as new:
            rows = resident.get(new.connection, namespace_id)
            same(
                lexical.view(new.connection, rows).score(QUERIES[0]),
                naive(drafts, [True] * 80, QUERIES[0], Bm25Options()),
            )
        rows = resident.get(old.connection, namespace_id)
        same(
            lexical.view(old.connection, rows).score(QUERIES[0]),
            naive(drafts[:50], [True] * 50, QUERIES[0], Bm25Options()),
        )


def test_a_small_namespace_beside_a_large_one_gets_its_three_documents(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    large = [CheckedDraft(f"the quarterly budget number {n}") for n in range(20_000)]
    for start in range(0, len(large), 5_000):
        write(ledger, lexical, "large", large[start : start + 5_000])
    texts = ["our budget is ten", "nothing here", "the budget again", "quarterly budget talk"]
    small = write(ledger, lexical, "small", [CheckedDraft(text) for text in texts])
    _, found = scored(ledger, lexical, small, content_terms("quarterly budget"))
    assert np.flatnonzero(found.turn).tolist() == [0, 2, 3]
    assert int(found.turn.argmax()) == 3
    assert found.coverage[3] == 1


def test_weights_and_coverage(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    namespace_id = write(ledger, lexical, "a", [CheckedDraft("red"), CheckedDraft("red blue")])
    _, found = scored(ledger, lexical, namespace_id, ["red", "blue", "green"])
    assert found.idf == {"red": idf(2, 2), "blue": idf(2, 1), "green": idf(2, 0)}
    assert math.isclose(found.idf["green"], math.log(6))
    total = sum(found.idf.values())
    np.testing.assert_allclose(
        found.coverage, [found.idf["red"] / total, 1 - found.idf["green"] / total], rtol=1e-6
    )


def test_a_query_without_terms_scores_nothing(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    namespace_id = write(ledger, lexical, "a", conversation(1, 5))
    _, found = scored(ledger, lexical, namespace_id, [])
    assert not any(getattr(found, name).any() for name in Naive._fields)


def test_an_empty_namespace_has_no_scores(ledger: Ledger) -> None:
    lexical = LexicalProjection()
    _, found = scored(ledger, lexical, 5, ["x"])
    assert len(found.turn) == len(found.window) == len(found.session) == len(found.coverage) == 0


@pytest.mark.parametrize(
    "wrong",
    [{"k1": 0.0}, {"b": 1.0}, {"b": -0.1}, {"window_turns": -1}, {"window_tokens": 0}],
)
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        replace(Bm25Options(), **wrong)  # type: ignore[arg-type]
