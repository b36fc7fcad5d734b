# SPDX-License-Identifier: Apache-2.0
"""Clients that are many, slow, broken or hostile: each costs bounded memory, and others are served."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from support import Server, wait_until

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
MIB = 1 << 20


@pytest.fixture(scope="module")
def small_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A simulated server with short patience, its admin address apart."""
    with Server(
        tmp_path_factory.mktemp("abused"),
        *("--device", "sim", "--tp", "1", "--pp", "1"),
        *("--set", "sim.base_us=200", "--set", "sim.us_per_token=1"),
        *("--set", "api.header_ms=1500", "--set", "api.idle_ms=3000", "--set", "api.write_ms=1500"),
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def unharmed(small_server: Server) -> Iterator[None]:
    """The same router serves afterwards, holds no block, and has grown by little."""
    (router,) = small_server.named("brigade-router")
    before = router.resident_bytes()
    yield
    serve(small_server)
    assert small_server.named("brigade-router")[0].pid == router.pid
    assert small_server.used_blocks() == 0
    assert router.resident_bytes() - before < 96 * MIB


def serve(server: Server) -> None:
    answer = server.post(
        "/v1/completions", {"model": server.model(), "prompt": "x", "max_tokens": 2}
    )
    assert answer.status_code == 200, answer.text


def connect(server: Server, receive_buffer: int = 0) -> socket.socket:
    address = urlsplit(server.url)
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(15)
    client.connect((address.hostname, address.port))
    return client


def read_all(client: socket.socket) -> bytes:
    """What comes before the end, orderly or not."""
    data = b""
    try:
        while part := client.recv(65536):
            data += part
    except (ConnectionResetError, BrokenPipeError):
        pass
    return data


def is_over(client: socket.socket) -> bool:
    """Whether the server has closed; what it said before is thrown away."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except (ConnectionResetError, BrokenPipeError):
        return True


def test_slowloris(small_server: Server) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(small_server)) for _ in range(300)]
        for client in clients:
            client.sendall(b"GET /health HTTP/1.1\r\nHo")
        deadline = time.monotonic() + 12
        while clients and time.monotonic() < deadline:
            serve(small_server)
            for client in list(clients):
                if is_over(client):
                    clients.remove(client)
                    continue
                try:
                    client.sendall(b"s")  # a byte now and then buys no time
                except (ConnectionResetError, BrokenPipeError):
                    clients.remove(client)
            time.sleep(0.1)
        assert not clients, f"{len(clients)} of 300 are still held"


def test_half_open_and_silent_clients(small_server: Server) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(small_server)) for _ in range(100)]
        half = [stack.enter_context(connect(small_server)) for _ in range(100)]
        body = b'{"prompt": "x", "max_tokens": 4000, "stream": true}'
        for i, client in enumerate(half):
            client.sendall(
                HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[: len(body) - i % 2]
            )
            client.shutdown(socket.SHUT_WR)
        for client in half:
            read_all(client)
        serve(small_server)
        wait_until(
            lambda: all(is_over(client) for client in silent), 10, "silent clients are closed"
        )


def test_huge_headers(small_server: Server) -> None:
    for head in (
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * (8 * MIB),
        b"GET /" + b"a" * (8 * MIB),
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * MIB,
    ):
        with connect(small_server) as client:
            try:
                client.sendall(head)
            except (ConnectionResetError, BrokenPipeError):
                pass
            answer = read_all(client)
            assert not answer or b" 431 " in answer.split(b"\r\n")[0], answer[:200]


def test_pipelined_garbage(small_server: Server) -> None:
    good = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    garbage = bytes(range(256)) * 4096
    for sent in (good * 3 + garbage, garbage, good + b"\r\n" * MIB + garbage, b"\0" * MIB):
        with connect(small_server) as client:
            try:
                client.sendall(sent)
            except (ConnectionResetError, BrokenPipeError):
                pass
            read_all(client)
        serve(small_server)
    # While its answer is in work, a client may send only so much ahead.
    body = b'{"prompt": "x", "max_tokens": 4000, "stream": true}'
    with connect(small_server) as client:
        client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(64):
                client.sendall(good * 1000)
            read_all(client)
            raise ConnectionResetError


def test_chunked_bombs(small_server: Server) -> None:
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    for chunks in (
        b"1\r\n[\r\n" * (5 * MIB),  # tiny ones, more than a body may have
        b"400000\r\n" + b"[" * 0x400000 + b"\r\n1\r\n[\r\n0\r\n\r\n",
        b"ffffffffffffffff\r\n" + b"x" * MIB,
        b"-1\r\nx\r\n",
        b"1;" + b"e" * MIB + b"\r\nx\r\n",
        b"0\r\n" + b"trailer: x\r\n" * MIB,
    ):
        with connect(small_server) as client:
            try:
                client.sendall(head + chunks)
            except (ConnectionResetError, BrokenPipeError):
                pass
            answer = read_all(client)
            assert not answer or answer.split()[1] in (b"400", b"413", b"431"), answer[:200]


def test_streams_that_nobody_reads_end_and_free_their_blocks(small_server: Server) -> None:
    body = b'{"prompt": "x", "max_tokens": 8000, "stream": true, "ignore_eos": true, "logprobs": 5}'
    with ExitStack() as stack:
        clients = [
            stack.enter_context(connect(small_server, receive_buffer=4096)) for _ in range(50)
        ]
        for client in clients:
            client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: small_server.status()["requests"]["in_flight"] > 0, 10, "they run")
        serve(small_server)
        wait_until(lambda: small_server.status()["requests"]["in_flight"] == 0, 40, "they are cut")
        assert small_server.used_blocks() == 0
        assert small_server.status()["requests"]["cancelled"] >= 50


def test_ten_thousand_connects(small_server: Server) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft_before, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with ExitStack() as stack, httpx.Client(base_url=small_server.url, timeout=15) as kept:
            assert kept.get("/health").status_code == 200
            clients = []
            for i in range(min(10_000, hard - 500)):
                clients.append(stack.enter_context(connect(small_server)))
                if i % 500 == 0:  # one that was there before is served all the while
                    assert kept.get("/v1/models").status_code == 200
            assert kept.get("/v1/models").status_code == 200
            wait_until(lambda: all(is_over(client) for client in clients), 20, "they are closed")
        serve(small_server)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft_before, hard))
