"""Streams the records of a JSON file too large to hold: one record is in memory at a time.

Accepts an array of objects, one object, or objects one after the other. Whatever stands in the
place of an object is reported by its number, and reading goes on.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers.records import BadRecord, kind_of

_CHUNK_BYTES = 1 << 16
_STRING_BODY = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRUCTURE = re.compile(r'[^"{}\[\]]*+')
_BETWEEN = re.compile(r"[\s,]*+")
_SCALAR = re.compile(r'[^\s,:"{}\[\]]*+')
_OPENING = {"{": 1, "[": 1, '"': 0}


def parse_json(text: str | bytes) -> Any:
    """Parse strict JSON: ``NaN`` and ``Infinity`` raise ``ValueError`` like any syntax error."""
    return json.loads(text, parse_constant=_refuse_constant)


def json_records(file: BinaryIO) -> Iterator[tuple[int, dict[str, Any] | BadRecord]]:
    """Yield (number from 1, record) for every top-level value of ``file``.

    What is no object, or has a syntax error, is a ``BadRecord`` and the next one is read. Where
    the file stops being JSON, one last ``BadRecord`` says so and where. Raises
    ``ImportFormatError`` when that is so before the first record.
    """
    number = 0
    try:
        for number, text in enumerate(_record_texts(file), start=1):
            yield number, _parse_record(text)
    except ImportFormatError as error:
        if number == 0:
            raise
        yield number + 1, BadRecord(f"{error}; nothing after it was read")


def _parse_record(text: str | None) -> dict[str, Any] | BadRecord:
    if text is None:
        return BadRecord("the file ends inside this record")
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        return BadRecord(f"not valid JSON: {error}")
    if isinstance(value, dict):
        return value
    return BadRecord(f"expected an object, found {kind_of(value)}")


def _record_texts(file: BinaryIO) -> Iterator[str | None]:
    """Yield the text of each record; ``None`` for a last one that is cut off."""
    scanner = _Scanner()
    for chunk in _decoded(file):
        yield from scanner.feed(chunk)
    if scanner.inside_record:
        yield None
        return
    yield from scanner.rest()
    if not scanner.begun:
        raise ImportFormatError("the file is empty: expected a JSON array of conversations")
    if scanner.inside_array:
        raise ImportFormatError("the file ends before its JSON array does: it is cut off")


def _decoded(file: BinaryIO) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    read = 0
    final = False
    while not final:
        chunk = file.read(_CHUNK_BYTES)
        final = not chunk
        held = len(decoder.getstate()[0])
        try:
            yield decoder.decode(chunk, final=final)
        except UnicodeDecodeError as error:
            yield error.object[: error.start].decode("utf-8-sig" if read == 0 else "utf-8")
            raise ImportFormatError(
                f"the file is not UTF-8 text ({error.reason} at byte {read - held + error.start}); "
                "a ZIP archive must be unpacked first"
            ) from error
        read += len(chunk)


class _Scanner:
    """Finds where records begin and end, whatever the chunk borders cut through."""

    def __init__(self) -> None:
        self._rest = ""
        self._before = 0
        self._depth = 0
        self._in_string = False
        self._in_scalar = False
        self._pieces: list[str] = []
        self.begun = False
        self.inside_array = False
        self._array_closed = False

    @property
    def inside_record(self) -> bool:
        """Whether an object, a list or a string is open."""
        return self._depth > 0 or self._in_string

    def feed(self, chunk: str) -> Iterator[str]:
        """Yield the records that ``chunk`` completes."""
        text, self._rest = self._rest + chunk, ""
        position = 0
        while position < len(text):
            if self.inside_record:
                position, complete = self._within(text, position)
            elif self._in_scalar:
                position, complete = self._scalar(text, position)
            else:
                position, complete = self._between(text, position), False
            if complete:
                yield from self.rest()
        self._before += len(text) - len(self._rest)

    def rest(self) -> Iterator[str]:
        """Yield the record whose text was gathered, if there is one."""
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            yield text

    def _between(self, text: str, position: int) -> int:
        """Skip to the next record and into it; return where its next character stands."""
        position = _require_match(_BETWEEN, text, position)
        if position == len(text):
            return position
        character = text[position]
        if character == "[" and not self.begun:
            self.begun = self.inside_array = True
        elif character == "]" and self.inside_array:
            self.inside_array, self._array_closed = False, True
        elif self._array_closed or character in "]}:" or not (self.begun or character == "{"):
            self._refuse(text, position)
        elif character in _OPENING:
            self.begun = True
            self._depth = _OPENING[character]
            self._in_string = character == '"'
            self._pieces.append(character)
        else:
            self._in_scalar = True
            return position
        return position + 1

    def _scalar(self, text: str, start: int) -> tuple[int, bool]:
        """Advance to the end of a number, a name or a stray word, or of ``text``."""
        position = _require_match(_SCALAR, text, start)
        self._pieces.append(text[start:position])
        self._in_scalar = position == len(text)
        return position, not self._in_scalar

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
            if not self.inside_record:
                self._pieces.append(text[start:position])
                return position, True
        self._pieces.append(text[start:position])
        return position, False

    def _refuse(self, text: str, position: int) -> NoReturn:
        found = text[position : position + 20]
        hint = " (a ZIP archive: unpack it first)" if found.startswith("PK") else ""
        raise ImportFormatError(
            f"expected a JSON array of objects, found {found!r} at character "
            f"{self._before + position + 1}{hint}"
        )


def _require_match(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None  # every pattern here also matches the empty string
    return match.end()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
