"""The lexical projection: our own terms in one FTS5 table, scored with BM25 in memory.

FTS5 stores and finds terms; it never ranks, because its statistics span all namespaces. A row
holds the namespace as the token ``n<id>`` and the content terms of the text joined by spaces,
and the tokenizer splits at spaces only. Query strings are built from quoted terms, so no text of
a user can act as query syntax.

A watermark says how far a namespace is indexed. What lies past it (a crash between the two
transactions of a write, or a ledger opened read-only by a program with another text analysis)
is analysed in memory at recall and indexed by the next write.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import apsw
import numpy as np

from evicortex.errors import InputError
from evicortex.projections.bm25 import (
    Bm25Options,
    Float32,
    Index,
    Layout,
    Posting,
    Scorer,
    idf,
)
from evicortex.projections.cache import NamespaceCache
from evicortex.projections.postings import Postings
from evicortex.projections.resident import Int32, Mask, NamespaceRows
from evicortex.projections.stored_terms import (
    StoredTerms,
    Text,
    analysed,
    contents,
    terms_from,
)
from evicortex.text import ANALYSIS
from evicortex.types import POSITION_BITS, Diagnostic

PROJECTION = f"lexical/{ANALYSIS}"
"""Name of the watermark; rows indexed by another text analysis do not count as indexed."""

_SYNC_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class LexicalOptions:
    """How texts are scored, and how much may stay in memory.

    ``max_query_terms`` rarest terms of a query count. Namespaces of up to ``resident_rows`` rows
    keep their terms in memory (about 300 bytes a short turn), all together up to
    ``cached_rows`` rows. For a larger one each term is looked up in the file, lengths are the
    texts' bytes, and exact term counts are read for the ``candidate_rows`` best rows (every
    other row counts a term once).
    """

    bm25: Bm25Options = field(default_factory=Bm25Options)
    max_query_terms: int = 256
    resident_rows: int = 250_000
    cached_rows: int = 1_000_000
    candidate_rows: int = 1_000

    def __post_init__(self) -> None:
        counts = (self.max_query_terms, self.resident_rows, self.cached_rows, self.candidate_rows)
        if min(counts) < 1:
            raise InputError("lexical options are counts of at least 1")


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """One float32 per row of the namespace, higher is better; 0 for rows that are not allowed.

    ``turn``, ``window`` and ``session`` are BM25 of the row itself, of the row with its
    neighbours, and of its whole thread. ``coverage`` is the share (0 to 1) of the query's idf
    mass that the row itself holds. ``idf`` gives the weight of every term that counted.
    """

    turn: Float32
    window: Float32
    session: Float32
    coverage: Float32
    idf: Mapping[str, float]
    diagnostics: tuple[Diagnostic, ...] = ()


class _LayoutKey(NamedTuple):
    """Equal for equal layouts of one generation; ``allowed`` is empty when all rows are."""

    lengths: type
    rows: int
    allowed: bytes


class _Loaded:
    """Terms of one namespace in one generation, and layouts of its rows."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self.lock = threading.Lock()
        self.postings = Postings()
        self.layouts: dict[_LayoutKey, Layout] = {}

    def __len__(self) -> int:
        return max([len(self.postings), *(layout.count for layout in self.layouts.values())])


@dataclass(frozen=True, slots=True)
class _Memory:
    """Terms of the first ``count`` rows of a namespace, from memory."""

    postings: Postings
    count: int

    @property
    def lengths(self) -> Int32:
        return self.postings.lengths(self.count)

    def of(self, term: str) -> Posting:
        return self.postings.of(term, self.count)


