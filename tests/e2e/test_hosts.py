# SPDX-License-Identifier: Apache-2.0
"""Router and workers started by hand, as on real hosts, with keys."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support import BIN, MODEL, read_line, run_cli, wait_until

sys.path.insert(0, str(BIN.parent / "python"))

from brigade_client import BrigadeClient, BrigadeError, RouterUnavailable  # noqa: E402


class Programs:
    """Programs in one runtime directory, ended and checked together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runtime_dir = Path(tempfile.mkdtemp(prefix="brigade-"))
        self.running: list[subprocess.Popen[bytes]] = []

    def start(
        self, program: str, *arguments: str, under: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{program}-{len(self.running)}.log").open("wb")
        process = subprocess.Popen(
            [*under, BIN / program, *arguments],
            env={**os.environ, "XDG_RUNTIME_DIR": str(self.runtime_dir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        log.close()
        self.running.append(process)
        return process

    def record(self) -> dict[str, object]:
        """What the router tells of itself, once it does."""
        def read() -> dict[str, object] | None:
            found = list(self.runtime_dir.rglob("router-*.json"))
            return json.loads(found[0].read_text()) if found else None

        return wait_until(read, 20, "the router's record")

    def stop(self) -> None:
        for process in self.running:
            process.terminate()
        for process in self.running:
            try:
                process.wait(timeout=20)
            finally:
                process.kill()
                assert process.stdout is not None
                process.stdout.close()
        left = [path for path in self.runtime_dir.rglob("*") if not path.is_dir()]
        shutil.rmtree(self.runtime_dir)
        assert left == []


@pytest.fixture()
def programs(tmp_path: Path) -> Iterator[Programs]:
    running = Programs(tmp_path)
    yield running
    running.stop()


def test_a_worker_without_the_models_file_says_so_and_loads_it_when_it_is_there(
    programs: Programs, tmp_path: Path
) -> None:
    model, away = tmp_path / "model.gguf", tmp_path / "away.gguf"
    shutil.copy(MODEL, model)
    router = programs.start(
        "brigade-router", "--model", str(model), "--http", "127.0.0.1:0", "--socket", "tcp://127.0.0.1:0"
    )
    (_, tcp) = programs.record()["workers"]
    model.rename(away)
    model.write_text("no model")
    programs.start("brigade-worker", "--router", tcp)
    log = tmp_path / "brigade-router-0.log"
    wait_until(lambda: f'loading: "{model}": not a GGUF file but text' in log.read_text(), 20, "the router's warning")
    away.rename(model)
    assert read_line(router, 60).startswith("ready http://")


def test_a_worker_needs_the_routers_address_and_nothing_else(programs: Programs) -> None:
    router = programs.start(
        "brigade-router", "--model", str(MODEL), "--http", "127.0.0.1:0", "--socket", "tcp://127.0.0.1:0"
    )
    (ipc, tcp) = programs.record()["workers"]
    assert ipc.startswith("ipc://") and tcp.startswith("tcp://127.0.0.1:")
    programs.start("brigade-worker", "--router", tcp.removeprefix("tcp://"))
    line = read_line(router, 60)
    assert line.startswith("ready http://127.0.0.1:")
    url = line.split()[1]
    model = httpx.get(f"{url}/v1/models", timeout=10).json()["data"][0]["id"]
    body = {"model": model, "prompt": "The capital of France is", "max_tokens": 2, "temperature": 0}
    answer = httpx.post(f"{url}/v1/completions", json=body, timeout=60).json()
    assert "Paris" in answer["choices"][0]["text"]


def test_with_keys_only_peers_of_the_right_role_come_in(programs: Programs, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    assert run_cli("keys", str(keys)).returncode == 0
    router = programs.start(
        "brigade-router",
        *("--model", str(MODEL), "--http", "127.0.0.1:0", "--socket", "tcp://127.0.0.1:0"),
        *("--workers", "tcp://127.0.0.1:0", "--keys", str(keys / "router.toml")),
    )
    record = programs.record()
    (endpoint,) = record["workers"]
    url = record["http"]
    for wrong in ([], ["--keys", str(keys / "service.toml")]):
        programs.start("brigade-worker", "--router", endpoint, "--device", "sim", "--give-up-after", "3", *wrong)
    wait_until(lambda: all(p.poll() is not None for p in programs.running[1:]), 20, "strangers give up")
    assert httpx.get(f"{url}/status", timeout=10).json()["replicas"] == []
    programs.start(
        "brigade-worker", "--router", endpoint, "--device", "sim", "--keys", str(keys / "worker.toml")
    )
    assert read_line(router, 30).startswith("ready ")
    with BrigadeClient(str(record["socket"]), keys=str(keys / "service.toml")) as client:
        model = client.models()[0].name
        with client.generate(model, "x", max_tokens=3) as stream:
            stream.text()
            assert stream.finished is not None and stream.finished.completion_tokens == 3
        with pytest.raises(BrigadeError):
            client.drain(0)  # operators only
    with pytest.raises((BrigadeError, RouterUnavailable)):
        BrigadeClient(str(record["socket"]), connect_timeout=2).close()


def test_a_pipeline_crosses_hosts_over_links_with_keys(programs: Programs, tmp_path: Path) -> None:
    """A mount namespace of its own makes a worker another host: no shared memory, no ipc, tcp alone."""
    keys = tmp_path / "keys"
    assert run_cli("keys", str(keys)).returncode == 0
    router = programs.start(
        "brigade-router",
        *("--model", str(MODEL), "--http", "127.0.0.1:0", "--socket", "tcp://127.0.0.1:0", "--pp", "2"),
        *("--workers", "tcp://127.0.0.1:0", "--keys", str(keys / "router.toml")),
    )
    (endpoint,) = programs.record()["workers"]
    arguments = ("--router", endpoint, "--keys", str(keys / "worker.toml"), "--threads", "1")
    programs.start("brigade-worker", *arguments)
    programs.start("brigade-worker", *arguments, under=("unshare", "--user", "--map-root-user", "--mount"))
    line = read_line(router, 60)
    assert line.startswith("ready http://127.0.0.1:")
    url = line.split()[1]
    ranks = httpx.get(f"{url}/status", timeout=10).json()["replicas"][0]["ranks"]
    assert len({rank["host"] for rank in ranks}) == 2
    model = httpx.get(f"{url}/v1/models", timeout=10).json()["data"][0]["id"]
    body = {"model": model, "prompt": "The capital of France is", "max_tokens": 8, "temperature": 0}
    answer = httpx.post(f"{url}/v1/completions", json=body, timeout=60).json()
    assert "Paris" in answer["choices"][0]["text"]


def test_a_router_refuses_to_listen_for_other_machines_without_keys(programs: Programs) -> None:
    for option, value in [("--workers", "tcp://0.0.0.0:0"), ("--socket", "tcp://0.0.0.0:0"), ("--http", "0.0.0.0:0")]:
        others = [] if option == "--http" else ["--http", "127.0.0.1:0"]
        if option != "--socket":
            others += ["--socket", "tcp://127.0.0.1:0"]
        router = programs.start("brigade-router", "--model", str(MODEL), option, value, *others)
        assert router.wait(timeout=20) != 0, option
