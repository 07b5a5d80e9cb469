"""LoCoMo: long conversations between two people, with questions and gold turns.

Only sessions are dated; every turn takes its session's time, read as UTC. A caption is part of
the turn's text; ``query`` and ``img_url`` never are, because gold answers leak from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import (
    Conversation,
    Dataset,
    DatasetError,
    Label,
    Query,
    Repair,
    Source,
    Turn,
    read_bytes,
)
from benchmarks.datasets.evidence_ids import resolve

SOURCE = Source(
    name="locomo",
    origin="snap-research/LoCoMo, data/locomo10.json",
    revision="3eb6f2c",
    licence="CC BY-NC 4.0",
    known={
        "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4": "official",
        "31c997782d0d979ef7b6003035d3ff261538d9f9aec4f6482dccfe6894dc881a": "dev6",
    },
)

CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
ANSWERABLE = frozenset({"multi-hop", "temporal", "open-domain", "single-hop"})

_SESSION = re.compile(r"session_(\d+)")


def session_time(text: str) -> datetime:
    """Read ``1:56 pm on 8 May, 2023`` as UTC; raises DatasetError for anything else."""
    try:
        return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise DatasetError(f"not a LoCoMo session time: {text!r}") from error


def turn_text(turn: Mapping[str, Any]) -> str:
    """Return the turn's text with its caption, when there is one."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [image: {caption}]" if caption else str(turn["text"])


def _turns(record: Mapping[str, Any]) -> tuple[Turn, ...]:
    conversation = record["conversation"]
    numbers = sorted(
        int(match.group(1))
        for key, value in conversation.items()
        if (match := _SESSION.fullmatch(key)) and isinstance(value, list)
    )
    turns: list[Turn] = []
    for number in numbers:
        at = session_time(conversation[f"session_{number}_date_time"])
        turns += [
            Turn(turn["dia_id"], f"session_{number}", turn["speaker"], "user", turn_text(turn), at)
            for turn in conversation[f"session_{number}"]
        ]
    ids = [turn.turn_id for turn in turns]
    if len(set(ids)) != len(ids):
        raise DatasetError(f"{record['sample_id']}: a dia_id occurs twice")
    return tuple(turns)


def _conversation(record: Mapping[str, Any]) -> tuple[Conversation, list[Repair]]:
    sample = str(record["sample_id"])
    turns = _turns(record)
    known = {turn.turn_id for turn in turns}
    queries: list[Query] = []
    labels: dict[str, Label] = {}
    repairs: list[Repair] = []
    for index, entry in enumerate(record["qa"]):
        category = CATEGORIES.get(entry.get("category"))
        if category is None:
            raise DatasetError(f"{sample}, question {index}: unknown category")
        query_id = f"{sample}/{index}"
        gold, mended = resolve(
            entry.get("evidence", ()), known, conversation_id=sample, index=index
        )
        repairs += mended
        answer = entry.get("answer")
        queries.append(Query(query_id, str(entry["question"])))
        labels[query_id] = Label(query_id, gold, category, None if answer is None else str(answer))
    return Conversation(sample, turns, tuple(queries), labels), repairs


def load(path: Path) -> Dataset:
    """Map a LoCoMo file whole; raises DatasetError naming the record that is not as expected."""
    content, digest, label = read_bytes(path, SOURCE)
    records = json.loads(content)
    if not isinstance(records, list):
        raise DatasetError(f"{path.name}: not a list of LoCoMo records")
    conversations: list[Conversation] = []
    repairs: list[Repair] = []
    for number, record in enumerate(records):
        try:
            conversation, mended = _conversation(record)
        except (KeyError, TypeError) as error:
            raise DatasetError(f"{path.name}, record {number}: missing {error}") from error
        conversations.append(conversation)
        repairs += mended
    return Dataset(SOURCE, digest, label, tuple(conversations), tuple(repairs))
