"""Checked wrappers round every provider; the pipeline uses providers only through them.

A provider is untrusted. Each wrapper validates what comes back before anything is derived from
it, and turns a provider's failure into one typed error:

* ``ProviderContractError``: it returned something that breaks its contract;
* ``ProviderUnavailableError``: it raised or did not answer in time (the cause is kept);
* ``ExtractionError``: an extraction broke a rule, named by the error's ``rule``.

Typed errors that a provider raises itself (``ProviderError``, ``MissingExtraError``) pass
unchanged.
"""

from __future__ import annotations

from evicortex.validation.calls import checked_timeout, guarded
from evicortex.validation.candidates import MAX_RERANK, CheckedCandidateIndex, CheckedReranker
from evicortex.validation.embedding import (
    CheckedEmbedder,
    EmbeddedBatch,
    EmbeddedSpans,
    RowError,
)
from evicortex.validation.extraction import CheckedExtractor
from evicortex.validation.profiles import profile_digest, span_profile_digest, validate_profile
from evicortex.validation.tokens import CheckedTokenCounter

__all__ = [
    "MAX_RERANK",
    "CheckedCandidateIndex",
    "CheckedEmbedder",
    "CheckedExtractor",
    "CheckedReranker",
    "CheckedTokenCounter",
    "EmbeddedBatch",
    "EmbeddedSpans",
    "RowError",
    "checked_timeout",
    "guarded",
    "profile_digest",
    "span_profile_digest",
    "validate_profile",
]
