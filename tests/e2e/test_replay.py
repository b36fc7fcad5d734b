# SPDX-License-Identifier: Apache-2.0
"""A trace that a real router wrote is decided the same again by `brigade replay`."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import StartServer
from support import run_cli

SIM = ["--device", "sim", "--set", "limits.max_seqs=4"]
REAL = ["--device", "cpu"]


@pytest.mark.parametrize("device", [SIM, REAL], ids=["simulated", "real"])
def test_a_real_routers_decisions_replay_the_same(
    start_server: StartServer, tmp_path: Path, device: list[str]
) -> None:
    trace = tmp_path / "trace.jsonl"
    server = start_server(*device, "--tp", "1", "--pp", "2", "--set", f"trace={trace}")
    body = {"model": server.model(), "max_tokens": 12, "temperature": 1, "logprobs": 1, "stop": [" é"]}

    def ask(number: int) -> int:
        return server.post("/v1/completions", {**body, "prompt": "one two three " * number}).status_code

    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(ask, range(1, 13))) == {200}
    next(server.stream("/v1/completions", {**body, "prompt": "gone"}))  # its client hangs up
    (worker, *_) = server.named("brigade-worker")
    worker.kill()
    assert server.stop() == 0
    assert trace.stat().st_mode & 0o777 == 0o600

    replayed = run_cli("replay", str(trace))
    assert replayed.returncode == 0, replayed.stderr
    assert "decided the same" in replayed.stdout
    assert re.search(r"^ +12 .* length$", replayed.stdout, re.MULTILINE), replayed.stdout
    if device is SIM:
        assert "slots" in replayed.stdout
    steps = run_cli("replay", str(trace), "--steps", "--request", "1").stdout
    assert re.search(r"request 1 goes to replica 0, slot \d", steps)
    assert re.search(r"step \d+ of replica 0, lane \d: .*request 1\[0\.\.", steps)

    lines = trace.read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"submit":{"id":5,' not in line]
    assert len(kept) == len(lines) - 1
    trace.write_text("".join(kept))
    broken = run_cli("replay", str(trace))
    assert broken.returncode == 1
    assert "goes another way" in broken.stderr
