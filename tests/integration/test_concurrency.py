"""Two programs write, a third reads; threads share one ledger: nothing is lost, nothing raises."""

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

from evicortex.ledger import Ledger, LedgerOptions, evidence
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.verify import verify

CHILD = Path(__file__).with_name("crash_child.py")


class SystemClock:
    def now(self):
        return datetime.now(UTC)


def counts(ledger):
    """Return the numbers of rows, of positions given out and of audit entries of one moment."""
    with ledger.read() as tx:
        ns = tx.namespace("shared")
        if ns is None:
            return 0, 0, 0
        rows = tx.connection.execute("SELECT count(*) FROM evidence").get
        entries = tx.connection.execute("SELECT count(*) FROM audit").get
        return rows, ns.next_position - 1, entries


def texts_of(ledger):
    with ledger.read() as tx:
        return [item.content for _, item in evidence.scan(tx, tx.namespace("shared"))]


def test_two_programs_write_a_thousand_each_while_another_reads(tmp_path):
    path = tmp_path / "memory.db"
    job = {"job": "add_many", "path": str(path), "writes": 1000, "synchronous": "NORMAL"}
    jobs = [json.dumps(job | {"seed": seed}) for seed in (1, 2)]
    Ledger.open(path, clock=SystemClock()).close()
    command = [sys.executable, "-W", "error", str(CHILD)]
    with (
        Ledger.open(path, clock=SystemClock(), read_only=True) as reader,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as one,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as two,
    ):
        for process, job in zip((one, two), jobs, strict=True):
            process.stdin.write(job + "\n")
            process.stdin.close()
        seen, reads = 0, 0
        while seen < 2000 and (one.poll() is None or two.poll() is None):
            rows, positions, entries = counts(reader)
            assert rows == positions == entries >= seen
            seen, reads = rows, reads + 1
        for process in (one, two):
            assert process.stdout.read().split()[-3:] == ["end", "dead", "0"]
            assert process.stderr.read() == ""
    assert reads > 3
    with Ledger.open(path, clock=SystemClock()) as ledger:
        texts = texts_of(ledger)
        assert sorted(texts) == sorted(f"{seed} {n}" for seed in (1, 2) for n in range(1000))
        for seed in ("1", "2"):
            own = [text for text in texts if text.split()[0] == seed]
            assert own == [f"{seed} {n}" for n in range(1000)]
        assert verify(ledger).ok


def test_threads_share_one_ledger(tmp_path):
    failures, done = [], threading.Event()
    options = LedgerOptions(synchronous="NORMAL", idle_readers=2)
    with Ledger.open(tmp_path / "memory.db", clock=SystemClock(), options=options) as ledger:

        def guarded(work, *values):
            try:
                work(*values)
            except BaseException as error:
                failures.append(error)
                raise

        def write(name):
            for number in range(100):
                with ledger.write() as tx:
                    ns = tx.namespace("shared", create=True)
                    evidence.add(tx, ns, [CheckedDraft(f"{name} {number}", session=name)])

        def read():
            seen = 0
            while not done.is_set():
                rows, positions, entries = counts(ledger)
                assert rows == positions == entries >= seen
                seen = rows

        writers = [threading.Thread(target=guarded, args=(write, f"w{n}")) for n in range(4)]
        readers = [threading.Thread(target=guarded, args=(read,)) for _ in range(3)]
        for thread in (*writers, *readers):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        for thread in readers:
            thread.join()
        assert failures == []
        texts = texts_of(ledger)
        assert sorted(texts) == sorted(f"w{n} {m}" for n in range(4) for m in range(100))
        assert verify(ledger).ok


def test_many_open_a_new_file_at_once(tmp_path):
    for round_ in range(5):
        path = tmp_path / f"memory{round_}.db"
        ready, failures = threading.Barrier(8), []

        def begin(number, path=path, ready=ready, failures=failures):
            ready.wait()
            try:
                with Ledger.open(path, clock=SystemClock()) as ledger, ledger.write() as tx:
                    ns = tx.namespace("shared", create=True)
                    evidence.add(tx, ns, [CheckedDraft(str(number))])
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        with Ledger.open(path, clock=SystemClock()) as ledger:
            assert sorted(texts_of(ledger)) == list("01234567")
            assert verify(ledger).ok
