"""JSON over HTTP with bounded retries, for providers that live behind a server."""

from __future__ import annotations

import ipaddress
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from evicortex.errors import (
    InputError,
    MissingExtraError,
    ProviderContractError,
    ProviderUnavailableError,
)

EXTRA = "http"
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""Status codes after which the same request may succeed."""

MAX_RESPONSE_BYTES = 64 << 20
EXCERPT = 200


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after how many seconds a failed request is sent again.

    The delay is ``first_delay``, doubled after each failure, never above ``longest_delay``;
    a server's ``Retry-After`` in seconds replaces it, under the same bound.
    """

    attempts: int = 4
    first_delay: float = 0.5
    longest_delay: float = 8.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 <= self.first_delay <= self.longest_delay:
            raise InputError(
                "a retry policy needs an attempt and 0 <= first_delay <= longest_delay"
            )

    def delays(self) -> Iterator[float]:
        """Yield the delay before each further attempt."""
        for failure in range(self.attempts - 1):
            yield min(self.first_delay * 2.0**failure, self.longest_delay)


@dataclass(frozen=True, slots=True)
class HttpUsage:
    """What a client has cost so far; ``seconds`` are wall time, waits between tries included."""

    requests: int = 0
    retries: int = 0
    failures: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    seconds: float = 0.0


class StatusError(ProviderUnavailableError):
    """The server refused the request; ``status`` and the start of the ``body`` say why.

    ``retry_after`` is how many seconds the server asks to wait, if it does.
    """

    def __init__(
        self, message: str, *, status: int, body: str, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.retry_after = retry_after


class JsonClient:
    """Posts JSON to one server and returns JSON. Connections are kept; threads may share it.

    Redirects are not followed, the environment is not consulted, and a key is never sent in
    clear text to another machine.

    Args:
        base_url: ``http`` or ``https``, up to and including the API's prefix (``…/v1``).
        api_key: Sent as a bearer token; it shows in no message and no ``repr``.
        timeout_seconds: For connecting, and for each wait for data.
        retries: When to send again: transport faults and the statuses ``RETRIED``.
        proxy: URL of a proxy.
        sleep: Waits between attempts; tests pass their own.
        timer: A monotonic clock in seconds.

    Raises:
        InputError: The URL or an option is impossible, or the key would travel in clear text.
        MissingExtraError: ``evicortex[http]`` is not installed.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 30.0,
        retries: RetryPolicy = RetryPolicy(),
        proxy: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base_url = _checked_url(base_url, api_key)
        if not timeout_seconds > 0:
            raise InputError(f"timeout_seconds must be above 0, not {timeout_seconds!r}")
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError("a provider behind HTTP", EXTRA) from error
        headers = {"Accept": "application/json", "User-Agent": "evicortex"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._httpx = httpx
        self._client = httpx.Client(
            headers=headers, timeout=timeout_seconds, trust_env=False, proxy=proxy
        )
        self._retries = retries
        self._sleep = sleep
        self._timer = timer
        self._lock = threading.Lock()
        self._usage = HttpUsage()

    @property
    def usage(self) -> HttpUsage:
        """What the client has cost so far."""
        with self._lock:
            return self._usage

    def close(self) -> None:
        """Close the kept connections."""
        self._client.close()

    def post(self, path: str, body: Any) -> Any:
        """Post ``body`` to ``base_url + path`` and return the parsed answer.

        Raises:
            StatusError: A status that is no success, and no use to retry or retried in vain.
            ProviderUnavailableError: No answer came, after all attempts.
            ProviderContractError: The answer is no JSON, or larger than 64 MiB.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        started = self._timer()
        delays = self._retries.delays()
        try:
            while True:
                self._count(requests=1, bytes_sent=len(content))
                try:
                    return self._send(path, content)
                except (StatusError, self._httpx.TransportError) as error:
                    self._wait_or_raise(error, delays, path)
        finally:
            self._count(seconds=self._timer() - started)

    def _wait_or_raise(self, error: Exception, delays: Iterator[float], path: str) -> None:
        hopeless = isinstance(error, StatusError) and error.status not in RETRIED
        delay = None if hopeless else next(delays, None)
        if delay is None:
            self._count(failures=1)
            if isinstance(error, StatusError):
                raise error
            raise ProviderUnavailableError(
                f"no answer from {self._base_url}{path}: {type(error).__name__} {error}".rstrip()
            ) from error
        self._count(retries=1)
        asked = getattr(error, "retry_after", None)
        self._sleep(delay if asked is None else min(asked, self._retries.longest_delay))

    def _send(self, path: str, content: bytes) -> Any:
        url = f"{self._base_url}{path}"
        headers = {"Content-Type": "application/json"}
        with self._client.stream("POST", url, content=content, headers=headers) as response:
            received = bytearray()
            for block in response.iter_bytes():
                received += block
                if len(received) > MAX_RESPONSE_BYTES:
                    raise ProviderContractError(f"{url} sent more than {MAX_RESPONSE_BYTES} bytes")
        self._count(bytes_received=len(received))
        text = received.decode("utf-8", errors="replace")
        if response.status_code != 200:
            raise StatusError(
                f"{url} answered {response.status_code}: {text[:EXCERPT]}".rstrip(),
                status=response.status_code,
                body=text[:2000],
                retry_after=_seconds(response.headers.get("Retry-After")),
            )
        try:
            return json.loads(text)
        except ValueError as error:
            raise ProviderContractError(f"{url} sent no JSON: {text[:EXCERPT]!r}") from error

    def _count(self, **amounts: float) -> None:
        with self._lock:
            totals: dict[str, Any] = {
                name: getattr(self._usage, name) + amount for name, amount in amounts.items()
            }
            self._usage = replace(self._usage, **totals)


def _seconds(value: str | None) -> float | None:
    """Read ``Retry-After`` in seconds; dates and nonsense count as absent."""
    return float(value) if value is not None and value.isascii() and value.isdigit() else None


def _checked_url(base_url: str, api_key: str | None) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(f"base_url must look like https://host/v1, not {base_url!r}")
    if parts.username or parts.password:
        raise InputError("base_url must not hold credentials; pass api_key")
    if api_key is not None and parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise InputError(f"an api_key would travel to {parts.hostname} in clear text; use https")
    return base_url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
