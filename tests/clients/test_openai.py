# SPDX-License-Identifier: Apache-2.0
"""The official openai client, of the version in requirements.txt: sync, async, streams, raw answers, errors."""

from __future__ import annotations

import asyncio

import openai
import pytest
from openai import BadRequestError, NotFoundError
from pydantic import BaseModel

from support import Server, wait_until

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


def async_client(server: Server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="none", timeout=120, max_retries=0
    )


def test_models_are_listed(server: Server) -> None:
    models = server.client().models.list().data
    assert [model.id for model in models] == [server.model()]
    assert server.client().models.retrieve(server.model()) == models[0]


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
            model=server.model(),
            prompt="Once upon a time",
            max_tokens=16,
            temperature=1.0,
            seed=seed,
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
        model=server.model(),
        messages=QUESTION,
        max_tokens=3,
        temperature=0,
        logprobs=True,
        top_logprobs=5,
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


def test_async_calls_run_together_and_stream(server: Server) -> None:
    request = {"model": server.model(), "messages": QUESTION, "max_tokens": 12, "temperature": 0}

    async def ask() -> tuple[list[str], str]:
        async with async_client(server) as client:
            answers = await asyncio.gather(
                *[client.chat.completions.create(**request) for _ in range(4)]
            )
            pieces = []
            async for chunk in await client.chat.completions.create(**request, stream=True):
                pieces.append(chunk.choices[0].delta.content or "")
            return [answer.choices[0].message.content for answer in answers], "".join(pieces)

    texts, streamed = asyncio.run(ask())
    assert texts == [streamed] * 4


def test_the_stream_helper_tells_what_happens(server: Server) -> None:
    request = {"model": server.model(), "messages": QUESTION, "temperature": 0, "stop": ["Mars"]}
    kinds, deltas = [], []
    with server.client().chat.completions.stream(**request) as stream:
        for event in stream:
            kinds.append(event.type)
            if event.type == "content.delta":
                deltas.append(event.delta)
        final = stream.get_final_completion()
    assert kinds.count("content.done") == 1
    assert final.choices[0].message.content == "".join(deltas)
    assert final.choices[0].message.role == "assistant"
    assert final.choices[0].finish_reason == "stop"


def test_choices_of_one_stream_are_told_apart(server: Server) -> None:
    texts = {0: "", 1: "", 2: ""}
    reasons = {}
    for chunk in server.client().chat.completions.create(
        model=server.model(), messages=QUESTION, max_tokens=10, n=3, seed=1, stream=True
    ):
        (choice,) = chunk.choices
        texts[choice.index] += choice.delta.content or ""
        if choice.finish_reason:
            reasons[choice.index] = choice.finish_reason
    assert set(reasons) == {0, 1, 2}
    assert len(set(texts.values())) > 1


def test_a_raw_response_has_headers_and_the_parsed_answer(server: Server) -> None:
    raw = server.client().completions.with_raw_response.create(
        model=server.model(),
        prompt="One, two,",
        max_tokens=2,
        extra_headers={"X-Request-Id": "mine-1"},
    )
    assert raw.headers["x-request-id"] == raw.request_id == "mine-1"
    assert raw.headers["content-type"] == "application/json"
    assert raw.parse().usage.completion_tokens == 2
    with server.client().completions.with_streaming_response.create(
        model=server.model(), prompt="One, two,", max_tokens=2, stream=True
    ) as response:
        lines = [line for line in response.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"


def test_completion_logprobs_are_those_of_the_stream(server: Server) -> None:
    request = {
        "model": server.model(),
        "prompt": "The sky is",
        "max_tokens": 4,
        "temperature": 0,
        "logprobs": 2,
    }
    whole = server.client().completions.create(**request).choices[0].logprobs
    assert len(whole.tokens) == len(whole.top_logprobs) == len(whole.text_offset) == 4
    pieces = [
        chunk.choices[0].logprobs
        for chunk in server.client().completions.create(**request, stream=True)
    ]
    assert [token for piece in pieces for token in piece.tokens] == whole.tokens
    assert [score for piece in pieces for score in piece.token_logprobs] == pytest.approx(
        whole.token_logprobs, abs=1e-4
    )
    assert [offset for piece in pieces for offset in piece.text_offset] == whole.text_offset


def test_what_is_not_there_yet_is_refused_with_a_reason(server: Server) -> None:
    client = server.client()
    model = server.model()

    class City(BaseModel):
        name: str

    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for field, call in {
        "response_format": lambda: client.chat.completions.parse(
            model=model, messages=QUESTION, response_format=City
        ),
        "tools": lambda: client.chat.completions.create(
            model=model, messages=QUESTION, tools=[tool]
        ),
        "best_of": lambda: client.completions.create(model=model, prompt="x", best_of=3),
        "suffix": lambda: client.completions.create(model=model, prompt="x", suffix="y"),
    }.items():
        with pytest.raises(BadRequestError, match="not supported") as raised:
            call()
        assert raised.value.param == field
    for call in (
        lambda: client.responses.create(model=model, input="hi"),
        lambda: client.embeddings.create(model=model, input="hi"),
    ):
        with pytest.raises(NotFoundError, match="is not served yet"):
            call()


def test_a_call_that_times_out_or_is_left_frees_its_request(server: Server) -> None:
    long = {
        "model": server.model(),
        "prompt": "Once",
        "max_tokens": 4000,
        "extra_body": {"ignore_eos": True},
    }
    with pytest.raises(openai.APITimeoutError):
        server.client().with_options(timeout=0.5).completions.create(**long)
    wait_until(lambda: server.used_blocks() == 0, 5, "the timed-out call's blocks are free")
    with server.client().completions.create(**long, stream=True) as stream:
        next(iter(stream))
    wait_until(lambda: server.used_blocks() == 0, 5, "the left stream's blocks are free")

    async def cancel() -> None:
        async with async_client(server) as client:
            task = asyncio.create_task(client.completions.create(**long))
            await asyncio.sleep(0.3)
            task.cancel()

    asyncio.run(cancel())
    wait_until(lambda: server.used_blocks() == 0, 5, "the cancelled call's blocks are free")


def test_a_deadline_is_not_tried_again(server: Server) -> None:
    """The client tries errors from 500 on twice more, and would ask three times for work that comes too late."""
    late = {"max_tokens": 4000, "extra_body": {"deadline_ms": 200, "ignore_eos": True}}
    client = server.client().with_options(max_retries=2)
    with pytest.raises(openai.InternalServerError, match="deadline") as raised:
        client.completions.create(model=server.model(), prompt="Once", **late)
    assert raised.value.status_code == 504
    assert raised.value.request.headers["x-stainless-retry-count"] == "0"
