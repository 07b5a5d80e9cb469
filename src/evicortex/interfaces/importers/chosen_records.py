"""Conversations of a JSON file by id, knowing whether there are several without reading all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers.json_records import json_records
from evicortex.interfaces.importers.records import BadRecord, Entry, Place


class Conversation(NamedTuple):
    """One record that has an id. ``several``: its file has others, readable or not."""

    number: int
    identifier: str
    record: dict[str, Any]
    several: bool = False


def chosen_records(
    file: BinaryIO, chosen: str | None, *id_fields: str
) -> Iterator[Conversation | Entry]:
    """Yield every record, or only the one whose id is ``chosen``; entries report broken ones.

    The id is the first of ``id_fields`` that a record has. Raises ``ImportFormatError`` when no
    record has the chosen id.
    """
    found = _identified(file, id_fields)
    if chosen is not None:
        yield _only(found, chosen, id_fields[0])
        return
    first = next(found, None)
    second = next(found, None)
    for item in (first, second):
        if item is not None:
            yield _marked(item, several=second is not None)
    for item in found:
        yield _marked(item, several=True)


def _marked(item: Conversation | Entry, *, several: bool) -> Conversation | Entry:
    return item._replace(several=several) if isinstance(item, Conversation) else item


def _only(found: Iterator[Conversation | Entry], chosen: str, id_field: str) -> Conversation:
    unread = 0
    for item in found:
        if isinstance(item, Entry):
            unread += 1
        elif item.identifier == chosen:
            return item
    hint = f"; {unread} could not be read, import without --record to see which" if unread else ""
    raise ImportFormatError(f"no record of this file has {id_field} {chosen!r}{hint}")


def _identified(file: BinaryIO, id_fields: tuple[str, ...]) -> Iterator[Conversation | Entry]:
    for number, record in json_records(file):
        if isinstance(record, BadRecord):
            yield Entry(Place(number), record)
            continue
        identifier = next((record[name] for name in id_fields if record.get(name)), None)
        if isinstance(identifier, str):
            yield Conversation(number, identifier, record)
        else:
            yield Entry(Place(number), BadRecord(f"{id_fields[0]!r} is missing or not a string"))
