"""Reading the FTS5 table: terms of rows, and rows of terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import apsw
import numpy as np

from evicortex.projections.bm25 import Posting
from evicortex.projections.postings import Postings
from evicortex.projections.resident import Int32, NamespaceRows
from evicortex.text import content_terms
from evicortex.types import POSITION_BITS

Text = tuple[int, str]
"""A row id, and the row's content or its terms joined by spaces."""


def _texts(cursor: apsw.Cursor) -> list[Text]:
    return cast("list[Text]", cursor.fetchall())


def analysed(content: str) -> str:
    """Return the content terms of a text joined by spaces, as the projection stores them."""
    return " ".join(content_terms(content))


def quoted(term: str) -> str:
    """Return a term as an FTS5 string, in which nothing is syntax."""
    return '"' + term.replace('"', '""') + '"'


def contents(
    connection: apsw.Connection, first: int, last: int, batch: int
) -> Iterator[list[Text]]:
    """Yield the evidence with ``first <= row id <= last`` in batches, by row id."""
    while True:
        rows = _texts(
            connection.execute(
                "SELECT row_id, content FROM evidence WHERE row_id BETWEEN ? AND ? "
                "ORDER BY row_id LIMIT ?",
                (first, last, batch),
            )
        )
        if not rows:
            return
        yield rows
        first = rows[-1][0] + 1


def terms_from(
    connection: apsw.Connection, rows: NamespaceRows, start: int, watermark: int
) -> list[str]:
    """Return the terms of the rows from index ``start`` on, each joined by spaces.

    Rows past the watermark, and any that the table lacks, are analysed here.
    """
    wanted: list[int] = rows.row_ids[start:].tolist()
    if not wanted:
        return []
    token = quoted(f"n{rows.namespace_id}")
    found = _texts(
        connection.execute(
            "SELECT rowid, terms FROM lexical WHERE lexical MATCH ? AND rowid BETWEEN ? AND ? "
            "ORDER BY rowid",
            (f"namespace : {token}", wanted[0], min(wanted[-1], watermark)),
        )
    )
    if len(found) == len(wanted) and [row[0] for row in found] == wanted:
        return [row[1] for row in found]
    known = dict(found)
    missing = [row_id for row_id in wanted if row_id not in known]
    for batch in contents(connection, missing[0], missing[-1], 1_000):
        for row_id, content in batch:
            if row_id not in known:
                known[row_id] = analysed(content)
    return [known[row_id] for row_id in wanted]


class StoredTerms:
    """Postings of a namespace that is too large to be held in memory, one query a term.

    Rows from index ``indexed`` on lie past the watermark and are analysed here.
    """

    def __init__(
        self, connection: apsw.Connection, rows: NamespaceRows, indexed: int, watermark: int
    ) -> None:
        self._connection = connection
        self._rows = rows
        self._indexed = indexed
        self._watermark = watermark
        self._tail_terms = terms_from(connection, rows, indexed, watermark)
        self._tail = Postings()
        self._tail.append(self._tail_terms)

    @property
    def lengths(self) -> Int32:
        """The rows' lengths, in bytes of their texts."""
        return self._rows.octets

    def of(self, term: str) -> Posting:
        """Return the rows that hold a term; every count is 1."""
        found = self._connection.execute(
            "SELECT rowid FROM lexical WHERE lexical MATCH ? AND rowid BETWEEN ? AND ? "
            "ORDER BY rowid",
            (
                f"namespace : {quoted(f'n{self._rows.namespace_id}')} AND terms : {quoted(term)}",
                self._rows.namespace_id << POSITION_BITS,
                self._watermark,
            ),
        ).fetchall()
        at = self._rows.index(np.fromiter((row[0] for row in found), np.int64, len(found)))
        tail = self._tail.of(term, len(self._tail_terms)).rows + self._indexed
        rows = np.concatenate((at[at >= 0].astype(np.int32), tail))
        return Posting(rows, np.ones(len(rows), dtype=np.int32))

    def terms_of(self, rows: Int32) -> Sequence[list[str]]:
        """Return the terms of each of these rows, in order, with repetitions."""
        texts: list[list[str]] = []
        for row in rows.tolist():
            if row >= self._indexed:
                joined = self._tail_terms[row - self._indexed]
            else:
                stored: str | None = self._connection.execute(
                    "SELECT terms FROM lexical WHERE rowid = ?", (int(self._rows.row_ids[row]),)
                ).get
                joined = stored or ""
            texts.append(joined.split(" "))
        return texts
