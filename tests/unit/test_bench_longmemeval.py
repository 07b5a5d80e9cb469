"""LongMemEval: strict records, streamed, and the released measures against a transcription."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.datasets import longmemeval
from benchmarks.datasets.base import DatasetError, ReleasedCorpus
from benchmarks.datasets.json_stream import digest_of, records
from benchmarks.metrics import longmemeval as released

ROOT = Path(__file__).parents[2]
RECORD = ROOT.parent / "shared" / "data" / "longmemeval" / "longmemeval_s_one_record.json"


def turn(role, content, **fields):
    return {"role": role, "content": content, **fields}


def record(**fields):
    return {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "How many kayaks?",
        "question_date": "2023/05/30 (Tue) 23:17",
        "answer": 3,
        "answer_session_ids": ["answer_a_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/30 (Tue) 23:50"],
        "haystack_session_ids": ["s1", "answer_a_1"],
        "haystack_sessions": [
            [turn("assistant", "Hello."), turn("user", "")],
            [
                turn("user", "I have three.", has_answer=True),
                turn("assistant", "Good.", has_answer=False),
                turn("user", "Yes.", has_answer=False),
            ],
        ],
    } | fields


def test_a_record_maps_whole_with_its_traps():
    found = longmemeval.map_record(record())
    (query,) = found.queries
    label = found.labels["q1"]
    assert [t.turn_id for t in found.turns] == [
        "s1_1",
        "s1_2",
        "s2_1",
        "s2_2",
        "s2_3",
    ]
    assert found.turns[1].text == ""
    assert label.answer == "3"
    assert label.gold == ("s2_1",)
    assert query.as_of == datetime(2023, 5, 30, 23, 59, 59, 999_999, tzinfo=UTC)
    assert query.as_of >= found.turns[2].occurred_at
    assert label.released.document_ids == ("s1_2", "answer_a_1_1", "noans_a_1_3")
    assert label.released.session_ids == ("s1", "answer_a_1")


def test_the_strict_clock_asks_at_the_minute():
    (query,) = longmemeval.map_record(record(), strict_clock=True).queries
    assert query.as_of == datetime(2023, 5, 30, 23, 17, tzinfo=UTC)


def test_a_session_id_that_repeats_keeps_its_released_id_and_gets_a_key_of_its_own():
    base = record()
    ids = ["s1", "s1", "answer_a_1"]
    found = longmemeval.map_record(
        record(
            haystack_session_ids=ids,
            haystack_dates=[*base["haystack_dates"], "2023/05/30 (Tue) 23:51"],
            haystack_sessions=[base["haystack_sessions"][0], *base["haystack_sessions"]],
        )
    )
    corpus = found.labels["q1"].released
    assert {t.session for t in found.turns} == {"s1", "s2", "s3"}
    assert corpus.document_ids[:2] == ("s1_2", "s1_2")
    assert corpus.turn_ids[:2] == ("s1_2", "s2_2")


def test_an_answer_session_without_user_evidence_is_no_target():
    sessions = [[turn("user", "a", has_answer=False), turn("assistant", "b", has_answer=True)]]
    found = longmemeval.map_record(
        record(
            haystack_session_ids=["answer_a_1"],
            haystack_dates=["2023/05/20 (Sat) 02:21"],
            haystack_sessions=sessions,
        )
    )
    label = found.labels["q1"]
    assert label.gold == ("s1_2",)
    assert label.counted
    assert label.released.session_ids == ("noans_a_1",)
    assert not released.in_released_denominator("q1", label.released)


def test_an_abstention_is_never_answerable():
    found = longmemeval.map_record(record(question_id="q1_abs"))
    label = found.labels["q1_abs"]
    assert not label.answerable
    assert not label.counted
    assert not released.in_released_denominator("q1_abs", label.released)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question_date": "2023/05/30 23:17"}, "not a LongMemEval time"),
        ({"question_date": "2023/05/30 (Wed) 23:17"}, "that day is a Tuesday"),
        ({"question_date": "2023/02/30 (Thu) 23:17"}, "not a LongMemEval time"),
        ({"question_date": None}, "not a LongMemEval time"),
        ({"question_date": "\u0662023/05/30 (Tue) 23:17"}, "not a LongMemEval time"),
        ({"answer_session_ids": [["a"]]}, "must be texts"),
        ({"question_type": "other"}, "unknown question type"),
        ({"question": " "}, "a blank question"),
        ({"question": 3}, "must be a str"),
        ({"answer": ""}, "an answer must be text"),
        ({"answer": True}, "an answer must be text"),
        ({"answer": 2.5}, "an answer must be text"),
        ({"haystack_dates": ["2023/05/20 (Sat) 02:21"]}, "1 dates, 2 sessions"),
        ({"answer_session_ids": []}, "without answer sessions"),
        ({"answer_session_ids": ["answer_b"]}, "in the haystack"),
        ({"question_id": "q_abs", "answer_session_ids": []}, "marked but not named"),
        ({"haystack_session_ids": ["", "answer_a_1"]}, "no id"),
        ({"haystack_sessions": [[turn("user", "x", has_answer=True)], []]}, "outside an answer"),
        ({"haystack_sessions": [[], [turn("user", "x")]]}, "without has_answer"),
        ({"haystack_sessions": [[turn("user", "x", has_answer="no")], []]}, "has_answer is 'no'"),
        ({"haystack_sessions": [[turn("tool", "x")], []]}, "without a known role"),
        ({"haystack_sessions": [[turn("user", None)], []]}, "without text"),
    ],
)
def test_a_record_that_breaks_a_rule_is_refused(fields, message):
    with pytest.raises(DatasetError, match=message):
        longmemeval.map_record(record(**fields))


def write(path, items):
    text = json.dumps(items).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def test_files_are_streamed_plain_and_gzipped_with_one_digest(tmp_path):
    items = [record(), record(question_id="q2")]
    plain = longmemeval.stream(write(tmp_path / "a.json", items))
    packed = longmemeval.stream(write(tmp_path / "a.json.gz", items))
    assert plain.digest == packed.digest
    assert plain.label == "unofficial"
    assert [c.conversation_id for c in packed.conversations()] == ["q1", "q2"]
    assert list(packed.conversations()) == list(plain.conversations())


def test_an_official_file_is_known_by_its_digest(tmp_path, monkeypatch):
    path = write(tmp_path / "a.json", [record()])
    known = {**longmemeval.SOURCE.known, digest_of(path): "official S"}
    monkeypatch.setattr(
        longmemeval,
        "SOURCE",
        type(longmemeval.SOURCE)("longmemeval", "o", "r", "MIT", known),
    )
    assert longmemeval.stream(path).label == "official S"


def test_the_official_digests_are_those_of_the_cleaned_release():
    known = {label: digest for digest, label in longmemeval.SOURCE.known.items()}
    assert known["official S"].startswith("d6f21ea9d60a0d56")
    assert known["official M"].startswith("9d79e5524794a2e6")


def test_a_question_that_repeats_or_breaks_a_rule_is_named(tmp_path):
    twice = longmemeval.stream(write(tmp_path / "a.json", [record(), record()]))
    with pytest.raises(DatasetError, match="record 1: q1 repeats"):
        list(twice.conversations())
    broken = longmemeval.stream(write(tmp_path / "b.json", [record(answer=None)]))
    with pytest.raises(DatasetError, match=r"b.json, record 0 \(q1\): an answer"):
        list(broken.conversations())


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(
    items=st.lists(st.dictionaries(st.text(), JSON_VALUES, max_size=4), min_size=1, max_size=4),
    chunk=st.integers(1, 7),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_records_are_cut_right_wherever_the_reading_stops(
    tmp_path_factory, items, chunk, ascii_only, indent
):
    path = tmp_path_factory.mktemp("cut") / "a.json"
    path.write_text(json.dumps(items, ensure_ascii=ascii_only, indent=indent), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.datasets.json_stream._CHUNK", chunk)
        assert list(records(path)) == items


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "ends before its array"),
        ("[]", "without records"),
        ('{"a": 1}', "expected an array"),
        ('[{"a": 1}', "ends before its array"),
        ('[{"a": 1', "ends before its array"),
        ('[{"a": 1}] x', "expected an array"),
        ('[{"a": 1}][{"a": 2}]', "expected an array"),
        ('[{"a": NaN}]', "not JSON"),
        ('[{"a": }]', "record 0"),
        ("[3]", "expected an array"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=message):
        list(records(path))


def test_bytes_that_are_not_text_and_a_cut_archive_are_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"a": "\xff"}]')
    with pytest.raises(DatasetError, match="UTF-8"):
        list(records(path))
    path.write_bytes(gzip.compress(b'[{"a": 1}]')[:-6])
    with pytest.raises(DatasetError, match="UTF-8"):
        list(records(path))


PEAK = """
import resource, sys
from pathlib import Path
from benchmarks.datasets import longmemeval
path = Path(sys.argv[1])
if len(sys.argv) > 2:
    found = longmemeval.stream(path)
    print(sum(len(c.turns) for c in found.conversations()))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "big.json.gz"
    filler = [[turn("user", "x" * 2_000), turn("assistant", "y" * 2_000)] for _ in range(100)]
    size = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        for number in range(300):
            big = record(
                question_id=f"q{number}",
                haystack_session_ids=[*(f"s{i}" for i in range(100)), "answer_a_1"],
                haystack_dates=["2023/05/20 (Sat) 02:21"] * 101,
                haystack_sessions=[*filler, record()["haystack_sessions"][1]],
            )
            size += file.write(("[" if number == 0 else ",") + json.dumps(big))
        file.write("]")
    runs = [
        subprocess.run(
            [sys.executable, "-c", PEAK, str(path), *extra],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for extra in ([], ["read"])
    ]
    (empty,), (turns, peak) = runs
    assert int(turns) == 300 * 203
    assert size > 120_000_000
    assert int(peak) - int(empty) < 40_000  # kilobytes: a few records, of a file three times that


# An independent transcription of the released formulas (eval_utils.py at 9e0b455), on NumPy.


def transcribed_dcg(relevances, k):
    relevances = np.asarray(relevances, dtype=float)[:k]
    if relevances.size == 0:
        return 0.0
    return relevances[0] + np.sum(relevances[1:] / np.log2(np.arange(2, relevances.size + 1)))


def transcribed(ranking, correct, corpus, k):
    recalled = {corpus[index] for index in ranking[:k]}
    relevances = [1 if document in correct else 0 for document in corpus]
    ideal = transcribed_dcg(sorted(relevances, reverse=True), k)
    actual = transcribed_dcg([relevances[index] for index in ranking[:k]], k)
    return (
        float(any(document in recalled for document in correct)),
        float(all(document in recalled for document in correct)),
        0.0 if ideal == 0 else actual / ideal,
    )


def transcribed_turn2session(ranking, correct, corpus, k):
    def strip(document):
        return "_".join(document.split("_")[:-1])

    correct = list({strip(document) for document in correct})
    corpus = [strip(document) for document in corpus]
    effective = k
    unique = {corpus[index] for index in ranking[:effective]}
    while effective <= len(corpus) and len(unique) < k:
        effective += 1
        unique = {corpus[index] for index in ranking[:effective]}
    return transcribed(ranking, correct, corpus, effective)


DOCUMENTS = st.lists(
    st.builds(
        "{}_{}_{}".format,
        st.sampled_from(["s", "answer", "noans"]),
        st.integers(1, 4),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=12,
)


@given(documents=DOCUMENTS, data=st.data(), k=st.integers(1, 50))
def test_released_values_equal_the_transcription(documents, data, k):
    ranking = data.draw(st.permutations(range(len(documents))))
    correct = sorted(released.gold_of(documents))
    mine = released.evaluate(ranking, correct, documents, k)
    assert (mine.recall_any, mine.recall_all, mine.ndcg_any) == pytest.approx(
        transcribed(ranking, correct, documents, k)
    )
    mine = released.evaluate_as_sessions(ranking, correct, documents, k)
    assert (mine.recall_any, mine.recall_all, mine.ndcg_any) == pytest.approx(
        transcribed_turn2session(ranking, correct, documents, k)
    )


@pytest.mark.parametrize(
    ("ranking", "k", "expected"),
    [
        ([0, 1, 2, 3], 1, (1.0, 0.0, 1.0)),
        ([2, 0, 3, 1], 1, (0.0, 0.0, 0.0)),
        ([2, 0, 3, 1], 3, (1.0, 0.0, 0.5)),
        ([2, 0, 1, 3], 3, (1.0, 1.0, (1 + 1 / np.log2(3)) / 2)),
    ],
)
def test_golden_values_of_the_released_formula(ranking, k, expected):
    documents = ["answer_1_1", "answer_2_1", "s_1_1", "s_2_1"]
    found = released.evaluate(ranking, released.gold_of(documents), documents, k)
    assert (found.recall_any, found.recall_all, found.ndcg_any) == pytest.approx(expected)


def test_ranks_one_and_two_weigh_the_same_and_empty_gold_recalls_all():
    documents = ["answer_1_1", "s_1_1"]
    gold = released.gold_of(documents)
    first = released.evaluate([0, 1], gold, documents, 2).ndcg_any
    second = released.evaluate([1, 0], gold, documents, 2).ndcg_any
    assert first == second == 1.0
    nothing = released.evaluate([0], (), ["s_1_1"], 1)
    assert (nothing.recall_any, nothing.recall_all, nothing.ndcg_any) == (0.0, 1.0, 0.0)


def test_columns_rank_user_turns_only_and_sessions_by_any_turn():
    corpus = ReleasedCorpus(
        ("s1_1", "s2_1", "s2_3"),
        ("s_1", "answer_1_1", "answer_1_3"),
        ("s", "answer_1"),
        ("s1", "s2"),
    )
    values = released.columns(corpus, ["s1_2", "s2_1", "s2_3", "s1_1"], (1, 2))
    assert len(values) == 18
    assert values["turn/recall_any@1"] == values["session/recall_all@1"] == 1.0
    assert values["turn/recall_all@1"] == values["session corpus/recall_any@1"] == 0.0
    assert values["session corpus/recall_all@2"] == values["session corpus/ndcg_any@2"] == 1.0
    # Grown to three turns, the ideal ranking has the gold session twice, as in the release.
    assert values["session/ndcg_any@2"] == pytest.approx(1.0)


def test_ids_do_not_tell_what_is_labelled():
    found = longmemeval.map_record(record())
    told = [each for turn in found.turns for each in (turn.turn_id, turn.session)]
    assert not any("answer" in each for each in told)


@pytest.mark.skipif(not RECORD.is_file(), reason="third-party data is not in this checkout")
def test_the_real_record_maps_whole():
    found = longmemeval.stream(RECORD)
    (conversation,) = found.conversations()
    label = conversation.labels["e47becba"]
    assert found.label == "one record of S"
    assert len(conversation.turns) == 550
    assert len({turn.session for turn in conversation.turns}) == 53
    assert len(label.released.document_ids) == 273
    assert len(released.gold_of(label.released.document_ids)) == 1
    assert released.in_released_denominator("e47becba", label.released)
