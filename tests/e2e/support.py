# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: a server of real processes, and waiting with deadlines."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("BRIGADE_BIN", ROOT / "build" / "dev" / "bin"))
MODEL = ROOT / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def wait_until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true value of `condition`; an AssertionError at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def read_line(process: subprocess.Popen[bytes], seconds: float) -> str:
    """The next line that it prints; empty when its output has ended."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(seconds), f"no line within {seconds} s"
    return process.stdout.readline().decode()


def shared_memory_names() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if "brigade" in name}


class ProcessId:
    """A process told apart from a later one with the same pid by its start time."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.started = self._started()

    def _started(self) -> str | None:
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else fields[19]

    def alive(self) -> bool:
        return self.started is not None and self._started() == self.started

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.alive():
            os.kill(self.pid, number)

    def cpu_seconds(self) -> float:
        """Of all its threads together, in nanosecond steps."""
        total = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def children_of(pid: int) -> list[int]:
    children = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid and fields[0] not in "ZX":
                children.append(int(entry.name))
    return children


class Server:
    """`brigade up` with its router and workers, on free ports, in a runtime directory of its own."""

    def __init__(self, folder: Path, *arguments: str, wait: bool = True, ready_seconds: float = 60) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # Short: the path of a socket has 107 bytes at most.
        self.runtime_dir = Path(tempfile.mkdtemp(prefix="brigade-"))
        self.log = folder / "log.txt"
        self.env = {**os.environ, "XDG_RUNTIME_DIR": str(self.runtime_dir), "BRIGADE_LOG": "info"}
        self.url = ""
        self.socket = ""
        self.seen: dict[int, ProcessId] = {}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [BIN / "brigade", "up", "--http", "127.0.0.1:0", "--socket", "tcp://127.0.0.1:0", *arguments],
                cwd=ROOT,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.up = ProcessId(self.process.pid)
        if wait:
            try:
                self.wait_ready(ready_seconds)
            except BaseException:
                self.kill_all()
                raise

    def wait_ready(self, seconds: float) -> None:
        line = read_line(self.process, seconds)
        words = line.split()
        assert len(words) == 3 and words[0] == "ready", f"{line!r}; log:\n{self.log.read_text()}"
        self.url, self.socket = words[1:]
        self.processes()

    def processes(self) -> list[ProcessId]:
        """The supervisor, the router and the workers that run now."""
        for pid in [self.process.pid, *children_of(self.process.pid)]:
            if pid not in self.seen or not self.seen[pid].alive():
                self.seen[pid] = ProcessId(pid)
        return [process for process in self.seen.values() if process.alive()]

    def named(self, program: str) -> list[ProcessId]:
        return [
            process
            for process in self.processes()
            if Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0].endswith(program.encode())
        ]

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", timeout=120, max_retries=0)

    def get(self, path: str) -> Any:
        return httpx.get(self.url + path, timeout=10).raise_for_status().json()

    def post(self, path: str, body: Any, seconds: float = 60) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=seconds)

    def stream(self, path: str, body: dict[str, Any], seconds: float = 120) -> Iterator[dict[str, Any]]:
        """The chunks of a streamed answer; asserts that it ends with [DONE]."""
        with httpx.stream("POST", self.url + path, json={**body, "stream": True}, timeout=seconds) as answer:
            assert answer.status_code == 200, answer.read()
            done = False
            for line in answer.iter_lines():
                if not line:
                    continue
                assert not done, f"{line!r} after [DONE]"
                assert line.startswith("data: "), line
                done = line == "data: [DONE]"
                if not done:
                    yield json.loads(line[len("data: ") :])
            assert done, "the stream has no [DONE]"

    def status(self) -> dict[str, Any]:
        return self.get("/status")

    def model(self) -> str:
        return self.get("/v1/models")["data"][0]["id"]

    def used_blocks(self) -> int:
        """KV blocks of live requests, once they have had a moment to come back."""
        deadline = time.monotonic() + 5
        while True:
            used = sum(replica["kv_blocks"]["used"] for replica in self.status()["replicas"])
            if used == 0 or time.monotonic() > deadline:
                return used
            time.sleep(0.05)

    def run_cli(self, *arguments: str, stdin: str = "", seconds: float = 60) -> subprocess.CompletedProcess[str]:
        return run_cli(*arguments, stdin=stdin, seconds=seconds, env=self.env)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 20) -> int:
        """Signals the supervisor and waits for its end; its exit code."""
        if self.process.poll() is None:
            self.processes()
            self.process.send_signal(number)
        return self.process.wait(timeout=seconds)

    def kill_all(self) -> None:
        for process in self.processes():
            process.kill()
        self.process.kill()
        self.process.wait(timeout=10)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Stops in good order unless something was raised, leaves no process, and checks that nothing else is left."""
        try:
            if kind is None:
                self.stop()
        finally:
            self.kill_all()
        if kind is None:
            self.check_nothing_left()

    def check_nothing_left(self) -> None:
        if not self.runtime_dir.exists():
            return  # checked before
        left = [process.pid for process in self.seen.values() if process.alive()]
        assert not left, f"processes {left} are still there; log:\n{self.log.read_text()}"
        files = [str(path) for path in self.runtime_dir.rglob("*") if not path.is_dir()]
        shutil.rmtree(self.runtime_dir)
        assert not files, f"left behind: {files}"


def run_cli(
    *arguments: str, stdin: str = "", seconds: float = 60, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """One `brigade` command, run to its end."""
    return subprocess.run(
        [BIN / "brigade", *arguments],
        cwd=ROOT,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
