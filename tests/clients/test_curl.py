# SPDX-License-Identifier: Apache-2.0
"""curl, with the options that people and scripts use."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from support import Server, wait_until

JSON = ["-H", "Content-Type: application/json"]


def curl(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["curl", "-sS", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_one_connection_serves_answers_and_streams(server: Server) -> None:
    url = f"{server.url}/v1/completions"
    body = {"model": server.model(), "prompt": "One, two,", "max_tokens": 3, "temperature": 0}
    streamed = json.dumps({**body, "stream": True})
    done = curl(
        *("-v", *JSON, "-d", json.dumps(body), url, "--next", "-sSNv", *JSON, "-d", streamed, url),
        *("--next", "-sSv", f"{server.url}/v1/models", "--next", "-sSvI", f"{server.url}/metrics"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Re-using existing connection") == 3, done.stderr
    assert done.stderr.count("< HTTP/1.1 200 OK") == 4
    whole, _, rest = done.stdout.partition("data: ")
    text = json.loads(whole)["choices"][0]["text"]
    events = ("data: " + rest).partition('{"object":"list"')[0].split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == text


def test_a_large_body_waits_for_100_continue(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    text = "word " * 300_000
    path.write_text(json.dumps({"model": server.model(), "prompt": text}))
    for options in ([], ["-H", "Transfer-Encoding: chunked"]):
        url = f"{server.url}/v1/completions"
        done = curl("-v", *JSON, *options, "-H", "Expect: 100-continue", "-d", f"@{path}", url)
        assert "HTTP/1.1 100 Continue" in done.stderr, done.stderr
        assert json.loads(done.stdout)["error"]["code"] == "context_length_exceeded"


def test_what_scripts_look_at(server: Server) -> None:
    url = f"{server.url}/v1/completions"
    # The exit code, with --fail; the status, with --write-out; an id of one's own.
    assert curl("-f", *JSON, "-d", '{"model": "none"}', url).returncode == 22
    done = curl("-o", "/dev/null", "-w", "%{http_code} %{content_type}", *JSON, "-d", "{", url)
    assert done.stdout == "400 application/json"
    done = curl("-i", "-H", "X-Request-Id: mine-7", f"{server.url}/health")
    assert "x-request-id: mine-7" in done.stdout.lower()
    # A form, curl's default, may come from any web page: it is told what to send.
    done = curl("-d", '{"prompt": "x"}', url)
    assert "Content-Type must be application/json" in done.stdout
    # What it may try by itself: compression, HTTP/2 from the start.
    assert curl("--compressed", f"{server.url}/v1/models").stdout.startswith("{")
    assert curl("--http2", f"{server.url}/health").returncode == 0
    assert curl("--http2-prior-knowledge", f"{server.url}/health").returncode != 0
    assert curl("-X", "DELETE", url).stdout.startswith('{"error"')


def test_a_curl_that_gives_up_frees_its_request(server: Server) -> None:
    body = {"model": server.model(), "prompt": "Once", "max_tokens": 4000, "ignore_eos": True}
    for stream in (True, False):
        sent = json.dumps({**body, "stream": stream})
        done = curl("-N", "-m", "1", *JSON, "-d", sent, f"{server.url}/v1/completions")
        assert done.returncode == 28
        assert ("data: " in done.stdout) == stream
        wait_until(lambda: server.used_blocks() == 0, 5, "the blocks are free")
