from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evicortex.errors import CorruptLedgerError, ExtractionError, NotFoundError, ReadOnlyError
from evicortex.ledger import Ledger, NamespaceRow, Transaction, audit, claims, extractions
from evicortex.ledger import evidence as evidence_ledger
from evicortex.ledger.evidence import Added, CheckedDraft
from evicortex.types import (
    Authority,
    ClaimDraft,
    Diagnostic,
    Evidence,
    ExtractionDerivation,
    ExtractionRecord,
    Span,
)


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


def space(tx: Transaction, name: str = "alice") -> NamespaceRow:
    found = tx.namespace(name, create=tx.writable)
    assert found is not None
    return found


def say(ledger: Ledger, text: str, name: str = "alice") -> Evidence:
    with ledger.write() as tx:
        ns = space(tx, name)
        (added,) = evidence_ledger.add(tx, ns, [CheckedDraft(text)])
        assert isinstance(added, Added)
        return evidence_ledger.get(tx, ns, added.evidence_id)


def likes(thing: str, **fields: Any) -> ClaimDraft:
    return ClaimDraft("Alice", "likes", thing, **fields)


def extract(
    ledger: Ledger, evidence: Evidence, *drafts: ClaimDraft, revision: str = "1", **fields: Any
) -> ExtractionRecord:
    with ledger.write() as tx:
        ns = space(tx)
        ids = claims.add(tx, ns, evidence, drafts, origin="extraction")
        return extractions.add(
            tx,
            ns,
            evidence,
            extractor_id="rules",
            extractor_revision=revision,
            claim_ids=ids,
            **fields,
        )


def told(ledger: Ledger, evidence: Evidence) -> tuple[ExtractionRecord, ...]:
    with ledger.read() as tx:
        records = extractions.history(tx, space(tx), evidence.evidence_id)
        assert extractions.get(tx, space(tx), evidence.evidence_id) == records[-1]
    return records


def unemitted(ledger: Ledger, evidence: Evidence) -> tuple[str, ...]:
    with ledger.read() as tx:
        return extractions.unemitted(tx, space(tx), evidence.evidence_id)


def test_a_record_tells_who_found_what_where(ledger: Ledger) -> None:
    evidence = say(ledger, "tea and rye")
    diagnostics = (
        Diagnostic("hedge", "maybe 🌊", {"span": [4, 7], "nested": {"a": None}}),
        Diagnostic("plain", "no details"),
    )
    record = extract(
        ledger,
        evidence,
        likes("tea", span=(0, 3), confidence=0.5),
        likes("rye", authority="tool"),
        diagnostics=diagnostics,
        usage={"calls": 1, "seconds": 0.5},
    )
    (stored,) = told(ledger, evidence)
    assert stored == record
    assert stored.evidence_id == evidence.evidence_id
    assert stored.evidence_digest == evidence.digest
    assert (stored.extractor_id, stored.extractor_revision) == ("rules", "1")
    assert stored.recorded_at > evidence.recorded_at
    assert (stored.abstained, stored.superseded_at) == (False, None)
    tea, rye = stored.derivations
    assert tea == ExtractionDerivation(tea.claim_id, Span(0, 3), 0.5, Authority.USER)
    assert rye == ExtractionDerivation(rye.claim_id, None, 1.0, Authority.TOOL)
    assert stored.diagnostics == diagnostics
    assert stored.usage == {"calls": 1, "seconds": 0.5}


def test_an_abstention_is_a_record_without_claims(ledger: Ledger) -> None:
    evidence = say(ledger, "hm")
    extract(ledger, evidence, abstained=True, diagnostics=[Diagnostic("hedge", "unsure")])
    (stored,) = told(ledger, evidence)
    assert (stored.abstained, stored.derivations) == (True, ())
    assert stored.diagnostics == (Diagnostic("hedge", "unsure"),)


