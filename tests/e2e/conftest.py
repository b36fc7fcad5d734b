# SPDX-License-Identifier: Apache-2.0
"""Fixtures: servers of real processes, each with a runtime directory of its own, checked to leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import Server, shared_memory_names

StartServer = Callable[..., Server]


@pytest.fixture()
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts servers that are stopped, and checked, when the test ends."""
    servers: list[Server] = []
    shared_before = shared_memory_names()

    def start(*arguments: str, **options: object) -> Server:
        server = Server(tmp_path / f"server-{len(servers)}", *arguments, **options)
        servers.append(server)
        return server

    yield start
    try:
        for server in servers:
            server.stop()
    finally:
        for server in servers:
            server.kill_all()
    for server in servers:
        server.check_nothing_left()
    assert shared_memory_names() <= shared_before


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server on the real model, two stages of two ranks, for the tests that leave it as it was."""
    with Server(tmp_path_factory.mktemp("shared-server"), "--tp", "2", "--pp", "2") as running:
        yield running
        assert running.used_blocks() == 0, "a test has left KV blocks in use"


@pytest.fixture(scope="session")
def sim_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server with simulated workers and little KV, for the tests of everything but the arithmetic."""
    with Server(
        tmp_path_factory.mktemp("sim-server"),
        *("--device", "sim", "--tp", "1", "--pp", "2"),
        *("--set", "limits.max_kv_blocks=64"),
    ) as running:
        yield running