class LexicalView:
    """The terms of one namespace as one snapshot sees them; valid inside its transaction."""

    def __init__(
        self,
        rows: NamespaceRows,
        source: _Memory | StoredTerms,
        loaded: _Loaded,
        options: LexicalOptions,
        diagnostics: tuple[Diagnostic, ...],
    ) -> None:
        self.rows = rows
        self.diagnostics = diagnostics
        self._source = source
        self._loaded = loaded
        self._options = options

    def rows_with(self, term: str) -> Int32:
        """Return the ascending indices of all rows that hold a term (see ``text.terms``)."""
        return self._source.of(term).rows

    def _layout(self, mask: Mask | None) -> Layout:
        """Return the layout of the allowed rows; that of all rows and the last other are kept."""
        if mask is not None and mask.all():
            mask = None
        allowed = b"" if mask is None else blake2b(np.packbits(mask).tobytes()).digest()
        key = _LayoutKey(type(self._source), len(self.rows), allowed)
        kept = self._loaded.layouts.get(key)
        if kept is None:
            kept = Layout(self.rows, self._source.lengths, mask, self._options.bm25)
            self._loaded.layouts = {
                other: layout
                for other, layout in self._loaded.layouts.items()
                if other[:2] == key[:2] and bool(other.allowed) != bool(allowed)
            } | {key: kept}
        return kept

    def score(self, terms: Sequence[str], mask: Mask | None = None) -> LexicalScores:
        """Score every row for a query's terms; a repeated term counts once.

        ``mask`` says which rows are allowed (``None``: all). Rows outside it score 0 and leave
        no trace in the scores of the others.
        """
        layout = self._layout(mask)
        found = {term: layout.places(self._source.of(term)) for term in dict.fromkeys(terms)}
        diagnostics = list(self.diagnostics)
        if len(found) > self._options.max_query_terms:
            diagnostics.append(
                Diagnostic(
                    "query_terms_capped",
                    f"the query has {len(found)} different terms; the rarest "
                    f"{self._options.max_query_terms} count",
                    {"terms": len(found), "limit": self._options.max_query_terms},
                )
            )
            found = _rarest(found, self._options.max_query_terms)
        if isinstance(self._source, StoredTerms):
            matched = self._refine(self._source, layout, found)
            if matched > self._options.candidate_rows:
                diagnostics.append(
                    Diagnostic(
                        "candidate_cap_reached",
                        f"{matched} rows hold a term of the query; how often was counted for the "
                        f"best {self._options.candidate_rows}",
                        {"matched": matched, "limit": self._options.candidate_rows},
                    )
                )
        scorer = Scorer(layout)
        weights = {term: scorer.add(*place) for term, place in found.items()}
        scores = scorer.scores()
        return LexicalScores(
            scores.turn, scores.window, scores.session, scores.coverage, weights, tuple(diagnostics)
        )

    def _refine(
        self, stored: StoredTerms, layout: Layout, found: dict[str, tuple[Index, Int32]]
    ) -> int:
        """Count the terms in the best rows exactly; return how many rows hold any of them."""
        coverage = np.zeros(layout.count)
        for at, _ in found.values():
            coverage[at] += idf(layout.count, len(at))
        matched = np.flatnonzero(coverage)
        best = matched
        if len(matched) > self._options.candidate_rows:
            order = np.lexsort((-matched, -coverage[matched]))
            best = np.sort(matched[order[: self._options.candidate_rows]])
        texts = stored.terms_of(layout.sequence[best])
        for term, (at, counts) in found.items():
            exact = counts.copy()
            for place in np.intersect1d(at, best, assume_unique=True):
                times = texts[int(np.searchsorted(best, place))].count(term)
                exact[np.searchsorted(at, place)] = times
            found[term] = (at, exact)
        return len(matched)


def _rarest(found: dict[str, tuple[Index, Int32]], limit: int) -> dict[str, tuple[Index, Int32]]:
    """Return the terms in fewest rows, those in none last, in the order of the query."""
    ranked = sorted(found, key=lambda term: len(found[term][0]) or len(found) << 40)
    kept = set(ranked[:limit])
    return {term: place for term, place in found.items() if term in kept}


def _stale(pending: int) -> Diagnostic:
    return Diagnostic(
        "lexical_stale",
        f"{pending} evidence are not in the lexical index yet and were analysed for this call; "
        "the next write or sync indexes them",
        {"rows": pending},
    )


