"""LoCoMo-Plus, implicit recall: a statement should bring a cue to mind that was said weeks before.

Each item becomes a conversation of its own: the LoCoMo conversation it names, with the cue
dialogue inserted as a session at its time, and one query, the later statement. Any turn of the
cue is gold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.datasets import locomo
from benchmarks.datasets.base import (
    Conversation,
    DatasetError,
    Label,
    Query,
    Source,
    Turn,
    read_bytes,
)

SOURCE = Source(
    name="locomo-plus",
    origin="xjtuleeyf/Locomo-Plus, data/locomo_plus.json",
    revision="mapped as its own script does",
    licence="none stated",
    known={"2cee902383ea4d4949b101c97cdbc489c7a2a2b4d8f36d8c8b1013ffffb91e35": "implicit-dev201"},
)


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise DatasetError(f"a time without an offset: {text!r}")
    return at


def _with_cue(haystack: Conversation, item: Mapping[str, Any]) -> Conversation:
    number = item["item"]
    at = _time(item["cue_time"])
    cue = [
        Turn(f"cue-{number}:{place}", f"cue-{number}", line["speaker"], "user", line["text"], at)
        for place, line in enumerate(item["cue"], 1)
    ]
    before = [t for t in haystack.turns if t.occurred_at is None or t.occurred_at <= at]
    after = [t for t in haystack.turns if t.occurred_at is not None and t.occurred_at > at]
    query_id = f"implicit/{number}"
    query = Query(query_id, item["query"], _time(item["query_time"]), item["query_speaker"])
    label = Label(query_id, tuple(turn.turn_id for turn in cue), str(item["relation"]))
    return Conversation(query_id, (*before, *cue, *after), (query,), {query_id: label})


def load(path: Path, haystack: Path) -> tuple[str, str, Iterator[Conversation]]:
    """Return the items' digest, the label of the file, and one conversation an item.

    Raises DatasetError when an item names a conversation that ``haystack`` does not hold.
    """
    content, digest, label = read_bytes(path, SOURCE)
    items = json.loads(content)
    conversations = {c.conversation_id: c for c in locomo.load(haystack).conversations}
    missing = sorted({i["sample_id"] for i in items} - set(conversations))
    if missing:
        raise DatasetError(f"{haystack.name} lacks the conversations {', '.join(missing)}")
    return digest, label, (_with_cue(conversations[i["sample_id"]], i) for i in items)
