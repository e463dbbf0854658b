"""Free ports on the loopback interface."""

import random
import socket
import threading
from pathlib import Path

from tsoffset.errors import PortTaken

HOST = "127.0.0.1"

_LOWEST = 15_000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given_out: set[int] = set()
_lock = threading.Lock()


def free_port() -> int:
    """A free port that this function has not returned before in this process.

    It is below the range from which the system takes ports for outgoing connections: a port of that
    range may be taken by the time a stopped broker returns, and a client that connects to the
    closed port can even be connected to itself. Another process may take the port before it is
    used: be ready to try again.
    """
    with _lock:
        for _ in range(1000):
            port = random.randrange(_LOWEST, _highest())  # noqa: S311 (no secret)
            if port not in _given_out and is_free(port):
                _given_out.add(port)
                return port
    raise PortTaken(
        f"find a free port on {HOST}: none among 1000 tried between {_LOWEST} and {_highest()}; "
        "end what listens there"
    )


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As in Java: connections in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _highest() -> int:
    try:
        lowest_ephemeral = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        lowest_ephemeral = 32_768
    # If the system uses nearly all ports for outgoing connections, there is no room below them.
    return lowest_ephemeral if lowest_ephemeral > _LOWEST + 1000 else 60_000