class LexicalProjection:
    """The lexical index of one open ledger. Writes take a connection inside a write transaction."""

    def __init__(self, options: LexicalOptions | None = None) -> None:
        self._options = options or LexicalOptions()
        self._cache = NamespaceCache[_Loaded](self._options.cached_rows)

    def watermark(self, connection: apsw.Connection, namespace_id: int) -> int:
        """Return the row id up to which the namespace is indexed."""
        found: int | None = connection.execute(
            "SELECT row_id FROM watermarks WHERE namespace_id = ? AND projection = ?",
            (namespace_id, PROJECTION),
        ).get
        return namespace_id << POSITION_BITS if found is None else found

    def pending(self, connection: apsw.Connection, namespace_id: int) -> int:
        """Return how many rows of the namespace are not indexed yet."""
        count: int = connection.execute(
            "SELECT count(*) FROM evidence WHERE row_id > ? AND row_id < ?",
            (self.watermark(connection, namespace_id), (namespace_id + 1) << POSITION_BITS),
        ).get
        return count

    def add(self, connection: apsw.Connection, namespace_id: int, rows: Sequence[Text]) -> int:
        """Index new evidence, given as (row id, text); return how many rows were indexed.

        Rows that are indexed already are skipped, and rows before these that are not indexed
        yet, such as those of a write that was interrupted, are indexed as well.
        """
        mark = self._begin(connection, namespace_id)
        fresh = sorted(row for row in rows if row[0] > mark)
        if not fresh:
            return 0
        if len(fresh) == fresh[-1][0] - mark:
            self._index(connection, namespace_id, fresh)
            return len(fresh)
        return self._sync(connection, namespace_id, mark)

    def sync(self, connection: apsw.Connection, namespace_id: int) -> int:
        """Index everything that is not indexed yet; return how many rows that were."""
        return self._sync(connection, namespace_id, self._begin(connection, namespace_id))

    def _begin(self, connection: apsw.Connection, namespace_id: int) -> int:
        """Return the watermark; what another text analysis had indexed is cleared first."""
        mark = self.watermark(connection, namespace_id)
        if mark == namespace_id << POSITION_BITS:
            self.clear(connection, namespace_id)
        return mark

    def _sync(self, connection: apsw.Connection, namespace_id: int, mark: int) -> int:
        indexed = 0
        last = ((namespace_id + 1) << POSITION_BITS) - 1
        for batch in contents(connection, mark + 1, last, _SYNC_BATCH):
            self._index(connection, namespace_id, batch)
            indexed += len(batch)
        return indexed

    def _index(self, connection: apsw.Connection, namespace_id: int, rows: Sequence[Text]) -> None:
        token = f"n{namespace_id}"
        connection.executemany(
            "INSERT INTO lexical (rowid, namespace, terms) VALUES (?, ?, ?)",
            [(row_id, token, analysed(text)) for row_id, text in rows],
        )
        connection.execute(
            "INSERT INTO watermarks (namespace_id, projection, row_id) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET row_id = excluded.row_id",
            (namespace_id, PROJECTION, rows[-1][0]),
        )

    def remove(self, connection: apsw.Connection, row_ids: Sequence[int]) -> None:
        """Take rows out of the index, in the transaction that purges their evidence.

        The purge must raise the namespace's generation, so that resident terms go as well.
        """
        connection.executemany(
            "DELETE FROM lexical WHERE rowid = ?", [(row_id,) for row_id in row_ids]
        )

    def clear(self, connection: apsw.Connection, namespace_id: int) -> None:
        """Take the whole namespace out of the index, as when nothing had been indexed yet."""
        connection.execute(
            "DELETE FROM lexical WHERE rowid > ? AND rowid < ?",
            (namespace_id << POSITION_BITS, (namespace_id + 1) << POSITION_BITS),
        )
        connection.execute(
            "DELETE FROM watermarks WHERE namespace_id = ? AND projection GLOB 'lexical/*'",
            (namespace_id,),
        )

    def view(self, connection: apsw.Connection, rows: NamespaceRows) -> LexicalView:
        """Return the namespace's terms for exactly these rows, loading what is missing.

        ``rows`` must come from the same transaction.
        """
        namespace_id = rows.namespace_id
        mark = self.watermark(connection, namespace_id)
        indexed = int(np.searchsorted(rows.row_ids, mark, side="right"))
        pending = len(rows) - indexed
        diagnostics = (_stale(pending),) if pending else ()
        loaded = self._cache.get(
            connection, namespace_id, rows.generation, lambda: _Loaded(rows.generation)
        )
        source: _Memory | StoredTerms
        if pending <= self._options.resident_rows < len(rows):
            loaded.postings = Postings()
            source = StoredTerms(connection, rows, indexed, mark)
        else:
            with loaded.lock:
                postings = loaded.postings
                postings.append(terms_from(connection, rows, len(postings), mark))
            source = _Memory(postings, len(rows))
        self._cache.trim(namespace_id)
        return LexicalView(rows, source, loaded, self._options, diagnostics)

    def resident(self) -> int:
        """Return how many rows have their terms in memory."""
        return self._cache.rows()

    def close(self) -> None:
        """Forget everything that is in memory."""
        self._cache.clear()
