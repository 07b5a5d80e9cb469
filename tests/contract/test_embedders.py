"""One suite over every embedder; torch is optional and its encoder has a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evicortex.errors import ProviderContractError, ProviderUnavailableError
from evicortex.protocols import Embedder
from evicortex.providers.hashing import HashingEmbedder
from evicortex.testing import (
    EMBEDDER_LIES,
    SPAN_LIES,
    DeterministicEmbedder,
    DeterministicSpanEmbedder,
    LyingEmbedder,
    LyingSpanEmbedder,
    RaisingEmbedder,
    SymmetricEmbedder,
    check_embedder,
)
from evicortex.types import Span
from evicortex.validation import CheckedEmbedder, validate_profile


def onnx_embedder(graph: str) -> Embedder:
    pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
    pytest.importorskip("tokenizers", reason="evicortex[local] is not installed")
    from evicortex.providers.onnx import OnnxEmbedder

    return OnnxEmbedder(graph=graph)


EMBEDDERS: dict[str, Callable[[], Embedder]] = {
    "deterministic": DeterministicEmbedder,
    "deterministic spans": DeterministicSpanEmbedder,
    "symmetric": SymmetricEmbedder,
    "hashing": HashingEmbedder,
    "hashing of 8": lambda: HashingEmbedder(8),
    "dynamic-u8": lambda: onnx_embedder("dynamic-u8"),
    "blocks-8bit": lambda: onnx_embedder("blocks-8bit"),
    "packaged": lambda: onnx_embedder("packaged"),
}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "home", lambda: home)
        yield


@pytest.fixture(params=EMBEDDERS, scope="module")
def embedder(request, cache) -> Embedder:
    return EMBEDDERS[request.param]()


def test_contract(embedder):
    check_embedder(embedder)


@pytest.mark.parametrize("length", [1e-30, 10.0, 1e38])
def test_an_encoder_need_not_promise_a_length(length):
    class Raw(DeterministicEmbedder):
        def __init__(self):
            super().__init__()
            self._profile = replace(self._profile, normalized=False)

        def embed(self, texts, *, input_type="document"):
            return super().embed(texts, input_type=input_type) * np.float32(length)

    check_embedder(Raw())


def test_profile_is_valid_and_constant(embedder):
    assert validate_profile(embedder.profile) == validate_profile(embedder.profile)


def test_no_texts_give_no_rows(embedder):
    assert embedder.embed([]).shape == (0, embedder.profile.dimensions)


def test_odd_texts_have_vectors(embedder):
    texts = ["", " ", "\0", "\u200b", "a" * 2000, "👩‍👩‍👧‍👦", "e\u0301", "\U0010ffff"]
    batch = CheckedEmbedder(embedder, order_probes=0).embed(texts)
    assert batch.indices == tuple(range(len(texts)))


def test_identities_differ(cache):
    pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
    digests = {CheckedEmbedder(make()).digest for make in EMBEDDERS.values()}
    assert len(digests) == len(EMBEDDERS)


@pytest.mark.parametrize("lie", EMBEDDER_LIES)
def test_the_check_finds_every_lie(lie):
    with pytest.raises(ProviderContractError):
        check_embedder(LyingEmbedder(lie))


@pytest.mark.parametrize("lie", SPAN_LIES)
def test_the_check_finds_every_lie_about_spans(lie):
    with pytest.raises(ProviderContractError, match="testing/lying-spans"):
        check_embedder(LyingSpanEmbedder(lie))


def test_the_check_passes_failures_on():
    with pytest.raises(ProviderUnavailableError):
        check_embedder(RaisingEmbedder(OSError("gone")))


def test_the_check_finds_vectors_that_change():
    class Drifting(DeterministicEmbedder):
        def embed(self, texts, *, input_type="document"):
            self.calls.append((tuple(texts), input_type))
            return DeterministicEmbedder(vectors={"ok": [len(self.calls)] * 15 + [40]}).embed(texts)

    with pytest.raises(ProviderContractError, match="another vector when"):
        check_embedder(Drifting())


def test_the_check_finds_a_query_of_the_wrong_shape(monkeypatch):
    monkeypatch.setattr(CheckedEmbedder, "embed_query", lambda *_: np.zeros((1, 16), np.float32))
    with pytest.raises(ProviderContractError, match="one dimension"):
        check_embedder(DeterministicEmbedder())


@pytest.mark.parametrize("windows", [lambda text: [Span(0, 1)] if text == " \n " else [], None])
def test_the_check_finds_windows_that_lie(windows, monkeypatch):
    answer = windows or (lambda _self, _text: ())
    monkeypatch.setattr(
        CheckedEmbedder, "windows", answer if windows is None else lambda _, t: windows(t)
    )
    with pytest.raises(ProviderContractError, match="blank text has no windows"):
        check_embedder(DeterministicEmbedder())


def test_the_check_finds_a_profile_that_changes_at_the_end():
    class Late(DeterministicEmbedder):
        def __init__(self):
            super().__init__()
            self.reads = 0

        def windows(self, text):
            self._profile = (
                DeterministicEmbedder(revision="2").profile if text == "a" else self._profile
            )
            return [Span(0, len(text))]

    with pytest.raises(ProviderContractError, match="profile changed"):
        check_embedder(Late())


def test_the_check_wants_span_vectors_to_leave_the_text_alone():
    class Mixed(DeterministicEmbedder):
        def embed_spans(self, texts, spans):
            rows = self.embed(texts)
            if len(texts) > 1:
                rows[1] = DeterministicEmbedder(revision="2").embed(texts[:1])
            return rows, [self.embed(["x"] * len(wanted)) for wanted in spans]

    with pytest.raises(ProviderContractError, match="embedded with spans"):
        check_embedder(Mixed())
