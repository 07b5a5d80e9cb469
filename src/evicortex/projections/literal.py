"""Exact substring search over a namespace's texts, for what no index term can find.

Punctuation (``*``, ``++``), stop words only (``to be or not to be``), half a word, a quotation:
the texts themselves are read and searched, newest first, up to a cap.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import apsw
import numpy as np

from evicortex.errors import InputError
from evicortex.projections.bm25 import Index
from evicortex.projections.resident import Int32, Mask, NamespaceRows
from evicortex.projections.stored_terms import Text
from evicortex.text import STOP_WORDS
from evicortex.types import Diagnostic

MAX_NEEDLES = 8
_SPARSE = 16
_ONE = "SELECT content FROM evidence WHERE row_id = ?"
_QUOTES = "\"'“”„‘’«»`"
_EDGES = "?!.,;:" + _QUOTES


@dataclass(frozen=True, slots=True)
class LiteralOptions:
    """``max_rows`` newest allowed rows are read at most, and ``max_bytes`` of text."""

    max_rows: int = 200_000
    max_bytes: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.max_rows < 1 or self.max_bytes < 1:
            raise InputError("literal options are counts of at least 1")


@dataclass(frozen=True, slots=True)
class LiteralHits:
    """Rows whose text holds ``needle``, newest first.

    ``form`` says how it was compared: ``exact`` (code point by code point) or ``caseless``
    (case-folded, compatibility forms composed). ``needle`` is empty when nothing was found.
    """

    needle: str
    form: Literal["exact", "caseless"]
    rows: Int32
    diagnostics: tuple[Diagnostic, ...] = ()


def needles(query: str) -> tuple[str, ...]:
    """Return what to look for, best first: the whole query, then its longest chunks.

    Chunks that are English stop words are left out, so that ``what is ++`` looks for ``++``.
    """
    whole = query.strip()
    found = [whole, whole.strip(_QUOTES).strip()]
    chunks = sorted(
        (chunk for chunk in whole.split() if chunk.strip(_EDGES).casefold() not in STOP_WORDS),
        key=len,
        reverse=True,
    )
    for chunk in chunks[:MAX_NEEDLES]:
        found += [chunk, chunk.strip(_EDGES)]
    return tuple(dict.fromkeys(filter(_storable, found)))[:MAX_NEEDLES]


def _storable(needle: str) -> bool:
    """Say whether a text of the ledger could hold this: not empty, no lone surrogate."""
    return bool(needle) and not any("\ud800" <= character <= "\udfff" for character in needle)


def caseless(text: str) -> str:
    """Return the form in which case and compatibility variants are equal."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def find(
    connection: apsw.Connection,
    rows: NamespaceRows,
    query: str,
    mask: Mask | None = None,
    options: LiteralOptions | None = None,
) -> LiteralHits:
    """Return the rows whose text holds the query, or the longest part of it that any holds.

    The forms are tried in this order: the whole query exactly, the whole query caseless, then
    each further needle exactly and caseless. ``mask`` says which rows may be looked at.
    """
    allowed = np.arange(len(rows)) if mask is None else np.flatnonzero(mask)
    within, diagnostics = _capped(rows, allowed, options or LiteralOptions())
    wanted = needles(query)
    if not wanted or not len(within):
        return LiteralHits("", "exact", np.empty(0, dtype=np.int32), diagnostics)
    scan = _Scan(connection, rows, within)
    hits = scan.exactly(wanted[0])
    if len(hits):
        return LiteralHits(wanted[0], "exact", hits, diagnostics)
    needle, form, hits = scan.any_form(wanted)
    return LiteralHits(needle, form, hits, diagnostics)


def _capped(
    rows: NamespaceRows, allowed: Index, options: LiteralOptions
) -> tuple[Index, tuple[Diagnostic, ...]]:
    """Return the newest rows that may be read, ascending."""
    newest_first = np.cumsum(rows.octets[allowed[::-1]], dtype=np.int64)
    affordable = int(np.searchsorted(newest_first, options.max_bytes, side="right"))
    count = min(len(allowed), options.max_rows, max(affordable, 1))
    if count == len(allowed):
        return allowed, ()
    return allowed[len(allowed) - count :], (
        Diagnostic(
            "literal_scan_capped",
            f"only the newest {count} of {len(allowed)} texts were searched for the literal query",
            {"searched": count, "rows": len(allowed)},
        ),
    )


class _Scan:
    """Reads the texts of some rows of one namespace; ``within`` ascends and is not empty."""

    def __init__(self, connection: apsw.Connection, rows: NamespaceRows, within: Index) -> None:
        self._connection = connection
        self._rows = rows
        self._within = within
        # One read of a row costs about as much as passing over sixteen of a range.
        self._sparse = len(within) * _SPARSE < within[-1] - within[0] + 1

    def exactly(self, needle: str) -> Int32:
        """Return the rows that hold the needle, newest first."""
        if self._sparse:
            ids = [row_id for row_id, text in self._texts() if needle in text]
        else:
            found = self._connection.execute(
                "SELECT row_id FROM evidence WHERE row_id BETWEEN ? AND ? "
                "AND instr(content, ?) > 0",
                (*self._bounds, needle),
            )
            ids = [int(row[0]) for row in found]
        return self._hits(ids)

    def any_form(self, wanted: Sequence[str]) -> tuple[str, Literal["exact", "caseless"], Int32]:
        """Return the first needle that any row holds, in its first form, and those rows."""
        forms = [(needle, caseless(needle)) for needle in wanted]
        exact: dict[str, list[int]] = {needle: [] for needle in wanted}
        folded: dict[str, list[int]] = {needle: [] for needle in wanted}
        for row_id, text in self._texts():
            plain = caseless(text)
            for needle, loose in forms:
                if needle in text:
                    exact[needle].append(row_id)
                if loose in plain:
                    folded[needle].append(row_id)
        for needle in wanted:
            if len(hits := self._hits(exact[needle])):
                return needle, "exact", hits
            if len(hits := self._hits(folded[needle])):
                return needle, "caseless", hits
        return "", "exact", np.empty(0, dtype=np.int32)

    @property
    def _bounds(self) -> tuple[int, int]:
        row_ids = self._rows.row_ids
        return int(row_ids[self._within[0]]), int(row_ids[self._within[-1]])

    def _texts(self) -> Iterator[Text]:
        if not self._sparse:
            return cast(
                "Iterator[Text]",
                self._connection.execute(
                    "SELECT row_id, content FROM evidence WHERE row_id BETWEEN ? AND ?",
                    self._bounds,
                ),
            )
        return (
            (row_id, str(self._connection.execute(_ONE, (row_id,)).get))
            for row_id in self._rows.row_ids[self._within].tolist()
        )

    def _hits(self, row_ids: Sequence[int]) -> Int32:
        """Return the row indices of these row ids as far as they may be looked at."""
        found = self._rows.index(row_ids)
        return np.intersect1d(found, self._within)[::-1].astype(np.int32)
