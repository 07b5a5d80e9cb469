"""Gates decide what may be said; README and docs say no more."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import gate_checks, gates
from benchmarks.gates import GATES, Gate, evaluate, overclaims, render
from benchmarks.results import MANIFEST, RECORDS, Record, RecordFile

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "benchmarks" / "reports"
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "benchmarks" / "reports" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


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
        "complete": True,
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


ARMS = ("evicortex", "evicortex, ranker off", "hybrid chunks")


def compared(own, plain, other, **fields):
    return [
        record(name, q, good(q), **fields)
        for name, good in zip(ARMS, (own, plain, other), strict=True)
        for q in range(40)
    ]


def most(q):
    return q % 5 != 0


def few(q):
    return q % 3 == 0


@pytest.mark.parametrize(
    ("records", "fields", "status"),
    [
        (compared(most, most, few), {}, "passed"),
        (compared(most, most, few), {"encoder_is_semantic": False}, "failed"),
        (compared(most, few, few), {}, "failed"),
        (compared(most, few, few), {"split": "test"}, "passed"),
        (compared(few, few, few), {}, "failed"),
    ],
)
def test_the_comparison_needs_a_difference_by_conversation_and_unseen_data_or_no_ranker(
    tmp_path, records, fields, status
):
    write_run(tmp_path / "run", records, **fields)
    gate = by_key(tmp_path)["external"]
    assert gate.status == status
    assert gate.record == "run"
    assert ("+45.0" in gate.wording) == (status == "passed")
    assert ("its ranker was trained" in gate.wording) == (status == "passed" and not fields)


def test_the_comparison_is_with_the_strongest_on_every_data_set(tmp_path):
    records = compared(most, most, few)
    records += [record("rrf-k60", q, most(q)) for q in range(40)]
    write_run(tmp_path / "a" / "run", records)
    gate = by_key(tmp_path / "a")["external"]
    assert gate.status == "failed"
    assert "+0.0 [+0.0, +0.0] points to rrf-k60" in gate.figure
    both = compared(most, most, few)
    both += [replace(r, suite="realtalk") for r in compared(few, few, few)]
    write_run(tmp_path / "b" / "run", both, suites=("locomo", "realtalk"))
    gate = by_key(tmp_path / "b")["external"]
    assert gate.status == "failed"
    assert "locomo: +45.0" in gate.figure
    assert "realtalk: +0.0" in gate.figure


def test_the_comparison_says_when_the_ranker_was_never_off(tmp_path):
    records = [r for r in compared(most, most, few) if r.system != "evicortex, ranker off"]
    write_run(tmp_path / "run", records)
    gate = by_key(tmp_path)["external"]
    assert gate.status == "failed"
    assert "without the ranker, which was trained on them, not run" in gate.figure


def test_a_system_with_missing_questions_is_not_compared(tmp_path):
    records = [record("evicortex", q, True) for q in range(8)]
    records += [record("hybrid chunks", q, False) for q in range(7)]
    write_run(tmp_path / "run", records)
    assert by_key(tmp_path)["external"].status == "not run"


def test_a_run_that_was_stopped_proves_nothing(tmp_path):
    records = compared(most, most, few)
    write_run(tmp_path / "a" / "run", records)
    assert by_key(tmp_path / "a")["external"].status == "passed"
    write_run(tmp_path / "b" / "run", records, complete=False)
    assert by_key(tmp_path / "b")["external"].status == "not run"


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
        "Without a GPU, EviCortex outperforms every memory.",
        "EviCortex beats hybrid RAG, and no model is needed.",
        "EviCortex is superior to RAG.",
        "It wins against vector stores.",
        "EviCortex has higher recall than any RAG pipeline.",
        "It finds more evidence than chunks.",
        "It is faster than RAG.",
        "Twice as accurate as RAG.",
        "EviCortex makes RAG obsolete.",
        "Best-in-class recall.",
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
        "It is not faster than RAG, and nothing says that it is better than RAG.",
    ],
)
def test_a_denial_is_no_claim(sentence):
    assert overclaims(f"A page. {sentence}", []) == []


def test_what_a_passed_gate_says_is_allowed_word_for_word():
    wording = "On locomo, EviCortex is better than hybrid chunks."
    assert overclaims(f"Hello. {wording}", [passed("other")])
    assert overclaims(f"Hello. {wording}", [passed("external", wording)]) == []
    assert overclaims("It is better than hybrid X.", [passed("external", wording)])


@functools.cache
def of_the_reports():
    return evaluate(REPORTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_readme_and_docs_claim_no_more_than_the_gates_allow(page):
    assert overclaims(page.read_text("utf-8"), of_the_reports()) == []


def test_every_gate_names_the_record_that_decided_it():
    for gate in of_the_reports():
        assert gate.status == "not run" or (gate.figure and gate.record), gate.key
        for name in filter(None, gate.record.split(", ")):
            assert (REPORTS / name).exists(), gate.key


def scanned(size, *, identical=9, ann=True):
    interval = {"mean": 0.9, "low": 0.8, "high": 0.95, "n": 9}
    return {
        "shape": "clustered",
        "size": size,
        "queries": 9,
        "float32": {"p50_ms": 3.0, "p95_ms": 4.0},
        "certified": {
            "p50_ms": 2.0,
            "p95_ms": 3.0,
            "build_cpu_s": 1.0,
            "identical": identical,
            "rescored_p50": 90.0,
            "rescored_p95": 99.0,
            "ratio": interval,
        },
        "ann": {
            "index": "faiss 1",
            "p50_ms": 1.0 if size > 9_999 else 5.0,
            "p95_ms": 6.0,
            "build_cpu_s": 1.0,
            "recall": interval,
            "ratio": interval,
        }
        if ann
        else None,
    }


@pytest.mark.parametrize(
    ("points", "status", "figure"),
    [
        (
            [scanned(1_000), scanned(10_000), scanned(100_000)],
            "passed",
            "certified scan from 10,000 clustered on",
        ),
        ([scanned(1_000), scanned(10_000)], "failed", "missing [100000]"),
        ([scanned(1_000), scanned(10_000), scanned(100_000, ann=False)], "failed", "no ANN"),
        ([scanned(1_000, identical=8), scanned(10_000), scanned(100_000)], "failed", "ids differ"),
    ],
)
def test_exact_search_is_compared_at_every_size(tmp_path, points, status, figure):
    (tmp_path / "vector-scale.json").write_text(json.dumps({"points": points}), encoding="utf-8")
    gate = by_key(tmp_path)["vector-scale"]
    assert gate.status == status
    assert figure in gate.figure
    assert ("0.90, 0.90, 0.90" in gate.wording) == (status == "passed")


def extracted(**changes):
    rate = {"value": 0.5, "low": 0.4, "high": 0.6, "count": 5.0, "of": 10.0}
    system = {
        "headline": "spo",
        "matches": {"spo": {"precision_judged": rate, "recall": rate}},
        "false_positives_per_100_silent_turns": {"all": rate},
        "contradictions": rate,
        "supersession": {"changes": 3},
        "temporal_boundaries": {"right": 2},
        "cost_per_1000_turns": {"cpu_s": 1.25},
    }
    return {
        "data": "sgd",
        "files": {"0": "dev"},
        "dialogues": 3,
        "systems": {"evicortex/rules": system | changes},
    }


def test_extraction_needs_counts_intervals_and_cost(tmp_path):
    folder = tmp_path / "extraction"
    folder.mkdir()
    (folder / "claims.json").write_text('{"suites": {}}', encoding="utf-8")
    assert by_key(tmp_path)["extraction"].status == "not run"
    path = folder / "rules.json"
    path.write_text(json.dumps({"data": [extracted()]}), encoding="utf-8")
    gate = by_key(tmp_path)["extraction"]
    assert (gate.status, gate.record) == ("passed", "extraction/rules.json")
    assert "precision 50.0 [40.0, 60.0] of 10" in gate.wording
    assert "1.25 CPU s per 1,000 turns" in gate.wording
    path.write_text(json.dumps({"data": [extracted(cost_per_1000_turns={})]}), encoding="utf-8")
    assert by_key(tmp_path)["extraction"].status == "failed"
    for data in ([], [extracted(supersession=None)]):
        path.write_text(json.dumps({"data": data}), encoding="utf-8")
        assert by_key(tmp_path)["extraction"].status == "failed"


def supported(query, *, told, probability=None):
    answerable = query % 3 != 0
    found = record("evicortex", query, True, conversation=f"c{query % 5}")
    signal = float(answerable) if told else 0.0
    return replace(
        found,
        answerable=answerable,
        counted=answerable,
        signals={"s": signal},
        probability=None if probability is None else abs(signal - probability),
    )


@pytest.mark.parametrize(
    ("told", "probability", "status"),
    [
        (True, None, "failed"),
        (True, 0.02, "passed"),
        (True, 0.4, "failed"),
        (False, 0.33, "failed"),
    ],
)
def test_refusal_is_calibrated_only_by_probabilities_of_the_packs(
    tmp_path, told, probability, status
):
    records = [supported(q, told=told, probability=probability) for q in range(60)]
    write_run(tmp_path / "run", records)
    gate = by_key(tmp_path)["calibrated-refusal"]
    assert gate.status == status
    assert ("packs give no probability" in gate.figure) == (probability is None)


def test_a_reranker_counts_when_it_is_pinned_and_bounded(tmp_path):
    name = gate_checks.RERANKED
    for place, pairs, pinned, status in (
        ("a", 16, "model@1", "passed"),
        ("b", 17, "model@1", "failed"),
        ("c", 16, None, "not run"),
    ):
        records = [record("evicortex", q, True) for q in range(8)]
        records += [replace(record(name, q, True), costs={"rerank_pairs": pairs}) for q in range(8)]
        write_run(tmp_path / place / "run", records, reranker=pinned)
        assert by_key(tmp_path / place)["cross-encoder"].status == status


def test_a_reader_counts_when_it_is_pinned_and_read_every_system(tmp_path):
    rate = {"value": 0.5, "low": 0.4, "high": 0.6, "of": 10.0}
    found = {
        "reader": "model@1",
        "tokenizer_is_exact": True,
        "measure": "F1",
        "data": "locomo",
        "systems": dict.fromkeys(
            ("evicortex", "hybrid chunks", "no memory", "oracle evidence"), rate
        ),
    }
    for changes, status in (
        ({}, "passed"),
        ({"reader": ""}, "failed"),
        ({"systems": {}}, "failed"),
    ):
        path = tmp_path / "shared-reader.json"
        path.write_text(json.dumps(found | changes), encoding="utf-8")
        assert by_key(tmp_path)["shared-reader"].status == status


def test_an_ann_layer_needs_its_recall_at_both_sizes(tmp_path):
    points = [{"size": size, "recall": {"mean": 0.99}} for size in (10_000, 100_000)]
    for kept, layer, status in (
        (points, "hnsw", "passed"),
        (points[:1], "hnsw", "failed"),
        (points, "", "failed"),
    ):
        found = {"layer": layer, "points": kept}
        (tmp_path / "ann-scale.json").write_text(json.dumps(found), encoding="utf-8")
        assert by_key(tmp_path)["ann-scale"].status == status


def test_an_official_split_is_that_of_the_file_and_whole(tmp_path):
    both = [record(name, 1, True) for name in ("evicortex", "hybrid chunks")]
    for place, label, records, status in (
        ("a", "dev6", both, "not run"),
        ("b", "official", both, "passed"),
        ("c", "official", both[:1], "failed"),
    ):
        write_run(tmp_path / place / "run", records, label=label)
        assert by_key(tmp_path / place)["official-split"].status == status


def test_efficiency_needs_recall_compute_and_every_other_gate(tmp_path):
    records = [
        replace(record(name, q, good, budget=budget), cpu_ms=ms)
        for name, good, ms in (("evicortex", True, 1.0), ("hybrid chunks", False, 2.0))
        for q in range(8)
        for budget in gates.CURVE
    ]
    write_run(tmp_path / "a" / "run", records)
    gate = by_key(tmp_path / "a")["efficiency"]
    assert gate.status == "failed"
    assert "CPU 0.50 [0.50, 0.50]" in gate.figure
    assert "gates not passed: synthetic-curves, vector-scale, extraction" in gate.figure
    assert "efficiency" not in gate.figure


def test_efficiency_is_allowed_by_name_when_all_is_passed(tmp_path, monkeypatch):
    slow = [
        replace(record(name, q, good, budget=budget), cpu_ms=ms)
        for name, good, ms in (("evicortex", True, 3.0), ("hybrid chunks", False, 2.0))
        for q in range(8)
        for budget in gates.CURVE
    ]
    fast = [replace(r, cpu_ms=1.0) if r.system == "evicortex" else r for r in slow]
    write_run(tmp_path / "slow" / "run", slow)
    write_run(tmp_path / "fast" / "run", fast)
    monkeypatch.setattr(gates, "GATES_B", ())
    monkeypatch.setattr(gates, "GATES_OF_B_IN_C", ())
    assert by_key(tmp_path / "slow")["efficiency"].status == "failed"
    found = evaluate(tmp_path / "fast")
    assert {gate.key: gate for gate in found}["efficiency"].status == "passed"
    assert "hypothesis" not in render(found)
