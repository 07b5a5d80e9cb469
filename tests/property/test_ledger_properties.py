"""Properties of the ledger: exact texts, round trips, tampering, gaps, purges."""

import hashlib
import json
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evicortex.errors import InvalidTextError
from evicortex.ledger import Ledger, LedgerOptions, audit, evidence, keys, purge, scrub
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.transfer import export, load
from evicortex.ledger.verify import verify

FAST = settings(max_examples=25, deadline=None)
OPTIONS = LedgerOptions(synchronous="NORMAL")
LAST = 253402300799999999
FIRST = -62135596800000000


class Ticking:
    def __init__(self):
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        self.moment += timedelta(seconds=1)
        return self.moment


@contextmanager
def opened():
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(Path(folder) / "a.db", clock=Ticking(), options=OPTIONS) as ledger,
    ):
        yield ledger


texts = st.text(max_size=60)
any_text = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)
names = st.none() | st.text(max_size=8)
plain = st.text(st.characters(codec="utf-8"), max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=6,
)
drafts = st.builds(
    CheckedDraft,
    content=texts,
    actor=names,
    role=names,
    session=names,
    source=names,
    external_id=st.none() | st.integers(0, 5).map(str),
    occurred_at=st.none() | st.integers(FIRST, LAST),
    authority=st.sampled_from(["user", "assistant", "system", "untrusted"]),
    metadata=st.dictionaries(plain, json_values, max_size=3),
)


def encodable(*values):
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@FAST
@given(st.lists(any_text, min_size=1, max_size=6))
def test_any_text_comes_back_exactly_or_is_refused(contents):
    with opened() as ledger:
        with ledger.write() as tx:
            ns = tx.namespace("alice", create=True)
            results = evidence.add(tx, ns, [CheckedDraft(c, actor=c, source=c) for c in contents])
        with ledger.read() as tx:
            stored = [item for _, item in evidence.scan(tx, ns)]
    good = [content for content in contents if encodable(content)]
    assert [(item.content, item.actor, item.source) for item in stored] == [(c,) * 3 for c in good]
    assert [item.digest for item in stored] == [
        hashlib.sha256(c.encode()).hexdigest() for c in good
    ]
    for content, result in zip(contents, results, strict=True):
        refused = isinstance(result, evidence.Rejected)
        assert refused != encodable(content)
        assert not refused or isinstance(result.error, InvalidTextError)


@FAST
@given(st.lists(st.lists(drafts, max_size=6), max_size=4))
def test_a_batch_does_what_single_adds_do(batches):
    """The outcome of each draft, and all that is stored, does not depend on the batching."""
    outcomes, contents = [], []
    for split in (False, True):
        with opened() as ledger:
            seen = []
            for batch in batches:
                for part in [[draft] for draft in batch] if split else [batch]:
                    with ledger.write() as tx:
                        ns = tx.namespace("alice", create=True)
                        seen.extend(evidence.add(tx, ns, part))
            outcomes.append([r if isinstance(r, evidence.Added) else str(r.error) for r in seen])
            with ledger.read() as tx:
                ns = tx.namespace("alice")
                items = [] if ns is None else [item for _, item in evidence.scan(tx, ns)]
            contents.append([(i.evidence_id, i.content, i.session, i.metadata) for i in items])
            assert verify(ledger).ok
    assert outcomes[0] == outcomes[1]
    assert contents[0] == contents[1]


@FAST
@given(st.lists(drafts, max_size=8), st.data())
def test_exports_round_trip_and_purges_verify(batch, data):
    with opened() as ledger, opened() as other:
        with ledger.write() as tx:
            ns = tx.namespace("alice", create=True)
            results = evidence.add(tx, ns, batch)
        rows = sorted({r.row_id for r in results if isinstance(r, evidence.Added)})
        gone = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
        with ledger.write() as tx:
            removed = purge.remove(tx, ns, gone)
        assert purge.finish(ledger)
        assert set(removed.row_ids) == set(gone)
        assert verify(ledger).ok
        with ledger.read() as tx:
            assert [row for row, _ in evidence.scan(tx, ns)] == [r for r in rows if r not in gone]
        one, two = ledger.path.parent / "x.jsonl", ledger.path.parent / "y.jsonl"
        report = export(ledger, "alice", one)
        assert load(other, "bob", one).created == report.evidence == len(rows) - len(gone)
        assert export(other, "bob", two) == report
        assert one.read_bytes() == two.read_bytes()
        assert verify(other).ok


