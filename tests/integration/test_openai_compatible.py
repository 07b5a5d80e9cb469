"""The HTTP encoder against a real server on this machine."""

from __future__ import annotations

import builtins
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("httpx", reason="evicortex[http] is not installed")

from evicortex.errors import (
    InputError,
    MissingExtraError,
    ProviderContractError,
    ProviderUnavailableError,
    TextTooLongError,
)
from evicortex.providers import http_json
from evicortex.providers.http_json import JsonClient, RetryPolicy, StatusError
from evicortex.providers.openai_compatible import OpenAICompatibleEmbedder
from evicortex.testing import DeterministicEmbedder, check_embedder
from evicortex.validation import CheckedEmbedder

KEY = "sk-secret-never-shown"


class Server:
    """Serves ``/v1/embeddings`` honestly, after the scripted answers are used up."""

    def __init__(self):
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.script: list = []
        self.hang = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body | {"path": self.path})
                server.headers.append(dict(self.headers))
                step = server.script.pop(0) if server.script else honest
                if step == "drop":
                    self.close_connection = True
                    self.connection.close()
                elif step == "hang":
                    server.hang.wait()
                    self.close_connection = True
                else:
                    self.answer(*step(body))

            def answer(self, status, content, headers=()):
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.hang.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def honest(body, **changes):
    rows = DeterministicEmbedder(8).embed(body["input"])
    data = [
        {"object": "embedding", "index": index, "embedding": (row * 2).tolist()}
        for index, row in enumerate(rows)
    ]
    answer = {
        "object": "list",
        "data": data[::-1],
        "model": body["model"],
        "usage": {"prompt_tokens": 3 * len(data), "total_tokens": 3 * len(data)},
    }
    return 200, answer | changes


def status(code, text="busy", **headers):
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return lambda _: (code, {"error": {"message": text}}, pairs)


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def waits():
    return []


@pytest.fixture
def client(server, waits):
    made = JsonClient(server.url, api_key=KEY, sleep=waits.append)
    yield made
    made.close()


def embedder(client, **options):
    return OpenAICompatibleEmbedder(
        client, **({"model": "text-small", "revision": "2026-01", "dimensions": 8} | options)
    )


def test_it_keeps_the_contract(client):
    check_embedder(embedder(client))


def test_rows_keep_their_order_and_are_scaled(server, client):
    rows = embedder(client).embed(["one", "two", "three"])
    assert np.allclose(rows, DeterministicEmbedder(8).embed(["one", "two", "three"]), atol=1e-6)
    assert server.requests == [
        {
            "path": "/v1/embeddings",
            "model": "text-small",
            "input": ["one", "two", "three"],
            "encoding_format": "float",
        }
    ]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    raw = embedder(client, normalize=False).embed(["one"])
    assert np.allclose(raw, 2 * rows[:1], atol=1e-6)


def test_no_key_no_header(server):
    client = JsonClient(server.url + "/")
    embedder(client).embed(["one"])
    client.close()
    assert "Authorization" not in server.headers[0]


def test_nothing_to_embed_sends_nothing(server, client):
    assert embedder(client).embed([]).shape == (0, 8)
    assert server.requests == []


def test_batches_are_bounded_by_texts_and_by_characters(server, client):
    provider = embedder(client, batch_size=3, batch_characters=10)
    texts = ["a" * 4, "b" * 4, "c" * 4, "d", "e", "f", "g", "h" * 50, "i"]
    rows = provider.embed(texts)
    assert [len(request["input"]) for request in server.requests] == [2, 3, 2, 1, 1]
    assert np.allclose(rows, DeterministicEmbedder(8).embed(texts), atol=1e-6)


def test_prefixes_follow_the_role(server, client):
    provider = embedder(client, query_prefix="query: ", document_prefix="passage: ")
    provider.embed(["a"], input_type="query")
    provider.embed(["a"])
    assert [request["input"] for request in server.requests] == [["query: a"], ["passage: a"]]


def test_dimensions_are_asked_for_on_demand(server, client):
    embedder(client, send_dimensions=True).embed(["a"])
    assert server.requests[0]["dimensions"] == 8


def test_costs_are_counted(server, client):
    server.script = [status(503)]
    provider = embedder(client, batch_size=2)
    provider.embed(["a", "b", "c"])
    usage = provider.usage
    assert (usage.texts, usage.prompt_tokens) == (3, 9)
    assert (usage.http.requests, usage.http.retries, usage.http.failures) == (3, 1, 0)
    assert usage.http.bytes_sent > 100
    assert usage.http.bytes_received > 300
    assert usage.http.seconds > 0


