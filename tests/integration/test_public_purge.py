"""Purge, verify, export, load and rebuild through the public API, proved on the files' bytes."""

import gc
import json
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

from evicortex import ClaimDraft, EviCortex, EvidenceDraft, NotFoundError, errors
from evicortex.protocols import ExtractedClaim, ExtractionResult
from evicortex.testing import DeterministicEmbedder, FixedClock, ScriptedExtractor
from evicortex.types import ClaimStatus, Diagnostic, Span

CANARIES = {
    "content": "xyloquartzan",
    "second": "brimvelloth",
    "subject": "quandrifexa",
    "object": "zephyrmoltik",
    "reason": "wobblethrane",
    "external": "jukterpondix",
    "session": "vexmarblune",
    "actor": "Grolpanzifer",
    "source": "plinkstovark",
    "metadata": "drumfexalot",
    "diagnostic": "snarvequilt",
    "script": "Щукокрякозябра",
    "cjk": "龘靐齉爩麤",
}


def leaks(folder):
    """Return (file, word, encoding) of every canary in any file, also case-folded or escaped."""
    found = []
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        for word in CANARIES.values():
            for form in {word, word.lower(), word.upper(), word.casefold()}:
                for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
                    if form.encode(encoding) in data:
                        found.append((path.name, form, encoding))
                if json.dumps(form)[1:-1].encode() in data:
                    found.append((path.name, form, "json"))
    return found


def script(context):
    end = context.content.index(" ")
    claim = ExtractedClaim(
        context.evidence_id,
        context.digest,
        CANARIES["subject"],
        "carries",
        CANARIES["object"],
        Span(0, end),
        context.content[:end],
        0.9,
    )
    return ExtractionResult((claim,), diagnostics=(Diagnostic("note", CANARIES["diagnostic"]),))


def fill(cortex, namespace="ns"):
    """Store canaries in every place that takes a text; return the ids of the evidence."""
    fields = {
        "actor": CANARIES["actor"],
        "session": CANARIES["session"],
        "source": CANARIES["source"],
    }
    claim = ClaimDraft(CANARIES["subject"], "lives_in", CANARIES["object"])
    text = " ".join(CANARIES[name] for name in ("content", "script", "cjk"))
    first = cortex.remember(
        namespace,
        text,
        external_id=CANARIES["external"],
        metadata={CANARIES["metadata"]: CANARIES["metadata"]},
        claims=[claim],
        **fields,
    )
    second = cortex.remember_extracted(
        namespace,
        f"{CANARIES['second']} hey {CANARIES['actor']}!",
        extractor=ScriptedExtractor(script),
        **fields,
    )
    cortex.retract(namespace, first.claim_ids[0], reason=CANARIES["reason"])
    cortex.remember(namespace, "An ordinary evening.", actor="Bob", session="s2", source="mail")
    return first.evidence_id, second.evidence_id


SELECTORS = [
    {"session": CANARIES["session"]},
    {"source": CANARIES["source"]},
    {"actor": CANARIES["actor"]},
    {"everything": True},
    {},
]


