# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file that holds a vocabulary and no weights.

    pip install gguf sentencepiece protobuf
    python vocabulary_gguf.py SOURCE OUT.gguf [--merges N]

SOURCE is a SentencePiece model, a Tekken JSON file (both come with mistral-common) or another GGUF file. --merges keeps
only the N best merged pieces of a SentencePiece BPE model, which makes a smaller but whole vocabulary:

    python vocabulary_gguf.py .../mistral_instruct_tokenizer_240323.model.v3 spm-small.gguf --merges 6000
"""

import argparse
import base64
import json

from gguf import GGUFReader, GGUFValueType, GGUFWriter

from tokenizer_truth import ALPHABET, CONTROL, NORMAL

BYTE_TO_CHARACTER = {byte: character for character, byte in ALPHABET.items()}


def copy_tokenizer(source: str, writer: GGUFWriter) -> None:
    for key, field in GGUFReader(source).fields.items():
        if not key.startswith("tokenizer.") and key != "general.name":
            continue
        kind = field.types[0]
        sub_type = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=sub_type)


def add_sentencepiece(source: str, writer: GGUFWriter, merges: int | None) -> None:
    from sentencepiece import sentencepiece_model_pb2 as pb

    proto = pb.ModelProto()
    with open(source, "rb") as file:
        proto.ParseFromString(file.read())
    pieces = list(proto.pieces)
    merged = [p for p in pieces if p.type == NORMAL and len(p.piece) > 1]
    if merges is not None:
        kept = {p.piece for p in sorted(merged, key=lambda p: -p.score)[:merges]}
        pieces = [p for p in pieces if p.type != NORMAL or len(p.piece) == 1 or p.piece in kept]
    unigram = proto.trainer_spec.model_type == pb.TrainerSpec.UNIGRAM
    writer.add_tokenizer_model("t5" if unigram else "llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([p.piece for p in pieces])
    writer.add_token_scores([p.score for p in pieces])
    writer.add_token_types([p.type for p in pieces])
    ids = {p.piece: i for i, p in enumerate(pieces)}
    writer.add_bos_token_id(ids["<s>"])
    writer.add_eos_token_id(ids["</s>"])
    writer.add_unk_token_id(ids["<unk>"])
    writer.add_add_space_prefix(proto.normalizer_spec.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(proto.normalizer_spec.remove_extra_whitespaces)
    if unigram and proto.normalizer_spec.precompiled_charsmap:
        writer.add_precompiled_charsmap(proto.normalizer_spec.precompiled_charsmap)


def split_token(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two tokens that byte-pair encoding makes `token` of last."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        pairs = [(ranks.get(a + b, len(ranks)), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
        _, at = min(pairs)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def add_tekken(source: str, writer: GGUFWriter) -> None:
    with open(source, encoding="utf-8") as file:
        tekken = json.load(file)
    num_special = tekken["config"]["default_num_special_tokens"]
    num_ranks = tekken["config"]["default_vocab_size"] - num_special
    ranks = {base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in tekken["vocab"][:num_ranks]}
    named = {entry["rank"]: entry["token_str"] for entry in tekken.get("special_tokens") or []}
    special = [named.get(i, f"<SPECIAL_{i}>") for i in range(num_special)]
    special[:3] = ["<unk>", "<s>", "</s>"]
    spell = lambda token: "".join(BYTE_TO_CHARACTER[byte] for byte in token)
    merges = [split_token(token, ranks) for token in ranks if len(token) > 1]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("tekken")
    writer.add_token_list(special + [spell(token) for token in ranks])
    writer.add_token_types([CONTROL] * num_special + [NORMAL] * len(ranks))
    writer.add_token_merges([f"{spell(a)} {spell(b)}" for a, b in merges])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--merges", type=int)
    args = parser.parse_args()
    writer = GGUFWriter(args.out, "llama")
    if args.source.endswith(".gguf"):
        copy_tokenizer(args.source, writer)
    elif args.source.endswith(".json"):
        add_tekken(args.source, writer)
    else:
        add_sentencepiece(args.source, writer, args.merges)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
