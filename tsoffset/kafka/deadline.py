"""How much time a call has left."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time that a whole call, retries included, may take."""

    started: float
    ends: float

    @classmethod
    def after(cls, milliseconds: int) -> "Deadline":
        """The deadline of a call that begins now."""
        now = time.monotonic()
        return cls(now, now + milliseconds / 1000)

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
