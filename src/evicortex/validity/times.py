"""Times: aware datetimes at the edge, microseconds since 1970-01-01T00:00Z inside.

Integers of microseconds hold every moment of the years 1 to 9999 exactly; nothing is rounded.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import overload

from evicortex.errors import InvalidTimeError, NaiveDatetimeError
from evicortex.types import TimeInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

MIN_MICROS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""0001-01-01T00:00:00Z, the first moment that can be told, in microseconds since 1970."""

MAX_MICROS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""9999-12-31T23:59:59.999999Z, the last moment that can be told."""


def to_micros(moment: datetime) -> int:
    """Return an aware datetime of any time zone as microseconds since 1970-01-01T00:00Z, exactly.

    Raises:
        NaiveDatetimeError: ``moment`` has no time zone.
        InvalidTimeError: in UTC it lies outside the years 1 to 9999.
    """
    if moment.utcoffset() is None:
        raise NaiveDatetimeError(
            f"{moment.isoformat()} has no time zone; give an aware datetime such as "
            "datetime(2026, 3, 9, 10, 0, tzinfo=UTC)"
        )
    micros = (moment - _EPOCH) // _MICROSECOND
    if not MIN_MICROS <= micros <= MAX_MICROS:
        raise InvalidTimeError(f"{moment.isoformat()} in UTC is outside the years 1 to 9999")
    return micros


def from_micros(micros: int) -> datetime:
    """Return microseconds since 1970-01-01T00:00Z as an aware UTC datetime, exactly.

    Raises:
        InvalidTimeError: outside the years 1 to 9999.
    """
    if not MIN_MICROS <= micros <= MAX_MICROS:
        raise InvalidTimeError(f"{micros} microseconds since 1970 is outside the years 1 to 9999")
    return _EPOCH + timedelta(microseconds=micros)


@overload
def to_utc(value: None, name: str = ...) -> None: ...
@overload
def to_utc(value: TimeInput, name: str = ...) -> datetime: ...
@overload
def to_utc(value: TimeInput | None, name: str = ...) -> datetime | None: ...
def to_utc(value: TimeInput | None, name: str = "the time") -> datetime | None:
    """Return a caller's time as an aware UTC datetime; ``None`` stays ``None``.

    ``value`` is an aware datetime or ISO-8601 text with an offset or ``Z``; digits beyond the
    microsecond are cut off. ``name`` is what messages call the argument.

    Raises:
        NaiveDatetimeError: no time zone or offset; a date without a time counts as that.
        InvalidTimeError: unreadable, of another type, or outside the years 1 to 9999.
    """
    if value is None:
        return None
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError as error:
            raise InvalidTimeError(
                f"{name}: {value!r} is not ISO-8601, such as 2026-03-09T10:00:00Z"
            ) from error
    elif isinstance(value, datetime):
        moment = value
    elif isinstance(value, date):
        raise NaiveDatetimeError(f"{name}: {value} is a date; give a datetime with a time zone")
    else:
        raise InvalidTimeError(
            f"{name}: expected an aware datetime or ISO-8601 text, not {type(value).__name__}"
        )
    if moment.utcoffset() is None:
        raise NaiveDatetimeError(
            f"{name}: {value!s} has no time zone; add an offset or Z, as in 2026-03-09T10:00:00Z"
        )
    return from_micros(to_micros(moment))


def format_utc(moment: datetime) -> str:
    """Return an aware datetime as ISO-8601 in UTC with ``Z``; microseconds only when not 0.

    Raises:
        NaiveDatetimeError, InvalidTimeError: as :func:`to_micros`.
    """
    return from_micros(to_micros(moment)).replace(tzinfo=None).isoformat() + "Z"


def check_interval(valid_from: datetime | None, valid_to: datetime | None, name: str) -> None:
    """Refuse an interval that is empty or reversed; an open end is always fine.

    Raises:
        InvalidTimeError: ``valid_to`` is not after ``valid_from``.
    """
    if valid_from is not None and valid_to is not None and valid_to <= valid_from:
        raise InvalidTimeError(
            f"{name}: it ends at {format_utc(valid_to)}, which is not after its start "
            f"{format_utc(valid_from)}"
        )


def overlaps(from_a: int, to_a: int | None, from_b: int, to_b: int | None) -> bool:
    """Return whether two half-open intervals (microseconds, ``None``: no end) share a moment."""
    return (to_b is None or from_a < to_b) and (to_a is None or from_b < to_a)
