from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evicortex.errors import ImportFormatError
from evicortex.ledger import Ledger, NamespaceRow, Transaction, claims, extractions
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.evidence import Added, CheckedDraft
from evicortex.types import Claim, ClaimDraft, ClaimStatus, Diagnostic, Evidence

NOW = datetime(2027, 1, 1, tzinfo=UTC)


class Ticking:
    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "memory.db", clock=Ticking()) as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "other.db", clock=Ticking()) as opened:
        yield opened


def space(tx: Transaction, name: str = "alice") -> NamespaceRow:
    found = tx.namespace(name, create=tx.writable)
    assert found is not None
    return found


def say(
    ledger: Ledger, text: str, *drafts: ClaimDraft, name: str = "alice", **fields: Any
) -> tuple[Evidence, tuple[str, ...]]:
    with ledger.write() as tx:
        ns = space(tx, name)
        (added,) = evidence_ledger.add(tx, ns, [CheckedDraft(text, **fields)])
        assert isinstance(added, Added)
        evidence = evidence_ledger.get(tx, ns, added.evidence_id)
        return evidence, claims.add(tx, ns, evidence, drafts)


def lives_in(place: str, **fields: Any) -> ClaimDraft:
    return ClaimDraft("Alice", "lives_in", place, **fields)


def row_of(evidence: Evidence, namespace_id: int = 1) -> int:
    return namespace_id << 40 | evidence.position


def listed(ledger: Ledger, name: str = "alice") -> dict[str, Claim]:
    with ledger.read() as tx:
        found = claims.list_claims(tx, space(tx, name), as_of=NOW, include_superseded=True)
    return {claim.claim_id: claim for claim in found}


def codes(ledger: Ledger) -> list[str]:
    with ledger.read() as tx:
        return [problem.code for problem in claims.problems(tx, space(tx))]


def exported(ledger: Ledger) -> list[dict[str, Any]]:
    with ledger.read() as tx:
        records = list(claims.export(tx, space(tx)))
    return json.loads(json.dumps(records, allow_nan=False))  # type: ignore[no-any-return]


@pytest.fixture
def told(ledger: Ledger) -> list[Evidence]:
    """Berlin, then Lisbon with a span, then an extraction that emitted tea; Lisbon retracted."""
    first, _ = say(ledger, "Berlin", lives_in("Berlin"))
    second, (lisbon,) = say(ledger, "now Lisbon", lives_in("Lisbon", span=(4, 10), confidence=0.5))
    third, _ = say(ledger, "tea please")
    with ledger.write() as tx:
        ns = space(tx)
        draft = ClaimDraft("Alice", "likes", "tea", span=(0, 3), cardinality="multi")
        ids = claims.add(tx, ns, third, [draft], origin="extraction")
        extractions.add(tx, ns, third, extractor_id="rules", extractor_revision="1", claim_ids=ids)
    with ledger.write() as tx:
        claims.retract(tx, space(tx), lisbon, reason="a slip")
    return [first, second, third]


def test_what_is_written_has_no_problems(ledger: Ledger, told: list[Evidence]) -> None:
    assert codes(ledger) == []


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("UPDATE claims SET object = 'Rome', object_key = 'rome' WHERE seq = 1", "claim.id"),
        ("UPDATE claims SET confidence = 0.75 WHERE seq = 2", "claim.id"),
        ("UPDATE claims SET valid_from = valid_from - 1 WHERE seq = 1", "claim.id"),
        ("UPDATE claims SET cardinality = 'single' WHERE seq = 3", "claim.id"),
        ("UPDATE claims SET subject_key = 'bob' WHERE seq = 1", "claim.key"),
        ("UPDATE claims SET predicate_key = 'x' WHERE seq = 1", "claim.key"),
        ("UPDATE claims SET object_key = 'x' WHERE seq = 1", "claim.key"),
        ("UPDATE claims SET authority = 'boss' WHERE seq = 1", "claim.authority"),
        ("UPDATE claim_evidence SET evidence_digest = 'x' WHERE start = 4", "claim.digest"),
        ("UPDATE claim_evidence SET stop = 11 WHERE start = 4", "claim.span"),
        ("UPDATE claim_evidence SET start = NULL, stop = NULL WHERE start = 4", "claim.id"),
        ("DELETE FROM claim_evidence WHERE start = 4", "claim.evidence"),
        (
            """INSERT INTO claim_evidence SELECT namespace_id, claim_id, row_id + 1, NULL, NULL,
            evidence_digest FROM claim_evidence WHERE start = 4""",
            "claim.evidence",
        ),
        ("UPDATE extractions SET evidence_digest = 'x'", "extraction.digest"),
        ("UPDATE extraction_claims SET start = 1", "extraction.claim"),
        ("UPDATE extraction_claims SET stop = 4", "extraction.claim"),
        ("UPDATE extraction_claims SET confidence = 0", "extraction.claim"),
        ("UPDATE extraction_claims SET authority = 'tool'", "extraction.claim"),
        (
            "UPDATE extraction_claims SET claim_id = (SELECT claim_id FROM claims WHERE seq = 1)",
            "extraction.claim",
        ),
    ],
)
def test_every_damage_is_found(
    ledger: Ledger, told: list[Evidence], damage: str, code: str
) -> None:
    with ledger.write() as tx:
        tx.connection.execute(damage)
    assert code in codes(ledger)


