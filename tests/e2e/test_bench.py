# SPDX-License-Identifier: Apache-2.0
"""`brigade bench` against simulated workers: what it counts, and what the router holds under it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import StartServer
from support import BIN, ROOT, ProcessId, Server, wait_until

# A step of 20 ms whatever is in it; one replica's sequences.
SIM = (
    *("--device", "sim", "--tp", "1", "--pp", "1"),
    *(
        "--set",
        "sim.base_us=20000",
        "--set",
        "sim.us_per_token=0",
        "--set",
        "sim.us_per_context_token=0",
    ),
)


def bench(server: Server, *arguments: str, seconds: float = 60) -> dict[str, Any]:
    """Runs it to its end; the report for programs."""
    done = server.run_cli("bench", *arguments, "--json", "-", seconds=seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def start_bench(server: Server, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [BIN / "brigade", "bench", "--http", server.url, *arguments],
        cwd=ROOT,
        env=server.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with Server(tmp_path_factory.mktemp("bench-server"), *SIM) as running:
        yield running
        assert running.used_blocks() == 0


def test_a_closed_loop_counts_what_the_router_counted(steady: Server, tmp_path: Path) -> None:
    before = steady.status()
    page, numbers = tmp_path / "report.html", tmp_path / "report.json"
    done = steady.run_cli(
        *("bench", "--concurrency", "8", "--requests", "40", "--warmup", "8"),
        *("--prompt-tokens", "64..80", "--shared-prefix", "48", "--prefix-groups", "2"),
        *("--output-tokens", "1..16", "--slo", "ttft=10s,itl=5s,e2e=30s"),
        *("--json", str(numbers), "--html", str(page)),
    )
    assert done.returncode == 0, done.stderr
    assert "40 complete" in done.stdout and "TTFT" in done.stdout and "####" in done.stdout
    assert page.read_text().count("<svg") >= 5
    report = json.loads(numbers.read_text())
    after = steady.status()
    assert after["requests"]["completed"] - before["requests"]["completed"] == 48
    generated = after["generated_tokens"] - before["generated_tokens"]
    assert 40 <= report["tokens"]["output"] < generated
    assert report["requests"]["good"] == report["requests"]["complete"] == 40
    assert report["errors"] == {}
    assert report["itl_s"]["count"] == report["tokens"]["output"] - 40
    # All but the first of a group find its three blocks.
    assert report["tokens"]["cached_prompt"] >= 48 * (40 - 2 * 8)
    # A token comes with a step: never sooner in the mean, and not much later.
    assert 0.018 < report["itl_s"]["mean"] < 0.1


def test_an_open_loop_keeps_its_times(steady: Server, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines = [{"time": 10 + 0.05 * i, "prompt_tokens": 5 + i, "output_tokens": 2} for i in range(20)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = bench(steady, "--trace", str(trace), "--chat")
    assert report["requests"]["complete"] == 20
    assert report["tokens"]["output"] == 40
    assert 0.95 < report["duration_s"] < 5
    assert report["start_delay_s"]["p50"] < 0.05

    poisson = bench(
        steady, *("--rate", "50", "--burst", "5", "--duration", "1s"), *("--output-tokens", "2")
    )
    assert poisson["requests"]["complete"] % 5 == 0
    assert 10 <= poisson["requests"]["complete"] <= 150
    assert poisson["requests"]["failed"] == 0


def test_an_interrupt_ends_the_run_with_a_report(steady: Server) -> None:
    running = start_bench(
        steady, *("--concurrency", "4", "--requests", "100000", "--output-tokens", "500")
    )
    wait_until(lambda: steady.status()["requests"]["in_flight"] == 4, 20, "four requests")
    time.sleep(0.2)  # for tokens to report
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=10)
    assert running.returncode == 0, stderr
    assert "interrupted" in stdout and "4 cut by the interrupt" in stdout
    assert steady.used_blocks() == 0


def test_mistakes_are_told(steady: Server) -> None:
    for arguments, message in [
        (("--prompt-tokens", "9..3"), "lognormal:256,200,16..2048"),
        (("--slo", "tpot=1s"), "ttft=200ms"),
        (("--duration", "5 parsecs"), "expected a time"),
        (("--trace", "/nonexistent"), "/nonexistent"),
        (("--requests", "3", "--prompt-tokens", "100000"), "no request was completed"),
    ]:
        done = steady.run_cli("bench", *arguments)
        assert done.returncode == 1 and message in done.stderr, done.stderr
    assert "context_length_exceeded" in done.stdout


def test_refusals_are_told_apart_and_tried_again_when_told(start_server: StartServer) -> None:
    server = start_server(
        *SIM, *("--set", "limits.max_seqs=2", "--set", "limits.max_queued_requests=2")
    )
    burst = ("--concurrency", "7", "--requests", "7", "--output-tokens", "10")
    report = bench(server, *burst)
    assert report["requests"]["complete"] >= 4
    assert report["requests"]["complete"] + report["requests"]["refusals"] == 7
    assert report["requests"]["failed"] == 0
    assert report["errors"] == {"HTTP 429 rate_limit_exceeded": report["requests"]["refusals"]}
    assert report["retry_after_s"]["min"] >= 1
    assert report["refusal_s"]["p99"] < 1
    again = bench(server, *burst, "--retries", "20")
    assert again["requests"]["complete"] == 7
    assert again["retries"]["taken"] >= 1


def test_two_thousand_streams_end_and_a_quarter_that_leaves_takes_nothing_along(
    start_server: StartServer,
) -> None:
    server = start_server(
        *SIM, *("--dp", "2", "--set", "limits.max_seqs=1024", "--set", "limits.step_tokens=2048")
    )
    streams = (
        "--concurrency",
        "2000",
        "--requests",
        "2000",
        "--prompt-tokens",
        "8",
        "--output-tokens",
        "12",
    )
    (router,) = server.named("brigade-router")
    bench(server, "--concurrency", "50", "--requests", "100", "--output-tokens", "4")
    idle = router.resident_bytes()
    running = start_bench(server, *streams, "--json", "-")
    peak = peak_while(running, router)
    report = json.loads(running.communicate(timeout=30)[0])
    assert report["requests"]["complete"] == 2000 and report["errors"] == {}
    assert report["tokens"]["output"] == 2000 * 12
    assert peak - idle < 2000 * 64 * 1024, (idle, peak)

    before = server.status()["requests"]
    report = bench(server, *streams, "--abandon", "0.25")
    assert report["requests"]["failed"] == 0 and report["errors"] == {}
    assert 400 < report["requests"]["abandoned"] < 600
    assert report["requests"]["complete"] == 2000 - report["requests"]["abandoned"]
    assert server.used_blocks() == 0
    wait_until(lambda: server.status()["requests"]["in_flight"] == 0, 5, "all requests gone")
    after = server.status()["requests"]
    assert after["failed"] == before["failed"]
    # Who leaves before the router has heard of the request counts nowhere.
    ended = sum(after[kind] - before[kind] for kind in ("completed", "cancelled"))
    assert report["requests"]["complete"] <= ended <= 2000


def peak_while(running: subprocess.Popen[str], process: ProcessId) -> int:
    """The most memory that the process had resident while the other one ran."""
    peak = 0
    deadline = time.monotonic() + 60
    while running.poll() is None:
        assert time.monotonic() < deadline, "it does not end"
        peak = max(peak, process.resident_bytes())
        time.sleep(0.05)
    return peak
