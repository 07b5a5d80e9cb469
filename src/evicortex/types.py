"""Frozen value types shared by every room. No I/O, no SQL, no models.

Times are timezone-aware UTC datetimes. Spans are half-open ranges of Unicode code points of
the evidence's text. Digests are lower-case hexadecimal SHA-256.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
TimeInput = datetime | str
"""An aware datetime, or ISO-8601 text with an offset or ``Z``."""


class Span(NamedTuple):
    """Half-open range ``[start, end)`` of code points of one evidence's text."""

    start: int
    end: int


class Granularity(StrEnum):
    """How coarse a mention of time is; "last year" is a year, not a day."""

    DAY = "day"
    WEEKEND = "weekend"
    WEEK = "week"
    MONTH = "month"
    SEASON = "season"
    QUARTER = "quarter"
    YEAR = "year"
    DECADE = "decade"


class Authority(StrEnum):
    """Who stands behind a statement. The order, highest first, is a setting."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DOCUMENT = "document"
    UNTRUSTED = "untrusted"


class Polarity(StrEnum):
    """Whether a claim affirms or denies its object."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class ClaimStatus(StrEnum):
    """What a claim is at the time asked (``as_of``) with the knowledge asked (``known_at``)."""

    HELD = "held"
    SUPERSEDED = "superseded"  # another claim that conflicts with it wins at as_of
    CONFLICTING = "conflicting"  # a claim of higher authority contradicts it
    EXPIRED = "expired"  # its own valid_to lies at or before as_of
    FUTURE = "future"  # its valid_from lies after as_of
    RETRACTED = "retracted"  # withdrawn at or before known_at


