"""Which claims are held: the rule of :mod:`evicortex.validity`, for whole groups at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from evicortex.types import Authority, Cardinality, ClaimStatus, Polarity
from evicortex.validity.authority import DEFAULT_ORDER, AuthorityOrder
from evicortex.validity.times import MAX_MICROS

_CARDINALITIES: Final[tuple[Cardinality, ...]] = ("single", "multi")


class Assertion(NamedTuple):
    """A claim as it was recorded, and its retraction. Texts are match keys, times microseconds.

    ``position`` is its place in the order of recording; unique within a namespace.
    """

    claim_id: str
    position: int
    subject: str
    predicate: str
    value: str
    polarity: Polarity
    cardinality: Cardinality
    authority: Authority
    valid_from: int
    valid_to: int | None
    recorded_at: int
    retracted_at: int | None = None


class ClaimState(NamedTuple):
    """What a claim is at ``as_of`` with the knowledge of ``known_at``.

    ``[valid_from, valid_to)`` is the longest stretch of time around ``as_of`` in which it is
    held, else the first such stretch; both are equal (an empty interval at the asserted start)
    when it is held at no time. ``superseded_by`` names the claim that ends it: of those that
    supersede it at ``as_of`` the one that starts first; of these the one of highest authority,
    then the one recorded last. ``conflicts_with`` names the claims of other authority that
    contradict it and neither supersede it nor are superseded; ``corroborated_by`` those that say
    the same and share its fate. ``superseded_at`` is since when the ledger has known what ends,
    overrides or retracts it, and never before its own recording.
    """

    claim_id: str
    status: ClaimStatus
    valid_from: int
    valid_to: int | None
    superseded_by: tuple[str, ...] = ()
    conflicts_with: tuple[str, ...] = ()
    corroborated_by: tuple[str, ...] = ()
    superseded_at: int | None = None


class Conflict(NamedTuple):
    """A claim that a held claim of higher authority overrides, first on ``[from, to)``."""

    claim: Assertion
    overridden_by: Assertion
    valid_from: int
    valid_to: int | None


def resolve(
    assertions: Iterable[Assertion],
    *,
    as_of: int,
    known_at: int | None = None,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> dict[str, ClaimState]:
    """Return the state of every assertion that was recorded at or before ``known_at``, by id.

    Times are microseconds; ``known_at`` ``None`` is everything recorded. The assertions may be
    of many groups, in any order, but each group must be complete. About n log n in each group.
    """
    states: dict[str, ClaimState] = {}
    for group in _groups(assertions, known_at, order):
        states.update(_Moment(group, as_of).states())
    return states


def conflicts(
    assertions: Iterable[Assertion],
    *,
    known_at: int | None = None,
    order: AuthorityOrder = DEFAULT_ORDER,
) -> Iterator[Conflict]:
    """Yield every pair in which, at some time, a held claim overrides one that stands against it.

    The groups come in the order of their first assertion.
    """
    for group in _groups(assertions, known_at, order):
        yield from group.conflicts()


def _groups(
    assertions: Iterable[Assertion], known_at: int | None, order: AuthorityOrder
) -> Iterator[_Group]:
    members: dict[tuple[str, str], list[Assertion]] = {}
    for assertion in assertions:
        if known_at is None or assertion.recorded_at <= known_at:
            members.setdefault((assertion.subject, assertion.predicate), []).append(assertion)
    for group in members.values():
        yield _Group(group, known_at, order)


def _contradicts(winner: Assertion, value: str, polarity: Polarity) -> bool:
    if winner.polarity is not polarity:
        return winner.value == value
    single = winner.polarity is Polarity.POSITIVE and winner.cardinality == "single"
    return single and winner.value != value


class _Ground:
    """Which time is taken, and by which values.

    Time is a bit mask over the elementary intervals of a group: bit i is set when the i-th is
    taken. ``taken`` is what any single-valued claim takes, ``contested`` what two values take.
    """

    __slots__ = ("affirmed", "contested", "denied", "exclusive", "taken")

    def __init__(self) -> None:
        self.affirmed: dict[str, int] = {}
        self.denied: dict[str, int] = {}
        self.exclusive: dict[str, int] = {}
        self.taken = 0
        self.contested = 0

    def add(self, claim: Assertion, mask: int) -> None:
        """Let a claim take the time of ``mask``."""
        if claim.polarity is Polarity.NEGATIVE:
            self.denied[claim.value] = self.denied.get(claim.value, 0) | mask
            return
        self.affirmed[claim.value] = self.affirmed.get(claim.value, 0) | mask
        if claim.cardinality == "single":
            own = self.exclusive.get(claim.value, 0)
            self.contested |= mask & self.taken & ~own
            self.taken |= mask
            self.exclusive[claim.value] = own | mask

    def against(self, claim: Assertion) -> int:
        """Return the time taken by what contradicts ``claim``."""
        if claim.polarity is Polarity.NEGATIVE:
            return self.affirmed.get(claim.value, 0)
        others = self.contested | (self.taken & ~self.exclusive.get(claim.value, 0))
        return others | self.denied.get(claim.value, 0)


_Key = tuple[int, ...]


class _Least:
    """The least key among the claims added so far that contradict a given one.

    ``first`` is the least of the single-valued claims, ``second`` the least of another value.
    """

    __slots__ = ("affirmed", "denied", "first", "second")

    def __init__(self) -> None:
        self.affirmed: dict[str, _Key] = {}
        self.denied: dict[str, _Key] = {}
        self.first: tuple[_Key, str] | None = None
        self.second: tuple[_Key, str] | None = None

    def add(self, claim: Assertion, key: _Key) -> None:
        """Add a claim under its key."""
        positive = claim.polarity is Polarity.POSITIVE
        side = self.affirmed if positive else self.denied
        side[claim.value] = min(key, side.get(claim.value, key))
        if not positive or claim.cardinality == "multi":
            return
        entry = (key, claim.value)
        if self.first is None or key < self.first[0]:
            if self.first is not None and self.first[1] != claim.value:
                self.second = self.first
            self.first = entry
        elif self.first[1] != claim.value and (self.second is None or key < self.second[0]):
            self.second = entry

    def against(self, claim: Assertion) -> _Key:
        """Return the least key of what contradicts ``claim``; at least one claim must."""
        if claim.polarity is Polarity.NEGATIVE:
            return self.affirmed[claim.value]
        other = self.second if self.first and self.first[1] == claim.value else self.first
        found = [other[0]] if other else []
        if claim.value in self.denied:
            found.append(self.denied[claim.value])
        return min(found)


class _Group:
    """The known assertions of one subject and predicate, and when each of them is held.

    ``active`` is sorted by start and recording; ``ranks``, ``standing`` (the time in which
    nothing supersedes the claim) and ``held`` run beside it. Masks are those of ``_Ground``.
    """

    def __init__(
        self, members: Sequence[Assertion], known_at: int | None, order: AuthorityOrder
    ) -> None:
        self.retracted: list[Assertion] = []
        self.active: list[Assertion] = []
        for claim in members:
            gone = claim.retracted_at is not None and (
                known_at is None or claim.retracted_at <= known_at
            )
            (self.retracted if gone else self.active).append(claim)
        self.active.sort(key=lambda claim: (claim.valid_from, claim.position))
        self.ranks = [order.ranks[claim.authority] for claim in self.active]
        self.levels = sorted(set(self.ranks))
        ends = {claim.valid_to for claim in self.active if claim.valid_to is not None}
        self.bounds = sorted(ends.union(claim.valid_from for claim in self.active))
        self.standing = self._standing()
        self.held = self._held()

    def _standing(self) -> list[int]:
        index = {bound: i for i, bound in enumerate(self.bounds)}
        masks = [
            (1 << (len(index) if claim.valid_to is None else index[claim.valid_to]))
            - (1 << index[claim.valid_from])
            for claim in self.active
        ]
        standing = masks.copy()
        for level in self.levels:
            later = _Ground()
            for i in range(len(masks) - 1, -1, -1):
                if self.ranks[i] == level:
                    standing[i] &= ~later.against(self.active[i])
                if self.ranks[i] >= level:
                    later.add(self.active[i], masks[i])
        return standing

    def _held(self) -> list[int]:
        held = self.standing.copy()
        for level in reversed(self.levels[:-1]):
            earlier = _Ground()
            for i, claim in enumerate(self.active):
                if self.ranks[i] == level:
                    held[i] &= ~earlier.against(claim)
                elif self.ranks[i] > level:
                    earlier.add(claim, held[i])
        return held

    def stretch(self, mask: int, at: int) -> tuple[int, int | None]:
        """Return the run of a mask that holds elementary interval ``at``, else its first run."""
        if at >= 0 and mask >> at & 1:
            start = (~mask & ((1 << at) - 1)).bit_length()
        else:
            start = (mask & -mask).bit_length() - 1
        run = mask >> start
        end = start + (~run & (run + 1)).bit_length() - 1
        return self.bounds[start], self.bounds[end] if end < len(self.bounds) else None

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the pairs in which a held claim overrides one that nothing supersedes then."""
        sides: dict[tuple[str, Polarity], list[int]] = {}
        for i, claim in enumerate(self.active):
            sides.setdefault((claim.value, claim.polarity), []).append(i)
        for i, claim in enumerate(self.active):
            if self.ranks[i] > self.levels[0]:
                rivals = [
                    j
                    for (value, polarity), side in sides.items()
                    if _contradicts(claim, value, polarity)
                    for j in side
                    if self.ranks[j] < self.ranks[i] and self.held[i] & self.standing[j]
                ]
                for j in sorted(rivals):
                    start, end = self.stretch(self.held[i] & self.standing[j], -1)
                    yield Conflict(self.active[j], claim, start, end)


