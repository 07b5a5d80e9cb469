"""Questions about facts that single user turns of one LongMemEval record state.

An assistant-style conversation: short user turns, long answers. The person who asks is the user.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.datasets.base import (
    Conversation,
    Dataset,
    DatasetError,
    Label,
    Query,
    Source,
    Turn,
    read_bytes,
)

SOURCE = Source(
    name="needles",
    origin="written for this project about one record of LongMemEval-S (cleaned)",
    revision="1",
    licence="same as the project; the record is MIT",
    known={"b4e0a249dc16caf3d39b61399ff9aa794219a0fea67c716302ede4e311456275": "needles40"},
)


def session_time(text: str) -> datetime:
    """Read ``2023/05/30 (Tue) 23:17`` as UTC; raises DatasetError for anything else."""
    try:
        return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
    except ValueError as error:
        raise DatasetError(f"not a LongMemEval time: {text!r}") from error


def load(path: Path, record: Path) -> Dataset:
    """Map the questions onto the record; raises DatasetError when they do not fit it."""
    content, digest, label = read_bytes(path, SOURCE)
    found = json.loads(record.read_text(encoding="utf-8"))
    entry = found[0] if isinstance(found, list) else found
    turns = tuple(
        Turn(f"S{session}:{place}", f"S{session}", turn["role"], turn["role"], turn["content"], at)
        for session, (lines, at) in enumerate(
            zip(
                entry["haystack_sessions"],
                map(session_time, entry["haystack_dates"]),
                strict=True,
            )
        )
        for place, turn in enumerate(lines)
    )
    known = {turn.turn_id for turn in turns}
    queries: list[Query] = []
    labels: dict[str, Label] = {}
    for index, needle in enumerate(json.loads(content)):
        gold = f"S{needle['gold'][0]}:{needle['gold'][1]}"
        if gold not in known:
            raise DatasetError(f"needle {index} names turn {gold}, which the record lacks")
        query_id = f"needles/{index}"
        queries.append(Query(query_id, needle["question"], None, "user"))
        labels[query_id] = Label(query_id, (gold,), "user fact", str(needle["answer"]))
    conversation = Conversation("needles", turns, tuple(queries), labels)
    return Dataset(SOURCE, digest, label, (conversation,))
