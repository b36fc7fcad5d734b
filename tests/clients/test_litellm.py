# SPDX-License-Identifier: Apache-2.0
"""litellm, by both of its providers for servers like this one."""

from __future__ import annotations

import json

import pytest

from support import Server

from .conftest import PROGRAMS, InstallClient

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_litellm_gets_answers_streams_and_its_own_errors(
    server: Server, truth: dict[str, object], install_client: InstallClient, provider: str
) -> None:
    program = str(PROGRAMS / "litellm_calls.py")
    arguments = [program, server.url, server.model(), provider]
    out = install_client("litellm").run("python", *arguments, LITELLM_LOCAL_MODEL_COST_MAP="True")
    seen = json.loads(out.splitlines()[-1])
    assert seen["text"] == seen["streamed"] == seen["extra"] == truth["text"]
    assert seen["async"] == [truth["text"]] * 3
    assert seen["usage"] == seen["stream_usage"] == truth["usage"]
    assert seen["num_logprobs"] == truth["usage"][1]
    assert [seen["finish_reason"]] == seen["stream_reasons"] == [truth["finish_reason"]]
    assert seen["too_long"]["type"] == "ContextWindowExceededError"
    assert (
        seen["no_model"]["type"] == "NotFoundError" and "none-such" in seen["no_model"]["message"]
    )
    assert (
        seen["bad_field"]["type"] == "BadRequestError" and "top_p" in seen["bad_field"]["message"]
    )
    if provider == "openai":
        assert seen["completion"].startswith(truth["completion"])
