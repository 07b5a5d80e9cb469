"""When a statement holds: the times that a sentence names, as bounds of validity."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from evicortex.providers.rules.framing import Sentence
from evicortex.providers.rules.lexicon import either
from evicortex.text.times.mentions import FoundTime, find_times
from evicortex.text.times.words import WEEKDAYS
from evicortex.types import Diagnostic

When = Literal["state", "change", "event", "never"]
"""What a time in the sentence does: ``state`` takes "since" and "until" alone, ``change`` begins
at the time, ``event`` lasts as long as it, ``never`` is untouched by it."""

REACH = 48
"""How many characters may lie between a statement and the time that belongs to it."""

_SINCE = re.compile(r"\b(?:since|as of|starting|from)\s+(?:the\s+)?$", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till|through|ends? (?:on|in))\s+(?:the\s+)?$", re.IGNORECASE)
_WEEK = timedelta(days=7)
_WEEKDAY = re.compile("(?i:" + either(WEEKDAYS) + ")")
_DAY_OF_MONTH = re.compile(r"(?:[Tt]he\s)?[0-3]?[0-9](?:st|nd|rd|th)")
_FAR = datetime(2000, 1, 1, tzinfo=UTC)


class Bounds(NamedTuple):
    """Validity of a claim, and the times that it was read from."""

    valid_from: datetime | None
    valid_to: datetime | None
    used: tuple[FoundTime, ...]


_OPEN = Bounds(None, None, ())


class Times:
    """The times of one text, found when first asked for.

    Without a moment of speaking only times that are named in full can be placed; relative ones
    stay readable as spans.
    """

    def __init__(self, text: str, spoken_at: datetime | None) -> None:
        self._text = text
        self._spoken_at = spoken_at
        self._found: tuple[FoundTime, ...] | None = None

    @property
    def mentions(self) -> tuple[FoundTime, ...]:
        """All times that the text names, in order."""
        if self._found is None:
            self._found = find_times(self._text, self._spoken_at or _FAR)
        return self._found

    def at(self, position: int) -> FoundTime | None:
        """Return the time that is named at ``position``, before which "the" may stand."""
        begins = (
            (position, position + 4)
            if self._text[position : position + 4].lower() == "the "
            else (position,)
        )
        for mention in self.mentions:
            if mention.span.start in begins:
                return mention
        return None

    def within(self, start: int, end: int) -> list[FoundTime]:
        """Return the times named in a part of the text."""
        return [m for m in self.mentions if start <= m.span.start and m.span.end <= end]

    def placed(self, mention: FoundTime) -> bool:
        """Whether its interval is known."""
        return self._spoken_at is not None or not (mention.relative or mention.open_year)

    def upcoming(self, mention: FoundTime) -> FoundTime | None:
        """Return the first such time that is not over yet, for what is still to come."""
        now = self._spoken_at
        if now is None:
            return mention if self.placed(mention) else None
        if mention.end > now:
            return mention
        if mention.open_year:
            for interval in mention.candidates(now, now + timedelta(days=400)):
                if interval.end > now:
                    return replace(mention, start=interval.start, end=interval.end)
        if _WEEKDAY.fullmatch(mention.text):
            return replace(mention, start=mention.start + _WEEK, end=mention.end + _WEEK)
        if _DAY_OF_MONTH.fullmatch(mention.text):
            return _a_month_on(mention)
        return None

    def bounds(self, when: When, sentence: Sentence, start: int, end: int) -> Bounds:
        """Return the validity of a statement at ``[start, end)`` of a sentence."""
        if when == "never":
            return _OPEN
        near = [m for m in self.within(sentence.start, sentence.end) if self.placed(m)]
        if not near:
            return _OPEN
        if when == "state":
            return self._state(near, end)
        mention = _nearest(near, start, end)
        if mention is None:
            return _OPEN
        ends = mention.end if when == "event" else None
        return Bounds(mention.start, ends, (mention,))

    def _state(self, near: list[FoundTime], end: int) -> Bounds:
        begins = ends = None
        used = []
        for mention in near:
            if not end <= mention.span.start <= end + REACH:
                continue
            before = self._text[max(end, mention.span.start - 12) : mention.span.start]
            if begins is None and _SINCE.search(before):
                begins = mention.start
                used.append(mention)
            elif ends is None and _UNTIL.search(before):
                ends = mention.start
                used.append(mention)
        return Bounds(begins, ends, tuple(used))


def _a_month_on(mention: FoundTime) -> FoundTime:
    """Return the same day of the next month, or of the one after it: one of the two has it."""
    number = mention.start.year * 12 + mention.start.month
    if mention.start.day > monthrange(number // 12, number % 12 + 1)[1]:
        number += 1
    start = mention.start.replace(year=number // 12, month=number % 12 + 1)
    return replace(mention, start=start, end=start + (mention.end - mention.start))


def _nearest(near: list[FoundTime], start: int, end: int) -> FoundTime | None:
    for mention in near:
        if end - 1 <= mention.span.start <= end + REACH or start <= mention.span.start < end:
            return mention
    for mention in reversed(near):
        if start - REACH <= mention.span.end <= start:
            return mention
    return None


def resolved(mention: FoundTime) -> Diagnostic:
    """Say how a time was read: span, interval, granularity."""
    return Diagnostic(
        "resolved_time",
        f"{mention.text!r} was read as [{mention.start:%Y-%m-%d}, {mention.end:%Y-%m-%d})",
        {
            "span": list(mention.span),
            "start": mention.start.isoformat(),
            "end": mention.end.isoformat(),
            "granularity": mention.granularity.value,
            "relative": mention.relative,
        },
    )
