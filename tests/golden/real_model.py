# SPDX-License-Identifier: Apache-2.0
"""A llama or gemma3 GGUF file as a transformers model in double precision, with the file's exact weights."""

import pathlib
from typing import Any

import gguf
import numpy as np
import torch
from make_family_golden import gguf_name  # first: it makes float32 double in transformers

import transformers


def unpermuted(rows: np.ndarray, num_heads: int) -> np.ndarray:
    """What a llama file holds of q and k, in transformers' order."""
    pairs = rows.reshape(num_heads, rows.shape[0] // num_heads // 2, 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def describe(reader: gguf.GGUFReader) -> tuple[str, Any]:
    """The architecture, and transformers' configuration of the model."""
    arch = reader.fields["general.architecture"].contents()

    def key(name: str) -> float:
        return reader.fields[f"{arch}.{name}"].contents()

    embedding = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    sizes = {
        "vocab_size": int(embedding.shape[1]),
        "hidden_size": key("embedding_length"),
        "intermediate_size": key("feed_forward_length"),
        "num_hidden_layers": key("block_count"),
        "num_attention_heads": key("attention.head_count"),
        "num_key_value_heads": key("attention.head_count_kv"),
        "rms_norm_eps": key("attention.layer_norm_rms_epsilon"),
        "max_position_embeddings": key("context_length"),
        "tie_word_embeddings": True,
        "attn_implementation": "eager",
    }

    def rope(theta: float) -> dict[str, Any]:
        return {"rope_type": "default", "rope_theta": theta}

    base = key("rope.freq_base")
    if arch == "llama":
        return arch, transformers.LlamaConfig(rope_parameters=rope(base), **sizes)
    assert arch == "gemma3", arch
    return arch, transformers.Gemma3TextConfig(
        head_dim=key("attention.key_length"),
        query_pre_attn_scalar=key("attention.key_length"),
        sliding_window=key("attention.sliding_window"),
        rope_parameters={"full_attention": rope(base), "sliding_attention": rope(10000.0)},
        **sizes,
    )


def load(path: pathlib.Path) -> torch.nn.Module:
    reader = gguf.GGUFReader(path)
    arch, config = describe(reader)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    kind = transformers.LlamaForCausalLM if arch == "llama" else transformers.Gemma3ForCausalLM
    model = kind(config).double().eval()
    for name, parameter in model.named_parameters():
        tensor = tensors[gguf_name(name, arch)]
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        if arch == "llama" and ".q_proj." in name:
            values = unpermuted(values, config.num_attention_heads)
        if arch == "llama" and ".k_proj." in name:
            values = unpermuted(values, config.num_key_value_heads)
        if arch == "gemma3" and values.ndim == 1:
            values = values - 1  # transformers adds it again
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values.reshape(tuple(parameter.shape))))
    return model
