# SPDX-License-Identifier: Apache-2.0
"""Bad input: a clear error for each, and no harm to others."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from support import Server


@pytest.fixture(autouse=True)
def others_are_unharmed(sim_server: Server) -> Iterator[None]:
    """After each test the same processes serve, and no block is lost."""
    before = {process.pid for process in sim_server.processes()}
    yield
    answer = sim_server.post("/v1/completions", {"model": sim_server.model(), "prompt": "x", "max_tokens": 2})
    assert answer.status_code == 200, answer.text
    assert {process.pid for process in sim_server.processes()} == before
    assert sim_server.used_blocks() == 0


def completion(server: Server, **fields: object) -> dict[str, object]:
    return {"model": server.model(), "prompt": "x", "max_tokens": 2, **fields}


def assert_clear_error(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    for word in words:
        assert word in error["message"], error


def test_a_prompt_beyond_the_context_is_refused(sim_server: Server) -> None:
    for path, body in [
        ("/v1/completions", completion(sim_server, prompt=[5] * 10_000)),
        (
            "/v1/chat/completions",
            {"model": sim_server.model(), "messages": [{"role": "user", "content": "word " * 10_000}]},
        ),
    ]:
        answer = sim_server.post(path, body)
        assert_clear_error(answer, 400, "maximum context length")
        assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_a_request_that_can_never_fit_the_kv_is_refused(sim_server: Server) -> None:
    tokens = 64 * 16  # all blocks that a replica has
    answer = sim_server.post("/v1/completions", completion(sim_server, prompt=[5] * tokens, max_tokens=100))
    assert answer.status_code in {400, 413}, answer.text
    assert "KV" in answer.json()["error"]["message"] or "blocks" in answer.json()["error"]["message"]


def test_an_unknown_model_is_not_found(sim_server: Server) -> None:
    answer = sim_server.post("/v1/completions", completion(sim_server, model="no-such"))
    assert_clear_error(answer, 404, "no-such")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", 3),
        ("prompt", {"a": 1}),
        ("prompt", [1, "a"]),
        ("prompt", [-1]),
        ("prompt", [10**9]),
        ("prompt", [2**63]),
        ("prompt", [1.5]),
        ("prompt", []),
        ("max_tokens", "ten"),
        ("max_tokens", -1),
        ("max_tokens", 1e300),
        ("max_tokens", 10**30),
        ("temperature", "hot"),
        ("temperature", -0.1),
        ("temperature", 1e300),
        ("top_p", 2),
        ("top_p", -1),
        ("top_k", -5),
        ("n", 0),
        ("n", 10**9),
        ("seed", "x"),
        ("stop", 3),
        ("stop", ["x"] * 1000),
        ("logprobs", 1000),
        ("stream", "yes"),
        ("min_tokens", -1),
    ],
)
def test_a_bad_value_is_refused_and_named(sim_server: Server, field: str, value: object) -> None:
    answer = sim_server.post("/v1/completions", completion(sim_server, **{field: value}))
    assert_clear_error(answer, 400)
    error = answer.json()["error"]
    assert error["param"] == field or field in error["message"], error


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"model": "x", "prompt": "\xff\xfe"}',
        b'{"model": "x", "prompt": "\\ud800"}',
        b'{"model": "x", "prompt": "x", "temperature": NaN}',
        b'{"model": "x", "prompt": "x", "temperature": Infinity}',
        b'{"model": "x", "prompt": "x", "temperature": 1e999}',
        b"[" * 100_000,
        b'{"prompt": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    ],
    ids=["empty", "cut", "list", "null", "utf8", "surrogate", "nan", "infinity", "huge", "deep", "deep list"],
)
def test_a_body_that_is_no_request_is_refused(sim_server: Server, body: bytes) -> None:
    answer = httpx.post(
        f"{sim_server.url}/v1/completions",
        content=body,
        headers={"content-type": "application/json"},
        timeout=20,
    )
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]


def test_a_hundred_megabytes_are_refused_without_being_read(sim_server: Server) -> None:
    (router,) = sim_server.named("brigade-router")
    before = router.resident_bytes()
    size = 100 << 20
    try:
        answer = httpx.post(
            f"{sim_server.url}/v1/completions",
            content=(b"x" * (1 << 20) for _ in range(100)),
            headers={"content-type": "application/json", "content-length": str(size)},
            timeout=20,
        )
        assert answer.status_code == 413, answer.text
    except (httpx.WriteError, httpx.RemoteProtocolError, httpx.ReadError):
        pass  # the server may hang up on the rest of the body before the client reads the answer
    assert router.resident_bytes() - before < 64 << 20


def test_what_is_not_http_is_closed(sim_server: Server) -> None:
    draw = random.Random(3)
    address = urlsplit(sim_server.url)
    for bytes_sent in [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"A" * 100_000 + b"\r\n\r\n",
        *(draw.randbytes(500) + b"\r\n\r\n" for _ in range(10)),
    ]:
        with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
            connection.settimeout(15)
            try:
                connection.sendall(bytes_sent)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except (ConnectionResetError, BrokenPipeError):
                pass


def test_paths_and_methods_that_are_not_there_are_refused_as_json(sim_server: Server) -> None:
    for method, path, status in [
        ("GET", "/nothing", 404),
        ("GET", "/v1/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("POST", "/drain", 415),
    ]:
        answer = httpx.request(method, sim_server.url + path, timeout=10)
        assert answer.status_code == status, (method, path, answer.text)
        assert json.loads(answer.text)["error"]["message"]
