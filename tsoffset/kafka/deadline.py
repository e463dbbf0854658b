"""The time that a call has left."""

import time

# The longest throttling that is waited for, in multiples of the call's time limit: a small quota
# needs more than one to recover from large answers, but a broker may announce up to 24 days.
_LONGEST_REST = 10


class Deadline:
    """The point in time at which a whole call ends, including its retries.

    Waiting for a broker that throttles, or for a limit of the configuration, moves the deadline,
    unless a broker's throttle time is too long.
    """

    __slots__ = ("_longest_rest", "_rests_until", "ends", "of_call", "started", "step_ms")

    def __init__(
        self,
        started: float,
        ends: float,
        step_ms: int | None = None,
        of_call: "Deadline | None" = None,
    ) -> None:
        self.started = started
        self.of_call = of_call or self
        self.ends = ends
        self.step_ms = step_ms
        self._rests_until = started
        self._longest_rest = _LONGEST_REST * (ends - started)

    @classmethod
    def after(cls, milliseconds: int, *, step_ms: int | None = None) -> "Deadline":
        """The deadline of a call that begins now. Each answer of a broker, and each connection, has
        `step_ms` (None: as long as the client settings allow)."""
        now = time.monotonic()
        return cls(now, now + milliseconds / 1000, step_ms)

    def within(self, milliseconds: int) -> "Deadline":
        """The deadline of a part of the call that begins now; it ends with the call at the
        latest."""
        now = time.monotonic()
        return Deadline(now, min(self.ends, now + milliseconds / 1000), of_call=self.of_call)

    def may_rest(self, seconds: float) -> bool:
        """Whether the call may wait this long at once for a broker that throttles."""
        return seconds <= self._longest_rest

    def rest_until(self, moment: float) -> None:
        """Exclude the time from now to `moment`; overlapping times count once."""
        begins = max(time.monotonic(), self._rests_until)
        if moment > begins:
            self.ends += moment - begins
            self._rests_until = moment

    @property
    def seconds_left(self) -> float:
        """Never negative."""
        return max(0.0, self.ends - time.monotonic())

    @property
    def seconds_spent(self) -> float:
        return time.monotonic() - self.started

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.ends

    def milliseconds(self, at_most: int) -> int:
        """The time for one step that may take `at_most`; at least 1."""
        return max(1, min(at_most, int(self.seconds_left * 1000)))

    def at_most_a_step(self, milliseconds: int) -> int:
        """That time, or the time for one answer, whichever is shorter."""
        return milliseconds if self.step_ms is None else min(milliseconds, self.step_ms)
