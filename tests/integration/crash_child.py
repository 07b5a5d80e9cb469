"""Writes to a ledger until it is killed; run by test_crash.py and test_concurrency.py.

Reads one job a line from standard input, ``{"job": ..., "path": ..., "seed": ...}``, forks a
process for each, and says on standard output what that process has done, one line at a time.
"""

import json
import os
import random
import signal
import sys
from datetime import UTC, datetime

from evicortex.ledger import Ledger, LedgerOptions, claims, evidence, purge, scrub
from evicortex.ledger.evidence import CheckedDraft
from evicortex.types import ClaimDraft


class SystemClock:
    def now(self):
        return datetime.now(UTC)


def say(*words):
    # One system call, so that lines of this process and its child do not mix.
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode())


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(connection, steps):
    """Die in the middle of a statement, after so many steps of SQLite's virtual machine."""
    left = [steps]

    def step():
        left[0] -= 1
        if left[0] <= 0:
            die()
        return False

    connection.set_progress_handler(step, 1)


def text(chance, number):
    words = (f"canary{chance.getrandbits(64):016x}" for _ in range(chance.choice((1, 5, 40, 700))))
    return f"{number} " + " ".join(words)


def write(ledger, chance, job):
    if job["mode"] == "steps":
        die_after(ledger.writer, chance.randrange(1, 6000))
    for number in range(job["writes"]):
        size = chance.choice((1, 1, 4))
        with ledger.write() as tx:
            ns = tx.namespace("alice", create=True)
            added = evidence.add(
                tx,
                ns,
                [
                    CheckedDraft(text(chance, number), "Ann", session=f"s{job['seed']}")
                    for _ in range(size)
                ],
            )
            item = evidence.fetch(tx, ns, [added[0].row_id])[added[0].row_id]
            claims.add(tx, ns, item, [ClaimDraft("Ann", "said", f"thing {number}", span=(0, 1))])
        say("ack", *(f"{result.evidence_id}:{result.digest}" for result in added))
    say("end")


def erase(ledger, chance, job):
    mode = job["mode"]
    if mode == "scrub":
        real = scrub.dirty

        def dirty(pages, *, first):
            for number, found in enumerate(real(pages, first=first)):
                if number == 3:
                    die()
                yield found

        scrub.dirty = dirty
    elif mode == "steps":
        die_after(ledger.writer, chance.randrange(1, 20000))
    elif mode == "commit":
        ledger.writer.set_commit_hook(die)
    say("purging")
    with ledger.write() as tx:
        ns = tx.namespace("alice")
        rows = purge.select(tx, ns, purge.Selector(session=job["session"]))
        tx.connection.executemany("DELETE FROM lexical WHERE rowid = ?", [(row,) for row in rows])
        purge.remove(tx, ns, rows)
    say("committed")
    if mode == "committed":
        die()
    say("erased", purge.finish(ledger))


def add_many(ledger, chance, job):
    for number in range(job["writes"]):
        with ledger.write() as tx:
            ns = tx.namespace("shared", create=True)
            evidence.add(tx, ns, [CheckedDraft(f"{job['seed']} {number}", f"w{job['seed']}")])
    say("end")


JOBS = {"write": write, "erase": erase, "add_many": add_many}


def run(job):
    chance = random.Random(job["seed"])
    options = LedgerOptions(busy_timeout=60, synchronous=job.get("synchronous", "FULL"))
    with Ledger.open(job["path"], clock=SystemClock(), options=options) as ledger:
        JOBS[job["job"]](ledger, chance, job)


def main():
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            say("pid", os.getpid())
            try:
                run(job)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        say("dead", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
