"""Claude data export (``conversations.json``).

A conversation lists its ``chat_messages`` in order. When it names its leaf and the messages name
their parents, only the path that the person last saw is imported. Text blocks are the message;
reasoning and traffic with tools are left out and reported. The text extracted from an attachment
is evidence of its own, with the authority of a document: pasting a text is not saying it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from evicortex.interfaces.importers.chosen_records import Conversation, chosen_records
from evicortex.interfaces.importers.records import (
    BadRecord,
    Entry,
    ImportOptions,
    Malformed,
    Place,
    SkippedRecord,
    objects,
    require,
)
from evicortex.types import Authority, EvidenceDraft, Json

_ROLES = {"human": "user", "assistant": "assistant"}


def read(file: BinaryIO, options: ImportOptions) -> Iterator[Entry]:
    """Yield the messages and attached texts of every conversation, in order."""
    for item in chosen_records(file, options.record, "uuid"):
        if isinstance(item, Entry):
            yield item
            continue
        try:
            yield from _conversation(item, options.user)
        except Malformed as error:
            yield Entry(Place(item.number, item.identifier), BadRecord(str(error)))


def _conversation(item: Conversation, user: str | None) -> Iterator[Entry]:
    number, conversation_id, record, _ = item
    messages = require(record, "chat_messages", list)
    shown = _shown(messages, record.get("current_leaf_message_uuid"))
    name = record.get("name")
    shared: dict[str, Json] = {"title": name} if isinstance(name, str) and name else {}
    for index, message in enumerate(messages, start=1):
        place = Place(number, f"{conversation_id} message {index}")
        try:
            if shown is not None and require(message, "uuid", str) not in shown:
                yield Entry(place, SkippedRecord("other_branch"))
                continue
            for found in _message(message, conversation_id, shared, user):
                yield Entry(place, found)
        except Malformed as error:
            yield Entry(place, BadRecord(str(error)))


def _shown(messages: list[Any], leaf: Any) -> set[str] | None:
    """Return the ids on the path to ``leaf``; ``None`` when the export holds no branches."""
    parents = {
        message["uuid"]: message["parent_message_uuid"]
        for message in messages
        if isinstance(message, dict)
        and isinstance(message.get("uuid"), str)
        and isinstance(message.get("parent_message_uuid"), str)
    }
    if not isinstance(leaf, str) or leaf not in parents:
        return None
    path: set[str] = set()
    while leaf in parents and leaf not in path:
        path.add(leaf)
        leaf = parents[leaf]
    return path


def _message(
    message: Any, conversation_id: str, shared: dict[str, Json], user: str | None
) -> Iterator[EvidenceDraft | SkippedRecord]:
    message_id = require(message, "uuid", str)
    sender = require(message, "sender", str)
    if sender not in _ROLES:
        raise Malformed(f"'sender' is {sender!r}, not human or assistant")
    blocks = objects(message, "content")
    for block in blocks:
        if require(block, "type", str) != "text":
            yield SkippedRecord(f"content_{block['type']}")
    said = EvidenceDraft(
        content=_text(message, blocks),
        actor=user if sender == "human" else "Claude",
        role=_ROLES[sender],
        session=conversation_id,
        source="claude",
        external_id=f"claude:{conversation_id}:{message_id}",
        occurred_at=require(message, "created_at", str),
        metadata=shared,
    )
    yield said if said.content.strip() else SkippedRecord("empty")
    yield from _attached(message, said)


def _text(message: dict[str, Any], blocks: list[Any]) -> str:
    """Join the text blocks; older exports have only ``text``. Name files without their text."""
    texts = [require(block, "text", str) for block in blocks if block["type"] == "text"]
    if not blocks:
        texts = [require(message, "text", str)]
    names = [
        require(file, "file_name", str)
        for field in ("attachments", "files")
        for file in objects(message, field)
        if not file.get("extracted_content")
    ]
    return "\n".join([text for text in texts if text] + [f"[file: {name}]" for name in names])


def _attached(message: dict[str, Any], said: EvidenceDraft) -> Iterator[EvidenceDraft]:
    for index, attachment in enumerate(objects(message, "attachments"), start=1):
        text = attachment.get("extracted_content")
        if text:
            yield EvidenceDraft(
                content=require(attachment, "extracted_content", str),
                actor=said.actor,
                role=said.role,
                session=said.session,
                source=said.source,
                external_id=f"{said.external_id}:attachment:{index}",
                occurred_at=said.occurred_at,
                authority=Authority.DOCUMENT,
                metadata={**said.metadata, "file_name": attachment.get("file_name")},
            )
