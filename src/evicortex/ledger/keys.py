"""Row keys, identifiers and digests: pure functions, no SQL.

A row id is one int64, ``namespace_id << 40 | position``, so that every clustered key leads with
the namespace and a namespace is one contiguous range of row ids. Identifiers are a prefix and
the first 24 hexadecimal digits (96 bits) of a SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from evicortex.errors import NamespaceError
from evicortex.types import POSITION_BITS

MAX_NAMESPACES = (1 << (63 - POSITION_BITS)) - 1
"""Largest namespace id whose row ids still fit a signed 64-bit integer."""

MAX_POSITION = (1 << POSITION_BITS) - 1
"""Largest position of a namespace."""

MAX_NAMESPACE_LENGTH = 512
"""Code points of a namespace's name."""

_ID_DIGITS = 24
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def row_id(namespace_id: int, position: int) -> int:
    """Return the row id of a namespace's position (from 1)."""
    return namespace_id << POSITION_BITS | position


def position(row: int) -> int:
    """Return the position (from 1) inside its namespace of a row id."""
    return row & MAX_POSITION


def row_range(namespace_id: int) -> tuple[int, int]:
    """Return the half-open range ``[lo, hi)`` of the row ids of a namespace."""
    return namespace_id << POSITION_BITS, (namespace_id + 1) << POSITION_BITS


def canonical_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no escapes but the needed.

    Raises:
        ValueError: a number is NaN or infinite.
        TypeError: a value is not JSON.
    """
    return _ENCODER.encode(value)


def text_digest(text: str) -> str:
    """Return the SHA-256 of the UTF-8 bytes of a text, in lower-case hexadecimal.

    Raises:
        UnicodeEncodeError: the text holds a lone surrogate.
    """
    return hashlib.sha256(text.encode()).hexdigest()


def json_digest(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a value."""
    return hashlib.sha256(_ENCODER.encode(value).encode()).hexdigest()


def evidence_id(namespace: str, at: int, digest: str) -> str:
    """Return the id of the evidence with this digest at this position of a namespace."""
    seed = f"{namespace}\0{at}\0{digest}".encode()
    return "ev_" + hashlib.sha256(seed).hexdigest()[:_ID_DIGITS]


def encodable(text: str) -> bool:
    """Return whether UTF-8 can encode a text; what it cannot encode is nowhere in a ledger."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_namespace(name: object) -> str:
    """Return a namespace's name as it was given, or refuse it.

    Raises:
        NamespaceError: not text, empty or blank, longer than 512 code points, with control
            characters, or not encodable as UTF-8.
    """
    if not isinstance(name, str) or not name.strip():
        raise NamespaceError(f"a namespace is a text that is not empty, not {name!r}")
    if len(name) > MAX_NAMESPACE_LENGTH:
        raise NamespaceError(
            f"a namespace has at most {MAX_NAMESPACE_LENGTH} characters, not {len(name)}"
        )
    if any(character < " " or character == "\x7f" for character in name):
        raise NamespaceError("a namespace holds no control characters")
    if not encodable(name):
        raise NamespaceError("a namespace holds no lone surrogates")
    return name


CLAIM_FIELDS = (
    "claim_id",
    "subject",
    "predicate",
    "object",
    "polarity",
    "confidence",
    "authority",
    "cardinality",
    "declared",
    "origin",
    "repetition",
    "valid_from",
    "valid_to",
    "recorded_at",
)
"""Columns of a claim whose values, in this order, make its digest in the audit chain."""

RETRACTION_FIELDS = ("claim_id", "recorded_at", "reason", "cause")
"""Columns of a retraction whose values, in this order, make its digest in the audit chain."""

EXTRACTION_FIELDS = (
    "ordinal",
    "extractor_id",
    "extractor_revision",
    "evidence_digest",
    "recorded_at",
    "abstained",
    "diagnostics",
    "usage",
)
"""Columns of an extraction record whose values make its digest, followed by the emitted."""

EMITTED_FIELDS = ("claim_id", "start", "stop", "confidence", "authority")
"""Columns of each claim that an extraction emitted, in order, appended as one list each."""


def record_digest(values: Sequence[Any]) -> str:
    """Return the digest of stored column values, as the audit chain keeps it.

    Values are those that a later SELECT gives back: times in microseconds, reals as float,
    truth as 0 or 1, enumerations as their text.
    """
    return json_digest(values)
