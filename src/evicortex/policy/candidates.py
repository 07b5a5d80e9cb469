"""What the recall pipeline hands to packing: ranked evidence with all that packing may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from evicortex.types import ChannelScore, Claim, Evidence, Span


@dataclass(frozen=True, slots=True)
class PackCandidate:
    """One ranked evidence, or one passage of it.

    ``span`` is the passage that was ranked; ``None`` means the whole evidence. Several
    candidates may name passages of one evidence: they share its line. ``superseded_by`` holds
    the claims that replaced what it says. ``excluded`` means that the query rules it out.
    ``similarities`` are those of its pieces to the query, by span. ``neighbours`` are the turns right before and after it.
    """

    evidence: Evidence
    score: float = 0.0
    channels: Mapping[str, ChannelScore] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    superseded: bool = False
    superseded_by: tuple[Claim, ...] = ()
    excluded: bool = False
    span: Span | None = None
    similarities: Mapping[Span, float] = field(default_factory=dict)
    neighbours: tuple[PackCandidate, ...] = ()


def effective_time(evidence: Evidence) -> datetime:
    """Return when it was said, or else when it was recorded (UTC)."""
    return evidence.occurred_at or evidence.recorded_at


def chronological(evidence: Evidence) -> tuple[datetime, int]:
    """Sort key of the order in which a pack shows its items."""
    return effective_time(evidence), evidence.position
