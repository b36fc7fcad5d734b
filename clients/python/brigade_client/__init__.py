# SPDX-License-Identifier: Apache-2.0
"""Client of a Brigade router's socket.

    with BrigadeClient("tcp://127.0.0.1:8001") as client:
        for chunk in client.generate("smollm2", messages=[("user", "Hello!")], max_tokens=50):
            print(chunk.text, end="", flush=True)
"""

from brigade_client.client import BrigadeClient, Stream
from brigade_client.messages import (
    BrigadeError,
    Chunk,
    DropReason,
    ErrorCode,
    Finished,
    FinishReason,
    GenerationParams,
    ModelInfo,
    RouterUnavailable,
    Token,
)

__all__ = [
    "BrigadeClient",
    "BrigadeError",
    "Chunk",
    "DropReason",
    "ErrorCode",
    "FinishReason",
    "Finished",
    "GenerationParams",
    "ModelInfo",
    "RouterUnavailable",
    "Stream",
    "Token",
]
