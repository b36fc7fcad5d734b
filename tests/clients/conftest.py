# SPDX-License-Identifier: Apache-2.0
"""Fixtures: one server for all clients, the clients' environments, and the tokenizer that some of them want."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import MODEL, ROOT, Server

from .tokenizer_folder import write_tokenizer_folder

INSTALL = ROOT / "tests" / "clients" / "install"
PROGRAMS = ROOT / "tests" / "clients" / "programs"
INSTALL_SECONDS = 1800
RUN_SECONDS = 240
QUESTION = "What is the capital of France?"


class Client:
    """A client's own environment, and a folder to run it in where it can write what it likes."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.bin = environment / "bin"
        self.folder = folder

    def run(self, program: str, *arguments: str, cwd: Path | None = None, **env: str) -> str:
        """What a program of the environment prints; it must succeed."""
        done = self.run_any(program, *arguments, cwd=cwd, **env)
        assert done.returncode == 0, f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run_any(
        self, program: str, *arguments: str, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """With its home in the folder, and there unless told otherwise."""
        home = {"HOME": str(self.folder), "HF_HOME": str(self.folder / "hf")}
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=cwd or self.folder,
            env={**os.environ, **home, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )


InstallClient = Callable[[str], Client]


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One stage of two ranks on the real model."""
    with Server(tmp_path_factory.mktemp("server"), "--tp", "2") as running:
        yield running
        assert running.used_blocks() == 0, "a client has left KV blocks in use"


@pytest.fixture()
def install_client(tmp_path: Path) -> InstallClient:
    """Installs a client by its name, unless it is there."""

    def install(name: str) -> Client:
        done = subprocess.run(
            [INSTALL, name], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
        return Client(Path(done.stdout.strip()), tmp_path)

    return install


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's tokenizer in Hugging Face's form."""
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer_folder(MODEL, folder)
    return folder


@pytest.fixture(scope="package")
def truth(server: Server) -> dict[str, object]:
    """What plain HTTP says to the question that clients ask, and to a completion."""
    common = {"model": server.model(), "temperature": 0}
    messages = [{"role": "user", "content": QUESTION}]
    chat = server.post(
        "/v1/chat/completions", {**common, "messages": messages, "max_tokens": 24}
    ).json()
    prompt = {"prompt": "The capital of France is", "max_tokens": 8}
    completion = server.post("/v1/completions", {**common, **prompt}).json()
    return {
        "text": chat["choices"][0]["message"]["content"],
        "finish_reason": chat["choices"][0]["finish_reason"],
        "usage": [chat["usage"]["prompt_tokens"], chat["usage"]["completion_tokens"]],
        "completion": completion["choices"][0]["text"],
    }
