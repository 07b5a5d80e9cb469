"""After a purge its bytes are in no file: not in the database, the log, free pages or segments."""

import hashlib
import random
import re
from datetime import UTC, datetime, timedelta

import apsw
import numpy as np
import pytest

from evicortex.ledger import Ledger, LedgerOptions, claims, evidence, extractions, purge, transfer
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.purge import Selector
from evicortex.ledger.verify import verify
from evicortex.types import ClaimDraft, Diagnostic

MARK = re.compile(r"(?:canary|x|y|z)[a-v0-9]{16}", re.IGNORECASE)


class Ticking:
    def __init__(self):
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self):
        self.moment += timedelta(seconds=1)
        return self.moment


def test_sqlite_here_does_not_erase_by_itself(tmp_path):
    """The default of this build is off, so what is shown below is the ledger's own doing."""
    connection = apsw.Connection(str(tmp_path / "plain.db"))
    assert connection.pragma("secure_delete") == 0
    connection.close()


class Canaries:
    """Texts with unique words, half of them with a long common beginning."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def word(self):
        return self.random.choice(("canary", "x", "y", "z")) + "".join(
            self.random.choices("0123456789abcdefghijklmnopqrstuv", k=16)
        )

    def draft(self, number):
        length = self.random.choice((1, 1, 1, 3, 3, 12, 12, 40, 40, 300 if number % 10 else 2000))
        text = " ".join(self.word() for _ in range(length))
        return CheckedDraft(
            text,
            actor=f"actor{number % 5} {self.word()}" if number % 11 == 0 else f"actor{number % 5}",
            session=f"session{number % 37}",
            source=f"source{number % 3}",
            external_id=self.word() if number % 2 else None,
            metadata={"note": self.word()} if number % 7 == 0 else {},
        )


def words_of(draft):
    texts = (draft.content, draft.actor or "", draft.external_id or "", str(draft.metadata))
    return {match.lower() for text in texts for match in MARK.findall(text)}


def write(ledger, name, drafts):
    with ledger.write() as tx:
        ns = tx.namespace(name, create=True)
        added = evidence.add(tx, ns, drafts)
        tx.connection.executemany(
            "INSERT INTO lexical (rowid, namespace, terms) VALUES (?, ?, ?)",
            [
                (result.row_id, f"n{ns.namespace_id}", draft.content.lower())
                for result, draft in zip(added, drafts, strict=True)
            ],
        )
        for result, draft in zip(added[::10], drafts[::10], strict=True):
            item = evidence.fetch(tx, ns, [result.row_id])[result.row_id]
            word = MARK.findall(draft.content)[0]
            about = ClaimDraft(f"Ann {word}", f"likes {word}", word, span=(0, len(word)))
            (claim_id,) = claims.add(tx, ns, item, [about])
            if result.row_id % 3 == 0:
                claims.retract(tx, ns, claim_id, reason=f"because of {word}")
            extractions.add(
                tx,
                ns,
                item,
                extractor_id="test",
                extractor_revision="1",
                claim_ids=[claim_id],
                diagnostics=[Diagnostic("quote", f"quoted {word}")],
            )
    return {result.row_id: words_of(draft) for result, draft in zip(added, drafts, strict=True)}


def erase(ledger, name, selector):
    with ledger.write() as tx:
        ns = tx.namespace(name)
        rows = purge.select(tx, ns, selector)
        tx.connection.executemany("DELETE FROM lexical WHERE rowid = ?", [(row,) for row in rows])
        return purge.remove(tx, ns, rows).row_ids


def slots(windows):
    """Return a hash of 22 bits for each window of eight bytes (Fibonacci hashing)."""
    return (windows * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(42)


def fragments(folder, words):
    """Return those of ``words`` of whose random part ten characters in a row are in a file.

    Looked for are its first and its last ten, in any case, in UTF-8 and in UTF-16.
    """
    keys = {key.encode(): word for word in words for key in (word[-16:-6], word[-10:])}
    maybe = np.zeros(1 << 22, dtype=bool)
    maybe[slots(np.array([int.from_bytes(key[:8], "little") for key in keys], dtype="<u8"))] = True
    found = set()
    for file in folder.iterdir():
        data = file.read_bytes().lower()
        for view in (data, data[::2], data[1::2]):
            for shift in range(min(8, len(view))):
                count = (len(view) - shift) // 8
                windows = np.frombuffer(view, dtype="<u8", count=count, offset=shift)
                for at in np.flatnonzero(maybe[slots(windows)]).tolist():
                    start = shift + 8 * at
                    found.add(keys.get(view[start : start + 10]))
    return found - {None}


def in_all(texts):
    return set().union(*texts)


@pytest.mark.parametrize("seed", [1, 3])
def test_purged_words_are_in_no_file(tmp_path, seed):
    canaries = Canaries(seed)
    texts = {"alice": {}, "bob": {}}
    options = LedgerOptions(synchronous="NORMAL")
    with Ledger.open(tmp_path / "memory.db", clock=Ticking(), options=options) as ledger:
        for batch in range(24):
            name = ("alice", "bob", "alice")[batch % 3]
            drafts = [canaries.draft(batch * 50 + number) for number in range(50)]
            if batch % 5 == 0:
                drafts = [
                    canaries.draft(number)._replace(content=canaries.word()) for number in range(50)
                ]
            texts[name] |= write(ledger, name, drafts)
        shared = CheckedDraft(f"both say {canaries.word()}", session="session3")
        texts["alice"] |= write(ledger, "alice", [shared])
        texts["bob"] |= write(ledger, "bob", [shared])
        gone = set()
        for selector in (
            Selector(session="session3"),
            Selector(actor="actor2"),
            Selector(session="session11"),
            Selector(source="source1"),
        ):
            for row in erase(ledger, "alice", selector):
                gone |= texts["alice"].pop(row)
            assert purge.finish(ledger)
            kept = in_all(texts["alice"].values()) | in_all(texts["bob"].values())
            assert fragments(tmp_path, gone - kept) == set()
        assert len(gone) > 3000
        texts["alice"] |= write(ledger, "alice", [canaries.draft(n) for n in range(50)])
        kept = in_all(texts["alice"].values()) | in_all(texts["bob"].values())
        assert fragments(tmp_path, gone - kept) == set()
        assert words_of(shared) <= kept
        assert fragments(tmp_path, kept) == kept
        report = transfer.export(ledger, "alice", tmp_path / "export.jsonl")
        assert report.evidence == len(texts["alice"])
        assert fragments(tmp_path, gone - kept) == set()
        assert verify(ledger).ok

        for row in erase(ledger, "alice", Selector(everything=True)):
            gone |= texts["alice"].pop(row)
        assert purge.finish(ledger)
        (tmp_path / "export.jsonl").unlink()
        assert texts["alice"] == {}
        assert fragments(tmp_path, gone - in_all(texts["bob"].values())) == set()
        assert verify(ledger).ok
    kept = in_all(texts["bob"].values())
    assert fragments(tmp_path, gone - kept) == set()
    assert fragments(tmp_path, kept) == kept


def test_the_search_for_bytes_finds_what_is_there(tmp_path):
    (tmp_path / "a").write_bytes(b"\0\1canary0123456789abcdef\2")
    (tmp_path / "b").write_bytes("\u2603x0123456789klmnop".encode("utf-16-le"))
    (tmp_path / "c").write_bytes(b"\7" + "y0123456789qrstuv".encode("utf-16-be"))
    (tmp_path / "d").write_bytes(b"only the tail: ZZZ456789ABQRST")
    (tmp_path / "e").write_bytes(b"only the head: Z9876543210")
    words = {
        "canary0123456789abcdef",
        "x0123456789klmnop",
        "y0123456789qrstuv",
        "z0123456789abqrst",
        "z9876543210aaaaaa",
        "zffffffffffffffff",
    }
    assert fragments(tmp_path, words) == words - {"zffffffffffffffff"}


def test_a_reader_with_an_old_snapshot_only_delays_it(tmp_path):
    canaries = Canaries(9)
    with Ledger.open(
        tmp_path / "memory.db", clock=Ticking(), options=LedgerOptions(checkpoint_timeout=0)
    ) as ledger:
        texts = write(ledger, "alice", [canaries.draft(n) for n in range(200)])
        words = in_all(texts.values())
        with ledger.read() as old:
            erase(ledger, "alice", Selector(everything=True))
            assert not purge.finish(ledger)
            assert [n.code for n in verify(ledger).notices] == ["purge.pending"]
            assert fragments(tmp_path, words) == words
            assert old.connection.execute("SELECT count(*) FROM evidence").get == 200
        write(ledger, "bob", [CheckedDraft("anything xaaaaaaaaaaaaaaaa")])
        assert verify(ledger).notices == ()
        assert fragments(tmp_path, words) == set()


def test_pages_cached_by_another_writer_bring_nothing_back(tmp_path):
    canaries = Canaries(4)
    path = tmp_path / "memory.db"
    with (
        Ledger.open(path, clock=Ticking()) as one,
        Ledger.open(path, clock=Ticking()) as two,
    ):
        texts = {}
        for batch in range(12):
            drafts = [canaries.draft(batch * 50 + number) for number in range(50)]
            texts |= write((one, two)[batch % 2], ("alice", "bob")[batch % 3 == 0], drafts)
        with one.write() as tx, two.read() as reading:
            for connection in (tx.connection, reading.connection):
                connection.execute("SELECT sum(length(content)) FROM evidence").fetchall()
        gone = in_all(texts[row] for row in erase(one, "alice", Selector(everything=True)))
        assert purge.finish(one)
        assert fragments(tmp_path, gone) == set()
        for batch in range(6):
            drafts = [canaries.draft(batch * 50 + number) for number in range(50)]
            write((one, two)[batch % 2], "carol", drafts)
        assert fragments(tmp_path, gone) == set()
    assert fragments(tmp_path, gone) == set()


@pytest.mark.parametrize("table", ["kept", "dropped"])
def test_samples_of_analyze_go_too(tmp_path, table):
    canaries = Canaries(5)
    path = tmp_path / "memory.db"
    with Ledger.open(path, clock=Ticking(), options=LedgerOptions(synchronous="NORMAL")) as ledger:
        words = in_all(write(ledger, "alice", [canaries.draft(n) for n in range(100)]).values())
    connection = apsw.Connection(str(path))
    connection.execute("ANALYZE")
    assert connection.execute("SELECT count(*) FROM sqlite_stat4").get > 100
    if table == "dropped":
        connection.pragma("secure_delete", True)
        connection.execute("DROP TABLE sqlite_stat4")
    connection.close()
    with Ledger.open(path, clock=Ticking()) as ledger:
        erase(ledger, "alice", Selector(everything=True))
        assert purge.finish(ledger)
        assert fragments(tmp_path, words) == set()
        assert verify(ledger).ok


def test_digests_are_all_that_stays(tmp_path):
    text = "xaaaaaaaaaaaaaaaa only once"
    with Ledger.open(tmp_path / "memory.db", clock=Ticking()) as ledger:
        write(ledger, "alice", [CheckedDraft(text)])
        erase(ledger, "alice", Selector(everything=True))
        assert purge.finish(ledger)
    data = (tmp_path / "memory.db").read_bytes()
    assert hashlib.sha256(text.encode()).hexdigest().encode() in data
    assert b"aaaaaaaaaaaaaaaa" not in data
