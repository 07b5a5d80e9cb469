"""``run_phase_c`` with the specification's flags, and the fixture that is never official."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import run_phase_c
from benchmarks.datasets import longmemeval
from benchmarks.results import read_records
from benchmarks.systems.hybrid import DIAGNOSTIC

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "benchmarks" / "fixtures" / "longmemeval_semantic_smoke.json"
RECORD = ROOT.parent / "shared" / "data" / "longmemeval" / "longmemeval_s_one_record.json"
SPECIFIED = [
    "--pooling",
    "cls",
    "--query-prefix=Represent this sentence for searching relevant passages: ",
    "--document-prefix=",
    "--max-length",
    "128",
    "--budget-tokens",
    "256",
    "--cutoffs",
    "1,2",
]


def run(tmp_path, *more, dataset=FIXTURE):
    path = tmp_path / "report.json"
    arguments = ["--dataset", str(dataset), "--report", str(path), *more]
    code = run_phase_c.main(arguments)
    return code, json.loads(path.read_text("utf-8")) if path.is_file() else None


def test_the_fixture_is_synthetic_and_known_as_never_official():
    digest = hashlib.sha256(FIXTURE.read_bytes()).hexdigest()
    assert longmemeval.SOURCE.known[digest] == "synthetic smoke, never official"
    conversations = list(longmemeval.conversations(FIXTURE))
    assert len(conversations) == 5
    assert sum(not c.labels[c.conversation_id].answerable for c in conversations) == 1


def test_the_specified_command_reports_both_systems_after_packing(tmp_path, capsys):
    code, report = run(tmp_path, "--model", "hashing-diagnostic", *SPECIFIED)
    assert code == 0
    assert report["official"] is False
    assert report["encoder_is_semantic"] is False
    assert (report["questions"], report["answerable"], report["abstentions"]) == (5, 4, 1)
    assert report["released_denominator"] == 3
    assert report["as_the_release_counts"] is None
    assert {"evicortex", DIAGNOSTIC} <= set(report["systems"])
    for entry in report["systems"].values():
        assert entry["failed"] == 0
        assert entry["mean_tokens"] <= 256
        assert entry["abstention"]["n"] == 1
        assert entry["released_denominator"]["n"] == 3
        assert "after packing/turn/recall_all@1" in entry["released_denominator"]
    oracle = report["systems"]["oracle evidence"]["all_answerable"]
    assert oracle["strict"]["mean"] == oracle["any"]["mean"] == 1.0
    assert report["systems"]["no memory"]["all_answerable"]["any"]["mean"] == 0.0
    shown = capsys.readouterr().out
    assert "NOT official" in shown
    assert report["allowed_claim"] in shown


def test_an_official_file_is_held_to_the_released_counts(tmp_path):
    run(tmp_path, "--model", "hashing-diagnostic", "--systems", "bm25", *SPECIFIED)
    records = read_records(tmp_path / "report.run")
    counted = [replace(records[0], groups=("released",))] * 419
    rest = [replace(records[0], groups=())] * 81
    official = {"label": "official S"}
    assert run_phase_c._as_released(official, [*counted, *rest]) is True
    assert run_phase_c._as_released(official, [*counted[1:], *rest]) is False
    assert run_phase_c._as_released({"label": "unofficial"}, records) is None


def test_a_model_that_is_not_pinned_is_refused(tmp_path, capsys):
    code, report = run(tmp_path, "--model", str(tmp_path), *SPECIFIED)
    assert (code, report) == (2, None)
    assert "error:" in capsys.readouterr().err


def test_a_file_that_is_no_longmemeval_file_is_refused(tmp_path, capsys):
    bad = tmp_path / "bad.json"
    bad.write_text('[{"question_id": "q"}]', encoding="utf-8")
    code, _ = run(tmp_path, "--model", "hashing-diagnostic", dataset=bad)
    assert code == 2
    assert "question_type" in capsys.readouterr().err


def test_the_strict_clock_is_a_variant(tmp_path):
    _, report = run(tmp_path, "--model", "hashing-diagnostic", "--strict-clock", *SPECIFIED)
    assert report["as_of"] == "strict clock"
    oracle = report["systems"]["full history"]
    assert oracle["failed"] == 0


@pytest.mark.slow
@pytest.mark.skipif(not RECORD.is_file(), reason="third-party data is not in this checkout")
def test_the_real_record_runs_whole(tmp_path):
    code, report = run(
        tmp_path,
        "--model",
        "hashing-diagnostic",
        "--systems",
        "evicortex;bm25;oracle evidence",
        dataset=RECORD,
    )
    assert code == 0
    assert report["dataset"]["label"] == "one record of S"
    assert report["released_denominator"] == 1
    assert {entry["failed"] for entry in report["systems"].values()} == {0}
