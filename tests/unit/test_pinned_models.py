from __future__ import annotations

import builtins
import hashlib
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from evicortex.errors import InputError, MissingExtraError, ModelIntegrityError
from evicortex.providers.cross_encoder import CrossEncoderReranker
from evicortex.providers.pinned_models import (
    LoadedModel,
    PinnedModel,
    _own_group,
    artifact_sha256,
    checked_capacity,
    load_model,
    verify_local,
)
from evicortex.providers.transformers import (
    TransformersEmbedder,
    local_transformers_artifact_sha256,
)

COMMIT = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
DIGEST = "a" * 64


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "model"
    (root / "1_Pooling").mkdir(parents=True)
    (root / "config.json").write_bytes(b"{}")
    (root / "1_Pooling" / "config.json").write_bytes(b"[]")
    (root / ".hidden").write_bytes(b"")
    return root


def test_the_digest_is_what_is_documented(folder):
    names = [(".hidden", b""), ("1_Pooling/config.json", b"[]"), ("config.json", b"{}")]
    expected = hashlib.sha256()
    for name, content in names:
        line = f"{hashlib.sha256(content).hexdigest()} {len(content)} {name}\0"
        expected.update(line.encode())
    assert local_transformers_artifact_sha256(folder) == expected.hexdigest()
    assert local_transformers_artifact_sha256(str(folder)) == expected.hexdigest()
    assert (
        artifact_sha256({name: (hashlib.sha256(b).hexdigest(), len(b)) for name, b in names})
        == expected.hexdigest()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "config.json").write_bytes(b"{} "),
        lambda root: (root / "new.py").write_bytes(b""),
        lambda root: (root / ".hidden").unlink(),
        lambda root: (root / "config.json").rename(root / "Config.json"),
        lambda root: (root / "1_Pooling" / "config.json").rename(root / "moved.json"),
    ],
)
def test_every_change_changes_the_digest(folder, change):
    before = local_transformers_artifact_sha256(folder)
    change(folder)
    assert local_transformers_artifact_sha256(folder) != before


def test_links_inside_count_as_the_file_they_lead_to(folder):
    (folder / "alias.json").symlink_to("config.json")
    with_link = local_transformers_artifact_sha256(folder)
    (folder / "alias.json").unlink()
    (folder / "alias.json").write_bytes(b"{}")
    assert local_transformers_artifact_sha256(folder) == with_link


@pytest.mark.parametrize("target", ["..", "../outside", "/etc/hostname", "missing/../../outside"])
def test_links_that_leave_the_directory_fail(folder, target):
    (folder.parent / "outside").write_bytes(b"")
    (folder / "link").symlink_to(target)
    with pytest.raises(ModelIntegrityError, match="outside"):
        local_transformers_artifact_sha256(folder)


def test_links_to_directories_and_to_nothing_fail(folder):
    (folder / "again").symlink_to("1_Pooling")
    with pytest.raises(ModelIntegrityError, match="links to a directory"):
        local_transformers_artifact_sha256(folder)
    (folder / "again").unlink()
    (folder / "broken").symlink_to("nothing")
    with pytest.raises(ModelIntegrityError, match="neither a file nor a directory"):
        local_transformers_artifact_sha256(folder)


