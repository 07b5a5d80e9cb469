"""LoCoMo-Plus, implicit recall: a statement should bring a cue to mind that was said weeks before.

Each item becomes a conversation of its own: the LoCoMo conversation it names, with the cue
dialogue inserted as a session at its time, and one query, the later statement. Any turn of the
cue is gold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.datasets import locomo
from benchmarks.datasets.base import (
    MALFORMED,
    Conversation,
    DatasetError,
    Label,
    Query,
    Source,
    Stream,
    Turn,
    parse,
    read_bytes,
    told,
    words_of,
)

SOURCE = Source(
    name="locomo-plus",
    origin="xjtuleeyf/Locomo-Plus, data/locomo_plus.json",
    revision="mapped as its own script does",
    licence="none stated",
    known={"2cee902383ea4d4949b101c97cdbc489c7a2a2b4d8f36d8c8b1013ffffb91e35": "implicit-dev201"},
)

_NUMBER = re.compile(r"\d+")
RELATIONS = frozenset({"causal", "goal", "state", "value"})


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise DatasetError(f"not a time: {text!r}") from error
    if at.tzinfo is None:
        raise DatasetError(f"a time without an offset: {text!r}")
    return at


def _check(haystack: Conversation, item: Mapping[str, Any]) -> None:
    speakers = {turn.actor for turn in haystack.turns}
    strangers = {line["speaker"] for line in item["cue"]} | {item["query_speaker"]}
    if not strangers <= speakers:
        raise DatasetError(f"item {item['item']}: a speaker is not of {item['sample_id']}")
    if item["relation"] not in RELATIONS:
        raise DatasetError(f"item {item['item']}: unknown relation {item['relation']!r}")
    if not item["cue"] or not all(words_of(line, "text") for line in item["cue"]):
        raise DatasetError(f"item {item['item']}: an empty cue")
    words_of(item, "query")
    if _time(item["cue_time"]) > _time(item["query_time"]):
        raise DatasetError(f"item {item['item']}: its cue comes after its query")


def _with_cue(haystack: Conversation, item: Mapping[str, Any]) -> Conversation:
    number = item["item"]
    # Named like any other session: a system that is shown ids must not know the cue by them.
    session = 1 + max(int(_NUMBER.findall(turn.session)[0]) for turn in haystack.turns)
    at = _time(item["cue_time"])
    cue = [
        Turn(f"D{session}:{place}", f"session_{session}", line["speaker"], "user", line["text"], at)
        for place, line in enumerate(item["cue"], 1)
    ]
    before = [t for t in haystack.turns if t.occurred_at is None or t.occurred_at <= at]
    after = [t for t in haystack.turns if t.occurred_at is not None and t.occurred_at > at]
    query_id = f"implicit/{number}"
    query = Query(query_id, item["query"], _time(item["query_time"]), item["query_speaker"])
    label = Label(query_id, tuple(turn.turn_id for turn in cue), str(item["relation"]))
    return Conversation(query_id, (*before, *cue, *after), (query,), {query_id: label})


def stream(path: Path, haystack: Path) -> Stream:
    """Return one conversation an item, made when it is asked for.

    Raises:
        DatasetError: An item is not as expected, or names a conversation ``haystack`` lacks.
    """
    content, digest, label = read_bytes(path, SOURCE)
    items = parse(content, path.name)
    if not isinstance(items, list) or not items:
        raise DatasetError(f"{path.name}: not a list of LoCoMo-Plus items")
    strangers = [number for number, item in enumerate(items) if not isinstance(item, dict)]
    if strangers:
        raise DatasetError(f"{path.name}, record {strangers[0]}: not an object")
    talks = locomo.load(haystack)
    conversations = {c.conversation_id: c for c in talks.conversations}
    missing = sorted({str(i.get("sample_id")) for i in items} - set(conversations))
    if missing:
        raise DatasetError(f"{haystack.name} lacks the conversations {', '.join(missing)}")
    if len({i.get("item") for i in items}) != len(items):
        raise DatasetError(f"{path.name}: an item number occurs twice")
    for number, item in enumerate(items):
        try:
            _check(conversations[item["sample_id"]], item)
        except MALFORMED as error:
            raise DatasetError(f"{path.name}, record {number}: {told(error)}") from error
    return Stream(
        SOURCE,
        digest,
        label,
        lambda: (_with_cue(conversations[i["sample_id"]], i) for i in items),
        others={"haystack": talks.digest},
    )


def load(path: Path, haystack: Path) -> tuple[str, str, Iterator[Conversation]]:
    """Return the items' digest, the label of the file, and one conversation an item."""
    found = stream(path, haystack)
    return found.digest, found.label, found.conversations()
