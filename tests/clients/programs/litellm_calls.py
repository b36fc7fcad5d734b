# SPDX-License-Identifier: Apache-2.0
"""litellm against the server at sys.argv[1], model sys.argv[2], by the provider sys.argv[3]: prints what it saw as JSON."""

import asyncio
import json
import sys

import litellm

url, model, provider = sys.argv[1:]
options = {"api_base": f"{url}/v1", "api_key": "none", "temperature": 0, "max_tokens": 24}
named = {"model": f"{provider}/{model}", **options}
question = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}


async def ask_three_times() -> list[str]:
    answers = await asyncio.gather(*[litellm.acompletion(**named, **question) for _ in range(3)])
    return [answer.choices[0].message.content for answer in answers]


def raised(**fields: object) -> dict[str, object]:
    try:
        litellm.completion(**{**named, **question, **fields})
    except Exception as error:
        return {"type": type(error).__name__, "message": str(error)}
    return {}


answer = litellm.completion(**named, **question, logprobs=True, top_logprobs=2)
pieces, reasons, usage = [], [], None
for chunk in litellm.completion(
    **named, **question, stream=True, stream_options={"include_usage": True}
):
    usage = getattr(chunk, "usage", None) or usage
    if chunk.choices:
        pieces.append(chunk.choices[0].delta.content or "")
        reasons.append(chunk.choices[0].finish_reason)

seen = {
    "text": answer.choices[0].message.content,
    "finish_reason": answer.choices[0].finish_reason,
    "usage": [answer.usage.prompt_tokens, answer.usage.completion_tokens],
    "num_logprobs": len(answer.choices[0].logprobs.content),
    "streamed": "".join(pieces),
    "stream_reasons": [reason for reason in reasons if reason],
    "stream_usage": [usage.prompt_tokens, usage.completion_tokens],
    "async": asyncio.run(ask_three_times()),
    "extra": litellm.completion(**named, **question, top_k=1, min_p=0.1).choices[0].message.content,
    "too_long": raised(messages=[{"role": "user", "content": "word " * 20_000}]),
    "no_model": raised(model=f"{provider}/none-such"),
    "bad_field": raised(top_p=7),
}
if provider == "openai":
    completion = litellm.text_completion(
        model=f"text-completion-openai/{model}", prompt="The capital of France is", **options
    )
    seen["completion"] = completion.choices[0].text
print(json.dumps(seen))
