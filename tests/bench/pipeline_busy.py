#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How busy the stages of a real pipeline are: SmolLM2 on two one-thread stages, many streams.

    tests/bench/pipeline_busy.py [--streams 16] [--tokens 480]

Prints of each stage the part of the time in which it computed, waited for activations or handed on
(from /metrics, over a window in which all streams decode: it begins and ends with a report of the
first stage, some seconds apart), the bubble, the tokens a second, and what `brigade status` showed.
BRIGADE_BIN names other programs than the preset's. Needs a core for each stage: beside other work
the figures are of that too.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import httpx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

NUM_STAGES = 2
PROMPT_TOKENS = 64
RANK_SECONDS = re.compile(r'brigade_rank_seconds_total\{.*stage="(\d+)".*what="(\w+)".*\} (\S+)')
GENERATED = re.compile(r"brigade_generation_tokens_total\{.*\} (\S+)")


class Sample(NamedTuple):
    time: float
    tokens: float
    seconds: dict[tuple[int, str], float]  # (stage, what)


def sample(url: str) -> Sample:
    now = time.perf_counter()
    text = httpx.get(f"{url}/metrics", timeout=10).raise_for_status().text
    seconds = {
        (int(stage), what): float(value) for stage, what, value in RANK_SECONDS.findall(text)
    }
    tokens = sum(float(value) for value in GENERATED.findall(text))
    if len(seconds) != 3 * NUM_STAGES:
        raise SystemExit(f"/metrics has other ranks than expected: {seconds}")
    return Sample(now, tokens, seconds)


def generate(url: str, model: str, num_tokens: int) -> None:
    body = {
        "model": model,
        "prompt": [random.randrange(1000, 40_000) for _ in range(PROMPT_TOKENS)],
        "max_tokens": num_tokens,
        "temperature": 0,
        "ignore_eos": True,
    }
    answer = httpx.post(f"{url}/v1/completions", json=body, timeout=300)
    if answer.status_code != 200 or answer.json()["usage"]["completion_tokens"] != num_tokens:
        raise SystemExit(f"unexpected answer: {answer.text}")


def print_table(before: Sample, after: Sample, num_streams: int) -> None:
    window = after.time - before.time

    def part(stage: int, what: str) -> float:
        return (after.seconds[stage, what] - before.seconds[stage, what]) / window

    print(f"SmolLM2-135M, {NUM_STAGES} one-thread stages, {num_streams} streams, {window:.1f} s")
    print(f"{'stage':8}{'busy':>8}{'waits':>8}{'links':>8}")
    for stage in range(NUM_STAGES):
        parts = [part(stage, what) for what in ("compute", "wait", "link")]
        print(f"{stage:<8}" + "".join(f"{value:8.1%}" for value in parts))
    busy = [part(stage, "compute") for stage in range(NUM_STAGES)]
    print(f"bubble (time of stages without a step to compute): {1 - sum(busy) / NUM_STAGES:.1%}")
    print(f"throughput: {(after.tokens - before.tokens) / window:.1f} tokens/s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=480, help="that each stream generates")
    parser.add_argument("--preset", default="release")
    options = parser.parse_args()
    os.environ.setdefault("BRIGADE_BIN", str(ROOT / "build" / options.preset / "bin"))
    from support import Server, wait_until

    with tempfile.TemporaryDirectory(prefix="brigade-bench-") as folder:
        with Server(Path(folder), "--tp", "1", "--pp", str(NUM_STAGES), "--threads", "1") as server:
            model = server.model()
            generate(server.url, model, 4)  # pages touched
            with concurrent.futures.ThreadPoolExecutor(options.streams) as pool:
                jobs = [
                    pool.submit(generate, server.url, model, options.tokens)
                    for _ in range(options.streams)
                ]

                def decoding() -> bool:
                    return server.status()["replicas"][0]["running"] == options.streams

                wait_until(decoding, seconds=60, what="all streams run")
                reports = [sample(server.url)]
                shown = ""
                while decoding():
                    now = sample(server.url)
                    if now.seconds[0, "compute"] != reports[-1].seconds[0, "compute"]:
                        reports.append(now)
                        shown = server.run_cli("status").stdout
                    time.sleep(0.2)
                for job in jobs:
                    job.result()
    if len(reports) < 3:
        raise SystemExit("the streams ended too soon: take more --tokens")
    print_table(reports[1], reports[-1], options.streams)
    print("\nbrigade status, at the end of it:\n" + shown)


if __name__ == "__main__":
    main()
