"""``kill -9`` at any moment: what was acknowledged is there, a purge is whole or undone."""

import json
import os
import random
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from evicortex.ledger import Ledger, evidence
from evicortex.ledger.evidence import CheckedDraft
from evicortex.ledger.verify import verify

CHILD = Path(__file__).with_name("crash_child.py")


class SystemClock:
    def now(self):
        return datetime.now(UTC)


class Children:
    """Starts jobs in processes of their own and reads what they say."""

    def __init__(self, process):
        self._process = process

    def start(self, **job):
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        word, pid = self.read()
        assert word == "pid"
        return int(pid)

    def read(self):
        line = self._process.stdout.readline()
        assert line, "the starter of the children has died"
        return line.split()


@contextmanager
def children():
    command = [sys.executable, "-W", "error", str(CHILD)]
    # No threads of a numerical library, since the children are forked.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield Children(process)
        process.stdin.close()


def lines_until_death(child):
    """Yield what a job still says; its exit code comes last."""
    while True:
        words = child.read()
        if words[0] == "dead":
            yield "dead", int(words[1])
            return
        yield words[0], words[1:]


def stored(ledger):
    with ledger.read() as tx:
        ns = tx.namespace("alice")
        return {} if ns is None else {e.evidence_id: e for _, e in evidence.scan(tx, ns)}


def test_every_acknowledged_write_survives_fifty_kills(tmp_path):
    path = tmp_path / "memory.db"
    chance = random.Random(2026)
    acknowledged = {}
    killed = 0
    with children() as child:
        for seed in range(50):
            mode = "steps" if seed % 3 == 0 else "signal"
            enough = chance.randrange(1, 7)
            pid = child.start(job="write", path=str(path), seed=seed, mode=mode, writes=400)
            heard = 0
            for word, rest in lines_until_death(child):
                if word == "ack":
                    acknowledged |= (item.split(":") for item in rest)
                    heard += 1
                    if mode == "signal" and heard == enough:
                        os.kill(pid, signal.SIGKILL)
                elif word == "dead":
                    assert rest in (0, -signal.SIGKILL)
                    killed += rest != 0
            with Ledger.open(path, clock=SystemClock()) as ledger:
                found = stored(ledger)
                assert acknowledged.items() <= {e: found[e].digest for e in found}.items()
                report = verify(ledger)
                assert report.problems == ()
                assert report.checked["evidence"] == len(found)
    assert killed == 50
    assert len(acknowledged) > 150


def canaries(folder):
    data = b"".join(file.read_bytes() for file in folder.iterdir())
    return set(re.findall(rb"canary[0-9a-f]{16}", data))


def fill(path, chance, session):
    texts = [
        " ".join(f"canary{chance.getrandbits(64):016x}" for _ in range(length))
        for length in (1, 3, 30, 300, 1200)
    ]
    with Ledger.open(path, clock=SystemClock()) as ledger, ledger.write() as tx:
        ns = tx.namespace("alice", create=True)
        for name, backwards in ((session, 1), (f"kept {session}", -1)):
            drafts = [CheckedDraft(text[::backwards], session=name) for text in texts]
            for result, draft in zip(evidence.add(tx, ns, drafts), drafts, strict=True):
                tx.connection.execute(
                    "INSERT INTO lexical (rowid, namespace, terms) VALUES (?, 'n1', ?)",
                    (result.row_id, draft.content),
                )
    return set(re.findall(rb"canary[0-9a-f]{16}", " ".join(texts).encode()))


MODES = ("signal", "steps", "steps", "commit", "committed", "scrub")


def test_a_purge_that_is_killed_is_whole_or_undone(tmp_path):
    path = tmp_path / "memory.db"
    chance = random.Random(7)
    outcomes = {}
    with children() as child:
        for seed in range(36):
            mode = MODES[seed % len(MODES)]
            session = f"s{seed}"
            secret = fill(path, chance, session)
            pid = child.start(job="erase", path=str(path), seed=seed, mode=mode, session=session)
            said = []
            for word, rest in lines_until_death(child):
                said.append(word)
                if word == "purging" and mode == "signal":
                    os.kill(pid, signal.SIGKILL)
                elif word == "dead":
                    assert rest in (0, -signal.SIGKILL)
            with Ledger.open(path, clock=SystemClock()) as ledger:
                report = verify(ledger)
                assert report.problems == report.notices == ()
                left = [e for e in stored(ledger).values() if e.session == session]
                kept = [e for e in stored(ledger).values() if e.session == f"kept {session}"]
            assert len(left) in (0, 5)
            assert len(kept) == 5
            if "committed" in said:
                assert left == []
            found = canaries(tmp_path)
            assert secret.isdisjoint(found) if not left else secret <= found
            outcomes.setdefault(mode, set()).add("whole" if not left else "undone")
    assert outcomes["commit"] == {"undone"}
    assert outcomes["committed"] == outcomes["scrub"] == {"whole"}
    assert "undone" in outcomes["steps"]
