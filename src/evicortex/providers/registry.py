"""Models that ``evicortex models fetch`` knows: commit, and digest and size of every file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from evicortex.providers.pinned_models import artifact_sha256


@dataclass(frozen=True, slots=True)
class RegisteredFile:
    """A file of a repository: its SHA-256 and its size in bytes."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class RegisteredModel:
    """A hub repository at one commit, and how its vectors are pooled."""

    name: str
    repository: str
    commit: str
    licence: str
    pooling: Literal["mean", "cls", "last"]
    max_tokens: int
    files: tuple[RegisteredFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def artifact_sha256(self) -> str:
        """What ``local_transformers_artifact_sha256`` gives for the fetched directory."""
        return artifact_sha256({file.path: (file.sha256, file.size) for file in self.files})


_ALL_MINILM_L6_V2 = RegisteredModel(
    name="all-MiniLM-L6-v2",
    repository="sentence-transformers/all-MiniLM-L6-v2",
    commit="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    licence="Apache-2.0",
    pooling="mean",
    max_tokens=512,
    files=(
        RegisteredFile(
            "1_Pooling/config.json",
            "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            190,
        ),
        RegisteredFile(
            "config.json",
            "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            612,
        ),
        RegisteredFile(
            "config_sentence_transformers.json",
            "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
            116,
        ),
        RegisteredFile(
            "model.safetensors",
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            90_868_376,
        ),
        RegisteredFile(
            "modules.json",
            "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
            349,
        ),
        RegisteredFile(
            "sentence_bert_config.json",
            "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
            53,
        ),
        RegisteredFile(
            "tokenizer.json",
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            466_247,
        ),
        RegisteredFile(
            "tokenizer_config.json",
            "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            350,
        ),
        RegisteredFile(
            "vocab.txt",
            "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            231_508,
        ),
    ),
)

REGISTRY: Mapping[str, RegisteredModel] = MappingProxyType(
    {model.name: model for model in (_ALL_MINILM_L6_V2,)}
)
"""Models by name."""
