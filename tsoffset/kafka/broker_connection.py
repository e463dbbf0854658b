"""One connection to a broker: cuts frames out of the received bytes, and gives each to its caller.

A connection has two kinds of callers. `exchange` sends single requests, for versions and login. A
stream (`tsoffset.kafka.wire.frame_stream`) sends the many requests of a call, and recognizes its
answers by its range of correlation ids.
"""

import asyncio
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol, cast

from kafka.errors import (
    CorrelationIdError,
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
)
from kafka.protocol.broker_version_data import BrokerVersionData

from tsoffset.flow.security import Tls
from tsoffset.kafka.security.failures import TlsFailed
from tsoffset.kafka.security.tls import explain_failure

Node = int | str

# A frame begins with its size, and then, in the same form, the correlation id.
_SIZE = struct.Struct(">i")
# The largest answer to an `exchange`.
_ANSWER_BYTES = 1_000_000
# Lower ids belong to exchanges.
FIRST_STREAM_ID = 1 << 30
# The beginning of a TLS alert. Taken as the beginning of an answer, it would announce 350 MB.
_ALERT = b"\x15\x03"


class Stream(Protocol):
    """The requests of one call, as seen by their connection."""

    @property
    def most_bytes(self) -> int:
        """The largest answer that is accepted."""

    def has_sent(self, correlation_id: int) -> bool:
        """Whether it has sent that request, or may have."""

    def take_frame(self, frame: memoryview, correlation_id: int) -> None:
        """Take an answer without its size. Raises KafkaProtocolError if it was not requested."""

    def go_on(self) -> None:
        """Send what may be sent now."""

    def connection_lost(self, error: KafkaError) -> None:
        """No more answers will come."""


class _Asked(NamedTuple):
    correlation_id: int
    response_class: Any
    answer: "asyncio.Future[Any]"


