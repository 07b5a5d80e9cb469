"""The recall ladder on conversations made here: record, slices, folds, costs, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks import ranker_folds, recall_measure, run_recall
from benchmarks.datasets.base import Conversation, Label, Query, Turn
from benchmarks.ranker_fit import Recipe
from benchmarks.recall_ladder import LADDER, ON_SLICES, hand_fusion, plain
from benchmarks.recall_suites import Suite, any_cue, strict
from benchmarks.systems.base import Packed
from benchmarks.systems.dense import SharedEncoder
from benchmarks.train_ranker import Source
from evicortex import Settings
from evicortex.testing import DeterministicEmbedder

WORDS = "cat garden water boat piano bread letter winter market train lemon window".split()
START = datetime(2024, 3, 1, 12, tzinfo=UTC)
SPEAKERS = ("Ann", "Ben")


class Encoder(DeterministicEmbedder):
    """Has windows, as the local encoder does."""

    def windows(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text))]


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedEncoder, "local", classmethod(lambda cls: cls(Encoder(8))))


def _line(n: int) -> str:
    return f"The {WORDS[n % 12]} and the {WORDS[(n * 5 + 1) % 12]} number {n}."


@pytest.fixture
def locomo_file(tmp_path: Path) -> Path:
    def record(name: str) -> dict[str, object]:
        sessions: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Ben"}
        for number in (1, 2):
            sessions[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
            sessions[f"session_{number}"] = [
                {
                    "dia_id": f"D{number}:{n + 1}",
                    "speaker": SPEAKERS[n % 2],
                    "text": _line(number * 6 + n),
                }
                for n in range(6)
            ]
        asked = [
            {
                "question": f"What of the {WORDS[n]} did Ann say?",
                "evidence": [f"D2:{n + 1}"],
                "category": 1 + 3 * (n % 2),
                "answer": WORDS[n],
            }
            for n in range(4)
        ]
        asked.append({"question": "Nothing?", "evidence": ["D1:1"], "category": 5})
        return {"sample_id": name, "conversation": sessions, "qa": asked}

    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([record("one"), record("two")]), encoding="utf-8")
    return path


def run(*arguments: str | Path) -> tuple[int, dict]:
    path = Path(arguments[0]).parent / "out.json"
    code = run_recall.main(["--locomo", *map(str, arguments), "--json", str(path)])
    return code, json.loads(path.read_text("utf-8")) if path.is_file() else {}


def test_the_record_holds_every_rung_pair_and_slice_with_what_they_depend_on(
    locomo_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = run(locomo_file, "--slices", "--budgets", "200,40", "--slice-budgets", "100")
    assert code == 0
    assert list(found["systems"]) == list(LADDER)
    assert found["version"]
    assert found["token_counter"]
    assert found["ranker"]["folds"] is None
    hand = found["systems"]["evicortex-hand"]["settings"]
    default = found["systems"]["evicortex"]["settings"]
    assert (hand["fusion"]["ranker"], hand["packing"]["cut"]) == (False, False)
    assert (default["fusion"]["ranker"], default["packing"]["cut"]) == (True, True)
    assert found["systems"]["evicortex-hashing"]["encoder"] != found["encoder"]
    assert [each["suite"] for each in found["suites"]] == [
        "locomo",
        "locomo, no dates",
        "locomo, no names",
        "locomo, one speaker",
        "locomo, assistant chat",
    ]
    whole, *slices = found["suites"]
    assert (whole["n"], whole["conversations"], whole["budgets"]) == (8, 2, [40, 200])
    assert whole["categories"] == {"multi-hop": 4, "single-hop": 4}
    assert len(whole["data"]["locomo"]) == 64
    assert [name for name, each in whole["systems"].items() if each["diagnostic"]] == [
        "evicortex-hashing"
    ]
    assert list(whole["differences"]) == [
        "evicortex over rrf-k60",
        "evicortex over bm25",
        "evicortex over evicortex-hand",
        "evicortex-hand over rrf-k60",
    ]
    for each in slices:
        assert list(each["systems"]) == list(ON_SLICES)
        assert each["budgets"] == [100]
        assert each["data"] == whole["data"]
        assert each["notes"] == [
            "made by rule from the conversations; see benchmarks/datasets/slices.py"
        ]
    shown = capsys.readouterr().out
    assert "feature hashing is a diagnostic encoder" in shown
    assert "CPU minutes" in shown


def test_differences_are_those_of_the_means_and_a_large_budget_shows_everything(
    locomo_file: Path,
) -> None:
    _, found = run(locomo_file, "--budgets", "40,4000")
    (suite,) = found["suites"]
    for budget in ("40", "4000"):
        means = {
            name: each["budgets"][budget]["all"]["mean"] for name, each in suite["systems"].items()
        }
        for pair, by_budget in suite["differences"].items():
            ours, theirs = pair.split(" over ")
            cell = by_budget[budget]
            assert cell["all"]["mean"] == pytest.approx(means[ours] - means[theirs])
            assert cell["by_conversation"]["n"] == 8
            assert set(cell["categories"]) == {"multi-hop", "single-hop"}
        if budget == "4000":
            assert set(means.values()) == {1.0}


def test_hand_fusion_reads_the_ledger_that_was_written_for_both(locomo_file: Path) -> None:
    _, found = run(locomo_file, "--budgets", "60", "--systems", "evicortex,evicortex-hand")
    systems = found["suites"][0]["systems"]
    assert systems["evicortex-hand"]["cost"]["ingest_s"] is not None
    assert systems["evicortex"]["cost"]["ingest_s"] is None
    assert list(found["suites"][0]["differences"]) == ["evicortex over evicortex-hand"]


def test_a_sample_asks_every_nth_question_of_all_and_says_so(locomo_file: Path) -> None:
    _, found = run(locomo_file, "--budgets", "60", "--systems", "bm25", "--every", "3")
    (suite,) = found["suites"]
    assert suite["n"] == 3
    assert suite["notes"] == ["a sample: one question in 3"]


def test_vectors_kept_in_a_file_are_not_made_again(
    locomo_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    used: list[SharedEncoder] = []

    def local(cls: type[SharedEncoder]) -> SharedEncoder:
        used.append(cls(Encoder(8)))
        return used[-1]

    monkeypatch.setattr(SharedEncoder, "local", classmethod(local))
    arguments = ("--budgets", "60", "--systems", "rrf-k60", "--vectors", tmp_path / "v.db")
    first, second = run(locomo_file, *arguments), run(locomo_file, *arguments)
    assert used[0].embedded > 0
    assert used[1].embedded == 0
    cells = [each[1]["suites"][0]["systems"]["rrf-k60"]["budgets"] for each in (first, second)]
    assert cells[0] == cells[1]


def test_malformed_labels_of_an_unknown_file_are_accepted_by_digest_only(
    locomo_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = json.loads(locomo_file.read_text("utf-8"))
    records[0]["qa"][0]["evidence"] = ["D2:1; D2:2"]
    locomo_file.write_text(json.dumps(records), encoding="utf-8")
    arguments = (locomo_file, "--budgets", "60", "--systems", "bm25")
    assert run(*arguments)[0] == 2
    digest = capsys.readouterr().err.split()[-1]
    code, found = run(*arguments, "--accept-repairs", digest)
    assert (code, found["suites"][0]["n"]) == (0, 8)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--systems", "bm26"), "no system bm26"),
        (("--ranker-folds",), "--realtalk must be dev4"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    locomo_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.setattr(run_recall, "DEVELOPMENT", {"realtalk": "dev4"})
    code, found = run(locomo_file, *arguments)
    assert (code, found) == (2, {})
    assert says in capsys.readouterr().err


def test_folds_refuse_a_file_that_is_not_known(
    locomo_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(locomo_file, "--ranker-folds")[0] == 2
    assert "--locomo must be dev6" in capsys.readouterr().err


def test_without_an_encoder_the_lexical_rungs_stand_and_the_others_are_refused(
    locomo_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SharedEncoder, "local", classmethod(lambda cls: None))
    code, found = run(locomo_file, "--budgets", "60")
    assert code == 0
    assert found["encoder"] is None
    assert list(found["systems"]) == ["bm25", "evicortex-lexical", "evicortex-hashing"]
    assert run(locomo_file, "--systems", "dense,bm25")[0] == 2
    assert "dense: no encoder" in capsys.readouterr().err
    assert run(locomo_file, "--ranker-folds")[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--slices", "--needles", "x", "--record", "y"],
        ["--implicit", "x"],
        ["--needles", "x"],
        ["--locomo", __file__, "--every", "0"],
        ["--locomo", __file__, "--budgets", "0,5"],
        ["--locomo", "x", "--budgets", "many"],
    ],
)
def test_arguments_that_make_no_sense_are_wrong_use(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_recall.main(arguments)
    assert stopped.value.code == 2


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_recall.main(["--locomo", "nowhere.json"])
    assert "there is no file nowhere.json" in capsys.readouterr().err


def conversation(name: str) -> Conversation:
    turns = tuple(
        Turn(f"{name}:{n}", f"s{n // 6}", SPEAKERS[n % 2], "user", _line(n), START + timedelta(n))
        for n in range(18)
    )
    queries = tuple(Query(f"{name}/{n}", f"What about the {WORDS[n]}, Ann?") for n in range(3))
    labels = {
        query.query_id: Label(query.query_id, (turns[n].turn_id,), "single-hop", WORDS[n])
        for n, query in enumerate(queries)
    }
    return Conversation(name, turns, queries, labels)


def test_each_conversation_is_asked_with_a_ranker_that_has_not_seen_it(tmp_path: Path) -> None:
    shared = SharedEncoder(Encoder(8))
    known = [conversation(name) for name in "abc"]
    sources = [Source("first", "aa", tuple(known[:2])), Source("second", "bb", (known[2],))]
    every = ranker_folds.training_cases(sources, shared, tmp_path)
    folds = ranker_folds.Folds(every, Recipe(epochs=1, places=(2,)))
    cue = Turn("cue", "cue", "Ann", "user", "The kayak.", START)
    derived = replace(
        known[0], conversation_id="d", turns=(*known[0].turns[:3], cue, *known[0].turns[3:])
    )
    sliced = replace(known[1], turns=tuple(replace(t, actor="") for t in known[1].turns))
    stranger = replace(known[2], conversation_id="x", turns=known[2].turns[:9])
    folds.meet([*known, derived, sliced, stranger])
    assert folds.ranker("d") is folds.ranker("a")
    assert folds.ranker("b") is not folds.ranker("a")
    assert folds.ranker("x") is None
    assert folds.record()["questions"] == 9
    system = ranker_folds.HeldOutEviCortex(tmp_path / "asked.db", folds, embedder=shared)
    for each in (known[1], stranger):
        system.ingest(each.conversation_id, each.turns)
        system.ask(each.conversation_id, each.queries[0], 200)
        used = system.cortex._open.ranker
        assert used is folds.ranker(each.conversation_id)
    system.close()


def test_a_fold_has_the_mean_of_the_other_conversations_features(tmp_path: Path) -> None:
    every = ranker_folds.training_cases(
        [Source("first", "aa", (conversation("a"), conversation("b")))],
        SharedEncoder(Encoder(8)),
        tmp_path,
    )
    folds = ranker_folds.Folds(every, Recipe(epochs=1, places=(2,)))
    folds.meet([conversation("a")])
    ranker = folds.ranker("a")
    assert ranker is not None
    others = [c.example.features for c in every if c.conversation.conversation_id == "b"]
    assert np.allclose(ranker.mean, np.concatenate(others).mean(axis=0), atol=1e-5)


class Counting:
    """A system that spends seconds of a clock of its own, part of them in the encoder."""

    name = "counting"

    def __init__(self, encoder: SharedEncoder, tokens: int = 10) -> None:
        self._encoder = encoder
        self._tokens = tokens
        self.now = 0.0
        self.asked: list[int] = []

    def ingest(self, namespace: str, turns: object) -> None:
        self.now += 5.0
        self._encoder.spent_s += 3.0

    def ask(self, namespace: str, query: Query, budget_tokens: int) -> Packed:
        self.asked.append(budget_tokens)
        self.now += 1.0 + budget_tokens / 100
        self._encoder.spent_s += 1.0
        return Packed("", self._tokens, {f"{namespace}:0": "shown"})

    def close(self) -> None:
        pass


def made_suite() -> Suite:
    one = conversation("a")
    return Suite("made", {}, "unofficial", "any", any_cue, [(one, one.queries)])


def test_costs_leave_out_the_encoder_and_the_first_question_of_a_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = SharedEncoder(Encoder(8))
    system = Counting(shared)
    monkeypatch.setattr(recall_measure.time, "process_time", lambda: system.now)
    values, cost = recall_measure.measure(made_suite(), system, (100, 200), encoder=shared)
    assert values == {100: [1.0, 0.0, 0.0], 200: [1.0, 0.0, 0.0]}
    assert system.asked == [100, *(100, 200) * 3]
    assert cost["ingest_s"] == pytest.approx(2.0)
    assert cost["first_ms"] == pytest.approx(1000)
    assert cost["query_ms"][200] == pytest.approx({"p50": 2000, "p95": 2000})
    _, stored = recall_measure.measure(made_suite(), system, (100,), encoder=shared, stored=True)
    assert stored["ingest_s"] is None


def test_a_pack_over_its_budget_stops_the_run() -> None:
    with pytest.raises(AssertionError, match="counting broke the budget: a/0"):
        recall_measure.measure(made_suite(), Counting(SharedEncoder(Encoder(8)), 101), (100,))


def test_figures_on_data_that_trained_the_ranker_say_so() -> None:
    seen = replace(made_suite(), data={"locomo": "aa"}, is_slice=True, score=strict)
    ranker = {"data_sha256": {"dev": "aa"}}
    flattering, made = run_recall.notes(seen, ranker, folds=False, every=1)
    assert "flatter" in flattering
    assert "made by rule" in made
    assert "trained without it" in run_recall.notes(seen, ranker, folds=True, every=1)[0]
    assert run_recall.notes(made_suite(), ranker, folds=False, every=1) == []


def test_by_conversation_needs_more_than_one() -> None:
    cells = recall_measure.intervals({("x", 1): [1.0, 0.0]}, ["a", "a"], ["p", "q"])
    assert cells["x", 1]["by_conversation"] is None
    assert cells["x", 1]["categories"]["q"]["mean"] == 0.0


def test_hand_fusion_changes_nothing_but_the_ranker_and_the_cutting() -> None:
    before, after = plain(Settings().options), plain(hand_fusion(Settings()).options)
    before["fusion"]["ranker"] = before["packing"]["cut"] = False
    assert before == after
    assert json.loads(json.dumps(after)) == after
