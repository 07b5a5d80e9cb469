from __future__ import annotations

import pytest

from evicortex.errors import InputError
from evicortex.types import Authority
from evicortex.validity import AuthorityOrder, PredicateRegistry, match_key, predicate_key


def test_the_default_order_is_that_of_the_types() -> None:
    order = AuthorityOrder()
    ranks = [order.ranks[authority] for authority in Authority]
    assert ranks == sorted(ranks, reverse=True)
    assert order.exceeds(Authority.SYSTEM, Authority.USER)
    assert not order.exceeds(Authority.USER, Authority.USER)
    assert not order.exceeds(Authority.UNTRUSTED, Authority.DOCUMENT)


def test_the_order_is_configurable_by_name() -> None:
    names = ("document", "user", "system", "tool", "assistant", "untrusted")
    order = AuthorityOrder(names)  # type: ignore[arg-type]
    assert order.ranking[0] is Authority.DOCUMENT
    assert order.exceeds(Authority.DOCUMENT, Authority.SYSTEM)
    assert order.lower(Authority.USER, Authority.SYSTEM) is Authority.SYSTEM
    assert order.lower(Authority.TOOL, Authority.USER) is Authority.TOOL
    assert order == AuthorityOrder(tuple(Authority(name) for name in names))
    assert order != AuthorityOrder()


@pytest.mark.parametrize(
    "ranking",
    [
        (),
        tuple(Authority)[:-1],
        (*Authority, Authority.USER),
        (*tuple(Authority)[:-1], Authority.USER),
        (*tuple(Authority)[:-1], "boss"),
    ],
)
def test_every_authority_appears_exactly_once(ranking: tuple[Authority, ...]) -> None:
    with pytest.raises(InputError, match="exactly once"):
        AuthorityOrder(ranking)


@pytest.mark.parametrize("predicate", ["lives_in", "works_at", "married_to", "birthday", "phone"])
def test_what_people_have_one_of_is_single(predicate: str) -> None:
    assert PredicateRegistry().cardinality(predicate) == "single"
    assert PredicateRegistry().cardinality(f" {predicate.upper()}\t") == "single"


@pytest.mark.parametrize(
    "predicate", ["likes", "owns", "speaks", "has_pet", "friend_of", "unheard"]
)
def test_what_people_have_many_of_and_the_unknown_is_multi(predicate: str) -> None:
    assert PredicateRegistry().cardinality(predicate) == "multi"


def test_a_registry_can_be_extended_and_leaves_the_first_alone() -> None:
    first = PredicateRegistry()
    second = first.extended({"Likes": "single", "team": "single"})
    assert second.cardinality("likes") == second.cardinality("TEAM") == "single"
    assert second.cardinality("lives_in") == "single"
    assert first.cardinality("likes") == first.cardinality("team") == "multi"
    assert PredicateRegistry({}, default="single").cardinality("likes") == "single"


@pytest.mark.parametrize("arguments", [({"likes": "several"},), ({}, "many"), ({"likes": None},)])
def test_other_cardinalities_are_refused(arguments: tuple[object, ...]) -> None:
    with pytest.raises(InputError, match="single or multi"):
        PredicateRegistry(*arguments)  # type: ignore[arg-type]


def test_the_defaults_name_each_predicate_once() -> None:
    from evicortex.validity import predicates

    names = (predicates._SINGLE + predicates._MULTI).split()
    assert len(names) == len(set(names))
    keyed = list(map(predicate_key, names))
    assert sorted(keyed) == sorted(PredicateRegistry().cardinalities)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Lisbon", "  LISBON\n"),
        ("New  York", "new\tyork"),
        ("Straße", "STRASSE"),
        ("cafe\u0301", "CAFÉ"),
        ("ﬁsh", "FISH"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("Ａｌｉｃｅ", "alice"),
        ("a\u3000b", "A b"),
        ("ᾳ", "ΑΙ"),
    ],
)
def test_spellings_of_the_same_thing_share_a_key(a: str, b: str) -> None:
    assert match_key(a) == match_key(b)


@pytest.mark.parametrize(
    ("a", "b"), [("resume", "résumé"), ("14th", "15th"), ("Ana", "Anna"), ("1", "one"), ("è", "é")]
)
def test_different_values_stay_apart(a: str, b: str) -> None:
    assert match_key(a) != match_key(b)


def test_a_blank_text_has_an_empty_key() -> None:
    assert match_key(" \n\u2003") == ""


@pytest.mark.parametrize(
    "spelling",
    [
        "lives in",
        "livesIn",
        "lives-in",
        "Lives_In",
        "LIVES IN",
        " lives\u2011in\n",
        "lives\uff3fin",
    ],
)
def test_a_predicate_is_the_same_however_its_words_are_joined(spelling: str) -> None:
    assert predicate_key(spelling) == predicate_key("lives_in")
    assert PredicateRegistry().cardinality(spelling) == "single"
    assert PredicateRegistry().extended({spelling: "multi"}).cardinality("lives_in") == "multi"


@pytest.mark.parametrize(
    ("a", "b"),
    [("lives_in", "lived_in"), ("lives_in", "lives_at"), ("likes", "like's"), ("_", "-")],
)
def test_different_predicates_stay_apart(a: str, b: str) -> None:
    assert predicate_key(a) != predicate_key(b)


def test_a_predicate_of_joints_alone_has_a_key() -> None:
    assert predicate_key("--") == "--"
    assert predicate_key(" \n") == ""
