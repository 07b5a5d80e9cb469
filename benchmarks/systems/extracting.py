"""EviCortex that extracts claims from what it remembers, turn by turn."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import Turn
from benchmarks.systems.evicortex import EviCortexSystem
from evicortex.protocols import ClaimExtractor, EvidenceContext, ExtractionResult

CONTEXT_TURNS = 6


class ExtractingSystem(EviCortexSystem):
    """The same memory, written through ``remember_extracted`` with earlier turns as context."""

    def __init__(self, path: Path, extractor: ClaimExtractor, **options: Any) -> None:
        super().__init__(path, **options)
        self._extractor = _Timed(extractor)
        self.claims = 0
        self.turns = 0

    @property
    def extraction_cpu_s(self) -> float:
        """CPU seconds spent in the extractor itself."""
        return self._extractor.cpu_s

    def ingest(self, namespace: str, turns: Sequence[Turn]) -> None:
        """Remember and extract turn by turn."""
        for number, turn in enumerate(turns):
            before = turns[max(0, number - CONTEXT_TURNS) : number]
            receipt = self.cortex.remember_extracted(
                namespace,
                turn.text,
                extractor=self._extractor,
                actor=turn.actor,
                role=turn.role,
                session=turn.session,
                external_id=turn.turn_id,
                occurred_at=turn.occurred_at,
                previous=[(t.actor, t.text) for t in before if t.session == turn.session],
            )
            self.claims += len(receipt.claim_ids)
            self.turns += 1


class _Timed:
    def __init__(self, extractor: ClaimExtractor) -> None:
        self._extractor = extractor
        self.cpu_s = 0.0

    @property
    def extractor_id(self) -> str:
        return self._extractor.extractor_id

    @property
    def revision(self) -> str:
        return self._extractor.revision

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        started = time.process_time()
        try:
            return self._extractor.extract(context)
        finally:
            self.cpu_s += time.process_time() - started
