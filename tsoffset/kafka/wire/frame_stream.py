"""The requests of one kind and call over one connection, many of them in flight.

A future, a timer, a turn of the loop and a system call per request would take longer than a Fetch
of one batch or a time lookup itself. So a stream writes many requests together, takes their answers
in the order in which they arrive, and wakes the caller once, at the end.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Generic, Protocol, TypeVar

from kafka.errors import (
    CorrelationIdError,
    KafkaConnectionError,
    KafkaError,
    KafkaProtocolError,
    KafkaTimeoutError,
    RequestTimedOutError,
    ThrottlingQuotaExceededError,
)

from tsoffset.kafka.broker_connection import FIRST_STREAM_ID, BrokerConnection
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.rate_limit import Rate, Throttle, Window
from tsoffset.kafka.wire.flexible_encoding import MALFORMED


class Answer(Protocol):
    """A decoded response."""

    @property
    def throttle_time_ms(self) -> int:
        """How long the broker throttles."""


Q = TypeVar("Q")
A = TypeVar("A", bound=Answer)

# The ids of concurrent streams do not overlap.
_IDS = 1 << 20
_STREAMS = 1_000
_numbers = count()

_PAUSE_SECONDS = 0.02
_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Codec(Generic[Q, A]):
    """The encoding of one kind of request, in one version.

    `encode` makes the frame for a question and a correlation id. `decode` reads a response's frame
    without its size; it raises KafkaProtocolError or one of MALFORMED if it is no such response,
    and KafkaTimeoutError if reading all of it would exceed the call's time.
    `held_back` is true if a broker that throttles has omitted the result: brokers answer other
    requests than Fetch before they throttle (KIP-219).
    """

    encode: Callable[[Q, int], bytes]
    decode: Callable[[memoryview], A]
    held_back: Callable[[A], bool] = lambda _: False


class FrameStream(Generic[Q, A]):
    """The requests of one kind and call over one connection.

    `take` gets every question exactly once, with its answer or with the KafkaError instead.
    `may_send` is called right before a request is sent. `sent` gets the number of requests,
    `throttled` the additional seconds for which a broker throttles.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        questions: Iterable[Q],
        codec: Codec[Q, A],
        take: Callable[[Q, A | KafkaError], None],
        sent: Callable[[int], None],
        throttled: Callable[[float], None],
        *,
        window: Window,
        rate: Rate,
        rest: Throttle,
        deadline: Deadline,
        request_timeout_ms: int,
        answer_bytes: int,
        may_send: Callable[[Q], bool] | None = None,
    ) -> None:
        self._connection = connection
        self._left = deque(questions)
        self._codec = codec
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
        # Questions with the send times of their requests, and the number of answers before the
        # first of them.
        self._under_way: deque[tuple[Q, float]] = deque()
        self._answered = 0
        self._first_id = FIRST_STREAM_ID + next(_numbers) % _STREAMS * _IDS
        # Whether the broker throttles for longer than any call may wait.
        self.outlasted = False
        self._lost: KafkaError | None = None
        self._broke: Exception | None = None
        self._turn: asyncio.Future[None] | None = None

    # --- the call --------------------------------------------------------------------------

    async def run(self) -> None:
        """Send and receive until every question has its answer."""
        loop = asyncio.get_running_loop()
        self._connection.attach(self)
        try:
            while True:
                self._ask()
                if self._broke is not None:
                    raise self._broke
                if not self._under_way and not self._left:
                    return
                self._turn = loop.create_future()
                timer = loop.call_at(self._next_look(), self._wake)
                await self._turn
                timer.cancel()
                self._end_what_is_late()
        finally:
            self._connection.detach(self)
            if self._under_way:
                # The answers would be lost.
                self._connection.close(KafkaConnectionError("the call was given up"))

    def _ask(self) -> None:
        """Send what may be sent now."""
        if self._lost is not None:
            self._give_up(self._lost)
        elif self._deadline.over:
            throttled = self._rest.until > self._deadline.started
            late = ThrottlingQuotaExceededError if throttled else KafkaTimeoutError
            left, self._left = self._left, deque()
            for question in left:
                self._take(question, late("the call's deadline has passed"))
        else:
            self._send(time.monotonic())

    def _send(self, now: float) -> None:
        room = min(self._window.size - len(self._under_way), len(self._left))
        # A turn of the loop and a system call for each would dominate the cost: several are sent
        # together, while the broker still has most of the window to answer.
        if room <= 0 or room < min(self._window.size // _TOGETHER, len(self._left)):
            return
        if self._waits(now):
            return
        frames = []
        for _ in range(room):
            question = self._left.popleft()
            if self._may_send is not None and not self._may_send(question):
                self._take(question, KafkaTimeoutError("not sent, since it is too late"))
                continue
            number = self._answered + len(self._under_way)
            frames.append(self._codec.encode(question, self._first_id + number % _IDS))
            self._asked_bytes = max(self._asked_bytes, len(frames[-1]))
            self._under_way.append((question, now))
        if frames:
            self._sent(len(frames))
            self._connection.write(b"".join(frames))

    def _waits(self, now: float) -> bool:
        """Whether nothing may be sent now, because of a broker, a limit or the connection."""
        if self._rate.free_at > now:
            self._deadline.rest_until(self._rate.free_at)
            return True
        if self._waits_until > now:
            if self._deadline.may_rest(self._rest.seconds):
                self._deadline.rest_until(self._rest.until)
            return True
        return not self._connection.may_send

    def _next_look(self) -> float:
        """When something has to be done, whatever arrives."""
        now = time.monotonic()
        looks = []
        if self._under_way:
            looks.append(self._late_at())
        if self._left and len(self._under_way) < self._window.size:
            looks.append(max(self._waits_until, self._rate.free_at, now + _PAUSE_SECONDS))
        if self._left:
            looks.append(self._deadline.ends)
        return max(now, min(looks))

    def _late_at(self) -> float:
        """When the oldest request in flight is too old. A request behind a throttled one is
        answered later by as much."""
        since = max(self._under_way[0][1], self._waits_until)
        return min(since + self._timeout, max(self._deadline.ends, self._waits_until))

    def _end_what_is_late(self) -> None:
        if self._under_way and self._lost is None and time.monotonic() >= self._late_at():
            self._connection.close(RequestTimedOutError(f"no answer in {self._timeout:g} s"))

    def _give_up(self, error: KafkaError) -> None:
        under_way, left = self._under_way, self._left
        self._under_way, self._left = deque(), deque()
        for question, _ in under_way:
            self._take(question, error)
        # Requests that were not sent are not the cause of a malformed answer.
        unsent = error if not isinstance(error, KafkaProtocolError) else KafkaConnectionError()
        for question in left:
            self._take(question, unsent)

    def _wake(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    # --- what the connection calls ---------------------------------------------------------

    @property
    def most_bytes(self) -> int:
        """The largest answer that is accepted: twice the largest question, and the kind's
        allowance."""
        return self._answer_bytes + 2 * self._asked_bytes

    def asked(self, correlation_id: int) -> bool:
        return 0 <= correlation_id - self._first_id < _IDS

    def take_frame(self, frame: memoryview, correlation_id: int) -> None:
        """Take an answer. Raises KafkaProtocolError if it is not the next one."""
        asked = self._first_id + self._answered % _IDS
        if correlation_id != asked or not self._under_way:
            raise CorrelationIdError(f"asked {asked}, answered {correlation_id}")
        question, _ = self._under_way.popleft()
        self._answered += 1
        self._window.answered(len(frame))
        self._rate.spend(len(frame))
        try:
            self._take_answer(question, self._decoded(frame))
        except Exception as error:  # fails this call only; other streams continue
            self._broke = error

    def go_on(self) -> None:
        """Send what may be sent now; wake the call if it has to end or to check again."""
        if self._broke is None:
            try:
                self._ask()
            except Exception as error:  # raised by the call, which is woken
                self._broke = error
        if self._broke is not None or not self._under_way:
            self._wake()

    def connection_lost(self, error: KafkaError) -> None:
        self._lost = error
        self._wake()

    # --- answers ---------------------------------------------------------------------------

    def _take_answer(self, question: Q, answer: A | KafkaError) -> None:
        if not isinstance(answer, KafkaError) and answer.throttle_time_ms > 0:
            self._throttle(answer.throttle_time_ms / 1000)
            if self._codec.held_back(answer):
                self._left.append(question)
                return
        self._take(question, answer)

    def _decoded(self, frame: memoryview) -> A | KafkaError:
        try:
            return self._codec.decode(frame)
        except (KafkaProtocolError, KafkaTimeoutError) as error:
            return error
        except MALFORMED:
            return KafkaProtocolError("an answer that cannot be read")

    def _throttle(self, seconds: float) -> None:
        """The broker throttles all calls (KIP-219). If that is too long for this call, the call
        ends at its limit."""
        now = time.monotonic()
        until, rested = now + seconds, max(now, self._rest.until)
        if until > self._rest.until:
            self._rest.until, self._rest.seconds = until, seconds
        self._window.throttled()
        if self._deadline.may_rest(seconds):
            self._deadline.rest_until(self._rest.until)
        else:
            self.outlasted = True
        self._throttled(max(0.0, self._waits_until - rested))

    @property
    def _waits_until(self) -> float:
        """Until when nothing is sent: when the broker allows it, or when the call ends."""
        may_rest = self._deadline.may_rest(self._rest.seconds)
        return self._rest.until if may_rest else min(self._rest.until, self._deadline.ends)