class _Statement(NamedTuple):
    rank: int
    value: str
    polarity: Polarity
    cardinality: Cardinality


class _Camp(NamedTuple):
    """Claims by start, and when the first held one of them was recorded."""

    ids: tuple[str, ...]
    known: int


def _opposed(
    statements: Collection[_Statement], levels: Sequence[int]
) -> Iterator[tuple[_Statement, _Statement]]:
    """Yield (winner, loser) for statements of which the one of higher rank contradicts the other."""
    if len(levels) < 2:
        return
    for winner in statements:
        negative = winner.polarity is Polarity.NEGATIVE
        opposite = Polarity.POSITIVE if negative else Polarity.NEGATIVE
        for rank in levels[: levels.index(winner.rank)]:
            for cardinality in _CARDINALITIES:
                loser = _Statement(rank, winner.value, opposite, cardinality)
                if loser in statements:
                    yield winner, loser
        if not negative and winner.cardinality == "single":
            for loser in statements:
                positive = loser.polarity is Polarity.POSITIVE
                if positive and loser.rank < winner.rank and loser.value != winner.value:
                    yield winner, loser


class _Moment:
    """A group looked at from ``as_of``; lists run beside the group's ``active``."""

    def __init__(self, group: _Group, as_of: int) -> None:
        self.group = group
        self.as_of = as_of
        self.at = bisect_right(group.bounds, as_of) - 1
        self.bit = 1 << self.at if self.at >= 0 else 0
        self.statuses = [self._status(i) for i in range(len(group.active))]
        self.ended: dict[int, tuple[str, int]] = {}
        self.conflicting: dict[int, tuple[str, ...]] = {}
        self.overridden_at: dict[int, int] = {}

    def _status(self, i: int) -> ClaimStatus:
        claim = self.group.active[i]
        if self.as_of < claim.valid_from:
            return ClaimStatus.FUTURE
        if claim.valid_to is not None and claim.valid_to <= self.as_of:
            return ClaimStatus.EXPIRED
        if self.group.held[i] & self.bit:
            return ClaimStatus.HELD
        if self.group.standing[i] & self.bit:
            return ClaimStatus.CONFLICTING
        return ClaimStatus.SUPERSEDED

    def states(self) -> Iterator[tuple[str, ClaimState]]:
        """Yield the state of every claim of the group by its id."""
        for claim in self.group.retracted:
            yield (
                claim.claim_id,
                ClaimState(
                    claim.claim_id,
                    ClaimStatus.RETRACTED,
                    claim.valid_from,
                    claim.valid_from,
                    superseded_at=claim.retracted_at,
                ),
            )
        self._find_ends()
        self._find_conflicts()
        agreeing = self._agreeing()
        for i, claim in enumerate(self.group.active):
            held = self.group.held[i]
            start, end = (
                self.group.stretch(held, self.at) if held else (claim.valid_from, claim.valid_from)
            )
            ender, known = self.ended.get(i, (None, self.overridden_at.get(i)))
            yield (
                claim.claim_id,
                ClaimState(
                    claim.claim_id,
                    self.statuses[i],
                    start,
                    end,
                    superseded_by=() if ender is None else (ender,),
                    conflicts_with=self.conflicting.get(i, ()),
                    corroborated_by=agreeing.get(i, ()),
                    superseded_at=None if known is None else max(known, claim.recorded_at),
                ),
            )

    def _find_ends(self) -> None:
        """Find what ends each superseded claim, and since when the ledger has known that."""
        superseded = {i for i, s in enumerate(self.statuses) if s is ClaimStatus.SUPERSEDED}
        past = (ClaimStatus.FUTURE, ClaimStatus.EXPIRED)
        covering = [i for i, s in enumerate(self.statuses) if s not in past]
        by_position = {self.group.active[i].position: i for i in covering}
        for level in {self.group.ranks[i] for i in superseded}:
            nearest, known = _Least(), _Least()
            for i in reversed(covering):
                claim, rank = self.group.active[i], self.group.ranks[i]
                if rank == level and i in superseded:
                    position = -nearest.against(claim)[-1]
                    ender = self.group.active[by_position[position]]
                    self.ended[i] = ender.claim_id, known.against(claim)[0]
                if rank >= level:
                    nearest.add(claim, (claim.valid_from, -rank, -claim.position))
                    known.add(claim, (claim.recorded_at,))

    def _find_conflicts(self) -> None:
        """Find who contradicts whom by authority alone, among the claims that stand.

        Claims of one rank, value, polarity and cardinality have the same opponents, so these are
        looked up once for all of them. The single-valued claims of one rank that stand agree, so
        few statements contradict many others and the work stays near linear.
        """
        stand = (ClaimStatus.HELD, ClaimStatus.CONFLICTING)
        statements: dict[_Statement, list[int]] = {}
        for i, claim in enumerate(self.group.active):
            if self.statuses[i] in stand:
                key = _Statement(
                    self.group.ranks[i], claim.value, claim.polarity, claim.cardinality
                )
                statements.setdefault(key, []).append(i)
        higher: dict[_Statement, list[_Statement]] = {}
        lower: dict[_Statement, list[_Statement]] = {}
        for winner, loser in _opposed(statements, self.group.levels):
            higher.setdefault(loser, []).append(winner)
            lower.setdefault(winner, []).append(loser)
        camps: dict[tuple[_Statement, ...], _Camp] = {}
        for statement in higher.keys() | lower.keys():
            above, below = (tuple(side.get(statement, ())) for side in (higher, lower))
            for camp in (above, below):
                if camp not in camps:
                    camps[camp] = self._camp(i for other in camp for i in statements[other])
            for i in statements[statement]:
                # What stands above is earlier, what stands below is later: else one would end.
                self.conflicting[i] = camps[above].ids + camps[below].ids
                if self.statuses[i] is ClaimStatus.CONFLICTING:
                    self.overridden_at[i] = camps[above].known

    def _camp(self, members: Iterable[int]) -> _Camp:
        rows = sorted(members)
        claims = [self.group.active[i] for i in rows]
        held = (
            claim.recorded_at
            for i, claim in zip(rows, claims, strict=True)
            if self.statuses[i] is ClaimStatus.HELD
        )
        return _Camp(tuple(claim.claim_id for claim in claims), min(held, default=MAX_MICROS))

    def _agreeing(self) -> dict[int, tuple[str, ...]]:
        """Return for each claim the others of its value that stand, or fell to the same claim."""
        parties: dict[tuple[str, Polarity, str | None], list[int]] = {}
        for i, status in enumerate(self.statuses):
            if status not in (ClaimStatus.FUTURE, ClaimStatus.EXPIRED):
                claim = self.group.active[i]
                ender = self.ended[i][0] if i in self.ended else None
                parties.setdefault((claim.value, claim.polarity, ender), []).append(i)
        others: dict[int, tuple[str, ...]] = {}
        for party in parties.values():
            ids = tuple(self.group.active[i].claim_id for i in party)
            for n, i in enumerate(party):
                others[i] = ids[:n] + ids[n + 1 :]
        return others
