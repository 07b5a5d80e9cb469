r"""The text of a pack: how stored words are shown without ever becoming structure.

A pack is a list of lines. ``<memory>`` comes first and ``</memory>`` last; in between, sessions
in chronological order, each under a header ``## 8 May 2023``, hold items ``[E1] Name: text``.
Stored text is shown exactly, apart from these escapes:

==============================================  ==============================================
in the evidence                                 in the pack
==============================================  ==============================================
line breaks (``\n \r \r\n \v \f``, U+0085,      a line feed and two spaces, so that nothing
U+2028, U+2029)                                 stored begins a line
``<memory>``, ``</memory>`` in any case, with   a backslash after the angle bracket:
spaces or invisible characters inside           ``<\memory>``
``[E3]`` and ``[superseded`` in any case, and   a backslash before the bracket: ``\[E3]``
``[... = 2026`` where a pack shows times
control characters, bidirectional embeddings,   their escape: ``\x1b``, ``\u202e``
overrides and isolates, Unicode tags other
than those of flags, lone surrogates
==============================================  ==============================================

What is left out of an item is marked with `` … ``. What follows the text in brackets is the
pack's own: the times that it names, such as `` [last Saturday = 2026-03-07]``, and what replaced
it.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from evicortex.policy.candidates import chronological, effective_time
from evicortex.types import Claim, Evidence, Polarity, Span, TimeMention

OPENING: Final = "<memory>"
CLOSING: Final = "</memory>"
CUT: Final = " … "
NAME_CHARACTERS: Final = 60
"""Longer names of actors, sessions, predicates and objects are shortened in the pack."""

DELIMITER_ESCAPED: Final = "delimiter_escaped"
CITATION_ESCAPED: Final = "citation_escaped"
CONTROL_ESCAPED: Final = "control_escaped"

_INVISIBLE = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff"
_MEMORY = f"[{_INVISIBLE}]*".join("memory")
_ESCAPES = re.compile(
    rf"(?P<line>\r\n|[\n\r\v\f\x85\u2028\u2029])"
    rf"|(?P<delimiter>[<\uff1c\ufe64])(?=[\s{_INVISIBLE}]*(?:/[\s{_INVISIBLE}]*)?{_MEMORY}(?!\w))"
    rf"|(?P<citation>\[)(?=[\s{_INVISIBLE}]*(?:E[\s{_INVISIBLE}]*\d+[\s{_INVISIBLE}]*\]|superseded\b))"
    r"|(?P<flag>\U0001f3f4[\U000e0020-\U000e007e]{1,6}\U000e007f)"
    r"|(?P<control>[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    r"\U000e0000-\U000e007f])",
    re.IGNORECASE,
)
_SUSPICIOUS = re.compile(
    "[\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f<\uff1c\ufe64\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    f"\U000e0000-\U000e007f]|\\[[\\s{_INVISIBLE}]*[es]",
    re.IGNORECASE,
)
_TIME_MARK = re.compile(
    rf"\[(?![\s{_INVISIBLE}]*superseded\b)(?=[^\[\]]*[=\uff1d][\s{_INVISIBLE}]*\d{{4}})",
    re.IGNORECASE,
)
_CODES = {
    "delimiter": DELIMITER_ESCAPED,
    "citation": CITATION_ESCAPED,
    "control": CONTROL_ESCAPED,
}
_NO_CODES: Final[frozenset[str]] = frozenset()


class Escaped(NamedTuple):
    """Text that is safe to show, and the codes of the escapes that were needed."""

    text: str
    codes: frozenset[str]


def escaped(text: str, *, times: bool = False) -> Escaped:
    """Return ``text`` with the escapes of this module's table; ``times``: the pack shows times."""
    if times and "[" in text:
        unforged, count = _TIME_MARK.subn(r"\\[", text)
        if count:
            rest = escaped(unforged)
            return Escaped(rest.text, rest.codes | {CITATION_ESCAPED})
    if not _SUSPICIOUS.search(text):
        return Escaped(text, _NO_CODES)
    codes = set()

    def replacement(match: re.Match[str]) -> str:
        kind = match.lastgroup or ""
        if kind in _CODES:
            codes.add(_CODES[kind])
        if kind == "line":
            return "\n  "
        if kind == "delimiter":
            return match[0] + "\\"
        if kind == "citation":
            return "\\" + match[0]
        return match[0] if kind == "flag" else _escape_sequence(match[0])

    return Escaped(_ESCAPES.sub(replacement, text), frozenset(codes))