def test_a_server_that_counts_no_tokens_costs_none(server, client):
    server.script = [
        lambda body: honest(body, usage=None),
        lambda body: honest(body, usage={"prompt_tokens": "many"}),
        lambda body: honest(body, usage={"prompt_tokens": -5}),
    ]
    provider = embedder(client)
    for _ in range(3):
        provider.embed(["a"])
    assert provider.usage.prompt_tokens == 0


@pytest.mark.parametrize("code", sorted(http_json.RETRIED))
def test_passing_troubles_are_tried_again(server, client, waits, code):
    server.script = [status(code), status(code)]
    assert embedder(client).embed(["a"]).shape == (1, 8)
    assert waits == [0.5, 1.0]


def test_dropped_connections_are_tried_again(server, client, waits):
    server.script = ["drop", "drop"]
    assert embedder(client).embed(["a"]).shape == (1, 8)
    assert waits == [0.5, 1.0]


def test_attempts_are_bounded(server, client, waits):
    server.script = [status(500)] * 9
    with pytest.raises(StatusError, match="answered 500") as caught:
        embedder(client).embed(["a"])
    assert caught.value.status == 500
    assert waits == [0.5, 1.0, 2.0]
    assert len(server.requests) == 4
    assert client.usage.failures == 1


def test_a_server_that_is_gone_is_named(server, waits):
    server.close()
    client = JsonClient(server.url, sleep=waits.append, retries=RetryPolicy(2, 0.1, 1.0))
    with pytest.raises(ProviderUnavailableError, match=r"no answer from http://127.*ConnectError"):
        embedder(client).embed(["a"])
    client.close()
    assert waits == [0.1]


def test_a_server_that_hangs_is_given_up(server, waits):
    server.script = ["hang"] * 2
    client = JsonClient(
        server.url, timeout_seconds=0.05, sleep=waits.append, retries=RetryPolicy(2, 0.1, 1.0)
    )
    with pytest.raises(ProviderUnavailableError, match="ReadTimeout"):
        embedder(client).embed(["a"])
    client.close()
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("asked", "waited"), [("3", 3.0), ("3600", 8.0), ("soon", 0.5), ("-1", 0.5), ("0", 0.0)]
)
def test_the_servers_wish_to_wait_is_kept_within_bounds(server, client, waits, asked, waited):
    server.script = [status(429, Retry_After=asked)]
    embedder(client).embed(["a"])
    assert waits == [waited]


def test_waits_grow_to_the_bound():
    assert list(RetryPolicy(7, 1.0, 8.0).delays()) == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert list(RetryPolicy(1).delays()) == []


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_refusals_are_final(server, client, waits, code):
    server.script = [status(code, "wrong")]
    with pytest.raises(StatusError, match=f"answered {code}.*wrong") as caught:
        embedder(client).embed(["a"])
    assert KEY not in str(caught.value) + caught.value.body
    assert waits == []


def test_redirects_are_not_followed(server, client):
    server.script = [status(307, Location="http://127.0.0.2:9/v1/embeddings")]
    with pytest.raises(StatusError, match="answered 307"):
        embedder(client).embed(["a"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (400, "This model's maximum context length is 8192 tokens"),
        (500, "input is too large to process. increase the physical batch size"),
        (413, "request entity"),
    ],
)
def test_a_capacity_named_by_the_server_costs_one_row_only(server, waits, code, text):
    server.script = [status(code, text), status(code, text)]
    client = JsonClient(server.url, sleep=waits.append, retries=RetryPolicy(1))
    batch = CheckedEmbedder(embedder(client)).embed(["too long", "fine"])
    client.close()
    assert batch.indices == (1,)
    assert [error.code for error in batch.errors] == ["text_too_long"]


