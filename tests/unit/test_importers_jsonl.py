"""JSON Lines: the format of the public contract, line by line."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers import IMPORTERS, BadRecord, Entry, ImportOptions
from evicortex.types import ClaimDraft, EvidenceDraft


def read(*lines: str | bytes | dict[str, Any]) -> list[Entry]:
    raw = [line if isinstance(line, bytes) else _text(line).encode() for line in lines]
    return list(IMPORTERS["jsonl"](io.BytesIO(b"\n".join(raw)), ImportOptions()))


def _text(line: str | dict[str, Any]) -> str:
    return line if isinstance(line, str) else json.dumps(line)


def drafts(entries: list[Entry]) -> list[EvidenceDraft]:
    assert all(isinstance(entry.found, EvidenceDraft) for entry in entries), entries
    return [entry.found for entry in entries]  # type: ignore[misc]


def reason(line: str | bytes | dict[str, Any]) -> str:
    (entry,) = read(line)
    assert isinstance(entry.found, BadRecord)
    return entry.found.reason


def test_every_field_arrives() -> None:
    line = {
        "external_id": "m1",
        "session": "s1",
        "actor": "Ada",
        "role": "user",
        "source": "chat",
        "occurred_at": "2025-01-02T03:04:05Z",
        "authority": "user",
        "content": "  exact text \n",
        "metadata": {"tags": ["a", 1, None]},
        "claims": [
            {"subject": "Ada", "predicate": "says", "object": "exact", "quote": "exact"},
            {"subject": "Ada", "predicate": "says", "object": "text", "span": [8, 12]},
            {"subject": "Ada", "predicate": "wrote", "object": "this", "polarity": "negative"},
        ],
    }
    (draft,) = drafts(read(line))
    assert draft == EvidenceDraft(
        content="  exact text \n",
        actor="Ada",
        role="user",
        session="s1",
        source="chat",
        external_id="m1",
        occurred_at="2025-01-02T03:04:05Z",
        authority="user",
        claims=(
            ClaimDraft("Ada", "says", "exact", span=(2, 7)),
            ClaimDraft("Ada", "says", "text", span=(8, 12)),
            ClaimDraft("Ada", "wrote", "this", polarity="negative"),
        ),
        metadata={"tags": ["a", 1, None]},
    )


def test_null_is_absent() -> None:
    line = {"content": "x", "external_id": "a", "session": None, "metadata": None, "claims": None}
    assert drafts(read(line)) == [EvidenceDraft(content="x", external_id="a")]


def test_lines_are_numbered_from_one_and_blank_lines_count() -> None:
    entries = read(b"\xef\xbb\xbf" + b'{"content": "a"}', "", "   ", '{"content": "b"}', "{")
    assert [entry.place.number for entry in entries] == [1, 4, 5]
    assert isinstance(entries[2].found, BadRecord)
    assert len(drafts(entries[:2])) == 2


def test_derived_ids_are_stable_and_tell_repeated_lines_apart() -> None:
    line = {"content": "ok", "session": "s"}
    first = [draft.external_id for draft in drafts(read(line, line, {"content": "ok"}))]
    assert len(set(first)) == 3
    reordered = {"session": "s", "content": "ok"}
    longer = read(reordered, {"content": "new"}, line, {"content": "ok"})
    again = [draft.external_id for draft in drafts(longer)]
    assert [again[0], again[2], again[3]] == first


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not valid JSON"),
        ('{"content": NaN}', "NaN is not JSON"),
        ('{"content": "a"} trailing', "not valid JSON"),
        (b'{"content": "\xff"}', "not UTF-8"),
        ("[1]", "expected an object, found a list"),
        ("null", "expected an object, found null"),
        ({"actor": "Ada"}, "'content' is missing"),
        ({"content": 3}, "'content' is a number, not a string"),
        ({"content": "a", "session": 7}, "'session' is a number, not a string"),
        ({"content": "a", "metadata": []}, "'metadata' is a list, not an object"),
        ({"content": "a", "occured_at": "2025-01-01T00:00:00Z"}, "unknown field 'occured_at'"),
        ({"content": "a", "claims": {}}, "'claims' is an object, not a list"),
        ({"content": "a", "claims": [7]}, "expected an object, found a number"),
        ({"content": "a", "claims": [{"subject": "a", "predicate": "b"}]}, "'object' is missing"),
    ],
)
def test_bad_lines_say_what_is_wrong(line: str | bytes | dict[str, Any], message: str) -> None:
    assert message in reason(line)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"quote": "absent"}, "does not occur exactly once"),
        ({"quote": "a"}, "does not occur exactly once"),
        ({"quote": ""}, "does not occur exactly once"),
        ({"quote": "b", "span": [0, 1]}, "is not where the quote"),
        ({"span": [0]}, "not [start, end]"),
        ({"span": [0, 1.5]}, "not [start, end]"),
        ({"span": [False, True]}, "not [start, end]"),
        ({"colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_bad_claims_say_what_is_wrong(extra: dict[str, Any], message: str) -> None:
    claim = {"subject": "s", "predicate": "p", "object": "o", **extra}
    assert message in reason({"content": "aba", "claims": [claim]})


def test_quote_and_span_may_agree() -> None:
    claim = {"subject": "s", "predicate": "p", "object": "o", "quote": "b", "span": [1, 2]}
    (draft,) = drafts(read({"content": "aba", "claims": [claim]}))
    assert draft.claims[0].span == (1, 2)


def test_deeply_nested_line_is_reported() -> None:
    assert "not valid JSON" in reason('{"content": ' + "[" * 200_000 + "]" * 200_000 + "}")


def test_there_are_no_records_to_choose() -> None:
    with pytest.raises(ImportFormatError, match="--record"):
        list(IMPORTERS["jsonl"](io.BytesIO(b""), ImportOptions(record="x")))
