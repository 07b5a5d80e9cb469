"""LongMemEval: 500 questions, each over a haystack of chat sessions of its own.

Turns have no time: each takes its session's. Times have no zone and are read as UTC. In 44
questions a gold session lies after the question's clock time on the same day, so that only the
date is reliable: ``as_of`` is the end of that day, and ``strict_clock`` asks at the clock time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import (
    Conversation,
    DatasetError,
    Label,
    Query,
    ReleasedCorpus,
    Source,
    Stream,
    Turn,
)
from benchmarks.datasets.json_stream import digest_of, records

SOURCE = Source(
    name="longmemeval",
    origin="xiaowu0162/longmemeval-cleaned",
    revision="98d7416c24c778c2fee6e6f3006e7a073259d48f",
    licence="MIT",
    known={
        "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442": "official S",
        "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f": "official M",
        "9c5d1cd86db0d66671786bae984d94337cde306f1235a14bb12bd6a958b27d81": "one record of S",
        "290261e988f9e8b96212e7137311c45975deaa04782208efbb46789d563ce41f": "synthetic smoke, never official",
    },
)
TYPES = frozenset(
    {
        "single-session-user",
        "single-session-assistant",
        "single-session-preference",
        "multi-session",
        "temporal-reasoning",
        "knowledge-update",
    }
)
ROLES = frozenset({"user", "assistant"})
OFFICIAL_QUESTIONS = 500
RELEASED_DENOMINATOR = 419
"""500 questions less 30 abstentions less 51 without a user turn as target."""

_TIME = re.compile(r"(\d{4}/\d{2}/\d{2}) \((Mon|Tue|Wed|Thu|Fri|Sat|Sun)\) (\d{2}:\d{2})", re.ASCII)
_ABSTENTION = "_abs"
_MARK = "answer"


def clock_time(text: object) -> datetime:
    """Read ``2023/05/30 (Tue) 23:17`` as UTC.

    Raises:
        DatasetError: Anything else, a date that does not exist, or the wrong day of the week.
    """
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise DatasetError(f"not a LongMemEval time: {text!r}")
    try:
        at = datetime.strptime(f"{match[1]} {match[3]}", "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
    except ValueError as error:
        raise DatasetError(f"not a LongMemEval time: {text!r}: {error}") from error
    if f"{at:%a}" != match[2]:
        raise DatasetError(f"{text!r}: that day is a {at:%A}")
    return at


def end_of_day(at: datetime) -> datetime:
    """Return the last microsecond of that day."""
    start = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return start + timedelta(days=1, microseconds=-1)


@dataclass(frozen=True, slots=True)
class _Session:
    """``key`` is its place: released ids repeat, and tell which sessions hold the answer."""

    released_id: str
    key: str
    at: datetime
    turns: tuple[Mapping[str, Any], ...]

    @property
    def marked(self) -> bool:
        return _MARK in self.released_id


def _require(record: Mapping[str, Any], key: str, kind: type) -> Any:
    value = record.get(key)
    if not isinstance(value, kind):
        found = type(value).__name__
        raise DatasetError(f"{key} must be a {kind.__name__}, not a {found}")
    return value


def _sessions(record: Mapping[str, Any]) -> list[_Session]:
    ids = _require(record, "haystack_session_ids", list)
    dates = _require(record, "haystack_dates", list)
    contents = _require(record, "haystack_sessions", list)
    if not len(ids) == len(dates) == len(contents):
        raise DatasetError(f"{len(ids)} session ids, {len(dates)} dates, {len(contents)} sessions")
    found: list[_Session] = []
    for number, (session_id, date, turns) in enumerate(zip(ids, dates, contents, strict=True), 1):
        if not isinstance(session_id, str) or not session_id or not isinstance(turns, list):
            raise DatasetError(f"session {session_id!r} has no id or no turns")
        for turn in turns:
            _check_turn(turn, session_id)
        found.append(_Session(session_id, f"s{number}", clock_time(date), tuple(turns)))
    return found


def _check_turn(turn: object, session_id: str) -> None:
    if not isinstance(turn, dict) or turn.get("role") not in ROLES:
        raise DatasetError(f"session {session_id}: a turn without a known role")
    if not isinstance(turn.get("content"), str):
        raise DatasetError(f"session {session_id}: a turn without text")
    flag = turn.get("has_answer", False)
    if not isinstance(flag, bool):
        raise DatasetError(f"session {session_id}: has_answer is {flag!r}")
    if _MARK in session_id and turn["role"] == "user" and "has_answer" not in turn:
        raise DatasetError(f"session {session_id}: a user turn without has_answer")
    if flag and _MARK not in session_id:
        raise DatasetError(f"session {session_id}: has_answer outside an answer session")


def _check_alignment(record: Mapping[str, Any], sessions: list[_Session], abstains: bool) -> None:
    named = _require(record, "answer_session_ids", list)
    if not all(isinstance(each, str) for each in named):
        raise DatasetError(f"answer_session_ids must be texts, not {named!r}")
    marked = {session.released_id for session in sessions if session.marked}
    if not named and not abstains:
        raise DatasetError("an answerable question without answer sessions")
    if not abstains and set(named) != marked:
        raise DatasetError(f"answer sessions {sorted(named)} but {sorted(marked)} in the haystack")
    if abstains and marked - set(named):
        raise DatasetError(f"sessions {sorted(marked - set(named))} are marked but not named")


def _answer(record: Mapping[str, Any]) -> str:
    value = record.get("answer")
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DatasetError(f"an answer must be text or an integer, not {value!r}")
    return str(value)


def released_corpus(sessions: list[_Session]) -> ReleasedCorpus:
    """Return the corpus of the released evaluation: user turns, with ``noans`` for no evidence."""
    turn_ids: list[str] = []
    document_ids: list[str] = []
    session_ids: list[str] = []
    for session in sessions:
        users = [(i, t) for i, t in enumerate(session.turns, 1) if t["role"] == "user"]
        for place, turn in users:
            turn_ids.append(f"{session.key}_{place}")
            document = f"{session.released_id}_{place}"
            plain = not session.marked or turn["has_answer"]
            document_ids.append(document if plain else document.replace(_MARK, "noans"))
        silent = session.marked and not any(turn["has_answer"] for _, turn in users)
        released = session.released_id
        session_ids.append(released.replace(_MARK, "noans") if silent else released)
    keys = tuple(session.key for session in sessions)
    return ReleasedCorpus(tuple(turn_ids), tuple(document_ids), tuple(session_ids), keys)


def map_record(record: Mapping[str, Any], *, strict_clock: bool = False) -> Conversation:
    """Map one record; blank turns stay, as the release counts them.

    Raises:
        DatasetError: The record breaks a rule of the release; the message says which.
    """
    question_id = _require(record, "question_id", str)
    kind = _require(record, "question_type", str)
    if kind not in TYPES:
        raise DatasetError(f"unknown question type {kind!r}")
    sessions = _sessions(record)
    abstains = _ABSTENTION in question_id
    _check_alignment(record, sessions, abstains)
    asked = clock_time(record.get("question_date"))
    question = _require(record, "question", str)
    if not question.strip():
        raise DatasetError("a blank question")
    turns = [
        Turn(f"{s.key}_{place}", s.key, turn["role"], turn["role"], turn["content"], s.at)
        for s in sessions
        for place, turn in enumerate(s.turns, 1)
    ]
    gold = tuple(
        f"{s.key}_{place}"
        for s in sessions
        for place, turn in enumerate(s.turns, 1)
        if turn.get("has_answer")
    )
    label = Label(
        question_id,
        gold,
        kind,
        _answer(record),
        answerable=not abstains,
        released=released_corpus(sessions),
    )
    query = Query(question_id, question, asked if strict_clock else end_of_day(asked))
    return Conversation(question_id, tuple(turns), (query,), {question_id: label})


def conversations(path: Path, *, strict_clock: bool = False) -> Iterator[Conversation]:
    """Yield the questions of a file, one record in memory at a time."""
    seen: set[str] = set()
    for number, record in enumerate(records(path)):
        try:
            found = map_record(record, strict_clock=strict_clock)
        except DatasetError as error:
            name = record.get("question_id")
            raise DatasetError(f"{path.name}, record {number} ({name}): {error}") from error
        if found.conversation_id in seen:
            raise DatasetError(f"{path.name}, record {number}: {found.conversation_id} repeats")
        seen.add(found.conversation_id)
        yield found


def stream(path: Path, *, strict_clock: bool = False) -> Stream:
    """Open an S, M or oracle file, ``.json`` or ``.json.gz``; known by its uncompressed SHA-256."""
    digest = digest_of(path)
    return Stream(
        SOURCE,
        digest,
        SOURCE.known.get(digest, "unofficial"),
        lambda: conversations(path, strict_clock=strict_clock),
        condition="strict clock" if strict_clock else "end of day",
    )
