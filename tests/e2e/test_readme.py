# SPDX-License-Identifier: Apache-2.0
"""The README's curl and Python examples do what they say."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support import ROOT, Server

README = (ROOT / "README.md").read_text("utf-8")
ADDRESS = "http://127.0.0.1:8000"


def blocks(language: str, word: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    return [block for block in found if word in block]


CURL = blocks("sh", "curl ")
PYTHON = blocks("python", "openai")


def test_the_readme_has_examples() -> None:
    assert len(CURL) >= 3
    assert len(PYTHON) >= 1


@pytest.mark.parametrize("block", CURL, ids=range(len(CURL)))
def test_a_curl_example_succeeds(server: Server, block: str) -> None:
    assert ADDRESS in block
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.replace(ADDRESS, server.url)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert '"error"' not in result.stdout
    if '"stream": true' in block:
        assert "data: [DONE]" in result.stdout
    else:
        assert result.stdout.strip().startswith(("{", "["))


@pytest.mark.parametrize("block", PYTHON, ids=range(len(PYTHON)))
def test_a_python_example_succeeds(server: Server, block: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", block.replace(ADDRESS, server.url)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
