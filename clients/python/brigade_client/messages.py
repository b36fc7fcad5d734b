# SPDX-License-Identifier: Apache-2.0
"""What client and router say to each other, as plain values."""

import enum
from dataclasses import dataclass, field


class ErrorCode(enum.IntEnum):
    """As StatusCode of common/base/status.h."""

    OK = 0
    INVALID_ARGUMENT = 1
    NOT_FOUND = 2
    RESOURCE_EXHAUSTED = 3
    DEADLINE_EXCEEDED = 4
    CANCELLED = 5
    UNAVAILABLE = 6
    FAILED_PRECONDITION = 7
    DATA_LOSS = 8
    PERMISSION_DENIED = 9
    INTERNAL = 10


class FinishReason(enum.IntEnum):
    NONE = 0
    STOP = 1
    LENGTH = 2
    CANCELLED = 3
    ERROR = 4


class DropReason(enum.IntEnum):
    """As common/wire/drop_reason.h: EVICTED_ ones had cost compute, the others none."""

    NONE = 0
    SATURATED = 1
    EXPIRED = 2
    UNAVAILABLE = 3
    EVICTED_EXPIRED = 4
    EVICTED_UNAVAILABLE = 5


class BrigadeError(Exception):
    """The router's refusal of a request."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        retry_after_s: int = 0,
        reason: DropReason = DropReason.NONE,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after_s = retry_after_s
        self.reason = reason


class RouterUnavailable(BrigadeError):
    """No router answers, or its answer cannot be understood."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNAVAILABLE, message)


@dataclass
class GenerationParams:
    temperature: float = 1.0
    """0 takes the likeliest token each time."""
    top_p: float = 1.0
    top_k: int = 0
    """0: all tokens."""
    seed: int | None = None
    max_tokens: int | None = None
    """None: as many as the context allows."""
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: list[str] = field(default_factory=list)
    stop_token_ids: list[int] = field(default_factory=list)
    num_logprobs: int = -1
    """-1 none, 0 the token's own, up to 20 best beside it."""
    num_prompt_logprobs: int = -1
    deadline_ms: int = 0
    """0: the router's default."""
    priority: int = 0
    """Lower goes first, among the requests of one tenant."""
    min_p: float = 0.0
    """Least probability, as a share of the likeliest token's."""
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    """By token id, from -100 to 100."""
    allowed_token_ids: list[int] = field(default_factory=list)
    """Empty: all."""
    bad_words: list[str] = field(default_factory=list)
    include_stop_str: bool = False
    """The stop string or the stop token's text ends the output."""
    keep_special_tokens: bool = False
    """Special tokens show in the text."""


@dataclass
class Token:
    id: int
    logprob: float | None
    """Natural log; None when not asked for, or for a prompt's first token."""
    top: list[tuple[int, float]]
    """(token id, log-probability), best first."""
    text: bytes | None
    """Raw bytes, which may be part of a character; given with log-probabilities."""


@dataclass
class Chunk:
    text: str
    tokens: list[Token]
    prompt_tokens: list[Token]
    """All of the prompt's, once, when num_prompt_logprobs asks for them."""


@dataclass
class Finished:
    reason: FinishReason
    stop_reason: str
    """The stop string, or the id of the stop token in decimal."""
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass
class ModelInfo:
    name: str
    max_context: int
    vocab_size: int