def test_another_revision_supersedes_and_keeps_the_earlier_record(ledger: Ledger) -> None:
    evidence = say(ledger, "tea and rye")
    extract(ledger, evidence, likes("tea"), likes("rye"))
    second = extract(ledger, evidence, likes("tea"), likes("oats"), revision="2")
    third = extract(ledger, evidence, revision="3", abstained=True)
    records = told(ledger, evidence)
    assert [record.extractor_revision for record in records] == ["1", "2", "3"]
    assert [record.superseded_at for record in records] == [
        second.recorded_at,
        third.recorded_at,
        None,
    ]
    assert [len(record.derivations) for record in records] == [2, 2, 0]
    assert records[0].derivations[0].claim_id == records[1].derivations[0].claim_id


def test_the_same_outcome_again_is_the_same_record(ledger: Ledger) -> None:
    evidence = say(ledger, "tea and rye")
    first = extract(ledger, evidence, likes("tea"), usage={"seconds": 1})
    assert extract(ledger, evidence, likes("tea"), usage={"seconds": 2}) == first
    assert told(ledger, evidence) == (first,)
    with ledger.read() as tx:
        written = [entry.event for entry in audit.entries(tx, space(tx))]
    assert written.count("extractions") == 1


@pytest.mark.parametrize(
    "change",
    [
        {"revision": "2"},
        {"diagnostics": [Diagnostic("hedge", "unsure")]},
        {"drafts": (likes("rye"), likes("tea"))},
        {"drafts": (likes("tea"),)},
        {"drafts": (), "abstained": True},
        {"drafts": ()},
    ],
)
def test_any_other_outcome_is_another_record(ledger: Ledger, change: dict[str, Any]) -> None:
    evidence = say(ledger, "tea and rye")
    extract(ledger, evidence, likes("tea"), likes("rye"))
    drafts = change.pop("drafts", (likes("tea"), likes("rye")))
    extract(ledger, evidence, *drafts, **change)
    assert len(told(ledger, evidence)) == 2


def test_what_a_revision_no_longer_emits_can_be_withdrawn(ledger: Ledger) -> None:
    evidence = say(ledger, "tea and rye")
    with ledger.write() as tx:
        claims.add(tx, space(tx), evidence, [likes("oats")])
    first = extract(ledger, evidence, likes("tea"), likes("rye"), likes("figs"))
    tea, rye, figs = (item.claim_id for item in first.derivations)
    assert unemitted(ledger, evidence) == ()
    with ledger.write() as tx:
        claims.retract(tx, space(tx), figs, reason="wrong")
    extract(ledger, evidence, likes("tea"), likes("plums"), revision="2")
    assert unemitted(ledger, evidence) == (rye,)
    with ledger.write() as tx:
        claims.retract(tx, space(tx), rye, reason="revised", cause="reextraction")
    assert unemitted(ledger, evidence) == ()
    third = extract(ledger, evidence, likes("rye"), likes("figs"), revision="3")
    again, still_figs = (item.claim_id for item in third.derivations)
    assert again not in (tea, rye)
    assert still_figs == figs
    plums = told(ledger, evidence)[1].derivations[1].claim_id
    assert unemitted(ledger, evidence) == (tea, plums)


def test_an_abstention_emits_nothing(ledger: Ledger) -> None:
    evidence = say(ledger, "tea")
    (tea,) = extract(ledger, evidence, likes("tea")).derivations
    extract(ledger, evidence, revision="2", abstained=True)
    assert unemitted(ledger, evidence) == (tea.claim_id,)


def test_unknown_evidence_has_nothing_unemitted(ledger: Ledger) -> None:
    say(ledger, "tea")
    with ledger.read() as tx:
        assert extractions.unemitted(tx, space(tx), "ev_x") == ()


