"""What every data set maps its records to.

A system sees :class:`Turn` and :class:`Query` only. Gold, categories and answers live in
:class:`Label`, which no system's signature accepts: that is what keeps a run label-free.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from evicortex import ClaimDraft


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set comes from, and how its files are recognised."""

    name: str
    origin: str
    revision: str
    licence: str
    known: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of a known file to its label, such as ``official`` or ``dev6``."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. ``turn_id`` is unique within its conversation; times are aware UTC.

    ``actor`` is empty where nobody is named.
    """

    turn_id: str
    session: str
    actor: str
    role: str
    text: str
    occurred_at: datetime | None
    claims: tuple[ClaimDraft, ...] = ()
    """What a declaring writer would say with it; a system uses them only in its declared mode."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a system is asked. ``text`` may be a question or an ambient statement."""

    query_id: str
    text: str
    as_of: datetime | None = None
    query_actor: str | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """What a system never sees: gold turn ids, category and answer of one query."""

    query_id: str
    gold: tuple[str, ...]
    category: str
    answer: str | None = None
    answerable: bool = True
    """False for questions that the conversation cannot answer: the right pack is a refusal."""
    released: ReleasedCorpus | None = None
    """What the data set's own evaluation ranks, where it has one."""

    @property
    def counted(self) -> bool:
        """Whether recall is measured on it: it is answerable and has gold that exists."""
        return self.answerable and bool(self.gold)


@dataclass(frozen=True, slots=True)
class ReleasedCorpus:
    """The corpus of a released evaluation: our turn ids and its document ids, in its order.

    Several turns may share a document id, where the release repeats session ids.
    """

    turn_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    session_ids: tuple[str, ...]
    """Released session ids at session granularity, in order, one a session."""
    session_keys: tuple[str, ...]
    """Our session names, in the same order; a turn's id is its session's, ``_`` and a number."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in order, queries, and the labels kept apart from them."""

    conversation_id: str
    turns: tuple[Turn, ...]
    queries: tuple[Query, ...]
    labels: Mapping[str, Label]


@dataclass(frozen=True, slots=True)
class Repair:
    """One label that was malformed and what became of it; nothing is repaired silently."""

    conversation_id: str
    index: int
    raw: str
    resolved: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """A file mapped whole. ``label`` names the known file, or says ``unofficial``."""

    source: Source
    digest: str
    label: str
    conversations: tuple[Conversation, ...]
    repairs: tuple[Repair, ...] = ()
    condition: str = "official"

    def stream(self) -> Stream:
        """Return the same data as a stream, which is what the runner takes."""
        return Stream(
            self.source,
            self.digest,
            self.label,
            lambda: iter(self.conversations),
            self.repairs,
            self.condition,
        )

    @property
    def questions(self) -> int:
        """Number of queries in all conversations."""
        return sum(len(conversation.queries) for conversation in self.conversations)


@dataclass(frozen=True, slots=True)
class Stream:
    """A data set that may be too large to hold: conversations come one at a time, each pass anew.

    ``condition`` says which labels are in force, such as ``official`` or ``corrected``.
    """

    source: Source
    digest: str
    label: str
    passes: Callable[[], Iterator[Conversation]]
    repairs: tuple[Repair, ...] = ()
    condition: str = "official"
    others: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each further file that the conversations are made of, by its option."""

    def conversations(self) -> Iterator[Conversation]:
        """Begin a new pass over all conversations."""
        return self.passes()


class DatasetError(ValueError):
    """A file that is not what it was said to be; the message names the record."""


def read_bytes(path: Path, source: Source) -> tuple[bytes, str, str]:
    """Return the file's bytes, its SHA-256 and the label under which it is known."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return content, digest, source.known.get(digest, "unofficial")


def parse(content: bytes, where: str) -> Any:
    """Return what a JSON file holds; raises DatasetError, which names the file, when it is none."""
    try:
        return json.loads(content)
    except ValueError as error:
        raise DatasetError(f"{where}: not JSON: {error}") from error


def text_of(record: Mapping[str, Any], key: str) -> str:
    """Return a text, which may be blank; raises DatasetError for any other value."""
    value = record[key]
    if not isinstance(value, str):
        raise DatasetError(f"{key} must be text, not {value!r}")
    return value


def words_of(record: Mapping[str, Any], key: str) -> str:
    """Return a text that says something; raises DatasetError for any other value."""
    value = text_of(record, key)
    if not value.strip():
        raise DatasetError(f"{key} is blank")
    return value


def repairs_digest(repairs: Sequence[Repair]) -> str:
    """Return the SHA-256 of a repair log, by which a file's malformed labels are pinned."""
    rows = [[r.conversation_id, r.index, r.raw, list(r.resolved), r.reason] for r in repairs]
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


MALFORMED = (DatasetError, KeyError, TypeError, AttributeError)
"""What a mapper raises on a record that is not of the shape it reads."""


def told(error: Exception) -> str:
    """Say what a mapper found wrong with a record."""
    if isinstance(error, DatasetError):
        return str(error)
    return f"missing {error}" if isinstance(error, KeyError) else f"not as expected: {error}"


def map_records(
    content: bytes,
    where: str,
    what: str,
    mapper: Callable[[int, Mapping[str, Any]], tuple[Conversation, list[Repair]]],
) -> tuple[tuple[Conversation, ...], list[Repair]]:
    """Map every record of a JSON array; ``mapper`` gets its number, from 0, and the record.

    Raises:
        DatasetError: ``where`` is no array of ``what``, or a record is not as expected.
    """
    records = parse(content, where)
    if not isinstance(records, list) or not records:
        raise DatasetError(f"{where}: not a list of {what}")
    conversations: list[Conversation] = []
    repairs: list[Repair] = []
    for number, record in enumerate(records):
        try:
            conversation, mended = mapper(number, record)
        except MALFORMED as error:
            raise DatasetError(f"{where}, record {number}: {told(error)}") from error
        conversations.append(conversation)
        repairs += mended
    return tuple(conversations), repairs
