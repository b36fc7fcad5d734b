# SPDX-License-Identifier: Apache-2.0
"""Messages to FlatBuffers and back. The only module that sees generated code."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import flatbuffers

from brigade_client._schema import Cancel as fb_cancel
from brigade_client._schema import Drain as fb_drain
from brigade_client._schema import Generate as fb_generate
from brigade_client._schema import GetStatus as fb_get_status
from brigade_client._schema import ListModels as fb_list_models
from brigade_client._schema import Params as fb_params
from brigade_client._schema import Strings as fb_strings
from brigade_client._schema import ToRouter as fb_to_router
from brigade_client._schema.Chunk import Chunk as FbChunk
from brigade_client._schema.Finished import Finished as FbFinished
from brigade_client._schema.FromRouter import FromRouter as FbFromRouter
from brigade_client._schema.FromRouterBody import FromRouterBody
from brigade_client._schema.Models import Models as FbModels
from brigade_client._schema.PromptKind import PromptKind
from brigade_client._schema.Refused import Refused as FbRefused
from brigade_client._schema.StatusReply import StatusReply as FbStatusReply
from brigade_client._schema.ToRouterBody import ToRouterBody
from brigade_client._schema.Accepted import Accepted as FbAccepted
from brigade_client._schema.Done import Done as FbDone
from brigade_client.messages import (
    BrigadeError,
    Chunk,
    DropReason,
    ErrorCode,
    Finished,
    FinishReason,
    GenerationParams,
    ModelInfo,
    Token,
)

Prompt = str | Sequence[int] | Sequence[tuple[str, str]]
Reply = Chunk | Finished | BrigadeError | list[ModelInfo] | str | None
"""None: a sign that the request goes well (accepted, done)."""


def _vector(builder: Any, size: int, values: Sequence[Any], prepend: Callable[[Any], None]) -> int:
    builder.StartVector(size, len(values), size)
    for value in reversed(values):
        prepend(value)
    return builder.EndVector()


def _ints(builder: Any, values: Sequence[int]) -> int:
    return _vector(builder, 4, values, builder.PrependInt32)


def _floats(builder: Any, values: Sequence[float]) -> int:
    return _vector(builder, 4, values, builder.PrependFloat32)


def _strings(builder: Any, texts: Sequence[str]) -> int:
    parts = [text.encode() for text in texts]
    ends = []
    end = 0
    for part in parts:
        end += len(part)
        ends.append(end)
    text = builder.CreateByteVector(b"".join(parts))
    ends_offset = _vector(builder, 4, ends, builder.PrependUint32)
    fb_strings.Start(builder)
    fb_strings.AddText(builder, text)
    fb_strings.AddEnds(builder, ends_offset)
    return fb_strings.End(builder)


def _params(builder: Any, params: GenerationParams) -> int:
    stop = _strings(builder, params.stop)
    stop_token_ids = _ints(builder, params.stop_token_ids)
    bias_tokens = _ints(builder, list(params.logit_bias))
    bias_values = _floats(builder, list(params.logit_bias.values()))
    allowed_token_ids = _ints(builder, params.allowed_token_ids)
    bad_words = _strings(builder, params.bad_words)
    fb_params.Start(builder)
    fb_params.AddTemperature(builder, params.temperature)
    fb_params.AddTopP(builder, params.top_p)
    fb_params.AddTopK(builder, params.top_k)
    fb_params.AddHasSeed(builder, params.seed is not None)
    fb_params.AddSeed(builder, params.seed or 0)
    fb_params.AddHasMaxTokens(builder, params.max_tokens is not None)
    fb_params.AddMaxTokens(builder, params.max_tokens or 0)
    fb_params.AddMinTokens(builder, params.min_tokens)
    fb_params.AddIgnoreEos(builder, params.ignore_eos)
    fb_params.AddStop(builder, stop)
    fb_params.AddStopTokenIds(builder, stop_token_ids)
    fb_params.AddNumLogprobs(builder, params.num_logprobs)
    fb_params.AddNumPromptLogprobs(builder, params.num_prompt_logprobs)
    fb_params.AddDeadlineMs(builder, params.deadline_ms)
    fb_params.AddPriority(builder, params.priority)
    fb_params.AddMinP(builder, params.min_p)
    fb_params.AddTypicalP(builder, params.typical_p)
    fb_params.AddRepetitionPenalty(builder, params.repetition_penalty)
    fb_params.AddPresencePenalty(builder, params.presence_penalty)
    fb_params.AddFrequencyPenalty(builder, params.frequency_penalty)
    fb_params.AddBiasTokens(builder, bias_tokens)
    fb_params.AddBiasValues(builder, bias_values)
    fb_params.AddAllowedTokenIds(builder, allowed_token_ids)
    fb_params.AddBadWords(builder, bad_words)
    fb_params.AddIncludeStopStr(builder, params.include_stop_str)
    fb_params.AddKeepSpecialTokens(builder, params.keep_special_tokens)
    return fb_params.End(builder)


def _root(builder: Any, kind: int, body: int) -> bytes:
    fb_to_router.Start(builder)
    fb_to_router.AddBodyType(builder, kind)
    fb_to_router.AddBody(builder, body)
    builder.Finish(fb_to_router.End(builder))
    return bytes(builder.Output())


def encode_generate(
    request: int,
    model: str,
    prompt: Prompt,
    params: GenerationParams,
    *,
    parse_special: bool = False,
    tenant: str = "",
) -> bytes:
    """A prompt is a text, token ids, or messages as (role, content) pairs."""
    builder = flatbuffers.Builder(1024)
    text = token_ids = roles = contents = 0
    if isinstance(prompt, str):
        kind = PromptKind.Text
        text = builder.CreateString(prompt)
    elif all(isinstance(item, int) for item in prompt):
        kind = PromptKind.TokenIds
        token_ids = _ints(builder, prompt)  # type: ignore[arg-type]
    else:
        kind = PromptKind.Chat
        roles = _strings(builder, [role for role, _ in prompt])  # type: ignore[misc]
        contents = _strings(builder, [content for _, content in prompt])  # type: ignore[misc]
    model_offset = builder.CreateString(model)
    tenant_offset = builder.CreateString(tenant)
    params_offset = _params(builder, params)
    fb_generate.Start(builder)
    fb_generate.AddRequest(builder, request)
    fb_generate.AddModel(builder, model_offset)
    fb_generate.AddTenant(builder, tenant_offset)
    fb_generate.AddPromptKind(builder, kind)
    fb_generate.AddText(builder, text)
    fb_generate.AddParseSpecial(builder, parse_special)
    fb_generate.AddTokenIds(builder, token_ids)
    fb_generate.AddRoles(builder, roles)
    fb_generate.AddContents(builder, contents)
    fb_generate.AddParams(builder, params_offset)
    return _root(builder, ToRouterBody.Generate, fb_generate.End(builder))


def encode_cancel(request: int) -> bytes:
    builder = flatbuffers.Builder(64)
    fb_cancel.Start(builder)
    fb_cancel.AddRequest(builder, request)
    return _root(builder, ToRouterBody.Cancel, fb_cancel.End(builder))


def encode_list_models(request: int) -> bytes:
    builder = flatbuffers.Builder(64)
    fb_list_models.Start(builder)
    fb_list_models.AddRequest(builder, request)
    return _root(builder, ToRouterBody.ListModels, fb_list_models.End(builder))


def encode_get_status(request: int) -> bytes:
    builder = flatbuffers.Builder(64)
    fb_get_status.Start(builder)
    fb_get_status.AddRequest(builder, request)
    return _root(builder, ToRouterBody.GetStatus, fb_get_status.End(builder))


def encode_drain(request: int, replica: int) -> bytes:
    builder = flatbuffers.Builder(64)
    fb_drain.Start(builder)
    fb_drain.AddRequest(builder, request)
    fb_drain.AddReplica(builder, replica)
    return _root(builder, ToRouterBody.Drain, fb_drain.End(builder))


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode(errors="replace")


def _take_strings(value: Any) -> list[bytes]:
    if value is None:
        return []
    text = bytes(value.Text(i) for i in range(value.TextLength()))
    parts = []
    begin = 0
    for i in range(value.EndsLength()):
        end = value.Ends(i)
        parts.append(text[begin:end])
        begin = end
    return parts


def _take_tokens(value: Any) -> list[Token]:
    if value is None:
        return []
    texts = _take_strings(value.Texts())
    has_logprobs = value.LogprobsLength() > 0
    has_top = value.CuTopLength() > 0
    tokens = []
    for i in range(value.TokensLength()):
        logprob = value.Logprobs(i) if has_logprobs else math.nan
        top = range(value.CuTop(i), value.CuTop(i + 1)) if has_top else range(0)
        tokens.append(
            Token(
                id=value.Tokens(i),
                logprob=None if math.isnan(logprob) else logprob,
                top=[(value.TopTokens(t), value.TopLogprobs(t)) for t in top],
                text=texts[i] if texts else None,
            )
        )
    return tokens


def _take_chunk(body: Any) -> Chunk:
    return Chunk(
        text=_text(body.Text()),
        tokens=_take_tokens(body.Output()),
        prompt_tokens=_take_tokens(body.Prompt()),
    )


def _take_finished(body: Any) -> Finished:
    return Finished(
        reason=FinishReason(body.Reason()),
        stop_reason=_text(body.StopReason()),
        prompt_tokens=body.PromptTokens(),
        completion_tokens=body.CompletionTokens(),
        cached_tokens=body.CachedTokens(),
    )


def _take_refused(body: Any) -> BrigadeError:
    error = body.Error()
    return BrigadeError(
        ErrorCode(error.Code()),
        _text(error.Message()),
        body.RetryAfterS(),
        DropReason(body.Reason()),
    )


def _take_models(body: Any) -> list[ModelInfo]:
    names = _take_strings(body.Names())
    return [
        ModelInfo(_text(name), body.MaxContext(i), body.VocabSize(i))
        for i, name in enumerate(names)
    ]


_BODIES: dict[int, tuple[type, Callable[[Any], Reply]]] = {
    FromRouterBody.Accepted: (FbAccepted, lambda body: None),
    FromRouterBody.Chunk: (FbChunk, _take_chunk),
    FromRouterBody.Finished: (FbFinished, _take_finished),
    FromRouterBody.Refused: (FbRefused, _take_refused),
    FromRouterBody.Models: (FbModels, _take_models),
    FromRouterBody.StatusReply: (FbStatusReply, lambda body: _text(body.Json())),
    FromRouterBody.Done: (FbDone, lambda body: None),
}


def decode(frame: bytes) -> tuple[int, Reply]:
    """The request that an answer is for (0: none, only a sign of life) and the answer. ValueError when the bytes are no
    message: Python's FlatBuffers has no verifier, so what it trips over is caught here."""
    try:
        root = FbFromRouter.GetRootAs(frame, 0)
        known = _BODIES.get(root.BodyType())
        if known is None:
            return 0, None
        body_type, take = known
        body = body_type()
        table = root.Body()
        body.Init(table.Bytes, table.Pos)
        return body.Request(), take(body)
    except Exception as error:
        raise ValueError(f"not a message of a router: {error}") from error
