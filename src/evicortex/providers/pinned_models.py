"""Loading of Transformers models: offline, safetensors only, every source pinned."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evicortex.errors import InputError, MissingExtraError, ModelIntegrityError
from evicortex.providers.artifacts import sha256_file

COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
EXTRA = "transformers"
UNPINNED_LIMIT = 10**9  # Transformers' own "no limit" for a tokenizer is a far larger integer


def local_transformers_artifact_sha256(path: str | os.PathLike[str]) -> str:
    """Return one SHA-256 over every file of a model directory: names, sizes and contents.

    The digest is the SHA-256 of ``<sha256> <size> <path>`` for each file, sorted by path, each
    ended by a zero byte; paths are relative, with ``/`` between parts, and hidden files count
    like any other.

    Raises:
        ModelIntegrityError: There is no directory, it is empty, it holds something that is
            neither file nor directory, a link leads out of it, or others than its owner may
            write to a part of it, so that no digest would hold. The owner's own group may, the
            one of the owner's name without other members, which a umask of 002 goes with.
    """
    root = Path(path)
    if not root.is_dir():
        raise ModelIntegrityError(f"{root} is not a directory")
    root = root.resolve()
    files = {
        file.relative_to(root).as_posix(): (sha256_file(file), file.stat().st_size)
        for file in _files(root)
    }
    if not files:
        raise ModelIntegrityError(f"{root} holds no files")
    return artifact_sha256(files)


def artifact_sha256(files: Mapping[str, tuple[str, int]]) -> str:
    """Return the digest of a directory whose files have these digests and sizes, by path."""
    lines = [f"{digest} {size} {path}\0" for path, (digest, size) in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, slots=True)
class PinnedModel:
    """A model that cannot change unnoticed.

    Args:
        model: A directory (a ``Path``, or text together with ``local_sha256``), or the hub's
            ``owner/name`` of a model that lies in the local cache already.
        revision: The hub commit, 40 hexadecimal digits; needed for a hub name.
        local_sha256: ``local_transformers_artifact_sha256`` of the directory; needed for one.
        trust_remote_code: Whether Python code of the repository may run.
        code_revision: The commit of that code, needed with ``trust_remote_code``.

    Raises:
        InputError: Something is not pinned, or the arguments contradict each other.
    """

    model: str | os.PathLike[str]
    revision: str | None = None
    local_sha256: str | None = None
    trust_remote_code: bool = False
    code_revision: str | None = None

    def __post_init__(self) -> None:
        if self.trust_remote_code is not (self.code_revision is not None):
            raise InputError("trust_remote_code and code_revision are given together or not at all")
        for name in ("revision", "code_revision"):
            value = getattr(self, name)
            if value is not None and not COMMIT.fullmatch(value):
                raise InputError(f"{name} must be a full commit of 40 digits, not {value!r}")
        if self.is_local:
            if self.local_sha256 is None or not SHA256.fullmatch(self.local_sha256):
                raise InputError(
                    "a local model needs local_sha256, the SHA-256 that "
                    "local_transformers_artifact_sha256(path) gives"
                )
        elif not HUB_ID.fullmatch(str(self.model)):
            raise InputError(f"{self.model!r} is neither a Path nor a hub name owner/name")
        elif self.revision is None:
            raise InputError(f"the hub model {self.model} needs the commit as revision")

    @property
    def is_local(self) -> bool:
        """Whether the model is a directory."""
        return self.local_sha256 is not None or not isinstance(self.model, str)

    @property
    def model_id(self) -> str:
        """The hub's name, or ``local/`` and the name of the directory."""
        return f"local/{Path(self.model).resolve().name}" if self.is_local else str(self.model)

    @property
    def pin(self) -> str:
        """What the identity rests on: the artifact's digest, or the commit."""
        return f"sha256:{self.local_sha256}" if self.is_local else str(self.revision)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in evaluation mode, its fast tokenizer, and how many tokens they take at most."""

    model: Any
    tokenizer: Any
    capacity: int | None


def load_model(source: PinnedModel, kind: str, optional_weights: str = "") -> LoadedModel:
    """Load with the Transformers class ``kind`` in float32, without touching the network.

    Args:
        source: What to load.
        kind: ``AutoModel`` or ``AutoModelForSequenceClassification``.
        optional_weights: Prefix of weights that may be missing because they are not used.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        ModelIntegrityError: The directory's digest is another one, files or weights are
            missing, there are no safetensors, or the tokenizer is not a fast one.
    """
    torch, transformers = import_torch()
    verify_local(source)
    options: dict[str, Any] = {
        "local_files_only": True,
        "trust_remote_code": source.trust_remote_code,
    }
    if not source.is_local:
        options["revision"] = source.revision
    if source.code_revision is not None:
        options["code_revision"] = source.code_revision
    location = os.fspath(source.model)
    try:
        with _quiet(transformers):
            tokenizer = transformers.AutoTokenizer.from_pretrained(location, **options)
            model, report = getattr(transformers, kind).from_pretrained(
                location, use_safetensors=True, output_loading_info=True, **options
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        raise ModelIntegrityError(f"{source.model_id} cannot be loaded offline: {error}") from error
    verify_local(source)
    missing = [
        name
        for name in sorted(report["missing_keys"])
        if not optional_weights or not name.startswith(optional_weights)
    ]
    if missing:
        raise ModelIntegrityError(f"{source.model_id} lacks weights, such as {missing[0]}")
    if not tokenizer.is_fast:
        raise ModelIntegrityError(f"{source.model_id} has no fast tokenizer (tokenizer.json)")
    return LoadedModel(model.to(torch.float32).eval(), tokenizer, _capacity(model, tokenizer))


def import_torch() -> tuple[Any, Any]:
    """Return the modules torch and transformers.

    Raises:
        MissingExtraError: One of them is not installed.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError("a Transformers model", EXTRA) from error
    return torch, transformers


