"""LoCoMo and LongMemEval files: ids, dates, captions, and nothing of the labels."""

from __future__ import annotations

import io
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers import IMPORTERS, BadRecord, Entry, ImportOptions
from evicortex.interfaces.importers.locomo import session_time
from evicortex.interfaces.importers.longmemeval import haystack_time
from evicortex.interfaces.importers.records import Malformed
from evicortex.types import EvidenceDraft

DATA = Path(__file__).parents[3] / "shared" / "data"


def read(name: str, value: Any, **options: Any) -> list[Entry]:
    file = io.BytesIO(json.dumps(value).encode())
    return list(IMPORTERS[name](file, ImportOptions(**options)))


def drafts(entries: list[Entry]) -> list[EvidenceDraft]:
    return [entry.found for entry in entries if isinstance(entry.found, EvidenceDraft)]


def bad(entries: list[Entry]) -> list[tuple[str, str]]:
    return [
        (entry.place.label, entry.found.reason)
        for entry in entries
        if isinstance(entry.found, BadRecord)
    ]


def locomo_record(sample_id: str = "conv-1") -> dict[str, Any]:
    return {
        "sample_id": sample_id,
        "qa": [{"question": "Who has a secret?", "answer": "GOLD", "evidence": ["D1:1"]}],
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Ben",
            "session_10_date_time": "12:05 am on 1 March, 2024",
            "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "Late."}],
            "session_2_date_time": "12:30 pm on 29 February, 2024",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red boat",
                 "img_url": ["https://example.org/SECRETURL.jpg"], "query": "SECRETQUERY"},
                {"speaker": "Ben", "dia_id": "D2:2", "text": "", "blip_caption": "a cat"},
            ],
            "session_3_date_time": "1:00 pm on 2 March, 2024",
        },
    }  # fmt: skip


def longmemeval_record(question_id: str = "q1") -> dict[str, Any]:
    return {
        "question_id": question_id,
        "question": "SECRETQUESTION",
        "answer": 7,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 03:00"],
        "haystack_session_ids": ["s_a", "s_a"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "Hello", "has_answer": True},
                {"role": "assistant", "content": ""},
            ],
            [{"role": "assistant", "content": "Second"}],
        ],
    }


def test_locomo_turns_in_order_with_caption_and_utc_date() -> None:
    entries = read("locomo", [locomo_record()])
    assert bad(entries) == []
    found = drafts(entries)
    assert [draft.external_id for draft in found] == ["D2:1", "D2:2", "D10:1"]
    assert [draft.content for draft in found] == [
        "Look! [image: a red boat]",
        "[image: a cat]",
        "Late.",
    ]
    assert [draft.session for draft in found] == ["session_2", "session_2", "session_10"]
    assert found[0].occurred_at == datetime(2024, 2, 29, 12, 30, tzinfo=UTC)
    assert found[2].occurred_at == datetime(2024, 3, 1, 0, 5, tzinfo=UTC)
    assert found[0].actor == "Ann"


def test_locomo_labels_never_enter() -> None:
    text = repr(read("locomo", [locomo_record()]))
    assert "SECRET" not in text
    assert "GOLD" not in text


def test_locomo_prefix_only_when_several_share_the_namespace() -> None:
    two = [locomo_record("conv-1"), locomo_record("conv-2"), locomo_record("conv-3")]
    several = drafts(read("locomo", two))
    assert len({draft.external_id for draft in several}) == len(several) == 9
    assert several[3].external_id == "conv-2:D2:1"
    assert several[3].session == "conv-2:session_2"
    alone = drafts(read("locomo", two, record="conv-2"))
    assert [draft.external_id for draft in alone] == ["D2:1", "D2:2", "D10:1"]


def test_locomo_unknown_record_is_refused() -> None:
    with pytest.raises(ImportFormatError, match="no record of this file has sample_id 'x'"):
        read("locomo", [locomo_record()], record="x")


def test_locomo_bad_parts_are_named_and_the_rest_imported() -> None:
    record = locomo_record()
    record["conversation"]["session_2_date_time"] = "yesterday"
    record["conversation"]["session_10"] += [{"speaker": "Ann", "text": "no id"}, "not a turn"]
    record["conversation"]["session_11"] = "not a list"
    entries = read("locomo", [{"no": "id"}, record, {"sample_id": "conv-2", "conversation": []}])
    assert [draft.external_id for draft in drafts(entries)] == ["conv-1:D10:1"]
    assert bad(entries) == [
        ("", "'sample_id' is missing or not a string"),
        ("conv-1 session_2", "unreadable session date 'yesterday'; its turns are not imported"),
        ("conv-1 session_10 turn 2", "'dia_id' is missing"),
        ("conv-1 session_10 turn 3", "expected an object, found a string"),
        ("conv-1 session_11", "'session_11' is a string, not a list; its turns are not imported"),
        ("conv-2", "'conversation' is a list, not an object"),
    ]


