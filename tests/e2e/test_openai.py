# SPDX-License-Identifier: Apache-2.0
"""The official openai client against a server on the real model."""

from __future__ import annotations

import pytest
from openai import BadRequestError, NotFoundError

from support import Server

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def test_models_are_listed(server: Server) -> None:
    models = server.client().models.list().data
    assert [model.id for model in models] == [server.model()]


def test_a_completion_is_deterministic_and_counts_its_tokens(server: Server) -> None:
    texts = set()
    for _ in range(2):
        answer = server.client().completions.create(
            model=server.model(), prompt="The capital of France is", max_tokens=12, temperature=0
        )
        assert answer.choices[0].finish_reason == "length"
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 12
        assert answer.usage.prompt_tokens == 5
        texts.add(answer.choices[0].text)
    assert len(texts) == 1
    assert "Paris" in texts.pop()


def test_a_chat_is_the_completion_of_its_rendered_template(server: Server) -> None:
    answer = server.client().chat.completions.create(
        model=server.model(), messages=QUESTION, max_tokens=30, temperature=0
    )
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason in {"stop", "length"}
    rendered = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    )
    same = server.client().completions.create(
        model=server.model(), prompt=rendered, max_tokens=30, temperature=0
    )
    assert answer.choices[0].message.content == same.choices[0].text
    assert answer.usage.prompt_tokens == same.usage.prompt_tokens


def test_a_stream_has_the_same_text_as_the_whole_answer(server: Server) -> None:
    client = server.client()
    request = {"model": server.model(), "messages": QUESTION, "max_tokens": 40, "temperature": 0}
    whole = client.chat.completions.create(**request).choices[0]
    pieces: list[str] = []
    finish_reasons: list[str] = []
    usage = None
    for chunk in client.chat.completions.create(
        **request, stream=True, stream_options={"include_usage": True}
    ):
        if chunk.usage is not None:
            usage = chunk.usage
            assert chunk.choices == []
            continue
        pieces.append(chunk.choices[0].delta.content or "")
        if chunk.choices[0].finish_reason:
            finish_reasons.append(chunk.choices[0].finish_reason)
    assert "".join(pieces) == whole.message.content
    assert len([piece for piece in pieces if piece]) > 3
    assert finish_reasons == [whole.finish_reason]
    assert usage is not None and usage.completion_tokens > 0


def test_a_seed_repeats_a_sampled_answer(server: Server) -> None:
    def sample(seed: int) -> str:
        answer = server.client().completions.create(
            model=server.model(), prompt="Once upon a time", max_tokens=16, temperature=1.0, seed=seed
        )
        return answer.choices[0].text

    assert sample(7) == sample(7)
    assert len({sample(seed) for seed in range(4)}) > 1


def test_a_list_of_prompts_and_choices_come_back_by_index(server: Server) -> None:
    answer = server.client().completions.create(
        model=server.model(), prompt=["One, two,", "Red, green,"], max_tokens=4, temperature=0, n=2
    )
    assert sorted(choice.index for choice in answer.choices) == [0, 1, 2, 3]
    by_index = {choice.index: choice.text for choice in answer.choices}
    assert by_index[0] == by_index[1]
    assert by_index[2] == by_index[3]
    assert by_index[0] != by_index[2]


def test_stop_strings_end_the_text_before_them(server: Server) -> None:
    request = {"model": server.model(), "prompt": "1, 2, 3, 4,", "max_tokens": 24, "temperature": 0}
    client = server.client()
    text = client.completions.create(**request).choices[0].text
    assert "7" in text
    stopped = client.completions.create(**request, stop=["7"]).choices[0]
    assert stopped.text == text[: text.index("7")]
    assert stopped.finish_reason == "stop"


def test_echo_scores_the_prompt(server: Server) -> None:
    answer = server.client().completions.create(
        model=server.model(), prompt="The sky is blue", max_tokens=0, echo=True, logprobs=1
    )
    choice = answer.choices[0]
    assert choice.text == "The sky is blue"
    assert choice.logprobs is not None and choice.logprobs.token_logprobs is not None
    assert choice.logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in choice.logprobs.token_logprobs[1:])


def test_chat_logprobs_hold_the_chosen_token_and_the_best(server: Server) -> None:
    answer = server.client().chat.completions.create(
        model=server.model(), messages=QUESTION, max_tokens=3, temperature=0, logprobs=True, top_logprobs=5
    )
    content = answer.choices[0].logprobs.content
    assert len(content) == 3
    for entry in content:
        assert len(entry.top_logprobs) == 5
        assert entry.top_logprobs[0].logprob == pytest.approx(entry.logprob)


def test_errors_have_the_types_that_the_client_knows(server: Server) -> None:
    client = server.client()
    with pytest.raises(NotFoundError, match="no-such-model"):
        client.completions.create(model="no-such-model", prompt="x")
    with pytest.raises(BadRequestError, match="maximum context length"):
        client.completions.create(model=server.model(), prompt=[5] * 20_000)
