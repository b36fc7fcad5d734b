# SPDX-License-Identifier: Apache-2.0
"""Token ids that other tokenizers give for the lines of tokenizer_lines.py, as hashes of chunks of lines.

    pip install gguf tokenizers sentencepiece protobuf     # and, as truths, tiktoken or llama-cpp-python
    python make_tokenizer_golden.py tokenizers.json MODEL.gguf[:PRE[:TRUTH]] ...

PRE replaces the pre-tokenizer that the file names: its pattern is then run over that file's vocabulary. TRUTH is hf
(default for gpt2 vocabularies), sentencepiece (for llama and t5 ones), tiktoken or llama.cpp. A committed file names only models that the
tests find; to check any other, write its expectations elsewhere and name that file to the test:

    python make_tokenizer_golden.py --count 20000 /tmp/gemma.json gemma-3-270m-q4_k_m.gguf
    BRIGADE_TOKENIZER_GOLDEN=/tmp/gemma.json build/dev/tests/tokenizer_test

When a chunk differs, --show LINE prints what is expected of one line.
"""

import argparse
import json

from tokenizer_lines import hash_ids, make_line
from tokenizer_truth import (
    CONTROL,
    Encode,
    Vocabulary,
    hf_tokenizer,
    llama_cpp_tokenizer,
    sentencepiece_processor,
    sentencepiece_tokenizer,
    tiktoken_tokenizer,
)

CHUNK = 250
SAMPLES = 40


def make_truth(vocabulary: Vocabulary, pre: str, truth: str) -> Encode:
    if truth == "hf":
        return hf_tokenizer(vocabulary, pre)
    if truth == "sentencepiece":
        return sentencepiece_tokenizer(vocabulary)
    if truth == "tiktoken":
        return tiktoken_tokenizer(vocabulary, pre)
    return llama_cpp_tokenizer(vocabulary, pre)


def decoded(vocabulary: Vocabulary, ids: list[list[int]]) -> list[list[int]]:
    """The bytes of sentencepiece's texts of the ids: where text is normalised, it does not come back as it was. None for
    lines with unknown characters."""
    processor = sentencepiece_processor(vocabulary)
    text = lambda line: "" if processor.unk_id() in line else processor.decode(line)
    return [list(text(line).encode()) for line in ids]


def expectations(spec: str, count: int, show: int | None) -> dict:
    path, pre, truth = (spec.split(":") + ["", ""])[:3]
    vocabulary = Vocabulary(path)
    pre = pre or vocabulary.pre
    truth = truth or ("hf" if vocabulary.model == "gpt2" else "sentencepiece")
    encode = make_truth(vocabulary, pre, truth)
    words, control = vocabulary.words(), vocabulary.of_type(CONTROL)
    special_every = 0 if truth == "sentencepiece" else 3
    ids = []
    for number in range(count):
        special = special_every > 0 and number % special_every == 0
        text = make_line(number, words, control)
        ids.append(encode(text, special))
        if number == show:
            print(json.dumps({"text": text, "special": special, "ids": ids[-1]}))
    chunks = lambda lines: [hash_ids(lines[i : i + CHUNK]) for i in range(0, count, CHUNK)]
    texts = {"texts": chunks(decoded(vocabulary, ids))} if vocabulary.model == "t5" else {}
    return {
        "model": path,
        "pre": pre,
        "truth": truth,
        "special_every": special_every,
        "num_words": len(words),
        "count": count,
        "chunk": CHUNK,
        "hashes": chunks(ids),
        **texts,
        "samples": ids[:SAMPLES],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--show", type=int)
    parser.add_argument("out")
    parser.add_argument("specs", nargs="+")
    args = parser.parse_args()
    golden = {
        "magic": "brigade-tokenizer-golden",
        "version": 1,
        "tokenizers": [expectations(spec, args.count, args.show) for spec in args.specs],
    }
    with open(args.out, "w", encoding="utf-8") as out:
        json.dump(golden, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
