"""Times that texts name, as rows: where they stand, which moments they are, how coarse.

A text is read once, by a pure function that is given with the text the moment at which it was
said: the evidence's ``occurred_at``, else its ``recorded_at``, in UTC. No characters of a text
are stored, only where they stand.

Reading a text costs about as much as the rest of storing it, so a batch that is imported is left
for later: a watermark says how far a namespace is read, and what lies past it is read when it is
asked for. The watermark's name holds the reader's version and options, so that what another one
read never counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import apsw

from evicortex.types import POSITION_BITS, Granularity, Span, TimeMention
from evicortex.validity import from_micros, to_micros

Find = Callable[[str, datetime], Sequence[TimeMention]]
"""Returns the times in a text, in its order and apart, given when it was said (aware, UTC)."""

_INSERT = (
    "INSERT INTO time_mentions (namespace_id, row_id, start, stop, begins_at, ends_at, "
    "granularity, relative, open_year) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Said(NamedTuple):
    """A text, and the moment (aware, UTC) at which it was said."""

    text: str
    at: datetime


class TimeProjection:
    """The time mentions of one open ledger. Writes take a connection inside a write transaction.

    ``find`` reads a text; ``identity`` names everything about it that can change what it finds.
    """

    def __init__(self, find: Find, identity: str) -> None:
        self._find = find
        self.projection = f"times/{identity}"
        """Name of the watermark."""

    def watermark(self, connection: apsw.Connection, namespace_id: int) -> int:
        """Return the row id up to which the namespace's texts are read."""
        found: int | None = connection.execute(
            "SELECT row_id FROM watermarks WHERE namespace_id = ? AND projection = ?",
            (namespace_id, self.projection),
        ).get
        return namespace_id << POSITION_BITS if found is None else found

    def sync(self, connection: apsw.Connection, namespace_id: int, limit: int) -> int:
        """Read the next texts, at most ``limit``; return how many: fewer at the end."""
        mark = self.watermark(connection, namespace_id)
        if mark == namespace_id << POSITION_BITS:
            self.clear(connection, namespace_id)
        texts = _after(connection, namespace_id, mark, limit)
        if not texts:
            return 0
        rows = (
            values
            for row_id, text, moment in texts
            for values in self._rows(namespace_id, row_id, Said(text, from_micros(moment)))
        )
        connection.executemany(_INSERT, rows)
        connection.execute(
            "INSERT INTO watermarks (namespace_id, projection, row_id) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET row_id = excluded.row_id",
            (namespace_id, self.projection, texts[-1][0]),
        )
        return len(texts)

    def _rows(self, namespace_id: int, row_id: int, said: Said) -> Iterable[tuple[object, ...]]:
        for mention in self._find(said.text, said.at):
            yield (
                namespace_id,
                row_id,
                *mention.span,
                to_micros(mention.start),
                to_micros(mention.end),
                mention.granularity.value,
                int(mention.relative),
                int(mention.open_year),
            )

    def keep_up(
        self, connection: apsw.Connection, namespace_id: int, *, limit: int, octets: int
    ) -> None:
        """Read what is not read yet, unless that is more than so many texts or bytes of them."""
        mark = self.watermark(connection, namespace_id)
        end = (namespace_id + 1) << POSITION_BITS
        pending, size = connection.execute(
            "SELECT count(*), ifnull(sum(size), 0) FROM (SELECT octet_length(content) AS size "
            "FROM evidence WHERE row_id > ? AND row_id < ? LIMIT ?)",
            (mark, end, limit + 1),
        ).get
        if 0 < pending <= limit and size <= octets:
            self.sync(connection, namespace_id, limit)

    def count(self, connection: apsw.Connection, namespace_id: int) -> int:
        """Return how many times of the namespace are stored."""
        found: int = connection.execute(
            "SELECT count(*) FROM time_mentions WHERE namespace_id = ?", (namespace_id,)
        ).get
        return found

    def of(
        self, connection: apsw.Connection, namespace_id: int, texts: Mapping[int, Said]
    ) -> dict[int, tuple[TimeMention, ...]]:
        """Return the times of each text, given by row id; those not read yet are read now.

        ``texts`` are the evidence's own, from the same transaction.
        """
        mark = self.watermark(connection, namespace_id)
        return {
            row_id: _stored(connection, namespace_id, row_id, said.text)
            if row_id <= mark
            else tuple(map(_plain, self._find(said.text, said.at)))
            for row_id, said in texts.items()
        }

    def remove(
        self, connection: apsw.Connection, namespace_id: int, row_ids: Sequence[int]
    ) -> None:
        """Take out the times of evidence, in the transaction that purges it."""
        connection.executemany(
            "DELETE FROM time_mentions WHERE namespace_id = ? AND row_id = ?",
            [(namespace_id, row_id) for row_id in row_ids],
        )

    def clear(self, connection: apsw.Connection, namespace_id: int) -> None:
        """Take out everything of the namespace, as when nothing had been read yet."""
        connection.execute("DELETE FROM time_mentions WHERE namespace_id = ?", (namespace_id,))
        connection.execute(
            "DELETE FROM watermarks WHERE namespace_id = ? AND projection GLOB 'times/*'",
            (namespace_id,),
        )


def _after(
    connection: apsw.Connection, namespace_id: int, mark: int, limit: int
) -> list[tuple[int, str, int]]:
    """Return (row id, text, effective time in microseconds) of the next evidence, in order."""
    rows = connection.execute(
        "SELECT row_id, content, ifnull(occurred_at, recorded_at) FROM evidence "
        "WHERE row_id > ? AND row_id < ? ORDER BY row_id",
        (mark, (namespace_id + 1) << POSITION_BITS),
    )
    return list(islice(rows, limit))


def _stored(
    connection: apsw.Connection, namespace_id: int, row_id: int, text: str
) -> tuple[TimeMention, ...]:
    rows = connection.execute(
        "SELECT start, stop, begins_at, ends_at, granularity, relative, open_year "
        "FROM time_mentions WHERE namespace_id = ? AND row_id = ? ORDER BY start",
        (namespace_id, row_id),
    )
    return tuple(
        TimeMention(
            Span(start, stop),
            text[start:stop],
            from_micros(begins),
            from_micros(ends),
            Granularity(granularity),
            bool(relative),
            bool(open_year),
        )
        for start, stop, begins, ends, granularity, relative, open_year in rows
    )


def _plain(found: TimeMention) -> TimeMention:
    """Return the public value of a mention that may know more."""
    return TimeMention(
        found.span,
        found.text,
        found.start,
        found.end,
        found.granularity,
        found.relative,
        found.open_year,
    )
