"""Results as plain JSON: what the library returns, field for field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import PurePath
from typing import Any

from evicortex.types import Json


def to_json(value: Any) -> str:
    """Return one JSON document. Everything outside ASCII is escaped, so it is safe to print."""
    return json.dumps(plain(value), indent=2, allow_nan=False)


def plain(value: Any) -> Json:
    """Turn result types into dictionaries, lists, strings and numbers.

    Times become ISO-8601 in UTC with ``Z``, spans ``[start, end]``; a number that is not finite
    becomes its name, because JSON has none, and a path its text.
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, PurePath):
        return str(value)
    return _structure(value)


def _structure(value: Any) -> Json:
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, set | frozenset):
        return [plain(inner) for inner in sorted(value)]
    return plain(value.tolist())  # NumPy scalars and arrays of a trace


def iso(moment: datetime) -> str:
    """Return an aware UTC time as ISO-8601 with ``Z``."""
    return moment.isoformat().replace("+00:00", "Z")
