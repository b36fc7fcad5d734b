# SPDX-License-Identifier: Apache-2.0
"""`brigade perplexity` on grids, and how it ends."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import BIN, MODEL, ROOT, children_of, run_cli, wait_until

# llama.cpp of llama-cpp-python 0.3.36 on the same weights in F32, with windows of 64 tokens.
LLAMA_CPP_MEAN_NLL = 3.23196


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text((ROOT / "LICENSE").read_text()[:2000])
    return path


def measure(text: Path, *arguments: str) -> dict[str, float]:
    result = run_cli("perplexity", str(MODEL), str(text), "--context", "64", "--json", *arguments, seconds=120)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_text_is_as_likely_as_to_llama_cpp_and_the_same_on_every_grid(text: Path) -> None:
    one = measure(text, "--activations", "float")
    assert one["windows"] == one["text_tokens"] // 64
    assert one["scored_tokens"] == 31 * one["windows"]
    assert one["mean_nll"] == pytest.approx(LLAMA_CPP_MEAN_NLL, abs=1e-3)
    assert one["perplexity"] == pytest.approx(math.exp(one["mean_nll"]))
    assert 0 < one["mean_nll_standard_error"] < one["mean_nll"]
    grid = measure(text, "--activations", "float", "--tp", "2", "--pp", "2")
    assert grid["mean_nll"] == pytest.approx(one["mean_nll"], abs=1e-4)
    int8 = measure(text, "--tp", "2")
    assert int8["mean_nll"] == pytest.approx(one["mean_nll"], abs=0.05)


def test_a_stride_scores_its_tokens_with_more_before_them(text: Path) -> None:
    strided = measure(text, "--stride", "16", "--threads", "1")
    assert strided["windows"] == (strided["text_tokens"] - 64) // 16 + 1
    assert strided["scored_tokens"] == 16 * strided["windows"]


def test_what_cannot_be_scored_is_told_in_one_line(tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("a")
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"caf\xe9")
    for arguments, message in [
        ([str(short)], "at least 3 are needed"),
        ([str(broken)], "not valid UTF-8"),
        ([str(tmp_path / "none.txt")], "cannot read the text"),
        ([str(short), "--context", "100000"], "above the model's 8192 tokens"),
        ([str(short), "--context", "64", "--stride", "65"], "--stride 65 is above --context 64"),
        ([str(short), "--tp", "10"], "10"),
    ]:
        result = run_cli("perplexity", str(MODEL), *arguments)
        assert result.returncode == 1
        (line,) = result.stderr.splitlines()
        assert message in line


def test_an_interrupt_ends_it_and_its_server(tmp_path: Path) -> None:
    long = tmp_path / "long.txt"
    long.write_text((ROOT / "LICENSE").read_text() * 40)
    process = subprocess.Popen(
        [BIN / "brigade", "perplexity", str(MODEL), str(long)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    children = wait_until(
        lambda: len(found := children_of(process.pid)) == 2 and found, seconds=30, what="router and worker"
    )
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert out == b"" and b"stopped by a signal" in err
    assert all(not Path(f"/proc/{pid}").exists() for pid in children)
