"""The words of a namespace's claims, in memory, in step with the ledger."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from evicortex.ledger import NamespaceRow, Transaction
from evicortex.ledger.claim_texts import ClaimText, claim_texts, newest_claim
from evicortex.text import content_terms

MAX_NAMESPACES = 256
"""Namespaces whose claims are kept in memory; the least recently asked goes first."""


@dataclass
class ClaimWords:
    """The terms of a namespace's claims, as far as they have been read."""

    generation: int
    newest: int = 0
    claims: list[ClaimText] = field(default_factory=list)
    postings: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, texts: Sequence[ClaimText]) -> None:
        """Take in claims that are newer than those held."""
        for claim in texts:
            words = f"{claim.subject} {claim.predicate.replace('_', ' ')} {claim.object}"
            for term in dict.fromkeys(content_terms(words)):
                self.postings[term].append(len(self.claims))
            self.claims.append(claim)
            self.newest = claim.seq


class ClaimWordsCache:
    """Claim words of every namespace of one open ledger; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[int, ClaimWords] = OrderedDict()

    def matches(self, tx: Transaction, ns: NamespaceRow, terms: Sequence[str]) -> list[Match]:
        """Return claims that hold any of the terms, with the share of idf mass they hold."""
        newest = newest_claim(tx, ns)
        if newest == 0:
            return []
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
            return _matches(held, terms)

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


@dataclass(frozen=True, slots=True)
class Match:
    """A claim, and the share (0 to 1) of the question's idf mass that its words hold."""

    claim: ClaimText
    share: float


def _matches(held: ClaimWords, terms: Sequence[str]) -> list[Match]:
    shares: dict[int, float] = defaultdict(float)
    mass = 0.0
    for term in dict.fromkeys(terms):
        found = held.postings.get(term, [])
        weight = math.log(1 + (len(held.claims) - len(found) + 0.5) / (len(found) + 0.5))
        mass += weight
        for number in found:
            shares[number] += weight
    return [Match(held.claims[number], share / mass) for number, share in shares.items()]