def verify_local(source: PinnedModel) -> None:
    """Compare a directory with its pinned digest; a hub model is pinned by its commit.

    Raises:
        ModelIntegrityError: The digest is another one.
    """
    if not source.is_local:
        return
    found = local_transformers_artifact_sha256(source.model)
    if found != source.local_sha256:
        raise ModelIntegrityError(
            f"{source.model} has the artifact SHA-256 {found}, but {source.local_sha256} is pinned"
        )


def checked_capacity(loaded: LoadedModel, max_tokens: int | None) -> int:
    """Return the tokens allowed in one input.

    Raises:
        InputError: The model states no limit and none is given, or the one given exceeds it.
    """
    if max_tokens is None:
        if loaded.capacity is None:
            raise InputError("the model states no capacity; give max_tokens")
        return loaded.capacity
    if max_tokens < 8 or (loaded.capacity is not None and max_tokens > loaded.capacity):
        raise InputError(
            f"max_tokens must be from 8 to the model's {loaded.capacity}, not {max_tokens}"
        )
    return max_tokens


def _capacity(model: Any, tokenizer: Any) -> int | None:
    positions = getattr(model.config, "max_position_embeddings", None)
    limits = [
        limit
        for limit in (positions, tokenizer.model_max_length)
        if isinstance(limit, int) and 0 < limit < UNPINNED_LIMIT
    ]
    return min(limits, default=None)


def _files(root: Path) -> Iterator[Path]:
    _check_writers(root)
    return _walk(root, root)


def _walk(folder: Path, root: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if not entry.resolve().is_relative_to(root):
            raise ModelIntegrityError(f"{entry} links to a place outside {root}")
        if entry.is_symlink() and entry.is_dir():
            raise ModelIntegrityError(f"{entry} links to a directory; copy it instead")
        if not entry.exists() or not (entry.is_file() or entry.is_dir()):
            raise ModelIntegrityError(f"{entry} is neither a file nor a directory")
        _check_writers(entry)
        if entry.is_dir():
            yield from _walk(entry, root)
        else:
            yield entry


def _check_writers(path: Path) -> None:
    found = path.stat()
    if found.st_mode & stat.S_IWOTH:
        raise ModelIntegrityError(f"{path} can be written by anyone: chmod o-w, then pin it")
    if found.st_mode & stat.S_IWGRP and not _own_group(found.st_uid, found.st_gid):
        raise ModelIntegrityError(f"{path} can be written by a group: chmod g-w, then pin it")


def _own_group(user: int, group: int) -> bool:
    """Return whether the group is the user's alone; numbers without names are compared as such."""
    import grp  # here, since not every system has them
    import pwd

    try:
        owner, owners = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return user == group
    mine = owner.pw_gid == group and owner.pw_name == owners.gr_name
    return mine and set(owners.gr_mem) <= {owner.pw_name}


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Turn off progress bars while a model is loaded."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
