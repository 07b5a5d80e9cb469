"""Model files: found, verified by digest, and written so that no half-written file is ever read."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evicortex.errors import MissingExtraError, ModelIntegrityError

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file that an installed distribution brings along, pinned by digest."""

    distribution: str
    path: str
    sha256: str

    def locate(self, feature: str, extra: str) -> Path:
        """Return where the file lies, without importing the package and without reading it.

        Raises:
            MissingExtraError: The distribution is not installed.
            ModelIntegrityError: It is installed without this file.
        """
        try:
            files = importlib.metadata.files(self.distribution) or []
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingExtraError(feature, extra) from error
        for file in files:
            if PurePosixPath(file) == PurePosixPath(self.path):
                return Path(str(file.locate()))
        raise ModelIntegrityError(
            f"{self.distribution} is installed without {self.path}; "
            f"reinstall it: pip install --force-reinstall 'evicortex[{extra}]'"
        )

    def read(self, feature: str, extra: str) -> bytes:
        """Return the file's verified bytes.

        Raises:
            MissingExtraError: The distribution is not installed.
            ModelIntegrityError: The file is missing or its digest is not the pinned one.
        """
        return read_verified(self.locate(feature, extra), self.sha256)


def default_cache_dir() -> Path:
    """Return the directory for built graphs and fetched models when none is configured."""
    return Path.home() / ".cache" / "evicortex"


def sha256_bytes(content: bytes) -> str:
    """Return the SHA-256 of ``content`` as lower-case hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file as lower-case hexadecimal, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_verified(path: Path, sha256: str) -> bytes:
    """Return the bytes of ``path``.

    Raises:
        ModelIntegrityError: The file cannot be read, or its digest is not ``sha256``.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelIntegrityError(f"{path} cannot be read: {error.strerror}") from error
    found = sha256_bytes(content)
    if found != sha256:
        raise ModelIntegrityError(f"{path} has SHA-256 {found}, but {sha256} is pinned; remove it")
    return content


def write_atomic(path: Path, content: bytes) -> None:
    """Write ``content`` so that ``path`` holds either all of it or what was there before.

    Raises:
        OSError: The directory cannot be made or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
