#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brigade side by side with llama-cpp-python: one file, one thread count, one machine, in one run.

    tests/bench/compare_llama_cpp.py [--venv DIR] [--rounds 3]

Prints a table with ratios: decode, prefill and scoring by one thread, two tensor-parallel one-thread processes against
one, eight streams on two one-thread pipeline stages against one one-thread process; and what part of the machine's own
limit each figure is. The rivals take turns within each round, and medians are compared, so that a machine that slows
down meanwhile slows down both.

Brigade is measured from outside, through its HTTP API, as a difference of two requests: what does not depend on the
number of tokens (HTTP, the router, the client) cancels out, as it is absent from llama.cpp's loop.

The peer takes minutes to install, so it has an environment of its own, made on the first run (--venv: another).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

PEER = "llama-cpp-python==0.3.36"
DECODE_TOKENS = 128
CONTEXT_TOKENS = 64
PREFILL_TOKENS = 512
NUM_STREAMS = 8

# Run by the peer's own interpreter: reads commands, answers seconds. The C API, without the Python sampler.
PEER_PROGRAM = r"""
import json, sys, time
import llama_cpp as lc

path, context = sys.argv[1], int(sys.argv[2])
lc.llama_backend_init()
quiet = lc.llama_log_callback(lambda *a: None)  # kept: the library calls it later
lc.llama_log_set(quiet, None)
model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
params = lc.llama_context_default_params()
params.n_ctx, params.n_batch, params.n_ubatch = context, 512, 512
params.n_threads = params.n_threads_batch = 1
ctx = lc.llama_init_from_model(model, params)
vocab = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))

def decode(tokens):
    array = (lc.llama_token * len(tokens))(*tokens)
    assert lc.llama_decode(ctx, lc.llama_batch_get_one(array, len(tokens))) == 0
    lc.llama_synchronize(ctx)

def decode_all(tokens):
    # What scoring takes there: logits of every token in memory. Making log-probabilities of them is not counted.
    batch = lc.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, True
    assert lc.llama_decode(ctx, batch) == 0
    lc.llama_synchronize(ctx)
    lc.llama_batch_free(batch)

def argmax():
    logits = lc.llama_get_logits_ith(ctx, -1)
    import numpy
    return int(numpy.ctypeslib.as_array(logits, shape=(vocab,)).argmax())

for line in sys.stdin:
    command = json.loads(line)
    lc.llama_memory_clear(lc.llama_get_memory(ctx), True)
    start = time.perf_counter()
    (decode_all if command["all_logits"] else decode)(command["prompt"])
    prefill = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(command["num_tokens"]):
        decode([argmax()])
    print(json.dumps({"prefill": prefill, "decode": time.perf_counter() - start}), flush=True)
"""


class Peer:
    """llama.cpp in a process of its own, with one thread."""

    def __init__(self, python: Path, model: Path) -> None:
        self.process = subprocess.Popen(
            [python, "-c", PEER_PROGRAM, str(model), "1024"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, prompt: list[int], num_tokens: int, all_logits: bool = False) -> dict[str, float]:
        assert self.process.stdin is not None and self.process.stdout is not None
        command = {"prompt": prompt, "num_tokens": num_tokens, "all_logits": all_logits}
        print(json.dumps(command), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("llama.cpp has ended; its messages are above")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def random_tokens(count: int) -> list[int]:
    """A prompt that shares no prefix with another."""
    return [random.randrange(1000, 40_000) for _ in range(count)]


class Brigade:
    """A server with one thread a worker."""

    def __init__(self, folder: Path, tp: int, pp: int) -> None:
        from support import Server

        self.server = Server(folder, "--tp", str(tp), "--pp", str(pp), "--threads", "1")
        self.model = self.server.model()

    def seconds(self, prompt: list[int], max_tokens: int, **more: object) -> float:
        body = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            **more,
        }
        start = time.perf_counter()
        answer = self.server.post("/v1/completions", body, seconds=300)
        elapsed = time.perf_counter() - start
        if answer.status_code != 200 or answer.json()["usage"]["completion_tokens"] != max_tokens:
            raise SystemExit(f"unexpected answer: {answer.text}")
        return elapsed

    def decode_rate(self) -> float:
        """Tokens a second of one stream."""
        few = self.seconds(random_tokens(CONTEXT_TOKENS), 1)
        many = self.seconds(random_tokens(CONTEXT_TOKENS), 1 + DECODE_TOKENS)
        return DECODE_TOKENS / (many - few)

    def prefill_rate(self) -> float:
        """Prompt tokens a second."""
        few = self.seconds(random_tokens(1), 1)
        many = self.seconds(random_tokens(1 + PREFILL_TOKENS), 1)
        return PREFILL_TOKENS / (many - few)

    def score_rate(self) -> float:
        """Prompt tokens a second, each with its log-probability."""
        few, many = (self.seconds(random_tokens(n), 0, echo=True, logprobs=1) for n in (2, 2 + PREFILL_TOKENS))
        return PREFILL_TOKENS / (many - few)

    def streams_rate(self) -> float:
        """Tokens a second of several streams together, prompts included in the time."""
        start = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(NUM_STREAMS) as pool:
            jobs = [pool.submit(self.seconds, random_tokens(CONTEXT_TOKENS), DECODE_TOKENS) for _ in range(NUM_STREAMS)]
            for job in jobs:
                job.result()
        return NUM_STREAMS * DECODE_TOKENS / (time.perf_counter() - start)

    def close(self) -> None:
        self.server.stop()


def peer_python(venv: Path) -> Path:
    python = venv / "bin" / "python"
    if not python.exists():
        print(f"making {venv} with {PEER}: this takes minutes", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PEER], check=True)
    return python


