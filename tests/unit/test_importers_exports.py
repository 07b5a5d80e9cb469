"""ChatGPT and Claude exports: what was said between person and model, and nothing else."""

from __future__ import annotations

import copy
import io
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers import (
    IMPORTERS,
    BadRecord,
    Entry,
    ImportOptions,
    SkippedRecord,
)
from evicortex.types import Authority, EvidenceDraft

EXPORTS = Path(__file__).parents[1] / "golden" / "exports"
CHATGPT = json.loads((EXPORTS / "chatgpt_conversations.json").read_text("utf-8"))
CLAUDE = json.loads((EXPORTS / "claude_conversations.json").read_text("utf-8"))
LEASE = "0b0e6c1e-0000-4000-8000-000000000001"
SISTER = "0b0e6c1e-0000-4000-8000-000000000002"


def read(name: str, value: Any, **options: Any) -> list[Entry]:
    file = io.BytesIO(json.dumps(value).encode())
    return list(IMPORTERS[name](file, ImportOptions(**options)))


def drafts(entries: list[Entry]) -> list[EvidenceDraft]:
    return [entry.found for entry in entries if isinstance(entry.found, EvidenceDraft)]


def skipped(entries: list[Entry]) -> Counter[str]:
    return Counter(e.found.reason for e in entries if isinstance(e.found, SkippedRecord))


def bad(entries: list[Entry]) -> list[str]:
    return [entry.found.reason for entry in entries if isinstance(entry.found, BadRecord)]


def test_chatgpt_follows_the_path_that_the_person_saw() -> None:
    found = drafts(read("chatgpt", CHATGPT, user="Rui"))
    assert [(draft.actor, draft.role, draft.content) for draft in found] == [
        (
            "Rui",
            "user",
            "[image]\nWhich tomatoes grow on my balcony in Porto?\n[file: soil-report.pdf]",
        ),
        (
            "ChatGPT",
            "assistant",
            "Cherry tomatoes: ‘Sungold’ does well in pots.\nWater them daily.",
        ),
        ("Rui", "user", "And what about basil?"),
        ("ChatGPT", "assistant", 'print("basil likes warmth")'),
        ("Rui", "user", "Olá!"),
    ]
    assert found[0].external_id == "chatgpt:conv-tomatoes:ask-1b"
    assert found[0].session == "conv-tomatoes"
    assert found[0].occurred_at == datetime(2024, 5, 1, 10, 1, 0, 500000, tzinfo=UTC)
    assert found[0].metadata == {"title": "Growing tomatoes"}
    assert drafts(read("chatgpt", CHATGPT))[0].actor is None


def test_chatgpt_message_without_time_takes_its_conversations_and_says_so() -> None:
    basil = drafts(read("chatgpt", CHATGPT))[2]
    assert basil.occurred_at == datetime(2024, 5, 1, 10, 0, 0, 250000, tzinfo=UTC)
    assert basil.metadata == {
        "title": "Growing tomatoes",
        "occurred_at_from": "conversation",
    }


def test_chatgpt_everything_left_out_is_counted_by_reason() -> None:
    entries = read("chatgpt", CHATGPT)
    assert skipped(entries) == {
        "hidden": 2,
        "other_branch": 2,
        "tool_call": 1,
        "role_tool": 1,
        "content_thoughts": 1,
    }
    assert bad(entries) == ["the parents of node 'y' run in a circle"]


def test_chatgpt_takes_one_conversation_by_id() -> None:
    found = drafts(read("chatgpt", CHATGPT, record="conv-greeting"))
    assert [draft.content for draft in found] == ["Olá!"]
    with pytest.raises(ImportFormatError, match="conversation_id 'absent'"):
        read("chatgpt", CHATGPT, record="absent")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"create_time": "noon"}, "'create_time' 'noon' is not a number of seconds"),
        ({"create_time": 1e18}, "out of range"),
        ({"author": None}, "'author' is null"),
        ({"content": {"content_type": "text", "parts": None}}, "'parts' is null"),
        ({"content": {"content_type": "multimodal_text", "parts": [5]}}, "expected an object"),
        ({"metadata": []}, "'metadata' is a list"),
        ({"metadata": {"attachments": ["x"]}}, "'attachments' holds something"),
    ],
)
def test_chatgpt_bad_message_is_reported(change: dict[str, Any], reason: str) -> None:
    record = copy.deepcopy(CHATGPT[2])
    record["mapping"]["hello"]["message"] |= change
    (only,) = bad(read("chatgpt", [record]))
    assert reason in only


