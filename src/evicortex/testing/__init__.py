"""Public doubles and contract checks for those who write providers or test against EviCortex.

Doubles are deterministic and need no model. The checks run a provider through the wrappers that
the pipeline uses, and through what the wrappers cannot see in one call (order, batches, threads,
repetition); they raise ``ProviderContractError`` or the provider's own typed error::

    from evicortex.testing import check_embedder

    def test_my_embedder() -> None:
        check_embedder(MyEmbedder())
"""

from __future__ import annotations

from evicortex.testing.checks import (
    check_candidate_index,
    check_embedder,
    check_extractor,
    check_reranker,
    check_token_counter,
)
from evicortex.testing.clock import FixedClock
from evicortex.testing.embedders import (
    EMBEDDER_LIES,
    SPAN_LIES,
    DeterministicEmbedder,
    DeterministicSpanEmbedder,
    LyingEmbedder,
    LyingSpanEmbedder,
    RaisingEmbedder,
    SlowEmbedder,
    SymmetricEmbedder,
)
from evicortex.testing.extractors import (
    EXTRACTOR_LIES,
    LyingExtractor,
    RaisingExtractor,
    ScriptedExtractor,
)
from evicortex.testing.scorers import (
    RERANKER_LIES,
    LyingReranker,
    OverlapReranker,
    WordCounter,
)

__all__ = [
    "EMBEDDER_LIES",
    "EXTRACTOR_LIES",
    "RERANKER_LIES",
    "SPAN_LIES",
    "DeterministicEmbedder",
    "DeterministicSpanEmbedder",
    "FixedClock",
    "LyingEmbedder",
    "LyingExtractor",
    "LyingReranker",
    "LyingSpanEmbedder",
    "OverlapReranker",
    "RaisingEmbedder",
    "RaisingExtractor",
    "ScriptedExtractor",
    "SlowEmbedder",
    "SymmetricEmbedder",
    "WordCounter",
    "check_candidate_index",
    "check_embedder",
    "check_extractor",
    "check_reranker",
    "check_token_counter",
]
