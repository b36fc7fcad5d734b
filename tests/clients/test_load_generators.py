# SPDX-License-Identifier: Apache-2.0
"""guidellm, aiperf and wrk: a few requests each, and what they report of them. No speed is judged here."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from support import ROOT, Server

from .conftest import InstallClient

OUTPUT_TOKENS = 5
NUM_REQUESTS = 4


@pytest.mark.clients
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_guidellm_counts_the_tokens_that_were_sent(
    server: Server, tokenizer: Path, install_client: InstallClient, path: str
) -> None:
    client = install_client("guidellm")
    client.run(
        *(
            "guidellm",
            "run",
            "--backend",
            f"kind=openai_http,target={server.url},request_format={path}",
        ),
        *(
            "--profile",
            "kind=concurrent,streams=2",
            "--constraint",
            f"kind=max_requests,count={NUM_REQUESTS}",
        ),
        *("--tokenizer", f"kind=huggingface_auto,model={tokenizer}", "--disable-progress"),
        *("--data", f"kind=synthetic_text,prompt_tokens=16,output_tokens={OUTPUT_TOKENS}"),
        HF_HUB_OFFLINE="1",
    )
    report = json.loads((client.folder / "benchmarks.json").read_text("utf-8"))
    requests = report["benchmarks"][0]["requests"]
    assert len(requests["successful"]) == NUM_REQUESTS
    assert not requests["errored"] and not requests["incomplete"]
    for request in requests["successful"]:
        assert request["output_tokens"] == OUTPUT_TOKENS
        assert request["time_to_first_token_ms"] > 0


@pytest.mark.clients
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_aiperf_counts_the_tokens_that_were_sent(
    server: Server, tokenizer: Path, install_client: InstallClient, endpoint: str
) -> None:
    client = install_client("aiperf")
    (client.folder / "tokenizer").symlink_to(tokenizer)
    client.run(
        *(
            "aiperf",
            "profile",
            "-m",
            server.model(),
            "--url",
            server.url,
            "--endpoint-type",
            endpoint,
        ),
        *("--streaming", "--tokenizer", "tokenizer", "--request-count", str(NUM_REQUESTS)),
        *("--concurrency", "2", "--synthetic-input-tokens-mean", "20", "--ui", "none"),
        *("--output-tokens-mean", str(OUTPUT_TOKENS), "--extra-inputs", "ignore_eos:true"),
    )
    (path,) = client.folder.rglob("profile_export_aiperf.json")
    report = json.loads(path.read_text("utf-8"))
    assert report["request_count"]["avg"] == NUM_REQUESTS
    assert not report.get("error_summary")
    assert report["usage_completion_tokens"]["avg"] == OUTPUT_TOKENS
    assert report["time_to_first_token"]["avg"] > 0


def test_wrk_gets_nothing_but_answers(server: Server, tmp_path: Path) -> None:
    body = json.dumps(
        {
            "model": server.model(),
            "prompt": "One, two,",
            "max_tokens": 2,
            "temperature": 0,
            "stream": True,
        }
    )
    script = tmp_path / "post.lua"
    script.write_text(
        f"wrk.method = 'POST'\nwrk.body = [[{body}]]\nwrk.headers['Content-Type'] = 'application/json'\n"
    )
    for path, options in [("/health", []), ("/v1/completions", ["-s", str(script)])]:
        done = subprocess.run(
            ["wrk", "-t1", "-c8", "-d1s", *options, server.url + path],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        counted = re.search(r"(\d+) requests in", done.stdout)
        assert counted is not None and int(counted.group(1)) >= 8, done.stdout
        assert "Non-2xx" not in done.stdout and "Socket errors" not in done.stdout, done.stdout
