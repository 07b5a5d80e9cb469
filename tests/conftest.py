"""Builders that several tests share, and what holds for all property tests."""

import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, settings

from evicortex.policy.candidates import PackCandidate
from evicortex.types import (
    Authority,
    Claim,
    ClaimStatus,
    Derivation,
    Evidence,
    Polarity,
)

# An example may take as long as a busy machine makes it: no property here is about wall time.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def _evidence(content="", *, position=1, actor="Alice", day=8, **fields):
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
    values = {
        "evidence_id": f"ev_{position:04}",
        "namespace": "test",
        "content": content,
        "digest": digest,
        "actor": actor,
        "role": "user",
        "session": f"s{day}",
        "source": "chat",
        "external_id": f"D{day}:{position}",
        "occurred_at": datetime(2023, 5, day, 13, 56, tzinfo=UTC),
        "recorded_at": datetime(2024, 1, 1, tzinfo=UTC),
        "authority": Authority.USER,
        "metadata": {},
        "position": position,
    }
    return Evidence(**(values | fields))


def _claim(subject="Alice", predicate="lives_in", value="Lisbon", *, sources=(), **fields):
    values = {
        "claim_id": f"cl_{subject}_{predicate}_{value}",
        "namespace": "test",
        "subject": subject,
        "predicate": predicate,
        "object": value,
        "polarity": Polarity.POSITIVE,
        "confidence": 1.0,
        "authority": Authority.USER,
        "cardinality": "single",
        "valid_from": None,
        "valid_to": None,
        "asserted_from": None,
        "asserted_to": None,
        "recorded_at": datetime(2024, 1, 1, tzinfo=UTC),
        "superseded_at": None,
        "status": ClaimStatus.HELD,
        "derivations": tuple(Derivation(source, "", None) for source in sources),
    }
    return Claim(**(values | fields))


@pytest.fixture(scope="session")
def evidence():
    """Make an Evidence: ``evidence(content, position=1, actor="Alice", day=8, **fields)``."""
    return _evidence


@pytest.fixture(scope="session")
def claim():
    """Make a Claim: ``claim(subject, predicate, value, sources=(evidence ids), **fields)``."""
    return _claim


@pytest.fixture(scope="session")
def candidate():
    """Make a PackCandidate with its evidence: ``candidate(content, score=1.0, **fields)``."""
    own = frozenset(PackCandidate.__slots__)

    def make(content="", **fields):
        mine = {name: value for name, value in fields.items() if name in own}
        rest = {name: value for name, value in fields.items() if name not in own}
        return PackCandidate(_evidence(content, **rest), **mine)

    return make
