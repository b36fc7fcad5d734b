# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/families: a tiny random decoder of every family, and its logits in float64.

    python3 -m venv hf && hf/bin/pip install torch==2.15.0 transformers==5.24.0 gguf==0.19.0
    hf/bin/python tests/golden/make_family_golden.py [--out DIR] [--exact] [NAME ...]

Each model is built and run by transformers, wholly in double precision, on weights that the file
holds exactly (Q8_0 or F16 matrices, F32 vectors). NAME.gguf is the model, with keys and tensors as
llama.cpp's converter writes them (a llama's rows of q and k permuted, Gemma's norms plus one);
NAME.logits.gguf has the tokens (golden.tokens) and their logits, [tokens, vocab_size]. Always the
same bytes with the same versions of the packages. --exact writes matrices as F32 instead: the same
model for programs that round activations where weights are quantised.
"""

import argparse
import math
import pathlib
import zlib
from typing import Any

import gguf
import numpy as np
import torch
from family_configs import FAMILIES, VOCAB, Family

# transformers computes norms, softmax, rotations and routing in float32 whatever the model's type:
# here they shall be double too.
torch.float32 = torch.float = torch.float64
torch.Tensor.float = torch.Tensor.double
torch.set_default_dtype(torch.float64)

import transformers  # noqa: E402  after the types


def quantized(values: np.ndarray, kind: gguf.GGMLQuantizationType) -> tuple[np.ndarray, np.ndarray]:
    """What the file holds, and the same as float64."""
    stored = gguf.quantize(values.astype(np.float32), kind)
    return stored, gguf.dequantize(stored, kind).astype(np.float64)


def random_values(name: str, shape: tuple[int, ...], tied: bool) -> np.ndarray:
    """Weights that keep activations near unit size, and make attention and routing choosy."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    values = random.standard_normal(shape)
    if name.endswith("norm.weight"):
        return 1 + 0.2 * values
    if name.endswith(".bias"):
        return 0.3 * values
    if "embed_tokens" in name:
        return values * (shape[-1] ** -0.5 if tied else 1)
    gain = 1.0
    if "q_proj" in name or "k_proj" in name or "qkv_proj" in name:
        gain = 1.5
    if name.endswith("gate.weight"):
        gain = 2.0
    return values * gain / math.sqrt(shape[-1])


def permuted(rows: np.ndarray, num_heads: int) -> np.ndarray:
    """A head's halves as neighbours: what llama files hold of q and k."""
    shape = rows.shape
    return (
        rows.reshape(num_heads, 2, shape[0] // num_heads // 2, *shape[1:])
        .swapaxes(1, 2)
        .reshape(shape)
    )


NAMES = {
    "embed_tokens": "token_embd",
    "lm_head": "output",
    "norm": "output_norm",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
}


def gguf_name(name: str, arch: str) -> str:
    """transformers' name of a parameter as llama.cpp's converter has it."""
    name = name.removeprefix("model.")
    prefix = ""
    if name.startswith("layers."):
        _, layer, name = name.split(".", 2)
        prefix = f"blk.{layer}."
    part, kind = name.rsplit(".", 1)
    if part == "post_attention_layernorm" and arch in ("gemma2", "gemma3"):
        return f"{prefix}post_attention_norm.{kind}"
    return f"{prefix}{NAMES[part]}.{kind}"


class Writer:
    """Gives a model its weights, and writes them down."""

    def __init__(self, family: Family, path: pathlib.Path, exact: bool) -> None:
        self.family = family
        self.exact = exact
        self.out = gguf.GGUFWriter(path, family.arch)

    def matrix(self, name: str, values: np.ndarray, kind: gguf.GGMLQuantizationType) -> None:
        if self.exact:
            self.out.add_tensor(name, quantized(values, kind)[1].astype(np.float32))
            return
        self.out.add_tensor(name, quantized(values, kind)[0], raw_dtype=kind)

    def take(self, name: str, parameter: torch.nn.Parameter, config: Any) -> None:
        """Sets one parameter at random and writes it."""
        shape = tuple(parameter.shape)
        values = random_values(name, shape, config.tie_word_embeddings).astype(np.float32)
        if "experts." in name:
            exact = quantized(values, self.family.stored)[1]
            self.experts(name, values)
        elif len(shape) == 1 or name.endswith("mlp.gate.weight"):
            exact = values.astype(np.float64)
            self.out.add_tensor(
                gguf_name(name, self.family.arch), self.permute(name, values, config)
            )
            if self.family.arch.startswith("gemma"):
                exact = exact - 1  # transformers adds it again
        else:
            exact = quantized(values, self.family.stored)[1]
            stored = self.permute(name, values, config)
            self.matrix(gguf_name(name, self.family.arch), stored, self.family.stored)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(exact))

    def permute(self, name: str, values: np.ndarray, config: Any) -> np.ndarray:
        if self.family.arch != "llama":
            return values
        if ".q_proj." in name:
            return permuted(values, config.num_attention_heads)
        if ".k_proj." in name:
            return permuted(values, config.num_key_value_heads)
        return values

    def experts(self, name: str, values: np.ndarray) -> None:
        """gate_up_proj [experts, gate then up, hidden], down_proj [experts, hidden, ffn]."""
        prefix = f"blk.{name.split('.')[2]}."
        parts = {"ffn_down": values}
        if name.endswith("gate_up_proj"):
            gate, up = np.split(values, 2, axis=1)
            parts = {"ffn_gate": gate, "ffn_up": up}
        for part, stack in parts.items():
            if self.family.stacked:
                self.matrix(f"{prefix}{part}_exps.weight", stack, self.family.stored)
                continue
            for e, one in enumerate(stack):
                self.matrix(f"{prefix}{part}.{e}.weight", one, self.family.stored)

    def keys(self, config: Any) -> None:
        out, arch = self.out, self.family.arch
        head_dim = getattr(config, "head_dim", None) or (
            config.hidden_size // config.num_attention_heads
        )
        out.add_context_length(config.max_position_embeddings)
        out.add_embedding_length(config.hidden_size)
        out.add_block_count(config.num_hidden_layers)
        out.add_feed_forward_length(config.intermediate_size)
        out.add_head_count(config.num_attention_heads)
        out.add_head_count_kv(config.num_key_value_heads)
        out.add_key_length(head_dim)
        out.add_value_length(head_dim)
        out.add_layer_norm_rms_eps(config.rms_norm_eps)
        out.add_vocab_size(VOCAB)
        out.add_tokenizer_model("no_vocab")
        if window := getattr(config, "sliding_window", None):
            out.add_sliding_window(window)
        if cap := getattr(config, "attn_logit_softcapping", None):
            out.add_attn_logit_softcapping(cap)
        if cap := getattr(config, "final_logit_softcapping", None):
            out.add_final_logit_softcapping(cap)
        if experts := getattr(config, "num_local_experts", None):
            out.add_expert_count(experts)
            out.add_expert_used_count(config.num_experts_per_tok)
        if arch == "qwen3moe":
            out.add_expert_feed_forward_length(config.moe_intermediate_size)
        for key, value in self.family.keys.items():
            if isinstance(value, bool):
                out.add_bool(f"{arch}.{key}", value)
            else:
                out.add_float32(f"{arch}.{key}", value)
        self.rope_keys(config, head_dim)

    def rope_keys(self, config: Any, head_dim: int) -> None:
        out = self.out
        scaling = config.rope_parameters
        scaling = scaling.get("full_attention", scaling)
        rotated = int(head_dim * scaling.get("partial_rotary_factor", 1.0))
        out.add_rope_dimension_count(rotated)
        out.add_rope_freq_base(scaling["rope_theta"])
        kind = scaling["rope_type"]
        if kind in ("linear", "yarn"):
            out.add_rope_scaling_type(gguf.RopeScalingType(kind))
            out.add_rope_scaling_factor(scaling["factor"])
        original = scaling.get("original_max_position_embeddings")
        if kind == "yarn":
            out.add_rope_scaling_orig_ctx_len(original)
        if kind == "llama3":
            out.add_tensor("rope_freqs.weight", llama3_divisors(scaling, rotated))
        if kind == "longrope":
            out.add_rope_scaling_orig_ctx_len(original)
            factor = config.max_position_embeddings / original
            attention = math.sqrt(1 + math.log(factor) / math.log(original))
            out.add_rope_scaling_attn_factors(attention)
            for length in ("long", "short"):
                values = np.array(scaling[f"{length}_factor"], dtype=np.float32)
                out.add_tensor(f"rope_factors_{length}.weight", values)

    def close(self) -> None:
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


