"""The shared encoder: identical vectors for every system, kept between runs without a text."""

from __future__ import annotations

import importlib.util
import time

import numpy as np
import pytest

from benchmarks.config import EncoderConfig
from benchmarks.encoders import WindowedHashing, make_counter, make_encoder
from benchmarks.metering import Meter, Spent
from benchmarks.systems.catalog import Bench
from benchmarks.systems.dense import SharedEncoder
from evicortex import EviCortex, Span
from evicortex.protocols import SpanEmbedder
from evicortex.testing import DeterministicSpanEmbedder

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
    path = tmp_path / "kept" / "vectors.sqlite"
    first = SharedEncoder(WindowedHashing())
    first.keep_in(path)
    rows = first.turns(["I bought a red kayak.", "", "It leaks."])
    assert not rows[1].any()
    first.close()
    assert b"kayak" not in path.read_bytes()
    second = SharedEncoder(WindowedHashing())
    second.keep_in(path)
    np.testing.assert_array_equal(
        second.turns(["It leaks.", "I bought a red kayak."]), rows[[2, 0]]
    )
    assert second.embedded == 0
    second.embed(["It leaks."], input_type="query")
    assert second.embedded == 1
    second.close()

    class Other(WindowedHashing):
        @property
        def profile(self):
            from dataclasses import replace

            return replace(super().profile, revision="2")

    third = SharedEncoder(Other())
    third.keep_in(path)
    third.turns(["It leaks."])
    assert third.embedded == 1
    third.close()


def test_vectors_of_spans_are_those_of_the_encoder_whether_kept_or_not(tmp_path):
    path = tmp_path / "vectors.sqlite"
    inner = DeterministicSpanEmbedder(8)
    texts = ["I bought a kayak. It leaks.", "It rains.", ""]
    spans = [[Span(0, 17), Span(18, 27)], [Span(0, 9)], []]
    whole, pieces = inner.embed_spans(texts, spans)
    for number in range(2):
        encoder = SharedEncoder(DeterministicSpanEmbedder(8))
        encoder.keep_in(path)
        assert isinstance(encoder, SpanEmbedder)
        for _ in range(2):
            rows, found = encoder.embed_spans(texts, spans)
            np.testing.assert_array_equal(rows, whole)
            for one, other in zip(found, pieces, strict=True):
                np.testing.assert_array_equal(one, other)
        assert encoder.embedded == (3 if number == 0 else 0)
        assert encoder.requested == 6
        encoder.close()
    assert not isinstance(SharedEncoder(WindowedHashing()), SpanEmbedder)


def test_kept_vectors_serve_a_cortex(tmp_path):
    class Whole(DeterministicSpanEmbedder):
        def windows(self, text):
            return (Span(0, len(text)),)

    for number in range(2):
        encoder = SharedEncoder(Whole(8))
        encoder.keep_in(tmp_path / "vectors.sqlite")
        with EviCortex.open(tmp_path / f"{number}.db", embedder=encoder) as cortex:
            assert cortex.remember("a", "I bought a kayak. It leaks.").indexed
            assert "dense_turn" in cortex.search("a", "kayak").hits[0].channels
        assert (encoder.embedded > 0) == (number == 0)
        encoder.close()


class Ticking(WindowedHashing):
    """Takes one second of CPU for each text."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def embed(self, texts, *, input_type="document"):
        self._clock[0] += len(texts)
        return super().embed(texts, input_type=input_type)


def test_a_kept_vector_is_charged_with_what_it_once_took(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    texts = ["It leaks.", "It rains."]
    for first in (True, False):
        encoder = SharedEncoder(Ticking(clock))
        encoder.keep_in(tmp_path / "vectors.sqlite")
        meter = Meter(Bench(make_counter(), encoder))
        encoder.turns(texts)
        clock[0] += 5.0
        assert meter.read() == Spent(7.0, 2.0, 2)
        assert encoder.spent_s == (2.0 if first else 0.0)
        encoder.close()
