from datetime import UTC, datetime
from typing import Any

import pytest

from evicortex.errors import NaiveDatetimeError
from evicortex.policy.names import Names
from evicortex.policy.query import QueryAnalysis, QueryPolicy, analyze

NOW = datetime(2026, 3, 9, 10, tzinfo=UTC)
PAIR = ("Caroline", "Melanie")


def asked(query: str, **options: Any) -> QueryAnalysis:
    return analyze(query, now=NOW, **{"actors": PAIR, **options})


def test_names_leave_the_text_and_the_terms() -> None:
    found = asked("What did Caroline's kids and  Mel paint?", aliases={"mel": "Melanie"})
    assert found.actors == PAIR
    assert found.actor is None
    assert found.text == "What did kids and paint?"
    assert found.terms == ("kid", "paint")
    assert [mention.text for mention in found.mentions] == ["Caroline", "Mel"]
    assert asked("What does Caroline paint?").actor == "Caroline"
    assert asked("Do Caroline and Melanie or others paint?").text == "Do or others paint?"


def test_prepared_names_serve_as_well() -> None:
    names = Names(PAIR, {"mel": "Melanie"})
    assert asked("Where is Mel?", actors=names).actor == "Melanie"
    assert asked("Did Carolyne go?", actors=names, rare=lambda _: True).actor == "Caroline"


def test_a_name_counts_as_term_only_when_nothing_else_does() -> None:
    assert asked("Caroline").terms == ("carolin",)
    assert asked("Who is Caroline?").text == "Who is Caroline?"
    assert asked("How many kinds?").terms == ("mani", "kind")
    assert asked("How many kinds of birds?").terms == ("bird",)


@pytest.mark.parametrize("query", ["to be or not to be", "???", '"', " * ", "", "\x00", "AND"])
def test_without_an_informative_term_the_literal_is_what_counts(query: str) -> None:
    found = asked(query)
    assert found.terms == ()
    assert found.literal == query.strip()


@pytest.mark.parametrize("query", ["C++", "NEAR(", "a-b", "@x", "重跑gen-itgc", "🦊", "¿Dónde?"])
def test_unusual_queries_have_terms(query: str) -> None:
    found = asked(query)
    assert found.terms
    assert found.literal is None
    assert found.text == query


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("Where does she live?", "question"),
        ("where does she live", "question"),
        ("So, what’s new", "question"),
        ("did she move", "question"),
        ("Don't you know", "question"),
        ("Wohin ist sie gezogen？", "question"),
        ("I like it. Do you?", "question"),
        ("Tell me about her job.", "request"),
        ("I'd like a gift for her, and it should be small.", "request"),
        ("I need a plan for the trip that we will make", "request"),
        ("alice job lisbon", "request"),
        ("When I was young, I lived by the sea.", "statement"),
        ("What I really want now I know, I just want to rest and be happy.", "question"),
        ("I ended up volunteering for that project.", "statement"),
        ("and so on and on with words that tell of nothing at all to nobody", "statement"),
        ("She isn't here", "statement"),
        ("", "statement"),
    ],
)
def test_kinds(query: str, kind: str) -> None:
    assert asked(query).kind == kind


@pytest.mark.parametrize(
    ("query", "asker", "actor", "role", "person"),
    [
        ("Where did I see Bruno Mars?", "Caroline", "Caroline", None, "asker"),
        ("Where did I see Bruno Mars?", None, None, "user", "asker"),
        ("Where did I see Bruno Mars?", "Stranger", None, "user", "asker"),
        ("What did you recommend to me?", "Caroline", "Melanie", None, "other"),
        ("What did you recommend to me?", None, None, "assistant", "other"),
        ("Are you my friend?", "Caroline", None, None, None),
        ("Who saw Bruno Mars?", "Caroline", None, None, None),
        ("What did I tell Melanie?", "Caroline", "Melanie", None, None),
    ],
)
def test_the_person_rule(
    query: str, asker: str | None, actor: str | None, role: str | None, person: str | None
) -> None:
    found = asked(query, query_actor=asker)
    assert (found.actor, found.role, found.person) == (actor, role, person)


def test_the_other_of_many_is_open() -> None:
    found = asked("What did you say?", actors=("A1", "B2", "C3"), query_actor="A1")
    assert (found.actor, found.role) == (None, "assistant")


def test_the_person_rule_can_be_turned_off() -> None:
    off = QueryPolicy(person_rule=False)
    assert asked("Where did I go?", query_actor="Caroline", policy=off).actor is None


def test_times_are_found_and_opened_over_the_data() -> None:
    found = asked("What did Caroline do in May and on 8 June 2023?")
    assert [time.text for time in found.times] == ["May", "8 June 2023"]
    intervals = found.intervals(
        datetime(2022, 1, 1, tzinfo=UTC), datetime(2023, 12, 31, tzinfo=UTC)
    )
    assert [interval.start.date().isoformat() for interval in intervals] == [
        "2022-05-01",
        "2023-05-01",
        "2023-06-08",
    ]


def test_an_actor_called_like_a_month_is_no_month_and_no_month_is_an_actor() -> None:
    found = asked("What did April do in April?", actors=("April", "Bob"))
    assert found.actors == ("April",)
    assert [mention.span.start for mention in found.mentions] == [9]
    assert [time.span.start for time in found.times] == [21]
    assert asked("in April", actors=("April",)).actors == ()
    assert asked("in April's house", actors=("April",)).actors == ("April",)


def test_exclusions_leave_the_text() -> None:
    found = asked("Which gift for Caroline, not an accessory, was in the shop?")
    assert [each.phrase for each in found.exclusions] == ["an accessory"]
    assert found.text == "Which gift for, was in the shop?"
    assert found.terms == ("gift", "shop")


def test_what_is_only_known_already_stays_without_its_cue() -> None:
    found = asked("What does Caroline make besides pottery?")
    assert [each.strict for each in found.exclusions] == [False]
    assert found.text == "What does make pottery?"


def test_an_excluded_actor_is_not_asked_about() -> None:
    found = asked("Who other than Caroline paints?")
    assert found.actors == ()
    assert [mention.actor for mention in found.mentions] == ["Caroline"]


def test_a_statement_excludes_nothing() -> None:
    assert asked("I was at home, not at work.").exclusions == ()
    found = asked("I was at home, not at work. We left. Which city other than Paris?")
    assert [each.phrase for each in found.exclusions] == ["Paris"]
    both = asked("Which town, not Rome? I was at home, not at work.")
    assert [each.phrase for each in both.exclusions] == ["Rome"]
    off = QueryPolicy(exclusions=False)
    assert asked("Which city other than Paris?", policy=off).exclusions == ()


def test_a_naive_now_is_refused() -> None:
    with pytest.raises(NaiveDatetimeError):
        analyze("today", now=datetime(2026, 3, 9))  # noqa: DTZ001
