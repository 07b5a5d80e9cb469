import pytest

from evicortex.policy.names import Names
from evicortex.types import Span


def actors(names: Names, text: str) -> list[str]:
    return [mention.actor for mention in names.find(text)]


PEOPLE = Names(
    [
        "Caroline",
        "Mary Ann Smith",
        "Jean-Luc",
        "O'Brien",
        "José",
        "Speaker 1",
        "Speaker 2",
        "",
        " ",
    ],
    {"Mel": "Caroline", "JL": "Jean-Luc", "Ghost": "Nobody known"},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What does caroline do?", ["Caroline"]),
        ("CAROLINE's plan", ["Caroline"]),
        ("Caroline’s plan", ["Caroline"]),
        ("Carolines plan", []),
        ("mel and Mel", ["Caroline", "Caroline"]),
        ("mary ann smith", ["Mary Ann Smith"]),
        ("Mary said", ["Mary Ann Smith"]),
        ("Ann or Smith", ["Mary Ann Smith", "Mary Ann Smith"]),
        ("Mary, Ann Smith", ["Mary Ann Smith"] * 3),
        ("Jean-Luc and jean luc", ["Jean-Luc", "Jean-Luc"]),
        ("Luc", ["Jean-Luc"]),
        ("o'brien and O’Brien's dog", ["O'Brien", "O'Brien"]),
        ("JOSE, jose\u0301 and José", ["José", "José", "José"]),
        ("Speaker 2 spoke", ["Speaker 2"]),
        ("the speaker spoke, 1 and 2", []),
        ("Ghost", []),
        ("", []),
    ],
)
def test_names_match_whole_words_in_any_case(text: str, expected: list[str]) -> None:
    assert actors(PEOPLE, text) == expected


def test_spans_and_sources() -> None:
    text = "Is Mary's or James' or mel’s car red?"
    found = Names(["Mary Smith", "James"], {"mel": "James"}).find(text)
    assert [(m.actor, m.source, m.text, text[m.span.start : m.span.end]) for m in found] == [
        ("Mary Smith", "part", "Mary", "Mary's"),
        ("James", "name", "James", "James'"),
        ("James", "alias", "mel", "mel’s"),
    ]


def test_a_part_that_two_actors_share_names_nobody() -> None:
    names = Names(["Anna Berg", "Lena Berg", "Lena"])
    assert actors(names, "Berg") == []
    assert actors(names, "Anna") == ["Anna Berg"]
    assert actors(names, "Lena") == ["Lena"]
    assert actors(names, "Lena Berg") == ["Lena Berg"]


EVERYDAY = Names(["Will", "May", "Rose", "Mark Hill", "Bill"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What will Will do?", ["Will"]),
        ("Will she come?", []),
        ("Will Rose come?", ["Rose"]),
        ("Will went home", ["Will"]),
        ("Will's car. Will", ["Will"]),
        ("WHAT WILL HAPPEN", []),
        ("it may rain, a rose is red", []),
        ("May I ask?", []),
        ("May said so", ["May"]),
        ("Did May call? Mark the date; ask Mark", ["May", "Mark Hill"]),
        ("the bill", []),
    ],
)
def test_everyday_words_need_a_capital_of_their_own(text: str, expected: list[str]) -> None:
    assert actors(EVERYDAY, text) == expected


def test_roles_are_names_only_with_an_article() -> None:
    names = Names(["user", "assistant"])
    text = "What did the assistant say about the user interface?"
    found = names.find(text)
    assert [mention.actor for mention in found] == ["assistant", "user"]
    assert text[found[0].span.start : found[0].span.end] == "the assistant"
    assert actors(names, "user interface") == []
    assert actors(names, "Assistant") == []


def test_scripts_without_spaces_and_symbols_match_anywhere() -> None:
    names = Names(["李雷", "李雷雷", "민수", "🦊"])
    assert actors(names, "李雷雷和李雷在哪里") == ["李雷雷", "李雷"]
    assert actors(names, "민수는 🦊") == ["민수", "🦊"]
    assert names.find("李雷")[0].span == Span(0, 2)


def test_a_literal_name_wins_over_a_word_inside_it() -> None:
    names = Names(["李 Ann", "Ann"])
    assert actors(names, "李 Ann") == ["李 Ann"]


def test_misspellings_of_rare_words() -> None:
    names = Names(["Muhhamed", "Kate"])

    def rare(word: str) -> bool:
        return word != "kata"

    text = "Did Muhammad, muhammad, Kata, Kat, Katee, Rose or Xander come?"
    found = names.find(text, rare=rare)
    assert [(m.actor, m.text, m.source) for m in found] == [
        ("Muhhamed", "Muhammad", "misspelling"),
        ("Kate", "Katee", "misspelling"),
    ]
    assert names.find("Did Muhammad come?") == ()


def test_no_actors_find_nobody() -> None:
    assert Names().find("Caroline") == ()
    assert Names().actors == ()
