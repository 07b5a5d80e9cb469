"""Whatever is asked: nothing raises, nothing leaks, and the literal is found where it stands."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicortex.ledger import Ledger, LedgerOptions, evidence
from evicortex.ledger.evidence import CheckedDraft
from evicortex.projections.lexical import LexicalOptions, LexicalProjection
from evicortex.projections.literal import find
from evicortex.projections.resident import ResidentRows
from evicortex.text import content_terms

NOISE = st.text(
    st.sampled_from(list("aAb1 \"'*+-^(){}:@#.\x00\n，。東京กีहि\u0301é😀\u200d")), max_size=40
)
TEXTS = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), NOISE)
QUERIES = st.one_of(st.text(st.characters(), max_size=60), NOISE)
SYNTAX = st.sampled_from(
    ["AND", "OR", "NOT", "NEAR(", ")", '"', "*", "^", "terms:", "namespace:", "n1"]
)
HOSTILE = st.lists(st.one_of(SYNTAX, QUERIES), max_size=6).map(" ".join)
_numbers = count()


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    path: Path = tmp_path_factory.mktemp("lexical") / "m.db"
    with Ledger.open(
        path, clock=FixedClock(), options=LedgerOptions(synchronous="NORMAL")
    ) as opened:
        yield opened


def store(ledger: Ledger, texts: list[str]) -> int:
    with ledger.write() as tx:
        ns = tx.namespace(f"n{next(_numbers)}", create=True)
        assert ns is not None
        evidence.add(tx, ns, [CheckedDraft(text) for text in texts])
    with ledger.write() as tx:
        LexicalProjection().sync(tx.connection, ns.namespace_id)
    return ns.namespace_id


@given(st.lists(TEXTS, min_size=1, max_size=5), HOSTILE, st.sampled_from([1, 1_000]))
def test_no_query_raises_or_scores_a_row_without_its_terms(
    ledger: Ledger, texts: list[str], query: str, cap: int
) -> None:
    namespace_id = store(ledger, texts)
    wanted = content_terms(query)
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, namespace_id)
        view = LexicalProjection(LexicalOptions(resident_rows=cap)).view(tx.connection, rows)
        scores = view.score(wanted)
        hits = find(tx.connection, rows, query)
    holding = [bool(set(wanted) & set(content_terms(text))) for text in texts]
    assert (scores.turn > 0).tolist() == holding
    assert (scores.coverage > 0).tolist() == holding
    assert bool(scores.window.any()) == bool(scores.session.any()) == any(holding)
    assert all(np.isfinite(getattr(scores, n)).all() for n in ("turn", "window", "session"))
    assert all(hits.needle in texts[row] for row in hits.rows if hits.form == "exact")


@given(st.lists(TEXTS, min_size=1, max_size=5), st.data())
def test_the_literal_is_found_where_it_stands(
    ledger: Ledger, texts: list[str], data: st.DataObject
) -> None:
    namespace_id = store(ledger, texts)
    row = data.draw(st.integers(0, len(texts) - 1))
    start = data.draw(st.integers(0, len(texts[row])))
    query = texts[row][start : data.draw(st.integers(start, len(texts[row])))]
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, namespace_id)
        hits = find(tx.connection, rows, query)
    if query.strip():
        assert row in hits.rows
        assert hits.form == "exact"
        assert hits.rows.tolist() == [
            at for at in reversed(range(len(texts))) if query.strip() in texts[at]
        ]
    else:
        assert not len(hits.rows)


@given(st.lists(TEXTS, min_size=1, max_size=4), st.data())
def test_a_whole_text_finds_itself(ledger: Ledger, texts: list[str], data: st.DataObject) -> None:
    namespace_id = store(ledger, texts)
    text = data.draw(st.sampled_from(texts))
    with ledger.read() as tx:
        rows = ResidentRows().get(tx.connection, namespace_id)
        scores = LexicalProjection().view(tx.connection, rows).score(content_terms(text))
    if content_terms(text):
        assert scores.coverage[texts.index(text)] == pytest.approx(1)
