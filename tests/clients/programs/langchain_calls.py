# SPDX-License-Identifier: Apache-2.0
"""langchain-openai against the server at sys.argv[1], model sys.argv[2]: prints what it saw as JSON."""

import asyncio
import json
import sys

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAI

url, model = sys.argv[1:]
options = {
    "model": model,
    "base_url": f"{url}/v1",
    "api_key": "none",
    "temperature": 0,
    "max_retries": 0,
}
chat = ChatOpenAI(**options, max_tokens=24, stream_usage=True)
question = "What is the capital of France?"


async def stream_text() -> str:
    return "".join([chunk.content async for chunk in chat.astream(question)])


def raised(call: object) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


answer = chat.invoke(question)
whole = None
for chunk in chat.stream(question):
    whole = chunk if whole is None else whole + chunk
talk = [
    SystemMessage("Be brief."),
    HumanMessage("Say one."),
    AIMessage("One."),
    HumanMessage("And two?"),
]
print(
    json.dumps(
        {
            "text": answer.content,
            "finish_reason": answer.response_metadata["finish_reason"],
            "usage": [
                answer.usage_metadata["input_tokens"],
                answer.usage_metadata["output_tokens"],
            ],
            "streamed": whole.content,
            "stream_reason": whole.response_metadata["finish_reason"],
            "stream_usage": [
                whole.usage_metadata["input_tokens"],
                whole.usage_metadata["output_tokens"],
            ],
            "async": asyncio.run(stream_text()),
            "batch": [message.content for message in chat.batch([question, question, talk])],
            "logprobs": len(
                chat.bind(logprobs=True, top_logprobs=2)
                .invoke(question)
                .response_metadata["logprobs"]["content"]
            ),
            "completion": OpenAI(**options, max_tokens=8).invoke("The capital of France is"),
            "tools": raised(
                lambda: chat.bind_tools([{"name": "f", "parameters": {}}]).invoke(question)
            ),
            "schema": raised(
                lambda: chat.with_structured_output(
                    {"title": "city", "type": "object", "properties": {"name": {"type": "string"}}}
                ).invoke(question)
            ),
        }
    )
)
