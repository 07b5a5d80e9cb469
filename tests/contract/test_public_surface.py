"""What every public call promises: closed, read-only, namespaces, argument types, capabilities."""

import contextlib
import inspect
import re
import stat
import threading

import pytest

import evicortex
from evicortex import ClaimDraft, EviCortex, EvidenceDraft, InputError, errors
from evicortex.testing import DeterministicEmbedder, FixedClock, ScriptedExtractor

READS = {
    "recall": lambda c, ns, d: c.recall(ns, "alpha", budget_tokens=100),
    "search": lambda c, ns, d: c.search(ns, "alpha"),
    "claims": lambda c, ns, d: c.claims(ns),
    "history": lambda c, ns, d: c.history(ns, "A", "likes"),
    "evidence": lambda c, ns, d: c.evidence(ns, c.kept.evidence_id),
    "times": lambda c, ns, d: c.times(ns, c.kept.evidence_id),
    "get_extraction": lambda c, ns, d: c.get_extraction(ns, c.extracted.evidence_id),
    "export": lambda c, ns, d: c.export(ns, d / "out.jsonl"),
    "stats": lambda c, ns, d: c.stats(ns),
    "verify": lambda c, ns, d: c.verify(ns),
}
WRITES = {
    "remember": lambda c, ns, d: c.remember(ns, "beta"),
    "remember_many": lambda c, ns, d: c.remember_many(ns, [EvidenceDraft("beta")]),
    "remember_extracted": lambda c, ns, d: c.remember_extracted(
        ns, "beta gamma", extractor=ScriptedExtractor()
    ),
    "retract": lambda c, ns, d: c.retract(ns, c.kept.claim_ids[0], reason="r"),
    "purge": lambda c, ns, d: c.purge(ns, everything=True),
    "rebuild": lambda c, ns, d: c.rebuild(ns),
    "sync_semantic": lambda c, ns, d: c.sync_semantic(ns),
    "load": lambda c, ns, d: c.load(ns, d / "export.jsonl"),
}
CALLS = READS | WRITES
WHOLE = {
    "namespaces": lambda c, ns, d: c.namespaces(),
    "capabilities": lambda c, ns, d: c.capabilities(),
    "verify all": lambda c, ns, d: c.verify(),
}


def fill(cortex, folder):
    kept = cortex.remember("ns", "alpha", claims=[ClaimDraft("A", "likes", "B")])
    extracted = cortex.remember_extracted("ns", "delta epsilon", extractor=ScriptedExtractor())
    cortex.export("ns", folder / "export.jsonl")
    cortex.kept, cortex.extracted = kept, extracted
    return cortex


@pytest.fixture
def cortex(tmp_path):
    with EviCortex.open(tmp_path / "m.db", embedder=None, clock=FixedClock()) as opened:
        yield fill(opened, tmp_path)


@pytest.mark.parametrize("call", (CALLS | WHOLE).values(), ids=(CALLS | WHOLE).keys())
def test_a_closed_cortex_says_so(cortex, tmp_path, call):
    cortex.close()
    cortex.close()
    with pytest.raises(errors.ClosedError):
        call(cortex, "ns", tmp_path)


def test_every_call_works_and_names_a_namespace(cortex, tmp_path):
    for name, call in CALLS.items():
        for bad in ("", None, "   ", 5, b"ns", "\ud800", "a\x00b", "n" * 100_000, ["ns"]):
            if name == "verify" and bad is None:
                continue
            with pytest.raises(errors.NamespaceError):
                call(cortex, bad, tmp_path)
    assert cortex.namespaces() == ("ns",)
    assert cortex.stats("ns").evidence == 2
    for name, call in (READS | WHOLE).items():
        assert call(cortex, "ns", tmp_path) is not None, name
    assert cortex.verify().ok


def test_a_read_never_writes_a_namespace(cortex, tmp_path):
    before = cortex.stats("ns")
    for call in READS.values():
        with contextlib.suppress(errors.NotFoundError):
            call(cortex, "elsewhere", tmp_path)
    for name in ("rebuild", "sync_semantic", "purge"):
        CALLS[name](cortex, "elsewhere", tmp_path)
    assert cortex.namespaces() == ("ns",)
    assert cortex.stats("ns") == before


def test_read_only_reads_everything_and_writes_nothing(cortex, tmp_path):
    path = tmp_path / "m.db"
    kept, extracted = cortex.kept, cortex.extracted
    with EviCortex.open(path, embedder=None, read_only=True) as reader:
        reader.kept, reader.extracted = kept, extracted
        for call in (READS | WHOLE).values():
            call(reader, "ns", tmp_path)
        for call in WRITES.values():
            with pytest.raises(errors.ReadOnlyError):
                call(reader, "ns", tmp_path)
    assert cortex.stats("ns").evidence == 2
    cortex.close()
    before = path.read_bytes()
    with EviCortex.open(path, embedder=None, read_only=True) as reader:
        reader.kept, reader.extracted = kept, extracted
        for call in (READS | WHOLE).values():
            call(reader, "ns", tmp_path)
    assert path.read_bytes() == before


