"""JSON Lines: one message a line.

``{"external_id", "session", "actor", "role", "source", "occurred_at", "authority", "content",
"metadata", "claims"}``; only ``content`` is required. ``claims`` is a list of objects with the
fields of ``ClaimDraft``; instead of ``span`` a claim may carry ``quote``, which must occur
exactly once in the content. A message without ``external_id`` gets one derived from what it says
and how often the file said it before, so that a second import doubles nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, BinaryIO

from evicortex.errors import ImportFormatError
from evicortex.interfaces.importers.json_records import parse_json
from evicortex.interfaces.importers.records import (
    BadRecord,
    Entry,
    ImportOptions,
    Malformed,
    Place,
    require,
)
from evicortex.types import ClaimDraft, EvidenceDraft

_TEXT_FIELDS = ("external_id", "session", "actor", "role", "source", "occurred_at", "authority")
_FIELDS = frozenset((*_TEXT_FIELDS, "content", "metadata", "claims"))
_CLAIM_FIELDS = frozenset(field.name for field in fields(ClaimDraft)) | {"quote"}


def read(file: BinaryIO, options: ImportOptions) -> Iterator[Entry]:
    """Yield a draft or a ``BadRecord`` for every line that is not blank."""
    if options.record is not None:
        raise ImportFormatError("JSON Lines has no records to choose from: leave out --record")
    seen: Counter[str] = Counter()
    for number, line in enumerate(file, start=1):
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if line.strip():
            yield Entry(Place(number), _parse(line, seen))


def _parse(line: bytes, seen: Counter[str]) -> EvidenceDraft | BadRecord:
    try:
        return _draft(parse_json(line.decode("utf-8")), seen)
    except UnicodeDecodeError as error:
        return BadRecord(f"not UTF-8: {error.reason}")
    except (ValueError, RecursionError) as error:
        return BadRecord(f"not valid JSON: {error}")
    except Malformed as error:
        return BadRecord(str(error))


def _draft(record: Any, seen: Counter[str]) -> EvidenceDraft:
    content: str = require(record, "content", str)
    _refuse_unknown(record, _FIELDS, "put what is your own into 'metadata'")
    texts = {name: _optional(record, name, str) for name in _TEXT_FIELDS}
    if texts["external_id"] is None:
        texts["external_id"] = _derived_id(record, seen)
    return EvidenceDraft(
        content=content,
        metadata=_optional(record, "metadata", dict) or {},
        claims=tuple(_claim(item, content) for item in _optional(record, "claims", list) or ()),
        **texts,
    )


def _optional(record: dict[str, Any], name: str, kind: type) -> Any:
    return None if record.get(name) is None else require(record, name, kind)


def _refuse_unknown(record: dict[str, Any], known: frozenset[str], hint: str) -> None:
    unknown = sorted(set(record) - known)
    if unknown:
        raise Malformed(f"unknown field {', '.join(map(repr, unknown))}: {hint}")


def _claim(item: Any, content: str) -> ClaimDraft:
    for name in ("subject", "predicate", "object"):
        require(item, name, str)
    _refuse_unknown(item, _CLAIM_FIELDS, "a claim has the fields of ClaimDraft, and 'quote'")
    values = {name: value for name, value in item.items() if name != "quote"}
    if item.get("span") is not None:
        values["span"] = _span(require(item, "span", list))
    if item.get("quote") is not None:
        values["span"] = _quoted_span(require(item, "quote", str), values.get("span"), content)
    return ClaimDraft(**values)


def _span(values: list[Any]) -> tuple[int, int]:
    if len(values) != 2 or not all(type(value) is int for value in values):
        raise Malformed("'span' is not [start, end]")
    return values[0], values[1]


def _quoted_span(quote: str, span: tuple[int, int] | None, content: str) -> tuple[int, int]:
    start = content.find(quote)
    if not quote or start < 0 or content.find(quote, start + 1) >= 0:
        raise Malformed(f"the quote {quote!r} does not occur exactly once in the content")
    if span is not None and span != (start, start + len(quote)):
        raise Malformed(f"'span' {list(span)} is not where the quote {quote!r} stands")
    return start, start + len(quote)


def _derived_id(record: dict[str, Any], seen: Counter[str]) -> str:
    said = {
        name: record.get(name) for name in ("session", "actor", "role", "occurred_at", "content")
    }
    canonical = json.dumps(said, sort_keys=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:32]
    seen[digest] += 1
    return f"jsonl:{digest}:{seen[digest]}"
