#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The router alone under load, by `brigade bench`: release build, simulated workers.

    tests/bench/router_load.py [streams] [abandon] [real] [overload]      without words: all four

streams   2,000 streams at once, at three paces: what the router adds to a token (the metric
          brigade_token_delivery_seconds: from the arrival of a step's result to the end of the write
          that has its event), its CPU, its memory per stream, while all run.
abandon   the same, and a quarter of the clients leaves somewhere: nothing may be lost.
real      16 streams of SmolLM2 on two stages: the router's CPU, as a part of one core.
overload  the capacity by a closed loop, then an open loop of 0.9 and of 10 times that: latencies of
          what is accepted, Retry-After beside the wait of those in the queue, memory.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
os.environ.setdefault("BRIGADE_BIN", str(ROOT / "build" / "release" / "bin"))

import httpx  # noqa: E402
from support import ProcessId, Server, wait_until  # noqa: E402

NUM_STREAMS = 2000
# Replicas of one stage each: a step has 62 of the streams.
NUM_REPLICAS = 32
RAMP_S = 4
STEADY_S = 6


class Watch:
    """CPU and memory of a process while something runs."""

    def __init__(self, process: ProcessId) -> None:
        self.process = process
        self.resident: list[int] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self.stopped.wait(0.1):
            self.resident.append(self.process.resident_bytes())

    def __enter__(self) -> Watch:
        self.cpu = self.process.cpu_seconds()
        self.began = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()
        self.cpu = self.process.cpu_seconds() - self.cpu
        self.seconds = time.monotonic() - self.began


def bench(server: Server, *arguments: str) -> dict[str, Any]:
    done = server.run_cli("bench", "--http", server.url, *arguments, "--json", "-", seconds=170)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def delivery(server: Server) -> dict[float, float]:
    """Cumulative counts of brigade_token_delivery_seconds by upper edge."""
    name = 'brigade_token_delivery_seconds_bucket{le="'
    lines = httpx.get(f"{server.url}/metrics", timeout=10).text.splitlines()
    found = [line[len(name) :].split('"} ') for line in lines if line.startswith(name)]
    return {float(edge): float(count) for edge, count in found}


def generated(server: Server) -> int:
    return server.status()["generated_tokens"]


def share_within(before: dict[float, float], after: dict[float, float], edge: float) -> float:
    total = after[float("inf")] - before[float("inf")]
    return (after[edge] - before[edge]) / total


def quantile_edge(before: dict[float, float], after: dict[float, float], q: float) -> float:
    return next(edge for edge in sorted(after) if share_within(before, after, edge) >= q)


def simulated(folder: Path, replicas: int, base_us: int, *more: str) -> Server:
    """Jitter lets replicas' steps, of which all are equally long, end apart."""
    return Server(
        folder,
        *("--device", "sim", "--tp", "1", "--pp", "1", "--dp", str(replicas)),
        *("--set", f"sim.base_us={base_us}", "--set", "sim.us_per_token=0"),
        *("--set", "sim.us_per_context_token=0", "--set", "sim.jitter=0.1"),
        *("--set", "timeouts.heartbeat_ms=20000"),
        *more,
    )


def streams(folder: Path, abandon: bool) -> None:
    """The streams begin over some seconds, so that replicas' steps do not end together."""
    what = ", a quarter leaves" if abandon else ""
    print(f"\n{NUM_STREAMS} streams on {NUM_REPLICAS} simulated replicas{what}")
    print(
        "step ms   complete  abandoned  failed  tokens/s  router CPU  us/token  KB/stream"
        "   added p50   p99          within 1 ms"
    )
    for step_ms, tokens in ((200, 70), (100, 120), (50, 220)) if not abandon else ((200, 60),):
        with simulated(folder / f"{step_ms}", NUM_REPLICAS, step_ms * 1000) as server:
            (router,) = server.named("brigade-router")
            bench(server, "--concurrency", "100", "--requests", "200", "--output-tokens", "4")
            idle = router.resident_bytes()
            arguments = (
                *("--rate", str(NUM_STREAMS / RAMP_S), "--requests", str(NUM_STREAMS)),
                *("--prompt-tokens", "4..64", "--output-tokens", str(tokens)),
                *(("--abandon", "0.25") if abandon else ()),
            )
            with concurrent.futures.ThreadPoolExecutor() as pool:
                running = pool.submit(bench, server, *arguments)
                time.sleep(RAMP_S + 1)
                before, before_tokens = delivery(server), generated(server)
                with Watch(router) as watch:
                    time.sleep(STEADY_S)
                after, num_tokens = delivery(server), generated(server) - before_tokens
                in_flight = server.status()["requests"]["in_flight"]
                report = running.result()
            requests = report["requests"]
            print(
                f"{step_ms:7}   {requests['complete']:8}  {requests['abandoned']:9}"
                f"  {requests['failed']:6}  {num_tokens / watch.seconds:8.0f}"
                f"  {100 * watch.cpu / watch.seconds:8.1f} %  {1e6 * watch.cpu / num_tokens:8.1f}"
                f"  {(max(watch.resident) - idle) / NUM_STREAMS / 1024:9.1f}"
                f"   <= {1e3 * quantile_edge(before, after, 0.5):.2f}"
                f"   <= {1e3 * quantile_edge(before, after, 0.99):.2f} ms"
                f"  {100 * share_within(before, after, 0.001):6.2f} %"
                f"  ({in_flight} at the end of the window)"
            )
            assert server.used_blocks() == 0, "KV blocks are left in use"
            wait_until(lambda: server.status()["requests"]["in_flight"] == 0, 5, "all gone")
            assert server.status()["requests"]["failed"] == 0, server.status()["requests"]