def test_spans_are_checked_beyond_a_nul(ledger: Ledger) -> None:
    say(ledger, "a\0bc 🌊 d", lives_in("Lisbon", span=(7, 8)))
    assert codes(ledger) == []


def test_problems_name_the_namespace_and_the_claim(ledger: Ledger, told: list[Evidence]) -> None:
    with ledger.write() as tx:
        tx.connection.execute("UPDATE extractions SET evidence_digest = 'x'")
        tx.connection.execute("UPDATE claim_evidence SET evidence_digest = 'x' WHERE start = 4")
    with ledger.read() as tx:
        digest, extraction = claims.problems(tx, space(tx))
    assert digest.namespace == extraction.namespace == "alice"
    lisbon = next(c.claim_id for c in listed(ledger).values() if c.object == "Lisbon")
    assert digest.details == {"claim_id": lisbon}
    assert lisbon in digest.message
    assert extraction.details == {"evidence_id": told[2].evidence_id, "ordinal": 1}


def test_removal_takes_all_that_rests_on_the_rows_and_nothing_else(
    ledger: Ledger, told: list[Evidence]
) -> None:
    say(ledger, "Berlin", lives_in("Berlin"), name="bob")
    before = listed(ledger)
    with ledger.write() as tx:
        removed = claims.remove(tx, space(tx), [row_of(told[1]), row_of(told[2]), 2 << 40 | 1])
        counts = {
            table: tx.connection.execute(f"SELECT count(*) FROM {table}").get
            for table in (
                "claims",
                "claim_evidence",
                "retractions",
                "extractions",
                "extraction_claims",
            )
        }
        assert tx.connection.execute("PRAGMA foreign_key_check").fetchall() == []
    gone = {c.claim_id for c in before.values() if c.object in ("Lisbon", "tea")}
    assert set(removed.claim_ids) == gone
    assert removed.reinstated == ()
    assert counts == {
        "claims": 2,
        "claim_evidence": 2,
        "retractions": 0,
        "extractions": 0,
        "extraction_claims": 0,
    }
    assert [c.object for c in listed(ledger).values()] == ["Berlin"]
    assert [c.object for c in listed(ledger, "bob").values()] == ["Berlin"]


def test_removal_gives_back_what_was_closed(ledger: Ledger) -> None:
    _, (berlin,) = say(ledger, "one", lives_in("Berlin"))
    _, (bern,) = say(ledger, "two", lives_in("Berlin"))
    new, (lisbon,) = say(ledger, "three", lives_in("Lisbon"))
    with ledger.write() as tx:
        ns = space(tx)
        assert claims.reinstated_by_removal(tx, ns, [lisbon, "cl_unknown"]) == (berlin, bern)
        assert claims.reinstated_by_removal(tx, ns, [berlin]) == ()
        removed = claims.remove(tx, ns, [row_of(new)])
    assert removed == claims.Removed((lisbon,), (berlin, bern))
    assert {c.status for c in listed(ledger).values()} == {ClaimStatus.HELD}


