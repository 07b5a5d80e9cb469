"""Embedding profiles: what is a valid one, and its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from evicortex.errors import ProviderContractError
from evicortex.protocols import EmbeddingProfile

_REQUIRED = ("model_id", "revision", "implementation", "precision", "pooling")
_STRINGS = ("query_prefix", "document_prefix")
_FLAGS = ("normalized", "semantic")
_TRUNCATIONS = ("error", "window", "truncate")


def profile_digest(profile: EmbeddingProfile) -> str:
    """Return the SHA-256 of the profile as canonical JSON.

    Canonical: UTF-8, keys sorted, no white space, no escapes beyond those JSON requires. Equal
    profiles have equal digests in every process and on every machine.
    """
    return _digest(profile.values())


def span_profile_digest(profile: EmbeddingProfile) -> str:
    """Return the identity of span vectors pooled from the text's own token vectors.

    They are not the vectors that ``embed`` would give for the same characters, so they are a
    projection of their own and never mix with the texts' vectors.
    """
    return _digest(profile.values() | {"projection": "spans"})


def validate_profile(profile: object) -> EmbeddingProfile:
    """Return an immutable copy of ``profile``.

    Raises:
        ProviderContractError: It is no profile, or one of its fields is impossible.
    """
    if not isinstance(profile, EmbeddingProfile):
        raise ProviderContractError(
            f"embedder: profile must be an EmbeddingProfile, not {type(profile).__name__}"
        )
    problem = _text_problem(profile) or _number_problem(profile) or _details_problem(profile)
    if problem:
        raise ProviderContractError(f"embedder {profile.model_id!r}: profile.{problem}")
    return replace(profile, details=MappingProxyType(dict(profile.details)))


def _digest(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _text_problem(profile: EmbeddingProfile) -> str | None:
    for name in (*_REQUIRED, *_STRINGS):
        value = getattr(profile, name)
        if not _is_text(value):
            return f"{name} must be a string that UTF-8 can encode"
        if name in _REQUIRED and not value.strip():
            return f"{name} must not be empty"
    if profile.truncation not in _TRUNCATIONS:
        return f"truncation must be one of {_TRUNCATIONS}"
    return None


def _number_problem(profile: EmbeddingProfile) -> str | None:
    if type(profile.dimensions) is not int or profile.dimensions < 1:
        return "dimensions must be an integer of at least 1"
    if profile.max_tokens is not None and (
        type(profile.max_tokens) is not int or profile.max_tokens < 1
    ):
        return "max_tokens must be None or an integer of at least 1"
    for name in _FLAGS:
        if type(getattr(profile, name)) is not bool:
            return f"{name} must be a bool"
    return None


def _details_problem(profile: EmbeddingProfile) -> str | None:
    if not isinstance(profile.details, Mapping):
        return "details must be a mapping"
    if not all(_is_text(key) and _is_text(value) for key, value in profile.details.items()):
        return "details must map strings to strings"
    return None


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
