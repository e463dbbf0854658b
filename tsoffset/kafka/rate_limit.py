"""Limits on bytes per second and on requests in flight."""

import time
from dataclasses import dataclass

# The most unread bytes in flight on one connection: they are in the memory of this process or of
# the broker.
_BYTES_UNDER_WAY = 16_000_000
# With a rate limit, at most the bytes of this time are in flight.
_SECONDS_UNDER_WAY = 0.25
# Before the size of answers is known.
_FIRST_WINDOW = 16
# The average is over about this many answers, so that it adapts when they grow.
_REMEMBERED = 64


@dataclass(slots=True)
class Rate:
    """A limit on the bytes of all answers to one client; None means no limit.

    The size of an answer is known only after it has arrived. So each answer is followed by a time
    in which nothing is sent. Over any period, no more arrives than the limit allows, except what
    was in flight when it began.
    """

    bytes_per_second: int | None = None
    free_at: float = 0.0

    def spend(self, size: int) -> None:
        if self.bytes_per_second is not None:
            self.free_at = max(self.free_at, time.monotonic()) + size / self.bytes_per_second


UNLIMITED = Rate()


@dataclass(slots=True)
class Throttle:
    """How long a broker throttles all calls to it, and until when."""

    until: float = 0.0
    seconds: float = 0.0


class Window:
    """The number of requests in flight on one connection.

    At most `limit`; fewer if answers are large, to limit memory, or if a rate is given. A broker
    that throttles gets one request at a time, and more again as it answers.
    """

    def __init__(self, limit: int, rate: Rate) -> None:
        self._limit = limit
        self._rate = rate.bytes_per_second
        # Up to this average size, the whole limit of answers may be in flight.
        self._fits = _BYTES_UNDER_WAY // limit
        if self._rate is not None:
            self._fits = min(self._fits, int(_SECONDS_UNDER_WAY * self._rate) // limit)
        self._answers = 0
        self._bytes = 0
        self.size = min(limit, _FIRST_WINDOW) if self._rate is None else 1

    def note_answer(self, size: int) -> None:
        self._answers += 1
        self._bytes += size
        if self._answers == 2 * _REMEMBERED:
            self._answers //= 2
            self._bytes //= 2
        if self.size == self._limit and self._bytes < self._fits * self._answers:
            return
        most = _BYTES_UNDER_WAY * self._answers // max(1, self._bytes)
        if self._rate is not None:
            allowed = int(_SECONDS_UNDER_WAY * self._rate * self._answers)
            most = min(most, allowed // max(1, self._bytes))
        # Doubles with each answered window, if needed.
        self.size = max(1, min(self._limit, most, self.size + 1))

    def note_throttling(self) -> None:
        self.size = 1