def test_removing_nothing_removes_nothing(ledger: Ledger, told: list[Evidence]) -> None:
    before = listed(ledger)
    with ledger.write() as tx:
        assert claims.remove(tx, space(tx), []) == claims.Removed((), ())
        assert claims.remove(tx, space(tx), [row_of(told[0]) + 500]) == claims.Removed((), ())
    assert listed(ledger) == before


def test_a_declaration_goes_with_the_claim_that_made_it(ledger: Ledger) -> None:
    declared, _ = say(ledger, "one", ClaimDraft("Alice", "team", "a", cardinality="single"))
    say(ledger, "two", ClaimDraft("Alice", "team", "b"))
    with ledger.write() as tx:
        claims.remove(tx, space(tx), [row_of(declared)])
    say(ledger, "three", ClaimDraft("Alice", "team", "c"))
    assert [c.cardinality for c in listed(ledger).values()] == ["single", "multi"]


def copy(source: Ledger, target: Ledger, records: list[dict[str, Any]]) -> dict[str, str]:
    """Restore evidence (with its ids) and claims into an empty ledger, as a load does."""
    ids: dict[str, str] = {}
    with source.read() as old, target.write() as tx:
        ns = space(tx)
        for row, evidence in evidence_ledger.scan(old, space(old)):
            if evidence_ledger.row_ids_of(tx, ns, [evidence.evidence_id]):
                continue
            kept = evidence_ledger.Restored(evidence.evidence_id, row & 0xFFFFFFFF, 1)
            draft = CheckedDraft(evidence.content, role=evidence.role, authority="user")
            evidence_ledger.restore(tx, ns, [(draft, kept)])
        for record in records:
            evidence = evidence_ledger.get(tx, ns, record["evidence_id"])
            ids[record["claim_id"]] = claims.restore(tx, ns, record, evidence)
    return ids


def test_an_export_restores_to_the_same_claims(
    ledger: Ledger, other: Ledger, told: list[Evidence]
) -> None:
    records = exported(ledger)
    assert [record["object"] for record in records] == ["Berlin", "Lisbon", "tea"]
    assert records[1]["span"] == [4, 10]
    assert records[1]["retraction"]["reason"] == "a slip"
    say(other, "already here", ClaimDraft("Alice", "likes", "rye"), name="bob")
    ids = copy(ledger, other, records)
    assert all(old == new for old, new in ids.items())
    assert exported(other) == records
    assert listed(other) == listed(ledger)
    assert codes(other) == []
    assert copy(ledger, other, records) == ids
    assert exported(other) == records


def test_a_claim_restored_on_other_evidence_gets_the_id_of_that(
    ledger: Ledger, told: list[Evidence]
) -> None:
    target, _ = say(ledger, "now Lisbon", name="bob")
    record = exported(ledger)[1]
    with ledger.write() as tx:
        new = claims.restore(tx, space(tx, "bob"), record, target)
    assert new != record["claim_id"]
    (claim,) = listed(ledger, "bob").values()
    assert (claim.claim_id, claim.object, claim.status) == (new, "Lisbon", ClaimStatus.RETRACTED)


def test_a_restored_retraction_is_added_to_a_claim_that_lacks_it(
    ledger: Ledger, other: Ledger, told: list[Evidence]
) -> None:
    records = exported(ledger)
    copy(ledger, other, [record | {"retraction": None} for record in records])
    assert "retracted" not in {c.status for c in listed(other).values()}
    copy(ledger, other, records)
    assert exported(other) == records


@pytest.mark.parametrize(
    "change",
    [
        {"claim_id": "cl_000000000000000000000000"},
        {"claim_id": None},
        {"claim_id": ["cl"]},
        {"subject": ""},
        {"subject": None},
        {"predicate": 3},
        {"object": "Rome"},
        {"polarity": "maybe"},
        {"confidence": 2},
        {"confidence": None},
        {"authority": "boss"},
        {"cardinality": None},
        {"cardinality": "some"},
        {"declared": "yes"},
        {"origin": "dream"},
        {"repetition": 0},
        {"repetition": True},
        {"repetition": "1"},
        {"span": [0, 99]},
        {"span": {}},
        {"valid_from": None},
        {"valid_from": "2026-01-01"},
        {"valid_from": 7},
        {"valid_to": "2001-01-01T00:00:00Z"},
        {"recorded_at": None},
        {"recorded_at": "x"},
        {"retraction": 5},
        {"retraction": {}},
        {"retraction": {"recorded_at": "2026-01-01T00:00:00Z", "reason": "", "cause": "call"}},
        {"retraction": {"recorded_at": "2026-01-01T00:00:00Z", "reason": "x", "cause": "y"}},
        {"retraction": {"recorded_at": 5, "reason": "x", "cause": "call"}},
    ],
)
def test_a_claim_of_a_bad_export_is_refused(
    ledger: Ledger, told: list[Evidence], change: dict[str, Any]
) -> None:
    record = exported(ledger)[0] | change
    before = listed(ledger)
    with ledger.write() as tx, pytest.raises(ImportFormatError, match="claim"):
        claims.restore(tx, space(tx), record, told[0])
    assert listed(ledger) == before


