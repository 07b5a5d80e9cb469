"""REALTALK: three weeks of real messages between two people, with questions and gold messages.

Every message has a clock of its own, read as UTC. In some chats the D-number is not the number
of the session, so messages are found by ``dia_id`` alone. The data states no licence: figures
may be published, texts may not.
"""

from __future__ import annotations

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
    map_records,
    read_bytes,
)
from benchmarks.datasets.evidence_ids import check_pinned, resolve

SOURCE = Source(
    name="realtalk",
    origin="danny911kr/REALTALK",
    revision="b903e06",
    licence="none stated",
    known={"edd0b6fe1ac0bbef64d4cec44efbf631cdbfdaa696784d45526afbd7e686ff7b": "dev4"},
)
REPAIRS = {
    "edd0b6fe1ac0bbef64d4cec44efbf631cdbfdaa696784d45526afbd7e686ff7b": "6dcda124fcb0bd7c2b4c1e2d281a6d1b09dc4aedfde11605075747622bdd62a0"
}
"""SHA-256 of a known file to the digest of its 101 malformed labels."""

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "commonsense"}

_SESSION = re.compile(r"session_(\d+)")


def message_time(text: str) -> datetime:
    """Read ``29.12.2023, 22:42:04`` as UTC; raises DatasetError for anything else."""
    try:
        return datetime.strptime(text.strip(), "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC)
    except ValueError as error:
        raise DatasetError(f"not a REALTALK message time: {text!r}") from error


def _text(message: Mapping[str, Any]) -> str:
    caption = message.get("blip_caption")
    text = str(message.get("clean_text") or "")
    return f"{text} [image: {caption}]".lstrip() if caption else text


def _turns(record: Mapping[str, Any]) -> tuple[Turn, ...]:
    numbers = sorted(int(m.group(1)) for key in record if (m := _SESSION.fullmatch(key)))
    turns = tuple(
        Turn(
            message["dia_id"],
            f"session_{number}",
            message["speaker"],
            "user",
            _text(message),
            message_time(message["date_time"]),
        )
        for number in numbers
        for message in record[f"session_{number}"]
    )
    if len({turn.turn_id for turn in turns}) != len(turns):
        raise DatasetError(f"{record.get('chat')}: a dia_id occurs twice")
    return turns


def _conversation(record: Mapping[str, Any], number: int) -> tuple[Conversation, list[Repair]]:
    chat = str(record.get("chat") or f"chat-{number}")
    turns = _turns(record)
    known = {turn.turn_id for turn in turns}
    queries: list[Query] = []
    labels: dict[str, Label] = {}
    repairs: list[Repair] = []
    for index, entry in enumerate(record["qa"]):
        query_id = f"{chat}/{index}"
        category = CATEGORIES.get(entry.get("category"))
        if category is None:
            raise DatasetError(f"{query_id}: unknown category {entry.get('category')!r}")
        gold, mended = resolve(
            entry.get("evidence") or (), known, conversation_id=chat, index=index
        )
        repairs += mended
        answer = entry.get("answer")
        queries.append(Query(query_id, str(entry["question"])))
        labels[query_id] = Label(query_id, gold, category, None if answer is None else str(answer))
    return Conversation(chat, turns, tuple(queries), labels), repairs


def load(path: Path) -> Dataset:
    """Map a REALTALK file whole: known by SHA-256, or labelled ``unofficial``.

    Malformed labels are of the kinds that the release is known for; all are in ``repairs``.

    Raises:
        DatasetError: A record is not as expected, or a known file's malformed labels are not
            the known ones.
    """
    content, digest, label = read_bytes(path, SOURCE)
    conversations, repairs = map_records(
        content, path.name, "REALTALK chats", lambda number, record: _conversation(record, number)
    )
    if digest in REPAIRS:
        check_pinned(repairs, (), where=path.name, accepted=REPAIRS[digest])
    return Dataset(SOURCE, digest, label, conversations, tuple(repairs))