def test_read_only_makes_no_file(tmp_path):
    with pytest.raises(errors.LedgerError):
        EviCortex.open(tmp_path / "absent.db", embedder=None, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path):
    import sqlite3

    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    text = tmp_path / "text.db"
    text.write_text("hello, this is a text and no database at all\n" * 50)
    for path in (other, text):
        before = path.read_bytes()
        with pytest.raises(errors.NotALedgerError):
            EviCortex.open(path, embedder=None)
        assert path.read_bytes() == before
    with pytest.raises(errors.LedgerError):
        EviCortex.open(tmp_path, embedder=None)
    with pytest.raises(errors.LedgerError):
        EviCortex.open(tmp_path / "no" / "folder.db", embedder=None)


def test_a_newer_file_is_refused(cortex, tmp_path):
    import sqlite3

    path = tmp_path / "m.db"
    cortex.close()
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.commit()
    connection.close()
    for read_only in (False, True):
        with pytest.raises(errors.LedgerVersionError):
            EviCortex.open(path, embedder=None, read_only=read_only)


OPENINGS = {
    "path": lambda d: EviCortex.open(5),
    "no path": lambda d: EviCortex.open(None),
    "memory": lambda d: EviCortex.open(""),
    "embedder": lambda d: EviCortex.open(d / "x.db", embedder=5),
    "embedder name": lambda d: EviCortex.open(d / "x.db", embedder="best"),
    "counter": lambda d: EviCortex.open(d / "x.db", embedder=None, token_counter=len),
    "extractor": lambda d: EviCortex.open(d / "x.db", embedder=None, extractor=5),
    "reranker": lambda d: EviCortex.open(d / "x.db", embedder=None, reranker=5),
    "settings": lambda d: EviCortex.open(d / "x.db", embedder=None, settings={}),
    "clock": lambda d: EviCortex.open(d / "x.db", embedder=None, clock=5),
}


@pytest.mark.parametrize("call", OPENINGS.values(), ids=OPENINGS.keys())
def test_opening_with_something_else_is_one_typed_error_and_makes_no_file(tmp_path, call):
    with pytest.raises(evicortex.EviCortexError):
        call(tmp_path)
    assert list(tmp_path.iterdir()) == []


WRONG = {
    "content": lambda c: c.remember("ns", None),
    "content bytes": lambda c: c.remember("ns", b"bytes"),
    "actor": lambda c: c.remember("ns", "x", actor=5),
    "blank actor": lambda c: c.remember("ns", "x", actor=" "),
    "empty id": lambda c: c.remember("ns", "x", external_id=""),
    "role": lambda c: c.remember("ns", "x", role=["user"]),
    "session": lambda c: c.remember("ns", "x", session=7),
    "source": lambda c: c.remember("ns", "x", source=object()),
    "authority": lambda c: c.remember("ns", "x", authority=5),
    "claims": lambda c: c.remember("ns", "x", claims=5),
    "claims none": lambda c: c.remember("ns", "x", claims=None),
    "one claim": lambda c: c.remember("ns", "x", claims=ClaimDraft("a", "b", "c")),
    "claims text": lambda c: c.remember("ns", "x", claims="abc"),
    "metadata list": lambda c: c.remember("ns", "x", metadata=[1]),
    "metadata zero": lambda c: c.remember("ns", "x", metadata=0),
    "metadata nan": lambda c: c.remember("ns", "x", metadata={"a": float("nan")}),
    "metadata key": lambda c: c.remember("ns", "x", metadata={1: 2}),
    "metadata deep key": lambda c: c.remember("ns", "x", metadata={"a": [{None: 2}]}),
    "metadata object": lambda c: c.remember("ns", "x", metadata={"a": object()}),
    "metadata bytes": lambda c: c.remember("ns", "x", metadata={"a": b"x"}),
    "drafts": lambda c: c.remember_many("ns", None),
    "drafts number": lambda c: c.remember_many("ns", 5),
    "drafts text": lambda c: c.remember_many("ns", "abc"),
    "one draft": lambda c: c.remember_many("ns", EvidenceDraft("x")),
    "progress": lambda c: c.remember_many("ns", [EvidenceDraft("x")], on_progress=5),
    "extractor": lambda c: c.remember_extracted("ns", "x y", extractor=5),
    "previous": lambda c: c.remember_extracted(
        "ns", "x y", extractor=ScriptedExtractor(), previous=5
    ),
    "previous pair": lambda c: c.remember_extracted(
        "ns", "x y", extractor=ScriptedExtractor(), previous=["ab"]
    ),
    "query": lambda c: c.recall("ns", None, budget_tokens=5),
    "query bytes": lambda c: c.search("ns", b"x"),
    "budget text": lambda c: c.recall("ns", "x", budget_tokens="5"),
    "budget none": lambda c: c.recall("ns", "x", budget_tokens=None),
    "budget bool": lambda c: c.recall("ns", "x", budget_tokens=True),
    "budget float": lambda c: c.recall("ns", "x", budget_tokens=5.0),
    "budget negative": lambda c: c.recall("ns", "x", budget_tokens=-1),
    "budget large": lambda c: c.recall("ns", "x", budget_tokens=1_000_001),
    "budget elsewhere": lambda c: c.recall("empty", "x", budget_tokens=-1),
    "sessions": lambda c: c.search("ns", "x", sessions=5),
    "sessions text": lambda c: c.search("ns", "x", sessions="s"),
    "session number": lambda c: c.search("ns", "x", sessions=[5]),
    "actors text": lambda c: c.recall("ns", "x", budget_tokens=5, actors="A"),
    "query actor": lambda c: c.search("ns", "x", query_actor=5),
    "limit": lambda c: c.search("ns", "x", limit=-1),
    "limit bool": lambda c: c.search("ns", "x", limit=True),
    "limit float": lambda c: c.search("ns", "x", limit=1.0),
    "superseded": lambda c: c.search("ns", "x", include_superseded="no"),
    "superseded claims": lambda c: c.claims("ns", include_superseded="no"),
    "evidence": lambda c: c.evidence("ns", 5),
    "times": lambda c: c.times("ns", None),
    "show times": lambda c: c.recall("ns", "x", budget_tokens=5, show_times=1),
    "extraction": lambda c: c.get_extraction("ns", None),
    "retract": lambda c: c.retract("ns", 5, reason="r"),
    "export": lambda c: c.export("ns", 5),
    "load": lambda c: c.load("ns", None),
}


