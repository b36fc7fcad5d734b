# SPDX-License-Identifier: Apache-2.0
"""What an operator sees: /metrics through a real Prometheus, the board's queries, the access log."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from conftest import StartServer
from support import ROOT, Server, wait_until

CONFIGS = ROOT / "configs"
TOOLS = ROOT / ".tools" / "prometheus" / "usr" / "bin"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
# What is not there when all goes well.
MAY_BE_EMPTY = ("> 0",)


def tool(name: str) -> str:
    path = shutil.which(name, path=f"{TOOLS}:{os.environ['PATH']}")
    assert path, f"{name} is missing: tools/setup puts it in place"
    return path


def check(*arguments: str, stdin: str = "") -> None:
    done = subprocess.run(
        [tool("promtool"), *arguments], input=stdin, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_configuration_are_what_prometheus_takes() -> None:
    check("check", "config", "configs/prometheus/prometheus.yml")
    check("check", "rules", "configs/prometheus/rules.yml")
    guide = (ROOT / "docs" / "operate.md").read_text()
    for line in (CONFIGS / "prometheus" / "rules.yml").read_text().splitlines():
        if "alert:" in line:
            assert (
                f"**{line.split()[-1]}**" in guide
            ), f"docs/operate.md does not tell of {line.split()[-1]}"


class Prometheus:
    """A Prometheus that scrapes one server, in a folder of its own."""

    def __init__(self, folder: Path, target: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        shutil.copy(CONFIGS / "prometheus" / "rules.yml", folder)
        config = (CONFIGS / "prometheus" / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:8002", target).replace(
            "_interval: 15s", "_interval: 500ms"
        )
        (folder / "prometheus.yml").write_text(config)
        with (folder / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(
                [tool("prometheus"), f"--config.file={folder}/prometheus.yml"]
                + [
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
                cwd=folder,
            )

    def ask(self, path: str, **parameters: str) -> Any:
        answer = httpx.get(
            f"http://127.0.0.1:{self.port}/api/v1/{path}", params=parameters, timeout=10
        )
        assert answer.status_code == 200, (parameters, answer.text)
        return answer.json()["data"]

    def query(self, expression: str) -> list[Any]:
        return self.ask("query", query=expression)["result"]

    def scrapes(self) -> int:
        try:
            counted = self.query('count_over_time(up{job="brigade"}[1m])')
        except httpx.TransportError:
            return 0
        return int(counted[0]["value"][1]) if counted else 0


@pytest.fixture()
def watched(start_server: StartServer, tmp_path: Path) -> Iterator[tuple[Server, str, Prometheus]]:
    server = start_server(
        *("--device", "sim", "--tp", "1", "--pp", "2", "--set", "api.vllm_metrics=true"),
        *("--set", "limits.max_kv_blocks=64"),
    )
    admin = server.url.removeprefix("http://")
    prometheus = Prometheus(tmp_path, admin)
    try:
        yield server, admin, prometheus
    finally:
        prometheus.process.send_signal(signal.SIGTERM)
        prometheus.process.wait(timeout=20)


def board_queries() -> list[str]:
    board = json.loads((CONFIGS / "grafana" / "brigade.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]


def test_a_real_prometheus_reads_the_metrics_and_the_board_has_an_answer_to_each_query(
    watched: tuple[Server, str, Prometheus],
) -> None:
    server, _, prometheus = watched
    client = server.client()
    model = server.model()

    def work() -> None:
        client.completions.create(model=model, prompt="Hello there", max_tokens=20)
        with pytest.raises(openai.NotFoundError):
            client.completions.create(model="none", prompt="Hello", max_tokens=1)

    def has_scraped(times: int) -> bool:
        work()
        return prometheus.scrapes() >= times

    wait_until(lambda: has_scraped(6), 60, "six scrapes")
    empty = []
    queries = board_queries()
    assert len(queries) > 30
    for written in queries:
        expression = written.replace("$model", ".*").replace("$__rate_interval", "10s")
        if not prometheus.query(expression) and not any(words in written for words in MAY_BE_EMPTY):
            empty.append(expression)
    assert not empty, empty
    rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
    assert len(rules) > 10
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []

    # The sums are what was asked for.
    finished = server.status()["requests"]["completed"]
    wait_until(
        lambda: value(prometheus, 'sum(brigade_requests_finished_total{reason=~"stop|length"})')
        == finished,
        10,
        f"{finished} requests",
    )
    tokens = server.status()["generated_tokens"]
    assert value(prometheus, "sum(brigade_generation_tokens_total)") == tokens
    assert value(prometheus, "sum(vllm:generation_tokens_total)") == tokens
    assert value(prometheus, "sum(brigade_time_to_first_token_seconds_count)") == finished
    assert (
        value(prometheus, 'sum(brigade_http_requests_total{path="/v1/completions",status="200"})')
        == finished
    )
    assert value(prometheus, 'sum(brigade_kv_blocks{kind="total"})') == 64


def value(prometheus: Prometheus, expression: str) -> float:
    result = prometheus.query(expression)
    return float(result[0]["value"][1]) if result else 0


def test_the_text_is_what_prometheus_calls_clean(sim_server: Server) -> None:
    answer = httpx.get(f"{sim_server.url}/metrics", timeout=10)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    check("check", "metrics", stdin=answer.text)
    head = httpx.head(f"{sim_server.url}/metrics", timeout=10)
    assert head.status_code == 200 and not head.content


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_access_log_tells_of_each_request_and_not_what_it_said(
    start_server: StartServer, tmp_path: Path
) -> None:
    log = tmp_path / "access.jsonl"
    server = start_server(
        "--device", "sim", "--tp", "1", "--pp", "1", "--set", f"api.access_log={log}"
    )
    model = server.model()
    server.client().completions.create(
        model=model,
        prompt="a secret prompt",
        max_tokens=5,
        extra_headers={"X-Request-Id": "mine-1", "traceparent": TRACE},
        extra_body={"ignore_eos": True},
    )
    body = {"model": model, "prompt": "x", "max_tokens": 4000, "stream": True, "ignore_eos": True}
    with httpx.stream("POST", f"{server.url}/v1/completions", json=body, timeout=10) as stream:
        next(stream.iter_lines())

    def line(**wanted: object) -> dict[str, Any] | None:
        found = [entry for entry in lines_of(log) if wanted.items() <= entry.items()]
        return found[0] if found else None

    whole = wait_until(lambda: line(id="mine-1"), 10, "the first line")
    assert whole["trace_id"] == TRACE.split("-")[1]
    assert whole["status"] == 200 and whole["model"] == model and whole["finish_reason"] == "length"
    assert whole["completion_tokens"] == 5 and whole["prompt_tokens"] > 0
    assert 0 < whole["first_token_ms"] <= whole["total_ms"]
    cut = wait_until(lambda: line(finish_reason="client_gone"), 10, "the line of the one that went")
    assert cut["completion_tokens"] < 4000
    assert "secret" not in log.read_text()

    # Moved away and asked to: it goes on in a new file.
    log.rename(tmp_path / "old.jsonl")
    (router,) = server.named("brigade-router")
    router.kill(signal.SIGHUP)
    wait_until(lambda: "read the files" in server.log.read_text(), 10, "SIGHUP is taken")
    server.get("/v1/models")
    wait_until(lambda: line(path="/v1/models"), 10, "a line in the new file")


def test_a_failed_request_is_in_the_log_by_its_clients_name(start_server: StartServer) -> None:
    server = start_server(
        "--device", "sim", "--tp", "1", "--pp", "1", "--set", "timeouts.request_ms=300"
    )
    with pytest.raises(openai.APIStatusError):
        server.client().completions.create(
            model=server.model(),
            prompt="x",
            max_tokens=4000,
            extra_headers={"X-Request-Id": "mine-2", "traceparent": TRACE},
            extra_body={"ignore_eos": True},
        )
    wait_until(
        lambda: f"(mine-2, {TRACE}) ended: error" in server.log.read_text(), 10, "its end is told"
    )
