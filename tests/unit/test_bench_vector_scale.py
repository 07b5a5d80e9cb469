"""Exact search over size: the certified scan is measured against the float32 scan of the same run."""

from __future__ import annotations

import importlib.util
import json
import sys

import numpy as np
import pytest

from benchmarks import evidence_tables, run_vector_scale


@pytest.mark.parametrize("shape", run_vector_scale.SHAPES)
def test_vectors_are_units_drawn_by_the_seed(shape):
    rows, asked = run_vector_scale.vectors(shape, 300, 20, seed=3)
    assert rows.shape == (300, run_vector_scale.DIMENSIONS)
    assert len(asked) == 20
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)
    again, _ = run_vector_scale.vectors(shape, 300, 20, seed=3)
    np.testing.assert_array_equal(rows, again)
    other, _ = run_vector_scale.vectors(shape, 300, 20, seed=4)
    assert not np.array_equal(rows, other)


def test_clusters_are_clusters():
    rows, asked = run_vector_scale.vectors("clustered", 1_000, 30, seed=0)
    best = np.sort(asked @ rows.T, axis=1)[:, -20:]
    assert best.mean() > 0.5
    rows, asked = run_vector_scale.vectors("uniform", 1_000, 30, seed=0)
    assert np.sort(asked @ rows.T, axis=1)[:, -20:].mean() < 0.3


def test_the_record_counts_identical_answers_and_rescored_rows(tmp_path, capsys):
    out = tmp_path / "scale.json"
    words = ["--sizes", "200", "400", "--queries", "7", "--json", str(out)]
    assert run_vector_scale.main(words) == 0
    record = json.loads(out.read_text("utf-8"))
    assert [(p["shape"], p["size"]) for p in record["points"]] == [
        (shape, size) for shape in run_vector_scale.SHAPES for size in (200, 400)
    ]
    for each in record["points"]:
        own = each["certified"]
        assert own["identical"] == each["queries"] == 7
        assert run_vector_scale.LIMIT <= own["rescored_p50"] <= each["size"]
        assert own["ratio"]["low"] <= own["ratio"]["mean"] <= own["ratio"]["high"]
        assert each["ann"] is None
    assert "7/7" in capsys.readouterr().out
    table = evidence_tables.scale_table(record)
    assert [row[4] for row in table.rows] == ["7 of 7"] * 4


def test_a_missed_row_fails(tmp_path, monkeypatch, capsys):
    class Wrong(run_vector_scale.CertifiedScan):
        def search(self, query, limit, rows=None):
            return super().search(query, limit, rows)[1:]

    monkeypatch.setattr(run_vector_scale, "CertifiedScan", Wrong)
    assert run_vector_scale.main(["--sizes", "100", "--queries", "3"]) == 1
    assert "rows differ" in capsys.readouterr().err


def test_a_missing_index_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(SystemExit, match="pip install faiss-cpu"):
        run_vector_scale.main(["--sizes", "100", "--queries", "3", "--ann"])


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss is not installed")
def test_an_index_is_tuned_to_the_recall_goal():
    found = run_vector_scale.point("clustered", 4_000, 10, 0, ann=True)["ann"]
    assert found["recall"]["mean"] > 0.9
    assert found["index"].startswith("faiss ")