def test_an_argument_of_another_type_is_one_typed_error_and_writes_nothing(cortex, tmp_path):
    before = cortex.export("ns", tmp_path / "before.jsonl").digest
    for name, call in WRONG.items():
        with pytest.raises(evicortex.EviCortexError) as caught:
            call(cortex)
        assert isinstance(caught.value, InputError | errors.ProviderError), name
        assert len(str(caught.value)) > 10, name
    assert cortex.export("ns", tmp_path / "after.jsonl").digest == before
    assert cortex.namespaces() == ("ns",)
    assert cortex.verify().ok


def test_messages_of_errors_name_the_argument_and_never_a_module(cortex):
    for call in WRONG.values():
        with pytest.raises(evicortex.EviCortexError) as caught:
            call(cortex)
        assert not re.search(
            r"object at 0x|Traceback|<class", str(caught.value).replace("<built-in", "")
        )


def test_capabilities_say_what_is_on(tmp_path):
    with EviCortex.open(tmp_path / "a.db", embedder=None) as cortex:
        off = cortex.capabilities()
        assert off.embedder is None
        assert off.notes
        assert not any(on for name, on in off.channels.items() if name.startswith("dense"))
        assert off.channels["turn"]
    with EviCortex.open(
        tmp_path / "b.db", embedder=DeterministicEmbedder(), extractor=ScriptedExtractor()
    ) as cortex:
        on = cortex.capabilities()
        assert on.embedder["model_id"]
        assert on.extractor["id"] == "testing/scripted"
        assert any(on for name, on in on.channels.items() if name.startswith("dense"))


def test_a_channel_that_is_off_has_a_diagnostic(cortex):
    codes = [d.code for d in cortex.search("ns", "alpha").diagnostics]
    assert "semantic_off" in codes
    assert "semantic_off" in [
        d.code for d in cortex.recall("ns", "alpha", budget_tokens=50).diagnostics
    ]


def test_public_names_exist_and_every_method_is_documented():
    for name in evicortex.__all__:
        assert hasattr(evicortex, name)
    for name, member in inspect.getmembers(EviCortex):
        if not name.startswith("_"):
            assert inspect.getdoc(member), name


def test_public_values_are_frozen_and_hold_aware_times(cortex):
    import dataclasses

    pack = cortex.recall("ns", "alpha", budget_tokens=100)
    stored = cortex.evidence("ns", cortex.kept.evidence_id)
    (claim, *_) = cortex.claims("ns")
    for value in (pack, pack.items[0], stored, claim, cortex.kept, cortex.capabilities()):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
            value.text = "changed"
        field = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, None)
    assert stored.recorded_at.utcoffset().total_seconds() == 0
    assert claim.recorded_at.utcoffset().total_seconds() == 0


def test_one_cortex_serves_many_threads(cortex):
    failures = []

    def work(number):
        try:
            for n in range(10):
                receipt = cortex.remember("ns", f"thread {number} note {n}", actor=f"T{number}")
                hits = cortex.search("ns", f"thread {number} note {n}", actors=[f"T{number}"]).hits
                if receipt.evidence_id not in [hit.evidence.evidence_id for hit in hits]:
                    failures.append((number, n))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert cortex.stats("ns").evidence == 82
    assert cortex.verify().ok


def test_the_file_is_private_or_at_least_not_writable_by_others(cortex, tmp_path):
    mode = (tmp_path / "m.db").stat().st_mode
    assert not mode & stat.S_IWOTH
