"""LoCoMo, REALTALK and LoCoMo-Plus: what is malformed is repaired by rule, logged, or refused."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.datasets import locomo, locomo_plus, realtalk
from benchmarks.datasets.base import DatasetError, Repair, repairs_digest
from benchmarks.datasets.evidence_ids import Pin, check_pinned, resolve

DATA = Path(__file__).parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason="third-party data is not in this checkout"
)
KNOWN = {f"D{session}:{turn}" for session in (1, 2, 11, 30) for turn in range(1, 30)}


def session(number, turns, at="1:56 pm on 8 May, 2023"):
    lines = [
        {"dia_id": f"D{number}:{place}", "speaker": who, "text": text, "query": "leaks the answer"}
        for place, (who, text) in enumerate(turns, 1)
    ]
    return {f"session_{number}": lines, f"session_{number}_date_time": at}


def record(qa, sample="conv-x"):
    talk = session(1, [("Ann", "I bought a kayak."), ("Bob", "Nice!")])
    talk |= session(2, [("Ann", "It leaks."), ("Bob", "Oh no.")], "9:00 am on 9 May, 2023")
    talk |= {"session_3_date_time": "9:00 am on 10 May, 2023", "speaker_a": "Ann"}
    return {"sample_id": sample, "conversation": talk, "qa": qa}


def question(evidence, category=4, **fields):
    return {"question": "What?", "answer": 7, "evidence": evidence, "category": category, **fields}


def write(tmp_path, records):
    path = tmp_path / "file.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("raw", "resolved", "reason"),
    [
        ("D1:2; D2:3", ("D1:2", "D2:3"), "malformed"),
        ("D1:2 D2:3", ("D1:2", "D2:3"), "malformed"),
        ("D:11:26", ("D11:26",), "malformed"),
        ("D30:05", ("D30:5",), "malformed"),
        ("D1:3-D1:5", ("D1:3", "D1:4", "D1:5"), "malformed"),
        ("D1:2, D9:1", ("D1:2",), "no such turn"),
        ("D9:1", (), "no such turn"),
        ("D", (), "unparseable"),
        ("", (), "unparseable"),
    ],
)
def test_evidence_is_repaired_by_rule_and_logged(raw, resolved, reason):
    gold, repairs = resolve([raw], KNOWN, conversation_id="c", index=3)
    assert gold == resolved
    assert repairs == [Repair("c", 3, raw, resolved, reason)]


def test_a_repeated_id_is_logged_and_counts_once():
    gold, repairs = resolve(["D1:1", "D1:1"], KNOWN, conversation_id="c", index=0)
    assert gold == ("D1:1",)
    assert [repair.reason for repair in repairs] == ["duplicate"]


def test_a_pin_answers_for_one_label_only():
    repair = Repair("c", 0, "D", (), "unparseable")
    check_pinned([repair], [Pin("unparseable", "D")], where="f")
    with pytest.raises(DatasetError, match="not in the pinned list"):
        check_pinned([repair, repair], [Pin("unparseable", "D")], where="f")
    with pytest.raises(DatasetError, match="1 labels known to be malformed are not there"):
        check_pinned([], [Pin("unparseable", "D")], where="f", exact=True)


@pytest.mark.parametrize("evidence", [["D99:9"], ["D1:1", "D1:1"], ["D"]])
def test_open_pins_say_nothing_of_conversations_that_were_read(tmp_path, evidence):
    read = record([question(evidence)]) | {"sample_id": "conv-26"}
    with pytest.raises(DatasetError, match="not in the pinned list"):
        locomo.load(write(tmp_path, [read]))
    dataset = locomo.load(write(tmp_path, [record([question(evidence)])]))
    assert len(dataset.repairs) == 1


def test_malformed_evidence_outside_the_pinned_list_is_refused_until_its_log_is_accepted(tmp_path):
    path = write(tmp_path, [record([question(["D1:1/D1:2"])])])
    with pytest.raises(DatasetError, match="not in the pinned list") as caught:
        locomo.load(path)
    digest = str(caught.value).rsplit(" ", 1)[1]
    dataset = locomo.load(path, accept_repairs=digest)
    assert dataset.conversations[0].labels["conv-x/0"].gold == ("D1:1", "D1:2")
    assert repairs_digest(dataset.repairs) == digest
    with pytest.raises(DatasetError, match="was accepted"):
        locomo.load(path, accept_repairs="0" * 64)


def test_locomo_keeps_category_5_apart_and_never_reads_query_fields(tmp_path):
    path = write(tmp_path, [record([question(["D1:1"]), question(["D1:2"], 5), question([], 3)])])
    dataset = locomo.load(path)
    conversation = dataset.conversations[0]
    labels = list(conversation.labels.values())
    assert [label.counted for label in labels] == [True, False, False]
    assert [label.answerable for label in labels] == [True, False, True]
    assert labels[0].answer == "7"
    assert dataset.label == "unofficial"
    assert not any("leaks the answer" in turn.text for turn in conversation.turns)
    assert [turn.session for turn in conversation.turns] == ["session_1"] * 2 + ["session_2"] * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["qa"].append(question(["D1:1"], 9)), "unknown category"),
        (lambda r: r["conversation"].update(session(4, [("A", "b")], "8 May")), "session time"),
        (lambda r: r["conversation"]["session_1"][1].update(dia_id="D1:1"), "occurs twice"),
        (lambda r: r.pop("qa"), "record 0: missing 'qa'"),
        (lambda r: r.update(conversation=[]), "record 0: not as expected"),
        (lambda r: r["conversation"]["session_1"][0].update(text=None), "text must be text"),
        (lambda r: r["conversation"]["session_1"][0].update(speaker=None), "speaker must be text"),
        (lambda r: r["qa"][0].update(question=" "), "question is blank"),
    ],
)
def test_locomo_names_the_record_that_is_not_as_expected(tmp_path, change, message):
    broken = record([question(["D1:1"])])
    change(broken)
    with pytest.raises(DatasetError, match=message):
        locomo.load(write(tmp_path, [broken]))


def test_a_file_that_is_no_list_of_records_is_refused(tmp_path):
    path = tmp_path / "data.json"
    for text, message in (("[{", "not JSON"), ("[]", "not a list"), ('{"a": 1}', "not a list")):
        path.write_text(text, encoding="utf-8")
        for load in (locomo.load, realtalk.load):
            with pytest.raises(DatasetError, match=message):
                load(path)
    again = record([question(["D1:1"])])
    with pytest.raises(DatasetError, match="a conversation occurs twice"):
        locomo.load(write(tmp_path, [again, again]))


def test_corrections_are_pinned_and_must_be_for_the_label_at_hand(tmp_path, monkeypatch):
    data = write(tmp_path, [record([question(["D1:1"]), question(["D1:2"])])])
    change = {
        "sample_id": "conv-x",
        "question_index": 1,
        "question": "What?",
        "category": 4,
        "cited_evidence": ["D1:2"],
        "correct_evidence": ["D2:1"],
        "correct_answer": "eight",
    }
    path = tmp_path / "changes.json"
    path.write_text(json.dumps([change]), encoding="utf-8")
    with pytest.raises(DatasetError, match="not the pinned file"):
        locomo.load(data, corrections=path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(locomo, "CORRECTIONS_SHA256", digest)
    corrected = locomo.load(data, corrections=path)
    assert corrected.condition == "corrected"
    labels = corrected.conversations[0].labels
    assert (labels["conv-x/0"].gold, labels["conv-x/1"].gold) == (("D1:1",), ("D2:1",))
    assert labels["conv-x/1"].answer == "eight"
    path.write_text(json.dumps([change | {"cited_evidence": ["D2:2"]}]), encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(locomo, "CORRECTIONS_SHA256", digest)
    with pytest.raises(DatasetError, match="for another label"):
        locomo.load(data, corrections=path)


@needs_data
def test_the_six_conversations_are_known_by_digest_and_their_malformed_labels_pinned():
    dataset = locomo.load(DATA / "locomo" / "locomo_dev6.json")
    assert (dataset.label, dataset.questions) == ("dev6", 1125)
    assert Counter(repair.reason for repair in dataset.repairs) == {
        "malformed": 5,
        "no such turn": 1,
    }
    main = [la for c in dataset.conversations for la in c.labels.values() if la.counted]
    assert len(main) == 867


@needs_data
def test_audit_corrected_labels_are_a_condition_of_their_own():
    folder = DATA / "locomo"
    official = locomo.load(folder / "locomo_dev6.json")
    corrected = locomo.load(
        folder / "locomo_dev6.json", corrections=folder / "label_corrections_dev6.json"
    )
    changed = {
        key
        for a, b in zip(official.conversations, corrected.conversations, strict=True)
        for key in a.labels
        if a.labels[key] != b.labels[key]
    }
    assert (official.condition, corrected.condition) == ("official", "corrected")
    assert len(changed) == 93  # of 94 corrections, one changes neither gold nor answer
    assert official.digest == corrected.digest


@needs_data
def test_realtalk_labels_that_point_nowhere_are_logged_and_pinned():
    dataset = realtalk.load(DATA / "realtalk" / "realtalk_dev4.json")
    assert (dataset.label, dataset.questions, len(dataset.repairs)) == ("dev4", 288, 101)


def chat(evidence):
    messages = [
        {
            "dia_id": f"D7:{place}",
            "speaker": who,
            "date_time": f"29.12.2023, 22:42:0{place}",
            "clean_text": text,
        }
        for place, (who, text) in enumerate([("Emi", "Hey"), ("Eli", ""), ("Emi", "Bye")], 1)
    ]
    messages[1]["blip_caption"] = "a cat"
    qa = [{"question": "Who?", "answer": 3, "evidence": evidence, "category": 1}]
    return {"chat": "c", "session_1": messages, "session_1_date_time": "x", "qa": qa}


def test_realtalk_finds_messages_by_id_and_reads_ranges(tmp_path):
    dataset = realtalk.load(write(tmp_path, [chat(["D7:1-D7:3", "D9:9"])]))
    conversation = dataset.conversations[0]
    assert conversation.labels["c/0"].gold == ("D7:1", "D7:2", "D7:3")
    assert [repair.reason for repair in dataset.repairs] == ["malformed", "no such turn"]
    assert conversation.turns[1].text == "[image: a cat]"
    assert conversation.turns[2].occurred_at.second == 3


def test_realtalk_refuses_a_known_chat_whose_labels_read_differently(tmp_path, monkeypatch):
    path = write(tmp_path, [chat(["D9:9"])])
    monkeypatch.setitem(realtalk.REPAIRS, "c", repairs_digest(()))
    with pytest.raises(DatasetError, match="not the known ones") as caught:
        realtalk.load(path)
    digest = str(caught.value).rsplit(" ", 1)[1]
    assert len(realtalk.load(path, accept_repairs=digest).repairs) == 1
    with pytest.raises(DatasetError, match="was accepted"):
        realtalk.load(path, accept_repairs="0" * 64)
    with pytest.raises(DatasetError, match="a chat occurs twice"):
        realtalk.load(write(tmp_path, [chat(["D9:9"]), chat(["D9:9"])]))


@needs_data
def test_a_copy_of_the_chats_with_one_more_broken_label_is_refused(tmp_path):
    chats = json.loads((DATA / "realtalk" / "realtalk_dev4.json").read_text("utf-8"))
    chats[0]["qa"][0]["evidence"] = ["D999:9"]
    with pytest.raises(DatasetError, match="not the known ones"):
        realtalk.load(write(tmp_path, chats))


def item(**fields):
    return {
        "item": 5,
        "sample_id": "conv-x",
        "relation": "causal",
        "cue_time": "2023-05-08T20:00:00Z",
        "cue": [{"speaker": "Ann", "text": "I learned to say no."}],
        "query_time": "2023-05-20T09:00:00Z",
        "query_speaker": "Ann",
        "query": "I volunteered again.",
    } | fields


def implicit(tmp_path, items):
    haystack = write(tmp_path, [record([question(["D1:1"])])])
    path = tmp_path / "items.json"
    path.write_text(json.dumps(items), encoding="utf-8")
    return locomo_plus.stream(path, haystack)


def test_a_cue_is_a_session_inserted_at_its_time(tmp_path):
    (conversation,) = implicit(tmp_path, [item()]).conversations()
    assert [turn.session for turn in conversation.turns] == [
        "session_1",
        "session_1",
        "session_3",
        "session_2",
        "session_2",
    ]
    (query,) = conversation.queries
    assert conversation.labels[query.query_id].gold == ("D3:1",)
    assert query.as_of > conversation.turns[2].occurred_at


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sample_id": "conv-y"}, "lacks the conversations conv-y"),
        ({"query_speaker": "Zoe"}, "a speaker is not of"),
        ({"relation": "x"}, "unknown relation"),
        ({"cue": []}, "an empty cue"),
        ({"query": None}, "query must be text"),
        ({"query": " "}, "query is blank"),
        ({"cue_time": "2023-06-01T00:00:00Z"}, "comes after its query"),
        ({"cue_time": "2023-05-01T00:00:00"}, "without an offset"),
        ({"cue_time": "May"}, "not a time"),
    ],
)
def test_an_implicit_item_that_is_not_as_expected_is_refused(tmp_path, fields, message):
    with pytest.raises(DatasetError, match=message):
        implicit(tmp_path, [item(**fields)])


def test_implicit_items_are_numbered_once_and_not_none(tmp_path):
    with pytest.raises(DatasetError, match="occurs twice"):
        implicit(tmp_path, [item(), item()])
    with pytest.raises(DatasetError, match="not a list"):
        implicit(tmp_path, [])


@needs_data
def test_every_implicit_item_maps_to_a_conversation_with_its_cue():
    found = locomo_plus.stream(
        DATA / "locomo_plus" / "implicit_dev201.json", DATA / "locomo" / "locomo_dev6.json"
    )
    conversations = list(found.conversations())
    assert (found.label, len(conversations)) == ("implicit-dev201", 201)
    for conversation in conversations:
        (query,) = conversation.queries
        visible = {t.turn_id for t in conversation.turns if t.occurred_at <= query.as_of}
        assert set(conversation.labels[query.query_id].gold) <= visible
