"""The one edge at which a provider's exceptions are caught."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from evicortex.errors import (
    InputError,
    MissingExtraError,
    ProviderContractError,
    ProviderError,
    ProviderUnavailableError,
)
from evicortex.validation.workers import within

T = TypeVar("T")

MESSAGE_LIMIT = 200
"""Characters of a provider's own message that an error repeats."""


def guarded(name: str, call: Callable[[], T], *, timeout_seconds: float | None = None) -> T:
    """Run ``call`` and turn whatever a provider raises into a typed error.

    Args:
        name: What the error calls the provider, such as ``"embedder model@revision"``.
        call: The provider's method with its arguments bound.
        timeout_seconds: Wall time allowed. With a limit the call runs on a daemon thread,
            which is abandoned when the time is up: Python cannot stop a thread.

    Raises:
        ProviderError: The provider's own typed error, unchanged (also ``MissingExtraError``).
        ProviderUnavailableError: It raised anything else, or did not answer in time.
    """
    try:
        return call() if timeout_seconds is None else within(call, timeout_seconds)
    except (ProviderError, MissingExtraError):
        raise
    except Exception as error:
        # The only place where foreign code's errors end: whatever it is, callers get one type.
        raise ProviderUnavailableError(f"{name} gave no answer ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    """Return the error's type and message; a message that raises is left out."""
    try:
        return f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT]
    except Exception:  # noqa: BLE001 - foreign code too
        return type(error).__name__


def checked_timeout(timeout_seconds: float | None) -> float | None:
    """Return the limit, or raise ``InputError`` unless it is None or finite and above zero."""
    if timeout_seconds is not None and not 0 < timeout_seconds <= threading.TIMEOUT_MAX:
        raise InputError(f"timeout_seconds must be finite and above 0, not {timeout_seconds!r}")
    return timeout_seconds


def checked_name(kind: str, attribute: str, value: object) -> str:
    """Return a provider's identity string, or raise ``ProviderContractError`` if it has none."""
    if not isinstance(value, str) or not value.strip():
        raise ProviderContractError(
            f"{kind}: {attribute} must be a non-empty string, not {value!r}"
        )
    return value
