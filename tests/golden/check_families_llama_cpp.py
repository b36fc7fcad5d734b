# SPDX-License-Identifier: Apache-2.0
"""Compares the golden logits of the families with llama.cpp's, where it runs the model.

    hf/bin/python tests/golden/make_family_golden.py --exact --out DIR
    llama/bin/python tests/golden/check_families_llama_cpp.py DIR    # llama-cpp-python, gguf, numpy

An independent check of what the files mean: transformers' logits of the weights it was given on one
side, llama.cpp's of the file on the other. Prints the largest difference of each, over the
deviation of its logits. With llama-cpp-python 0.3.36 it is up to 9e-6; 2e-3 for Gemma, whose GELU
llama.cpp looks up in f16. Where llama.cpp runs another model than transformers, the difference is
large: it knows no window in `llama` and `phi3` files and no attention.scale in `gemma2` ones, and
rounds phi3-short's context up to 256, past its short factors. It no longer loads experts in a
tensor each, nor qwen3moe layers without experts.
"""

import argparse
import contextlib
import os
import pathlib

import gguf
import llama_cpp
import numpy as np


def golden(path: pathlib.Path) -> tuple[list[int], np.ndarray]:
    reader = gguf.GGUFReader(path)
    field = reader.fields["golden.tokens"]
    tokens = [int(field.parts[i][0]) for i in field.data]
    return tokens, np.array(reader.tensors[0].data)


def llama_logits(path: pathlib.Path, tokens: list[int], vocab_size: int) -> np.ndarray:
    """Logits after each token, all in one batch."""
    model = llama_cpp.llama_model_load_from_file(
        str(path).encode(), llama_cpp.llama_model_default_params()
    )
    if not model:
        raise RuntimeError("llama.cpp cannot load it")
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = llama_cpp.llama_model_n_ctx_train(model)
    params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
    params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.n_threads = params.n_threads_batch = 1
    context = llama_cpp.llama_init_from_model(model, params)
    batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i] = token
        batch.pos[i] = i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = 0
        batch.logits[i] = True
    if llama_cpp.llama_decode(context, batch) != 0:
        raise RuntimeError("llama.cpp failed to decode")
    rows = [
        np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, i), (vocab_size,)).copy()
        for i in range(len(tokens))
    ]
    llama_cpp.llama_batch_free(batch)
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return np.stack(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    for path in sorted(folder.glob("*.logits.gguf")):
        name = path.name.removesuffix(".logits.gguf")
        tokens, expected = golden(path)
        try:
            with open(os.devnull, "w") as null, contextlib.redirect_stderr(null):
                found = llama_logits(folder / f"{name}.gguf", tokens, expected.shape[1])
        except RuntimeError as error:
            print(f"{name:16} {error}")
            continue
        error = np.abs(found - expected).max() / expected.std()
        print(f"{name:16} largest difference {error:.1e}", flush=True)


if __name__ == "__main__":
    main()
