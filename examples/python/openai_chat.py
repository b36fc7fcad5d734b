# SPDX-License-Identifier: Apache-2.0
"""Asks over HTTP with OpenAI's client: a streamed answer, what it cost, and how sure the model was.

pip install openai
python3 openai_chat.py http://127.0.0.1:8000 "Why is the sky blue?" [API_KEY]
"""

import math
import sys

import openai


def main() -> int:
    if len(sys.argv) not in (3, 4):
        print(f"usage: {sys.argv[0]} URL QUESTION [API_KEY]", file=sys.stderr)
        return 2
    url, question = sys.argv[1:3]
    client = openai.OpenAI(
        base_url=f"{url}/v1", api_key=sys.argv[3] if len(sys.argv) == 4 else "none"
    )
    try:
        model = client.models.list().data[0].id
        scores = []
        stream = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": question}],
            max_completion_tokens=100,
            temperature=0,
            logprobs=True,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"repetition_penalty": 1.1},  # not OpenAI's: vLLM's fields go in here
        )
        for chunk in stream:
            for choice in chunk.choices:
                print(choice.delta.content or "", end="", flush=True)
                scores += [token.logprob for token in choice.logprobs.content]
            if chunk.usage is not None:
                usage = chunk.usage
        sure = math.exp(sum(scores) / len(scores))
        print(
            f"\n({usage.prompt_tokens} tokens in, {usage.completion_tokens} out, {sure:.0%} sure of each)"
        )
    except openai.APIError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
