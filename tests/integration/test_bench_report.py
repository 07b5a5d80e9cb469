"""The report: tables, plots and one HTML file, from records alone."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil

import pytest

from benchmarks import __main__ as command
from benchmarks import gates, report, run_vector_scale, runner, tables
from benchmarks.config import parse
from benchmarks.results import MANIFEST, RECORDS, read_records

TABLE = {
    "name": "small",
    "output": "out",
    "budgets": [64, 256],
    "systems": ["bm25", "oracle evidence", "hybrid chunks", "evicortex, lexical"],
    "encoder": {"kind": "hashing"},
    "datasets": [
        {"kind": "synthetic", "seeds": [0], "namespaces": 2, "turns": 80, "questions": 10},
        {"kind": "longmemeval", "path": "fixture.json"},
    ],
}
has_matplotlib = importlib.util.find_spec("matplotlib") is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    fixture = "benchmarks/fixtures/longmemeval_semantic_smoke.json"
    shutil.copy(command.__file__.replace("benchmarks/__main__.py", fixture), place / "fixture.json")
    return runner.run(parse(TABLE, place), say=lambda line: None)


def test_tables_show_every_whole_system_with_intervals(folder):
    records = read_records(folder)
    table = tables.recall_table(records, "synthetic")
    names = ["bm25", "oracle evidence", "BM25 + hashing diagnostic", "evicortex, lexical"]
    assert [row[:2] for row in table.rows] == [
        (name, how) for name in names for how in ("question", "conversation")
    ]
    assert table.rows[2][-1] == "100.0 [100.0, 100.0]"
    assert all(re.fullmatch(r"\d+\.\d \[\d+\.\d, \d+\.\d\]", cell) for cell in table.rows[0][2:])
    paired = tables.paired_table(records, "synthetic")
    assert [row[:2] for row in paired.rows] == [
        ("evicortex, lexical - BM25 + hashing diagnostic", "question"),
        ("evicortex, lexical - BM25 + hashing diagnostic", "conversation"),
        ("evicortex, lexical - bm25", "question"),
        ("evicortex, lexical - bm25", "conversation"),
    ]


def test_released_measures_name_their_denominator_and_stage(folder):
    table = tables.released_table(read_records(folder), "longmemeval", 256)
    assert {row[1:4] for row in table.rows} == {
        ("released denominator", "after packing", "3"),
        ("released denominator", "before packing", "3"),
        ("all answerable", "after packing", "4"),
        ("all answerable", "before packing", "4"),
    }
    assert tables.released_table(read_records(folder), "synthetic", 256) is None


def test_a_system_with_missing_questions_is_named_and_not_shown(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "cut")
    lines = (folder / RECORDS).read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if '"system": "bm25"' not in line] + [
        line for line in lines if '"system": "bm25"' in line
    ][:-1]
    (tmp_path / "cut" / RECORDS).write_text("".join(kept), encoding="utf-8")
    records = read_records(tmp_path / "cut")
    assert tables.incomplete(records, "longmemeval") == ["bm25"]
    report.write([tmp_path / "cut"], tmp_path / "a.html")
    assert "because questions are missing: bm25" in (tmp_path / "a.html").read_text("utf-8")


def test_the_page_is_one_file_without_anything_from_elsewhere(folder, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert command.main(["report", str(folder), "--out", str(out)]) == 0
    page = out.read_text("utf-8")
    assert not re.findall(r'(?:src|href)="?(?!data:)\w', page)
    assert "Not preregistered" in page
    assert "abstention, retrieval only" in page
    assert ("matplotlib is not installed" in page) == (not has_matplotlib)
    assert capsys.readouterr().out.strip() == str(out)


@pytest.mark.skipif(not has_matplotlib, reason="evicortex[bench] is not installed")
def test_plots_are_png_inside_the_page(folder, tmp_path):
    out, png = tmp_path / "report.html", tmp_path / "png"
    words = ["report", str(folder), "--out", str(out), "--png", str(png)]
    assert command.main(words) == 0
    page = out.read_text("utf-8")
    names = sorted(path.name for path in png.iterdir())
    assert len(names) == 8
    assert "longmemeval-recall-over-budget.png" in names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in png.iterdir())
    assert page.count("data:image/png;base64,iVBOR") == 8
    assert "calibration: not run" not in page


def test_a_preregistration_is_printed_and_mixed_runs_are_refused(folder, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    manifest = json.loads((other / MANIFEST).read_text("utf-8"))
    changed = manifest | {"prereg_sha256": "abc123"}
    (other / MANIFEST).write_text(json.dumps(changed), encoding="utf-8")
    report.write([other], tmp_path / "a.html")
    assert "Preregistered as abc123" in (tmp_path / "a.html").read_text("utf-8")
    manifest["suites"]["synthetic"]["sha256"] = "another"
    (other / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ValueError, match="runs differ in data"):
        report.read([folder, other])


def test_one_command_runs_reports_and_publishes(tmp_path, capsys):
    path = tmp_path / "a.toml"
    path.write_text(
        'name = "a"\noutput = "a"\nbudgets = [64]\nsystems = ["bm25"]\n[encoder]\nkind = "none"\n'
        '[[datasets]]\nkind = "synthetic"\nnamespaces = 1\nturns = 40\nquestions = 4\n',
        encoding="utf-8",
    )
    out, kept = tmp_path / "a.html", tmp_path / "kept"
    words = ["report", str(path), "--out", str(out), "--publish", str(kept)]
    assert command.main(words) == 0
    assert read_records(kept / "a") == read_records(tmp_path / "a")
    first = (kept / "a" / f"{RECORDS}.gz").read_bytes()
    assert command.main(words) == 0
    assert (kept / "a" / f"{RECORDS}.gz").read_bytes() == first
    again = tmp_path / "again.html"
    assert command.main(["report", str(kept / "a"), "--out", str(again)]) == 0
    assert again.read_bytes() == out.read_bytes()
    assert capsys.readouterr().out.split()[-1] == str(again)


def test_gates_print_what_is_allowed(tmp_path, capsys):
    assert command.main(["gates", str(tmp_path)]) == 0
    assert "not run" in capsys.readouterr().out


def extracted():
    rate = {"value": 0.5, "low": 0.4, "high": 0.6, "count": 5.0, "of": 10.0}
    return {
        "data": "sgd",
        "files": {"0": "dev"},
        "dialogues": 3,
        "gold": 10,
        "systems": {
            "evicortex/rules": {
                "headline": "spo",
                "matches": {"spo": {"precision_judged": rate, "recall": rate}},
                "false_positives_per_100_silent_turns": {"all": rate},
                "abstention_rate": rate,
                "contradictions": rate,
                "supersession": {"changes": 3, "right": 2, "rates": {"right": rate}},
                "temporal_boundaries": None,
                "cost_per_1000_turns": {"cpu_s": 1.25},
            }
        },
    }


def test_seeds_stand_together_and_what_is_measured_apart_has_its_sections(tmp_path):
    seeds = {"kind": "synthetic", "seeds": [0, 1], "namespaces": 1, "turns": 40, "questions": 4}
    table = {**TABLE, "systems": ["bm25", "oracle evidence"], "datasets": [seeds]}
    made = runner.run(parse(table, tmp_path), say=lambda line: None)
    evidence = tmp_path / "evidence"
    (evidence / "extraction").mkdir(parents=True)
    (evidence / "extraction" / "claims.json").write_text('{"suites": {}}', encoding="utf-8")
    (evidence / "extraction" / "a.json").write_text(
        json.dumps({"data": [extracted()]}), encoding="utf-8"
    )
    shutil.copy(gates.__file__.replace("gates.py", "reports/tuning.jsonl"), evidence)
    words = ["--sizes", "100", "200", "--queries", "3", "--json"]
    assert run_vector_scale.main([*words, str(evidence / "vector-scale.json")]) == 0
    report.write([made], tmp_path / "a.html", evidence=evidence)
    page = (tmp_path / "a.html").read_text("utf-8")
    for title in ("Exact search over size", "Claims from raw text", "Trials", "Gates"):
        assert f"<h3>{title}</h3>" in page
    assert "50.0 [40.0, 60.0] (5/10)" in page
    assert "<td>changes 3, right 2</td><td>–</td>" in page
    assert "3 of 3" in page
    assert "remains an unverified research hypothesis" in page
    assert "<h2>synthetic, 2 seeds together</h2>" in page
    assert "synthetic, seed 0: recall within a budget" in page
    assert re.search(r"n = \d+ in 2 conversations", page)
    if has_matplotlib:
        assert 'alt="exact search over size"' in page


def test_the_tuning_command_records_trials_and_goes_on(tmp_path, capsys):
    path, trials = tmp_path / "a.toml", tmp_path / "trials.jsonl"
    path.write_text(
        'name = "a"\noutput = "a"\nsystems = ["hybrid chunks", "evicortex"]\n'
        '[encoder]\nkind = "hashing"\n[[datasets]]\nkind = "synthetic"\nnamespaces = 2\n'
        "turns = 40\nquestions = 6\n",
        encoding="utf-8",
    )
    words = ["tune", str(path), "--budgets", "60", "--every", "1", "--trials-file", str(trials)]
    assert command.main([*words, "--trials", "2"]) == 0
    lines = trials.read_text("utf-8").splitlines()
    assert [json.loads(line)["shipped"] for line in lines] == [True, False] * 2
    assert command.main([*words, "--trials", "2"]) == 0
    assert trials.read_text("utf-8").splitlines() == lines
    assert "evicortex: 2 trials, default" in capsys.readouterr().out
    test = path.read_text("utf-8").replace(
        'output = "a"', 'output = "a"\nsplit = "test"\nprereg = "x"'
    )
    path.write_text(test, encoding="utf-8")
    assert command.main([*words, "--trials", "2"]) == 2
    assert "development split only" in capsys.readouterr().err
