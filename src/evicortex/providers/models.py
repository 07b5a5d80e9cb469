"""Fetching of registered models: the only code that downloads weights, and only when asked.

A model is fetched into a directory beside its place, every file is checked against its pinned
size and SHA-256, and the directory is renamed into place when all of it is right. Afterwards
everything is offline.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urljoin, urlsplit

from evicortex.errors import (
    InputError,
    ModelIntegrityError,
    NotFoundError,
    ProviderUnavailableError,
)
from evicortex.providers.artifacts import BLOCK_BYTES, default_cache_dir, sha256_file
from evicortex.providers.registry import REGISTRY, RegisteredFile, RegisteredModel
from evicortex.providers.transformers import TransformersEmbedder

HUB = "https://huggingface.co"
MAX_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SCHEMES = ("https", "http")

Progress = Callable[[str, int, int], None]
"""Called with a file's path, its bytes so far, and its size."""


@dataclass(frozen=True, slots=True)
class FetchedModel:
    """A complete, verified model on this machine. ``downloaded`` is false if it was there."""

    model: RegisteredModel
    path: Path
    downloaded: bool


def registered(name: str, registry: Mapping[str, RegisteredModel] = REGISTRY) -> RegisteredModel:
    """Return the registered model.

    Raises:
        NotFoundError: No model has this name; the message lists those that do.
    """
    try:
        return registry[name]
    except KeyError:
        raise NotFoundError(f"no model {name!r}; known: {', '.join(sorted(registry))}") from None


def model_path(model: RegisteredModel, cache_dir: Path | None = None) -> Path:
    """Return where the model lies once it is fetched."""
    return (cache_dir or default_cache_dir()) / "models" / model.commit / model.name


def fetch_model(
    name: str,
    *,
    cache_dir: Path | None = None,
    endpoint: str = HUB,
    timeout_seconds: float = 30.0,
    on_progress: Progress | None = None,
    registry: Mapping[str, RegisteredModel] = REGISTRY,
) -> FetchedModel:
    """Download a registered model, unless it is there and intact.

    Args:
        name: Its name in the registry.
        cache_dir: Where models are kept; None for ``~/.cache/evicortex``.
        endpoint: A server that speaks the hub's ``/{repository}/resolve/{commit}/{path}``.
            Redirects must stay with ``https``, or with ``http`` if the endpoint itself has it.
        timeout_seconds: For connecting, and for each wait for data.
        on_progress: Told about every block.
        registry: Models by name.

    Raises:
        NotFoundError: No model has this name.
        ModelIntegrityError: A file was truncated, too long, or has another digest; nothing of
            it is kept.
        ProviderUnavailableError: The server cannot be reached, or refuses.
        InputError: The endpoint is no ``http`` or ``https`` URL.
    """
    model = registered(name, registry)
    if urlsplit(endpoint).scheme not in SCHEMES or not urlsplit(endpoint).hostname:
        raise InputError(f"endpoint must be an https URL, not {endpoint!r}")
    target = model_path(model, cache_dir)
    if _damage(model, target) is None:
        return FetchedModel(model, target, downloaded=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=target.parent) as scratch:
        folder = Path(scratch) / model.name
        for file in model.files:
            place = folder / file.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.parent.chmod(0o755)
            url = f"{endpoint.rstrip('/')}/{model.repository}/resolve/{model.commit}/"
            _download(url + quote(file.path), file, place, timeout_seconds, on_progress)
        _put(folder, target, Path(scratch) / "replaced")
    return FetchedModel(model, target, downloaded=True)


def find_model(
    name: str,
    *,
    cache_dir: Path | None = None,
    registry: Mapping[str, RegisteredModel] = REGISTRY,
) -> FetchedModel:
    """Return a model that was fetched before, every file verified; never touches the network.

    Raises:
        NotFoundError: No model has this name.
        ModelIntegrityError: It was not fetched, or a file is not the pinned one.
    """
    model = registered(name, registry)
    target = model_path(model, cache_dir)
    damage = _damage(model, target)
    if damage:
        raise ModelIntegrityError(f"{damage}; run: evicortex models fetch {name}")
    return FetchedModel(model, target, downloaded=False)


