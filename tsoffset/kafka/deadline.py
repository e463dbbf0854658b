"""How much time a call has left."""

import time

# In lengths of the call itself. A small quota that large answers have used up takes more than one
# to recover; what a broker may say is 24 days.
_LONGEST_REST = 10


class Deadline:
    """A point in time that a whole call, retries included, may take.

    It moves by the time in which the call was told to wait: by a broker that throttles, unless
    that is too long, or by a limit of the configuration. That is not the time of somebody who
    does not answer.
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
        """The deadline of a call that begins now, and that waits for each answer of a broker,
        or for a connection to it, no longer than `step_ms` (None: as long as the client may)."""
        now = time.monotonic()
        return cls(now, now + milliseconds / 1000, step_ms)

    def within(self, milliseconds: int) -> "Deadline":
        """The deadline of a part of the call that begins now and may take so long; it ends with the
        call at the latest."""
        now = time.monotonic()
        return Deadline(now, min(self.ends, now + milliseconds / 1000), of_call=self.of_call)

    def may_rest(self, seconds: float) -> bool:
        """Whether a broker may have the call wait for that long at once."""
        return seconds <= self._longest_rest

    def rest_until(self, moment: float) -> None:
        """Leave out the time from now to `moment`; what was left out before counts once."""
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
        """Since the call began."""
        return time.monotonic() - self.started

    @property
    def over(self) -> bool:
        """True once there is no time left."""
        return time.monotonic() >= self.ends

    def milliseconds(self, at_most: int) -> int:
        """What one step may take that is allowed `at_most`; at least 1."""
        return max(1, min(at_most, int(self.seconds_left * 1000)))

    def at_most_a_step(self, milliseconds: int) -> int:
        """That long, or what an answer of one broker may take, whichever is less."""
        return milliseconds if self.step_ms is None else min(milliseconds, self.step_ms)