@pytest.mark.parametrize("embedder", [None, DeterministicEmbedder()], ids=["lexical", "vectors"])
@pytest.mark.parametrize("selector", SELECTORS, ids=["session", "source", "actor", "all", "ids"])
def test_every_selector_leaves_no_byte_with_readers_open(tmp_path, selector, embedder):
    path = tmp_path / "memory.db"
    readers = [EviCortex.open(path, embedder=embedder) for _ in range(2)]
    with EviCortex.open(path, embedder=embedder) as cortex:
        ids = fill(cortex)
        cortex.recall("ns", CANARIES["content"], budget_tokens=500)
        for reader in readers:
            assert reader.search("ns", CANARIES["content"]).hits
        assert leaks(tmp_path)
        if selector:
            receipts = [cortex.purge("ns", **selector)]
        else:
            receipts = [cortex.purge("ns", evidence_id=each) for each in ids]
        purged = {each for receipt in receipts for each in receipt.evidence_ids}
        assert purged >= set(ids)
        assert all(receipt.complete for receipt in receipts)
        assert {t.evidence_id for r in receipts for t in r.tombstones} == purged
        assert leaks(tmp_path) == []
        for opened in (cortex, *readers):
            for word in CANARIES.values():
                found = opened.search("ns", word).hits
                assert [h for h in found if h.evidence.evidence_id in ids] == []
                pack = opened.recall("ns", word, budget_tokens=500, include_superseded=True)
                assert word not in pack.text
            assert opened.claims("ns", include_superseded=True) == ()
            assert opened.history("ns", CANARIES["subject"], "lives_in") == ()
            for each in ids:
                with pytest.raises(NotFoundError):
                    opened.evidence("ns", each)
                with pytest.raises(NotFoundError):
                    opened.get_extraction("ns", each)
            assert opened.verify().ok
        cortex.export("ns", tmp_path / "out.jsonl")
        assert leaks(tmp_path) == []
        left = 0 if selector == {"everything": True} else 1
        assert cortex.stats("ns").evidence == left
    for reader in readers:
        reader.close()
    assert leaks(tmp_path) == []
    with EviCortex.open(path, embedder=embedder) as cortex:
        assert cortex.verify().ok
        assert cortex.verify().notices == ()
        cortex.rebuild("ns")
        cortex.remember("ns", "life goes on")
        hits = cortex.search("ns", CANARIES["content"]).hits
        assert not {hit.evidence.evidence_id for hit in hits} & set(ids)
    assert leaks(tmp_path) == []


def test_a_reader_with_an_old_snapshot_delays_the_proof_and_says_so(tmp_path):
    path = tmp_path / "memory.db"
    started, release = threading.Event(), threading.Event()

    class Waiting:
        identity, exact = "testing/waiting", True

        def count(self, text):
            if text:
                started.set()
                assert release.wait(30)
            return len(text)

    with EviCortex.open(path, embedder=None) as cortex:
        (first, *_) = fill(cortex)
    reader = EviCortex.open(path, embedder=None, read_only=True, token_counter=Waiting())
    thread = threading.Thread(
        target=reader.recall, args=("ns", CANARIES["content"]), kwargs={"budget_tokens": 5_000}
    )
    with EviCortex.open(path, embedder=None) as cortex:
        thread.start()
        assert started.wait(30)
        receipt = cortex.purge("ns", everything=True)
        assert first in receipt.evidence_ids
        assert not receipt.complete
        assert [d.code for d in receipt.diagnostics] == ["purge_pending"]
        report = cortex.verify()
        assert report.ok
        assert report.notices
        release.set()
        thread.join(30)
        reader.close()
        cortex.remember("other", "The next write.")
        assert leaks(tmp_path) == []
        assert cortex.verify().notices == ()