def test_a_field_that_an_export_lacks_is_named(ledger: Ledger, told: list[Evidence]) -> None:
    whole = exported(ledger)[0]
    for field in whole:
        record = {name: value for name, value in whole.items() if name != field}
        with ledger.write() as tx, pytest.raises(ImportFormatError, match=field):
            claims.restore(tx, space(tx), record, told[0])


def test_extraction_records_restore_with_their_claims(
    ledger: Ledger, other: Ledger, told: list[Evidence]
) -> None:
    with ledger.write() as tx:
        extractions.add(
            tx,
            space(tx),
            told[2],
            extractor_id="rules",
            extractor_revision="2",
            claim_ids=(),
            abstained=True,
            diagnostics=[Diagnostic("hedge", "a hedge", {"span": [0, 3]})],
            usage={"calls": 1, "seconds": 0.25},
        )
    with ledger.read() as tx:
        records = json.loads(json.dumps(list(extractions.export(tx, space(tx)))))
    ids = copy(ledger, other, exported(ledger))
    for expected in (True, False):
        with other.write() as tx:
            ns = space(tx)
            evidence = evidence_ledger.get(tx, ns, told[2].evidence_id)
            done = [extractions.restore(tx, ns, r, evidence, ids) for r in records]
        assert done == [expected] * 2
    with ledger.read() as tx, other.read() as tx2:
        evidence_id = told[2].evidence_id
        assert extractions.history(tx2, space(tx2), evidence_id) == extractions.history(
            tx, space(tx), evidence_id
        )
        assert list(extractions.export(tx2, space(tx2))) == records


@pytest.mark.parametrize(
    "change",
    [
        {"ordinal": 0},
        {"ordinal": True},
        {"abstained": 1},
        {"recorded_at": None},
        {"recorded_at": "2026"},
        {"extractor_id": ""},
        {"extractor_revision": None},
        {"diagnostics": [{}]},
        {"diagnostics": [{"code": "c", "message": "m", "details": 3}]},
        {"diagnostics": [{"code": 3, "message": "m", "details": {}}]},
        {"diagnostics": [{"code": "c", "message": None, "details": {}}]},
        {"diagnostics": 3},
        {"usage": {"calls": -1}},
        {"usage": []},
        {"claims": [{"claim_id": "cl_x"}]},
        {"claims": [{"claim_id": []}]},
        {"claims": [{}]},
        {"claims": None},
    ],
)
def test_an_extraction_of_a_bad_export_is_refused(
    ledger: Ledger, told: list[Evidence], change: dict[str, Any]
) -> None:
    with ledger.write() as tx:
        ns = space(tx)
        (record,) = extractions.export(tx, ns)
        ids = {claim_id: claim_id for claim_id in listed(ledger)}
        with pytest.raises(ImportFormatError, match="extraction"):
            extractions.restore(tx, ns, record | {"ordinal": 9} | change, told[2], ids)
        assert len(extractions.history(tx, ns, told[2].evidence_id)) == 1


def test_an_extraction_restores_only_claims_of_its_evidence(
    ledger: Ledger, told: list[Evidence]
) -> None:
    with ledger.write() as tx:
        ns = space(tx)
        (record,) = extractions.export(tx, ns)
        berlin = next(c.claim_id for c in listed(ledger).values() if c.object == "Berlin")
        ids = {record["claims"][0]["claim_id"]: berlin}
        with pytest.raises(ImportFormatError, match=berlin):
            extractions.restore(tx, ns, record | {"ordinal": 2}, told[2], ids)
