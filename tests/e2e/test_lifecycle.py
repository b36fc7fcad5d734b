# SPDX-License-Identifier: Apache-2.0
"""Starting, stopping, dying, draining, and doing nothing."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from conftest import StartServer
from support import Server, wait_until

SIM = ["--device", "sim", "--tp", "1", "--pp", "2"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_everything_and_leaves_nothing(start_server: StartServer, number: signal.Signals) -> None:
    server = start_server(*SIM)
    assert len(server.processes()) == 4
    started = time.monotonic()
    assert server.stop(number) == 0
    assert time.monotonic() - started < 5
    server.check_nothing_left()


def test_a_worker_killed_just_before_the_stop_leaves_nothing(start_server: StartServer) -> None:
    server = start_server(*SIM)
    server.process.send_signal(signal.SIGSTOP)  # the supervisor learns of both together
    for worker in server.named("brigade-worker"):
        worker.kill()
    server.process.send_signal(signal.SIGTERM)
    server.process.send_signal(signal.SIGCONT)
    assert server.stop() == 0
    server.check_nothing_left()


def test_a_signal_while_loading_stops_everything(start_server: StartServer) -> None:
    server = start_server(*SIM, "--set", "sim.load_ms=20000", wait=False)
    wait_until(lambda: len(server.processes()) == 4, 20, "router and workers started")
    assert server.stop() == 0
    server.check_nothing_left()


def test_a_signal_under_load_ends_streams_with_an_error_and_leaves_nothing(start_server: StartServer) -> None:
    server = start_server(*SIM)
    outcome: list[str] = []

    def read() -> None:
        try:
            body = {"model": server.model(), "prompt": "x", "max_tokens": 100_000, "ignore_eos": True}
            for _ in server.stream("/v1/completions", {**body, "max_tokens": 5000}):
                outcome.append("chunk")
            outcome.append("clean end")
        except Exception as error:  # noqa: BLE001: any kind of failure is what this looks for
            outcome.append(f"error {error}")

    reader = threading.Thread(target=read)
    reader.start()
    wait_until(lambda: "chunk" in outcome, 20, "the stream has begun")
    assert server.stop() == 0
    reader.join(timeout=20)
    assert not reader.is_alive()
    assert outcome[-1].startswith("error"), outcome[-3:]
    server.check_nothing_left()


def test_without_their_supervisor_router_and_workers_end(start_server: StartServer) -> None:
    server = start_server(*SIM)
    processes = server.processes()
    server.up.kill(signal.SIGKILL)
    server.process.wait(timeout=5)
    wait_until(lambda: not any(process.alive() for process in processes), 10, "all processes end")


def test_the_routers_death_ends_all_with_a_message(start_server: StartServer) -> None:
    server = start_server(*SIM)
    (router,) = server.named("brigade-router")
    router.kill(signal.SIGKILL)
    assert server.process.wait(timeout=20) == 1
    assert "the router" in server.log.read_text() and "signal 9" in server.log.read_text()
    server.check_nothing_left()


def test_a_port_in_use_is_a_clear_error(start_server: StartServer, sim_server: Server) -> None:
    server = start_server(*SIM, "--http", sim_server.url.removeprefix("http://"), wait=False)
    assert server.process.wait(timeout=20) == 1
    assert "in use" in server.log.read_text()
    assert sim_server.status()


def test_an_idle_server_uses_no_processor_time(server: Server) -> None:
    server.client().completions.create(model=server.model(), prompt="x", max_tokens=2)
    time.sleep(1)  # what the request left to do ends
    processes = server.processes()
    assert len(processes) == 6
    before = sum(process.cpu_seconds() for process in processes)
    seconds = 4.0
    time.sleep(seconds)
    used = sum(process.cpu_seconds() for process in processes) - before
    assert used / seconds < 0.01, f"{100 * used / seconds:.2f} % of a core over {len(processes)} processes"


def test_sixty_four_simulated_workers_are_ready_in_seconds(start_server: StartServer) -> None:
    started = time.monotonic()
    server = start_server("configs/sim-64.toml")
    assert time.monotonic() - started < 30
    replicas = server.status()["replicas"]
    assert len(replicas) == 8
    assert sum(len(replica["ranks"]) for replica in replicas) == 64
    answer = server.client().completions.create(model=server.model(), prompt=["a b c"] * 16, max_tokens=20)
    assert len(answer.choices) == 16
    assert len({choice.text for choice in answer.choices}) == 1, "the simulated token depends on anything else"
    assert server.stop() == 0
    server.check_nothing_left()


def test_a_drained_replica_finishes_its_requests_and_leaves(start_server: StartServer) -> None:
    server = start_server("configs/tp2-dp2.toml", "--device", "sim", "--set", "sim.base_us=20000")
    body = {"model": server.model(), "prompt": "x", "max_tokens": 100, "ignore_eos": True}
    finish_reasons: list[str] = []

    def read() -> None:
        for chunk in server.stream("/v1/completions", body):
            if chunk["choices"] and chunk["choices"][0]["finish_reason"]:
                finish_reasons.append(chunk["choices"][0]["finish_reason"])

    def running(replica: int) -> int:
        return next(r["running"] for r in server.status()["replicas"] if r["id"] == replica)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    wait_until(lambda: running(0) > 0 and running(1) > 0, 20, "both replicas have requests")
    workers = {process.pid for process in server.named("brigade-worker")}
    result = server.run_cli("drain", "0", "--wait", "30")
    assert result.returncode == 0, result.stderr
    assert "drained" in result.stdout
    for reader in readers:
        reader.join(timeout=30)
    assert finish_reasons == ["length"] * 4
    wait_until(lambda: len(server.named("brigade-worker")) == 2, 10, "its workers have left")
    time.sleep(1)  # a supervisor that takes a drained worker for a dead one would start another
    assert {process.pid for process in server.named("brigade-worker")} < workers
    answer = server.client().completions.create(model=server.model(), prompt="x", max_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert server.run_cli("drain", "77").returncode == 1
