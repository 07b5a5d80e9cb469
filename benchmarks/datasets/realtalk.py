"""REALTALK: three weeks of real messages between two people, with questions and gold messages.

Every message has a clock of its own, read as UTC. In some chats the D-number is not the number
of the session, so messages are found by ``dia_id`` alone. The data states no licence: figures
may be published, texts may not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
    repairs_digest,
    text_of,
    words_of,
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
    "Chat_1_Emi_Elise": "77008a80a045de6b4d9a8a93a7727b24320b5bd99f9511c691befab165edee71",
    "Chat_3_Kevin_Paola": "8f23d3cb59d025b42bca212ac7f8e745e21e9e173dc6a3723687543a7c732538",
    "Chat_5_Nicolas_Nebraas": "b6dba8cc3284e67872f715d4ca943e146dbb90c960c5489e778cd11833424524",
    "Chat_8_Akib_Muhhamed": "b18f4ba14852c3d0ae6e956185ef6950faa7baea0453574adfddf065613f5e9f",
}
"""A chat that this project has read to the digest of its malformed labels, 101 in all.

Of the other chats only the kinds of malformed labels are known.
"""

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
    text = "" if message.get("clean_text") is None else text_of(message, "clean_text")
    return f"{text} [image: {caption}]".lstrip() if caption else text


def _turns(record: Mapping[str, Any]) -> tuple[Turn, ...]:
    numbers = sorted(int(m.group(1)) for key in record if (m := _SESSION.fullmatch(key)))
    turns = tuple(
        Turn(
            words_of(message, "dia_id"),
            f"session_{number}",
            words_of(message, "speaker"),
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
        queries.append(Query(query_id, words_of(entry, "question")))
        labels[query_id] = Label(query_id, gold, category, None if answer is None else str(answer))
    return Conversation(chat, turns, tuple(queries), labels), repairs


def _check_known(conversations: Sequence[Conversation], repairs: Sequence[Repair]) -> None:
    for conversation in conversations:
        chat = conversation.conversation_id
        mine = repairs_digest([r for r in repairs if r.conversation_id == chat])
        if REPAIRS.get(chat, mine) != mine:
            raise DatasetError(
                f"{chat}: its malformed labels are not the known ones; read the repair log and "
                f"pass its digest to accept it: {repairs_digest(repairs)}"
            )


def load(path: Path, *, accept_repairs: str | None = None) -> Dataset:
    """Map a REALTALK file whole: known by SHA-256, or labelled ``unofficial``.

    Malformed labels of the chats in ``REPAIRS`` are pinned, those of other chats are of the kinds
    that the release is known for; all are in ``repairs``. ``accept_repairs`` is the digest of a
    log that the caller has read.

    Raises:
        DatasetError: A record is not as expected, a chat occurs twice, or a known chat's malformed
            labels are not the known ones.
    """
    content, digest, label = read_bytes(path, SOURCE)
    conversations, repairs = map_records(
        content, path.name, "REALTALK chats", lambda number, record: _conversation(record, number)
    )
    if len({c.conversation_id for c in conversations}) != len(conversations):
        raise DatasetError(f"{path.name}: a chat occurs twice")
    if accept_repairs is None:
        _check_known(conversations, repairs)
    else:
        check_pinned(repairs, (), where=path.name, accepted=accept_repairs)
    return Dataset(SOURCE, digest, label, conversations, tuple(repairs))