def machine_limits(preset: str) -> dict[str, list[float]]:
    subprocess.run(
        [ROOT / "tools" / "build", preset, "machine_limits", "brigade", "brigade-router", "brigade-worker"],
        check=True,
        stdout=sys.stderr,
    )
    (program,) = (ROOT / "build" / preset).rglob("machine_limits")
    return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def measure(rounds: int, python: Path, model: Path, folder: Path) -> dict[str, float]:
    """Medians by name; the servers run one at a time, so that each has the machine to itself."""
    values: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        values.setdefault(name, []).append(value)
        print(f"  {name}: {value:.1f}", file=sys.stderr)

    def with_server(name: str, tp: int, pp: int, use: Callable[[Brigade], None]) -> None:
        brigade = Brigade(folder / f"{name}-{len(values)}-{time.monotonic_ns()}", tp, pp)
        try:
            brigade.seconds(random_tokens(PREFILL_TOKENS), 4)  # all pages touched
            use(brigade)
        finally:
            brigade.close()

    def one(brigade: Brigade) -> None:
        note("decode", brigade.decode_rate())
        note("prefill", brigade.prefill_rate())
        note("score", brigade.score_rate())
        note("streams", brigade.streams_rate())

    for number in range(rounds):
        print(f"round {number + 1} of {rounds} (tokens/s)", file=sys.stderr)
        peer = Peer(python, model)
        peer.measure(random_tokens(PREFILL_TOKENS), 4)
        seconds = peer.measure(random_tokens(CONTEXT_TOKENS), DECODE_TOKENS)
        note("peer decode", DECODE_TOKENS / seconds["decode"])
        seconds = peer.measure(random_tokens(PREFILL_TOKENS), 0)
        note("peer prefill", PREFILL_TOKENS / seconds["prefill"])
        seconds = peer.measure(random_tokens(PREFILL_TOKENS), 0, all_logits=True)
        note("peer score", PREFILL_TOKENS / seconds["prefill"])
        peer.close()
        with_server("one", 1, 1, one)
        with_server("tp2", 2, 1, lambda b: note("tp2 decode", b.decode_rate()))
        with_server("pp2", 1, 2, lambda b: note("pp2 streams", b.streams_rate()))
    return {name: statistics.median(of) for name, of in values.items()}


def print_table(median: dict[str, float], limits: dict[str, list[float]], model: Path) -> None:
    # A decode step reads each weight once; a prefill token multiplies and adds each weight once.
    bytes_a_token = model.stat().st_size
    operations_a_token = 2 * 106e6  # weights in the layers of SmolLM2-135M; the head counts for the last row alone
    rows = [
        ("decode, 1 thread", "decode", "llama.cpp", "peer decode", 1.3),
        ("prefill, 1 thread", "prefill", "llama.cpp", "peer prefill", 1.3),
        ("scoring, 1 thread", "score", "llama.cpp, all logits", "peer score", 1.3),
        ("decode, TP2 of 1-thread ranks", "tp2 decode", "Brigade, 1 thread", "decode", 1.6),
        (f"{NUM_STREAMS} streams, PP2 of 1-thread stages", "pp2 streams", "Brigade, 1 thread", "streams", 1.6),
    ]
    print(f"{'':36}{'tokens/s':>10}  {'against':22}{'tokens/s':>10}{'ratio':>8}{'aim':>6}")
    for title, ours, rival, theirs, aim in rows:
        print(
            f"{title:36}{median[ours]:10.1f}  {rival:22}{median[theirs]:10.1f}"
            f"{median[ours] / median[theirs]:8.2f}{aim:6.1f}"
        )
    read, dot = limits["read_gb_s"], limits["int8_gop_s"]
    print(f"\nmachine: reads {read[0]:.1f} GB/s by one thread, {read[1]:.1f} by two;", end=" ")
    print(f"int8 {dot[0]:.0f} Gop/s by one thread, {dot[1]:.0f} by two")
    print(f"decode, 1 thread: {median['decode'] * bytes_a_token / 1e9 / read[0]:.0%} of the reads")
    print(f"decode, TP2: {median['tp2 decode'] * bytes_a_token / 1e9 / read[1]:.0%} of the reads of two threads")
    print(f"prefill, 1 thread: {median['prefill'] * operations_a_token / 1e9 / dot[0]:.0%} of the int8 operations")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=ROOT / "build" / "llama-venv", help="where the peer is installed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--preset", default="release")
    options = parser.parse_args()
    os.environ["BRIGADE_BIN"] = str(ROOT / "build" / options.preset / "bin")
    from support import MODEL

    python = peer_python(options.venv)
    limits = machine_limits(options.preset)
    with tempfile.TemporaryDirectory(prefix="brigade-bench-") as folder:
        median = measure(options.rounds, python, MODEL, Path(folder))
    print_table(median, limits, MODEL)


if __name__ == "__main__":
    main()
