# SPDX-License-Identifier: Apache-2.0
"""The scores of facts.jsonl and texts.jsonl by llama.cpp, on the model file that the tests serve.

    python3 tests/clients/lm_eval/make_golden.py models/SmolLM2-135M-Instruct.Q4_1.gguf

Needs llama-cpp-python 0.3.36. Writes golden.json beside itself. Scores are natural logarithms, as lm-eval defines
them: of a continuation given its context, and of a whole text behind the start token.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
from llama_cpp import Llama

HERE = Path(__file__).resolve().parent
MAX_NEW_TOKENS = 12
STOPS = ("\n", ".")


class Scorer:
    def __init__(self, path: str) -> None:
        self.llama = Llama(path, n_ctx=1024, n_threads=1, logits_all=True, verbose=False)

    def encode(self, text: str) -> list[int]:
        return self.llama.tokenize(text.encode(), add_bos=False, special=True)

    def log_probabilities(self, tokens: list[int]) -> np.ndarray:
        """[tokens, vocab_size]: of what comes after each."""
        self.llama.reset()
        self.llama.eval(tokens)
        logits = self.llama.scores[: len(tokens)].astype(np.float64)
        shifted = logits - logits.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))

    def score(self, context: list[int], continuation: list[int]) -> float:
        rows = self.log_probabilities(context + continuation)[len(context) - 1 : -1]
        return float(sum(row[token] for row, token in zip(rows, continuation, strict=True)))

    def generate(self, text: str) -> str:
        tokens = self.encode(text)
        out = b""
        for _ in range(MAX_NEW_TOKENS):
            token = int(self.log_probabilities(tokens)[-1].argmax())
            if token == self.llama.token_eos():
                break
            tokens.append(token)
            out += self.llama.detokenize([token])
            ends = [out.decode("utf-8", "ignore").find(stop) for stop in STOPS]
            if max(ends) >= 0:
                return out.decode("utf-8", "ignore")[: min(end for end in ends if end >= 0)]
        return out.decode("utf-8", "ignore")


def read_lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def main() -> None:
    scorer = Scorer(sys.argv[1])
    facts, answers = [], []
    for doc in read_lines("facts.jsonl"):
        context = scorer.encode(doc["text"])
        wholes = [scorer.encode(doc["text"] + choice) for choice in doc["choices"]]
        facts.append(
            [scorer.score(whole[: len(context)], whole[len(context) :]) for whole in wholes]
        )
        answers.append(scorer.generate(doc["text"]))
    texts, num_bytes = [], 0
    for doc in read_lines("texts.jsonl"):
        texts.append(scorer.score([scorer.llama.token_bos()], scorer.encode(doc["text"])))
        num_bytes += len(doc["text"].encode())
    docs = read_lines("facts.jsonl")
    golden = {
        "acc": sum(int(np.argmax(s) == doc["label"]) for s, doc in zip(facts, docs)) / len(docs),
        "exact_match": sum(a == doc["choices"][doc["label"]] for a, doc in zip(answers, docs))
        / len(docs),
        "bits_per_byte": -sum(texts) / num_bytes / math.log(2),
        "facts": [[round(score, 4) for score in scores] for scores in facts],
        "texts": [round(score, 4) for score in texts],
        "answers": answers,
    }
    (HERE / "golden.json").write_text(json.dumps(golden, indent=1) + "\n", "utf-8")
    print({name: golden[name] for name in ("acc", "exact_match", "bits_per_byte")})


if __name__ == "__main__":
    main()
