"""The runner: checkpoints survive a kill, failures stay, and labels never reach a system."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import manifest, prereg, runner
from benchmarks.config import ConfigError, parse
from benchmarks.datasets.base import DatasetError, Label
from benchmarks.results import (
    MANIFEST,
    RECORDS,
    RecordFile,
    read_ingests,
    read_manifest,
    read_records,
    select,
    value,
)
from benchmarks.systems import catalog
from benchmarks.systems.base import Packed
from benchmarks.systems.controls import NoMemory
from benchmarks.systems.hybrid import DIAGNOSTIC

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "benchmarks" / "fixtures" / "longmemeval_semantic_smoke.json"
TABLE = {
    "name": "small",
    "output": "out",
    "budgets": [64, 256],
    "systems": ["bm25", "oracle evidence", "hybrid chunks", "evicortex, lexical"],
    "encoder": {"kind": "hashing"},
    "datasets": [{"kind": "synthetic", "seeds": [0], "namespaces": 2, "turns": 60, "questions": 6}],
}


def configuration(tmp_path, **changes):
    return parse(TABLE | changes, tmp_path)


def quiet(line):
    """Say nothing."""


def lines(folder):
    return (folder / RECORDS).read_text(encoding="utf-8").splitlines()


def comparable(folder):
    return sorted(
        (r.key, r.pack_sha256, r.tokens, r.gold_ranks, tuple(sorted(r.values.items())))
        for r in read_records(folder)
    )


def test_a_run_writes_a_record_for_every_question_system_and_budget(tmp_path):
    folder = runner.run(configuration(tmp_path), say=quiet)
    records = read_records(folder)
    assert len(records) == 12 * 4 * 2
    assert {record.status for record in records} == {"ok"}
    assert all(record.tokens <= record.budget for record in records)
    manifest = read_manifest(folder)
    assert manifest["complete"]
    assert manifest["encoder_is_semantic"] is False
    assert manifest["suites"]["synthetic"]["sha256"]
    named = {row.system for row in read_ingests(folder)}
    assert named == {"bm25", "oracle evidence", DIAGNOSTIC, "evicortex, lexical"}
    assert {record.system for record in records} == named
    oracle = select(records, suite="synthetic", system="oracle evidence", budget=256)
    assert set(oracle.values("all")) == {1.0}
    again = runner.run(configuration(tmp_path), say=quiet)
    assert lines(again) == lines(folder)


def test_records_hold_no_text_of_the_data(tmp_path):
    config = configuration(tmp_path)
    folder = runner.run(config, say=quiet)
    written = "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    (suite,) = runner.suites_of(config)
    for conversation in suite.stream.conversations():
        for turn in conversation.turns:
            assert turn.text not in written
        for query in conversation.queries:
            assert query.text not in written


KILLED = """
import sys
from pathlib import Path
from benchmarks import runner
from benchmarks.config import parse
import json
runner.run(parse(json.loads(sys.argv[1]), Path(sys.argv[2])), say=lambda line: None)
"""


def test_a_killed_run_goes_on_and_ends_with_the_same_records(tmp_path):
    whole = runner.run(configuration(tmp_path / "a"), say=quiet)
    other = tmp_path / "b" / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, json.dumps(TABLE), str(tmp_path / "b")], cwd=ROOT
    )
    while process.poll() is None:
        if (other / RECORDS).is_file() and len(lines(other)) >= 20:
            process.send_signal(signal.SIGKILL)
            break
    assert process.wait() == -signal.SIGKILL
    before = lines(other)
    assert 20 <= len(before) < len(lines(whole))
    with (other / RECORDS).open("a", encoding="utf-8") as file:
        file.write('{"suite": "cut off by the ki')
    asked = []
    runner.run(configuration(tmp_path / "b"), say=asked.append)
    assert lines(other)[: len(before)] == before
    assert comparable(other) == comparable(whole)
    assert read_manifest(other)["complete"]
    assert not any("bm25: 12 questions" in line for line in asked)


def test_data_sets_that_differ_in_labels_alone_are_asked_once(tmp_path, monkeypatch):
    first = runner.suites_of(configuration(tmp_path))[0]
    asked = []

    class Counting(NoMemory):
        name = "counting"

        def ask(self, namespace, query, budget_tokens):
            asked.append((namespace, query.query_id, budget_tokens))
            return super().ask(namespace, query, budget_tokens)

    def relabelled():
        for conversation in first.stream.conversations():
            labels = {key: replace(each, gold=()) for key, each in conversation.labels.items()}
            yield replace(conversation, labels=labels)

    other = replace(first, name="relabelled", stream=replace(first.stream, passes=relabelled))
    makers = {**catalog.SYSTEMS, "counting": lambda bench, folder: Counting()}
    monkeypatch.setattr(catalog, "SYSTEMS", makers)
    monkeypatch.setattr(runner, "suites_of", lambda config: [first, other])
    config = replace(configuration(tmp_path), systems=("counting", "oracle evidence"))
    records = read_records(runner.run(config, say=quiet))
    assert len(asked) == len(set(asked)) == 12 * 2
    assert len(records) == 2 * 2 * 12 * 2
    one = [r for r in records if r.system == "oracle evidence" and r.suite == "relabelled"]
    assert {r.items for r in one} == {0}
    unanswered = replace(first, stream=replace(first.stream, digest="0"))
    assert [len(each) for each in runner.families([first, other, unanswered])] == [2, 1]


def test_another_configuration_or_data_file_in_the_same_folder_is_refused(tmp_path):
    runner.run(configuration(tmp_path), say=quiet)
    with pytest.raises(ConfigError, match="config_sha256 differ"):
        runner.run(configuration(tmp_path, budgets=[64]), say=quiet)


def test_an_unfinished_run_does_not_go_on_with_other_code(tmp_path, monkeypatch):
    config = configuration(tmp_path)
    folder = runner.run(config, say=quiet)
    before = lines(folder)
    monkeypatch.setattr(manifest, "code_digest", lambda: "another")
    assert runner.run(config, say=quiet) == folder
    assert lines(folder) == before
    entry = read_manifest(folder)
    del entry["complete"]
    (folder / MANIFEST).write_text(json.dumps(entry), encoding="utf-8")
    with pytest.raises(ConfigError, match="begun with other code"):
        runner.run(config, say=quiet)


def test_the_code_that_answers_has_a_digest():
    assert manifest.code_digest() == manifest.code_digest()
    assert len(manifest.code_digest()) == 64


class Moody(NoMemory):
    """Fails on some questions, lies on others."""

    name = "moody"

    def __init__(self):
        self._asked = 0

    def ask(self, namespace, query, budget_tokens):
        self._asked += 1
        if self._asked % 3 == 0:
            raise RuntimeError("out of mood")
        if self._asked % 3 == 1:
            return Packed("word " * 500, 3, {})
        return Packed("word", 1, {})


def test_a_question_that_fails_scores_zero_and_never_vanishes(tmp_path, monkeypatch):
    systems = {**catalog.SYSTEMS, "moody": lambda bench, folder: Moody()}
    monkeypatch.setattr(catalog, "SYSTEMS", systems)
    config = replace(configuration(tmp_path), systems=("moody", "bm25"))
    records = read_records(runner.run(config, say=quiet))
    errors = {record.error for record in records if record.system == "moody"}
    assert errors == {"RuntimeError", "BudgetBrokenError", None}
    for budget in (64, 256):
        moody = select(records, suite="synthetic", system="moody", budget=budget)
        other = select(records, suite="synthetic", system="bm25", budget=budget)
        assert moody.queries() == other.queries()
        assert set(moody.values("strict")) == {0.0}


def test_a_system_never_sees_a_label(tmp_path, monkeypatch):
    seen = []

    class Spy(NoMemory):
        name = "spy"

        def ingest(self, namespace, turns):
            seen.extend(turns)

        def ask(self, namespace, query, budget_tokens):
            seen.append(query)
            return super().ask(namespace, query, budget_tokens)

    monkeypatch.setattr(catalog, "SYSTEMS", {**catalog.SYSTEMS, "spy": lambda bench, folder: Spy()})
    runner.run(replace(configuration(tmp_path), systems=("spy",)), say=quiet)
    assert seen
    assert not any(isinstance(each, Label) for each in seen)
    assert not any(hasattr(each, "gold") or hasattr(each, "answer") for each in seen)


def test_ids_that_tell_about_labels_are_kept_from_systems(tmp_path, monkeypatch):
    seen = []

    class Spy(NoMemory):
        name = "spy"

        def ingest(self, namespace, turns):
            seen.extend([namespace, *(t.turn_id for t in turns), *(t.session for t in turns)])

        def ask(self, namespace, query, budget_tokens):
            seen.extend([namespace, query.query_id])
            return super().ask(namespace, query, budget_tokens)

    monkeypatch.setattr(catalog, "SYSTEMS", {**catalog.SYSTEMS, "spy": lambda bench, folder: Spy()})
    data = [{"kind": "longmemeval", "path": str(FIXTURE)}]
    config = replace(configuration(tmp_path, datasets=data), systems=("spy",))
    folder = runner.run(config, say=quiet)
    assert seen
    assert not any("answer" in each or "_abs" in each for each in seen)
    assert any("_abs" in record.query for record in read_records(folder))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"systems": ["nobody"]}, "no such system: nobody"),
        ({"systems": []}, "at least one"),
        ({"datasets": [{"kind": "nothing"}]}, "no data set 'nothing'"),
        ({"budgets": [-1]}, "counts"),
        ({"split": "train"}, "split is dev or test"),
        ({"split": "test"}, "needs prereg"),
        ({"encoder": {"kind": "magic"}}, "no encoder"),
        ({"encoder": {"color": "red"}}, r"\[encoder\] has no color"),
        ({"hybrid": {"magic": 1}}, r"\[hybrid\] has no magic"),
        ({"surprise": 1}, "has no surprise"),
    ],
)
def test_a_configuration_is_checked_whole_before_anything_starts(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        configuration(tmp_path, **changes)
    assert not (tmp_path / "out").exists()


def test_a_missing_key_and_an_unreadable_file_are_named(tmp_path, capsys):
    with pytest.raises(ConfigError, match="lacks 'systems'"):
        parse({key: each for key, each in TABLE.items() if key != "systems"}, tmp_path)
    (tmp_path / "a.toml").write_text("name = ", encoding="utf-8")
    assert command.main(["run", str(tmp_path / "a.toml")]) == 2
    assert "a.toml" in capsys.readouterr().err


def test_data_sets_are_checked_when_they_are_opened(tmp_path):
    config = configuration(tmp_path, datasets=[{"kind": "locomo", "path": "absent.json"}])
    with pytest.raises(DatasetError, match="names no file"):
        runner.run(config, say=quiet)
    config = configuration(tmp_path, datasets=[{"kind": "synthetic", "color": "red"}])
    with pytest.raises(DatasetError, match="unknown options color"):
        runner.run(config, say=quiet)
    twice = configuration(tmp_path, datasets=[*TABLE["datasets"], *TABLE["datasets"]])
    with pytest.raises(ConfigError, match="one name"):
        runner.run(twice, say=quiet)


def test_every_file_of_a_data_set_has_a_digest(tmp_path):
    turns = [{"dia_id": "D1:1", "speaker": "Ann", "text": "Hello."}]
    talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    item = {"item": 1, "sample_id": "c", "relation": "goal", "query": "Hm.", "query_speaker": "Ann"}
    times = {"cue_time": "2023-05-09T00:00:00Z", "query_time": "2023-05-10T00:00:00Z"}
    items, haystack = tmp_path / "items.json", tmp_path / "haystack.json"
    items.write_text(json.dumps([item | times | {"cue": turns}]), encoding="utf-8")
    options = {"kind": "locomo-plus", "path": str(items), "haystack": str(haystack)}
    found = []
    for text in ("Hello.", "Goodbye."):
        turns[0]["text"] = text
        record = {"sample_id": "c", "conversation": talk, "qa": []}
        haystack.write_text(json.dumps([record]), encoding="utf-8")
        config = configuration(tmp_path, datasets=[options])
        found.append(runner.digests(runner.suites_of(config)))
    assert set(found[0]) == {"locomo-plus", "locomo-plus, haystack"}
    assert found[0]["locomo-plus"] == found[1]["locomo-plus"]
    assert found[0] != found[1]


TOML = """
name = "small"
output = "out"
split = "test"
prereg = "frozen.json"
budgets = [64]
systems = ["bm25"]
[encoder]
kind = "none"
[[datasets]]
kind = "synthetic"
seeds = [0]
namespaces = 1
turns = 40
questions = 4
"""


def test_a_test_run_refuses_another_configuration_than_the_frozen_one(tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text(TOML, encoding="utf-8")
    frozen = tmp_path / "frozen.json"
    assert command.main(["run", str(path)]) == 2
    assert "no preregistration" in capsys.readouterr().err
    assert command.main(["prereg", str(path), "--out", str(frozen)]) == 0
    digest = capsys.readouterr().out.split()[-1]
    assert command.main(["prereg", str(path), "--out", str(frozen)]) == 2
    assert "written once" in capsys.readouterr().err
    assert command.main(["run", str(path)]) == 0
    assert read_manifest(tmp_path / "out")["prereg_sha256"] == digest
    path.write_text(TOML.replace("[64]", "[65]"), encoding="utf-8")
    assert command.main(["run", str(path), "--output", str(tmp_path / "other")]) == 2
    assert "not the preregistered one: budgets changed" in capsys.readouterr().err
    path.write_text(TOML, encoding="utf-8")
    entry = json.loads(frozen.read_text(encoding="utf-8"))
    frozen.write_text(json.dumps(entry | {"data": {"synthetic": "0"}}), encoding="utf-8")
    with pytest.raises(ConfigError, match="data are not those"):
        prereg.check(parse_file(path), {"synthetic": "1"})


def parse_file(path):
    from benchmarks.config import load

    return load(path)


def test_values_are_derived_from_ranks(tmp_path):
    (record, *_) = read_records(runner.run(configuration(tmp_path), say=quiet))
    found = replace(record, gold=2, gold_ranks=(1, 3), items=4, status="ok", refused=True)
    assert value(found, "all") == value(found, "any") == value(found, "mrr") == 1.0
    assert value(found, "recall@1") == 0.5
    assert value(found, "recall@3") == 1.0
    assert value(found, "refused") == 1.0
    assert value(found, "answered") == 0.0
    assert value(found, "no such measure") == 0.0
    assert value(replace(found, gold_ranks=(None, 3)), "all") == 0.0
    assert value(replace(found, status="failed"), "any") == 0.0


def test_a_line_cut_off_by_a_kill_is_dropped(tmp_path):
    path = tmp_path / RECORDS
    path.write_text('{"a": 1}\n{"b"', encoding="utf-8")
    RecordFile(path).close()
    assert path.read_text(encoding="utf-8") == '{"a": 1}\n'
