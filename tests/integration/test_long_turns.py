"""Long turns through the public calls, with the local encoder: a pack shows their best part."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")

from evicortex import EviCortex
from evicortex.providers.onnx import OnnxEmbedder
from evicortex.types import ContextPack, Span

THINGS = """market garden report meeting library weather river cooking budget software music
    painting travel history school bridge festival recipe engine committee""".split()
ACTIONS = "discussed visited improved described considered explained repaired planned".split()
NEEDLES = [
    ("My sister Ingrid adopted a three legged parrot called Biscuit", "What is Ingrid's parrot?"),
    ("The spare key of the cabin lies under the blue flower pot", "Where is the cabin's key?"),
    ("Our flight to Reykjavik was moved to the ninth of October", "When do we fly to Reykjavik?"),
]
ACROSS = [
    (
        "My sister took in a three legged parrot called Biscuit",
        "Which pet lives with Ann's family?",
    ),
    (
        "Our cabin opens with what lies under the blue flower pot",
        "Where did they hide the spare key?",
    ),
    ("The doctor told me to stay away from peanuts", "Which food is Ann allergic to?"),
]


def filler(count: int) -> list[str]:
    chance = random.Random(3)
    return [
        f"We {chance.choice(ACTIONS)} the {chance.choice(THINGS)} near the {chance.choice(THINGS)}"
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder()


def packs(
    path: Path, embedder: OnnxEmbedder, text: str, question: str, budgets: tuple[int, ...]
) -> list[ContextPack]:
    with EviCortex.open(path, embedder=embedder) as cortex:
        assert cortex.remember("a", text, actor="Ann").diagnostics == ()
        return [cortex.recall("a", question, budget_tokens=budget) for budget in budgets]


@pytest.mark.parametrize(("needle", "question"), NEEDLES)
@pytest.mark.parametrize("between", [", and then ", ". "], ids=["one sentence", "sentences"])
def test_a_fact_in_a_long_turn_is_shown(
    tmp_path: Path, embedder: OnnxEmbedder, needle: str, question: str, between: str
) -> None:
    said = filler(320)
    said.insert(213, needle)
    text = between.join(said)
    for pack in packs(tmp_path / "m.db", embedder, text, question, (256, 512, 1024, 2048)):
        assert pack.token_count <= pack.budget_tokens
        (item,) = (item for item in pack.items if needle in item.text)
        assert not item.complete


@pytest.mark.parametrize(("needle", "question"), ACROSS)
def test_a_sentence_across_the_border_of_two_windows_is_shown(
    tmp_path: Path, embedder: OnnxEmbedder, needle: str, question: str
) -> None:
    text, where = across_a_border(embedder, needle)
    for pack in packs(tmp_path / "m.db", embedder, text, question, (64, 96, 128)):
        assert any(needle in item.text for item in pack.items), where


def across_a_border(embedder: OnnxEmbedder, needle: str) -> tuple[str, Span]:
    """Return a text of several windows in which ``needle`` lies across a border, and where."""
    for place in range(20, 100):
        said = filler(120)
        said.insert(place, needle)
        text = ". ".join(said)
        start = text.index(needle)
        borders = [window.end for window in embedder.windows(text)]
        if any(start + 12 < border < start + len(needle) - 12 for border in borders):
            return text, Span(start, start + len(needle))
    raise AssertionError("no place puts the sentence across a border")