def test_long_texts_are_refused_unsent(server, client):
    provider = embedder(client, max_characters=6, document_prefix="d: ")
    assert provider.embed(["abc"]).shape == (1, 8)
    with pytest.raises(TextTooLongError, match="text 1 has 7 characters, more than the 6"):
        provider.embed(["abc", "abcd"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([], "no list of embeddings"),
        ({"data": None}, "no list of embeddings"),
        ({"data": [1, 2]}, "no list of embeddings"),
        ({"data": []}, "indices are not 0 to 1"),
        ({"data": [{"index": 0, "embedding": [1.0] * 8}] * 2}, "indices are not 0 to 1"),
        ({"data": [{"embedding": [1.0] * 8}] * 2}, "indices are not 0 to 1"),
        (
            {"data": [{"index": index, "embedding": [1.0] * 9} for index in (0, 1)]},
            "length 9, not 8",
        ),
        (
            {"data": [{"index": index, "embedding": "AAAA"} for index in (0, 1)]},
            "length no list, not 8",
        ),
        (
            {"data": [{"index": index, "embedding": [None] * 8} for index in (0, 1)]},
            "no number",
        ),
        (b"<html>gateway</html>", "sent no JSON"),
        (b"\xff\xfe", "sent no JSON"),
    ],
)
def test_answers_that_break_the_protocol(server, client, answer, problem):
    server.script = [lambda _: (200, answer)]
    with pytest.raises(ProviderContractError, match=problem):
        embedder(client).embed(["a", "b"])
    assert len(server.requests) == 1


@pytest.mark.parametrize("value", ["NaN", "1e300", "Infinity"])
def test_numbers_that_are_none_reject_their_row(server, client, value):
    vector = f"[{value}, 1, 1, 1, 1, 1, 1, 1]"
    good = "[1, 1, 1, 1, 1, 1, 1, 1.0]"
    content = (
        f'{{"data": [{{"index": 0, "embedding": {vector}}}, {{"index": 1, "embedding": {good}}}]}}'
    )
    server.script = [lambda _: (200, content.encode())]
    batch = CheckedEmbedder(embedder(client), order_probes=0).embed(["a", "b"])
    assert batch.indices == (1,)
    assert [error.code for error in batch.errors] == ["not_finite"]


def test_a_server_that_changes_its_model_is_refused(server, client):
    server.script = [honest, lambda body: honest(body, model="text-smaller")]
    provider = embedder(client)
    provider.embed(["a"])
    with pytest.raises(ProviderContractError, match="now serves 'text-smaller'"):
        provider.embed(["a"])


def test_a_server_that_names_no_model_is_taken_at_its_word(server, client):
    server.script = [lambda body: honest(body, model=None)] * 2
    provider = embedder(client)
    provider.embed(["a"])
    assert provider.embed(["a"]).shape == (1, 8)


def test_endless_answers_are_cut_off(server, client, monkeypatch):
    monkeypatch.setattr(http_json, "MAX_RESPONSE_BYTES", 100)
    with pytest.raises(ProviderContractError, match="more than 100 bytes"):
        embedder(client).embed(["a"])


@pytest.mark.parametrize(
    ("url", "options", "problem"),
    [
        ("ftp://host/v1", {}, "must look like"),
        ("https:///v1", {}, "must look like"),
        ("https://host/v1?key=1", {}, "must look like"),
        ("https://host/v1#x", {}, "must look like"),
        ("https://user:pass@host/v1", {}, "must not hold credentials"),
        ("https://user@host/v1", {}, "must not hold credentials"),
        ("http://example.org/v1", {"api_key": KEY}, "in clear text"),
        ("http://10.0.0.1/v1", {"api_key": KEY}, "in clear text"),
        ("https://host/v1", {"timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_impossible_clients_are_refused(url, options, problem):
    with pytest.raises(InputError, match=problem) as caught:
        JsonClient(url, **options)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("url", ["http://localhost:1/v1", "http://[::1]:1/v1", "https://host/v1"])
def test_keys_may_travel_over_tls_or_on_this_machine(url):
    JsonClient(url, api_key=KEY).close()


@pytest.mark.parametrize("policy", [(0,), (2, -1.0), (2, 9.0, 8.0)])
def test_impossible_policies_are_refused(policy):
    with pytest.raises(InputError, match="retry policy"):
        RetryPolicy(*policy)


@pytest.mark.parametrize(
    "options",
    [{"dimensions": 0}, {"batch_size": 0}, {"batch_characters": 0}, {"max_characters": -1}],
)
def test_impossible_embedders_are_refused(client, options):
    with pytest.raises(InputError, match="at least 1"):
        embedder(client, **options)


def test_the_profile_names_what_is_known(client):
    provider = embedder(client, query_prefix="q: ", max_characters=100)
    assert provider.profile.revision == "2026-01"
    assert CheckedEmbedder(provider).digest != CheckedEmbedder(embedder(client)).digest


def test_without_httpx_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def importing(name, *arguments, **options):
        if name == "httpx":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(MissingExtraError, match=r"evicortex\[http\]"):
        JsonClient("https://host/v1")
