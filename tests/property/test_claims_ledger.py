"""Claims in a real ledger against a plain oracle that replays what was done, at random times."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from evicortex.ledger import Ledger, LedgerOptions, NamespaceRow, Transaction, claims
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.evidence import Added, CheckedDraft
from evicortex.types import ClaimDraft, ClaimStatus

ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
USERS = ("alice", "bob")
RANKS = {"user": 2, "assistant": 1, "document": 0}


def moment(number: int) -> datetime:
    return ORIGIN + timedelta(days=number)


class Hand:
    """A clock that stands where it was put."""

    def __init__(self) -> None:
        self.number = 0

    def now(self) -> datetime:
        return moment(self.number)


class Say(NamedTuple):
    who: str
    place: str
    negative: bool
    authority: str
    start: int
    end: int | None


class Retract(NamedTuple):
    which: int


class Purge(NamedTuple):
    which: int


class Fact(NamedTuple):
    claim_id: str
    said: Say
    recorded: int


Step = Say | Retract | Purge

says = st.builds(
    Say,
    st.sampled_from(USERS),
    st.sampled_from(("Berlin", "Lisbon", "Rome")),
    st.sampled_from((False, False, False, True)),
    st.sampled_from(tuple(RANKS)),
    st.integers(0, 6),
    st.none() | st.integers(7, 9),
)
steps = st.lists(
    says
    | says
    | says
    | st.builds(Retract, st.integers(0, 7))
    | st.builds(Purge, st.integers(0, 7)),
    max_size=10,
)


class Played:
    """What was done to a ledger, and the naive answers."""

    def __init__(self, ledger: Ledger, clock: Hand) -> None:
        self.ledger = ledger
        self.clock = clock
        self.facts: list[Fact] = []
        self.retracted: dict[str, int] = {}
        self.purged: set[str] = set()

    def play(self, script: Sequence[Step]) -> None:
        for number, step in enumerate(script, start=1):
            self.clock.number = number
            with self.ledger.write() as tx:
                if isinstance(step, Say):
                    self._say(tx, step)
                elif step.which < len(self.facts):
                    fact = self.facts[step.which]
                    if fact.claim_id not in self.purged:
                        self._take_away(tx, step, fact)

    def _say(self, tx: Transaction, said: Say) -> None:
        ns = space(tx, said.who)
        draft = CheckedDraft("text", authority=said.authority)
        (added,) = evidence_ledger.add(tx, ns, [draft])
        assert isinstance(added, Added)
        (claim_id,) = claims.add(
            tx,
            ns,
            evidence_ledger.get(tx, ns, added.evidence_id),
            [
                ClaimDraft(
                    "Alice",
                    "lives_in",
                    said.place,
                    polarity="negative" if said.negative else "positive",
                    valid_from=moment(said.start),
                    valid_to=None if said.end is None else moment(said.end),
                )
            ],
        )
        self.facts.append(Fact(claim_id, said, self.clock.number))

    def _take_away(self, tx: Transaction, step: Retract | Purge, fact: Fact) -> None:
        ns = space(tx, fact.said.who)
        now = self.clock.number
        before = self.held(fact.said.who, now, None)
        if isinstance(step, Retract):
            receipt = claims.retract(tx, ns, fact.claim_id, reason="wrong")
            assert receipt.created is (fact.claim_id not in self.retracted)
            self.retracted.setdefault(fact.claim_id, now)
            told = receipt.reinstated
        else:
            rows = [
                row[0]
                for row in tx.connection.execute(
                    "SELECT row_id FROM claim_evidence WHERE claim_id = ?", (fact.claim_id,)
                )
            ]
            removed = claims.remove(tx, ns, rows)
            assert removed.claim_ids == (fact.claim_id,)
            self.purged.add(fact.claim_id)
            told = removed.reinstated
        assert set(told) == self.held(fact.said.who, now, None) - before

    def held(self, who: str, as_of: int, known_at: int | None) -> set[str]:
        def known(at: int) -> bool:
            return known_at is None or at <= known_at

        def later(a: Fact, b: Fact) -> bool:
            return (a.said.start, a.recorded) > (b.said.start, b.recorded)

        def opposed(a: Say, b: Say) -> bool:
            if a.place == b.place:
                return a.negative is not b.negative
            return not a.negative and not b.negative

        active = [
            fact
            for fact in self.facts
            if fact.said.who == who
            and fact.claim_id not in self.purged
            and known(fact.recorded)
            and not (fact.claim_id in self.retracted and known(self.retracted[fact.claim_id]))
            and fact.said.start <= as_of
            and (fact.said.end is None or as_of < fact.said.end)
        ]
        found: set[str] = set()
        for rank in (2, 1, 0):
            above = [f for f in active if f.claim_id in found]
            for fact in active:
                rivals = [f for f in active if opposed(f.said, fact.said)]
                ended = any(RANKS[f.said.authority] >= rank and later(f, fact) for f in rivals)
                overridden = any(f in rivals for f in above)
                if RANKS[fact.said.authority] == rank and not ended and not overridden:
                    found.add(fact.claim_id)
        return found


def space(tx: Transaction, name: str) -> NamespaceRow:
    found = tx.namespace(name, create=tx.writable)
    assert found is not None
    return found


@settings(max_examples=80, deadline=None)
@given(
    steps,
    st.lists(
        st.tuples(st.integers(-1, 11), st.none() | st.integers(0, 11)), min_size=1, max_size=6
    ),
)
def test_every_read_agrees_with_the_replayed_story(
    script: list[Step], questions: list[tuple[int, int | None]]
) -> None:
    clock = Hand()
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger.open(
            Path(folder) / "memory.db", clock=clock, options=LedgerOptions(synchronous="NORMAL")
        ) as ledger,
    ):
        played = Played(ledger, clock)
        played.play(script)
        with ledger.read() as tx:
            for who in USERS:
                ns = tx.namespace(who)
                if ns is None:
                    continue
                for as_of, known_at in questions:
                    check(tx, ns, played, as_of, known_at)
                assert list(claims.problems(tx, ns)) == []


def check(
    tx: Transaction, ns: NamespaceRow, played: Played, as_of: int, known_at: int | None
) -> None:
    times = {
        "as_of": moment(as_of),
        "known_at": None if known_at is None else moment(known_at),
    }
    expected = played.held(ns.name, as_of, known_at)
    held = claims.list_claims(tx, ns, **times)  # type: ignore[arg-type]
    assert {claim.claim_id for claim in held} == expected
    told = claims.history(tx, ns, "ALICE", "lives_in", **times)  # type: ignore[arg-type]
    assert {c.claim_id for c in told} == {
        fact.claim_id
        for fact in played.facts
        if fact.said.who == ns.name
        and fact.claim_id not in played.purged
        and (known_at is None or fact.recorded <= known_at)
    }
    facts = {fact.claim_id: fact for fact in played.facts}
    for claim in told:
        fact = facts[claim.claim_id]
        assert claim.asserted_from == moment(fact.said.start)
        assert claim.asserted_to == (None if fact.said.end is None else moment(fact.said.end))
        assert claim.recorded_at == moment(fact.recorded)
        inside = (
            claim.valid_from is not None
            and claim.valid_from <= moment(as_of)
            and (claim.valid_to is None or moment(as_of) < claim.valid_to)
        )
        assert inside is (claim.claim_id in expected)
    ids = [claim.derivations[0].evidence_id for claim in told]
    by_evidence = claims.of_evidence(tx, ns, ids, **times)  # type: ignore[arg-type]
    assert {c for group in by_evidence.values() for c in group} == set(told)
    rows = evidence_ledger.row_ids_of(tx, ns, ids)
    gone = claims.superseded_evidence(tx, ns, rows, **times)  # type: ignore[arg-type]
    ended = {c.claim_id: c for c in told if c.status is ClaimStatus.SUPERSEDED}
    assert {i for i, row in zip(ids, rows, strict=True) if row in gone} == {
        c.derivations[0].evidence_id for c in ended.values()
    }
    for end in gone.values():
        assert end.claim_ids
        assert set(end.evidence_ids) == set(claims.evidence_of(tx, ns, end.claim_ids).values())
