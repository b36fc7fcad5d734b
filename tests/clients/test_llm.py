# SPDX-License-Identifier: Apache-2.0
"""The command `llm`, with this server among its OpenAI-compatible models."""

from __future__ import annotations

import json

from support import Server

from .conftest import QUESTION, Client, InstallClient

GREEDY = ["-o", "temperature", "0", "-o", "max_tokens"]


def add_models(client: Client, server: Server) -> None:
    models = [
        {"model_id": "b", "model_name": server.model(), "api_base": f"{server.url}/v1"},
        {
            "model_id": "c",
            "model_name": server.model(),
            "api_base": f"{server.url}/v1",
            "completion": True,
        },
        {"model_id": "none", "model_name": "none-such", "api_base": f"{server.url}/v1"},
    ]
    # YAML takes JSON as it is.
    (client.folder / "extra-openai-models.yaml").write_text(json.dumps(models), "utf-8")


def test_llm_answers_streams_and_goes_on(
    server: Server, truth: dict[str, object], install_client: InstallClient
) -> None:
    client = install_client("llm")
    add_models(client, server)
    env = {"LLM_USER_PATH": str(client.folder)}
    for streaming in ([], ["--no-stream"]):
        out = client.run("llm", "-m", "b", QUESTION, *GREEDY, "24", *streaming, **env)
        assert out.rstrip("\n") == str(truth["text"]).rstrip("\n")
        (logged,) = json.loads(client.run("llm", "logs", "-n", "1", "--json", **env))
        assert [logged["input_tokens"], logged["output_tokens"]] == truth["usage"]
    assert client.run(
        "llm", "-m", "b", "-c", "And of Italy?", "-s", "Be brief.", *GREEDY, "8", **env
    ).strip()
    out = client.run("llm", "-m", "c", "The capital of France is", *GREEDY, "8", **env)
    assert out.strip() == str(truth["completion"]).strip()


def test_llm_shows_the_servers_reason(server: Server, install_client: InstallClient) -> None:
    client = install_client("llm")
    add_models(client, server)
    done = client.run_any("llm", "-m", "none", "x", LLM_USER_PATH=str(client.folder))
    assert done.returncode != 0
    assert 'The model "none-such" does not exist.' in done.stderr