def test_pipes_fail(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(ModelIntegrityError, match="neither a file nor a directory"):
        local_transformers_artifact_sha256(folder)


@pytest.mark.parametrize("part", [".", "config.json", "1_Pooling"])
def test_what_anyone_may_write_fails(folder, part):
    (folder / part).chmod(0o777)
    with pytest.raises(ModelIntegrityError, match="written by anyone"):
        local_transformers_artifact_sha256(folder)


def known(value):
    def find(_):
        if value is None:
            raise KeyError("no such name")
        return value

    return find


@pytest.mark.parametrize(
    ("name", "members", "primary", "allowed"),
    [
        ("ann", [], True, True),
        ("ann", ["ann"], True, True),
        ("ann", ["ann", "bob"], True, False),
        ("staff", [], True, False),
        ("ann", [], False, False),
    ],
)
@pytest.mark.parametrize("part", [".", "config.json", "1_Pooling"])
def test_what_a_group_may_write_fails_unless_it_is_the_owners_alone(
    folder, monkeypatch, part, name, members, primary, allowed
):
    (folder / part).chmod(0o775)
    ann = SimpleNamespace(pw_name="ann", pw_gid=folder.stat().st_gid + (not primary))
    monkeypatch.setattr("pwd.getpwuid", known(ann))
    monkeypatch.setattr("grp.getgrgid", known(SimpleNamespace(gr_name=name, gr_mem=members)))
    if allowed:
        assert local_transformers_artifact_sha256(folder)
    else:
        with pytest.raises(ModelIntegrityError, match="written by a group: chmod g-w"):
            local_transformers_artifact_sha256(folder)


@pytest.mark.parametrize(("group", "allowed"), [(4321, True), (4322, False)])
def test_groups_without_a_name_are_compared_by_number(monkeypatch, group, allowed):
    monkeypatch.setattr("grp.getgrgid", known(None))
    monkeypatch.setattr("pwd.getpwuid", known(None))
    assert _own_group(4321, group) is allowed


def test_no_directory_and_an_empty_one_fail(tmp_path):
    with pytest.raises(ModelIntegrityError, match="not a directory"):
        local_transformers_artifact_sha256(tmp_path / "nothing")
    with pytest.raises(ModelIntegrityError, match="no files"):
        local_transformers_artifact_sha256(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"model": "owner/name"}, "needs the commit"),
        ({"model": "owner/name", "revision": "main"}, "full commit of 40 digits"),
        ({"model": "owner/name", "revision": COMMIT[:39]}, "full commit of 40 digits"),
        ({"model": "owner/name", "revision": COMMIT.upper()}, "full commit of 40 digits"),
        ({"model": "../name/x", "revision": COMMIT}, "neither a Path nor a hub name"),
        ({"model": "name", "revision": COMMIT}, "neither a Path nor a hub name"),
        ({"model": Path("model")}, "needs local_sha256"),
        ({"model": Path("model"), "revision": COMMIT}, "needs local_sha256"),
        ({"model": "model", "local_sha256": "abc"}, "needs local_sha256"),
        (
            {"model": "owner/name", "revision": COMMIT, "trust_remote_code": True},
            "given together",
        ),
        (
            {"model": "owner/name", "revision": COMMIT, "code_revision": COMMIT},
            "given together",
        ),
        (
            {
                "model": "owner/name",
                "revision": COMMIT,
                "trust_remote_code": True,
                "code_revision": "main",
            },
            "code_revision must be a full commit",
        ),
    ],
)
def test_what_is_not_pinned_is_refused(arguments, problem):
    with pytest.raises(InputError, match=problem):
        PinnedModel(**arguments)


def test_a_pinned_model_names_itself(folder):
    hub = PinnedModel("owner/name", COMMIT)
    assert (hub.model_id, hub.pin, hub.is_local) == ("owner/name", COMMIT, False)
    local = PinnedModel(folder, local_sha256=DIGEST)
    assert (local.model_id, local.pin, local.is_local) == ("local/model", f"sha256:{DIGEST}", True)
    named = PinnedModel(str(folder), COMMIT, DIGEST, trust_remote_code=True, code_revision=COMMIT)
    assert named.is_local


def test_another_directory_than_the_pinned_one_is_refused(folder):
    with pytest.raises(ModelIntegrityError, match=f"{DIGEST} is pinned"):
        verify_local(PinnedModel(folder, local_sha256=DIGEST))
    verify_local(PinnedModel(folder, local_sha256=local_transformers_artifact_sha256(folder)))
    verify_local(PinnedModel("owner/name", COMMIT))


@pytest.mark.parametrize(
    ("stated", "asked", "given"), [(512, None, 512), (512, 128, 128), (None, 128, 128)]
)
def test_capacity_is_the_models_or_less(stated, asked, given):
    assert checked_capacity(LoadedModel(None, None, stated), asked) == given


@pytest.mark.parametrize(("stated", "asked"), [(None, None), (512, 513), (512, 7), (None, 0)])
def test_capacity_is_never_guessed_or_exceeded(stated, asked):
    with pytest.raises(InputError, match="max_tokens"):
        checked_capacity(LoadedModel(None, None, stated), asked)


@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "max"},
        {"pooling": "mean", "truncation": "truncate"},
        {"pooling": "mean", "precision": "int8"},
        {"pooling": "mean", "batch_size": 0},
    ],
)
def test_impossible_options_are_refused_before_anything_is_loaded(options):
    with pytest.raises(InputError):
        TransformersEmbedder("owner/name", revision=COMMIT, **options)


def test_without_torch_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def importing(name, *arguments, **options):
        if name in ("torch", "transformers"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", importing)
    source = PinnedModel("owner/name", COMMIT)
    with pytest.raises(MissingExtraError, match=r"evicortex\[transformers\]"):
        load_model(source, "AutoModel")
    with pytest.raises(MissingExtraError):
        TransformersEmbedder("owner/name", revision=COMMIT, pooling="mean")
    with pytest.raises(MissingExtraError):
        CrossEncoderReranker("owner/name", revision=COMMIT)
