"""A clock that stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class FixedClock:
    """Returns the same instant until it is moved.

    Args:
        instant: An aware datetime; the default is 2026-01-01T00:00:00Z.

    Raises:
        ValueError: ``instant`` has no time zone.
    """

    def __init__(self, instant: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._instant = _aware(instant)

    def now(self) -> datetime:
        """Return the instant in UTC."""
        return self._instant

    def set(self, instant: datetime) -> None:
        """Move to ``instant``; raises ``ValueError`` if it has no time zone."""
        self._instant = _aware(instant)

    def advance(self, by: timedelta = timedelta(seconds=1)) -> datetime:
        """Move on by ``by`` and return the new instant."""
        self._instant += by
        return self._instant


def _aware(instant: datetime) -> datetime:
    if instant.utcoffset() is None:
        raise ValueError(f"{instant!r} has no time zone")
    return instant.astimezone(UTC)
