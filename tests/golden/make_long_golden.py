# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/smollm2-135m-q4_1/long.json: logits over the model's whole context.

    hf/bin/python tests/golden/make_long_golden.py models/SmolLM2-135M-Instruct.Q4_1.gguf

The tokens are those of greedy.jsonl beside it, prompts and answers one after another, again and
again up to 8,192. transformers runs the file's exact weights over them in double precision (see
make_family_golden.py), 256 at a time; kept are the best logits after some of them. Takes some ten
minutes on two cores and 3 GB.
"""

import argparse
import json
import pathlib

import gguf
import numpy as np
import torch
from make_family_golden import NAMES  # first: it makes float32 double in transformers

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


def unpermuted(rows: np.ndarray, num_heads: int) -> np.ndarray:
    """What a llama file holds of q and k, in transformers' order."""
    pairs = rows.reshape(num_heads, rows.shape[0] // num_heads // 2, 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def load(path: pathlib.Path) -> torch.nn.Module:
    reader = gguf.GGUFReader(path)

    def key(name: str) -> float:
        return reader.fields[f"llama.{name}"].contents()

    tensors = {tensor.name: tensor for tensor in reader.tensors}
    config = transformers.LlamaConfig(
        vocab_size=int(tensors["token_embd.weight"].shape[1]),
        hidden_size=key("embedding_length"),
        intermediate_size=key("feed_forward_length"),
        num_hidden_layers=key("block_count"),
        num_attention_heads=key("attention.head_count"),
        num_key_value_heads=key("attention.head_count_kv"),
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"),
        max_position_embeddings=key("context_length"),
        rope_parameters={"rope_type": "default", "rope_theta": key("rope.freq_base")},
        tie_word_embeddings=True,
        attn_implementation="eager",
    )
    model = transformers.LlamaForCausalLM(config).double().eval()
    for name, parameter in model.named_parameters():
        part = name.removeprefix("model.").removesuffix(".weight")
        prefix = ""
        if part.startswith("layers."):
            _, layer, part = part.split(".", 2)
            prefix = f"blk.{layer}."
        tensor = tensors[f"{prefix}{NAMES[part]}.weight"]
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        if part == "self_attn.q_proj":
            values = unpermuted(values, config.num_attention_heads)
        if part == "self_attn.k_proj":
            values = unpermuted(values, config.num_key_value_heads)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values))
    return model


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
