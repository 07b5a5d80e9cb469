"""Pure bi-temporal rules: times, who outranks whom, and which claims are held.

Two times are kept apart: *valid* time, when a claim is true in the world (asked with ``as_of``),
and *recorded* time, when the ledger learned of it (asked with ``known_at``). Inside, times are
integers: microseconds since 1970-01-01T00:00Z, so that no arithmetic rounds. Intervals are
half-open ``[from, to)``; ``None`` as an end is "until further notice".

The rule, for claims of one group (same subject, same predicate), is pointwise and does not
depend on the order of arrival. At the time t, with the knowledge k:

- a claim is *active* when it was recorded at or before k and not retracted at or before k;
- two active claims *contradict* each other when they give the same value with opposite
  polarity, or when both are positive with different values and the one that wins the pair is
  single-valued;
- d *supersedes* c when both cover t, they contradict each other, d is later (greater
  ``valid_from``, then recorded later) and its authority is not lower;
- d *overrides* c when both cover t, they contradict each other, d is not later but its authority
  is higher, and d is itself held;
- a claim is *held* when it covers t and nothing supersedes or overrides it.

So a later start closes an earlier claim however late its text arrives, old news never becomes
current, equal values corroborate, and taking a claim away (retraction, purge) gives back what it
had closed. The model is the valid-time and transaction-time pair of Snodgrass and Ahn, "A
taxonomy of time in databases", SIGMOD 1985.
"""

from evicortex.validity.authority import DEFAULT_ORDER, AuthorityOrder
from evicortex.validity.predicates import PredicateRegistry, match_key, predicate_key
from evicortex.validity.resolution import Assertion, ClaimState, Conflict, conflicts, resolve
from evicortex.validity.times import (
    MAX_MICROS,
    MIN_MICROS,
    check_interval,
    format_utc,
    from_micros,
    overlaps,
    to_micros,
    to_utc,
)

__all__ = [
    "DEFAULT_ORDER",
    "MAX_MICROS",
    "MIN_MICROS",
    "Assertion",
    "AuthorityOrder",
    "ClaimState",
    "Conflict",
    "PredicateRegistry",
    "check_interval",
    "conflicts",
    "format_utc",
    "from_micros",
    "match_key",
    "overlaps",
    "predicate_key",
    "resolve",
    "to_micros",
    "to_utc",
]
