"""Gates decide what may be said; README and docs say no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import gates
from benchmarks.gates import GATES, Gate, evaluate, overclaims, render
from benchmarks.results import MANIFEST, RECORDS, Record, RecordFile

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "benchmarks" / "reports"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def passed(key, wording="Nothing."):
    return Gate(key, "Phase C", "?", "passed", "1", "r", wording)


def record(system, query, good, *, suite="locomo", budget=1024, conversation=None):
    return Record(
        suite=suite,
        conversation=conversation or f"c{query % 4}",
        query=f"q{query}",
        system=system,
        budget=budget,
        category="c",
        answerable=True,
        counted=True,
        status="ok",
        error=None,
        pack_sha256="",
        tokens=9,
        items=1,
        gold=1,
        gold_ranks=(1 if good else None,),
        refused=False,
        probability=None,
        values={"strict": float(good)},
    )


def write_run(folder, records, *, suites=("locomo",), label="dev6", **fields):
    folder.mkdir(parents=True)
    file = RecordFile(folder / RECORDS)
    file.append(records)
    file.close()
    manifest = {
        "name": "r",
        "split": "dev",
        "prereg_sha256": None,
        "encoder_is_semantic": True,
        "token_counter_is_exact": True,
        "suites": {suite: {"label": label, "sha256": "0"} for suite in suites},
    } | fields
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture(autouse=True)
def fresh():
    gates._runs.cache_clear()


def by_key(folder):
    return {gate.key: gate for gate in evaluate(folder)}


def test_without_records_no_gate_is_passed_and_nothing_may_be_said(tmp_path):
    found = evaluate(tmp_path)
    assert {gate.status for gate in found} == {"not run"}
    assert not any(gate.wording for gate in found)
    assert '"More efficient than RAG" remains an unverified research hypothesis.' in render(found)


def test_every_gate_has_a_key_of_its_own_and_comes_from_a_specification():
    keys = [key for key, *_ in GATES]
    assert len(set(keys)) == len(keys)
    assert {document for _, document, *_ in GATES} == {"Phase C", "Prototype B"}


def test_the_comparison_passes_only_off_zero_by_conversation_and_with_a_real_encoder(tmp_path):
    pairs = [(q, q % 5 != 0, q % 3 == 0) for q in range(40)]
    records = [record("evicortex", q, own) for q, own, _ in pairs]
    records += [record("hybrid chunks", q, other) for q, _, other in pairs]
    write_run(tmp_path / "a" / "run", records)
    gate = by_key(tmp_path / "a")["external"]
    assert gate.status == "passed"
    assert "+45.0" in gate.wording
    assert gate.record == "run"
    write_run(tmp_path / "b" / "run", records, encoder_is_semantic=False)
    assert by_key(tmp_path / "b")["external"].status == "failed"
    equal = [
        record(name, q, q % 2 == 0) for name in ("evicortex", "hybrid chunks") for q in range(8)
    ]
    write_run(tmp_path / "c" / "run", equal)
    assert by_key(tmp_path / "c")["external"].status == "failed"
    assert by_key(tmp_path / "c")["external"].wording == ""


def test_a_system_with_missing_questions_is_not_compared(tmp_path):
    records = [record("evicortex", q, True) for q in range(8)]
    records += [record("hybrid chunks", q, False) for q in range(7)]
    write_run(tmp_path / "run", records)
    assert by_key(tmp_path)["external"].status == "not run"


def test_curves_need_five_whole_seeds(tmp_path):
    for seeds, status in ((4, "failed"), (5, "passed")):
        suites = [f"synthetic, seed {seed}" for seed in range(seeds)]
        records = [
            record("evicortex", 1, True, suite=suite, budget=budget)
            for suite in suites
            for budget in gates.CURVE
        ]
        write_run(tmp_path / str(seeds) / "run", records, suites=suites)
        assert by_key(tmp_path / str(seeds))["synthetic-curves"].status == status


def test_an_official_file_needs_a_preregistered_test_run(tmp_path):
    records = [record("evicortex", 1, True, suite="longmemeval")]
    for folder, fields, status in (
        ("a", {"label": "one record of S"}, "not run"),
        ("b", {"label": "official S"}, "failed"),
        ("c", {"label": "official S", "split": "test", "prereg_sha256": "1"}, "passed"),
    ):
        write_run(tmp_path / folder / "run", records, suites=("longmemeval",), **fields)
        assert by_key(tmp_path / folder)["official-longmemeval-s"].status == status


def trial(system, number):
    config = {"system": system, "number": number, "config": {}, "cpu_s": 1.0}
    return json.dumps(config | {"means": {"c": 0.5}, "questions": {"c": 2}}) + "\n"


def test_unequal_tuning_fails(tmp_path):
    path = tmp_path / "tuning.jsonl"
    path.write_text(trial("a", 0) + trial("b", 0), encoding="utf-8")
    assert by_key(tmp_path)["equal-tuning"].status == "passed"
    path.write_text(trial("a", 0) + trial("b", 0) + trial("b", 1), encoding="utf-8")
    assert by_key(tmp_path)["equal-tuning"].status == "failed"


def test_controls_and_crossed_systems_are_looked_for_by_name(tmp_path):
    names = [
        "no memory",
        "full history",
        "oracle evidence",
        "dense",
        "longmemeval retriever, turn",
        "longmemeval retriever, session",
    ]
    write_run(tmp_path / "a", [record(name, 1, True) for name in names])
    assert by_key(tmp_path)["controls"].status == "failed"
    assert by_key(tmp_path)["crossover"].status == "not run"
    more = ["hybrid chunks", "turns under the hybrid's retriever"]
    more.append("chunks under evicortex's retriever")
    write_run(tmp_path / "b", [record(name, 1, True) for name in more])
    gates._runs.cache_clear()
    found = by_key(tmp_path)
    assert found["controls"].status == found["crossover"].status == "passed"
    assert found["controls"].record == "a, b"


@pytest.mark.parametrize(
    "sentence",
    [
        "EviCortex outperforms hybrid retrieval.",
        "It is better than RAG.",
        "More efficient than RAG!",
        "EviCortex is the best memory for agents: the best agent memory.",
        "State-of-the-art results.",
        "On LongMemEval it reaches 93.1 %.",
        "It gives calibrated probabilities.",
        "EviCortex replaces RAG in your stack.",
        "It scales to millions of rows.",
        "Agents answer more correctly: it answers correctly.",
    ],
)
def test_a_claim_without_its_gate_is_found(sentence):
    assert overclaims(f"A page. {sentence} The end.", [])


@pytest.mark.parametrize(
    "sentence",
    [
        '"More efficient than RAG" remains an unverified research hypothesis.',
        "It does not replace RAG.",
        "Nothing here says that it is better than RAG.",
        "A purge removes evidence.",
    ],
)
def test_a_denial_is_no_claim(sentence):
    assert overclaims(f"A page. {sentence}", []) == []


def test_what_a_passed_gate_says_is_allowed_word_for_word():
    wording = "On locomo, EviCortex is better than hybrid chunks."
    assert overclaims(f"Hello. {wording}", [passed("other")])
    assert overclaims(f"Hello. {wording}", [passed("external", wording)]) == []
    assert overclaims("It is better than hybrid X.", [passed("external", wording)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_readme_and_docs_claim_no_more_than_the_gates_allow(page):
    assert overclaims(page.read_text("utf-8"), evaluate(REPORTS)) == []
