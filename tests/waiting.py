"""How tests wait for what others do."""

import time
from collections.abc import Callable

# Java and Spark may take minutes to start on a busy machine.
TIMEOUT_SECONDS = 300.0


def wait_until(
    holds: Callable[[], bool], what: str = "it holds", *, seconds: float = TIMEOUT_SECONDS
) -> None:
    """Ask until it holds; fail after that time of asking."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)
