"""Many receipts report the same thing: each distinct diagnostic once, with how often it came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from evicortex.types import Diagnostic


@dataclass(frozen=True, slots=True)
class Reported:
    """One distinct diagnostic and how many results carried it."""

    code: str
    message: str
    count: int


def reported(diagnostics: Iterable[Diagnostic]) -> tuple[Reported, ...]:
    """Return each distinct pair of code and message, in the order in which it first came."""
    counts = Counter((diagnostic.code, diagnostic.message) for diagnostic in diagnostics)
    return tuple(Reported(*pair, count) for pair, count in counts.items())
