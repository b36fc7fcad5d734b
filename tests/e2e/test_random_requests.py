# SPDX-License-Identifier: Apache-2.0
"""Random requests: every field of docs/api.md with values of odd kinds, ranges and nestings; and streams that end midway.

Each gets an answer or a clear error, and no block of KV is lost. The seed is fixed: a failure comes again.
"""

from __future__ import annotations

import json
import random
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from support import ROOT, Server

FIELDS = sorted(set(re.findall(r"`([a-z_]+)`", (ROOT / "docs" / "api.md").read_text("utf-8"))))
PATHS = ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"]
CALL = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 128, 0.0, -0.0, 0.5, 1.0, 1.5, -2.0, 1e-30, 1e308, 5e-324),
    *(2**31 - 1, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, 10**30),
    *(
        "",
        "a",
        "auto",
        "none",
        "text",
        "user",
        "\0",
        "\U0001f600",
        "\u202e",
        "<|im_end|>",
        "f" * 1200,
    ),
    *(
        [],
        [[]],
        [None],
        [0],
        [1, 2, 3],
        ["a"],
        ["", ""],
        ["a"] * 20,
        [1, "a"],
        [[1, 2], [3]],
        [[1], "x"],
    ),
    *(
        {},
        [{}],
        {"a": 1},
        {"type": "text"},
        {"1": 5},
        {"01": 1, "1": 2},
        {"99999999": 1},
        {"1": "x"},
    ),
    *({"include_usage": True}, {"include_usage": 1}, {"continuous_usage_stats": True}),
    [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
    [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "4"},
    ],
    [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1"}}]}],
]


def nested(draw: random.Random, depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = draw.choice([[value], {"k": value}])
    return value


def make_body(draw: random.Random, path: str, model: str) -> bytes:
    body: dict[str, Any] = {"model": model, "max_tokens": 3}
    if path == "/v1/completions":
        body["prompt"] = draw.choice(
            ["hi", "", [5, 6], ["a", "b"], [[5], [6, 7]], "\0", "<|im_end|>"]
        )
    elif path == "/detokenize":
        body["tokens"] = [1, 2]
    else:
        body["messages"] = [{"role": "user", "content": "hi"}]
    for field in draw.sample(FIELDS, draw.randint(1, 3)):
        odd = (
            nested(draw, draw.choice([3, 60, 63, 64, 70]))
            if draw.random() < 0.1
            else draw.choice(VALUES)
        )
        body[field] = odd
    text = json.dumps(body)
    if draw.random() < 0.05:  # a key twice
        text = f'{text[:-1]}, "{draw.choice(list(body))}": 1}}'
    if draw.random() < 0.05:  # a letter that does not belong
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice('"\\{},.\x00\x7f') + text[at + 1 :]
    return text.encode()


def assert_proper(answer: httpx.Response) -> None:
    if answer.status_code != 200:
        assert 400 <= answer.status_code < 500 or answer.status_code == 504
        error = answer.json()["error"]
        assert set(error) >= {"message", "type", "param", "code"}
        assert 0 < len(error["message"]) < 600
    elif answer.headers["content-type"].startswith("text/event-stream"):
        events = answer.text.split("\n\n")
        assert events[-1] == ""
        assert events[-2] == "data: [DONE]" or events[-2].startswith("event: error\n")
        for event in events[:-2]:
            json.loads(event.removeprefix("data: "))
    else:
        answer.json()


@pytest.mark.parametrize("seed", range(3))
def test_random_fields_get_an_answer_or_a_clear_error(sim_server: Server, seed: int) -> None:
    draw = random.Random(seed)
    model = sim_server.model()
    statuses = set()
    with httpx.Client(base_url=sim_server.url, timeout=30) as client:
        for _ in range(250):
            path = draw.choice(PATHS)
            body = make_body(draw, path, model)
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            try:
                assert_proper(answer)
            except Exception as error:
                raise AssertionError(
                    f"{path} {body!r}: {answer.status_code} {answer.text}"
                ) from error
            statuses.add(answer.status_code)
    assert {200, 400} <= statuses
    assert sim_server.used_blocks() == 0


def test_streams_that_clients_cut_anywhere_give_their_blocks_back(sim_server: Server) -> None:
    draw = random.Random(4)
    where = urlsplit(sim_server.url)
    for _ in range(60):
        body = json.dumps(
            {
                "model": sim_server.model(),
                "prompt": ["abc"] * draw.choice([1, 1, 1, 12]),
                "max_tokens": draw.randint(1, 20),
                "n": draw.randint(1, 3),
                "stream": draw.random() < 0.9,
            }
        ).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: a1\r\nContent-Length: {len(body)}\r\n"
        request = f"{head}Content-Type: application/json\r\n\r\n".encode() + body
        with socket.create_connection((where.hostname, where.port), timeout=20) as client:
            if draw.random() < 0.3:
                client.sendall(request[: draw.randrange(len(request))])
            else:
                client.sendall(request)
                client.recv(draw.choice([1, 200, 3000]))
            if draw.random() < 0.5:  # by a reset instead of a close
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert sim_server.used_blocks() == 0
