# SPDX-License-Identifier: Apache-2.0
"""Fields of sampling through the official openai client, on the real model over several ranks."""

from __future__ import annotations

import pytest
from openai import BadRequestError

from support import Server

PROMPT = "The capital of France is"


def complete(server: Server, **fields: object) -> object:
    known = {"temperature": 0, "max_tokens": 12, "prompt": PROMPT} | fields
    return server.client().completions.create(model=server.model(), **known).choices[0]


def ids_of(server: Server, text: str) -> list[int]:
    body = {"model": server.model(), "prompt": text, "add_special_tokens": False}
    return server.post("/tokenize", body).json()["tokens"]


def test_a_bias_and_an_allow_list_choose_the_tokens(server: Server) -> None:
    (token,) = ids_of(server, " Paris")
    forced = complete(server, logit_bias={str(token): 100}, max_tokens=3)
    assert forced.text == " Paris" * 3
    allowed = complete(server, extra_body={"allowed_token_ids": [token]}, max_tokens=2)
    assert allowed.text == " Paris" * 2
    banned = complete(server, logit_bias={str(token): -100}, max_tokens=1)
    assert "Paris" not in banned.text


def test_bad_words_do_not_come_out(server: Server) -> None:
    plain = complete(server)
    assert "Paris" in plain.text
    without = complete(server, extra_body={"bad_words": ["Paris"]})
    assert " Paris" not in without.text


def test_penalties_make_a_repeating_text_vary_and_a_seed_repeats_it(server: Server) -> None:
    request = {"prompt": "a a a a a a a a", "max_tokens": 24, "logprobs": 0}
    plain = complete(server, **request)
    penalised = complete(server, frequency_penalty=2, presence_penalty=2, **request)
    assert len(set(penalised.logprobs.tokens)) > len(set(plain.logprobs.tokens))
    drawn = [
        complete(
            server,
            prompt="Once upon a time",
            temperature=1.2,
            seed=7,
            extra_body={"min_p": 0.05, "typical_p": 0.95, "repetition_penalty": 1.2, "top_k": 50},
        ).text
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]


def test_a_stop_string_is_part_of_the_text_when_asked(server: Server) -> None:
    plain = complete(server, stop=["Paris"])
    assert plain.finish_reason == "stop" and "Paris" not in plain.text
    kept = complete(server, stop=["Paris"], extra_body={"include_stop_str_in_output": True})
    assert kept.finish_reason == "stop" and kept.text == plain.text + "Paris"


def test_prompt_scores_come_in_both_shapes(server: Server) -> None:
    ids = ids_of(server, PROMPT)
    scored = complete(
        server, max_tokens=1, echo=True, logprobs=1, extra_body={"prompt_logprobs": 3}
    )
    own = scored.logprobs.token_logprobs
    by_id = scored.prompt_logprobs
    assert len(by_id) == len(ids) and by_id[0] is None
    for token, score, entry in zip(ids[1:], own[1:], by_id[1:]):
        assert entry[str(token)]["logprob"] == score
        assert 3 <= len(entry) <= 4


def test_a_final_message_is_continued(server: Server) -> None:
    answer = server.client().chat.completions.create(
        model=server.model(),
        messages=[
            {"role": "user", "content": "What is the capital of France?"},
            {"role": "assistant", "content": "The capital of France is"},
        ],
        max_tokens=4,
        temperature=0,
        extra_body={"continue_final_message": True, "add_generation_prompt": False},
    )
    assert "Paris" in answer.choices[0].message.content


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("logit_bias", {"49152": 1}, "logit_bias[0]"),
        ("allowed_token_ids", [49152], "allowed_token_ids[0]"),
        ("repetition_penalty", 0, "repetition_penalty"),
        ("min_p", 2, "min_p"),
        ("typical_p", 0, "typical_p"),
        ("prompt_logprobs", 21, "prompt_logprobs"),
        ("guided_json", {}, "guided_json"),
    ],
)
def test_wrong_values_are_refused_by_name(
    server: Server, field: str, value: object, param: str
) -> None:
    with pytest.raises(BadRequestError) as refused:
        complete(server, extra_body={field: value})
    assert refused.value.param == param


def test_a_request_that_forbids_every_token_fails_alone(server: Server) -> None:
    (token,) = ids_of(server, " Paris")
    with pytest.raises(BadRequestError, match="no token may come out"):
        complete(server, extra_body={"allowed_token_ids": [token], "bad_words": ["Paris"]})
    assert "Paris" in complete(server).text
