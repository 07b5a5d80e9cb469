"""What an importer yields: drafts to remember, and a named report for all it does not yield."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from evicortex.types import EvidenceDraft


class Place(NamedTuple):
    """Where an entry stands: line or record ``number`` from 1, and what the format calls it."""

    number: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A line or record that breaks the format; the rest of the file is still read."""

    reason: str


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A part that the format defines and that is left out on purpose; ``reason`` is stable."""

    reason: str


class Entry(NamedTuple):
    """One thing found in a file."""

    place: Place
    found: EvidenceDraft | BadRecord | SkippedRecord


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the caller may choose.

    ``record`` takes one conversation of the file alone, by its id. ``user`` names the human in
    formats that do not (ChatGPT, Claude, LongMemEval).
    """

    record: str | None = None
    user: str | None = None


Importer = Callable[[BinaryIO, ImportOptions], Iterator[Entry]]


class Malformed(Exception):  # noqa: N818 - control flow inside one importer, never leaves it
    """A record lacks what its format promises; becomes a ``BadRecord``."""


def require(record: Any, name: str, kind: type) -> Any:
    """Return ``record[name]``, or raise ``Malformed`` when it is absent or of another type."""
    if not isinstance(record, dict):
        raise Malformed(f"expected an object, found {kind_of(record)}")
    if name not in record:
        raise Malformed(f"{name!r} is missing")
    value = record[name]
    if not isinstance(value, kind):
        raise Malformed(f"{name!r} is {kind_of(value)}, not {_KINDS[kind]}")
    return value


def objects(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the list of objects under ``name``; absent or null is an empty list."""
    if record.get(name) is None:
        return []
    items: list[Any] = require(record, name, list)
    if not all(isinstance(item, dict) for item in items):
        raise Malformed(f"{name!r} holds something that is not an object")
    return items


_KINDS: dict[type, str] = {
    str: "a string",
    list: "a list",
    dict: "an object",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}


def kind_of(value: object) -> str:
    """Return what JSON calls a value, with its article."""
    return _KINDS.get(type(value), "null")
