"""What one recall may see: a snapshot, the rows that pass the filters, and who is who."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from evicortex.errors import InputError
from evicortex.ledger import NamespaceRow, Transaction
from evicortex.ledger.names import actor_names, session_ids
from evicortex.pipeline.drafts import check_flag, check_text
from evicortex.pipeline.people import people
from evicortex.pipeline.wiring import People, Rooms
from evicortex.policy.query import QueryAnalysis
from evicortex.projections.lexical import LexicalView
from evicortex.projections.resident import NamespaceRows, RowFilter
from evicortex.text import content_terms, terms
from evicortex.text.times.mentions import Interval
from evicortex.types import POSITION_BITS, TimeInput
from evicortex.validity import from_micros, to_micros, to_utc

_NAME_INSIDE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Question:
    """A recall's arguments, checked. ``now`` is ``as_of``, else the clock's."""

    namespace: str
    text: str
    query_actor: str | None
    as_of: datetime | None
    known_at: datetime | None
    now: datetime
    sessions: tuple[str, ...] | None
    actors: tuple[str, ...] | None
    include_superseded: bool
    show_times: bool = False


def _names(values: Sequence[str] | None, name: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    if isinstance(values, str):
        raise InputError(f"{name} is a sequence of names, not one text; write [{values!r}]")
    if not isinstance(values, Iterable):
        raise InputError(f"{name} is a sequence of names, not {type(values).__name__}")
    return tuple(check_text(value, name) for value in values)


def check_question(
    rooms: Rooms,
    namespace: str,
    query: str,
    *,
    query_actor: str | None,
    as_of: TimeInput | None,
    known_at: TimeInput | None,
    sessions: Sequence[str] | None,
    actors: Sequence[str] | None,
    include_superseded: bool,
    show_times: bool = False,
) -> Question:
    """Check a recall's arguments.

    Any text is a query, lone surrogates included: nothing of it is stored.

    Raises:
        InputError: an argument that cannot be used (a subclass says which).
    """
    if not isinstance(query, str):
        raise InputError(f"a query must be text, not {type(query).__name__}")
    asked = to_utc(as_of, "as_of")
    return Question(
        namespace,
        query.encode("utf-8", "replace").decode("utf-8"),
        None if query_actor is None else check_text(query_actor, "query_actor"),
        asked,
        to_utc(known_at, "known_at"),
        asked or rooms.clock.now(),
        _names(sessions, "sessions"),
        _names(actors, "actors"),
        check_flag(include_superseded, "include_superseded"),
        check_flag(show_times, "show_times"),
    )


@dataclass(frozen=True, slots=True)
class Sight:
    """A namespace as one snapshot shows it. ``mask`` ``None`` allows every row."""

    tx: Transaction
    ns: NamespaceRow
    rows: NamespaceRows
    mask: Mask | None
    lexical: LexicalView
    people: People

    @property
    def count(self) -> int:
        """How many rows are allowed."""
        return len(self.rows) if self.mask is None else int(self.mask.sum())

    def shows_any(self, row_ids: Sequence[int]) -> bool:
        """Return whether any of these rows may be seen."""
        found = self.rows.index(row_ids)
        found = found[found >= 0]
        return bool(len(found)) and (self.mask is None or bool(self.mask[found].any()))

    def row_id(self, position: int) -> int:
        """Return the row id of a position of this namespace."""
        return self.ns.namespace_id << POSITION_BITS | position

    def positions(self, rows: Iterable[int]) -> list[int]:
        """Return the positions of row indices; -1, which is no row, is left out."""
        base = self.ns.namespace_id << POSITION_BITS
        return [int(self.rows.row_ids[row]) - base for row in rows if row >= 0]

    def intervals(self, analysis: QueryAnalysis) -> tuple[Interval, ...]:
        """Return what the query's times can mean within the allowed rows' years."""
        if not analysis.times:
            return ()
        moments = self.rows.effective_us if self.mask is None else self.rows.effective_us[self.mask]
        if len(moments) == 0:
            return ()
        first, last = from_micros(int(moments.min())), from_micros(int(moments.max()))
        return analysis.intervals(first, last)

    def unknown_names(self, analysis: QueryAnalysis) -> tuple[str, ...]:
        """Return capitalised words inside the query's sentences that no allowed text holds."""
        known = {word.casefold() for mention in analysis.mentions for word in mention.text.split()}
        inside = dict.fromkeys(
            match[0]
            for match in _NAME_INSIDE.finditer(analysis.query)
            if analysis.times == () and content_terms(match[0])
        )
        return tuple(
            name for name in inside if name.casefold() not in known and not self._holds(name)
        )

    def _holds(self, word: str) -> bool:
        rows = [self.lexical.rows_with(term) for term in terms(word)]
        if self.mask is not None:
            rows = [found[self.mask[found]] for found in rows]
        return not rows or any(len(found) for found in rows)

    def is_rare(self, word: str) -> bool:
        """Return whether a folded word stands in one allowed text at most."""
        found = terms(word)
        if not found:
            return True
        rows = self.lexical.rows_with(found[0])
        return (len(rows) if self.mask is None else int(self.mask[rows].sum())) <= 1


def look(rooms: Rooms, tx: Transaction, ns: NamespaceRow, question: Question) -> Sight:
    """Return what the question may see of a namespace."""
    rows = rooms.resident.get(tx.connection, ns.namespace_id)
    names = actor_names(tx, ns)
    mask = RowFilter(
        sessions=None if question.sessions is None else session_ids(tx, ns, question.sessions),
        actors=_ids(names, question.actors),
        as_of=None if question.as_of is None else to_micros(question.as_of),
        known_at=None if question.known_at is None else to_micros(question.known_at),
    ).mask(rows)
    view = rooms.lexical.view(tx.connection, rows)
    return Sight(tx, ns, rows, mask, view, people(rooms, tx, names, rows, view, mask))


def _ids(names: dict[int, str], wanted: tuple[str, ...] | None) -> list[int] | None:
    if wanted is None:
        return None
    chosen = set(wanted)
    return [number for number, name in names.items() if name in chosen]
