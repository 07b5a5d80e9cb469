"""ChatGPT data export (``conversations.json``).

A conversation is a tree of nodes, because answers can be regenerated and questions edited; what
the person last saw is the path from ``current_node`` up to the root, and that is what is
imported. Hidden and system messages, the model's reasoning, and traffic with tools are left out
and reported. Images become ``[image]``, other files ``[file: name]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
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
from evicortex.types import EvidenceDraft, Json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROLES = ("user", "assistant")
_SPOKEN = ("text", "multimodal_text", "code")
_AUDIO = ("audio_asset_pointer", "real_time_user_audio_video_asset_pointer")


def read(file: BinaryIO, options: ImportOptions) -> Iterator[Entry]:
    """Yield the messages of every conversation, in the order in which they were said."""
    for item in chosen_records(file, options.record, "conversation_id", "id"):
        if isinstance(item, Entry):
            yield item
            continue
        try:
            yield from _conversation(item, options.user)
        except Malformed as error:
            yield Entry(Place(item.number, item.identifier), BadRecord(str(error)))


def _conversation(item: Conversation, user: str | None) -> Iterator[Entry]:
    number, conversation_id, record, _ = item
    mapping = require(record, "mapping", dict)
    path = _path(mapping, require(record, "current_node", str))
    title = record.get("title")
    shared: dict[str, Json] = {"title": title} if isinstance(title, str) and title else {}
    for node_id in path:
        message = mapping[node_id].get("message")
        if message is not None:
            place = Place(number, f"{conversation_id} {node_id}")
            yield Entry(place, _message(message, conversation_id, record, shared, user))
    unseen = sum(
        node_id not in path and isinstance(node, dict) and node.get("message") is not None
        for node_id, node in mapping.items()
    )
    for _ in range(unseen):
        yield Entry(Place(number, conversation_id), SkippedRecord("other_branch"))


def _path(mapping: Mapping[str, Any], leaf: str) -> dict[str, None]:
    """Return the node ids from the root to ``leaf``, in order."""
    path: dict[str, None] = {}
    node_id: Any = leaf
    while node_id is not None:
        if not isinstance(node_id, str) or not isinstance(mapping.get(node_id), dict):
            raise Malformed(f"node {node_id!r} is not in the mapping")
        if node_id in path:
            raise Malformed(f"the parents of node {leaf!r} run in a circle")
        path[node_id] = None
        node_id = mapping[node_id].get("parent")
    return dict.fromkeys(reversed(path))


def _message(
    message: Any,
    conversation_id: str,
    record: dict[str, Any],
    shared: dict[str, Json],
    user: str | None,
) -> EvidenceDraft | BadRecord | SkippedRecord:
    try:
        message_id = require(message, "id", str)
        role = require(require(message, "author", dict), "role", str)
        content = require(message, "content", dict)
        kind = require(content, "content_type", str)
        reason = _left_out(message, role, kind)
        if reason is not None:
            return SkippedRecord(reason)
        text = _text(content, message)
        occurred_at, metadata = _time(message, record, shared)
    except Malformed as error:
        return BadRecord(str(error))
    if not text.strip():
        return SkippedRecord("empty")
    return EvidenceDraft(
        content=text,
        actor=user if role == "user" else "ChatGPT",
        role=role,
        session=conversation_id,
        source="chatgpt",
        external_id=f"chatgpt:{conversation_id}:{message_id}",
        occurred_at=occurred_at,
        metadata=metadata,
    )


def _left_out(message: dict[str, Any], role: str, kind: str) -> str | None:
    """Return why a message is not part of what was said between person and model, if so."""
    metadata = _metadata(message)
    if metadata.get("is_visually_hidden_from_conversation") or metadata.get(
        "is_user_system_message"
    ):
        return "hidden"
    if role not in _ROLES:
        return f"role_{role}"
    if message.get("recipient") not in (None, "all"):
        return "tool_call"
    return None if kind in _SPOKEN else f"content_{kind}"


def _metadata(message: dict[str, Any]) -> dict[str, Any]:
    return require(message, "metadata", dict) if message.get("metadata") is not None else {}


def _text(content: dict[str, Any], message: dict[str, Any]) -> str:
    if content["content_type"] == "code":
        return str(require(content, "text", str))
    parts = [_part(part) for part in require(content, "parts", list)]
    parts += [_file(attachment) for attachment in objects(_metadata(message), "attachments")]
    return "\n".join(part for part in parts if part)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    kind = require(part, "content_type", str)
    if kind == "image_asset_pointer":
        return "[image]"
    if kind == "audio_transcription":
        return str(require(part, "text", str))
    return "" if kind in _AUDIO else f"[{kind}]"


def _file(attachment: Any) -> str:
    """Name an attached file; images stand among the parts already."""
    name = require(attachment, "name", str)
    mime_type = attachment.get("mime_type") or attachment.get("mimeType") or ""
    return "" if str(mime_type).startswith("image/") else f"[file: {name}]"


def _time(
    message: dict[str, Any], record: dict[str, Any], shared: dict[str, Json]
) -> tuple[datetime, dict[str, Json]]:
    """Return the message's own time, or the conversation's with a note that says so."""
    own = message.get("create_time")
    if own is not None:
        return _from_epoch(own), shared
    inherited = record.get("create_time")
    if inherited is None:
        raise Malformed("neither the message nor its conversation has a 'create_time'")
    return _from_epoch(inherited), {**shared, "occurred_at_from": "conversation"}


def _from_epoch(seconds: Any) -> datetime:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise Malformed(f"'create_time' {seconds!r} is not a number of seconds")
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise Malformed(f"'create_time' {seconds!r} is out of range") from error
