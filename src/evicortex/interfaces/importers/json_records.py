"""Streams the records of a JSON file too large to hold: one record is in memory at a time.

Accepts an array of objects, one object, or objects one after the other.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers.records import BadRecord

_CHUNK_BYTES = 1 << 16
_STRING_BODY = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRUCTURE = re.compile(r'[^"{}\[\]]*+')
_BETWEEN = re.compile(r"[\s,]*+")


def parse_json(text: str | bytes) -> Any:
    """Parse strict JSON: ``NaN`` and ``Infinity`` raise ``ValueError`` like any syntax error."""
    return json.loads(text, parse_constant=_refuse_constant)


def json_records(file: BinaryIO) -> Iterator[tuple[int, dict[str, Any] | BadRecord]]:
    """Yield (number from 1, record) for every top-level object of ``file``.

    A record with a syntax error is a ``BadRecord``. Raises ``ImportFormatError`` when the file
    as a whole is something else.
    """
    for number, text in enumerate(_record_texts(file), start=1):
        yield number, _parse_record(text)


def _parse_record(text: str | None) -> dict[str, Any] | BadRecord:
    if text is None:
        return BadRecord("the file ends inside this record")
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        return BadRecord(f"not valid JSON: {error}")
    return value if isinstance(value, dict) else BadRecord("expected an object, found a list")


def _record_texts(file: BinaryIO) -> Iterator[str | None]:
    """Yield the text of each record; ``None`` for a last one that is cut off."""
    scanner = _Scanner()
    for chunk in _decoded(file):
        yield from scanner.feed(chunk)
    if scanner.inside_record:
        yield None
    elif not scanner.begun:
        raise ImportFormatError("the file is empty: expected a JSON array of conversations")
    elif scanner.inside_array:
        raise ImportFormatError("the file ends before its JSON array does: it is cut off")


def _decoded(file: BinaryIO) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        while chunk := file.read(_CHUNK_BYTES):
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise ImportFormatError(
            f"the file is not UTF-8 text ({error.reason}); a ZIP archive must be unpacked first"
        ) from error


class _Scanner:
    """Finds where records begin and end, whatever the chunk borders cut through."""

    def __init__(self) -> None:
        self._rest = ""
        self._depth = 0
        self._in_string = False
        self._pieces: list[str] = []
        self.begun = False
        self.inside_array = False
        self._array_closed = False

    @property
    def inside_record(self) -> bool:
        return self._depth > 0

    def feed(self, chunk: str) -> Iterator[str]:
        """Yield the records that ``chunk`` completes."""
        text, self._rest = self._rest + chunk, ""
        position = 0
        while position < len(text):
            if self._depth == 0:
                position = self._between(text, position)
            else:
                position, complete = self._within(text, position)
                if complete:
                    yield "".join(self._pieces)
                    self._pieces.clear()

    def _between(self, text: str, position: int) -> int:
        """Skip to the next record; return the position of its first character."""
        position = _require_match(_BETWEEN, text, position)
        if position == len(text):
            return position
        character = text[position]
        if character == "{" and not self._array_closed:
            self.begun = True
            self._depth = 1
            self._pieces.append(character)
        elif character == "[" and not self.begun:
            self.begun = self.inside_array = True
        elif character == "]" and self.inside_array:
            self.inside_array, self._array_closed = False, True
        else:
            _refuse_text(text[position : position + 20])
        return position + 1

    def _within(self, text: str, start: int) -> tuple[int, bool]:
        """Advance to the end of the record or of ``text``; tell whether it is complete."""
        position = start
        while position < len(text):
            pattern = _STRING_BODY if self._in_string else _STRUCTURE
            position = _require_match(pattern, text, position)
            if position == len(text):
                break
            character = text[position]
            if character == "\\":  # an escape cut in two by the chunk border
                self._rest = text[position:]
                self._pieces.append(text[start:position])
                return len(text), False
            position += 1
            if character == '"':
                self._in_string = not self._in_string
            else:
                self._depth += 1 if character in "{[" else -1
                if self._depth == 0:
                    self._pieces.append(text[start:position])
                    return position, True
        self._pieces.append(text[start:position])
        return position, False


def _require_match(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None  # every pattern here also matches the empty string
    return match.end()


def _refuse_text(found: str) -> NoReturn:
    hint = " (a ZIP archive: unpack it first)" if found.startswith("PK") else ""
    raise ImportFormatError(f"expected a JSON array of objects, found {found!r}{hint}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
