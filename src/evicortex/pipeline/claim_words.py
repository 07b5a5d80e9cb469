"""The words of a namespace's claims, in memory, in step with the ledger."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evicortex.ledger import NamespaceRow, Transaction
from evicortex.ledger.claim_texts import ClaimText, claim_texts, newest_claim
from evicortex.policy.claim_shares import combined
from evicortex.projections.claim_vectors import claim_text
from evicortex.text import content_terms

MAX_NAMESPACES = 256
"""Namespaces whose claims are kept in memory; the least recently asked goes first."""


@dataclass
class ClaimWords:
    """The terms of a namespace's claims, as far as they have been read."""

    generation: int
    newest: int = 0
    count: int = 0
    claims: list[ClaimText] = field(default_factory=list)
    postings: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, texts: Sequence[ClaimText]) -> None:
        """Take in claims that are newer than those held."""
        for claim in texts:
            words = claim_text(claim.subject, claim.predicate, claim.object)
            for term in dict.fromkeys(content_terms(words)):
                self.postings[term].append(len(self.claims))
            self.claims.append(claim)
            self.count += claim.seq != self.newest
            self.newest = claim.seq

    def places(self, seq: int) -> range:
        """Return where the claim with a number stands, once for each evidence it rests on."""
        first = bisect_left(self.claims, seq, key=_seq)
        return range(first, bisect_right(self.claims, seq, key=_seq))


def _seq(claim: ClaimText) -> int:
    return claim.seq


class ClaimWordsCache:
    """Claim words of every namespace of one open ledger; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[int, ClaimWords] = OrderedDict()

    def matches(
        self,
        tx: Transaction,
        ns: NamespaceRow,
        terms: Sequence[str],
        similar: Similar,
        visible: Visible | None = None,
    ) -> Matches:
        """Return claims that hold any of the terms or are similar to the question.

        Only claims that are ``visible`` exist here: none other is returned or counted in the
        weight of a word, so that what was asked then is answered the same later. Numbers of similar claims that this snapshot does not know are passed over.
        """
        newest = newest_claim(tx, ns)
        if newest == 0:
            return Matches((), 0)
        with self._lock:
            held = self._held.get(ns.namespace_id)
            if held is None or held.generation != ns.generation or held.newest > newest:
                held = ClaimWords(ns.generation)
                self._held[ns.namespace_id] = held
            if held.newest < newest:
                held.add(claim_texts(tx, ns, after=held.newest))
            self._held.move_to_end(ns.namespace_id)
            while len(self._held) > MAX_NAMESPACES:
                self._held.popitem(last=False)
            seen = None if visible is None else visible(held.claims)
            return Matches(_matches(held, terms, similar, seen), held.count)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


Seen = npt.NDArray[np.bool_]
Visible = Callable[[Sequence[ClaimText]], Seen]
"""Given claims, says for each whether the question may see it."""


class Similar(NamedTuple):
    """Numbers of claims that resemble the question, with their shares, most similar first.

    At most ``limit`` of those whose subject is ``wanted`` count.
    """

    shares: Iterable[tuple[int, float]]
    wanted: Callable[[str], bool]
    limit: int


@dataclass(frozen=True, slots=True)
class Match:
    """A claim, the share (0 to 1) of the question's idf mass that its words hold, and both signs.

    ``similarity`` is the share that its vector gives it; 0 without one.
    """

    claim: ClaimText
    words: float
    similarity: float

    @property
    def share(self) -> float:
        """The share of the question that the claim answers, by both signs."""
        return combined(self.words, self.similarity)


class Matches(NamedTuple):
    """What was found, and among how many claims."""

    items: Sequence[Match]
    claims: int


def _matches(
    held: ClaimWords, terms: Sequence[str], similar: Similar, seen: Seen | None
) -> list[Match]:
    total = len(held.claims) if seen is None else int(seen.sum())
    shares: dict[int, float] = defaultdict(float)
    mass = 0.0
    for term in dict.fromkeys(terms):
        found = held.postings.get(term, [])
        if seen is not None:
            found = [number for number in found if seen[number]]
        weight = math.log(1 + (total - len(found) + 0.5) / (len(found) + 0.5))
        mass += weight
        for number in found:
            shares[number] += weight
    alike = dict(_alike(held, similar, seen))
    return [
        Match(
            held.claims[number],
            shares[number] / mass if number in shares else 0.0,
            alike.get(number, 0.0),
        )
        for number in dict.fromkeys((*shares, *alike))
    ]


def _alike(held: ClaimWords, similar: Similar, seen: Seen | None) -> Iterator[tuple[int, float]]:
    left = similar.limit
    for seq, share in similar.shares:
        places = [
            number
            for number in held.places(seq)
            if (seen is None or seen[number]) and similar.wanted(held.claims[number].subject)
        ]
        if left == 0:
            return
        left -= bool(places)
        yield from ((place, share) for place in places)
