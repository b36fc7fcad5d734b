# SPDX-License-Identifier: Apache-2.0
"""The tiny models that make_family_golden.py writes: one or more of every family."""

import dataclasses
from typing import Any

import gguf

VOCAB = 101
CONTEXT = 512


@dataclasses.dataclass
class Family:
    """One model: a configuration of transformers, and how it is stored."""

    arch: str
    model: str  # class in transformers
    config: dict[str, Any]
    num_tokens: int = 100
    stored: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.Q8_0
    stacked: bool = True  # experts in one tensor; else in one each, as once
    keys: dict[str, Any] = dataclasses.field(default_factory=dict)  # beside the usual ones


def sizes(hidden: int, ffn: int, layers: int, heads: int, kv_heads: int, **more: Any) -> dict:
    return {
        "vocab_size": VOCAB,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": CONTEXT,
        "attn_implementation": "eager",
        "experts_implementation": "eager",
        "tie_word_embeddings": False,
        **more,
    }


def rope(kind: str = "default", theta: float = 10000.0, **more: Any) -> dict[str, Any]:
    return {"rope_type": kind, "rope_theta": theta, **more}


F16 = gguf.GGMLQuantizationType.F16

FAMILIES: dict[str, Family] = {
    # Llama 3: scaled rotations, three KV heads.
    "llama3": Family(
        "llama",
        "LlamaForCausalLM",
        sizes(
            *(96, 160, 3, 6, 3),
            rope_parameters=rope(
                *("llama3", 10000.0),
                factor=8.0,
                low_freq_factor=1.0,
                high_freq_factor=4.0,
                original_max_position_embeddings=64,
            ),
        ),
    ),
    # Biases everywhere, every head its own KV head, linear scaling.
    "llama-bias": Family(
        "llama",
        "LlamaForCausalLM",
        sizes(
            *(64, 96, 3, 4, 4),
            attention_bias=True,
            mlp_bias=True,
            rope_parameters=rope("linear", factor=4.0),
        ),
    ),
    # A window in all layers, heads wider than hidden / heads, odd sizes.
    "mistral": Family(
        "llama",
        "MistralForCausalLM",
        sizes(*(72, 150, 3, 4, 2), head_dim=32, sliding_window=20, rope_parameters=rope()),
        stored=F16,
    ),
    "mixtral": Family(
        "llama",
        "MixtralForCausalLM",
        sizes(
            *(64, 96, 2, 4, 2),
            head_dim=32,
            num_local_experts=6,
            num_experts_per_tok=2,
            sliding_window=None,
            rope_parameters=rope(theta=1e6),
        ),
    ),
    # The same with a tensor an expert.
    "mixtral-old": Family(
        "llama",
        "MixtralForCausalLM",
        sizes(
            *(64, 64, 2, 2, 1),
            head_dim=32,
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=None,
            rope_parameters=rope(theta=1e6),
        ),
        num_tokens=40,
        stacked=False,
    ),
    "qwen2": Family(
        "qwen2",
        "Qwen2ForCausalLM",
        sizes(*(128, 128, 2, 4, 2), tie_word_embeddings=True, rope_parameters=rope(theta=1e6)),
    ),
    "qwen2-yarn": Family(
        "qwen2",
        "Qwen2ForCausalLM",
        sizes(
            *(64, 64, 2, 2, 2),
            rope_parameters=rope(
                *("yarn", 10000.0), factor=4.0, original_max_position_embeddings=128
            ),
        ),
    ),
    "qwen3": Family(
        "qwen3",
        "Qwen3ForCausalLM",
        sizes(*(64, 128, 3, 4, 2), head_dim=32, rope_parameters=rope(theta=1e6)),
    ),
    "qwen3moe": Family(
        "qwen3moe",
        "Qwen3MoeForCausalLM",
        sizes(
            *(64, 192, 2, 4, 2),
            head_dim=32,
            num_experts=8,
            num_experts_per_tok=3,
            moe_intermediate_size=64,
            norm_topk_prob=True,
            decoder_sparse_step=1,
            rope_parameters=rope(theta=1e6),
        ),
    ),
    # Weights that do not sum to 1, and a layer without experts.
    "qwen3moe-mixed": Family(
        "qwen3moe",
        "Qwen3MoeForCausalLM",
        sizes(
            *(64, 96, 3, 4, 2),
            head_dim=32,
            num_experts=4,
            num_experts_per_tok=2,
            moe_intermediate_size=64,
            norm_topk_prob=False,
            decoder_sparse_step=1,
            mlp_only_layers=[0],
            rope_parameters=rope(theta=1e6),
        ),
        keys={"expert_weights_norm": False},
    ),
    "phi3": Family(
        "phi3",
        "Phi3ForCausalLM",
        sizes(
            *(128, 96, 2, 4, 4),
            sliding_window=24,
            original_max_position_embeddings=CONTEXT,
            rope_parameters=rope(partial_rotary_factor=1.0),
            pad_token_id=0,
            eos_token_id=0,
        ),
    ),
    # Sequences past the original context of 32, three quarters of each head rotated.
    "phi3-long": Family(
        "phi3",
        "Phi3ForCausalLM",
        sizes(
            *(128, 128, 2, 4, 2),
            sliding_window=None,
            original_max_position_embeddings=32,
            rope_parameters=rope(
                "longrope",
                partial_rotary_factor=0.75,
                original_max_position_embeddings=32,
                long_factor=[1 + 0.5 * i for i in range(12)],
                short_factor=[1 + 0.1 * i for i in range(12)],
            ),
            pad_token_id=0,
            eos_token_id=0,
        ),
    ),
    # The same served within its original context.
    "phi3-short": Family(
        "phi3",
        "Phi3ForCausalLM",
        sizes(
            *(64, 64, 2, 2, 1),
            max_position_embeddings=128,
            sliding_window=None,
            original_max_position_embeddings=128,
            rope_parameters=rope(
                "longrope",
                partial_rotary_factor=1.0,
                original_max_position_embeddings=128,
                long_factor=[1 + 0.5 * i for i in range(16)],
                short_factor=[1 + 0.1 * i for i in range(16)],
            ),
            pad_token_id=0,
            eos_token_id=0,
        ),
        num_tokens=60,
    ),
    "gemma": Family(
        "gemma",
        "GemmaForCausalLM",
        sizes(
            *(64, 96, 2, 2, 1),
            head_dim=64,
            hidden_act="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            rope_parameters=rope(),
        ),
    ),
    # Both soft caps, every other layer with a window, scores scaled apart from head_dim.
    "gemma2": Family(
        "gemma2",
        "Gemma2ForCausalLM",
        sizes(
            *(64, 96, 4, 4, 2),
            head_dim=32,
            query_pre_attn_scalar=20,
            sliding_window=20,
            attn_logit_softcapping=4.0,
            final_logit_softcapping=3.0,
            tie_word_embeddings=True,
            rope_parameters=rope(),
        ),
        keys={"attention.scale": 20**-0.5},
    ),
    # One KV head; five layers of six with a window and rotations of their own.
    "gemma3": Family(
        "gemma3",
        "Gemma3ForCausalLM",
        sizes(
            *(64, 128, 7, 4, 1),
            head_dim=32,
            query_pre_attn_scalar=32,
            sliding_window=16,
            tie_word_embeddings=True,
            rope_parameters={
                "full_attention": rope("linear", 1e6, factor=8.0),
                "sliding_attention": rope("default", 10000.0),
            },
        ),
    ),
}
