"""A short reply brings its question along when asked to, as far as both may be seen."""

from pathlib import Path

from evicortex import EviCortex, Settings
from evicortex.pipeline.wiring import RoomOptions
from evicortex.policy.packing import PackingPolicy

TURNS = [
    ("Bob", "Where did you buy the blue kayak?"),
    ("Ann", "In Porto."),
    ("Bob", "Nice weather today."),
]


def packed(tmp_path: Path, *, add: bool, **asked: object) -> list[str]:
    settings = Settings(RoomOptions(packing=PackingPolicy(add_neighbours=add)))
    with EviCortex.open(tmp_path / f"{add}.db", embedder=None, settings=settings) as cortex:
        for actor, text in TURNS:
            cortex.remember("n", text, actor=actor, session="s")
        for number in range(30):
            cortex.remember("n", f"Unrelated line {number}", actor="Cy", session=f"o{number}")
        pack = cortex.recall("n", "kayak", budget_tokens=38, **asked)  # type: ignore[arg-type]
        assert pack.token_count <= 38
        return [item.text for item in pack.items]


def test_a_short_reply_follows_its_question(tmp_path: Path) -> None:
    assert packed(tmp_path, add=True) == [TURNS[0][1], TURNS[1][1]]


def test_a_neighbour_that_may_not_be_seen_is_not_added(tmp_path: Path) -> None:
    assert packed(tmp_path, add=True, actors=["Bob"]) == [TURNS[0][1], TURNS[2][1]]