def test_an_unfinished_proof_is_finished_at_the_next_open(tmp_path):
    path = tmp_path / "memory.db"
    with EviCortex.open(path, embedder=None) as cortex:
        fill(cortex)
    code = (
        "import sys, os, threading\n"
        "from evicortex import EviCortex\n"
        "go = threading.Event(); held = threading.Event()\n"
        "class C:\n"
        "    identity='c'; exact=True\n"
        "    def count(self, text):\n"
        "        if text: held.set(); go.wait(30)\n"
        "        return len(text)\n"
        "r = EviCortex.open(sys.argv[1], embedder=None, token_counter=C())\n"
        "t = threading.Thread(target=r.recall, args=('ns', 'evening'),"
        " kwargs={'budget_tokens': 99}, daemon=True)\n"
        "t.start(); held.wait(30)\n"
        "w = EviCortex.open(sys.argv[1], embedder=None)\n"
        "receipt = w.purge('ns', everything=True)\n"
        "print(receipt.complete, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "False", done.stderr
    assert done.returncode == -9
    with EviCortex.open(path, embedder=None) as cortex:
        assert leaks(tmp_path) == []
        assert cortex.verify().ok
        assert cortex.verify().notices == ()
        assert cortex.stats("ns").evidence == 0


def test_the_same_text_in_another_namespace_stays(tmp_path):
    path = tmp_path / "memory.db"
    with EviCortex.open(path, embedder=DeterministicEmbedder()) as cortex:
        fill(cortex, "ns")
        kept = fill(cortex, "other")
        question = CANARIES["content"]

        def view():
            cortex.export("other", tmp_path / "other.jsonl")
            pack = cortex.recall("other", question, budget_tokens=500)
            return (
                (tmp_path / "other.jsonl").read_bytes(),
                pack.text,
                [(h.evidence, h.score) for h in cortex.search("other", question).hits],
                [cortex.evidence("other", each) for each in kept],
                cortex.claims("other", include_superseded=True),
                cortex.get_extraction("other", kept[1]),
                cortex.stats("other").evidence,
            )

        before = view()
        cortex.purge("ns", everything=True)
        assert view() == before
        cortex.purge("ns", everything=True)
        assert view() == before
    with EviCortex.open(path, embedder=DeterministicEmbedder()) as cortex:
        assert view() == before
        assert cortex.verify().ok


def test_what_a_purged_claim_had_superseded_becomes_current_again(tmp_path):
    clock = FixedClock()
    with EviCortex.open(tmp_path / "memory.db", embedder=None, clock=clock) as cortex:

        def move(place, year):
            clock.advance(timedelta(minutes=1))
            return cortex.remember(
                "ns",
                f"Alice lives in {place}.",
                claims=[
                    ClaimDraft(
                        "Alice", "lives_in", place, valid_from=datetime(year, 1, 1, tzinfo=UTC)
                    )
                ],
            )

        berlin, lisbon = move("Berlin", 2020), move("Lisbon", 2024)
        receipt = cortex.purge("ns", evidence_id=lisbon.evidence_id)
        assert receipt.claim_ids == lisbon.claim_ids
        assert receipt.reinstated == berlin.claim_ids
        (held,) = cortex.claims("ns")
        assert (held.object, held.status, held.valid_to) == ("Berlin", ClaimStatus.HELD, None)
        assert held.superseded_by == ()
        pack = cortex.recall("ns", "Where does Alice live?", budget_tokens=300)
        assert [item.evidence_id for item in pack.items] == [berlin.evidence_id]


def test_numbers_and_ids_are_never_used_again(tmp_path):
    with EviCortex.open(tmp_path / "memory.db", embedder=None) as cortex:
        first = cortex.remember("ns", "one", external_id="x")
        cortex.purge("ns", everything=True)
        second = cortex.remember("ns", "one", external_id="x")
        assert second.created
        assert second.evidence_id != first.evidence_id
        assert cortex.evidence("ns", second.evidence_id).position == 2
        with pytest.raises(NotFoundError):
            cortex.evidence("ns", first.evidence_id)


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"everything": False},
        {"session": "a", "actor": "b"},
        {"session": "a", "everything": True},
        {"evidence_id": "ev_1", "source": "x"},
    ],
)
def test_a_purge_takes_exactly_one_selector(tmp_path, selector):
    with EviCortex.open(tmp_path / "memory.db", embedder=None) as cortex:
        cortex.remember("ns", "one", session="a", actor="b", source="x")
        with pytest.raises(errors.SelectorError):
            cortex.purge("ns", **selector)
        with pytest.raises(errors.SelectorError):
            cortex.purge("empty", **selector)
        assert cortex.stats("ns").evidence == 1


@pytest.mark.parametrize(
    "selector",
    [
        {"everything": 1},
        {"everything": "no"},
        {"session": 5},
        {"actor": b"b"},
        {"source": ["x"]},
        {"evidence_id": 1},
        {"session": ""},
        {"actor": "\ud800"},
    ],
)
def test_a_selector_of_another_type_is_refused(tmp_path, selector):
    with EviCortex.open(tmp_path / "memory.db", embedder=None) as cortex:
        cortex.remember("ns", "one", session="a", actor="b", source="x")
        with pytest.raises(errors.InputError):
            cortex.purge("ns", **selector)
        assert cortex.stats("ns").evidence == 1


def test_a_selector_that_covers_nothing_purges_nothing(tmp_path):
    with EviCortex.open(tmp_path / "memory.db", embedder=None) as cortex:
        cortex.remember("ns", "one", session="a")
        receipt = cortex.purge("ns", session="A")
        assert receipt.evidence_ids == receipt.claim_ids == receipt.tombstones == ()
        assert receipt.complete
        assert cortex.stats("ns").evidence == 1


