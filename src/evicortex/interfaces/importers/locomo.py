"""LoCoMo conversations (``locomo10.json`` of snap-research/LoCoMo).

``dia_id`` is the external id, with the sample's id in front when the file holds several
conversations. A caption is part of the text; ``query`` (gold answers leak from it), ``img_url``
and the questions are never imported. Only sessions are dated; their dates are read as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

from evicortex.interfaces.importers.chosen_records import Conversation, chosen_records
from evicortex.interfaces.importers.records import (
    BadRecord,
    Entry,
    ImportOptions,
    Malformed,
    Place,
    require,
)
from evicortex.types import EvidenceDraft

_SESSION = re.compile(r"session_(\d+)")
_DATE = re.compile(r"(\d{1,2}):(\d{2}) (am|pm) on (\d{1,2}) ([A-Z][a-z]+), (\d{4})")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def read(file: BinaryIO, options: ImportOptions) -> Iterator[Entry]:
    """Yield every turn as a draft; a session without a readable date is one ``BadRecord``."""
    for item in chosen_records(file, options.record, "sample_id"):
        if isinstance(item, Entry):
            yield item
        else:
            yield from _conversation(item)


def session_time(text: str) -> datetime:
    """Read ``1:56 pm on 8 May, 2023`` as UTC; raises ``Malformed`` for anything else."""
    match = _DATE.fullmatch(text)
    if match is None or match[5] not in _MONTHS or not 1 <= int(match[1]) <= 12:
        raise Malformed(f"unreadable session date {text!r}")
    hour = int(match[1]) % 12 + (12 if match[3] == "pm" else 0)
    month = _MONTHS.index(match[5]) + 1
    try:
        return datetime(int(match[6]), month, int(match[4]), hour, int(match[2]), tzinfo=UTC)
    except ValueError as error:
        raise Malformed(f"unreadable session date {text!r}: {error}") from error


def _conversation(item: Conversation) -> Iterator[Entry]:
    number, sample, record, several = item
    prefix = f"{sample}:" if several else ""
    try:
        conversation = require(record, "conversation", dict)
    except Malformed as error:
        yield Entry(Place(number, sample), BadRecord(str(error)))
        return
    for name in sorted(filter(_SESSION.fullmatch, conversation), key=lambda key: int(key[8:])):
        label = f"{sample} {name}"
        try:
            turns = require(conversation, name, list)
            occurred_at = session_time(require(conversation, f"{name}_date_time", str))
        except Malformed as error:
            yield Entry(Place(number, label), BadRecord(f"{error}; its turns are not imported"))
            continue
        for index, turn in enumerate(turns, start=1):
            place = Place(number, f"{label} turn {index}")
            yield Entry(place, _turn(turn, prefix, name, occurred_at))


def _turn(turn: Any, prefix: str, session: str, occurred_at: datetime) -> EvidenceDraft | BadRecord:
    try:
        dia_id = require(turn, "dia_id", str)
        speaker = require(turn, "speaker", str)
        text = require(turn, "text", str)
        caption = require(turn, "blip_caption", str) if turn.get("blip_caption") else ""
    except Malformed as error:
        return BadRecord(str(error))
    return EvidenceDraft(
        content=f"{text} [image: {caption}]".lstrip() if caption else text,
        actor=speaker,
        session=f"{prefix}{session}",
        source="locomo",
        external_id=f"{prefix}{dia_id}",
        occurred_at=occurred_at,
    )
