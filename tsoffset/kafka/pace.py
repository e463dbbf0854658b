"""How fast is asked: a limit on bytes per second, and one on what is under way at once."""

import time
from dataclasses import dataclass

# What may be under way unread on one connection: it is in the memory of this process or of
# the broker's.
_BYTES_UNDER_WAY = 16_000_000
# With a limit, as much as it allows for so long may be under way.
_SECONDS_UNDER_WAY = 0.25
# Before it is known how large answers are.
_FIRST_WINDOW = 16
# The average is that of about so many answers, so that it follows where they become larger.
_REMEMBERED = 64


@dataclass(slots=True)
class Rate:
    """A limit on the bytes that all answers to one client bring; None is none.

    An answer's size is known when it has come. So each one is paid for afterwards, by the
    time in which nothing more is asked: over any span of time no more comes than the limit
    allows, but for what was under way when it began.
    """

    bytes_per_second: int | None = None
    free_at: float = 0.0

    def spend(self, size: int) -> None:
        """Take notice of an answer of so many bytes."""
        if self.bytes_per_second is not None:
            self.free_at = max(self.free_at, time.monotonic()) + size / self.bytes_per_second


@dataclass(slots=True)
class Rest:
    """For how long a broker wants to be left alone, by all calls to it, and until when."""

    until: float = 0.0
    seconds: float = 0.0


class Window:
    """How many requests may be under way on one connection.

    At most `limit`; fewer where answers are large, so that the memory they take is bounded,
    or where a rate is given. A broker that throttles is asked for one thing at a time from
    then on, and for more again as it answers.
    """

    def __init__(self, limit: int, rate: Rate) -> None:
        self._limit = limit
        self._rate = rate.bytes_per_second
        # Up to this size on average, as many answers as may be fit.
        self._fits = _BYTES_UNDER_WAY // limit
        if self._rate is not None:
            self._fits = min(self._fits, int(_SECONDS_UNDER_WAY * self._rate) // limit)
        self._answers = 0
        self._bytes = 0
        self.size = min(limit, _FIRST_WINDOW) if self._rate is None else 1

    def answered(self, size: int) -> None:
        """Take notice of an answer of so many bytes."""
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
        # Twice as many with each window that is answered, if need be.
        self.size = max(1, min(self._limit, most, self.size + 1))

    def throttled(self) -> None:
        """Take notice of a broker that holds back."""
        self.size = 1
