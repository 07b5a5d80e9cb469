"""LongMemEval haystacks (``longmemeval_s_cleaned.json`` and its like).

A turn's external id is the benchmark's own: session id, ``_``, place in the session from 1, all
turns counted. A session id that repeats within a haystack gets ``#2``, ``#3``; the question's id
stands in front when the file holds several. Dates are read as UTC. Questions, answers and
``has_answer`` are labels and are never imported.
"""

from __future__ import annotations

import re
from collections import Counter
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

_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2}) \((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\) (\d{2}):(\d{2})")
_ROLES = ("user", "assistant")


def read(file: BinaryIO, options: ImportOptions) -> Iterator[Entry]:
    """Yield every turn as a draft, blank ones too; a session without a date is a ``BadRecord``."""
    for item in chosen_records(file, options.record, "question_id"):
        if isinstance(item, Entry):
            yield item
        else:
            yield from _haystack(item, options.user)


def haystack_time(text: str) -> datetime:
    """Read ``2023/05/30 (Tue) 23:17`` as UTC; raises ``Malformed`` for anything else."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise Malformed(f"unreadable date {text!r}")
    year, month, day, hour, minute = map(int, match.groups())
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError as error:
        raise Malformed(f"unreadable date {text!r}: {error}") from error


def _haystack(item: Conversation, user: str | None) -> Iterator[Entry]:
    number, question, record, several = item
    prefix = f"{question}:" if several else ""
    try:
        sessions = _sessions(record)
    except Malformed as error:
        yield Entry(Place(number, question), BadRecord(str(error)))
        return
    repeats: Counter[str] = Counter()
    for session_id, date, turns in sessions:
        try:
            key = _unrepeated(require({"session id": session_id}, "session id", str), repeats)
            occurred_at = haystack_time(require({"date": date}, "date", str))
            require({"session": turns}, "session", list)
        except Malformed as error:
            place = Place(number, f"{question} {session_id}")
            yield Entry(place, BadRecord(f"{error}; its turns are not imported"))
            continue
        for index, turn in enumerate(turns, start=1):
            name = f"{prefix}{key}"
            place = Place(number, f"{question} {key} turn {index}")
            yield Entry(place, _turn(turn, name, index, occurred_at, user))


def _sessions(record: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    columns = [
        require(record, f"haystack_{name}", list) for name in ("session_ids", "dates", "sessions")
    ]
    if len({len(column) for column in columns}) > 1:
        raise Malformed("haystack ids, dates and sessions are not equally many")
    return list(zip(*columns, strict=True))


def _unrepeated(session_id: str, repeats: Counter[str]) -> str:
    repeats[session_id] += 1
    count = repeats[session_id]
    return session_id if count == 1 else f"{session_id}#{count}"


def _turn(
    turn: Any, session: str, index: int, occurred_at: datetime, user: str | None
) -> EvidenceDraft | BadRecord:
    try:
        role = require(turn, "role", str)
        content = require(turn, "content", str)
    except Malformed as error:
        return BadRecord(str(error))
    if role not in _ROLES:
        return BadRecord(f"'role' is {role!r}, not user or assistant")
    return EvidenceDraft(
        content=content,
        actor=user if role == "user" else None,
        role=role,
        session=session,
        source="longmemeval",
        external_id=f"{session}_{index}",
        occurred_at=occurred_at,
    )
