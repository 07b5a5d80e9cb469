"""Reads the records of a JSON array one at a time, plain or gzipped, whatever its size.

Memory is bounded by the largest record: the file is cut where a top-level object ends, and only
that text is parsed. Standard JSON; ``NaN`` and ``Infinity`` are refused.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from benchmarks.datasets.base import DatasetError

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_MARK = re.compile(r'["{}\[\]]')
_STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_FIRST = re.compile(r"[\s,]*")


def open_json(path: Path) -> BinaryIO:
    """Open a ``.json`` or ``.json.gz`` file for reading its uncompressed bytes."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return cast("BinaryIO", gzip.open(path, "rb")) if packed else path.open("rb")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of the uncompressed file, read in pieces."""
    found = hashlib.sha256()
    with open_json(path) as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a top-level array in order.

    Raises:
        DatasetError: The file is something else, or ends early.
    """
    number = 0
    with open_json(path) as file:
        for number, text in enumerate(_objects(file, path.name), 1):
            try:
                record = json.loads(text, parse_constant=_refuse)
            except ValueError as error:
                raise DatasetError(f"{path.name}, record {number - 1}: {error}") from error
            yield record
    if number == 0:
        raise DatasetError(f"{path.name}: an array without records")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _decoded(file: BinaryIO, name: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        while chunk := file.read(_CHUNK):
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)
    except (UnicodeDecodeError, EOFError) as error:
        raise DatasetError(f"{name}: not whole UTF-8 text: {error}") from error


class _Cutter:
    """Holds the text of one record, and how far it has been read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._text = ""
        self._place = 0
        self._depth = 0
        self.begun = False
        self.ended = False

    def feed(self, chunk: str) -> Iterator[str]:
        """Yield the objects that ``chunk`` completes."""
        self._text += chunk
        while True:
            if self._depth == 0 and not self._enter():
                return
            end = self._leave()
            if end is None:
                return
            yield self._text[:end]
            self._text, self._place = self._text[end:], 0

    def _enter(self) -> bool:
        """Move to the first character of the next object; False when there is none yet."""
        while True:
            found = _FIRST.match(self._text)
            self._text = self._text[found.end() if found else 0 :]
            if not self._text:
                return False
            first = self._text[0]
            if first == "{" and self.begun and not self.ended:
                self._depth, self._place = 1, 1
                return True
            if first == "[" and not self.begun:
                self.begun = True
            elif first == "]" and self.begun and not self.ended:
                self.ended = True
            else:
                raise DatasetError(f"{self._name}: expected an array of objects, found {first!r}")
            self._text = self._text[1:]

    def _leave(self) -> int | None:
        """Return where the object ends, or None when its end has not been read."""
        while mark := _MARK.search(self._text, self._place):
            if mark.group() == '"':
                string = _STRING_END.match(self._text, mark.end())
                if string is None:
                    self._place = mark.start()
                    return None
                self._place = string.end()
                continue
            self._depth += 1 if mark.group() in "{[" else -1
            self._place = mark.end()
            if self._depth == 0:
                return self._place
        self._place = len(self._text)
        return None


def _objects(file: BinaryIO, name: str) -> Iterator[str]:
    cutter = _Cutter(name)
    for chunk in _decoded(file, name):
        yield from cutter.feed(chunk)
    if not cutter.ended:
        raise DatasetError(f"{name}: the file ends before its array does")
