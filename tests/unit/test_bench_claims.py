"""Recall with and without claims: the same questions, paired, with the cost beside it."""

from __future__ import annotations

import json

import pytest

from benchmarks import run_claims


def test_the_command_pairs_every_system_with_the_memory_without_claims(tmp_path, capsys):
    out = tmp_path / "out.json"
    options = ["--seeds", "3", "--turns", "40", "--budgets", "256,4096", "--lexical"]
    assert run_claims.main([*options, "--json", str(out)]) == 0
    written = json.loads(out.read_text("utf-8"))
    assert written["configuration"]["budgets"] == [256, 4096]
    suite = written["suites"]["synthetic"]
    assert suite["data"]["shapes"][0]["seed"] == 3
    found = suite["systems"]
    assert list(found) == ["no-claims", "rules", "canonical"]
    assert "difference" not in found["no-claims"]
    sizes = {each["recall"]["256"]["n"] for each in found.values()}
    assert len(sizes) == 1
    difference = found["canonical"]["difference"]["256"]
    assert difference["by_question"]["mean"] == pytest.approx(
        found["canonical"]["recall"]["256"]["mean"] - found["no-claims"]["recall"]["256"]["mean"]
    )
    assert suite["questions"] == difference["by_question"]["n"]
    kinds = difference["categories"]
    assert sum(each["n"] for each in kinds.values()) == suite["questions"]
    timely = [each for name, each in kinds.items() if name in run_claims.TEMPORAL]
    assert difference["temporal"]["n"] == sum(each["n"] for each in timely)
    assert difference["temporal"]["mean"] * difference["temporal"]["n"] == pytest.approx(
        sum(each["mean"] * each["n"] for each in timely)
    )
    assert found["no-claims"]["cost"]["claims"] == 0
    assert found["canonical"]["cost"]["claims"] > 10
    assert found["canonical"]["cost"]["extraction_cpu_s_per_1000_turns"] > 0
    assert "canonical" in capsys.readouterr().out


def test_the_command_needs_data(capsys):
    with pytest.raises(SystemExit) as caught:
        run_claims.main([])
    assert caught.value.code == 2
    assert "--seeds" in capsys.readouterr().err
