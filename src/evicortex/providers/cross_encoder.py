"""Reranking with a pinned cross-encoder of the Transformers library."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from evicortex.errors import InputError, TextTooLongError
from evicortex.protocols import RerankCandidate
from evicortex.providers.pinned_models import (
    PinnedModel,
    checked_capacity,
    import_torch,
    load_model,
)
from evicortex.providers.wordpieces import WordPieces

LEAST_TEXT_TOKENS = 8
"""A query that leaves fewer tokens than this for the candidate is refused."""


class CrossEncoderReranker:
    """Scores query and candidate together with a sequence classifier of one or two labels.

    The score is the logit (one label), or the second logit less the first (two labels): higher
    is better, without bounds. A candidate longer than the capacity is read window by window and
    gets its best window's score (MaxP, Dai and Callan 2019, https://arxiv.org/abs/1905.09217),
    so nothing is truncated. Instances may be shared by threads.

    Args:
        model: A directory, or the hub's ``owner/name`` of a model in the local cache.
        revision: The hub commit (40 digits), needed for a hub name.
        local_sha256: ``local_transformers_artifact_sha256(model)``, needed for a directory.
        max_tokens: Capacity of a pair with special tokens; None for what the model states.
        device: A torch device.
        trust_remote_code: Whether the repository's own Python code may run.
        code_revision: The commit of that code, needed with ``trust_remote_code``.

    Raises:
        InputError: Something is not pinned, an option is impossible, or the model has more
            than two labels.
        MissingExtraError: ``evicortex[transformers]`` is not installed.
        ModelIntegrityError: Files are missing or not those that were pinned.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        revision: str | None = None,
        local_sha256: str | None = None,
        max_tokens: int | None = None,
        device: str = "cpu",
        trust_remote_code: bool = False,
        code_revision: str | None = None,
    ) -> None:
        source = PinnedModel(model, revision, local_sha256, trust_remote_code, code_revision)
        self._torch, _ = import_torch()
        loaded = load_model(source, "AutoModelForSequenceClassification")
        self._labels = int(loaded.model.config.num_labels)
        if self._labels not in (1, 2):
            raise InputError(f"a cross-encoder has one or two labels, not {self._labels}")
        self._model = loaded.model.to(device)
        self._device = device
        self._capacity = checked_capacity(loaded, max_tokens)
        self._tokenizer = loaded.tokenizer.backend_tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._typed = "token_type_ids" in loaded.tokenizer.model_input_names
        code = f";code={code_revision}" if code_revision else ""
        self._identity = f"{source.model_id}@{source.pin};max_tokens={self._capacity};maxp/1{code}"

    @property
    def identity(self) -> str:
        """Model, commit or digest, and capacity."""
        return self._identity

    def rerank(self, query: str, candidates: Sequence[RerankCandidate]) -> Mapping[str, float]:
        """Return a score for every candidate.

        Raises:
            TextTooLongError: The query leaves no room for a candidate.
        """
        single = self._tokenizer.num_special_tokens_to_add(False)
        pair = self._tokenizer.num_special_tokens_to_add(True)
        query_tokens = len(self._tokenizer.encode(query, add_special_tokens=False).ids)
        room = self._capacity - pair - query_tokens
        if room < LEAST_TEXT_TOKENS:
            raise TextTooLongError(
                f"a query of {query_tokens} tokens leaves no room for a candidate in the "
                f"reranker's {self._capacity}"
            )
        pieces = WordPieces(self._tokenizer, room + single)
        return {
            candidate.evidence_id: self._best(query, candidate.text, pieces)
            for candidate in candidates
        }

    def _best(self, query: str, text: str, pieces: WordPieces) -> float:
        windows = pieces.windows(text) or ((0, 0),)
        return max(self._score(query, text[start:end]) for start, end in windows)

    def _score(self, query: str, text: str) -> float:
        encoding: Any = self._tokenizer.encode(query, text)
        feed = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        if self._typed:
            feed["token_type_ids"] = encoding.type_ids
        with self._torch.inference_mode():
            tensors = {
                name: self._torch.tensor([value], device=self._device)
                for name, value in feed.items()
            }
            logits: list[float] = self._model(**tensors).logits[0].tolist()
        return logits[0] if self._labels == 1 else logits[1] - logits[0]