Cardinality = Literal["single", "multi"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something the caller should know. ``code`` is stable, ``message`` is for people."""

    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Validity:
    """Half-open interval ``[valid_from, valid_to)`` in the world; ``None`` is unbounded."""

    valid_from: datetime | None
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class ClaimDraft:
    """A belief to be recorded with the evidence that supports it.

    ``span`` is the supporting range of the evidence's text; ``None`` means the whole evidence.
    ``valid_from`` defaults to the evidence's ``occurred_at`` (else to the time of recording);
    ``valid_to`` ``None`` means "until further notice". ``cardinality`` ``None`` asks the
    registry of predicates. ``authority`` ``None`` takes the evidence's.
    """

    subject: str
    predicate: str
    object: str
    span: tuple[int, int] | None = None
    polarity: Polarity | str = Polarity.POSITIVE
    confidence: float = 1.0
    authority: Authority | str | None = None
    valid_from: TimeInput | None = None
    valid_to: TimeInput | None = None
    cardinality: Cardinality | None = None


@dataclass(frozen=True, slots=True)
class EvidenceDraft:
    """One message or document to be remembered; the fields of ``remember``."""

    content: str
    actor: str | None = None
    role: str | None = None
    session: str | None = None
    source: str | None = None
    external_id: str | None = None
    occurred_at: TimeInput | None = None
    authority: Authority | str | None = None
    claims: tuple[ClaimDraft, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One immutable record of the ledger. ``content`` is the exact text that was given."""

    evidence_id: str
    namespace: str
    content: str
    digest: str
    actor: str | None
    role: str | None
    session: str | None
    source: str | None
    external_id: str | None
    occurred_at: datetime | None
    recorded_at: datetime
    authority: Authority
    metadata: Mapping[str, Json]
    position: int
    """Place in the namespace's order of recording, from 1; never reused."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """Ties a claim to the characters that support it. ``span`` ``None``: the whole evidence."""

    evidence_id: str
    evidence_digest: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A belief, as held at the time and with the knowledge asked.

    ``valid_from``/``valid_to`` are the effective bounds after supersession; ``asserted_from``
    and ``asserted_to`` are those that were recorded. ``superseded_by`` names the claims that
    end it, ``conflicts_with`` those of other authority that contradict it, ``corroborated_by``
    those that say the same. ``superseded_at`` is when (in the ledger) it was closed or withdrawn.
    """

    claim_id: str
    namespace: str
    subject: str
    predicate: str
    object: str
    polarity: Polarity
    confidence: float
    authority: Authority
    cardinality: Cardinality
    valid_from: datetime | None
    valid_to: datetime | None
    asserted_from: datetime | None
    asserted_to: datetime | None
    recorded_at: datetime
    superseded_at: datetime | None
    status: ClaimStatus
    derivations: tuple[Derivation, ...]
    superseded_by: tuple[str, ...] = ()
    conflicts_with: tuple[str, ...] = ()
    corroborated_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RememberReceipt:
    """What ``remember`` did. ``indexed`` says whether every projection that is on has it."""

    evidence_id: str
    digest: str
    claim_ids: tuple[str, ...]
    created: bool
    indexed: bool
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class RejectedDraft:
    """A draft of a batch that was refused, in place of its receipt."""

    index: int
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class RetractReceipt:
    """What ``retract`` did. ``reinstated`` are claims that are held again because of it."""

    claim_id: str
    retracted_at: datetime
    created: bool
    reinstated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tombstone:
    """All that stays of a purged record: ids and digests in the audit chain."""

    evidence_id: str
    digest: str
    audit_position: int


@dataclass(frozen=True, slots=True)
class PurgeReceipt:
    """What ``purge`` removed. ``complete`` is false while a reader still holds an old snapshot."""

    evidence_ids: tuple[str, ...]
    claim_ids: tuple[str, ...]
    tombstones: tuple[Tombstone, ...]
    reinstated: tuple[str, ...] = ()
    complete: bool = True
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionDerivation:
    """One emitted claim of an extraction, in the order in which it was emitted."""

    claim_id: str
    span: Span | None
    confidence: float
    authority: Authority


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    """The audit record of one extraction over one evidence."""

    evidence_id: str
    evidence_digest: str
    extractor_id: str
    extractor_revision: str
    recorded_at: datetime
    abstained: bool
    derivations: tuple[ExtractionDerivation, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    superseded_at: datetime | None = None
    usage: Mapping[str, float] = field(default_factory=dict)
    """What it cost, as the extractor metered it: calls, tokens, seconds."""


@dataclass(frozen=True, slots=True)
class ExtractionReceipt:
    """What ``remember_extracted`` did: the receipt of the write, and the audit record."""

    evidence_id: str
    digest: str
    claim_ids: tuple[str, ...]
    created: bool
    indexed: bool
    abstained: bool
    record: ExtractionRecord
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeMention:
    """One time that a text names, as it was read from the moment at which the text was said.

    ``span`` are the code points that name it, ``text`` those characters. ``start`` is the first
    moment and ``end`` the first one after it, aware UTC. ``relative``: it was resolved against
    the moment of speaking ("last week") rather than named in full ("8 May 2023").
    ``open_year``: the year was not said ("in May"), so that the interval is a reading.
    """

    span: Span
    text: str
    start: datetime
    end: datetime
    granularity: Granularity
    relative: bool
    open_year: bool = False


@dataclass(frozen=True, slots=True)
class ChannelScore:
    """One channel's opinion of one hit: rank from 1, raw score (higher is better)."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One ranked evidence."""

    evidence: Evidence
    rank: int
    score: float
    channels: Mapping[str, ChannelScore]
    superseded: bool = False


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Ranked evidence, best first, with everything the caller should know."""

    hits: tuple[Hit, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class PackItem:
    """One cited evidence of a pack. ``text`` is what the pack shows of it."""

    citation: str
    evidence_id: str
    external_id: str | None
    text: str
    spans: tuple[Span, ...]
    complete: bool
    digest: str
    occurred_at: datetime | None
    actor: str | None
    role: str | None
    session: str | None
    source: str | None
    claims: tuple[Claim, ...]
    superseded: bool
    superseded_by: tuple[str, ...]
    channels: Mapping[str, ChannelScore]
    score: float
    times: tuple[TimeMention, ...] = ()
    """Times that the text shown names; only where ``recall`` was asked to show them."""


@dataclass(frozen=True, slots=True)
class OmittedItem:
    """A candidate that the pack does not show. ``reason``: budget, superseded, duplicate, excluded."""

    evidence_id: str
    external_id: str | None
    reason: str
    tokens: int | None = None
    duplicate_of: str | None = None


@dataclass(frozen=True, slots=True)
class Support:
    """How well the question is supported. ``probability`` is None until calibrated."""

    verdict: Literal["supported", "insufficient"]
    probability: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContextPack:
    """Cited evidence inside a hard token budget; ``token_count`` counts exactly ``text``."""

    text: str
    token_count: int
    budget_tokens: int
    items: tuple[PackItem, ...]
    omitted: tuple[OmittedItem, ...]
    support: Support
    diagnostics: tuple[Diagnostic, ...]
    trace: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What ``sync_semantic`` found and repaired: evidence and claims, counted together."""

    indexed: int
    stale: int
    missing: int
    failed: int
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """Rows that ``rebuild`` wrote, by projection."""

    evidence: int
    projections: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Problem:
    """One disagreement that ``verify`` found."""

    code: str
    namespace: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """``ok`` is false when ``problems`` is not empty.

    Neither ``conflicts`` between claims nor ``notices`` are problems: a notice is a projection
    that lags behind, or a purge whose bytes still wait for a reader to let go.
    """

    ok: bool
    problems: tuple[Problem, ...]
    conflicts: tuple[Problem, ...] = ()
    checked: Mapping[str, int] = field(default_factory=dict)
    notices: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportReport:
    """Records written by ``export``."""

    evidence: int
    claims: int
    extractions: int
    digest: str


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Records read by ``load``."""

    evidence: int
    claims: int
    extractions: int
    created: int
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of one namespace."""

    namespace: str
    evidence: int
    claims: int
    sessions: int
    actors: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is really on: channels, providers with identities, and why something is off."""

    channels: Mapping[str, bool]
    embedder: Mapping[str, Any] | None
    extractor: Mapping[str, Any] | None
    ranker: Mapping[str, Any] | None
    reranker: Mapping[str, Any] | None
    token_counter: Mapping[str, Any]
    sqlite_version: str
    schema_version: int
    notes: tuple[str, ...] = ()


POSITION_BITS = 40
"""A ledger row id is ``namespace_id << POSITION_BITS | position``, so keys lead with the namespace."""
