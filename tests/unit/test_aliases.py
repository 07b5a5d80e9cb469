import pytest

from evicortex.policy.aliases import Uses, addresses, edits, learn, misspelt, name_parts, uses

EMI, ELISE = 1, 2
NAMES = {EMI: "Emi Sato", ELISE: "elise"}


def learned(turns: list[tuple[int, str]], names: dict[int, str] = NAMES) -> dict[str, int]:
    found = [a for row, (actor, text) in enumerate(turns) for a in addresses(row, actor, text)]
    return learn(found, names, lambda word: uses(word, turns))


def test_the_other_person_is_named_by_greetings_and_vocatives() -> None:
    turns = [
        (ELISE, "Hey Kate! How are you?"),
        (EMI, "Good, you?"),
        (ELISE, "That sounds fun, Kate."),
        (ELISE, "Thanks, Kate, see you"),
    ]
    assert learned(turns) == {"kate": EMI}


def test_a_person_says_their_own_name() -> None:
    assert learned([(EMI, "By the way my name is Katharina")]) == {"katharina": EMI}
    assert learned([(EMI, "My name is Emi")]) == {}
    assert learned([(ELISE, "I go by Lis, call me Lis")]) == {"lis": ELISE}
    assert learned([(EMI, "call me maybe"), (EMI, "call me Later")]) == {"later": EMI}
    assert learned([(EMI, "call me Later"), (EMI, "later later later")]) == {}


@pytest.mark.parametrize(
    "turns",
    [
        [(ELISE, "Hey Kate!"), (ELISE, "Hi Kate!")],
        [(ELISE, "Hey Kate!")] * 3 + [(ELISE, "kate kate")],
        [(ELISE, "Hey Kate!")] * 3 + [(EMI, "Kate and Kate")],
        [(ELISE, "Hey Kate!")] * 3
        + [(ELISE, "Kate saw Kate, and Kate told Kate of Kate here")] * 2,
        [(ELISE, "Hey Everyone!")] * 5,
        [(ELISE, "Hey Emi!")] * 5,
        [(ELISE, "hey kate!")] * 5,
    ],
    ids=["too rare", "lower case", "said by both", "a third person", "common", "known", "lower"],
)
def test_what_is_no_alias(turns: list[tuple[int, str]]) -> None:
    assert learned(turns) == {}


def test_among_three_people_a_greeting_says_nothing() -> None:
    turns = [(ELISE, "Hey Kate!")] * 5
    assert learned(turns, {**NAMES, 3: "Bo"}) == {}


def test_uses_are_counted_by_actor_and_case() -> None:
    counted = uses("kate", [(EMI, "Kate kate"), (ELISE, "KATE, katelyn"), (EMI, "none")])
    assert counted == Uses({EMI: 2, ELISE: 1}, 1)
    assert counted.total == 3


def test_parts_of_names() -> None:
    assert name_parts({1: "Ana Maria", 2: "Ana"}) == {"ana": {1, 2}, "maria": {1}}


@pytest.mark.parametrize(
    ("word", "owner"),
    [
        ("carolin", 1),
        ("carolnie", 1),
        ("carrroline", 1),
        ("melany", 2),
        ("caro", None),
        ("bob", None),
        ("xaroline", None),
        ("jonh", None),
    ],
)
def test_misspellings(word: str, owner: int | None) -> None:
    assert misspelt(word, {"caroline": 1, "melanie": 2, "john": 3, "jonah": 4, "bo": 5}) == owner


def test_edits() -> None:
    assert edits("ab", "ba", 2) == 1
    assert edits("kitten", "sitting", 3) == 3
    assert edits("a", "abcd", 2) == 3
    assert edits("", "", 0) == 0
