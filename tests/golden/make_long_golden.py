# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/smollm2-135m-q4_1/long.json: logits over the model's whole context.

    hf/bin/python tests/golden/make_long_golden.py models/SmolLM2-135M-Instruct.Q4_1.gguf

The tokens are those of greedy.jsonl beside it, prompts and answers one after another, again and
again up to 8,192. transformers runs the file's exact weights over them in double precision (see
real_model.py), 256 at a time; kept are the best logits after some of them. Takes some ten
minutes on two cores and 3 GB.
"""

import argparse
import json
import pathlib

import torch
from real_model import load  # first: it makes float32 double in transformers

import transformers

FOLDER = pathlib.Path("tests/golden/smollm2-135m-q4_1")
CHUNK = 256
POSITIONS = [511, 1023, 2047, 4095, 6143, 8191]  # of the last token seen
NUM_BEST = 8


def read_tokens(count: int) -> list[int]:
    tokens: list[int] = []
    for line in (FOLDER / "greedy.jsonl").read_text().splitlines():
        prompt = json.loads(line)
        tokens += prompt["prompt_ids"] + prompt["greedy_ids"]
    return (tokens * (count // len(tokens) + 1))[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    model = load(parser.parse_args().model)
    tokens = torch.tensor(read_tokens(POSITIONS[-1] + 1))[None]
    cache = transformers.DynamicCache()
    found = []
    for begin in range(0, tokens.shape[1], CHUNK):
        with torch.no_grad():
            out = model(tokens[:, begin : begin + CHUNK], past_key_values=cache, logits_to_keep=1)
        if begin + CHUNK - 1 in POSITIONS:
            best = out.logits[0, -1].topk(NUM_BEST)
            found.append({"ids": best.indices.tolist(), "logits": best.values.tolist()})
        print(f"{begin + CHUNK} of {tokens.shape[1]} tokens", flush=True)
    text = json.dumps({"positions": POSITIONS, "best": found}, indent=1)
    (FOLDER / "long.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