def real(folder: Path) -> None:
    print("\n16 streams of SmolLM2, pp 2, one thread a stage")
    with Server(folder, "configs/pp2.toml") as server:
        (router,) = server.named("brigade-router")
        bench(server, "--concurrency", "16", "--requests", "16", "--output-tokens", "8")
        with Watch(router) as watch:
            report = bench(
                server,
                *("--concurrency", "16", "--requests", "16"),
                *("--prompt-tokens", "16", "--output-tokens", "400"),
            )
        print(
            f"{report['tokens']['output_per_second']:.0f} tokens/s,"
            f" router {100 * watch.cpu / report['duration_s']:.1f} % of a core, {1e6 * watch.cpu / report['tokens']['output']:.1f} us/token"
        )


def overload(folder: Path, delay_ms: int) -> None:
    print(f"\noverload, queue delay of at most {delay_ms} ms")
    print("two simulated replicas of 32 sequences, prompts 64..256, answers 16..64")
    lengths = ("--prompt-tokens", "64..256", "--output-tokens", "16..64")
    with simulated(
        folder,
        2,
        20_000,
        *("--set", "limits.max_seqs=32", "--set", f"limits.max_queue_delay_ms={delay_ms}"),
    ) as server:
        (router,) = server.named("brigade-router")
        # As many as there are slots: none waits, and none is refused.
        capacity = bench(
            server, *lengths, "--concurrency", "64", "--requests", "1000", "--seed", "2"
        )
        rate = capacity["requests"]["per_second"]
        print(f"capacity {rate:.0f} requests/s (closed loop of 64)")
        rows = {}
        for factor in (0.9, 10):
            before = router.resident_bytes()
            with Watch(router) as watch:
                report = bench(
                    server,
                    *lengths,
                    "--rate",
                    f"{factor * rate:.1f}",
                    "--duration",
                    "30s",
                    "--seed",
                    "3",
                )
            rows[factor] = report
            half = len(watch.resident) // 2
            requests = report["requests"]
            print(
                f"x{factor:<4} {requests['complete']} complete, {requests['refusals']} refused, {requests['failed']} failed;"
                f" TTFT p50 {report['ttft_s']['p50']:.2f} p99 {report['ttft_s']['p99']:.2f} s,"
                f" e2e p50 {report['e2e_s']['p50']:.2f} p99 {report['e2e_s']['p99']:.2f} s;"
                f" refusal p50 {1e3 * report['refusal_s']['p50']:.1f} p99 {1e3 * report['refusal_s']['p99']:.1f} ms;"
                f" Retry-After {report['retry_after_s']['p50']:.0f} (p50) {report['retry_after_s']['max']:.0f} (max) s;"
                f" start delay p99 {1e3 * report['start_delay_s']['p99']:.0f} ms;"
                f" memory {before / 2**20:.0f} -> {max(watch.resident[:half]) / 2**20:.0f}"
                f" -> {max(watch.resident[half:]) / 2**20:.0f} MiB; CPU {100 * watch.cpu / watch.seconds:.0f} %"
            )
        ratio = rows[10]["e2e_s"]["p99"] / rows[0.9]["e2e_s"]["p99"]
        print(f"accepted p99 end to end at x10 is {ratio:.2f} of that at x0.9")


def main() -> None:
    parts = sys.argv[1:] or ["streams", "abandon", "real", "overload"]
    if "-h" in parts or "--help" in parts:
        print(__doc__)
        return
    with tempfile.TemporaryDirectory(prefix="router-load-") as name:
        for part in parts:
            folder = Path(name) / part
            if part in ("streams", "abandon"):
                streams(folder, abandon=part == "abandon")
            elif part == "real":
                real(folder)
            elif part == "overload":
                for delay_ms in (30_000, 200):  # the default, and one for open-loop clients
                    overload(folder / str(delay_ms), delay_ms)
            else:
                sys.exit(f"there is no part {part!r} (see --help)")


if __name__ == "__main__":
    main()
