"""Models that EviCortex knows by commit and digest: which there are, where they lie, fetching.

``fetch`` is the only call of the whole package that downloads a model, and it runs only when
somebody asks for it. Everything else here, and everything that uses a fetched model, is offline.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evicortex.errors import ModelIntegrityError
from evicortex.protocols import Embedder

HUB = "https://huggingface.co"
"""The server that is asked when no other is named."""

Progress = Callable[[str, int, int], None]
"""Called with a file's path inside the model, its bytes so far, and its size in bytes."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be fetched, and what is known of it on this machine.

    ``commit`` is the hub's, ``size`` counts the bytes of all ``files``. ``state`` is ``ready``
    when every file is there with its pinned SHA-256, ``damaged`` when something else lies at
    ``path`` (``problem`` says what), and ``absent`` when nothing does.
    """

    name: str
    repository: str
    commit: str
    licence: str
    files: int
    size: int
    path: Path
    state: Literal["ready", "absent", "damaged"]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The outcome of a fetch; ``downloaded`` is false when the model was there already."""

    name: str
    commit: str
    size: int
    path: Path
    downloaded: bool


def known(*, cache_dir: Path | None = None) -> tuple[Model, ...]:
    """Return every model of the registry, by name; files that are there are verified.

    Args:
        cache_dir: Where models are kept; None for ``~/.cache/evicortex``.
    """
    room = _room()
    return tuple(_model(room, room.REGISTRY[name], cache_dir) for name in sorted(room.REGISTRY))


def fetch(
    name: str,
    *,
    cache_dir: Path | None = None,
    endpoint: str = HUB,
    on_progress: Progress | None = None,
) -> Fetched:
    """Download a model, unless it is there and whole.

    Args:
        name: Its name in the registry.
        cache_dir: Where models are kept; None for ``~/.cache/evicortex``.
        endpoint: A server that speaks the hub's ``/{repository}/resolve/{commit}/{path}``.
        on_progress: Told about every block that came.

    Raises:
        NotFoundError: No model has this name; the message lists those that do.
        ModelIntegrityError: A file came truncated, too long or with another digest; nothing
            of the model is kept.
        ProviderUnavailableError: The server cannot be reached, or refuses.
        InputError: The endpoint is no ``http`` or ``https`` URL.
    """
    room = _room()
    found = room.fetch_model(
        name,
        cache_dir=cache_dir,
        endpoint=endpoint,
        on_progress=on_progress,
        registry=room.REGISTRY,
    )
    model = found.model
    return Fetched(name, model.commit, model.size, found.path, found.downloaded)


def path(name: str, *, cache_dir: Path | None = None) -> Path:
    """Return the directory of a fetched model, every file verified.

    Raises:
        NotFoundError: No model has this name.
        ModelIntegrityError: It was not fetched, or a file is not the pinned one.
    """
    room = _room()
    found: Path = room.find_model(name, cache_dir=cache_dir, registry=room.REGISTRY).path
    return found


def embedder(name: str, *, cache_dir: Path | None = None, **options: Any) -> Embedder:
    """Open a fetched model as an encoder for ``EviCortex.open(embedder=...)``.

    Args:
        name: Its name in the registry.
        cache_dir: Where models are kept; None for ``~/.cache/evicortex``.
        options: Those of ``evicortex.providers.transformers.TransformersEmbedder``; pooling and
            capacity come from the registry.

    Raises:
        NotFoundError: No model has this name.
        ModelIntegrityError: It was not fetched, or a file is not the pinned one.
        MissingExtraError: ``evicortex[transformers]`` is not installed.
    """
    opened: Embedder = _room().fetched_embedder(name, cache_dir=cache_dir, **options)
    return opened


def _room() -> Any:
    return importlib.import_module("evicortex.providers.models")


def _model(room: Any, pinned: Any, cache_dir: Path | None) -> Model:
    place: Path = room.model_path(pinned, cache_dir)
    state: Literal["ready", "absent", "damaged"] = "ready"
    problem = None
    try:
        room.find_model(pinned.name, cache_dir=cache_dir, registry=room.REGISTRY)
    except ModelIntegrityError as error:
        state, problem = ("damaged", str(error)) if place.exists() else ("absent", None)
    return Model(
        name=pinned.name,
        repository=pinned.repository,
        commit=pinned.commit,
        licence=pinned.licence,
        files=len(pinned.files),
        size=pinned.size,
        path=place,
        state=state,
        problem=problem,
    )
