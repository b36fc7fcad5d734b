# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ do what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support import BIN, ROOT, Server

EXAMPLES = ROOT / "examples"


def run(*command: object, **env: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_curl(server: Server, name: str, *arguments: str) -> str:
    return run(EXAMPLES / "curl" / name, *arguments, BRIGADE_URL=server.url)


def test_every_example_is_run_here() -> None:
    text = (ROOT / "tests" / "e2e" / "test_examples.py").read_text("utf-8")
    names = [path.name for path in EXAMPLES.glob("*/*") if path.is_file() and path.suffix != ".cpp"]
    assert len(names) >= 8
    for name in names:
        assert f'"{name}"' in text, name


def test_curl_completes_and_chats(server: Server) -> None:
    completion = json.loads(run_curl(server, "completion"))
    assert completion["choices"][0]["text"].strip()
    given = json.loads(run_curl(server, "completion", "One, two, three,"))
    assert given["choices"][0]["text"] != completion["choices"][0]["text"]
    assert json.loads(run_curl(server, "chat"))["choices"][0]["message"]["content"].strip()


def test_curl_streams(server: Server) -> None:
    events = run_curl(server, "stream").strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 3
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1]).strip()


def test_curl_scores_a_text(server: Server) -> None:
    scores = json.loads(run_curl(server, "logprobs"))["choices"][0]["logprobs"]
    assert "".join(scores["tokens"]) == "The capital of France is Paris"
    assert scores["token_logprobs"][-1] > -1


def test_curl_tokenizes(server: Server) -> None:
    text, chat, back = [json.loads(line) for line in run_curl(server, "tokenize").splitlines()]
    assert "".join(text["token_strs"]) == "Hello, world!"
    assert chat["count"] > text["count"]
    assert back == {"prompt": "Hello, world!"}


def test_curl_cancels(server: Server) -> None:
    came, _, status = run_curl(server, "cancel").rpartition("\n{")
    assert came.count("data: ") > 1 and "[DONE]" not in came
    assert all(
        replica["kv_blocks"]["used"] == 0 for replica in json.loads("{" + status)["replicas"]
    )


def test_openais_client_chats(server: Server) -> None:
    program = EXAMPLES / "python" / "openai_chat.py"
    out = run(sys.executable, program, server.url, "What is the capital of France?")
    assert "tokens in" in out and "% sure of each" in out


@pytest.mark.parametrize("name", ["generate.py", "example-generate"])
def test_the_sockets_clients_print_an_answer(sim_server: Server, name: str) -> None:
    python = [sys.executable, EXAMPLES / "python" / name]
    command = python if name.endswith(".py") else [BIN / name]
    path = str(BIN.parent / "python")
    assert run(*command, sim_server.socket, "Why is the sky blue?", PYTHONPATH=path).strip()
