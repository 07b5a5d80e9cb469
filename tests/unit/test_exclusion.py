import pytest

from evicortex.policy.exclusion import Exclusion, find_exclusions, rejects
from evicortex.types import Span


def phrases(query: str) -> list[str]:
    return [each.phrase for each in find_exclusions(query)]


def only(query: str) -> Exclusion:
    (found,) = find_exclusions(query)
    return found


@pytest.mark.parametrize(
    ("query", "phrase"),
    [
        ("What gift did she buy that is not an accessory?", "an accessory"),
        ("gift ideas, not an accessory", "an accessory"),
        ("What city other than Paris did Kate visit?", "Paris"),
        ("When is the gym open, except on Mondays?", "on Mondays"),
        ("Which dishes except for the soup?", "the soup"),
        ("What did she cook but not pasta?", "pasta"),
        ("Everything excluding the sauce", "the sauce"),
        ("all cities with the exception of New York", "New York"),
        ("anything but sushi", "sushi"),
        ("everyone but Mark was there?", "Mark"),
        ("restaurants not in Paris", "in Paris"),
        ("Where did she live, not in Paris?", "in Paris"),
        ("What can I eat that isn't pizza?", "pizza"),
        ("people who’s not a doctor", "a doctor"),
        ("hotels that don't have a pool", "a pool"),
        ("songs which do not mention love", "love"),
        ("Recipes without nuts please", "nuts"),
        ("no nuts please", "nuts"),
        ("a room with no view", "view"),
        ("goals that are not related to his basketball skills", "related to his basketball skills"),
        ("movies not involving the army of the north", "the army of the north"),
        ("tea and not coffee", "coffee"),
        ("other than the trip to Rome which was fun", "the trip to Rome"),
        ("other than CS:GO?", "CS:GO"),
        ("something blue (not the scarf of)", "the scarf"),
    ],
)
def test_explicit_exclusions(query: str, phrase: str) -> None:
    found = only(query)
    assert found.phrase == phrase
    assert found.strict
    assert query[found.span.start : found.span.end].endswith(phrase)


@pytest.mark.parametrize(
    "query",
    [
        "Why did she not come?",
        "Is it not true that he left?",
        "Not only that, she sang",
        "I'm not sure",
        "She couldn't sleep",
        "Why not Paris?",
        "Why not? A holiday.",
        "She was not in Paris",
        "What is Sam not a fan of?",
        "What type of beer does John not like?",
        "Not at all",
        "Is it Paris or not",
        "How long has he gone without eating?",
        "She left without telling John",
        "He can't live without coffee",
        "able to jog without pain",
        "Why is there no ice cream?",
        "with no doubt",
        "What did he do other than that?",
        "other than in",
        "except in, the park",
        "except, well, yes",
        "Besides, I was tired",
        "exception and exceptional",
        "apart from the",
        "no-one, not-so-good",
        "not, the other",
        "but not anymore",
        "",
    ],
)
def test_ordinary_negation_is_none(query: str) -> None:
    assert phrases(query) == []


def test_each_of_several_things_is_one_exclusion() -> None:
    assert phrases("cities other than Paris or the old London and where they are") == [
        "Paris",
        "the old London",
    ]
    assert phrases("not Paris, not Rome and not") == ["Paris", "Rome"]
    assert phrases("except Mark and, well, Anna") == ["Mark"]
    assert phrases("other than Paris or") == ["Paris"]
    assert phrases("other than other than Paris") == ["Paris"]
    assert phrases("other than tea without sugar") == ["tea without sugar"]


def test_a_phrase_has_an_end() -> None:
    long = "other than one big long red soft warm dry thing"
    assert only(long).phrase == "one big long red soft warm"


@pytest.mark.parametrize("cue", ["besides", "apart from", "aside from", "in addition to"])
def test_what_asks_for_more_of_the_same_rejects_nothing(cue: str) -> None:
    found = only(f"What languages does Tim know {cue} German?")
    assert not found.strict
    assert found.terms == ("german",)
    assert not rejects(found, "I know German and a bit of Spanish.")


ACCESSORY = Exclusion(Span(0, 0), "an accessory", ("accessori",))
PARIS = Exclusion(Span(0, 0), "Paris", ("pari",))
NEW_YORK = Exclusion(Span(0, 0), "New York", ("new", "york"))


@pytest.mark.parametrize(
    ("exclusion", "text"),
    [
        (ACCESSORY, "I bought her a leather accessory."),
        (ACCESSORY, "Accessories! I love them."),
        (ACCESSORY, "This is not only an accessory."),
        (ACCESSORY, "I can't wait to buy accessories"),
        (ACCESSORY, "This is not an accessory. That accessory is."),
        (ACCESSORY, "No, the accessories are great"),
        (ACCESSORY, "I did not know but the accessories are great"),
        (ACCESSORY, "I never said in all of those many long years that accessories matter"),
        (ACCESSORY, "Why not an accessory?"),
        (PARIS, "Paris is not expensive"),
        (PARIS, "Paris isn't cheap"),
        (PARIS, "I don't cook and I love Paris"),
        (PARIS, "Anything but that, Paris it is"),
        (PARIS, "Paris. Free."),
        (NEW_YORK, "We saw the new towers of York"),
        (NEW_YORK, "York, the new one"),
    ],
)
def test_a_text_that_mentions_it_is_rejected(exclusion: Exclusion, text: str) -> None:
    assert rejects(exclusion, text)


@pytest.mark.parametrize(
    ("exclusion", "text"),
    [
        (ACCESSORY, "A scarf for her birthday"),
        (ACCESSORY, "This is not an accessory"),
        (ACCESSORY, "no accessories included"),
        (ACCESSORY, "No bags or accessories"),
        (ACCESSORY, "Accessories are not included."),
        (ACCESSORY, "Accessories aren't needed"),
        (ACCESSORY, "accessories excluded"),
        (ACCESSORY, "an accessory-free outfit, non-accessory wear"),
        (ACCESSORY, "accessory free"),
        (ACCESSORY, "I don’t like accessories at all"),
        (ACCESSORY, "A bag is free from any accessory"),
        (PARIS, "never in Paris"),
        (PARIS, "I've never been to Paris"),
        (PARIS, "anywhere but Paris"),
        (PARIS, "Rome instead of Paris"),
        (PARIS, "I live in Rome, not in Paris"),
        (NEW_YORK, "not New York"),
        (NEW_YORK, "Something new. Dinner in York."),
        (NEW_YORK, "new shoes for a walk along the harbour of the town called York"),
    ],
)
def test_a_text_without_it_or_that_negates_it_is_kept(exclusion: Exclusion, text: str) -> None:
    assert not rejects(exclusion, text)
