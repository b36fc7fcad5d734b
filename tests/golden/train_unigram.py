# SPDX-License-Identifier: Apache-2.0
"""Trains small unigram models with sentencepiece: what the unigram tokenizer is compared over.

    pip install gguf sentencepiece protobuf
    python train_unigram.py MODEL.gguf FOLDER
    python vocabulary_gguf.py FOLDER/unigram.model unigram.gguf
    python vocabulary_gguf.py FOLDER/unigram-bytes.model unigram-bytes.gguf

`unigram` is as T5 has it: NFKC, extra white space removed, characters that are not known. `unigram-bytes` leaves text as
it is, and falls back to bytes. They learn from this Python's standard library and from lines of the words of MODEL.
"""

import argparse
import pathlib
import sysconfig

import sentencepiece
from tokenizer_lines import make_line
from tokenizer_truth import Vocabulary

NUM_LINES = 20_000
FIRST_LINE = 1_000_000  # beyond those that are compared


def corpus(model: str) -> list[str]:
    words = Vocabulary(model).words()
    lines = [make_line(FIRST_LINE + i, words, [])[:2000] for i in range(NUM_LINES)]
    for source in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        lines += source.read_text(encoding="utf-8").splitlines()
    return [line.replace("\0", "") for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    lines = corpus(args.model)
    args.folder.mkdir(parents=True, exist_ok=True)
    common = {"model_type": "unigram", "num_threads": 1, "input_sentence_size": 60_000, "minloglevel": 1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(args.folder / "unigram"),
        vocab_size=6000,
        character_coverage=0.995,
        normalization_rule_name="nmt_nfkc",
        **common,
    )
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(args.folder / "unigram-bytes"),
        vocab_size=3000,
        character_coverage=0.98,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentencepiece_length=24,
        split_by_whitespace=False,
        **common,
    )


if __name__ == "__main__":
    main()
