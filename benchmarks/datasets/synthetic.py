"""The canonical grammar of the synthetic stream, and what is true at any time.

A turn may hold one statement, between sentences of chat that the grammar does not match::

    statement := opening SUBJECT "'s " PREDICATE verb VALUE [" since " DATE] [" until " DATE] "."
    opening   := "For the record, " | "Correction: "
    verb      := " is " | " is not "
    SUBJECT   := letters, one word or several
    PREDICATE := one of PREDICATES, with spaces for underscores
    VALUE     := letters, digits, hyphens and single spaces, without " since " or " until "
    DATE      := YYYY-MM-DD, midnight UTC

It reads as a claim ``(SUBJECT, PREDICATE, VALUE)`` whose span is the value; ``is not`` is
negative; ``since`` is ``valid_from`` (else the turn's time), ``until`` is ``valid_to``,
exclusive. A correction names the ``since`` of what it corrects: same start, recorded later, so it
replaces it. Nothing else in a turn is a claim.

The grammar is explicit on purpose: it measures what structure is worth when it is known exactly,
not whether natural language is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from evicortex import ClaimDraft

PREDICATES: dict[str, Literal["single", "multi"]] = {
    "city": "single",
    "employer": "single",
    "car": "single",
    "dentist": "single",
    "phone_number": "single",
    "hobby": "multi",
    "allergy": "multi",
    "language": "multi",
}

_DATE = r"\d{4}-\d{2}-\d{2}"
STATEMENT = re.compile(
    r"(?P<opening>For the record, |Correction: )"
    r"(?P<subject>[A-Za-z]+(?: [A-Za-z]+)*)'s "
    rf"(?P<predicate>{'|'.join(name.replace('_', ' ') for name in PREDICATES)})"
    r" is (?P<negation>not )?"
    r"(?P<value>[A-Za-z0-9-]+(?: (?!since |until )[A-Za-z0-9-]+)*)"
    rf"(?: since (?P<since>{_DATE}))?(?: until (?P<until>{_DATE}))?\."
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as it was said. Times are aware UTC; ``until`` is exclusive."""

    subject: str
    predicate: str
    value: str
    since: datetime | None = None
    until: datetime | None = None
    negative: bool = False
    correction: bool = False

    def render(self) -> str:
        """Return the statement in the canonical grammar."""
        opening = "Correction: " if self.correction else "For the record, "
        verb = "is not" if self.negative else "is"
        since = f" since {self.since:%Y-%m-%d}" if self.since else ""
        until = f" until {self.until:%Y-%m-%d}" if self.until else ""
        predicate = self.predicate.replace("_", " ")
        return f"{opening}{self.subject}'s {predicate} {verb} {self.value}{since}{until}."


@dataclass(frozen=True, slots=True)
class Said:
    """A statement with the turn that says it; ``order`` is the order of recording."""

    turn_id: str
    order: int
    at: datetime
    statement: Statement

    @property
    def valid_from(self) -> datetime:
        """When it begins to hold."""
        return self.statement.since or self.at

    def covers(self, at: datetime) -> bool:
        """Whether it speaks about that time."""
        until = self.statement.until
        return self.valid_from <= at and (until is None or at < until)


def _midnight(text: str | None) -> datetime | None:
    return None if text is None else datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)


def parse(text: str) -> list[tuple[Statement, tuple[int, int]]]:
    """Return every statement of a turn with the span of its value, in order."""
    return [
        (
            Statement(
                subject=match["subject"],
                predicate=match["predicate"].replace(" ", "_"),
                value=match["value"],
                since=_midnight(match["since"]),
                until=_midnight(match["until"]),
                negative=bool(match["negation"]),
                correction=match["opening"].startswith("Correction"),
            ),
            match.span("value"),
        )
        for match in STATEMENT.finditer(text)
    ]


def drafts(text: str) -> tuple[ClaimDraft, ...]:
    """Return the declared claims of a turn: what a perfect reader of the grammar would extract."""
    return tuple(
        ClaimDraft(
            subject=statement.subject,
            predicate=statement.predicate,
            object=statement.value,
            span=span,
            polarity="negative" if statement.negative else "positive",
            valid_from=statement.since,
            valid_to=statement.until,
            cardinality=PREDICATES[statement.predicate],
        )
        for statement, span in parse(text)
    )


def held(
    said: Iterable[Said], subject: str, predicate: str, at: datetime, *, value: str | None = None
) -> Said | None:
    """Return the statement in force at a time among those given, or None when none covers it.

    For a predicate with one value that is the last to begin, and of those that begin together
    the last recorded. For one with several, ask with ``value``: the statement may be negative.
    """
    found = [
        each
        for each in said
        if (each.statement.subject, each.statement.predicate) == (subject, predicate)
        and (value is None or each.statement.value == value)
        and each.covers(at)
    ]
    return max(found, key=lambda each: (each.valid_from, each.order), default=None)


def visible(said: Iterable[Said], as_of: datetime) -> list[Said]:
    """Return what had been said by then."""
    return [each for each in said if each.at <= as_of]
