"""The checked claim extractor: an extraction is accepted whole or refused whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from numbers import Real
from typing import NoReturn, get_args

from evicortex.errors import ExtractionError, InputError
from evicortex.protocols import (
    ClaimExtractor,
    EvidenceContext,
    ExtractedClaim,
    ExtractionResult,
)
from evicortex.types import Authority, Cardinality, Diagnostic, Polarity, Span
from evicortex.validation.calls import checked_name, checked_timeout, guarded


class CheckedExtractor:
    """Extracts with ``extractor`` and checks every claim against the evidence.

    An extraction that breaks a rule is refused as a whole with an ``ExtractionError`` whose
    ``rule`` is one of:

    ========================  ================================================================
    ``result-type``           no ``ExtractionResult`` of ``ExtractedClaim`` and ``Diagnostic``
    ``identity``              the extractor's id or revision changed while it was in use
    ``abstention``            it abstained and still sent claims, or sent none without abstaining
    ``evidence-id``           a claim is bound to another evidence
    ``evidence-digest``       a claim is bound to another text
    ``field``                 subject, predicate or object is blank or no text
    ``span``                  the span is empty, reversed or outside the text
    ``quote``                 the quote is missing or is not the text of the span
    ``confidence``            the confidence is no number from 0 to 1
    ``authority``             the authority is unknown or above the evidence's
    ``polarity``              the polarity is unknown
    ``cardinality``           the cardinality is neither single, multi nor None
    ``validity``              a bound is no aware datetime, or the interval is empty
    ``order``                 claims are not in the order of their spans
    ``duplicate``             the same claim twice on the same span
    ``usage``                 usage is no mapping of names to finite numbers of at least 0
    ========================  ================================================================

    Args:
        extractor: The provider.
        authority_order: Authorities, highest first.
        timeout_seconds: Wall time allowed for one extraction; None for no limit.

    Raises:
        InputError: On construction, when ``authority_order`` is no order of all authorities.
        ProviderContractError: On construction, when the extractor has no id or revision.
    """

    def __init__(
        self,
        extractor: ClaimExtractor,
        *,
        authority_order: Sequence[Authority] = tuple(Authority),
        timeout_seconds: float | None = None,
    ) -> None:
        self._extractor = extractor
        self._timeout = checked_timeout(timeout_seconds)
        if sorted(authority_order) != sorted(Authority):
            raise InputError("authority_order must name every authority once")
        self._ranks = {authority: rank for rank, authority in enumerate(authority_order)}
        self._extractor_id = self._told("extractor_id")
        self._revision = self._told("revision")

    @property
    def extractor_id(self) -> str:
        """The extractor's name, as it was when it was wrapped."""
        return self._extractor_id

    @property
    def revision(self) -> str:
        """The extractor's revision, as it was when it was wrapped."""
        return self._revision

    def extract(self, context: EvidenceContext) -> ExtractionResult:
        """Return the extractor's result, known to keep every rule.

        Raises:
            ExtractionError: It broke a rule.
            ProviderUnavailableError: The extractor raised or did not answer in time.
            ProviderError: The extractor's own typed error.
        """
        result = guarded(
            self._name, lambda: self._extractor.extract(context), timeout_seconds=self._timeout
        )
        if (self._told("extractor_id"), self._told("revision")) != (
            self._extractor_id,
            self._revision,
        ):
            self._refuse("identity", "its id or revision changed while it was in use")
        self._check_result(result)
        for number, claim in enumerate(result.claims, start=1):
            self._check_binding(number, claim, context)
            self._check_values(number, claim, context)
        self._check_sequence(result.claims, len(context.content))
        return result

    def _told(self, attribute: str) -> str:
        told = guarded("extractor", lambda: getattr(self._extractor, attribute, None))
        return checked_name("extractor", attribute, told)

    @property
    def _name(self) -> str:
        return f"extractor {self._extractor_id}@{self._revision}"

    def _refuse(self, rule: str, reason: str, number: int | None = None) -> NoReturn:
        where = "" if number is None else f"claim {number}: "
        raise ExtractionError(f"{self._name} broke the rule {rule!r}: {where}{reason}", rule=rule)

    def _check_result(self, result: object) -> None:
        if not isinstance(result, ExtractionResult):
            self._refuse("result-type", f"it returned {type(result).__name__}")
        if not _all_are(result.claims, ExtractedClaim):
            self._refuse("result-type", "claims must be a tuple of ExtractedClaim")
        if not _all_are(result.diagnostics, Diagnostic):
            self._refuse("result-type", "diagnostics must be a tuple of Diagnostic")
        if type(result.abstained) is not bool or result.abstained is bool(result.claims):
            self._refuse("abstention", "it must send claims or abstain, and not both")
        if not isinstance(result.usage, Mapping) or not all(
            isinstance(key, str) and _is_number(value) and value >= 0
            for key, value in result.usage.items()
        ):
            self._refuse("usage", f"usage must map names to numbers, not {result.usage!r}")

    def _check_binding(self, number: int, claim: ExtractedClaim, context: EvidenceContext) -> None:
        if claim.evidence_id != context.evidence_id:
            self._refuse("evidence-id", f"it is bound to {claim.evidence_id!r}", number)
        if claim.evidence_digest != context.digest:
            self._refuse("evidence-digest", "it is bound to another text", number)
        if claim.span is None:
            if claim.quote is not None and claim.quote != context.content:
                self._refuse("quote", "without a span the quote must be the whole text", number)
            return
        if not _is_span(claim.span, len(context.content)):
            self._refuse(
                "span", f"{claim.span!r} in a text of {len(context.content)} characters", number
            )
        if claim.quote != context.content[claim.span[0] : claim.span[1]]:
            self._refuse("quote", "it is not the text of the span", number)

    def _check_values(self, number: int, claim: ExtractedClaim, context: EvidenceContext) -> None:
        for name in ("subject", "predicate", "object"):
            if not _is_filled(getattr(claim, name)):
                self._refuse("field", f"{name} must be text that is not blank", number)
        if not _is_number(claim.confidence) or not 0 <= claim.confidence <= 1:
            self._refuse("confidence", f"{claim.confidence!r} is not from 0 to 1", number)
        if claim.authority is not None:
            rank = self._ranks.get(claim.authority)
            if rank is None or not isinstance(claim.authority, Authority):
                self._refuse("authority", f"{claim.authority!r} is unknown", number)
            if rank < self._ranks[context.authority]:
                self._refuse(
                    "authority",
                    f"{claim.authority} is above the evidence's {context.authority}",
                    number,
                )
        if not isinstance(claim.polarity, Polarity):
            self._refuse("polarity", f"{claim.polarity!r} is unknown", number)
        if claim.cardinality not in (None, *get_args(Cardinality)):
            self._refuse("cardinality", f"{claim.cardinality!r} is unknown", number)
        self._check_validity(number, claim)

    def _check_validity(self, number: int, claim: ExtractedClaim) -> None:
        for bound in (claim.valid_from, claim.valid_to):
            if bound is not None and not _is_aware(bound):
                self._refuse("validity", f"{bound!r} is no datetime with a time zone", number)
        if (
            claim.valid_from is not None
            and claim.valid_to is not None
            and claim.valid_from >= claim.valid_to
        ):
            self._refuse("validity", "the interval must end after it begins", number)

    def _check_sequence(self, claims: Sequence[ExtractedClaim], length: int) -> None:
        previous = Span(0, 0)
        seen: set[tuple[object, ...]] = set()
        for number, claim in enumerate(claims, start=1):
            span = Span(0, length) if claim.span is None else Span(*claim.span)
            if span < previous:
                self._refuse("order", "its span lies before the one above", number)
            previous = span
            key = (
                _folded(claim.subject),
                _folded(claim.predicate),
                _folded(claim.object),
                claim.polarity,
                claim.span,
                claim.valid_from,
                claim.valid_to,
            )
            if key in seen:
                self._refuse("duplicate", "it was sent before on the same span", number)
            seen.add(key)


def _all_are(items: object, kind: type) -> bool:
    return isinstance(items, tuple) and all(isinstance(item, kind) for item in items)


def _is_span(span: object, length: int) -> bool:
    return (
        isinstance(span, tuple)
        and len(span) == 2
        and all(type(bound) is int for bound in span)
        and 0 <= span[0] < span[1] <= length
    )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _is_aware(value: object) -> bool:
    return isinstance(value, datetime) and value.utcoffset() is not None


def _is_filled(value: object) -> bool:
    if not isinstance(value, str) or not value.strip():
        return False
    return value.isascii() or _encodes(value)


def _encodes(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _folded(value: str) -> str:
    return " ".join(value.casefold().split())
