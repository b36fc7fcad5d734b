# SPDX-License-Identifier: Apache-2.0
"""What the `brigade` commands print, and how they fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import StartServer
from support import MODEL, Server, run_cli

QUESTION = "What is the capital of France?"
COMMANDS = ["up", "run", "chat", "status", "drain", "tokenize", "keys", "perplexity"]


def answer_to(server: Server, messages: list[dict[str, str]]) -> str:
    answer = server.client().chat.completions.create(
        model=server.model(), messages=messages, max_tokens=30, temperature=0
    )
    return answer.choices[0].message.content or ""


def test_help_teaches_each_command() -> None:
    result = run_cli("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert command in result.stdout
        assert run_cli(command, "--help").returncode == 0
    assert "configs/tp2-dp2.toml" in run_cli("up", "--help").stdout


def test_run_streams_the_answer_and_tells_what_ran_where(server: Server) -> None:
    result = server.run_cli("run", QUESTION, "--max-tokens", "30", "--stats")
    assert result.returncode == 0, result.stderr
    assert result.stdout == answer_to(server, [{"role": "user", "content": QUESTION}]) + "\n"
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 3, lines
    assert "4 worker processes: 2 tensor-parallel ranks x 2 pipeline stages x 1 replica" in lines[0]
    assert "stage 0 layers 0-" in lines[1] and "stage 1 layers" in lines[1]
    assert "tokens/s" in lines[2]


def test_run_raw_continues_the_text_and_reads_standard_input(server: Server) -> None:
    words = ["--raw", "--max-tokens", "8", "--http", server.url]
    by_argument = server.run_cli("run", "The capital of France is", *words)
    by_input = server.run_cli("run", "-", *words, stdin="The capital of France is")
    assert by_argument.returncode == 0, by_argument.stderr
    assert "Paris" in by_argument.stdout
    assert by_input.stdout == by_argument.stdout


def test_chat_sends_the_conversation_along_until_it_is_cleared(server: Server) -> None:
    result = server.run_cli("chat", "--max-tokens", "30", stdin=f"{QUESTION}\nWhy?\n/clear\nWhy?\n/quit\nlost\n")
    assert result.returncode == 0, result.stderr
    history = [{"role": "user", "content": QUESTION}]
    first = answer_to(server, history)
    history += [{"role": "assistant", "content": first}, {"role": "user", "content": "Why?"}]
    second = answer_to(server, history)
    third = answer_to(server, [{"role": "user", "content": "Why?"}])
    assert second != third
    assert result.stdout == f"{first}\n{second}\n{third}\n"


def test_status_shows_the_grid(server: Server) -> None:
    text = server.run_cli("status")
    assert text.returncode == 0, text.stderr
    assert "replica 0" in text.stdout and "stage 1" in text.stdout and "queue" in text.stdout
    status = json.loads(server.run_cli("status", "--json").stdout)
    (replica,) = status["replicas"]
    assert replica["state"] == "ready"
    assert set(replica["kv_blocks"]) >= {"total", "used", "cached"}
    assert {(rank["pp_stage"], rank["tp_rank"]) for rank in replica["ranks"]} == {
        (stage, rank) for stage in range(2) for rank in range(2)
    }
    layers = sorted(tuple(rank["layers"]) for rank in replica["ranks"])
    assert layers[0] == layers[1] and layers[2] == layers[3]
    assert layers[0][0] == 0 and layers[0][1] == layers[2][0] and layers[3][1] == 30
    assert {rank["pid"] for rank in replica["ranks"]} <= {process.pid for process in server.processes()}
    assert set(status["queue"]) >= {"requests", "tokens", "buckets"}


def test_tokenize_gives_the_same_here_and_at_the_router(server: Server) -> None:
    text = "Hello, wörld! 12"
    here = server.run_cli("tokenize", text, "--model", str(MODEL))
    there = server.run_cli("tokenize", text)
    assert here.returncode == 0, here.stderr
    assert there.returncode == 0, there.stderr
    ids = [line.split("\t")[0] for line in here.stdout.splitlines()]
    assert ids == [line.split("\t")[0] for line in there.stdout.splitlines()]
    assert len(ids) > 4
    answer = json.loads(server.run_cli("tokenize", text, "--json").stdout)
    assert [str(token) for token in answer["tokens"]] == ids


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "configs/none.toml"], "configs/none.toml"),
        (["up", "--tp", "none"], '"tp"'),
        (["up", "--set", "limit.x=1"], "unknown key"),
        (["up", "--model", "/nowhere.gguf"], "/nowhere.gguf"),
        (["up", "--device", "gpu"], '"cpu" or "sim"'),
        (["run"], "PROMPT"),
        (["nonsense"], "nonsense"),
        (["status", "--http", "http://127.0.0.1:1"], "127.0.0.1:1"),
        (["status", "--http", "ftp://x"], "ftp://x"),
        (["tokenize", "x", "--model", "README.md"], "README.md"),
    ],
)
def test_a_mistake_is_answered_with_one_clear_line(arguments: list[str], message: str) -> None:
    result = run_cli(*arguments)
    assert result.returncode in {1, 2}
    assert message in result.stderr
    assert "terminate" not in result.stderr


def test_without_a_router_the_commands_say_how_to_start_one(tmp_path: Path) -> None:
    result = run_cli("status", env={"XDG_RUNTIME_DIR": str(tmp_path)})
    assert result.returncode == 1
    assert "brigade up" in result.stderr


@pytest.mark.parametrize("grid", [["--tp", "10"], ["--pp", "31"]], ids=["tp 10", "pp 31"])
def test_a_grid_that_the_model_does_not_allow_is_refused_with_what_fits(
    start_server: StartServer, grid: list[str]
) -> None:
    server = start_server(*grid, wait=False)
    assert server.process.wait(timeout=20) == 1
    limit = {"--tp": "9", "--pp": "30"}[grid[0]]
    assert f"{grid[0][2:]} {grid[1]}" in server.log.read_text().replace("_size", "")
    assert limit in server.log.read_text()


def test_keys_are_written_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "keys"
    assert run_cli("keys", str(directory)).returncode == 0
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert files
    for name, content in files.items():
        if b"secret" in content:
            assert (directory / name).stat().st_mode & 0o077 == 0
    run_cli("keys", str(directory))
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == files
