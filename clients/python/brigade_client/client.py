# SPDX-License-Identifier: Apache-2.0
"""A connection to a router's socket."""

import time
import tomllib
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType

import zmq

from brigade_client import codec
from brigade_client.messages import (
    BrigadeError,
    Chunk,
    ErrorCode,
    Finished,
    GenerationParams,
    ModelInfo,
    RouterUnavailable,
)

_MAX_MESSAGE_BYTES = 4 << 20


class Stream:
    """The answer to one request: iterate over its chunks to the end, then `finished` is there. A router's refusal is
    raised as BrigadeError. Closed before its end, it cancels the request."""

    def __init__(self, client: "BrigadeClient", request: int, timeout: float | None) -> None:
        self._client = client
        self._request = request
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._ended = False
        self.finished: Finished | None = None

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        while not self._ended:
            reply = self._client._receive(self._request, self._deadline)
            if isinstance(reply, Chunk):
                return reply
            if isinstance(reply, (Finished, BrigadeError)):
                self._end()
            if isinstance(reply, Finished):
                self.finished = reply
            elif isinstance(reply, BrigadeError):
                raise reply
        raise StopIteration

    def text(self) -> str:
        """Reads to the end and joins what was not read yet."""
        return "".join(chunk.text for chunk in self)

    def cancel(self) -> None:
        """Asks the router to end the request; its end still comes as FinishReason.CANCELLED."""
        self._client._send(codec.encode_cancel(self._request), time.monotonic() + 1)

    def close(self) -> None:
        if not self._ended:
            self._end()
            self.cancel()

    def _end(self) -> None:
        self._ended = True
        self._client._boxes.pop(self._request, None)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class BrigadeClient:
    """One connection; not thread-safe. Several streams may be open on it and be read in any order.

    `keys` is a key file of `brigade keys`, where the socket wants keys. Times are in seconds."""

    def __init__(
        self,
        endpoint: str,
        *,
        keys: str | None = None,
        connect_timeout: float = 5.0,
        call_timeout: float = 10.0,
        silence_timeout: float = 10.0,
    ) -> None:
        self._endpoint = endpoint
        self._call_timeout = call_timeout
        self._silence_timeout = silence_timeout
        self._next_request = 1
        self._boxes: dict[int, deque[codec.Reply]] = {}
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        try:
            self._configure(keys)
            self._socket.connect(endpoint)
            # A connection says nothing yet: a refused key or another server shows only in the first answer.
            self._call(codec.encode_list_models, connect_timeout)
        except BaseException:
            self.close()
            raise

    def _configure(self, keys: str | None) -> None:
        options = {
            zmq.LINGER: 200,
            zmq.IMMEDIATE: 1,
            zmq.IPV6: 1,
            zmq.MAXMSGSIZE: _MAX_MESSAGE_BYTES,
            zmq.RCVHWM: 10000,
            zmq.HANDSHAKE_IVL: 2000,
            zmq.HEARTBEAT_IVL: 1000,
            zmq.HEARTBEAT_TIMEOUT: 5000,
            zmq.HEARTBEAT_TTL: 5000,
        }
        for option, value in options.items():
            self._socket.setsockopt(option, value)
        if keys is not None:
            with open(keys, "rb") as file:
                table = tomllib.load(file)
            self._socket.curve_serverkey = table["server_key"].encode()
            self._socket.curve_publickey = table["public_key"].encode()
            self._socket.curve_secretkey = table["secret_key"].encode()

    def models(self) -> list[ModelInfo]:
        reply = self._call(codec.encode_list_models, self._call_timeout)
        assert isinstance(reply, list)
        return reply

    def status(self) -> str:
        """The JSON that `brigade status --json` shows."""
        reply = self._call(codec.encode_get_status, self._call_timeout)
        assert isinstance(reply, str)
        return reply

    def drain(self, replica: int) -> None:
        """Where the socket has keys: operators only."""
        self._call(lambda request: codec.encode_drain(request, replica), self._call_timeout)

    def generate(
        self,
        model: str,
        prompt: str | Sequence[int] | None = None,
        *,
        messages: Sequence[tuple[str, str]] | None = None,
        params: GenerationParams | None = None,
        parse_special: bool = False,
        tenant: str = "",
        timeout: float | None = 600.0,
        **options: object,
    ) -> Stream:
        """Streams the continuation of a text or token ids, or the answer to (role, content) messages. `options` are
        fields of GenerationParams, in place of `params`."""
        if (prompt is None) == (messages is None):
            raise ValueError("give a prompt or messages")
        if params is None:
            params = GenerationParams(**options)  # type: ignore[arg-type]
        elif options:
            raise ValueError("give params or their fields, not both")
        request = self._new_request()
        frame = codec.encode_generate(
            request,
            model,
            prompt if messages is None else messages,  # type: ignore[arg-type]
            params,
            parse_special=parse_special,
            tenant=tenant,
        )
        stream = Stream(self, request, timeout)
        try:
            self._send(frame, time.monotonic() + self._call_timeout)
        except BaseException:
            stream._end()
            raise
        return stream

    def close(self) -> None:
        self._socket.close()
        self._context.term()

    def __enter__(self) -> "BrigadeClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _new_request(self) -> int:
        request = self._next_request
        self._next_request += 1
        self._boxes[request] = deque()
        return request

    def _call(self, encode, timeout: float) -> codec.Reply:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + timeout
        request = self._new_request()
        try:
            self._send(encode(request), deadline)
            reply = self._receive(request, deadline)
        finally:
            self._boxes.pop(request, None)
        if isinstance(reply, BrigadeError):
            raise reply
        return reply

    def _send(self, frame: bytes, deadline: float) -> None:
        if len(frame) > _MAX_MESSAGE_BYTES:
            # The router would drop the connection, and all that is queued on it.
            raise BrigadeError(ErrorCode.INVALID_ARGUMENT, f"a request of {len(frame)} bytes")
        if not self._socket.poll(_remaining_ms(deadline), zmq.POLLOUT):
            raise RouterUnavailable(f"no router at {self._endpoint} (or it refuses this key)")
        self._socket.send(frame)

    def _receive(self, request: int, deadline: float | None) -> codec.Reply:
        box = self._boxes[request]
        last_heard = time.monotonic()
        while not box:
            silent = last_heard + self._silence_timeout
            until = silent if deadline is None else min(deadline, silent)
            if self._socket.poll(_remaining_ms(until), zmq.POLLIN):
                last_heard = time.monotonic()
                self._sort(self._socket.recv_multipart())
            elif deadline is not None and time.monotonic() >= deadline:
                raise BrigadeError(ErrorCode.DEADLINE_EXCEEDED, "no answer from the router in time")
            elif time.monotonic() >= silent:
                raise RouterUnavailable(f"the router at {self._endpoint} is silent")
        return box.popleft()

    def _sort(self, frames: list[bytes]) -> None:
        try:
            request, reply = codec.decode(frames[0])
        except ValueError as error:
            raise RouterUnavailable(str(error)) from error
        box = self._boxes.get(request)
        # Without a box: a sign of life, or late words on a request that was let go.
        if box is not None:
            box.append(reply)


def _remaining_ms(deadline: float) -> int:
    return max(0, int((deadline - time.monotonic()) * 1000) + 1)