@pytest.mark.parametrize(
    "text",
    ["13:00 pm on 8 May, 2023", "0:10 am on 8 May, 2023", "1:56 pm on 31 June, 2023",
     "1:56 pm on 8 Mai, 2023", "1:56 pm on 8 May 2023", "1:99 pm on 8 May, 2023",
     " 1:56 pm on 8 May, 2023", "1:56 PM on 8 May, 2023", ""],
)  # fmt: skip
def test_locomo_dates_are_read_strictly(text: str) -> None:
    with pytest.raises(Malformed):
        session_time(text)


def test_longmemeval_ids_follow_the_benchmark() -> None:
    entries = read("longmemeval", [longmemeval_record()])
    found = drafts(entries)
    assert bad(entries) == []
    assert [draft.external_id for draft in found] == ["s_a_1", "s_a_2", "s_a#2_1"]
    assert [draft.session for draft in found] == ["s_a", "s_a", "s_a#2"]
    assert [draft.role for draft in found] == ["user", "assistant", "assistant"]
    assert found[1].content == ""
    assert found[2].occurred_at == datetime(2023, 5, 21, 3, 0, tzinfo=UTC)
    assert "SECRET" not in repr(entries)
    assert "has_answer" not in repr(entries)


def test_longmemeval_user_may_be_named_and_several_get_prefixes() -> None:
    entries = read("longmemeval", [longmemeval_record("q1"), longmemeval_record("q2")], user="Kim")
    found = drafts(entries)
    assert [draft.actor for draft in found[:2]] == ["Kim", None]
    assert found[0].external_id == "q1:s_a_1"
    assert len({draft.external_id for draft in found}) == 6


def test_longmemeval_bad_parts_are_named_and_the_rest_imported() -> None:
    record = longmemeval_record()
    record["haystack_dates"][0] = "2023-05-20"
    record["haystack_sessions"][1] += [{"role": "tool", "content": "x"}, {"role": "user"}]
    uneven = longmemeval_record("q2")
    uneven["haystack_dates"].pop()
    other = longmemeval_record("q3")
    other["haystack_session_ids"] = [5, "s_b"]
    entries = read("longmemeval", [record, uneven, other])
    assert [d.external_id for d in drafts(entries)] == ["q1:s_a#2_1", "q3:s_b_1"]
    assert bad(entries) == [
        ("q1 s_a", "unreadable date '2023-05-20'; its turns are not imported"),
        ("q1 s_a#2 turn 2", "'role' is 'tool', not user or assistant"),
        ("q1 s_a#2 turn 3", "'content' is missing"),
        ("q2", "haystack ids, dates and sessions are not equally many"),
        ("q3 5", "'session id' is a number, not a string; its turns are not imported"),
    ]


@pytest.mark.parametrize(
    "text", ["2023/13/20 (Sat) 02:21", "2023/05/20 02:21", "2023/05/20 (Sat) 24:00"]
)
def test_longmemeval_dates_are_read_strictly(text: str) -> None:
    with pytest.raises(Malformed):
        haystack_time(text)


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_a_record_that_is_no_json_does_not_hide_the_others(name: str) -> None:
    good = json.dumps(locomo_record() if name == "locomo" else longmemeval_record())
    file = io.BytesIO(f"[{{nonsense}}, {good}]".encode())
    entries = list(IMPORTERS[name](file, ImportOptions()))
    assert len(bad(entries)) == 1
    assert len(drafts(entries)) == 3


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no shared data at {DATA}")
def test_real_files_are_read_whole() -> None:
    """The counts are those of the data set's own description."""
    with (DATA / "locomo" / "locomo_dev6.json").open("rb") as file:
        locomo = list(IMPORTERS["locomo"](file, ImportOptions()))
    with (DATA / "longmemeval" / "longmemeval_s_one_record.json").open("rb") as file:
        longmemeval = list(IMPORTERS["longmemeval"](file, ImportOptions()))
    for entries, expected in ((locomo, 3329), (longmemeval, 550)):
        assert bad(entries) == []
        ids = Counter(draft.external_id for draft in drafts(entries))
        assert len(ids) == sum(ids.values()) == expected
