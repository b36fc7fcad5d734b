# SPDX-License-Identifier: Apache-2.0
"""A folder in Hugging Face's form of the tokenizer in a GGUF file, for clients that count or make tokens themselves."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, BinaryIO

SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING, ARRAY = 8, 9
CONTROL = 3
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
# As the model's authors split text: digits one by one, then as GPT-2 does.
PRE_TOKENIZERS = [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL]


def read_scalar(file: BinaryIO, code: str) -> Any:
    return struct.unpack(f"<{code}", file.read(struct.calcsize(f"<{code}")))[0]


def read_value(file: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return file.read(read_scalar(file, "Q")).decode("utf-8", "replace")
    if kind == ARRAY:
        item, count = read_scalar(file, "I"), read_scalar(file, "Q")
        return [read_value(file, item) for _ in range(count)]
    return read_scalar(file, SCALARS[kind])


def read_keys(path: Path) -> dict[str, Any]:
    """The metadata of a GGUF file of version 2 or 3."""
    with path.open("rb") as file:
        magic, version, _, count = struct.unpack("<4sIQQ", file.read(24))
        assert magic == b"GGUF" and version in {2, 3}, (magic, version)
        return {
            read_value(file, STRING): read_value(file, read_scalar(file, "I")) for _ in range(count)
        }


def write_tokenizer_folder(model: Path, folder: Path) -> None:
    """Of a model whose tokenizer is SmolLM's; others split text in other ways."""
    keys = read_keys(model)
    ggml = {name.removeprefix("tokenizer.ggml."): value for name, value in keys.items()}
    assert ggml["model"] == "gpt2" and ggml["pre"] == "smollm", (ggml["model"], ggml["pre"])
    tokens = ggml["tokens"]
    flags = {
        "special": True,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
    }
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {"id": token, "content": text, **flags}
            for token, (text, kind) in enumerate(zip(tokens, ggml["token_type"], strict=True))
            if kind == CONTROL
        ],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS},
        "decoder": BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "vocab": {text: token for token, text in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in ggml["merges"]],
        },
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[ggml["bos_token_id"]],
        "eos_token": tokens[ggml["eos_token_id"]],
        "model_max_length": keys["llama.context_length"],
        "chat_template": keys["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in [
        ("tokenizer.json", tokenizer),
        ("tokenizer_config.json", config),
        ("config.json", {"model_type": "llama"}),
    ]:
        (folder / name).write_text(json.dumps(value), "utf-8")
