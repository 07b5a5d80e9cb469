"""The rooms of one open cortex, and how they are connected."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial

from evicortex.errors import InputError
from evicortex.ledger import Ledger, LedgerOptions
from evicortex.pipeline.claim_words import ClaimWordsCache
from evicortex.policy.aliases import Address, addresses
from evicortex.policy.claim_shares import ClaimSimilarity
from evicortex.policy.fusion import FusionWeights
from evicortex.policy.packing import PackingPolicy
from evicortex.policy.pieces import PiecesOf, pieces
from evicortex.policy.query import QueryPolicy
from evicortex.policy.ranking import Ranker
from evicortex.policy.ranking_features import TURN_LOOKS, turn_looks
from evicortex.policy.support import Calibration, SupportPolicy
from evicortex.projections.lexical import LexicalOptions, LexicalProjection
from evicortex.projections.literal import LiteralOptions
from evicortex.projections.notes import TextNotes
from evicortex.projections.resident import ResidentOptions, ResidentRows
from evicortex.projections.semantic import SemanticOptions, SemanticProjection
from evicortex.projections.sentences import SentenceProjection
from evicortex.projections.text_numbers import TextNumbers
from evicortex.projections.times import TimeProjection
from evicortex.protocols import Clock
from evicortex.text.times.mentions import FINDER, find_times
from evicortex.types import TimeInput
from evicortex.validation import (
    CheckedEmbedder,
    CheckedExtractor,
    CheckedReranker,
    CheckedTokenCounter,
    checked_timeout,
)
from evicortex.validity import DEFAULT_ORDER, AuthorityOrder, PredicateRegistry, to_utc


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the present as an aware UTC datetime."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """How much a recall looks at.

    ``candidates`` best rows go on to packing at least, and one more for every
    ``tokens_per_candidate`` tokens of the budget; the best
    ``claim_candidates`` subjects and predicates of which something is held are used, and no more
    than ``claim_cap`` looked at for them.
    """

    candidates: int = 64
    tokens_per_candidate: int = 12
    claim_candidates: int = 64
    claim_cap: int = 512

    def __post_init__(self) -> None:
        counts = (
            self.candidates,
            self.tokens_per_candidate,
            self.claim_candidates,
            self.claim_cap,
        )
        if min(counts) < 1:
            raise InputError("recall options are counts of at least 1")


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """How long an extractor may take for one evidence.

    ``timeout_seconds`` is wall time; ``None`` waits for ever. An extractor behind a network has
    bounds of its own; this one holds for every extractor.
    """

    timeout_seconds: float | None = 300.0

    def __post_init__(self) -> None:
        checked_timeout(self.timeout_seconds)


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """How long one call of an embedder and of a reranker may take, in seconds of wall time.

    An embedder is given at most 128 texts a call, a reranker 16; ``None`` waits for ever. A call
    whose time is up has failed: recall goes on without it, and evidence stays to be embedded.
    """

    embedding_timeout_seconds: float | None = 300.0
    rerank_timeout_seconds: float | None = 60.0

    def __post_init__(self) -> None:
        checked_timeout(self.embedding_timeout_seconds)
        checked_timeout(self.rerank_timeout_seconds)


@dataclass(frozen=True, slots=True)
class RoomOptions:
    """Everything the rooms can be told, composed by ``settings``."""

    ledger: LedgerOptions = field(default_factory=LedgerOptions)
    resident: ResidentOptions = field(default_factory=ResidentOptions)
    lexical: LexicalOptions = field(default_factory=LexicalOptions)
    literal: LiteralOptions = field(default_factory=LiteralOptions)
    semantic: SemanticOptions = field(default_factory=SemanticOptions)
    query: QueryPolicy = field(default_factory=QueryPolicy)
    claims: ClaimSimilarity = field(default_factory=ClaimSimilarity)
    fusion: FusionWeights = field(default_factory=FusionWeights)
    packing: PackingPolicy = field(default_factory=PackingPolicy)
    support: SupportPolicy = field(default_factory=SupportPolicy)
    calibration: Calibration | None = None
    recall: RecallOptions = field(default_factory=RecallOptions)
    extraction: ExtractionOptions = field(default_factory=ExtractionOptions)
    providers: ProviderOptions = field(default_factory=ProviderOptions)
    predicates: PredicateRegistry = field(default_factory=PredicateRegistry)
    authorities: AuthorityOrder = DEFAULT_ORDER


class Rooms:
    """One open cortex: the ledger, its projections, and checked providers.

    ``embedder`` is made when it is first needed, so that reading claims does not load a model.
    """

    def __init__(
        self,
        ledger: Ledger,
        options: RoomOptions,
        clock: Clock,
        counter: CheckedTokenCounter,
        *,
        embedder: Callable[[], CheckedEmbedder | str],
        extractor: CheckedExtractor | None = None,
        reranker: CheckedReranker | None = None,
    ) -> None:
        self.ledger = ledger
        self.options = options
        self.clock = clock
        self.counter = counter
        self.extractor = extractor
        self.reranker = reranker
        self.resident = ResidentRows(options.resident)
        self.lexical = LexicalProjection(options.lexical)
        self.semantic = SemanticProjection(options.semantic)
        self.sentences = SentenceProjection()
        dates = options.query.dates
        self.times = TimeProjection(
            partial(find_times, options=dates), f"{FINDER}-{dates.identity}"
        )
        self.addresses: TextNotes[Address] = TextNotes(address_notes)
        self.looks = TextNumbers(turn_looks, len(TURN_LOOKS))
        self.pieces = PiecesCache()
        self.ranker: Ranker | None = None
        """Another ranker than the bundled one."""
        self.claim_words = ClaimWordsCache()
        self.people = PeopleCache()
        self._make_embedder = embedder
        self._embedder: CheckedEmbedder | str | None = None
        self._lock = threading.Lock()

    def _resolved(self) -> CheckedEmbedder | str:
        with self._lock:
            if self._embedder is None:
                self._embedder = self._make_embedder()
            return self._embedder

    @property
    def embedder(self) -> CheckedEmbedder | None:
        """The encoder, or ``None`` when the semantic channel is off."""
        found = self._resolved()
        return None if isinstance(found, str) else found

    @property
    def ranks_closer(self) -> bool:
        """Whether the learned ranker is on: it needs vectors of a semantic encoder."""
        embedder = self.embedder
        return embedder is not None and embedder.profile.semantic and self.options.fusion.ranker

    @property
    def semantic_off_because(self) -> str:
        """Why there is no encoder; empty when there is one."""
        found = self._resolved()
        return found if isinstance(found, str) else ""

    def close(self) -> None:
        """Let go of caches and of the file."""
        self.lexical.close()
        self.semantic.drop()
        self.resident.drop()
        self.addresses.close()
        self.looks.close()
        self.pieces.clear()
        self.claim_words.close()
        self.people.clear()
        self.ledger.close()


@dataclass(frozen=True, slots=True)
class People:
    """Actors that the allowed rows know: id to name, and case-folded alias to id."""

    names: Mapping[int, str]
    aliases: Mapping[str, int]


class PeopleCache:
    """The people of whole namespaces, until a row is added or removed."""

    _LIMIT = 1_024

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[int, tuple[tuple[int, int], People]] = OrderedDict()

    def get(self, namespace_id: int, state: tuple[int, int], make: Callable[[], People]) -> People:
        """Return the people of a namespace in this state (generation, rows)."""
        with self._lock:
            held = self._held.get(namespace_id)
        if held is not None and held[0] == state:
            return held[1]
        found = make()
        with self._lock:
            self._held[namespace_id] = (state, found)
            self._held.move_to_end(namespace_id)
            while len(self._held) > self._LIMIT:
                self._held.popitem(last=False)
        return found

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


class PiecesCache:
    """The pieces of texts of the namespaces asked last: what is asked about is asked about again.

    A purge begins another generation of its namespace, and the first reader that sees it lets go
    of everything that is remembered of the one before.
    """

    _NAMESPACES = 32
    _TEXTS = 2_048

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[int, tuple[int, PiecesOf]] = OrderedDict()

    def of(self, namespace_id: int, generation: int) -> PiecesOf:
        """Return ``pieces`` with a memory; without one for a reader of an older snapshot."""
        with self._lock:
            held = self._held.get(namespace_id)
            if held is not None and held[0] > generation:
                return pieces
            if held is None or held[0] < generation:
                held = self._held[namespace_id] = (generation, lru_cache(self._TEXTS)(pieces))
            self._held.move_to_end(namespace_id)
            while len(self._held) > self._NAMESPACES:
                self._held.popitem(last=False)
            return held[1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


def address_notes(row: int, actor: int, text: str) -> list[Address]:
    """Return the addresses in one text; evidence without an actor addresses nobody known."""
    return addresses(row, actor, text) if actor else []


def moment(value: TimeInput | None, name: str, default: datetime) -> datetime:
    """Return an aware UTC datetime, or ``default``; errors as ``validity.to_utc``."""
    asked = to_utc(value, name)
    return default if asked is None else asked
