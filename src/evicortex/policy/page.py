"""The finished page of a pack: its text with numbered citations, and the items it shows."""

from __future__ import annotations

from collections.abc import Iterable

from evicortex.policy.candidates import PackCandidate
from evicortex.policy.filling import Entry
from evicortex.policy.rendering import (
    CLOSING,
    OPENING,
    Escaped,
    citation,
    label,
    sections,
    superseded_mark,
)
from evicortex.protocols import TokenCounter
from evicortex.types import Claim, PackItem, Span


class Page:
    """The finished text of some entries."""

    def __init__(self, entries: Iterable[Entry], counter: TokenCounter) -> None:
        self.entries = {entry.candidate.evidence.evidence_id: entry for entry in entries}
        self._sections = sections(entry.line for entry in self.entries.values())
        shown = [line.evidence.evidence_id for part in self._sections for line in part.lines]
        self._numbers = {evidence_id: number for number, evidence_id in enumerate(shown, 1)}
        self.text = self._rendered() if self.entries else ""
        self.tokens = counter.count(self.text)

    def _rendered(self) -> str:
        parts = [OPENING, "\n"]
        for section in self._sections:
            parts.append(section.header.text)
            for line in section.lines:
                evidence_id = line.evidence.evidence_id
                mark = self._mark(self.entries[evidence_id].candidate)
                parts += (label(self._numbers[evidence_id]), line.body(mark.text))
        parts.append(CLOSING)
        return "".join(parts)

    def _mark(self, candidate: PackCandidate) -> Escaped:
        if not candidate.superseded:
            return Escaped("", frozenset())
        return superseded_mark([(self._cited(claim), claim) for claim in candidate.superseded_by])

    def _cited(self, claim: Claim) -> str | None:
        sources = (derivation.evidence_id for derivation in claim.derivations)
        shown = [self._numbers[source] for source in sources if source in self._numbers]
        return citation(min(shown)) if shown else None

    def escapes(self) -> dict[str, tuple[str, ...]]:
        """Return the codes of the escapes that were needed, each with the evidence concerned."""
        found: dict[str, list[str]] = {}
        for section in self._sections:
            for line in section.lines:
                entry = self.entries[line.evidence.evidence_id]
                mark = self._mark(entry.candidate)
                for code in section.header.codes | entry.codes | mark.codes:
                    found.setdefault(code, []).append(line.evidence.evidence_id)
        return {code: tuple(ids) for code, ids in found.items()}

    def items(self) -> tuple[PackItem, ...]:
        """Return the items in the order in which the text shows them."""
        return tuple(
            _item(self.entries[evidence_id], number)
            for evidence_id, number in self._numbers.items()
        )


def _item(entry: Entry, number: int) -> PackItem:
    candidate = entry.candidate
    evidence = candidate.evidence
    return PackItem(
        citation=citation(number),
        evidence_id=evidence.evidence_id,
        external_id=evidence.external_id,
        text=entry.line.text,
        spans=entry.spans,
        complete=entry.spans == (Span(0, len(evidence.content)),),
        digest=evidence.digest,
        occurred_at=evidence.occurred_at,
        actor=evidence.actor,
        role=evidence.role,
        session=evidence.session,
        source=evidence.source,
        claims=candidate.claims,
        superseded=candidate.superseded,
        superseded_by=tuple(claim.claim_id for claim in candidate.superseded_by),
        channels=candidate.channels,
        score=candidate.score,
        times=entry.times,
    )
