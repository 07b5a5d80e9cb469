"""Several processes on one file: writers, a reader, kills at random moments, purges cut short."""

import contextlib
import os
import random
import subprocess
import sys

from evicortex import EviCortex, EvidenceDraft
from evicortex.types import ClaimStatus

HEAD = "import sys; from evicortex import EviCortex, ClaimDraft, EvidenceDraft\n"


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


WRITER = """
path, who = sys.argv[1:]
with EviCortex.open(path, embedder=None) as cortex:
    print("ready", flush=True);
    for start in range(0, 1000, 25):
        if start % 100:
            cortex.remember_many("shared", [
                EvidenceDraft(f"note {who} {n}", external_id=f"{who}-{n}", actor=who)
                for n in range(start, start + 25)])
        else:
            for n in range(start, start + 25):
                cortex.remember("shared", f"note {who} {n}", external_id=f"{who}-{n}", actor=who,
                    claims=[ClaimDraft(who, "counts", str(n), cardinality="single")])
print("done", flush=True)
"""

READER = """
path, = sys.argv[1:]
seen = 0
with EviCortex.open(path, embedder=None, read_only=True) as cortex:
    while seen < 2000:
        count = cortex.stats("shared").evidence
        assert count >= seen, (count, seen)
        seen = count
        hits = cortex.search("shared", "note", limit=5, include_superseded=True).hits
        assert len(hits) >= min(5, count), (len(hits), count)
        assert cortex.recall("shared", "note", budget_tokens=64).token_count <= 64
    assert cortex.verify().ok
print("done", flush=True)
"""


def test_two_writers_and_a_reader_lose_nothing_and_raise_nothing(tmp_path):
    path = tmp_path / "m.db"
    EviCortex.open(path, embedder=None).close()
    workers = [start(WRITER, path, "left"), start(WRITER, path, "right"), start(READER, path)]
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert (worker.returncode, err) == (0, "")
        assert out.split()[-1] == "done"
    with EviCortex.open(path, embedder=None) as cortex:
        assert cortex.stats("shared").evidence == 2_000
        for who in ("left", "right"):
            hits = cortex.search(
                "shared", "note", actors=[who], limit=10_000, include_superseded=True
            ).hits
            assert {hit.evidence.external_id for hit in hits} == {
                f"{who}-{n}" for n in range(1_000)
            }
            (current,) = cortex.claims("shared", subject=who)
            assert current.status is ClaimStatus.HELD
            assert current.object == "924"
        report = cortex.verify()
        assert report.ok
        assert report.notices == ()


KILLED = """
path, round = sys.argv[1:]
with EviCortex.open(path, embedder=None) as cortex:
    n = 0
    while True:
        key = f"{round}-{n}"
        cortex.remember("ns", f"canary{round}x{n} text", external_id=key,
            claims=[ClaimDraft("c", "has", key)])
        print(key, flush=True)
        n += 1
"""


def test_every_acknowledged_write_survives_a_kill(tmp_path):
    path = tmp_path / "m.db"
    chance = random.Random(7)
    acknowledged = []
    for number in range(4):
        worker = start(KILLED, path, number)
        for _ in range(chance.randint(1, 25)):
            acknowledged.append(worker.stdout.readline().strip())
        worker.kill()
        rest, _ = worker.communicate()
        acknowledged += rest.split("\n")[:-1]
        with EviCortex.open(path, embedder=None) as cortex:
            assert cortex.verify().ok
            assert cortex.verify().problems == ()
    with EviCortex.open(path, embedder=None) as cortex:
        hits = cortex.search("ns", "text", limit=10_000).hits
        stored = {hit.evidence.external_id for hit in hits}
        assert set(acknowledged) <= stored
        assert len(stored) == cortex.stats("ns").evidence <= len(acknowledged) + 4
        assert {claim.object for claim in cortex.claims("ns")} == stored
        cortex.remember("ns", "one more")
        assert cortex.verify().notices == ()


PURGER = """
path, = sys.argv[1:]
cortex = EviCortex.open(path, embedder=None)
print("go", flush=True)
cortex.purge("ns", session="secret")
print("purged", flush=True)
sys.stdin.read()
"""


def test_a_purge_cut_short_is_complete_or_wholly_undone(tmp_path):
    chance = random.Random(11)
    outcomes = set()
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "m.db"
        with EviCortex.open(path, embedder=None) as cortex:
            cortex.remember_many(
                "ns",
                [
                    EvidenceDraft(f"xylocanary{n} said", session="secret" if n % 2 else "plain")
                    for n in range(600)
                ],
            )
        worker = start(PURGER, path)
        worker.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.communicate(timeout=chance.uniform(0, 0.08))
        worker.kill()
        worker.communicate()
        with EviCortex.open(path, embedder=None) as cortex:
            assert cortex.verify().ok
            count = cortex.stats("ns").evidence
            assert count in (300, 600)
            outcomes.add(count)
            hits = cortex.search("ns", "said", sessions=["secret"], limit=1_000).hits
            assert len(hits) == count - 300
            if count == 300:
                for each in folder.iterdir():
                    data = each.read_bytes()
                    assert not any(b"xylocanary%d " % n in data for n in range(1, 600, 2))
    assert outcomes
