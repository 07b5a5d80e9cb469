"""Checking claim drafts as a whole, before anything is written. Pure: no SQL."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from numbers import Real
from typing import NamedTuple

from evicortex.errors import (
    InvalidClaimError,
    InvalidSpanError,
    InvalidTextError,
)
from evicortex.types import Authority, Cardinality, ClaimDraft, Polarity
from evicortex.validity import (
    DEFAULT_ORDER,
    AuthorityOrder,
    check_interval,
    match_key,
    to_micros,
    to_utc,
)

ASSISTANT_ROLES = frozenset({"assistant", "ai", "model"})
"""Roles (by match key) whose words are never a user's claim by themselves."""


class CheckedClaim(NamedTuple):
    """A draft that was checked against its evidence. Times are microseconds, UTC.

    ``valid_from`` ``None`` takes the evidence's time when it is written; ``declared`` is the
    cardinality that the call named; ``start`` and ``stop`` are ``None`` for the whole evidence.
    """

    subject: str
    predicate: str
    object: str
    start: int | None
    stop: int | None
    polarity: Polarity
    confidence: float
    authority: Authority
    valid_from: int | None
    valid_to: int | None
    declared: Cardinality | None


def authority_cap(
    authority: Authority, role: str | None, order: AuthorityOrder = DEFAULT_ORDER
) -> Authority:
    """Return the highest authority that a claim on evidence of this authority and role may have.

    It is the evidence's own, and at most ``assistant`` for what an assistant said.
    """
    if role is not None and match_key(role) in ASSISTANT_ROLES:
        return order.lower(authority, Authority.ASSISTANT)
    return authority


def check_drafts(
    drafts: Iterable[ClaimDraft],
    *,
    content: str,
    authority: Authority,
    role: str | None = None,
    occurred_at: datetime | None = None,
    recorded_at: datetime | None = None,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> tuple[CheckedClaim, ...]:
    """Check every draft against the evidence that it will rest on; write nothing.

    ``content``, ``authority``, ``role`` and ``occurred_at`` are the evidence's; ``recorded_at``
    is when it was or will be recorded. Messages count claims from 1.

    Raises:
        InvalidClaimError: a subject, predicate or object that is blank or no text, a polarity,
            cardinality or authority of another name, a confidence that is not a finite number
            from 0 to 1, or an authority above what the evidence allows.
        InvalidTextError: a text that UTF-8 cannot encode.
        InvalidSpanError: a span that is empty, reversed or outside ``content``.
        NaiveDatetimeError, InvalidTimeError: a bound without a time zone, unreadable, or an
            interval that does not end after it begins.
    """
    cap = authority_cap(authority, role, order)
    default = occurred_at if occurred_at is not None else recorded_at
    return tuple(
        check_draft(draft, f"claim {number}", len(content), default, cap, order)
        for number, draft in enumerate(drafts, start=1)
    )


def check_draft(
    draft: ClaimDraft,
    name: str,
    length: int,
    default_from: datetime | None,
    cap: Authority,
    order: AuthorityOrder,
) -> CheckedClaim:
    """Check one draft; as :func:`check_drafts`. ``length`` is that of the text in code points."""
    valid_from = to_utc(draft.valid_from, f"{name}: valid_from")
    valid_to = to_utc(draft.valid_to, f"{name}: valid_to")
    check_interval(valid_from if valid_from is not None else default_from, valid_to, name)
    start, stop = check_span(draft.span, length, name)
    return CheckedClaim(
        subject=check_text(draft.subject, f"{name}: subject"),
        predicate=check_text(draft.predicate, f"{name}: predicate"),
        object=check_text(draft.object, f"{name}: object"),
        start=start,
        stop=stop,
        polarity=_polarity(draft.polarity, name),
        confidence=_confidence(draft.confidence, name),
        authority=_authority(draft.authority, name, cap, order),
        valid_from=None if valid_from is None else to_micros(valid_from),
        valid_to=None if valid_to is None else to_micros(valid_to),
        declared=_cardinality(draft.cardinality, name),
    )


def check_text(text: object, name: str) -> str:
    """Return a text that is not blank and that UTF-8 can encode, exactly as given.

    Raises:
        InvalidClaimError: no text, or a blank one.
        InvalidTextError: a lone surrogate.
    """
    if not isinstance(text, str):
        raise InvalidClaimError(f"{name} must be a text, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError(
            f"{name} cannot be encoded as UTF-8 ({error.reason} at {error.start}); "
            "remove the lone surrogate"
        ) from error
    if not match_key(text):
        raise InvalidClaimError(f"{name} is blank; give at least one visible character")
    return text


def check_span(span: object, length: int, name: str) -> tuple[int | None, int | None]:
    """Return the bounds of a span of a text of ``length`` code points; none for the whole text.

    Raises:
        InvalidSpanError: no pair of integers, empty, reversed, or outside the text.
    """
    if span is None:
        return None, None
    if not isinstance(span, tuple | list) or len(span) != 2:
        raise InvalidSpanError(f"{name}: a span is a pair (start, end), not {span!r}")
    start, stop = span
    if type(start) is not int or type(stop) is not int:
        raise InvalidSpanError(f"{name}: the bounds of a span are integers, not {span!r}")
    if not 0 <= start < stop <= length:
        raise InvalidSpanError(
            f"{name}: span [{start}, {stop}) is empty, reversed or outside the text of {length} "
            "code points"
        )
    return start, stop


def _polarity(value: Polarity | str, name: str) -> Polarity:
    try:
        return Polarity(value)
    except ValueError as error:
        raise InvalidClaimError(
            f"{name}: polarity is positive or negative, not {value!r}"
        ) from error


def _confidence(value: object, name: str) -> float:
    # Compared before it is converted: float() of a huge integer would overflow.
    if isinstance(value, int | float | Real) and not isinstance(value, bool) and value <= 1:
        number = float(value)
        if number >= 0:
            return abs(number)
    raise InvalidClaimError(f"{name}: confidence is a number from 0 to 1, not {value!r}")


def _authority(
    value: Authority | str | None, name: str, cap: Authority, order: AuthorityOrder
) -> Authority:
    if value is None:
        return cap
    try:
        authority = Authority(value)
    except ValueError as error:
        names = ", ".join(order.ranking)
        raise InvalidClaimError(f"{name}: authority is one of {names}, not {value!r}") from error
    if order.exceeds(authority, cap):
        raise InvalidClaimError(
            f"{name}: authority {authority} is above {cap}, the highest that this evidence allows"
        )
    return authority


def _cardinality(value: object, name: str) -> Cardinality | None:
    if value is None or value == "single" or value == "multi":
        return value
    raise InvalidClaimError(f"{name}: cardinality is single, multi or None, not {value!r}")
