"""What a piece of work cost: CPU seconds, and the encoder's share of them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.systems.catalog import Bench


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds of this process, ``embed_cpu_s`` of them in the encoder for ``embedded`` texts.

    A vector that was kept from before counts with the seconds that it once took, so that the
    order of the systems does not matter and every system is charged as if it ran alone.
    """

    cpu_s: float
    embed_cpu_s: float
    embedded: int


class Meter:
    """Measures from its making to each reading."""

    def __init__(self, bench: Bench) -> None:
        self._encoder = bench.encoder
        self._begun = self._state()

    def read(self) -> Spent:
        """Return what has been spent since the making."""
        now = self._state()
        cpu, spent, charged, embedded = (b - a for a, b in zip(self._begun, now, strict=True))
        return Spent(max(cpu - spent, 0.0) + charged, charged, int(embedded))

    def _state(self) -> tuple[float, float, float, int]:
        encoder = self._encoder
        if encoder is None:
            return time.process_time(), 0.0, 0.0, 0
        return time.process_time(), encoder.spent_s, encoder.charged_s, encoder.requested
