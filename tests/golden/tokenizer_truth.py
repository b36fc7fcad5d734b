# SPDX-License-Identifier: Apache-2.0
"""Other people's tokenizers over the vocabulary of a GGUF file: Hugging Face's tokenizers, sentencepiece, llama.cpp."""

from collections.abc import Callable

from gguf import GGUFReader

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

Encode = Callable[[str, bool], list[int]]  # (text, parse_special) -> ids

ENDINGS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"
# As their authors publish them.
PATTERNS = {
    "smollm": [r"\p{N}", GPT2],
    "gpt-2": [GPT2],
    "llama-bpe": [ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + REST],
    "qwen2": [ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + REST],
    "qwen35": [ENDINGS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + REST],
    "tekken": [
        f"{BEFORE}{UPPER}*{LOWER}+|{BEFORE}{UPPER}+{LOWER}*|" + r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + REST
    ],
    "gpt-4o": [
        f"{BEFORE}{UPPER}*{LOWER}+{ENDINGS}?|{BEFORE}{UPPER}+{LOWER}*{ENDINGS}?|"
        + r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
        + REST
    ],
    "deepseek-v3": [
        r"\p{N}{1,3}",
        "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        + r"| ?[\p{P}\p{S}]+[\r\n]*|"
        + REST,
    ],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}
WHOLE_PIECES = {"llama-bpe", "tekken"}


class Vocabulary:
    def __init__(self, path: str) -> None:
        fields = GGUFReader(path).fields
        get = lambda key: fields[f"tokenizer.ggml.{key}"].contents() if f"tokenizer.ggml.{key}" in fields else None
        self.path = path
        self.model: str = get("model")
        self.pre: str = get("pre") or "default"
        self.tokens: list[str] = get("tokens")
        self.types: list[int] = get("token_type") or [NORMAL] * len(self.tokens)
        self.merges = [tuple(m.split(" ")) for m in get("merges") or []]
        self.scores: list[float] = get("scores") or []
        self.space_prefix: bool = get("add_space_prefix") is not False
        self.remove_extra_whitespaces = bool(get("remove_extra_whitespaces"))
        self.charsmap = bytes(byte & 0xFF for byte in get("precompiled_charsmap") or [])

    def of_type(self, *kinds: int) -> list[str]:
        return [token for token, kind in zip(self.tokens, self.types) if kind in kinds]

    def words(self) -> list[str]:
        """The texts of tokens that are text, in order of their ids."""
        plain = [(t, k) for t, k in zip(self.tokens, self.types) if k in (NORMAL, UNUSED, BYTE)]
        if self.model == "gpt2":
            texts = [byte_level_bytes(token) for token, _ in plain]
        else:
            texts = [spm_bytes(token, kind) for token, kind in plain]
        words = []
        for text in texts:
            try:
                words.append(text.decode())
            except UnicodeDecodeError:
                pass
        return [word for word in words if word]


def byte_alphabet() -> dict[str, int]:
    printing = [b for b in range(256) if 33 <= b <= 126 or (b >= 161 and b != 173)]
    others = [b for b in range(256) if b not in set(printing)]
    return {chr(b): b for b in printing} | {chr(0x100 + i): b for i, b in enumerate(others)}


ALPHABET = byte_alphabet()


def byte_level_bytes(token: str) -> bytes:
    if any(c not in ALPHABET for c in token):
        return token.encode()
    return bytes(ALPHABET[c] for c in token)


def spm_bytes(token: str, kind: int) -> bytes:
    return bytes([int(token[3:5], 16)]) if kind == BYTE else token.replace("\u2581", " ").encode()


def hf_tokenizer(vocabulary: Vocabulary, pre: str) -> Encode:
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

    def make(special: list[str]):
        model = models.BPE(
            vocab={token: i for i, token in enumerate(vocabulary.tokens)},
            merges=vocabulary.merges,
            ignore_merges=pre in WHOLE_PIECES,
        )
        tokenizer = Tokenizer(model)
        splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in PATTERNS[pre]]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )
        tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
        return tokenizer

    plain = make(vocabulary.of_type(USER_DEFINED))
    parsing = make(vocabulary.of_type(USER_DEFINED, CONTROL, UNKNOWN))
    return lambda text, special: (parsing if special else plain).encode(text, add_special_tokens=False).ids


def tiktoken_tokenizer(vocabulary: Vocabulary, pre: str) -> Encode:
    """What mistral-common runs for Tekken: ranks are ids."""
    import tiktoken

    [pattern] = PATTERNS[pre]
    normal = [i for i, kind in enumerate(vocabulary.types) if kind == NORMAL]
    special = {t: i for i, (t, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types)) if kind == CONTROL}
    encoding = tiktoken.Encoding(
        name=pre,
        pat_str=pattern,
        mergeable_ranks={byte_level_bytes(vocabulary.tokens[i]): i for i in normal},
        special_tokens=special,
    )
    allowed = lambda parse: "all" if parse else set()
    return lambda text, parse: encoding.encode(text, allowed_special=allowed(parse), disallowed_special=())


def sentencepiece_processor(vocabulary: Vocabulary):
    """sentencepiece itself, over a model file written from the vocabulary. It never parses special tokens."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as pb

    proto = pb.ModelProto()
    for token, kind, score in zip(vocabulary.tokens, vocabulary.types, vocabulary.scores):
        piece = token.replace(" ", "\u2581") if kind == USER_DEFINED else token
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.model_type = pb.TrainerSpec.UNIGRAM if vocabulary.model == "t5" else pb.TrainerSpec.BPE
    proto.trainer_spec.byte_fallback = BYTE in vocabulary.types
    proto.trainer_spec.vocab_size = len(vocabulary.tokens)
    if UNKNOWN not in vocabulary.types:
        unknown = vocabulary.tokens.index("<unk>")
        proto.pieces[unknown].type = UNKNOWN
    proto.normalizer_spec.name = "of the file" if vocabulary.charsmap else "identity"
    proto.normalizer_spec.precompiled_charsmap = vocabulary.charsmap
    proto.normalizer_spec.add_dummy_prefix = vocabulary.space_prefix
    proto.normalizer_spec.remove_extra_whitespaces = vocabulary.remove_extra_whitespaces
    proto.normalizer_spec.escape_whitespaces = True
    return sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())


def sentencepiece_tokenizer(vocabulary: Vocabulary) -> Encode:
    processor = sentencepiece_processor(vocabulary)
    return lambda text, _: processor.encode(text)


def llama_cpp_tokenizer(vocabulary: Vocabulary, pre: str) -> Encode:
    import llama_cpp

    model = llama_cpp.Llama(vocabulary.path, vocab_only=True, verbose=False, kv_overrides={"tokenizer.ggml.pre": pre})
    return lambda text, special: model.tokenize(text.encode(), add_bos=False, special=special)
