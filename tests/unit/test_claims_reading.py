from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evicortex.errors import CorruptLedgerError, InvalidTextError
from evicortex.ledger import Ledger, NamespaceRow, Transaction, claims, extractions
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.claims import SupersededEvidence
from evicortex.ledger.evidence import Added, CheckedDraft
from evicortex.types import ClaimDraft, ClaimStatus, Evidence
from evicortex.validity import AuthorityOrder, to_micros

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def day(number: int, month: int = 3) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


class Daily:
    """The ledger is written on one day after another, from 1 May on."""

    def __init__(self) -> None:
        self.moment = day(1, 5) - timedelta(days=1)

    def now(self) -> datetime:
        self.moment += timedelta(days=1)
        return self.moment


class Memory:
    """A ledger with one namespace that tests fill and read."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    def say(
        self,
        *drafts: ClaimDraft,
        on: datetime,
        authority: str = "user",
        name: str = "alice",
        text: str = "some text",
    ) -> tuple[Evidence, tuple[str, ...]]:
        with self.ledger.write() as tx:
            ns = space(tx, name)
            draft = CheckedDraft(text, occurred_at=to_micros(on), authority=authority)
            (added,) = evidence_ledger.add(tx, ns, [draft])
            assert isinstance(added, Added)
            evidence = evidence_ledger.get(tx, ns, added.evidence_id)
            return evidence, claims.add(tx, ns, evidence, drafts)

    def listed(self, **wanted: object) -> list[str]:
        with self.ledger.read() as tx:
            found = claims.list_claims(tx, space(tx), **({"as_of": NOW} | wanted))  # type: ignore[arg-type]
        return [claim.object for claim in found]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Ledger.open(tmp_path / "memory.db", clock=Daily()) as ledger:
        yield Memory(ledger)


def space(tx: Transaction, name: str = "alice") -> NamespaceRow:
    found = tx.namespace(name, create=tx.writable)
    assert found is not None
    return found


def row_of(evidence: Evidence, namespace_id: int = 1) -> int:
    return namespace_id << 40 | evidence.position


def lives_in(place: str, **fields: object) -> ClaimDraft:
    return ClaimDraft("Alice", "lives_in", place, **fields)  # type: ignore[arg-type]


def test_claims_answer_for_a_time_and_for_a_knowledge(memory: Memory) -> None:
    first, _ = memory.say(lives_in("Berlin"), on=day(10))
    second, _ = memory.say(lives_in("Lisbon"), on=day(20))
    memory.say(lives_in("Rome"), on=day(15))
    assert memory.listed() == ["Lisbon"]
    assert memory.listed(as_of=day(16)) == ["Rome"]
    assert memory.listed(as_of=day(16), known_at=second.recorded_at) == ["Berlin"]
    assert memory.listed(known_at=first.recorded_at) == ["Berlin"]
    assert memory.listed(known_at=first.recorded_at - timedelta(microseconds=1)) == []
    assert memory.listed(as_of=day(9)) == []


def test_claims_come_oldest_start_first(memory: Memory) -> None:
    memory.say(lives_in("Lisbon"), on=day(20))
    memory.say(lives_in("Berlin"), lives_in("Bern", confidence=0.5), on=day(10))
    memory.say(lives_in("Oslo", valid_from=day(1, 9)), on=day(21))
    assert memory.listed(include_superseded=True) == ["Berlin", "Bern", "Lisbon", "Oslo"]
    with memory.ledger.read() as tx:
        told = claims.history(tx, space(tx), "ALICE", "lives_in", as_of=NOW)
    assert [(c.object, c.status, c.valid_from, c.valid_to) for c in told] == [
        ("Berlin", ClaimStatus.SUPERSEDED, day(10), day(10)),
        ("Bern", ClaimStatus.SUPERSEDED, day(10), day(20)),
        ("Lisbon", ClaimStatus.HELD, day(20), day(1, 9)),
        ("Oslo", ClaimStatus.FUTURE, day(1, 9), None),
    ]
    assert told[1].superseded_by == (told[2].claim_id,)
    assert told[1].superseded_at == told[1].recorded_at
    assert (told[1].asserted_from, told[1].asserted_to) == (day(10), None)


def test_subjects_and_predicates_match_in_any_spelling(memory: Memory) -> None:
    memory.say(
        lives_in("Lisbon"),
        ClaimDraft("alice", "likes", "tea"),
        ClaimDraft("Straße  7", "Located_In", "Bonn"),
        on=day(1),
    )
    assert memory.listed(subject=" ALICE") == ["Lisbon", "tea"]
    assert memory.listed(subject="Alice", predicate="LIKES") == ["tea"]
    assert memory.listed(predicate="located_in") == ["Bonn"]
    assert memory.listed(subject="STRASSE 7") == ["Bonn"]
    assert memory.listed(subject="Bob") == memory.listed(subject="") == []


def test_a_query_that_utf8_cannot_hold_is_refused(memory: Memory) -> None:
    memory.say(on=day(1))
    for wanted in ({"subject": "\ud800"}, {"predicate": "\ud800"}):
        with pytest.raises(InvalidTextError, match=next(iter(wanted))):
            memory.listed(**wanted)


def test_reads_never_cross_namespaces(memory: Memory) -> None:
    ours, (own,) = memory.say(lives_in("Lisbon"), on=day(1))
    theirs, (other,) = memory.say(lives_in("Oslo"), on=day(2), name="bob")
    assert memory.listed(include_superseded=True) == ["Lisbon"]
    with memory.ledger.read() as tx:
        ns = space(tx)
        told = claims.of_evidence(tx, ns, [ours.evidence_id, theirs.evidence_id], as_of=NOW)
        assert [len(group) for group in told.values()] == [1, 0]
        assert claims.evidence_of(tx, ns, [own, other]) == {own: ours.evidence_id}
        assert claims.superseded_evidence(tx, ns, [row_of(theirs, 2)], as_of=NOW) == {}
        assert claims.reinstated_by_removal(tx, ns, [other]) == ()
        assert claims.conflicts(tx, ns) == ()


def test_claims_of_evidence_know_what_other_evidence_says(memory: Memory) -> None:
    first, (berlin, tea) = memory.say(
        lives_in("Berlin"), ClaimDraft("Alice", "likes", "tea"), on=day(10)
    )
    second, (lisbon,) = memory.say(lives_in("Lisbon"), on=day(20))
    bare, _ = memory.say(on=day(21))
    with memory.ledger.read() as tx:
        told = claims.of_evidence(
            tx, space(tx), [second.evidence_id, first.evidence_id, bare.evidence_id, "?"], as_of=NOW
        )
        then = claims.of_evidence(
            tx, space(tx), [second.evidence_id], as_of=NOW, known_at=first.recorded_at
        )
    assert list(told) == [second.evidence_id, first.evidence_id, bare.evidence_id, "?"]
    assert [(c.claim_id, c.status.value) for c in told[first.evidence_id]] == [
        (berlin, "superseded"),
        (tea, "held"),
    ]
    assert told[first.evidence_id][0].superseded_by == (lisbon,)
    assert told[bare.evidence_id] == told["?"] == ()
    assert then == {second.evidence_id: ()}


def test_evidence_is_superseded_when_all_its_claims_are(memory: Memory) -> None:
    old, _ = memory.say(lives_in("Berlin"), ClaimDraft("Alice", "works_at", "Acme"), on=day(10))
    moved, (lisbon,) = memory.say(lives_in("Lisbon"), on=day(20))
    rows = [row_of(old), row_of(moved)]

    def superseded(**times: datetime) -> dict[int, SupersededEvidence]:
        with memory.ledger.read() as tx:
            return claims.superseded_evidence(tx, space(tx), rows, **({"as_of": NOW} | times))

    assert superseded() == {}
    job, (globex,) = memory.say(ClaimDraft("Alice", "works_at", "Globex"), on=day(22))
    assert superseded() == {
        row_of(old): SupersededEvidence(
            (lisbon, globex),
            (moved.evidence_id, job.evidence_id),
            (row_of(moved), row_of(job)),
        )
    }
    assert superseded(as_of=day(21)) == {}
    assert superseded(known_at=moved.recorded_at) == {}
    assert superseded(known_at=old.recorded_at) == {}


def test_one_claim_that_replaces_two_is_named_once(memory: Memory) -> None:
    old, _ = memory.say(lives_in("Berlin"), lives_in("Bonn", confidence=0.5), on=day(10))
    new, (lisbon,) = memory.say(lives_in("Lisbon"), on=day(20))
    with memory.ledger.read() as tx:
        told = claims.superseded_evidence(tx, space(tx), [row_of(old)], as_of=NOW)
    # Berlin fell at once to the correction beside it, Bonn to Lisbon.
    (replacement,) = told.values()
    assert lisbon in replacement.claim_ids
    assert replacement.evidence_ids == (old.evidence_id, new.evidence_id)


def test_retracted_expired_and_overridden_claims_do_not_make_evidence_superseded(
    memory: Memory,
) -> None:
    taken_back, (claim_id,) = memory.say(lives_in("Berlin"), on=day(10))
    visit, _ = memory.say(lives_in("Rome", valid_to=day(12)), on=day(11))
    rumour, _ = memory.say(lives_in("Oslo"), on=day(25), authority="document")
    memory.say(lives_in("Lisbon"), on=day(20))
    with memory.ledger.write() as tx:
        claims.retract(tx, space(tx), claim_id, reason="never")
    rows = [row_of(taken_back), row_of(visit), row_of(rumour), row_of(rumour) + 99]
    with memory.ledger.read() as tx:
        assert claims.superseded_evidence(tx, space(tx), rows, as_of=NOW) == {}
        assert claims.superseded_evidence(tx, space(tx), [], as_of=NOW) == {}


def test_a_retracted_claim_beside_a_superseded_one_counts_for_nothing(memory: Memory) -> None:
    old, (_, tea) = memory.say(lives_in("Berlin"), ClaimDraft("Alice", "likes", "tea"), on=day(10))
    memory.say(lives_in("Lisbon"), on=day(20))
    with memory.ledger.write() as tx:
        claims.retract(tx, space(tx), tea, reason="never")
        told = claims.superseded_evidence(tx, space(tx), [row_of(old)], as_of=NOW)
    assert list(told) == [row_of(old)]


def test_conflicts_are_problems_that_name_both_sides(memory: Memory) -> None:
    _, (berlin,) = memory.say(lives_in("Berlin"), on=day(10))
    _, (bern,) = memory.say(lives_in("Berlin"), on=day(12))
    _, (oslo,) = memory.say(lives_in("Oslo", valid_to=day(25)), on=day(15), authority="document")
    _, (denied,) = memory.say(lives_in("Berlin", polarity="negative"), on=day(11), authority="tool")
    with memory.ledger.read() as tx:
        first, second = claims.conflicts(tx, space(tx))
    assert first.code == second.code == "claim.conflict"
    assert first.namespace == "alice"
    assert first.details == {
        "claim_id": oslo,
        "overridden_by": [berlin, bern],
        "valid_from": "2026-03-15T00:00:00Z",
        "valid_to": "2026-03-25T00:00:00Z",
    }
    assert second.details == {
        "claim_id": denied,
        "overridden_by": [berlin],
        "valid_from": "2026-03-11T00:00:00Z",
        "valid_to": "2026-03-12T00:00:00Z",
    }
    for word in (oslo, "document", "Alice", "lives_in", berlin, "user"):
        assert word in first.message


def test_a_conflict_shows_on_the_claims_too(memory: Memory) -> None:
    memory.say(lives_in("Berlin"), on=day(10))
    memory.say(lives_in("Oslo"), on=day(15), authority="document")
    assert memory.listed() == ["Berlin"]
    with memory.ledger.read() as tx:
        held, rumour = claims.history(tx, space(tx), "alice", "lives_in", as_of=NOW)
    assert (held.status, held.conflicts_with) == (ClaimStatus.HELD, (rumour.claim_id,))
    assert (rumour.status, rumour.conflicts_with) == (ClaimStatus.CONFLICTING, (held.claim_id,))


def test_every_read_takes_the_order_of_authority(memory: Memory) -> None:
    user, _ = memory.say(lives_in("Berlin"), on=day(10))
    document, (oslo,) = memory.say(lives_in("Oslo"), on=day(15), authority="document")
    order = AuthorityOrder(tuple(reversed(AuthorityOrder().ranking)))
    assert memory.listed(order=order) == ["Oslo"]
    with memory.ledger.write() as tx:
        ns = space(tx)
        assert claims.conflicts(tx, ns, order=order) == ()
        told = claims.of_evidence(tx, ns, [document.evidence_id], as_of=NOW, order=order)
        assert told[document.evidence_id][0].status is ClaimStatus.HELD
        rows = [row_of(user)]
        assert list(claims.superseded_evidence(tx, ns, rows, as_of=NOW, order=order)) == rows
        assert len(claims.reinstated_by_removal(tx, ns, [oslo], order=order)) == 1
        assert len(claims.retract(tx, ns, oslo, reason="no", order=order).reinstated) == 1


def test_a_damaged_authority_is_told_as_damage(memory: Memory) -> None:
    memory.say(lives_in("Berlin"), on=day(10))
    with memory.ledger.write() as tx:
        tx.connection.execute("UPDATE claims SET authority = 'boss'")
    with pytest.raises(CorruptLedgerError, match="boss"):
        memory.listed()
    with memory.ledger.read() as tx:
        assert claims.conflicts(tx, space(tx)) == ()


def test_what_asks_for_some_claims_never_walks_the_namespace(memory: Memory) -> None:
    evidence, (claim_id,) = memory.say(lives_in("Berlin"), on=day(10))
    traced: list[tuple[str, object]] = []

    def trace(_cursor: object, statement: str, bindings: object) -> bool:
        traced.append((statement, bindings))
        return True

    with memory.ledger.write() as tx:
        ns = space(tx)
        tx.connection.exec_trace = trace
        try:
            claims.superseded_evidence(tx, ns, [row_of(evidence)], as_of=NOW)
            claims.of_evidence(tx, ns, [evidence.evidence_id], as_of=NOW)
            claims.evidence_of(tx, ns, [claim_id])
            claims.history(tx, ns, "alice", "lives_in", as_of=NOW)
            claims.list_claims(tx, ns, predicate="lives_in", as_of=NOW)
            claims.list_claims(tx, ns, subject="alice", as_of=NOW)
            claims.add(tx, ns, evidence, [lives_in("Bonn"), ClaimDraft("Alice", "team", "a")])
            extractions.unemitted(tx, ns, evidence.evidence_id)
            claims.retract(tx, ns, claim_id, reason="wrong")
        finally:
            tx.connection.exec_trace = None
        plans = [
            (statement, row[3])
            for statement, bindings in traced
            for row in tx.connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)
        ]
    assert len(plans) > 20
    # Walked as a whole may be: the list that was given, and the groups that it leads to.
    walked = {plan.split()[1] for _, plan in plans if plan.startswith("SCAN")}
    assert walked <= {"j", "t"}
    claim_tables = [plan for plan in plans if " namespaces " not in plan[0]]
    assert [plan for plan in claim_tables if plan[1].endswith("(namespace_id=?)")] == []
