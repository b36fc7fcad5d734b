# SPDX-License-Identifier: Apache-2.0
"""Greedy output is the same to the bit whatever the router plans: prefix cache, chunks, batch mates, preemption, stages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conftest import StartServer
from support import Server

SYSTEM = (
    "You are a careful assistant of a small fire brigade. You answer in plain words, you never guess, and when you "
    "do not know you say so. You know about buckets, ladders, hoses and pumps, and how people stand in a line. "
)
QUESTIONS = ["Why do people pass buckets?", "What is a ladder for?", "Name a colour.", "How long is a hose?"]
PROMPTS = [
    *(SYSTEM * 3 + question for question in QUESTIONS),
    *(f"{question} Count to {i}." for i, question in enumerate(QUESTIONS)),
]


def body(server: Server, index: int) -> dict[str, Any]:
    return {
        "model": server.model(),
        "prompt": PROMPTS[index % len(PROMPTS)],
        "max_tokens": 10 + index,
        "ignore_eos": True,
        "temperature": 0,
        "logprobs": 1,
    }


def answer(server: Server, index: int) -> tuple[list[str], list[float], int]:
    """Tokens, their log-probabilities, and how many of the prompt's were cached."""
    result = server.post("/v1/completions", body(server, index), seconds=120).raise_for_status().json()
    logprobs = result["choices"][0]["logprobs"]
    cached = result["usage"]["prompt_tokens_details"]["cached_tokens"]
    return logprobs["tokens"], logprobs["token_logprobs"], cached


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[str], list[float]]]:
    """Each of 32 requests alone, without prefix cache, on one stage."""
    with Server(
        tmp_path_factory.mktemp("alone"), *("--pp", "1", "--set", "prefix_cache=false")
    ) as server:
        answers = [answer(server, index) for index in range(32)]
        assert all(cached == 0 for _, _, cached in answers)
        assert server.status()["replicas"][0]["kv_blocks"]["cached"] == 0
    return [(tokens, logprobs) for tokens, logprobs, _ in answers]


@pytest.mark.parametrize(
    ("pp", "settings"),
    [
        (1, ["limits.step_tokens=37"]),
        (2, []),
        (3, ["limits.step_tokens=64", "prefix_cache=false"]),
        (4, ["limits.max_kv_blocks=40"]),
    ],
)
def test_a_mixed_batch_of_32_answers_as_each_request_alone(
    start_server: StartServer, alone: list[tuple[list[str], list[float]]], pp: int, settings: list[str]
) -> None:
    options = [word for setting in settings for word in ("--set", setting)]
    server = start_server("--pp", str(pp), *options)
    caches = "prefix_cache=false" not in settings
    with ThreadPoolExecutor(32) as pool:
        for _ in range(2):  # the second time with what the first has left in the cache
            answers = list(pool.map(lambda index: answer(server, index), range(32)))
            for index, (tokens, logprobs, _) in enumerate(answers):
                assert (tokens, logprobs) == alone[index], f"request {index}"
            assert any(cached > 0 for _, _, cached in answers) == caches
    tokens, logprobs, cached = answer(server, 0)
    assert (tokens, logprobs) == alone[0]
    assert server.used_blocks() == 0
    status = server.status()
    assert (status["replicas"][0]["kv_blocks"]["cached"] > 0) == caches
    if "limits.max_kv_blocks=40" in settings:
        assert status["preempted"] > 0


@pytest.mark.parametrize("settings", [[], ["--set", "prefix_cache=false"]])
def test_choices_of_one_prompt_draw_as_requests_of_their_own(start_server: StartServer, settings: list[str]) -> None:
    server = start_server("--tp", "2", "--pp", "2", *settings)
    asked = {**body(server, 0), "temperature": 1, "seed": 5, "max_tokens": 12}
    choices = server.post("/v1/completions", {**asked, "n": 4}, seconds=120).raise_for_status().json()["choices"]
    for index, choice in enumerate(choices):
        single = server.post("/v1/completions", {**asked, "seed": 5 + index}, seconds=120).raise_for_status().json()
        assert choice["logprobs"] == single["choices"][0]["logprobs"]
    assert server.used_blocks() == 0
