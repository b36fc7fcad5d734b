# SPDX-License-Identifier: Apache-2.0
"""Streams one answer from a router's socket.

    python3 generate.py tcp://127.0.0.1:8001 "Why is the sky blue?"
"""

import sys

from brigade_client import BrigadeClient, BrigadeError


def main() -> int:
    if len(sys.argv) != 3:
        print(f"usage: {sys.argv[0]} ENDPOINT QUESTION", file=sys.stderr)
        return 2
    try:
        with BrigadeClient(sys.argv[1]) as client:
            model = client.models()[0].name
            messages = [("user", sys.argv[2])]
            stream = client.generate(model, messages=messages, temperature=0, max_tokens=100)
            for chunk in stream:
                print(chunk.text, end="", flush=True)
            assert stream.finished is not None
            print(
                f"\n({stream.finished.prompt_tokens} tokens in, {stream.finished.completion_tokens} out)"
            )
    except BrigadeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
