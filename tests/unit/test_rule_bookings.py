"""Details of requests: where, when, from and to where, and what a short reply means."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from evicortex.protocols import EvidenceContext
from evicortex.providers.rules import RuleExtractor
from evicortex.types import Authority
from evicortex.validation import CheckedExtractor

FRIDAY = datetime(2019, 3, 1, 12, tzinfo=UTC)
RULES = CheckedExtractor(RuleExtractor())


def extract(text, *previous, role="user", at=FRIDAY):
    turns = [("assistant" if n % 2 else "user", each) for n, each in enumerate(previous)]
    context = EvidenceContext(
        "ev_1",
        text,
        hashlib.sha256(text.encode()).hexdigest(),
        role,
        role,
        Authority.USER if role == "user" else Authority.ASSISTANT,
        at,
        tuple(turns),
    )
    return RULES.extract(context)


def details(text, *previous, **fields):
    return [(claim.predicate, claim.object) for claim in extract(text, *previous, **fields).claims]


FLIGHT = "I need a flight, please."
TABLE = "Find me a restaurant, please."
EVENT = "Help me find an event."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Find me a flight from New York to Rome on March 5th.",
            [("travels_from", "New York"), ("travels_to", "Rome"), ("travels_on", "March 5th")],
        ),
        (
            "I want to fly to Atlanta next Tuesday and return on the 9th of March.",
            [
                ("travels_to", "Atlanta"),
                ("travels_on", "next Tuesday"),
                ("returns_on", "9th of March"),
            ],
        ),
        (
            "Book a table at Anna's Place in San Jose at half past 7 in the evening.",
            [
                ("plans_venue", "Anna's Place"),
                ("plans_in", "San Jose"),
                ("plans_at_time", "half past 7 in the evening"),
            ],
        ),
        (
            "I'm looking for jazz concerts around Toronto, Canada.",
            [("plans_kind", "jazz"), ("plans_in", "Toronto, Canada")],
        ),
        ("Find me a table for 6:45 pm.", [("plans_at_time", "6:45 pm")]),
        ("Can you find me an event in Anaheim, CA?", [("plans_in", "Anaheim, CA")]),
        ("Find a cab to Hop Creek Pub.", [("travels_to", "Hop Creek Pub")]),
        (
            "Book a table at The Grill in Napa.",
            [("plans_venue", "The Grill"), ("plans_in", "Napa")],
        ),
        ("Book a table at Bob & Mary Bar, please.", [("plans_venue", "Bob & Mary Bar")]),
        ("Book a table at Sino and Search again.", [("plans_venue", "Sino")]),
        ("Book a table at Okay.", []),
        ("Find me a flight to Premium Economy from the United Airlines.", []),
        ("Find me a restaurant at Monday.", []),
    ],
)
def test_a_request_states_a_plan_in_detail(text, found):
    assert details(text) == found


@pytest.mark.parametrize(
    ("first", "question", "reply", "found"),
    [
        (FLIGHT, "Which city are you leaving from?", "Phoenix.", [("travels_from", "Phoenix")]),
        (FLIGHT, "What is your destination?", "New York, please.", [("travels_to", "New York")]),
        (FLIGHT, "Where do you want to go?", "Seattle", [("travels_to", "Seattle")]),
        (
            FLIGHT,
            "When do you want to return?",
            "The 8th of March.",
            [("returns_on", "8th of March")],
        ),
        (FLIGHT, "What day is your trip?", "Next Tuesday.", [("travels_on", "Next Tuesday")]),
        (TABLE, "Which restaurant?", "Let's try Sino.", [("plans_venue", "Sino")]),
        (TABLE, "In which city?", "In San Jose.", [("plans_in", "San Jose")]),
        (TABLE, "What time?", "Make it 11:30.", [("plans_at_time", "11:30")]),
        (TABLE, "What day?", "Tomorrow.", [("plans_on", "Tomorrow")]),
        (EVENT, "Which city?", "Yes, NY.", [("plans_in", "NY")]),
        (
            EVENT,
            "What kind of event?",
            "I like baseball.",
            [("plans_kind", "baseball"), ("likes", "baseball")],
        ),
        (FLIGHT, "Where from, and where to?", "Yes.", []),
        (FLIGHT, "Shall I book it?", "Yup!", []),
        (FLIGHT, "Which city are you leaving from, and where are you going?", "Oslo.", []),
    ],
)
def test_a_reply_takes_its_meaning_from_the_question(first, question, reply, found):
    assert sorted(details(reply, first, question)) == sorted(found)


@pytest.mark.parametrize(
    "text",
    [
        "At what time will the flight arrive at Rome?",
        "Is there a restaurant in Rome?",
        "I went to Atlanta on a trip last week.",
        "I prefer Premium Economy to Delta Airlines.",
        "Thanks, that's all.",
    ],
)
def test_questions_for_facts_and_tales_are_no_requests(text):
    plans = [pair for pair in details(text, FLIGHT, "OK.") if pair[0] != "visited"]
    assert not [pair for pair in plans if pair[0].startswith(("plans_", "travels_", "returns_"))]


def test_without_a_request_nothing_is_booked():
    assert details("On Friday in Rome, at 6 pm.") == []
    assert details("Rome.", "Hello!", "Where do you want to go?") == []


def test_an_assistants_offer_is_nobodys_plan():
    offer = "I can book a flight from Oslo to Rome on March 5th at 6 pm."
    assert details(offer, FLIGHT, role="assistant") == []


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Find me a flight on the 10th.", "2019-03-10"),
        ("Find me a flight for 7th of this month.", "2019-03-07"),
        ("Find me a flight for Wednesday next week.", "2019-03-06"),
        ("Find me a flight on Monday.", "2019-03-04"),
        ("Find me a flight on February 2nd.", "2020-02-02"),
        ("Find me a flight on February 2nd 2018.", None),
    ],
)
def test_a_request_looks_ahead(text, day):
    read = [
        each.details["start"][:10]
        for each in extract(text).diagnostics
        if each.code == "resolved_time"
    ]
    assert read == ([] if day is None else [day])


def test_a_day_that_no_form_resolves_is_still_a_span():
    (claim,) = extract("I need a flight, the 6th is best.").claims
    assert (claim.predicate, claim.quote) == ("travels_on", "the 6th")


def test_a_detail_holds_one_value_at_a_time():
    (claim,) = extract("Find me a table at 6:45 pm.").claims
    assert claim.cardinality == "single"
