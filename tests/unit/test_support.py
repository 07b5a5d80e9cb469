from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evicortex.errors import InputError
from evicortex.policy.query import analyze
from evicortex.policy.support import Calibration, SupportEvidence, SupportPolicy, assess

NAMES = {1: "Caroline", 2: "Melanie"}


@dataclass
class Shares:
    coverage: npt.NDArray[np.float32]


def measured(query: str, shares: list[float], actors: list[int], **options: Any) -> SupportEvidence:
    analysis = analyze(
        query,
        now=datetime(2026, 3, 9, tzinfo=UTC),
        actors=tuple(NAMES.values()),
        query_actor=options.pop("query_actor", None),
    )
    return SupportEvidence.measure(
        analysis,
        Shares(np.array(shares, dtype=np.float32)),
        np.array(actors, dtype=np.int32),
        NAMES,
        **options,
    )


GOOD = SupportEvidence(terms=3, asked=("Caroline",), unknown=(), covered=0.7, others=0.2)


def test_coverage_is_that_of_the_actor_asked_about() -> None:
    found = measured("What did Caroline paint?", [0.5, 0.75, 0.25], [1, 2, 1])
    assert (found.covered, found.others, found.margin) == (0.5, 0.75, -0.25)
    assert found.asked == ("Caroline",)
    assert found.terms == 1


def test_two_actors_are_asked_about_together_and_nobody_means_everybody() -> None:
    both = measured("Did Caroline or Melanie paint?", [0.5, 0.75, 0.25], [1, 2, 0])
    assert (both.covered, both.others) == (0.75, 0.25)
    nobody = measured("Who painted?", [0.5, 0.75], [1, 2])
    assert (nobody.asked, nobody.covered, nobody.others) == ((), 0.75, 0.0)
    asker = measured("What did I paint?", [0.5, 0.75], [1, 2], query_actor="Caroline")
    assert (asker.asked, asker.covered) == (("Caroline",), 0.5)


def test_an_empty_namespace_covers_nothing() -> None:
    found = measured("Who painted?", [], [], claims=np.zeros(0, dtype=np.float32))
    assert (found.covered, found.others, found.claim) == (0.0, 0.0, 0.0)
    assert assess(found).verdict == "insufficient"


def test_claims_and_literals_are_measured() -> None:
    found = measured("Who?", [0.0], [1], claims=np.array([0.5]), literal=True, unknown=["Zork"])
    assert (found.claim, found.literal, found.unknown) == (0.5, True, ("Zork",))


def test_a_question_for_a_time_alone_is_answered_by_turns_of_that_time() -> None:
    times = np.array([1.0, 0.4])
    asked = "What did Caroline do in October 2025?"
    assert measured(asked, [0.0, 0.0], [1, 2], times=times).dated
    assert not measured(asked, [0.0, 0.0], [2, 1], times=times).dated
    assert not measured(
        "What did Caroline paint in October 2025?", [0.0], [1], times=times[:1]
    ).dated
    assert measured("And in October 2025?", [0.0, 0.0], [2, 1], times=times).dated


def verdict(**changes: Any) -> tuple[str, str]:
    support = assess(replace(GOOD, **changes))
    assert support.probability is None
    (reason,) = support.reasons
    return support.verdict, reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"terms": 0}, "no informative term"),
        ({"covered": 0.0, "others": 0.0}, "no turn holds"),
        ({"covered": 0.0}, "no turn of Caroline holds"),
        ({"covered": 0.1}, "less than 20%"),
        ({"covered": 0.4, "others": 0.9}, "others' turns hold more"),
        ({"unknown": ("Zork", "Yax")}, "mentions Zork, Yax"),
        ({"unknown": ("Zork",), "literal": True, "claim": 1.0}, "mentions Zork"),
        ({"claim": 0.5, "covered": 0.0, "others": 0.0}, "no turn holds"),
    ],
)
def test_insufficient(changes: dict[str, Any], words: str) -> None:
    found = verdict(**changes)
    assert found[0] == "insufficient"
    assert words in found[1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "a turn of Caroline holds 70%"),
        ({"asked": ()}, "a turn of anyone holds 70%"),
        ({"asked": ("Caroline", "Melanie")}, "a turn of Caroline and Melanie"),
        ({"covered": 0.5, "others": 0.55}, "holds 50%"),
        ({"literal": True, "terms": 0, "covered": 0.0}, "literal query"),
        ({"claim": 0.6, "covered": 0.0, "others": 1.0}, "a claim that is held shares 60%"),
        ({"dated": True, "covered": 0.0}, "a turn of Caroline falls into the time"),
    ],
)
def test_supported(changes: dict[str, Any], words: str) -> None:
    found = verdict(**changes)
    assert found[0] == "supported"
    assert words in found[1]


def test_the_policy_moves_the_thresholds() -> None:
    strict = SupportPolicy(coverage=0.8, margin=0.0, claim=1.0)
    assert assess(GOOD, policy=strict).verdict == "insufficient"
    loose = SupportPolicy(coverage=0.0, margin=-1.0)
    assert assess(replace(GOOD, covered=0.01, others=1.0), policy=loose).verdict == "supported"


CALIBRATION = Calibration(
    intercept=-1.0, coverage=2.0, margin=4.0, threshold=0.5, source="a made-up set"
)


def test_a_calibration_gives_the_probability_and_the_verdict() -> None:
    support = assess(GOOD, calibration=CALIBRATION)
    assert support.probability == pytest.approx(1 / (1 + np.exp(-(-1 + 1.4 + 2.0))))
    assert support.verdict == "supported"
    low = assess(replace(GOOD, others=1.0), calibration=CALIBRATION)
    assert low.verdict == "insufficient"
    assert low.probability is not None
    assert low.probability < 0.5
    assert "a made-up set" in low.reasons[0]


def test_a_calibration_cannot_support_what_nothing_covers() -> None:
    sure = Calibration(1000.0, 0.0, 0.0, 0.5, "a made-up set")
    support = assess(replace(GOOD, covered=0.0, others=0.0), calibration=sure)
    assert (support.verdict, support.probability) == ("insufficient", 1.0)


@pytest.mark.parametrize(
    "wrong", [{"coverage": -0.1}, {"coverage": 1.1}, {"margin": -2.0}, {"claim": 0.0}]
)
def test_impossible_policies_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="between"):
        SupportPolicy(**wrong)


@pytest.mark.parametrize(
    "wrong", [{"intercept": float("nan")}, {"margin": float("inf")}, {"threshold": 1.5}]
)
def test_impossible_calibrations_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="calibration"):
        replace(CALIBRATION, **wrong)
