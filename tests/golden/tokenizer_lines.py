# SPDX-License-Identifier: Apache-2.0
"""The lines that tokenizers are compared on: the same as tests/common/model/golden_lines.h makes.

A line is a pure function of its number and of the words of the vocabulary, so that files of expected ids need not hold
the texts.
"""

MASK = (1 << 64) - 1
RANGES = [
    (0x01, 0x20),
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
SPACES = [" "] * 8 + ["  ", "   ", "\t", "\n", "\n\n", " \n", "\r\n", "\u00a0", "\u3000", "\u180e", "\u200b", "\u0085"] + [""] * 6
PIECES = [
    "'s",
    "'ll",
    "I'M",
    "don't",
    "''re",
    "\u017f'\u017f",
    "1234567",
    "3.14",
    "\u0663\u0664",
    "\u00b2\u00b3\u00bd",
    "\u2167",
    "e\u0301",
    "\U0001f469\u200d\U0001f692",
    "->",
    "...",
    "::",
    "//",
    "/\n",
    "fooBarBAZqux",
    "\u01c5\u02b0A",
    "<0x0A>",
    "\u2581",
    "<s>",
    "</s>",
    "\r\n \n",
    "                    ",
]


def mix64(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Draws:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.count = 0

    def below(self, bound: int) -> int:
        self.count += 1
        return mix64(mix64(mix64(self.seed) ^ self.count)) % bound


def make_line(number: int, words: list[str], control: list[str]) -> str:
    draws = Draws(number)
    out = ""
    for _ in range(1 + draws.below(15)):
        kind = draws.below(100)
        if kind < 50:
            out += words[draws.below(len(words))]
        elif kind < 70:
            out += PIECES[draws.below(len(PIECES))]
        elif kind < 95 or not control:
            low, high = RANGES[draws.below(len(RANGES))]
            out += chr(low + draws.below(high - low))
        else:
            token = control[draws.below(len(control))]
            out += token[: 1 + draws.below(len(token))]
            out += token * draws.below(2)
        out += SPACES[draws.below(len(SPACES))]
    return out * (20 if draws.below(50) == 0 else 1)


def hash_ids(lines: list[list[int]]) -> str:
    """FNV-1a over the ids as 32-bit words, a line ended by 0xffffffff."""
    value = 0xCBF29CE484222325
    for ids in lines:
        for word in [*ids, 0xFFFFFFFF]:
            value = ((value ^ word) * 0x100000001B3) & MASK
    return f"{value:016x}"