class BrokerConnection(asyncio.Protocol):
    """A connection to one broker, from before it is opened until after it has ended.

    `opened` is done when the connection is ready for streams, or with the error that ended it.
    """

    def __init__(self, node: Node, host: str, client_id: str, tls: Tls | None) -> None:
        self.node = node
        self.host = host
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Set when it is ready.
        self.versions: BrokerVersionData
        self.error: KafkaError | None = None
        self.last_read = self.last_active = time.monotonic()
        self.on_close: Callable[[], object] = lambda: None
        # Later work: the loop itself keeps no task alive.
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._client_id = client_id
        self._tls = tls
        self._may_complain = tls is None
        self._transport: asyncio.Transport | None = None
        self._streams: list[Stream] = []
        self._exchanges: deque[_Asked] = deque()
        self._exchanged = 0
        # Reasons not to send: the transport's buffer is full, or a login is in progress.
        self._is_full = self._is_logging_in = False
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = _SIZE.size

    @property
    def is_ready(self) -> bool:
        return self.error is None and self.opened.done()

    @property
    def is_idle(self) -> bool:
        """Whether no answer is outstanding."""
        return self.is_ready and not self._streams and not self._exchanges

    @property
    def may_send(self) -> bool:
        """Whether streams may send now. Brokers accept nothing else during a login."""
        return not (self._is_full or self._is_logging_in)

    @contextmanager
    def only_exchanges(self) -> Iterator[None]:
        """Streams wait meanwhile."""
        self._is_logging_in = True
        try:
            yield
        finally:
            self._is_logging_in = False
            self._go_on()

    def do_later(
        self, seconds: float, work: "Callable[[BrokerConnection], Coroutine[Any, Any, None]]"
    ) -> None:
        """Run `work` with the connection after this time, if it still exists."""

        def begin() -> None:
            self._work = asyncio.create_task(work(self))

        self._timer = asyncio.get_running_loop().call_later(seconds, begin)

    # --- requests --------------------------------------------------------------------------

    async def exchange(self, request: Any) -> Any:
        """The response to one request of the library. Raises KafkaError."""
        if self.error is not None:
            raise self.error
        self._exchanged += 1
        request.with_header(correlation_id=self._exchanged, client_id=self._client_id)
        asked = _Asked(
            self._exchanged,
            request.header.get_response_class(),
            asyncio.get_running_loop().create_future(),
        )
        self._exchanges.append(asked)
        self.write(request.encode(framed=True, header=True))
        return await asked.answer

    def attach(self, stream: Stream) -> None:
        """Give a stream its answers from now on, or the error that has ended the connection."""
        if self.error is None:
            self._streams.append(stream)
        else:
            stream.connection_lost(self.error)

    def detach(self, stream: Stream) -> None:
        """The stream has no request in flight any more."""
        with suppress(ValueError):  # the connection has ended
            self._streams.remove(stream)

    def write(self, frames: bytes) -> None:
        assert self._transport is not None
        self.last_active = time.monotonic()
        self._transport.write(frames)

    def close(self, error: KafkaError | None = None) -> None:
        """Close it at once: everything in flight fails with the error."""
        if self.error is not None:
            return
        self.error = error or KafkaConnectionError("the connection has ended")
        if self._transport is not None:
            self._transport.abort()
        if self._timer is not None:
            self._timer.cancel()
        self.on_close()
        for asked in self._exchanges:
            _fail(asked.answer, self.error)
        _fail(self.opened, self.error)
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.connection_lost(self.error)

    # --- what the transport calls ----------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self.error is not None:  # closed meanwhile
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Hand out complete answers, and let the streams send more."""
        if self.error is not None:
            return
        self.last_read = self.last_active = time.monotonic()
        if self._may_complain and data.startswith(_ALERT):
            self.close(KafkaConnectionError("it speaks TLS"))
            return
        self._may_complain = False
        self._chunks.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        try:
            self._read_frames()
        except KafkaProtocolError as error:
            self.close(error)
            return
        self._go_on()

    def _go_on(self) -> None:
        for stream in tuple(self._streams):
            stream.go_on()

    def connection_lost(self, error: Exception | None) -> None:
        if isinstance(error, ssl.SSLError):
            # With TLS 1.3 a broker refuses the client's certificate after the handshake.
            refused = "ALERT" in (error.reason or "")
            kind = TlsFailed if refused else KafkaConnectionError
            self.close(kind(explain_failure(error, self._tls)))
        else:
            self.close(KafkaConnectionError(error or "socket disconnected"))

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._go_on()

    # --- frames ----------------------------------------------------------------------------

    def _read_frames(self) -> None:
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        view = memoryview(data)
        position, end = 0, len(data)
        self._need = _SIZE.size
        while end - position >= _SIZE.size:
            (size,) = _SIZE.unpack_from(data, position)
            _check_size(size, max((_ANSWER_BYTES, *(one.most_bytes for one in self._streams))))
            begin = position + _SIZE.size
            if end - begin < _SIZE.size:
                self._need = 2 * _SIZE.size
                break
            (correlation_id,) = _SIZE.unpack_from(data, begin)
            stream = next((one for one in self._streams if one.has_sent(correlation_id)), None)
            _check_size(size, _ANSWER_BYTES if stream is None else stream.most_bytes)
            if end - begin < size:
                self._need = _SIZE.size + size
                break
            frame = view[begin : begin + size]
            if stream is None:
                self._take_exchanged(frame, correlation_id)
            else:
                stream.take_frame(frame, correlation_id)
            position = begin + size
        self._chunks = [data[position:]] if position < end else []
        self._have = end - position

    def _take_exchanged(self, frame: memoryview, correlation_id: int) -> None:
        if not self._exchanges or self._exchanges[0].correlation_id != correlation_id:
            raise CorrelationIdError(f"answer to the unknown request {correlation_id}")
        asked = self._exchanges.popleft()
        try:
            response = asked.response_class.decode(frame, header=True)
        except Exception as error:  # the library expects every byte to be right
            raise KafkaProtocolError("an answer that cannot be decoded") from error
        if not asked.answer.done():  # its deadline may have passed
            asked.answer.set_result(response)


def _fail(future: "asyncio.Future[Any]", error: KafkaError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # an error that is never awaited would be logged


def _check_size(size: int, most: int) -> None:
    if not _SIZE.size <= size <= most:
        raise InvalidReceiveError(f"{size} bytes; the request allows {most}")