def _escape_sequence(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escaped_name(name: str) -> Escaped:
    """Return a name as it is shown: one line, bounded, with the escapes of stored text."""
    line = " ".join(name.split())
    if len(line) > NAME_CHARACTERS:
        line = line[: NAME_CHARACTERS - 1] + "…"
    return escaped(line)


_COLON_AT_END_OF_WORD = re.compile(r":(?=\s|\Z)")


def speaker(evidence: Evidence) -> Escaped:
    """Return who is shown as speaking: the actor, or else the role, or else "unknown".

    A colon that could end a name early is escaped with a backslash.
    """
    for name in (evidence.actor, evidence.role):
        if name and name.strip():
            shown = escaped_name(name)
            return Escaped(_COLON_AT_END_OF_WORD.sub(r"\\:", shown.text), shown.codes)
    return Escaped("unknown", _NO_CODES)


def merged_spans(content: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return ``spans`` in order of the text, joined where only white space lies between them.

    White space before the first and after the last one belongs to them when it is all that is
    missing. The whole text comes back as the one span ``(0, len(content))``.
    """
    if len(spans) == 1 and spans[0] == (0, len(content)):
        return tuple(spans)
    ordered = sorted(spans)
    merged = [ordered[0]]
    for span in ordered[1:]:
        last = merged[-1]
        if span.start <= last.end or content[last.end : span.start].isspace():
            merged[-1] = Span(last.start, max(last.end, span.end))
        else:
            merged.append(span)
    if not content[: merged[0].start].strip():
        merged[0] = Span(0, merged[0].end)
    if not content[merged[-1].end :].strip():
        merged[-1] = Span(merged[-1].start, len(content))
    return tuple(merged)


def shown_text(content: str, spans: tuple[Span, ...], *, times: bool = False) -> Escaped:
    """Return the ranges ``spans`` of ``content`` as the pack shows them, with marks of cuts.

    ``spans`` are in order and apart, as ``merged_spans`` returns them. ``times``: the pack shows
    times, so that no stored text may look like its marks of them.
    """
    if spans == ((0, len(content)),):
        return escaped(content, times=times)
    pieces = [escaped(content[span.start : span.end], times=times) for span in spans]
    text = CUT.join(piece.text for piece in pieces)
    if spans[0].start > 0:
        text = CUT.lstrip() + text
    if spans[-1].end < len(content):
        text += CUT.rstrip()
    return Escaped(text, frozenset().union(*(piece.codes for piece in pieces)))


def citation(number: int) -> str:
    """Return the name by which an item is cited, such as ``E3``."""
    return f"E{number}"


def label(number: int) -> str:
    """Return the beginning of an item's line, such as ``[E3]``."""
    return f"[{citation(number)}]"


_SHOWN_REPLACEMENTS: Final = 3


def superseded_mark(replaced_by: Sequence[tuple[str | None, Claim]]) -> Escaped:
    """Return the mark of a superseded item.

    ``replaced_by`` holds the replacing claims, each with the citation of its evidence if the
    pack shows it.
    """
    parts = []
    codes = _NO_CODES
    for cited, claim in replaced_by[:_SHOWN_REPLACEMENTS]:
        predicate, value = escaped_name(claim.predicate), escaped_name(claim.object)
        equals = "=" if claim.polarity is Polarity.POSITIVE else "!="
        belief = f"{predicate.text} {equals} {value.text}"
        parts.append(f"{cited}: {belief}" if cited else belief)
        codes |= predicate.codes | value.codes
    return Escaped(f" [superseded by {'; '.join(parts)}]" if parts else " [superseded]", codes)


def times_within(times: Sequence[TimeMention], spans: Sequence[Span]) -> tuple[TimeMention, ...]:
    """Return those of ``times`` that lie wholly within one of ``spans``."""
    return tuple(
        time
        for time in times
        if any(start <= time.span.start and time.span.end <= end for start, end in spans)
    )


def interval_label(start: datetime, end: datetime) -> str:
    """Return a half-open interval of UTC moments as the calendar units that it covers.

    ``2025`` for a year, ``2025-05`` for a month, ``2026-03-07`` for a day, and the first and the
    last of several: ``2026-03-02..2026-03-08``.
    """
    first, last = start.date(), (end - timedelta.resolution).date()
    month_end = last.day == monthrange(last.year, last.month)[1]
    shown = [first.isoformat(), last.isoformat()]
    if (first.month, first.day, last.month) == (1, 1, 12) and month_end:
        shown = [day[:4] for day in shown]
    elif first.day == 1 and month_end:
        shown = [day[:7] for day in shown]
    return "..".join(dict.fromkeys(shown))


def times_mark(times: Sequence[TimeMention]) -> Escaped:
    """Return the mark of an item that names ``times``: each with what it means, said once.

    A date that already reads as the mark would is not repeated.
    """
    codes = _NO_CODES
    parts: dict[str, None] = {}
    for time in times:
        label, name = interval_label(time.start, time.end), escaped_name(time.text)
        if name.text != label:
            parts[f"{name.text} = {label}"] = None
            codes |= name.codes
    return Escaped(f" [{'; '.join(parts)}]" if parts else "", codes)


@dataclass(frozen=True, slots=True)
class Line:
    """One item before it is numbered: what it shows of its evidence, by whom, with what times."""

    evidence: Evidence
    speaker: str
    text: str
    times: str = ""

    def body(self, mark: str = "") -> str:
        """Return the item's line after its label, with its line feed."""
        return f" {self.speaker}: {self.text}{self.times}{mark}\n"


def day_of(evidence: Evidence) -> date | None:
    """Return the calendar day (UTC) on which it was said, or ``None`` when that is unknown."""
    return None if evidence.occurred_at is None else effective_time(evidence).date()


_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def header(day: date | None, session: str | None) -> Escaped:
    """Return the header of a session, with its line feed; ``session`` only if it is to show."""
    shown = "undated" if day is None else f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
    name = escaped_name(session or "")
    if not name.text:
        return Escaped(f"## {shown}\n", _NO_CODES)
    return Escaped(f"## {shown} · session {name.text}\n", name.codes)


@dataclass(frozen=True, slots=True)
class Section:
    """The lines of one session on one day, in chronological order, and their header."""

    header: Escaped
    lines: tuple[Line, ...]


def sections(lines: Iterable[Line]) -> tuple[Section, ...]:
    """Group ``lines`` by session and day, everything in chronological order.

    The session is named in a header only when another session of the pack shares its day.
    """
    groups: dict[tuple[str | None, date | None], list[Line]] = {}
    sessions: dict[date | None, set[str | None]] = {}
    for line in sorted(lines, key=lambda line: chronological(line.evidence)):
        day = day_of(line.evidence)
        groups.setdefault((line.evidence.session, day), []).append(line)
        sessions.setdefault(day, set()).add(line.evidence.session)
    return tuple(
        Section(header(day, session if len(sessions[day]) > 1 else None), tuple(group))
        for (session, day), group in groups.items()
    )