def llama3_divisors(scaling: dict[str, Any], rotated: int) -> np.ndarray:
    """What each frequency is divided by: nothing, the factor, or in between."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    divisors = []
    for i in range(rotated // 2):
        waves = scaling["original_max_position_embeddings"] / (
            2 * math.pi * scaling["rope_theta"] ** (2 * i / rotated)
        )
        smooth = min(max((waves - low) / (high - low), 0.0), 1.0)
        divisors.append(1 / ((1 - smooth) / scaling["factor"] + smooth))
    return np.array(divisors, dtype=np.float32)


def smallest_margin(model: torch.nn.Module, tokens: torch.Tensor) -> float:
    """The least distance between the last expert chosen and the first that was not."""
    outputs = model(tokens, output_router_logits=True)
    used = model.config.num_experts_per_tok
    margins = []
    for logits in outputs.router_logits:
        best = logits.topk(used + 1, dim=-1).values
        margins.append((best[:, used - 1] - best[:, used]).min().item())
    return min(margins)


def make(name: str, family: Family, folder: pathlib.Path, exact: bool) -> None:
    model_class = getattr(transformers, family.model)
    config = model_class.config_class(**family.config)
    model = model_class(config).double().eval()
    writer = Writer(family, folder / f"{name}.gguf", exact)
    writer.keys(config)
    for parameter_name, parameter in model.named_parameters():
        writer.take(parameter_name, parameter, config)
    writer.close()
    random = np.random.default_rng(zlib.crc32(name.encode()))
    tokens = random.integers(0, VOCAB, family.num_tokens)
    batch = torch.from_numpy(tokens)[None]
    with torch.no_grad():
        logits = model(batch).logits[0].numpy()
        if hasattr(config, "num_experts_per_tok"):
            margin = smallest_margin(model, batch)
            assert margin > 1e-4, f"{name}: two experts are {margin} apart; take another seed"
    assert logits.dtype == np.float64 and np.isfinite(logits).all()
    out = gguf.GGUFWriter(folder / f"{name}.logits.gguf", "golden")
    out.add_array("golden.tokens", tokens.tolist())
    out.add_tensor("logits", logits.astype(np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    spread = logits.std()
    print(f"{name}: {family.arch}, logits of standard deviation {spread:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default="tests/golden/families")
    parser.add_argument("--exact", action="store_true", help="matrices as F32")
    parser.add_argument("names", nargs="*", default=list(FAMILIES))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names:
        make(name, FAMILIES[name], options.out, options.exact)


if __name__ == "__main__":
    main()
