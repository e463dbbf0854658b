"""Requests over a connection of the library, past its handling of single requests.

For each request kafka-python makes a future, a timer in a heap that is searched again when
the answer is there, a turn of its loop to wake who waits for it, and a system call for the
bytes of its own. Next to a Fetch of one batch or a time lookup that is most of the time. So
while requests are under way, a `FrameStream` stands between a connection and its transport, as
asyncio's `set_protocol` means it: it writes many requests at once, takes the answers to its own
correlation ids in the order in which they come, and hands everything else on: to the streams
of other calls over the same connection, on top of which it stands, and to the library.
Connecting, encryption, authentication (again, too, when a session ends) and closing stay the
library's.
"""

import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, Protocol, TypeVar

from kafka.errors import (
    CorrelationIdError,
    InvalidReceiveError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    RequestTimedOutError,
    ThrottlingQuotaExceededError,
)
from kafka.future import Future
from kafka.net.connection import KafkaConnection
from kafka.net.selector import NetworkSelector

from tsoffset.kafka.client_settings import LIBRARY_ANSWER_BYTES
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.pace import Rate, Rest, Window


class Answer(Protocol):
    """What a codec makes of a response."""

    @property
    def throttle_time_ms(self) -> int:
        """For how long the broker wants to be left alone."""

    @property
    def held_back(self) -> bool:
        """True where a broker that throttles has left out what was asked for."""


Q = TypeVar("Q")
A = TypeVar("A", bound=Answer)

# The library counts its requests from 1 on; ours lie above what it ever reaches, and those of each
# stream apart from those of others that are under way.
_FIRST_ID = 1 << 30
_IDS = 1 << 20
_STREAMS = 1_000
_numbers = count()

# What each frame begins with: its size, and, of the same form, the id of what it answers.
_SIZE = struct.Struct(">i")
_PAUSE_SECONDS = 0.02
_TOGETHER = 4
_THROTTLED = "told to by tsoffset"


@dataclass(frozen=True, slots=True)
class Codec(Generic[Q, A]):
    """How one kind of request goes over the wire, in one version.

    `encode` makes the frame for a question and a correlation id; `decode` reads a response's
    frame without its size, and raises KafkaProtocolError or struct.error where it is none.
    """

    encode: Callable[[Q, int], bytes]
    decode: Callable[[memoryview], A]


