"""The ranker's training on conversations made here: features, figures and record."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks import train_ranker
from benchmarks.datasets.base import Conversation, Label, Query, Turn
from benchmarks.ranker_fit import Recipe, fit
from benchmarks.systems.dense import SharedEncoder
from evicortex.policy.ranking import read, written
from evicortex.testing import DeterministicEmbedder

WORDS = "cat garden water boat piano bread letter winter market train lemon window".split()
START = datetime(2024, 3, 1, 12, tzinfo=UTC)
RECIPE = Recipe(epochs=1, places=(2,))


class Encoder(DeterministicEmbedder):
    """Has windows, as the local encoder does."""

    def windows(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


def conversation(name: str) -> Conversation:
    turns = tuple(
        Turn(
            f"{name}:{n}",
            f"s{n // 6}",
            ("Ann", "Ben")[n % 2],
            "user",
            f"The {WORDS[n % 12]} and the {WORDS[(n * 5 + 1) % 12]} number {n}.",
            START + timedelta(days=n),
        )
        for n in range(18)
    )
    queries = tuple(
        Query(f"{name}/{n}", f"What about the {WORDS[n]}, {('Ann', 'Ben')[n % 2]}?")
        for n in range(4)
    )
    labels = {
        query.query_id: Label(
            query.query_id, (turns[n].turn_id,), "adversarial" if n == 3 else "single-hop", WORDS[n]
        )
        for n, query in enumerate(queries)
    }
    return Conversation(name, turns, queries, labels)


@pytest.fixture(scope="module")
def sources() -> list[train_ranker.Source]:
    return [
        train_ranker.Source("first", "aa", (conversation("a"), conversation("b"))),
        train_ranker.Source("second", "bb", (conversation("c"),)),
    ]


def test_training_marks_gold_measures_what_was_left_out_and_records_it(
    sources: list[train_ranker.Source], tmp_path: Path
) -> None:
    encoder = SharedEncoder(Encoder(8))
    path = tmp_path / "train.db"
    train_ranker.ingest(path, sources, encoder)
    plain = train_ranker.opened(path, encoder, ranker=False)
    ranked = train_ranker.opened(path, encoder, ranker=True)
    every = train_ranker.cases(plain, sources)
    assert [case.source for case in every] == ["first"] * 6 + ["second"] * 3
    for case in every:
        assert case.example.gold.sum() == 1
        assert case.example.features.shape[0] == 18
    found = train_ranker.figures(plain, ranked, every, RECIPE)
    assert set(found) == {"first", "second"}
    left_out = found["second"]["leave_one_source_out"][512]
    assert left_out["recall"] == {"mean": 100.0, "low": 100.0, "high": 100.0, "n": 3}
    assert left_out["over_hand_fusion"]["mean"] == 0.0
    assert found["first"]["leave_one_conversation_out"][1024]["recall"]["n"] == 6
    weights = written(fit([case.example for case in every], RECIPE))
    said = train_ranker.record(weights, sources, encoder, RECIPE)
    assert said["data_sha256"] == {"first": "aa", "second": "bb"}
    model = read(weights, train_ranker.text_of(said).encode())
    assert np.isfinite(model.weights).all()
    plain.close()
    ranked.close()