def fetched_embedder(
    name: str, *, cache_dir: Path | None = None, **options: Any
) -> TransformersEmbedder:
    """Open a fetched model as an encoder; ``options`` are those of ``TransformersEmbedder``.

    Raises:
        NotFoundError: No model has this name.
        ModelIntegrityError: It was not fetched, or a file is not the pinned one.
        MissingExtraError: ``evicortex[transformers]`` is not installed.
    """
    found = find_model(name, cache_dir=cache_dir)
    defaults = {"pooling": found.model.pooling, "max_tokens": found.model.max_tokens}
    return TransformersEmbedder(
        found.path, local_sha256=found.model.artifact_sha256, **(defaults | options)
    )


def _damage(model: RegisteredModel, target: Path) -> str | None:
    """Return what is wrong with a directory, or None when it is the whole model."""
    if not target.is_dir():
        return f"{model.name} was not fetched"
    for file in model.files:
        path = target / file.path
        if not path.is_file() or path.stat().st_size != file.size:
            return f"{path} is missing or has another size"
        if sha256_file(path) != file.sha256:
            return f"{path} has another SHA-256 than the pinned one"
    known = {file.path for file in model.files}
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target).as_posix() not in known:
            return f"{path} does not belong to the model"
    return None


def _put(folder: Path, target: Path, aside: Path) -> None:
    """Rename the finished directory into place; a damaged older one goes away with ``aside``."""
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.exists():
        target.rename(aside)
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        shutil.rmtree(folder)  # another process has just put the same verified files there
    handle = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _download(
    url: str, file: RegisteredFile, place: Path, timeout: float, on_progress: Progress | None
) -> None:
    digest = hashlib.sha256()
    received = 0
    try:
        with _open(url, timeout) as response, place.open("wb") as output:
            while block := response.read(BLOCK_BYTES):
                received += len(block)
                if received > file.size:
                    raise ModelIntegrityError(f"{file.path} is longer than its {file.size} bytes")
                digest.update(block)
                output.write(block)
                if on_progress is not None:
                    on_progress(file.path, received, file.size)
            output.flush()
            os.fsync(output.fileno())
    except http.client.IncompleteRead as error:
        received += len(error.partial)
        raise _truncated(file, received) from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, OSError) as error:
        raise ProviderUnavailableError(f"{url} cannot be fetched: {_reason(error)}") from error
    if received != file.size:
        raise _truncated(file, received)
    if digest.hexdigest() != file.sha256:
        raise ModelIntegrityError(
            f"{file.path} came with SHA-256 {digest.hexdigest()}, but {file.sha256} is pinned"
        )
    place.chmod(0o644)


def _truncated(file: RegisteredFile, received: int) -> ModelIntegrityError:
    return ModelIntegrityError(
        f"{file.path} was truncated: {received} of {file.size} bytes came; try again"
    )


def _open(url: str, timeout: float) -> IO[bytes]:
    """Open ``url``, following redirects by hand so that every target is checked first."""
    opener = urllib.request.build_opener(_NoRedirects)
    allowed = SCHEMES if url.startswith("http:") else SCHEMES[:1]
    for _ in range(MAX_REDIRECTS + 1):
        request = urllib.request.Request(url, headers={"User-Agent": "evicortex"})  # noqa: S310 - scheme checked
        try:
            response: IO[bytes] = opener.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            location = error.headers.get("Location")
            error.close()
            if error.code not in REDIRECTS or not location:
                raise
            url = urljoin(url, location)
            if urlsplit(url).scheme not in allowed:
                raise ProviderUnavailableError(
                    f"the server redirects to {url}, which is not {' or '.join(allowed)}"
                ) from error
        else:
            return response
    raise ProviderUnavailableError(f"more than {MAX_REDIRECTS} redirects, the last to {url}")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    return str(getattr(error, "reason", error)) or type(error).__name__


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Let every redirect surface as an ``HTTPError``."""