class FrameStream(Generic[Q, A]):
    """The requests of one kind and call over one connection.

    `take` gets every question exactly once, with its answer or the KafkaError that came instead.
    `may_send` is asked right before a request goes out. `sent` is told how many did, `throttled`
    for how many more seconds a broker is left alone.
    """

    # The transport looks for the library's metrics here.
    _sensors = None

    def __init__(
        self,
        loop: NetworkSelector,
        connection: KafkaConnection,
        questions: Iterable[Q],
        codec: Codec[Q, A],
        take: Callable[[Q, A | KafkaError], None],
        sent: Callable[[int], None],
        throttled: Callable[[float], None],
        *,
        window: Window,
        rate: Rate,
        rest: Rest,
        deadline: Deadline,
        request_timeout_ms: int,
        answer_bytes: int,
        may_send: Callable[[Q], bool] | None = None,
    ) -> None:
        self._loop = loop
        self._connection = connection
        self._left = deque(questions)
        self._encode, self._decode = codec.encode, codec.decode
        self._take = take
        self._sent = sent
        self._throttled = throttled
        self._window = window
        self._rate = rate
        self._rest = rest
        self._deadline = deadline
        self._timeout = request_timeout_ms / 1000
        self._answer_bytes = answer_bytes
        self._asked_bytes = 0
        self._may_send = may_send
        # Questions with the times of their requests, and how many came before the first of them.
        self._under_way: deque[tuple[Q, float]] = deque()
        self._answered = 0
        self._first_id = _FIRST_ID + next(_numbers) % _STREAMS * _IDS
        # What the transport has called before: another stream, or the connection.
        self._below: Any = connection
        self._chunks: list[bytes] = []
        self._have = 0
        self._need = _SIZE.size
        # Whether the broker wants to be left alone for longer than any call may rest.
        self.outlasted = False
        self._lost: BaseException | None = None
        self._broke: Exception | None = None
        self._turn: Any = None

    # --- the call --------------------------------------------------------------------------

    async def run(self) -> None:
        """Ask and take until every question has its answer."""
        transport = self._connection.transport
        if transport is None or not self._connection.connected:
            self._lost = KafkaConnectionError("the connection has ended")
        else:
            self._step_in_front(transport)
        try:
            while True:
                self._ask()
                if self._broke is not None:
                    raise self._broke
                if not self._under_way and not self._left:
                    return
                self._turn = Future()
                timer = self._loop.call_at(self._next_look(), self._wake)
                await self._turn
                self._loop.cancel(timer)
                self._end_what_is_late()
        finally:
            if transport is not None and self._lost is None:
                self._step_aside(transport)
                if self._under_way:
                    # Nobody would take the answers.
                    self._connection.close(KafkaConnectionError("the call was given up"))

    def _step_in_front(self, transport: Any) -> None:
        """Have the transport call this stream, and this one what it has called before."""
        self._below = below = transport.get_protocol()
        if isinstance(below, FrameStream):
            # With the begin of an answer that is still to come.
            self._chunks, self._have, self._need = below._chunks, below._have, below._need
            below._chunks, below._have, below._need = [], 0, _SIZE.size
        transport.set_protocol(self)

    def _step_aside(self, transport: Any) -> None:
        """Have the transport call what it would without this stream."""
        above = transport.get_protocol()
        if above is self:
            transport.set_protocol(self._below)
            if self._chunks:  # the begin of an answer to somebody else
                self._below.data_received(b"".join(self._chunks))
            return
        while isinstance(above, FrameStream):
            if above._below is self:
                above._below = self._below
                return
            above = above._below

    def _ask(self) -> None:
        """Send what may be sent now."""
        if self._lost is not None:
            self._give_up(self._lost)
        elif self._deadline.over:
            throttled = self._rest.until > self._deadline.started
            late = ThrottlingQuotaExceededError if throttled else KafkaTimeoutError
            left, self._left = self._left, deque()
            for question in left:
                self._take(question, late("the call's time is up"))
        else:
            self._send(time.monotonic())

    def _send(self, now: float) -> None:
        room = min(self._window.size - len(self._under_way), len(self._left))
        # A turn of the loop and a system call for each would cost more than the rest: some are
        # sent together, while the broker still has most of the window to answer.
        if room <= 0 or room < min(self._window.size // _TOGETHER, len(self._left)):
            return
        if self._rests(now):
            return
        frames = []
        for _ in range(room):
            question = self._left.popleft()
            if self._may_send is not None and not self._may_send(question):
                self._take(question, KafkaTimeoutError("not sent, since it is too late"))
                continue
            number = self._answered + len(self._under_way)
            frames.append(self._encode(question, self._first_id + number % _IDS))
            self._asked_bytes = max(self._asked_bytes, len(frames[-1]))
            self._under_way.append((question, now))
        if frames:
            self._sent(len(frames))
            self._connection.transport.write(b"".join(frames))

    def _rests(self, now: float) -> bool:
        """Whether nothing may be sent now: a broker or a limit says so, or the library is
        about to prove again who we are, and brokers take nothing else meanwhile."""
        if self._rate.free_at > now:
            self._deadline.rest_until(self._rate.free_at)
            return True
        if self._rests_until > now:
            if self._deadline.may_rest(self._rest.seconds):
                self._deadline.rest_until(self._rest.until)
            return True
        return bool(self._connection.paused) or self._connection._reauth.is_reauthenticating

    def _next_look(self) -> float:
        """When there is something to do, whatever comes."""
        now = time.monotonic()
        looks = []
        if self._under_way:
            looks.append(self._late_at())
        if self._left and len(self._under_way) < self._window.size:
            looks.append(max(self._rests_until, self._rate.free_at, now + _PAUSE_SECONDS))
        if self._left:
            looks.append(self._deadline.ends)
        return max(now, min(looks))

    def _late_at(self) -> float:
        """When the oldest request under way is too old. One that lies behind a throttled one
        is answered later by as much."""
        since = max(self._under_way[0][1], self._rests_until)
        return min(since + self._timeout, max(self._deadline.ends, self._rests_until))

    def _end_what_is_late(self) -> None:
        if self._under_way and self._lost is None and time.monotonic() >= self._late_at():
            self._connection.close(RequestTimedOutError(f"no answer in {self._timeout:g} s"))

    def _give_up(self, error: BaseException) -> None:
        if not isinstance(error, KafkaError):
            error = KafkaConnectionError(str(error))
        under_way, left = self._under_way, self._left
        self._under_way, self._left = deque(), deque()
        for question, _ in under_way:
            self._take(question, error)
        # What was not sent is not at fault if an answer cannot be understood.
        unsent = error if not isinstance(error, KafkaProtocolError) else KafkaConnectionError()
        for question in left:
            self._take(question, unsent)

    def _wake(self) -> None:
        if self._turn is not None and not self._turn.is_done:
            self._turn.success(None)

    # --- what the transport calls ----------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take in what has come, and send more."""
        self._chunks.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        self._read_frames()
        for stream in self._all():
            stream._go_on()

    def _all(self) -> "Iterator[FrameStream[Any, Any]]":
        """This stream and those that it stands on."""
        stream: Any = self
        while isinstance(stream, FrameStream):
            yield stream
            stream = stream._below

    def _go_on(self) -> None:
        if self._broke is None:
            try:
                self._ask()
            except Exception as error:  # the transport would swallow it, and nobody would wake
                self._broke = error
        if self._broke is not None or not self._under_way:
            self._wake()  # to end, or to look when it may go on

    def _read_frames(self) -> None:
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        view = memoryview(data)
        position, end = 0, len(data)
        self._need = _SIZE.size
        while end - position >= _SIZE.size:
            (size,) = _SIZE.unpack_from(data, position)
            _check_size(size, max(one._most_bytes for one in self._all()))
            begin = position + _SIZE.size
            if end - begin < _SIZE.size:
                self._need = 2 * _SIZE.size
                break
            (correlation_id,) = _SIZE.unpack_from(data, begin)
            stream = self._of(correlation_id)
            _check_size(size, LIBRARY_ANSWER_BYTES if stream is None else stream._most_bytes)
            if end - begin < size:
                self._need = _SIZE.size + size
                break
            self._hand_out(view[begin : begin + size], correlation_id, stream)
            position = begin + size
        self._chunks = [data[position:]] if position < end else []
        self._have = end - position

    def _of(self, correlation_id: int) -> "FrameStream[Any, Any] | None":
        """The stream that has asked so, None where the library has."""
        return next(
            (one for one in self._all() if 0 <= correlation_id - one._first_id < _IDS), None
        )

    @property
    def _most_bytes(self) -> int:
        return self._answer_bytes + 2 * self._asked_bytes

    def _hand_out(
        self, frame: memoryview, correlation_id: int, stream: "FrameStream[Any, Any] | None"
    ) -> None:
        if stream is not None:
            try:
                stream._frame(frame, correlation_id)
            except KafkaProtocolError:
                raise
            except Exception as error:
                stream._broke = error
            return
        try:
            self._connection.data_received(_SIZE.pack(len(frame)) + frame.tobytes())
        except KafkaProtocolError:
            raise
        except Exception as error:  # ends the connection, which tells all streams
            raise KafkaProtocolError(f"the library could not take an answer: {error}") from error

    def _frame(self, frame: memoryview, correlation_id: int) -> None:
        asked = self._first_id + self._answered % _IDS
        if correlation_id != asked or not self._under_way:
            raise CorrelationIdError(f"asked {asked}, answered {correlation_id}")
        question, _ = self._under_way.popleft()
        self._answered += 1
        self._window.answered(len(frame))
        self._rate.spend(len(frame))
        answer = self._decoded(frame)
        if not isinstance(answer, KafkaError) and answer.throttle_time_ms > 0:
            self._leave_alone(answer.throttle_time_ms / 1000)
            if answer.held_back:
                self._left.append(question)
                return
        self._take(question, answer)

    def _decoded(self, frame: memoryview) -> A | KafkaError:
        try:
            return self._decode(frame)
        except (KafkaProtocolError, KafkaTimeoutError) as error:
            return error
        except struct.error:
            return KafkaProtocolError("an answer that is cut off")

    def _leave_alone(self, seconds: float) -> None:
        """A broker has said for how long it is to be left alone (KIP-219), by everybody who
        uses this connection. If that is too long for the call, the call ends in it."""
        connection = self._connection
        now = time.monotonic()
        until, rested = now + seconds, max(now, self._rest.until)
        if until > self._rest.until:
            self._rest.until, self._rest.seconds = until, seconds
        self._window.throttled()
        if self._deadline.may_rest(seconds):
            self._deadline.rest_until(self._rest.until)
        else:
            self.outlasted = True
        self._throttled(max(0.0, self._rests_until - rested))
        reason = f"{_THROTTLED} {until}"
        connection.pause(reason)
        self._loop.call_at(self._rests_until, lambda: connection.unpause(reason))

    @property
    def _rests_until(self) -> float:
        """Until when nothing is asked: when the broker allows it, or when the call ends."""
        may_rest = self._deadline.may_rest(self._rest.seconds)
        return self._rest.until if may_rest else min(self._rest.until, self._deadline.ends)

    def connection_lost(self, error: BaseException | None) -> None:
        """The connection has ended, and nothing more comes."""
        self._lost = error or KafkaConnectionError("the connection has ended")
        self._below.connection_lost(error)
        self._wake()

    def eof_received(self) -> bool:
        """Hand on."""
        return bool(self._connection.eof_received())

    def pause_writing(self) -> None:
        """Hand on."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Hand on."""
        self._connection.resume_writing()


def _check_size(size: int, most: int) -> None:
    if not _SIZE.size <= size <= most:
        raise InvalidReceiveError(f"{size} bytes, where no more than {most} were asked for")