def story(cortex, namespace="ns"):
    clock = cortex.story_clock
    for place, year in (("Berlin", 2020), ("Lisbon", 2024)):
        clock.advance(timedelta(minutes=1))
        last = cortex.remember(
            namespace,
            f"Alice lives in {place}\x00 – 日本 cafe\u0301.",
            actor="Alice",
            role="user",
            session=f"s{year}",
            source="chat",
            external_id=f"x{year}",
            occurred_at=datetime(year, 1, 1, tzinfo=UTC),
            metadata={"n": [1, None, "ü"]},
            claims=[ClaimDraft("Alice", "lives_in", place, span=(0, 5))],
        )
    clock.advance(timedelta(minutes=1))
    cortex.remember_extracted(namespace, "alpha beta", extractor=ScriptedExtractor())
    clock.advance(timedelta(minutes=1))
    cortex.retract(namespace, last.claim_ids[0], reason="mistaken")
    clock.advance(timedelta(minutes=1))
    cortex.remember(namespace, "", role="assistant")
    return last


@pytest.fixture
def told(tmp_path):
    clock = FixedClock()
    with EviCortex.open(tmp_path / "memory.db", embedder=None, clock=clock) as cortex:
        cortex.story_clock = clock
        story(cortex)
        yield cortex


def essence(claims):
    return [
        (c.subject, c.object, c.status, c.valid_from, c.valid_to, c.recorded_at, c.superseded_at)
        for c in claims
    ]


def test_a_round_trip_into_another_namespace_keeps_everything(told, tmp_path):
    exported = told.export("ns", tmp_path / "a.jsonl")
    loaded = told.load("copy", tmp_path / "a.jsonl")
    assert (exported.evidence, exported.claims, exported.extractions) == (4, 4, 1)
    assert (loaded.evidence, loaded.claims, loaded.extractions) == (4, 4, 1)
    assert loaded.created == 4
    again = told.export("copy", tmp_path / "b.jsonl")
    assert again.digest == exported.digest
    for line in (tmp_path / "a.jsonl").read_text("utf-8").splitlines():
        json.loads(line)
    for when in ({}, {"as_of": "2022-01-01T00:00:00Z"}, {"known_at": "2026-01-01T00:02:30Z"}):
        assert essence(told.claims("copy", **when)) == essence(told.claims("ns", **when))
        assert (
            told.recall("copy", "Where does Alice live?", budget_tokens=500, **when).text
            == told.recall("ns", "Where does Alice live?", budget_tokens=500, **when).text
        )
    assert essence(told.history("copy", "Alice", "lives_in")) == essence(
        told.history("ns", "Alice", "lives_in")
    )
    assert told.verify().ok


def test_loading_twice_changes_nothing(told, tmp_path):
    told.export("ns", tmp_path / "a.jsonl")
    told.load("copy", tmp_path / "a.jsonl")
    before = told.stats("copy")
    again = told.load("copy", tmp_path / "a.jsonl")
    assert again.created == 0
    assert told.stats("copy") == before
    assert told.load("ns", tmp_path / "a.jsonl").created == 0
    assert (
        told.export("copy", tmp_path / "b.jsonl").digest
        == told.export("ns", tmp_path / "a2.jsonl").digest
    )


def test_a_round_trip_into_a_new_file_keeps_everything(told, tmp_path):
    digest = told.export("ns", tmp_path / "a.jsonl").digest
    with EviCortex.open(tmp_path / "new.db", embedder=None) as fresh:
        fresh.load("ns", tmp_path / "a.jsonl")
        assert fresh.export("ns", tmp_path / "b.jsonl").digest == digest
        assert essence(fresh.history("ns", "Alice", "lives_in")) == essence(
            told.history("ns", "Alice", "lives_in")
        )
        assert fresh.verify().ok


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b"Berlin", b"Bremen", 1),
        lambda data: data[: len(data) // 2],
        lambda data: b"\n".join(data.split(b"\n")[1:]),
        lambda data: data.replace(b'"evidence"', b'"unknown"'),
        lambda data: b"not json\n" + data,
        lambda data: b"\xff\xfe\x00" + data,
        lambda data: b"",
        lambda data: b"[]\n",
        lambda data: b'{"a": 1}\n',
        lambda data: b'"text"\n' * 5,
        lambda data: b"[" * 100_000,
    ],
    ids=lambda _: "",
)
def test_a_damaged_export_is_refused_whole(told, tmp_path, damage):
    told.export("ns", tmp_path / "a.jsonl")
    data = (tmp_path / "a.jsonl").read_bytes()
    (tmp_path / "bad.jsonl").write_bytes(damage(data))
    with pytest.raises(errors.EviCortexError):
        told.load("copy", tmp_path / "bad.jsonl")
    assert told.stats("copy").evidence == 0
    assert told.verify().ok


