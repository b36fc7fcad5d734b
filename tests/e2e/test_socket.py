# SPDX-License-Identifier: Apache-2.0
"""The router's ZeroMQ sockets: the Python client, and whatever else may arrive there."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
import zmq

from support import BIN, Server, wait_until

PYTHON_PATH = BIN.parent / "python"
sys.path.insert(0, str(PYTHON_PATH))

from brigade_client import BrigadeClient, BrigadeError, FinishReason, codec  # noqa: E402
from brigade_client.messages import GenerationParams  # noqa: E402


@pytest.fixture()
def client(sim_server: Server) -> Iterator[BrigadeClient]:
    with BrigadeClient(sim_server.socket) as connected:
        yield connected


def test_the_socket_and_http_give_the_same_text(sim_server: Server, client: BrigadeClient) -> None:
    prompt = "The socket and HTTP"
    with client.generate(sim_server.model(), prompt, max_tokens=20, temperature=0) as stream:
        text = stream.text()
        assert stream.finished is not None
    body = {"model": sim_server.model(), "prompt": prompt, "max_tokens": 20, "temperature": 0}
    assert text == sim_server.post("/v1/completions", body).json()["choices"][0]["text"]
    assert stream.finished.completion_tokens == 20


def test_models_and_status_are_told(sim_server: Server, client: BrigadeClient) -> None:
    assert [model.name for model in client.models()] == [sim_server.model()]
    assert json.loads(client.status())["replicas"][0]["state"] == "ready"


def test_a_cancelled_request_ends_and_gives_its_blocks_back(sim_server: Server, client: BrigadeClient) -> None:
    with client.generate(sim_server.model(), "x", max_tokens=900, ignore_eos=True) as stream:
        next(stream)
        stream.cancel()
        stream.text()
        assert stream.finished is not None
        assert stream.finished.reason == FinishReason.CANCELLED
    assert sim_server.used_blocks() == 0


def test_a_client_that_vanishes_gives_its_blocks_back(sim_server: Server) -> None:
    program = (
        f"import os, sys; sys.path.insert(0, {str(PYTHON_PATH)!r})\n"
        "from brigade_client import BrigadeClient\n"
        f"client = BrigadeClient({sim_server.socket!r})\n"
        f"next(client.generate({sim_server.model()!r}, 'x', max_tokens=900, ignore_eos=True))\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=30, check=False).returncode == 9
    wait_until(lambda: sim_server.status()["requests"]["in_flight"] == 0, 20, "its request ends")
    assert sim_server.used_blocks() == 0


def test_errors_are_typed(sim_server: Server, client: BrigadeClient) -> None:
    with pytest.raises(BrigadeError, match="no-such"):
        client.generate("no-such", "x").text()
    with pytest.raises(BrigadeError):
        client.generate(sim_server.model(), [5] * 20_000).text()
    with pytest.raises(BrigadeError):
        client.drain(77)


def damaged_messages(sim_server: Server) -> Iterator[bytes]:
    """Good messages cut at every few bytes and with bits turned, and bytes that were never a message."""
    draw = random.Random(5)
    params = GenerationParams(max_tokens=3, stop=["a", "b"], stop_token_ids=[1, 2, 3])
    whole = [
        codec.encode_generate(1, sim_server.model(), "some text", params, parse_special=False, tenant="t"),
        codec.encode_generate(2, sim_server.model(), [1, 2, 3], params, parse_special=False, tenant=""),
        codec.encode_generate(3, sim_server.model(), [("user", "hi")], params, parse_special=False, tenant=""),
        codec.encode_cancel(1),
        codec.encode_drain(4, 99),
    ]
    for message in whole:
        for size in range(0, len(message), 7):
            yield message[:size]
        for _ in range(40):
            damaged = bytearray(message)
            for _ in range(draw.randint(1, 4)):
                damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
            yield bytes(damaged)
    for size in (0, 1, 4, 8, 100, 60_000):
        yield draw.randbytes(size)
        yield b"\xff" * size


def send_all(endpoint: str, messages: list[list[bytes]]) -> None:
    """Sends from a DEALER, reading what comes back so that neither side fills up."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 2000)
    socket.setsockopt(zmq.IPV6, 1)
    try:
        socket.connect(endpoint)
        for parts in messages:
            if socket.poll(10_000, zmq.POLLOUT):
                socket.send_multipart(parts)
            while socket.poll(0, zmq.POLLIN):
                socket.recv_multipart()
        while socket.poll(200, zmq.POLLIN):
            socket.recv_multipart()
    finally:
        socket.close()
        context.term()


def worker_endpoints(sim_server: Server) -> list[str]:
    (record,) = sim_server.runtime_dir.rglob("router-*.json")
    return json.loads(record.read_text())["workers"]


def stage_endpoints(sim_server: Server) -> list[str]:
    return [f"ipc://{path}" for path in sim_server.runtime_dir.rglob("worker-*") if path.is_socket()]


def test_damaged_messages_on_every_socket_harm_nobody(sim_server: Server) -> None:
    before = {process.pid for process in sim_server.processes()}
    messages = [[message] for message in damaged_messages(sim_server)]
    messages += [[b"", b""], [b"x"] * 20, [b"", b"y" * 100]]
    endpoints = [sim_server.socket, *worker_endpoints(sim_server), *stage_endpoints(sim_server)]
    assert len(endpoints) >= 4, endpoints
    for endpoint in endpoints:
        send_all(endpoint, messages)
        answer = sim_server.post("/v1/completions", {"model": sim_server.model(), "prompt": "x", "max_tokens": 2})
        assert answer.status_code == 200, (endpoint, answer.text)
    assert {process.pid for process in sim_server.processes()} == before
    assert [replica["state"] for replica in sim_server.status()["replicas"]] == ["ready"]
    assert sim_server.used_blocks() == 0
