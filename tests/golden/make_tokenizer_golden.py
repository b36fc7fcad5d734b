# SPDX-License-Identifier: Apache-2.0
"""Token ids that Hugging Face's tokenizers gives, built from the vocabulary in a GGUF file (pre-tokenizer smollm).

    pip install gguf tokenizers
    python make_tokenizer_golden.py MODEL.gguf COUNT SEED tokenizer-smollm.jsonl

A line is {"text", "ids", "special"}: `special` tells whether special tokens were parsed.
"""

import json
import random
import sys

from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

RANGES = [
    (0x00, 0x20),
    (0x20, 0x7F),
    (0x80, 0x250),
    (0x300, 0x370),
    (0x370, 0x600),
    (0x900, 0xE00),
    (0x1680, 0x1810),
    (0x2000, 0x2070),
    (0x2070, 0x2C00),
    (0x3000, 0x3100),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0x1F300, 0x1FA00),
    (0x10000, 0x10FFFF),
]
SPACES = [" "] * 10 + ["  ", "   ", "\t", "\n", "\n\n", " \n", "\r\n", "\u00a0", "\u3000", "\u180e", "\u200b", "\u0085", ""]
PIECES = ["'s", "'ll", "I'M", "don't", "''re", "1234567", "3.14", "٣٤", "²³½", "Ⅷ", "e\u0301", "👩‍🚒", "->", "...", "::", "<|im_end|>"]


def make_tokenizer(path: str, special: bool) -> tuple[Tokenizer, list[str]]:
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    types = fields["tokenizer.ggml.token_type"].contents()
    tokenizer = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [t for t, kind in zip(tokens, types) if kind == 3]
    if special:
        tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in control])
    return tokenizer, control


def random_line(rnd: random.Random, words: list[str], control: list[str]) -> str:
    out = ""
    for _ in range(rnd.randrange(1, 16)):
        kind = rnd.random()
        if kind < 0.5:
            out += rnd.choice(words)
        elif kind < 0.7:
            out += rnd.choice(PIECES)
        elif kind < 0.95:
            low, high = rnd.choice(RANGES)
            code = rnd.randrange(low, high)
            out += chr(code) if not 0xD800 <= code <= 0xDFFF else "x"
        else:
            token = rnd.choice(control)
            out += token[: rnd.randrange(1, len(token) + 1)] + rnd.choice(["", token])
        out += rnd.choice(SPACES)
    return out * rnd.choice([1] * 50 + [20])


def main() -> None:
    path, count, seed, out_path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    plain, control = make_tokenizer(path, special=False)
    parsing, _ = make_tokenizer(path, special=True)
    words = [t.replace("\u0120", " ") for t in plain.get_vocab() if t.replace("\u0120", "").isalpha()]
    words.sort()
    rnd = random.Random(seed)
    with open(out_path, "w", encoding="utf-8") as out:
        for i in range(count):
            text = random_line(rnd, words, control)
            special = i % 3 == 0
            ids = (parsing if special else plain).encode(text, add_special_tokens=False).ids
            line = {"text": text, "ids": ids, "special": special}
            out.write(json.dumps(line, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