COLUMNS = {
    "evidence": (
        "evidence_id", "content", "digest", "role", "source", "external_id", "occurred_at",
        "recorded_at", "authority", "metadata",
    ),
    "audit": ("event", "payload", "recorded_at", "previous_hash", "hash"),
    "sessions": ("name",),
    "actors": ("name",),
}  # fmt: skip


@FAST
@given(st.data())
def test_any_altered_or_removed_row_is_found(data):
    with opened() as ledger:
        for number in range(3):
            with ledger.write() as tx:
                ns = tx.namespace("alice", create=True)
                evidence.add(
                    tx,
                    ns,
                    [
                        CheckedDraft(
                            f"t{number}{n}",
                            f"a{n}",
                            "user",
                            f"s{number}",
                            "chat",
                            f"x{number}{n}",
                            n,
                        )
                        for n in range(3)
                    ],
                )
        table = data.draw(st.sampled_from(sorted(COLUMNS)))
        connection = apsw.Connection(str(ledger.path))
        where = {
            "evidence": "row_id = (SELECT row_id FROM evidence ORDER BY row_id LIMIT 1 OFFSET ?)",
            "audit": "entry_id = (SELECT entry_id FROM audit ORDER BY entry_id LIMIT 1 OFFSET ?)",
            "sessions": "session_id = ? + 1",
            "actors": "actor_id = ? + 1",
        }[table]
        row = (data.draw(st.integers(0, 2)),)
        if table in ("evidence", "audit") and data.draw(st.booleans()):
            connection.execute(f"DELETE FROM {table} WHERE {where}", row)
        else:
            column = data.draw(st.sampled_from(COLUMNS[table]))
            connection.execute(
                f"UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' "
                f"THEN {column} + 1 ELSE {column} || 'x' END WHERE {where}",
                row,
            )
        assert connection.total_changes() == 1
        connection.close()
        report = verify(ledger)
        assert not report.ok
        assert report.problems


@FAST
@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(), max_size=3)), max_size=8))
def test_the_chain_holds_every_note_in_order(events):
    with opened() as ledger:
        for event, items in events:
            with ledger.write() as tx:
                ns = tx.namespace("alice", create=True)
                audit.note(tx, ns, event, [[item] for item in items])
        with ledger.read() as tx:
            ns = tx.namespace("alice")
            if ns is None:
                return
            chain = list(audit.entries(tx, ns))
            assert audit.verify_chain(tx, ns) == []
    noted = [(event, item) for event, items in events for item in items]
    assert [(e.event, i[0]) for e in chain for i in json.loads(e.payload)[e.event]] == noted


def gap_by_hand(page, header):
    """Return the gap of one page, read as the file format says, one byte after another."""
    kind = page[header]
    if kind not in (2, 5, 10, 13):
        return 0, 0
    cells = page[header + 3] * 256 + page[header + 4]
    content = page[header + 5] * 256 + page[header + 6] or 65536
    start = header + (12 if kind in (2, 5) else 8) + 2 * cells
    return (start, content) if start <= content <= len(page) else (0, 0)


@FAST
@given(st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=6), st.booleans())
def test_gaps_are_those_of_the_file_format(heads, first):
    pages = np.full((len(heads), 1024), 9, dtype=np.uint8)
    for number, head in enumerate(heads):
        at = 100 if first and number == 0 else 0
        pages[number, at : at + 16] = np.frombuffer(head, dtype=np.uint8)
        pages[number, at] = (2, 5, 10, 13, 0, 1)[head[0] % 6]
        pages[number, at + 3] = head[3] % 2
        pages[number, at + 5] = head[5] % 5
    start, stop = scrub.gaps(pages, first=first)
    expected = [
        gap_by_hand(page.tolist(), 100 if first and number == 0 else 0)
        for number, page in enumerate(pages)
    ]
    assert list(zip(start.tolist(), stop.tolist(), strict=True)) == expected


@FAST
@given(st.integers(1, keys.MAX_NAMESPACES), st.integers(1, keys.MAX_POSITION))
def test_row_ids_hold_namespace_and_position(namespace_id, at):
    row = keys.row_id(namespace_id, at)
    lo, hi = keys.row_range(namespace_id)
    assert lo < row < hi
    assert 0 < row < 2**63
    assert (row - lo, keys.position(row)) == (at, at)
