"""The local encoder on paraphrased questions about claims: what its vectors are worth there."""

from collections.abc import Iterator

import pytest

from evicortex import ClaimDraft, EviCortex, EvidenceDraft
from evicortex.providers.onnx import OnnxEmbedder

pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
pytest.importorskip("tokenizers", reason="evicortex[local] is not installed")

CLAIMS = {
    "Alice": {
        "lives_in": "Lisbon",
        "employer": "Acme Robotics",
        "allergic_to": "peanuts",
        "has_pet": "a cat named Miso",
        "favourite_food": "ramen",
        "birthday": "3 May",
        "married_to": "Tom",
        "plays": "the violin",
        "drives": "a blue Volvo",
        "studied": "marine biology",
    },
    "Bob": {
        "lives_in": "Graz",
        "employer": "a bakery",
        "allergic_to": "penicillin",
        "has_pet": "two dogs",
        "favourite_food": "lasagne",
        "birthday": "12 December",
        "married_to": "Nina",
        "plays": "basketball",
        "drives": "an old van",
        "studied": "law",
    },
    "Carol": {
        "lives_in": "Oslo",
        "employer": "the city hospital",
        "fears": "spiders",
        "hobby": "pottery",
        "sibling": "a brother called Sven",
        "plans": "a trip to Japan",
        "reads": "science fiction",
        "vegetarian": "since 2019",
        "speaks": "Norwegian and Italian",
        "broke": "her left wrist",
    },
}
QUESTIONS = {
    "Where is Alice's home?": "lives_in",
    "What city does Alice reside in?": "lives_in",
    "Who does Alice work for?": "employer",
    "What is Alice's job?": "employer",
    "Which nuts can't Alice eat?": "allergic_to",
    "Does Alice own any animals?": "has_pet",
    "What dish does Alice like best?": "favourite_food",
    "When was Alice born?": "birthday",
    "Who is Alice's husband?": "married_to",
    "Which instrument does Alice know?": "plays",
    "What car does Alice have?": "drives",
    "What was Alice's major at university?": "studied",
    "Where is Bob's home?": "lives_in",
    "Where does Bob earn his money?": "employer",
    "Which medicine is dangerous for Bob?": "allergic_to",
    "Does Bob own any animals?": "has_pet",
    "What should I cook for Bob?": "favourite_food",
    "When should we throw Bob a party?": "birthday",
    "Who is Bob's wife?": "married_to",
    "Which sport does Bob do?": "plays",
    "What vehicle does Bob use?": "drives",
    "What degree did Bob get?": "studied",
    "What town is Carol in?": "lives_in",
    "What is Carol's profession?": "employer",
    "What is Carol scared of?": "fears",
    "What does Carol do in her free time?": "hobby",
    "Does Carol have siblings?": "sibling",
    "Where will Carol go on holiday?": "plans",
    "What kind of books does Carol like?": "reads",
    "Does Carol eat meat?": "vegetarian",
    "Which languages does Carol know?": "speaks",
    "Was Carol injured?": "broke",
}


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder()


@pytest.fixture(params=[True, False], ids=["vectors", "words"])
def cortex(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, embedder: OnnxEmbedder
) -> Iterator[EviCortex]:
    path = tmp_path_factory.mktemp("claims") / "m.db"
    drafts = [
        EvidenceDraft(
            content=f"{name} said something.",
            actor=name,
            external_id=f"{name} {predicate}",
            claims=(ClaimDraft(name, predicate, value),),
        )
        for name, known in CLAIMS.items()
        for predicate, value in known.items()
    ]
    with EviCortex.open(path, embedder=embedder if request.param else None) as cortex:
        cortex.remember_many("a", drafts)
        yield cortex


def test_paraphrased_questions_find_their_claim(cortex: EviCortex) -> None:
    """With vectors four of five come first, by words alone hardly one."""
    first = 0
    for question, predicate in QUESTIONS.items():
        name = next(name for name in CLAIMS if name in question)
        hits = cortex.search("a", question, limit=30).hits
        shares = {
            hit.evidence.external_id: hit.channels["claims"].score
            for hit in hits
            if "claims" in hit.channels
        }
        wanted = shares.pop(f"{name} {predicate}", 0.0)
        first += wanted > max(shares.values(), default=0.0)
    assert (first >= 25) if cortex.capabilities().embedder else (first <= 3)
