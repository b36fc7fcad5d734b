# SPDX-License-Identifier: Apache-2.0
"""Two hundred mixed requests over the whole grid, a third of them cancelled."""

from __future__ import annotations

import asyncio
import json
import math
import random
from dataclasses import dataclass

import httpx
import pytest

from conftest import StartServer
from support import Server

NUM_REQUESTS = 200
MAX_PROMPT = 2000
MAX_OUTPUT = 300
NUM_AT_ONCE = 32


@dataclass
class Plan:
    prompt: list[int]
    max_tokens: int
    cancel_after: int | None  # events of the stream


def make_plans(seed: int) -> list[Plan]:
    """Lengths spread evenly by magnitude, both ends included; every third request is cancelled somewhere."""
    draw = random.Random(seed)

    def length(longest: int) -> int:
        return round(math.exp(draw.uniform(0, math.log(longest))))

    plans = []
    for i in range(NUM_REQUESTS):
        prompt_tokens = (1, MAX_PROMPT)[i] if i < 2 else length(MAX_PROMPT)
        max_tokens = (MAX_OUTPUT, 1)[i] if i < 2 else length(MAX_OUTPUT)
        cancel_after = draw.randint(0, max_tokens) if i % 3 == 2 else None
        plans.append(Plan([draw.randrange(100, 40_000) for _ in range(prompt_tokens)], max_tokens, cancel_after))
    return plans


async def run_one(client: httpx.AsyncClient, server: Server, model: str, plan: Plan) -> str:
    """How the request ended: `length`, or `cancelled` by us. Asserts that a stream ends exactly once."""
    body = {
        "model": model,
        "prompt": plan.prompt,
        "max_tokens": plan.max_tokens,
        "temperature": 0.9,
        "ignore_eos": True,
        "stream": True,
        "return_token_ids": True,
    }
    finish_reasons: list[str] = []
    num_events = num_tokens = 0
    async with client.stream("POST", f"{server.url}/v1/completions", json=body) as answer:
        assert answer.status_code == 200, await answer.aread()
        if plan.cancel_after == 0:
            return "cancelled"
        async for line in answer.aiter_lines():
            if not line:
                continue
            assert line.startswith("data: "), line
            if line == "data: [DONE]":
                assert finish_reasons == ["length"]
                assert num_tokens == plan.max_tokens
                return "length"
            choice = json.loads(line[6:])["choices"][0]
            num_events += 1
            num_tokens += len(choice.get("token_ids") or [])
            if choice["finish_reason"]:
                finish_reasons.append(choice["finish_reason"])
            if num_events == plan.cancel_after:
                return "cancelled"
    raise AssertionError("the stream broke off")


async def run_all(server: Server, plans: list[Plan]) -> list[str]:
    model = server.model()
    gate = asyncio.Semaphore(NUM_AT_ONCE)
    limits = httpx.Limits(max_connections=NUM_AT_ONCE, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=300, limits=limits) as client:

        async def gated(plan: Plan) -> str:
            async with gate:
                return await run_one(client, server, model, plan)

        return await asyncio.gather(*(gated(plan) for plan in plans))


def resident_bytes(server: Server) -> int:
    return sum(process.resident_bytes() for process in server.processes())


@pytest.mark.parametrize("device", ["sim", "cpu"])
def test_mixed_requests_end_once_and_give_everything_back(start_server: StartServer, device: str) -> None:
    # KV that the load fills: requests wait for blocks, and all pages are touched in the first round.
    server = start_server(
        "configs/tp3-pp2-dp2.toml", "--device", device, "--set", "limits.max_kv_blocks=600"
    )
    before = server.status()
    first = asyncio.run(run_all(server, make_plans(seed=1)))
    assert server.used_blocks() == 0
    warm = resident_bytes(server)
    assert first.count("cancelled") + first.count("length") == NUM_REQUESTS
    assert first.count("cancelled") >= NUM_REQUESTS // 4
    second = asyncio.run(run_all(server, make_plans(seed=2)[: NUM_REQUESTS // (1 if device == "sim" else 4)]))
    assert server.used_blocks() == 0
    assert resident_bytes(server) < 1.05 * warm + 8e6, (warm, resident_bytes(server))
    after = server.status()
    assert after["queue"]["requests"] == 0 and after["queue"]["tokens"] == 0
    assert after["requests"]["in_flight"] == 0
    counts = {kind: after["requests"][kind] - before["requests"][kind] for kind in after["requests"]}
    assert counts["accepted"] == len(first) + len(second)
    assert counts["completed"] + counts["cancelled"] == counts["accepted"]
    assert counts["failed"] == counts["refused"] == 0
    assert all(replica["state"] == "ready" for replica in after["replicas"])
    assert server.stop() == 0
    server.check_nothing_left()
