# SPDX-License-Identifier: Apache-2.0
"""Workers that die under load."""

from __future__ import annotations

import concurrent.futures
import signal
import threading

import pytest

from conftest import StartServer
from support import Server, wait_until

NUM_STREAMS = 8


def stream_text(server: Server, prompt: str, started: threading.Semaphore, max_tokens: int) -> str:
    """The whole text of one stream; asserts that it ends once, by length."""
    body = {
        "model": server.model(),
        "prompt": prompt,
        "max_tokens": max_tokens,
        "temperature": 0.8,
        "seed": 11,
        "ignore_eos": True,
    }
    text = ""
    finish_reasons = []
    first = True
    for chunk in server.stream("/v1/completions", body):
        choice = chunk["choices"][0]
        text += choice["text"]
        if first:
            started.release()
            first = False
        if choice["finish_reason"]:
            finish_reasons.append(choice["finish_reason"])
    assert finish_reasons == ["length"]
    return text


def all_streams(server: Server, max_tokens: int, disturb: bool) -> list[str]:
    prompts = [f"Story number {i}: once upon a time there was" for i in range(NUM_STREAMS)]
    started = threading.Semaphore(0)
    with concurrent.futures.ThreadPoolExecutor(NUM_STREAMS) as pool:
        futures = [pool.submit(stream_text, server, prompt, started, max_tokens) for prompt in prompts]
        for _ in range(NUM_STREAMS):
            assert started.acquire(timeout=60), "not all streams have begun"
        if disturb:
            server.named("brigade-worker")[0].kill(signal.SIGKILL)
        return [future.result(timeout=120) for future in futures]


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_a_killed_worker_changes_no_text_and_is_started_again(start_server: StartServer, device: str) -> None:
    server = start_server("configs/tp2-dp2.toml", "--device", device, "--set", "sim.base_us=10000")
    max_tokens = 60
    undisturbed = all_streams(server, max_tokens, disturb=False)
    workers = {process.pid for process in server.named("brigade-worker")}
    (router,) = server.named("brigade-router")
    assert all_streams(server, max_tokens, disturb=True) == undisturbed
    assert router.alive()

    def whole_again() -> bool:
        states = [replica["state"] for replica in server.status()["replicas"]]
        return states.count("ready") == 2

    wait_until(whole_again, 60, "both replicas are ready again")
    now = {process.pid for process in server.named("brigade-worker")}
    assert len(now) == 4 and len(now & workers) == 3
    assert all_streams(server, max_tokens, disturb=False) == undisturbed
    assert server.used_blocks() == 0


def test_without_another_replica_a_dead_worker_ends_the_stream_with_an_error(start_server: StartServer) -> None:
    server = start_server("--device", "sim", "--tp", "2", "--pp", "1", "--set", "sim.base_us=10000")
    body = {"model": server.model(), "prompt": "x", "max_tokens": 400, "ignore_eos": True}
    # The one replica is built again: the stream either goes on there or says why it cannot.
    ended = ""
    try:
        for number, chunk in enumerate(server.stream("/v1/completions", body)):
            if number == 3:
                server.named("brigade-worker")[0].kill(signal.SIGKILL)
            if chunk["choices"] and chunk["choices"][0]["finish_reason"]:
                ended = chunk["choices"][0]["finish_reason"]
    except (AssertionError, OSError) as error:
        ended = f"error: {error}"
    assert ended == "length" or "error" in ended, ended
    wait_until(lambda: server.status()["replicas"][-1]["state"] == "ready", 60, "ready again")
    answer = server.client().completions.create(model=server.model(), prompt="x", max_tokens=3)
    assert answer.choices[0].finish_reason == "length"