def test_evidence_without_extraction_has_no_record(ledger: Ledger) -> None:
    evidence = say(ledger, "tea")
    theirs = say(ledger, "tea", "bob")
    with ledger.read() as tx:
        for evidence_id in (evidence.evidence_id, theirs.evidence_id, "ev_x", "\ud800"):
            with pytest.raises(NotFoundError):
                extractions.get(tx, space(tx), evidence_id)
            with pytest.raises(NotFoundError):
                extractions.history(tx, space(tx), evidence_id)


def add(ledger: Ledger, evidence: Evidence, **fields: Any) -> ExtractionRecord:
    values = {"extractor_id": "rules", "extractor_revision": "1", "claim_ids": ()} | fields
    with ledger.write() as tx:
        return extractions.add(tx, space(tx), evidence, **values)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"extractor_id": ""}, "record"),
        ({"extractor_id": None}, "record"),
        ({"extractor_revision": " "}, "record"),
        ({"extractor_revision": "\ud800"}, "record"),
        ({"diagnostics": [Diagnostic("c", "m", {"set": {1}})]}, "record"),
        ({"diagnostics": [Diagnostic("c", "m", {"nan": float("nan")})]}, "record"),
        ({"diagnostics": [Diagnostic("c", "\ud800")]}, "record"),
        ({"diagnostics": [Diagnostic("c", None)]}, "record"),  # type: ignore[arg-type]
        ({"usage": {"calls": float("inf")}}, "record"),
        ({"usage": {"calls": float("nan")}}, "record"),
        ({"usage": {"calls": -1}}, "record"),
        ({"usage": {"calls": True}}, "record"),
        ({"usage": {"calls": "1"}}, "record"),
        ({"usage": {1: 1}}, "record"),
        ({"usage": {"\ud800": 1}}, "record"),
        ({"claim_ids": ("cl_x",)}, "claim"),
        ({"claim_ids": ("cl_x",), "abstained": True}, "abstained"),
    ],
)
def test_an_impossible_record_is_refused_by_rule(
    ledger: Ledger, fields: dict[str, Any], rule: str
) -> None:
    evidence = say(ledger, "tea")
    with pytest.raises(ExtractionError) as caught:
        add(ledger, evidence, **fields)
    assert caught.value.rule == rule
    with ledger.read() as tx, pytest.raises(NotFoundError):
        extractions.get(tx, space(tx), evidence.evidence_id)


def test_claims_must_rest_on_the_evidence_and_come_once(ledger: Ledger) -> None:
    evidence, elsewhere = say(ledger, "tea"), say(ledger, "rye")
    with ledger.write() as tx:
        (tea,) = claims.add(tx, space(tx), evidence, [likes("tea")], origin="extraction")
        (rye,) = claims.add(tx, space(tx), elsewhere, [likes("rye")], origin="extraction")
    with pytest.raises(ExtractionError, match=rye) as caught:
        add(ledger, evidence, claim_ids=(tea, rye))
    assert caught.value.rule == "claim"
    with pytest.raises(ExtractionError) as caught:
        add(ledger, evidence, claim_ids=(tea, tea))
    assert caught.value.rule == "duplicate"
    assert add(ledger, evidence, claim_ids=(tea,)).derivations[0].claim_id == tea


def test_a_read_records_nothing(ledger: Ledger) -> None:
    evidence = say(ledger, "tea")
    with ledger.read() as tx:
        with pytest.raises(ReadOnlyError):
            extractions.add(
                tx,
                space(tx),
                evidence,
                extractor_id="rules",
                extractor_revision="1",
                claim_ids=(),
            )
        with pytest.raises(ReadOnlyError):
            extractions.restore(tx, space(tx), {}, evidence, {})


def test_a_damaged_authority_is_told_as_damage(ledger: Ledger) -> None:
    evidence = say(ledger, "tea")
    extract(ledger, evidence, likes("tea"))
    with ledger.write() as tx:
        tx.connection.execute("UPDATE extraction_claims SET authority = 'boss'")
    with ledger.read() as tx, pytest.raises(CorruptLedgerError, match="boss"):
        extractions.get(tx, space(tx), evidence.evidence_id)
