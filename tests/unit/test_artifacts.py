from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest

from evicortex.errors import MissingExtraError, ModelIntegrityError
from evicortex.providers.artifacts import (
    PackagedFile,
    default_cache_dir,
    read_verified,
    sha256_bytes,
    sha256_file,
    write_atomic,
)

CONTENT = b"weights"
DIGEST = sha256_bytes(CONTENT)


def test_a_file_of_an_installed_distribution_is_found_without_importing_it():
    file = PackagedFile("pytest", "pytest/py.typed", sha256_bytes(b""))
    assert file.read("tests", "dev") == b""


def test_a_missing_distribution_says_what_to_install():
    with pytest.raises(MissingExtraError, match=r"pip install 'evicortex\[local\]'"):
        PackagedFile("evicortex-no-such-thing", "a", DIGEST).read("the encoder", "local")


@pytest.mark.parametrize("listed", [None, [importlib.metadata.PackagePath("a/other.bin")]])
def test_a_distribution_without_the_file_is_no_match(monkeypatch, listed):
    monkeypatch.setattr(importlib.metadata, "files", lambda _: listed)
    with pytest.raises(ModelIntegrityError, match=r"without a/model\.bin"):
        PackagedFile("some", "a/model.bin", DIGEST).locate("the encoder", "local")


def test_another_digest_is_refused(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(CONTENT + b"!")
    with pytest.raises(ModelIntegrityError, match=f"{DIGEST} is pinned"):
        read_verified(path, DIGEST)
    path.write_bytes(CONTENT)
    assert read_verified(path, DIGEST) == CONTENT
    assert sha256_file(path) == DIGEST


def test_an_unreadable_file_is_refused(tmp_path):
    with pytest.raises(ModelIntegrityError, match="cannot be read"):
        read_verified(tmp_path / "nothing", DIGEST)


def test_writing_replaces_the_file_whole(tmp_path):
    path = tmp_path / "deep" / "model"
    write_atomic(path, b"old")
    write_atomic(path, CONTENT)
    assert path.read_bytes() == CONTENT
    assert [item.name for item in path.parent.iterdir()] == ["model"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "model"
    write_atomic(path, b"old")

    def full(_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_atomic(path, CONTENT)
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["model"]


def test_the_cache_lies_in_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert default_cache_dir() == tmp_path / ".cache" / "evicortex"