def test_export_and_load_of_impossible_paths_say_so(told, tmp_path):
    with pytest.raises((errors.EviCortexError, OSError)):
        told.load("copy", tmp_path / "missing.jsonl")
    with pytest.raises((errors.EviCortexError, OSError)):
        told.export("ns", tmp_path / "no" / "such" / "folder.jsonl")
    with pytest.raises(NotFoundError):
        told.export("nobody", tmp_path / "nobody.jsonl")
    assert not (tmp_path / "nobody.jsonl").exists()
    with pytest.raises(NotFoundError):
        told.verify("nobody")


def test_rebuild_changes_no_answer_and_touches_no_other_namespace(told, tmp_path):
    told.remember_many("other", [EvidenceDraft(f"Alice saw film {n}") for n in range(20)])

    def answers(namespace):
        return [
            (h.evidence.evidence_id, h.score, dict(h.channels))
            for h in told.search(namespace, "Alice film Lisbon", include_superseded=True).hits
        ], told.recall(namespace, "Where does Alice live?", budget_tokens=300).text

    before = answers("ns"), answers("other")
    report = told.rebuild("ns")
    assert report.evidence == 4
    assert (answers("ns"), answers("other")) == before
    assert told.rebuild("nobody").evidence == 0
    assert told.namespaces() == ("ns", "other")
    assert told.verify().ok


def test_rebuild_calls_no_provider(tmp_path):
    calls = []

    class Counting(DeterministicEmbedder):
        def embed(self, texts, *, input_type="document"):
            calls.append(len(texts))
            return super().embed(texts, input_type=input_type)

    with EviCortex.open(tmp_path / "m.db", embedder=Counting()) as cortex:
        cortex.remember("ns", "hello there")
        made = len(calls)
        cortex.rebuild("ns")
        cortex.verify()
        cortex.claims("ns")
        cortex.export("ns", tmp_path / "a.jsonl")
        cortex.purge("ns", everything=True)
        assert len(calls) == made


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE evidence SET content = 'forged'",
        "UPDATE audit SET payload = '{}' WHERE position = 1",
        "DELETE FROM audit WHERE position = 2",
        "DELETE FROM evidence WHERE row_id = (SELECT min(row_id) FROM evidence)",
        "UPDATE claim_evidence SET stop = 9999 WHERE stop IS NOT NULL",
    ],
)
def test_verify_sees_a_forged_file(told, tmp_path, change):
    import apsw

    path = tmp_path / "memory.db"
    told.close()
    connection = apsw.Connection(str(path))
    try:
        for (trigger,) in list(
            connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        ):
            connection.execute(f'DROP TRIGGER "{trigger}"')
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(change)
    finally:
        connection.close()
        gc.collect()
    try:
        with EviCortex.open(path, embedder=None) as cortex:
            report = cortex.verify()
            assert not report.ok
            assert report.problems
    except errors.CorruptLedgerError:
        pass


def test_what_is_remembered_of_texts_is_forgotten_by_every_reader(tmp_path):
    def asked(cortex):
        cortex.recall("a", "Which boat is blue?", budget_tokens=150)
        with cortex._open.ledger.read() as tx:
            rows = cortex._open.resident.get(tx.connection, tx.namespace("a").namespace_id)
        return cortex._open.pieces.of(rows.namespace_id, rows.generation)

    with (
        EviCortex.open(tmp_path / "m.db", embedder=None) as cortex,
        EviCortex.open(tmp_path / "m.db", embedder=None) as other,
    ):
        texts = [f"The boat number {n} is blue. It lies in Porto. I like it." for n in range(30)]
        receipts = [cortex.remember("a", text) for text in texts]
        before = asked(cortex), asked(other)
        assert all(each.cache_info().currsize > 0 for each in before)
        assert asked(other) is before[1]
        cortex.purge("a", evidence_id=receipts[0].evidence_id)
        assert asked(cortex) is not before[0]
        assert asked(other) is not before[1]
