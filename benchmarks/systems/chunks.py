"""Append-only source records with versions, and sentence-aware chunks at two granularities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

import numpy as np
import numpy.typing as npt

from benchmarks.datasets.base import Turn
from benchmarks.systems.base import CountTokens, Piece, Span

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?]+[\"')\]]*(?=\s|$)|[.!?](?=\S)|\n|$)\s*")


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One version of one turn. A later version supersedes; none is ever changed or removed."""

    turn: Turn
    version: int
    row: int


@dataclass(slots=True)
class RecordLog:
    """The append-only records of one namespace."""

    records: list[SourceRecord] = field(default_factory=list)
    _versions: dict[str, int] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)

    def append(self, turns: Sequence[Turn]) -> None:
        """Add turns; the same turn with the same text again is no new version."""
        for turn in turns:
            if self._texts.get(turn.turn_id) == turn.text:
                continue
            version = self._versions.get(turn.turn_id, 0) + 1
            self._versions[turn.turn_id] = version
            self._texts[turn.turn_id] = turn.text
            self.records.append(SourceRecord(turn, version, len(self.records)))

    def current(self, as_of: datetime | None) -> set[int]:
        """Return the rows of the latest versions that had happened by then."""
        latest: dict[str, int] = {}
        for record in self.records:
            at = record.turn.occurred_at
            if as_of is None or at is None or at <= as_of:
                latest[record.turn.turn_id] = record.row
        return set(latest.values())


@dataclass(frozen=True, slots=True)
class Chunk:
    """Sentences of one session that are ranked together; ``rows`` are its source records."""

    text: str
    session: str
    rows: tuple[int, ...]
    pieces: tuple[Piece, ...]
    granularity: int


def sentences(text: str) -> list[Span]:
    """Return spans that end after sentence marks or line feeds; a decimal point ends none."""
    spans = [match.span() for match in _SENTENCE.finditer(text) if match.end() > match.start()]
    found: list[Span] = []
    for start, end in spans:
        glued = found and text[found[-1][1] - 1 : found[-1][1]] in ".!?"
        if glued and not text[found[-1][1] - 1].isspace():
            found[-1] = (found[-1][0], end)
        elif text[start:end].strip():
            found.append((start, end))
    return found


def _units(record: SourceRecord, limit: int, count: CountTokens) -> Iterator[tuple[Span, int]]:
    """Yield runs of whole sentences of at most ``limit`` tokens; a longer sentence stays whole."""
    opened: Span | None = None
    used = 0
    for start, end in sentences(record.turn.text):
        tokens = count(record.turn.text[start:end])
        if opened is not None and used + tokens > limit:
            yield opened, used
            opened, used = None, 0
        opened = (start, end) if opened is None else (opened[0], end)
        used += tokens
    if opened is not None:
        yield opened, used


def small_chunks(records: Sequence[SourceRecord], limit: int, count: CountTokens) -> list[Chunk]:
    """Return chunks within single turns."""
    return [
        Chunk(
            f"{record.turn.actor}: {record.turn.text[span[0] : span[1]].strip()}",
            record.turn.session,
            (record.row,),
            (Piece(record.turn, span),),
            0,
        )
        for record in records
        for span, _ in _units(record, limit, count)
    ]


def large_chunks(
    records: Sequence[SourceRecord], limit: int, overlap: int, count: CountTokens
) -> list[Chunk]:
    """Return chunks across the turns of a session, ``overlap`` units shared with the one before.

    A chunk that reaches beyond the time asked for is left out whole (:func:`allowed`); the small
    chunks of what had happened remain.
    """
    chunks: list[Chunk] = []
    for session, group in groupby(records, key=lambda record: record.turn.session):
        units = [(r, span, tokens) for r in group for span, tokens in _units(r, limit, count)]
        start = 0
        while start < len(units):
            end, used = start, 0
            while end < len(units) and (end == start or used + units[end][2] <= limit):
                used += units[end][2]
                end += 1
            chunks.append(_chunk(session, units[start:end]))
            if end == len(units):
                break
            start = max(end - overlap, start + 1)
    return chunks


def _chunk(session: str, units: Sequence[tuple[SourceRecord, Span, int]]) -> Chunk:
    lines = [f"{r.turn.actor}: {r.turn.text[a:b].strip()}" for r, (a, b), _ in units]
    rows = tuple(dict.fromkeys(record.row for record, _, _ in units))
    pieces = tuple(Piece(record.turn, span) for record, span, _ in units)
    return Chunk("\n".join(lines), session, rows, pieces, 1)


def allowed(chunks: Sequence[Chunk], current: set[int]) -> npt.NDArray[np.bool_]:
    """Return which chunks hold nothing but current records."""
    return np.array([all(row in current for row in chunk.rows) for chunk in chunks], dtype=bool)
