"""The shared encoder: identical vectors for every system, kept between runs without a text."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from benchmarks.config import EncoderConfig
from benchmarks.encoders import WindowedHashing, make_counter, make_encoder
from benchmarks.systems.dense import SharedEncoder

has_local = importlib.util.find_spec("onnxruntime") is not None


def test_encoders_by_configuration():
    assert make_encoder(EncoderConfig(kind="none")) is None
    assert make_encoder(EncoderConfig(kind="hashing")).profile.semantic is False
    assert make_counter().count("") == 0


@pytest.mark.skipif(not has_local, reason="evicortex[local] is not installed")
def test_the_local_encoder_and_counter_are_exact_and_semantic():
    encoder = make_encoder(EncoderConfig())
    assert encoder.profile.semantic
    assert make_counter().exact
    assert encoder.embed(["a kayak"]).shape == (1, encoder.profile.dimensions)


def test_vectors_are_kept_by_digest_and_only_for_the_same_encoder(tmp_path):
    path = tmp_path / "kept" / "vectors.npz"
    first = SharedEncoder(WindowedHashing())
    rows = first.turns(["I bought a red kayak.", "", "It leaks."])
    assert not rows[1].any()
    first.save(path)
    assert b"kayak" not in path.read_bytes()
    second = SharedEncoder(WindowedHashing())
    second.load(tmp_path / "absent.npz")
    second.load(path)
    np.testing.assert_array_equal(
        second.turns(["It leaks.", "I bought a red kayak."]), rows[[2, 0]]
    )
    assert second.embedded == 0
    second.embed(["It leaks."], input_type="query")
    assert second.embedded == 1

    class Other(WindowedHashing):
        @property
        def profile(self):
            from dataclasses import replace

            return replace(super().profile, revision="2")

    third = SharedEncoder(Other())
    third.load(path)
    third.turns(["It leaks."])
    assert third.embedded == 1
