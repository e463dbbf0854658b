"""The requests of one kind and call over one connection, many of them in flight.

A future, a timer, a turn of the loop and a system call per request would take longer than a Fetch
of one batch or a time lookup itself. So a stream writes many requests together, takes their answers
in the order in which they arrive, and wakes the caller once, at the end.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
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


class Codec(ABC, Generic[Q, A]):
    """The encoding of one kind of request, in one version."""

    @abstractmethod
    def encode(self, question: Q, correlation_id: int) -> bytes:
        """The whole frame of a request."""

    @abstractmethod
    def decode(self, frame: memoryview) -> A:
        """The answer in a response's frame without its size. Raises KafkaProtocolError or one of
        MALFORMED if it is no such response, and KafkaTimeoutError if reading all of it would exceed
        the call's time."""

    def held_back(self, answer: A) -> bool:
        """Whether a broker that throttles has omitted the result: brokers answer other requests
        than Fetch before they throttle (KIP-219)."""
        return False


@dataclass(slots=True, eq=False)
class FrameStream(Generic[Q, A]):
    """The requests of one kind and call over one connection, for the questions that are `left`.

    `take` gets every question exactly once, with its answer or with the KafkaError instead.
    `may_send` is called right before a request is sent. `sent` counts the requests, and
    `throttled_seconds` is the additional time for which the broker throttles.
    """

    connection: BrokerConnection
    left: deque[Q]
    codec: Codec[Q, A]
    take: Callable[[Q, A | KafkaError], None]
    window: Window
    rate: Rate
    rest: Throttle
    deadline: Deadline
    timeout_seconds: float
    answer_bytes: int
    may_send: Callable[[Q], bool] | None = None
    # Whether the broker throttles for longer than any call may wait.
    outlasted: bool = False
    sent: int = 0
    throttled_seconds: float = 0.0
    _asked_bytes: int = 0
    # Questions with the send times of their requests, and the number of answers before the first
    # of them.
    _under_way: deque[tuple[Q, float]] = field(default_factory=deque)
    _answered: int = 0
    _first_id: int = field(
        default_factory=lambda: FIRST_STREAM_ID + next(_numbers) % _STREAMS * _IDS
    )
    _lost: KafkaError | None = None
    _broke: Exception | None = None
    _turn: "asyncio.Future[None] | None" = None

    # --- the call --------------------------------------------------------------------------

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self.connection.attach(self)
        try:
            while True:
                self._ask()
                if self._broke is not None:
                    raise self._broke
                if not self._under_way and not self.left:
                    return
                self._turn = loop.create_future()
                timer = loop.call_at(self._next_look(), self._wake)
                await self._turn
                timer.cancel()
                self._end_what_is_late()
        finally:
            self.connection.detach(self)
            if self._under_way:
                # Their answers are still to come, and no stream would take them.
                self.connection.close(KafkaConnectionError("the call was given up"))

    def _ask(self) -> None:
        if self._lost is not None:
            self._give_up(self._lost)
        elif self.deadline.over:
            throttled = self.rest.until > self.deadline.started
            late = ThrottlingQuotaExceededError if throttled else KafkaTimeoutError
            left, self.left = self.left, deque()
            for question in left:
                self.take(question, late("the call's deadline has passed"))
        else:
            self._send(time.monotonic())

    def _send(self, now: float) -> None:
        room = min(self.window.size - len(self._under_way), len(self.left))
        # A turn of the loop and a system call for each would dominate the cost: several are sent
        # together, while the broker still has most of the window to answer.
        if room <= 0 or room < min(self.window.size // _TOGETHER, len(self.left)):
            return
        if self._waits(now):
            return
        frames = []
        for _ in range(room):
            question = self.left.popleft()
            if self.may_send is not None and not self.may_send(question):
                self.take(question, KafkaTimeoutError("not sent, since it is too late"))
                continue
            number = self._answered + len(self._under_way)
            frames.append(self.codec.encode(question, self._first_id + number % _IDS))
            self._asked_bytes = max(self._asked_bytes, len(frames[-1]))
            self._under_way.append((question, now))
        if frames:
            self.sent += len(frames)
            self.connection.write(b"".join(frames))

    def _waits(self, now: float) -> bool:
        """Whether nothing may be sent now, because of a broker, a limit or the connection."""
        if self.rate.free_at > now:
            self.deadline.rest_until(self.rate.free_at)
            return True
        if self._waits_until > now:
            if self.deadline.may_rest(self.rest.seconds):
                self.deadline.rest_until(self.rest.until)
            return True
        return not self.connection.may_send

    def _next_look(self) -> float:
        """When something has to be done, whatever arrives."""
        now = time.monotonic()
        looks = []
        if self._under_way:
            looks.append(self._late_at())
        if self.left and len(self._under_way) < self.window.size:
            looks.append(max(self._waits_until, self.rate.free_at, now + _PAUSE_SECONDS))
        if self.left:
            looks.append(self.deadline.ends)
        return max(now, min(looks))

    @property
    def _due_since(self) -> float:
        """When the time for the next answer began. A broker answers the requests of a connection
        one after the other, so the time of each begins when the one before it was answered, and
        after a throttle. A step begins when the request is sent."""
        since = max(self._under_way[0][1], self._waits_until)
        if self.deadline.step_ms is None:
            since = max(since, self.connection.last_read)
        return since

    def _late_at(self) -> float:
        """When the oldest request in flight is too old, or the call is over."""
        ends = max(self.deadline.ends, self._waits_until)
        return min(self._due_since + self.timeout_seconds, ends)

    def _end_what_is_late(self) -> None:
        if not self._under_way or self._lost is not None:
            return
        now = time.monotonic()
        if now >= self._late_at():
            waited = max(0.0, now - self._due_since)
            self.connection.close(RequestTimedOutError(f"no answer in {waited:.1f} s"))

    def _give_up(self, error: KafkaError) -> None:
        under_way, left = self._under_way, self.left
        self._under_way, self.left = deque(), deque()
        for question, _ in under_way:
            self.take(question, error)
        # Requests that were not sent are not the cause of a malformed answer.
        unsent = error if not isinstance(error, KafkaProtocolError) else KafkaConnectionError()
        for question in left:
            self.take(question, unsent)

    def _wake(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    # --- what the connection calls ---------------------------------------------------------

    @property
    def most_bytes(self) -> int:
        """The largest answer that is accepted: twice the largest question, and the kind's
        allowance."""
        return self.answer_bytes + 2 * self._asked_bytes

    def has_sent(self, correlation_id: int) -> bool:
        return 0 <= correlation_id - self._first_id < _IDS

    def take_frame(self, frame: memoryview, correlation_id: int) -> None:
        """Take an answer. Raises KafkaProtocolError if it is not the next one."""
        asked = self._first_id + self._answered % _IDS
        if correlation_id != asked or not self._under_way:
            raise CorrelationIdError(f"asked {asked}, answered {correlation_id}")
        question, _ = self._under_way.popleft()
        self._answered += 1
        self.window.note_answer(len(frame))
        self.rate.spend(len(frame))
        try:
            self._take_answer(question, self._decode(frame))
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
            if self.codec.held_back(answer):
                self.left.append(question)
                return
        self.take(question, answer)

    def _decode(self, frame: memoryview) -> A | KafkaError:
        try:
            return self.codec.decode(frame)
        except (KafkaProtocolError, KafkaTimeoutError) as error:
            return error
        except MALFORMED:
            return KafkaProtocolError("an answer that cannot be read")

    def _throttle(self, seconds: float) -> None:
        """The broker throttles all calls (KIP-219). If that is too long for this call, the call
        ends at its limit."""
        now = time.monotonic()
        until, rested = now + seconds, max(now, self.rest.until)
        if until > self.rest.until:
            self.rest.until, self.rest.seconds = until, seconds
        self.window.note_throttling()
        if self.deadline.may_rest(seconds):
            self.deadline.rest_until(self.rest.until)
        else:
            self.outlasted = True
        self.throttled_seconds += max(0.0, self._waits_until - rested)

    @property
    def _waits_until(self) -> float:
        """Until when nothing is sent: when the broker allows it, or when the call ends."""
        may_rest = self.deadline.may_rest(self.rest.seconds)
        return self.rest.until if may_rest else min(self.rest.until, self.deadline.ends)
