# SPDX-License-Identifier: Apache-2.0
"""langchain-openai: chat and completions."""

from __future__ import annotations

import json

import pytest

from support import Server

from .conftest import PROGRAMS, InstallClient

pytestmark = pytest.mark.clients


def test_langchain_invokes_streams_and_batches(
    server: Server, truth: dict[str, object], install_client: InstallClient
) -> None:
    program = str(PROGRAMS / "langchain_calls.py")
    out = install_client("langchain-openai").run("python", program, server.url, server.model())
    seen = json.loads(out.splitlines()[-1])
    assert seen["text"] == seen["streamed"] == seen["async"] == truth["text"]
    assert seen["usage"] == seen["stream_usage"] == truth["usage"]
    assert seen["finish_reason"] == seen["stream_reason"] == truth["finish_reason"]
    assert seen["batch"][:2] == [truth["text"]] * 2 and seen["batch"][2]
    assert seen["logprobs"] == truth["usage"][1]
    assert seen["completion"] == truth["completion"]
    # Refused with a reason, not answered as if nobody had asked for them.
    assert "tools is not supported yet" in seen["tools"]
    assert "response_format is not supported yet" in seen["schema"]
