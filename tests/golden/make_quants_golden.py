#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write quants.bin: blocks of every quantised GGUF type and the values that gguf-py decodes them to.

make_quants_golden.py OUT.bin. Random blocks, and those that go wrong first: scales of zero, subnormal, the largest,
infinite and NaN, with the smallest and the largest codes. Layout, little-endian: "BRGQ", u32 version 1, u32 number of
types; of each type u32 ggml id, u32 number of blocks, u32 bytes of a block, u32 weights of a block, the blocks, and the
weights as f32. Needs numpy and gguf (PyPI).
"""
import argparse
import struct

import gguf
import numpy as np
from gguf.quants import dequantize

# Where blocks have f16 values; MXFP4 has an exponent in byte 0 instead.
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "MXFP4": [],
}
EDGE_HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00]


def make_blocks(name: str, size: int, rng: np.random.Generator) -> np.ndarray:
    blocks = [rng.integers(0, 256, size, dtype=np.uint8) for _ in range(12)]
    for block in blocks:
        for at in HALVES[name]:
            half = np.frombuffer(np.float16(rng.uniform(-2, 2)).tobytes(), np.uint8)
            block[at : at + 2] = half
    edges = [(h,) * len(HALVES[name]) for h in EDGE_HALVES]
    if len(HALVES[name]) == 2:
        edges += [(0x3C00, 0x7C00), (0x7C00, 0x3C00), (0x0001, 0xFBFF)]
    for values in edges:
        for fill in (0x00, 0xFF, 0x80, 0x7F):
            block = np.full(size, fill, np.uint8)
            for at, half in zip(HALVES[name], values):
                block[at : at + 2] = np.frombuffer(struct.pack("<H", half), np.uint8)
            blocks.append(block)
    if name == "MXFP4":
        blocks = []
        for exponent in (0, 1, 2, 100, 127, 128, 254, 255):
            block = rng.integers(0, 256, size, dtype=np.uint8)
            block[0] = exponent
            blocks.append(block)
    return np.stack(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    with open(args.target, "wb") as out, np.errstate(all="ignore"):
        out.write(struct.pack("<4sII", b"BRGQ", 1, len(HALVES)))
        for name in HALVES:
            kind = gguf.GGMLQuantizationType[name]
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            blocks = make_blocks(name, size, rng)
            values = dequantize(blocks, kind).astype("<f4")
            assert values.size == len(blocks) * elements
            out.write(struct.pack("<IIII", kind.value, len(blocks), size, elements))
            out.write(blocks.tobytes())
            out.write(values.tobytes())


main()
