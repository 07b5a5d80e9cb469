"""The throughput comparison: the same turns for all, in turn, and a verdict that can fail."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import encoder

TEXTS = [f"Mira: note {number} " + "about the harbour " * (number % 7) for number in range(40)]


def test_every_contender_gets_every_turn_and_the_order_rotates():
    calls = []

    def contender(name):
        def encode(texts):
            calls.append((name, list(texts)))
            return np.full((len(texts), 2), len(name), dtype=np.float32)

        return encode

    spent, vectors = encoder.measure({name: contender(name) for name in ("a", "bb")}, TEXTS, 4)
    assert [len(seconds) for seconds in spent.values()] == [4, 4]
    assert {name: rows.shape for name, rows in vectors.items()} == {"a": (40, 2), "bb": (40, 2)}
    warm_up, timed = calls[:2], calls[2:]
    assert all(texts == TEXTS[: encoder.WARM_UP] for _, texts in warm_up)
    assert [name for name, _ in timed] == ["a", "bb", "bb", "a"] * 2
    for wanted in ("a", "bb"):
        assert [text for name, texts in timed if name == wanted for text in texts] == TEXTS


def test_turns_come_in_stretches_spread_over_the_file():
    texts = [str(number) for number in range(1_000)]
    found = encoder.spread(texts, 3)
    assert len(found) == 3 * encoder.TURNS_A_ROUND
    assert found[:2] == ["0", "1"]
    assert found[encoder.TURNS_A_ROUND] == "333"
    assert encoder.spread(texts[:5], 3) == texts[:5]


def report(ratio, cosine):
    return {"ratio": {encoder.PLAIN: {"mean": ratio}}, "cosine": {"mean": cosine}}


@pytest.mark.parametrize(
    ("ratio", "cosine", "verdict"),
    [(2.5, 0.99, True), (2.49, 0.999, False), (4.0, 0.9899, False)],
)
def test_both_goals_count(ratio, cosine, verdict):
    assert encoder.met(report(ratio, cosine)) is verdict


def test_the_plain_loops_agree_with_the_encoder(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    found = encoder.encoder_report(TEXTS, 2)
    assert found["graph"] == "dynamic-u8"
    assert found["cosine"]["mean"] >= encoder.COSINE_GOAL
    assert found["turns"] == 40
    assert set(found["turns_per_cpu_second"]) == {"evicortex", encoder.PLAIN, encoder.SORTED}


def test_sorting_leaves_rows_in_their_places():
    pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
    from evicortex.providers import minilm

    loop = encoder.PlainLoop(
        minilm.MODEL.read("tests", "local"), minilm.TOKENIZER.read("tests", "local"), 512
    )
    in_order, by_length = loop.in_order(TEXTS[:12]), loop.by_length(TEXTS[:12])
    assert np.einsum("ij,ij->i", in_order, by_length).min() > 0.9999


def session(turns):
    return {
        "speaker_a": "Mira",
        "speaker_b": "Olaf",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Mira", "dia_id": f"D1:{number}", "text": text}
            for number, text in enumerate(turns, 1)
        ],
    }


@pytest.mark.parametrize(("ratio", "code"), [(3.0, 0), (2.0, 1)])
def test_the_command_prints_writes_and_judges(tmp_path, monkeypatch, capsys, ratio, code):
    data, out = tmp_path / "locomo.json", tmp_path / "out.json"
    record = {"sample_id": "conv-1", "conversation": session(["Hello!", "Bye."]), "qa": []}
    data.write_text(json.dumps([record]))
    asked = []

    def measured(texts, rounds):
        asked.append((texts, rounds))
        interval = {"mean": ratio, "low": ratio, "high": ratio, "n": rounds}
        return {
            "graph": "dynamic-u8",
            "graph_sha256": "0" * 64,
            "refused": ["blocks-8bit is not used here"],
            "turns": len(texts),
            "rounds": rounds,
            "turns_per_cpu_second": {"evicortex": 90.0, encoder.PLAIN: 30.0},
            "ratio": {encoder.PLAIN: interval},
            "cosine": {"mean": 0.998, "minimum": 0.995},
        }

    monkeypatch.setattr(encoder, "encoder_report", measured)
    words = ["--data", str(data), "--rounds", "2", "--json", str(out)]
    assert encoder.main(words) == code
    assert asked == [(["Mira: Hello!", "Mira: Bye."], 2)]
    shown = capsys.readouterr().out
    assert "graph   dynamic-u8 0000000000000000" in shown
    assert ("met" if code == 0 else "MISSED") in shown.splitlines()[-1]
    assert json.loads(out.read_text())["ratio"][encoder.PLAIN]["mean"] == ratio


def test_absent_data_is_said(tmp_path: Path, capsys):
    assert encoder.main(["--data", str(tmp_path / "none.json")]) == 2
    assert "pass --data FILE" in capsys.readouterr().err