def test_chatgpt_message_and_conversation_without_time_are_reported() -> None:
    record = copy.deepcopy(CHATGPT[2])
    record["create_time"] = record["mapping"]["hello"]["message"]["create_time"] = None
    assert bad(read("chatgpt", [record])) == [
        "neither the message nor its conversation has a 'create_time'"
    ]


def test_chatgpt_blank_message_and_unknown_part_are_not_dropped_silently() -> None:
    record = copy.deepcopy(CHATGPT[2])
    content = record["mapping"]["hello"]["message"]["content"]
    content["parts"] = [" \n"]
    assert skipped(read("chatgpt", [record])) == {"empty": 1}
    content |= {"content_type": "multimodal_text", "parts": [{"content_type": "hologram"}]}
    assert [draft.content for draft in drafts(read("chatgpt", [record]))] == ["[hologram]"]


def test_claude_messages_and_attached_text() -> None:
    found = drafts(read("claude", CLAUDE, user="Rui"))
    assert [(draft.actor, draft.role, draft.content) for draft in found] == [
        ("Rui", "user", "Can you check this lease?\n[file: floorplan.png]"),
        ("Rui", "user", "The rent is 900 euros.\nThe deposit is two rents."),
        ("Claude", "assistant", "The deposit is high.\nTwo rents are usual."),
        ("Rui", "user", "My sister's birthday is on 4 May."),
    ]
    assert [draft.authority for draft in found] == [None, Authority.DOCUMENT, None, None]
    assert [draft.external_id for draft in found] == [
        f"claude:{LEASE}:m1",
        f"claude:{LEASE}:m1:attachment:1",
        f"claude:{LEASE}:m3",
        f"claude:{SISTER}:n1",
    ]
    assert found[0].occurred_at == "2025-02-03T09:00:01.000000Z"
    assert found[1].metadata == {"title": "A lease to check", "file_name": "lease.txt"}
    assert found[3].metadata == {}


def test_claude_everything_left_out_is_counted_by_reason() -> None:
    entries = read("claude", CLAUDE)
    assert skipped(entries) == {
        "other_branch": 1,
        "content_thinking": 1,
        "content_tool_use": 1,
        "content_tool_result": 1,
        "empty": 1,
    }
    assert bad(entries) == ["'sender' is 'robot', not human or assistant"]


def test_claude_export_without_branches_is_taken_whole() -> None:
    record = copy.deepcopy(CLAUDE[0])
    del record["current_leaf_message_uuid"]
    contents = [draft.content for draft in drafts(read("claude", [record]))]
    assert "A first answer that was retried." in contents


def test_claude_takes_one_conversation_by_id() -> None:
    assert len(drafts(read("claude", CLAUDE, record=SISTER))) == 1
    with pytest.raises(ImportFormatError, match="uuid 'absent'"):
        read("claude", CLAUDE, record="absent")


def test_records_without_id_are_reported() -> None:
    for name in ("chatgpt", "claude"):
        assert "missing or not a string" in bad(read(name, [{"a": 1}]))[0]


def test_ids_are_distinct_and_stable() -> None:
    for name, value in (("chatgpt", CHATGPT), ("claude", CLAUDE)):
        once, again = drafts(read(name, value)), drafts(read(name, value))
        assert once == again
        assert len({draft.external_id for draft in once}) == len(once)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key, inner in items:
            found += (
                _places(inner, (*path, key)) if isinstance(inner, dict | list) else [(*path, key)]
            )
    return found


JUNK = st.sampled_from(
    [None, 0, -1.5, True, "", "x", [], [None], ["x"], [{}], {}, {"type": "text"}]
)


@pytest.mark.parametrize(("name", "value"), [("chatgpt", CHATGPT), ("claude", CLAUDE)])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_shape_makes_an_importer_raise(name: str, value: Any, data: st.DataObject) -> None:
    """Whatever stands anywhere in an export, every conversation is still accounted for."""
    broken = copy.deepcopy(value)
    path = data.draw(st.sampled_from(_places(value)))
    target = broken
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = data.draw(JUNK)
    entries = read(name, broken)
    numbers = {entry.place.number for entry in entries}
    untouched = set(range(1, len(value) + 1)) - {path[0] + 1}
    assert untouched <= numbers
