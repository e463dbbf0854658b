"""Names of brokers, looked up beside the loop that drives their connections.

To ask the system for a name's addresses blocks until there is an answer, which takes as long as
the system likes: in the loop all deadlines would stand still, and so would its end.
"""

import contextlib
import socket
import threading
from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.future import Future
from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector

# The library asks the class that is registered for a proxy's scheme for sockets.
SCHEME = "tsoffset"

_Place = tuple[str, int]


class Loop(NetworkSelector):  # type: ignore[misc]  # no types in the library
    """The library's event loop, with a thread for each name that is being looked up: one at a
    time for each, however often it is asked for."""

    def __init__(self, **configs: Any) -> None:
        super().__init__(**configs)
        self._lookups: dict[_Place, Future] = {}

    def is_looking_up(self, host: str, port: int) -> bool:
        """Whether the system has not answered yet."""
        return (host, port) in self._lookups

    async def addresses(self, host: str, port: int) -> Any:
        """As `socket.getaddrinfo` tells them. Raises KafkaConnectionError."""
        place = host, port
        if place not in self._lookups:
            lookup = self._lookups[place] = Future()
            # Nobody waits for it where the loop ends first.
            threading.Thread(target=self._look_up, args=(place, lookup), daemon=True).start()
        return await self._lookups[place]

    def _look_up(self, place: _Place, lookup: Future) -> None:
        found: Any = ()
        error: Exception | None = None
        try:
            found = socket.getaddrinfo(*place, socket.AF_UNSPEC, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as cause:  # the latter where no name can be like this
            error = KafkaConnectionError(f"the name {place[0]} cannot be resolved: {cause}")

        def answer() -> None:
            del self._lookups[place]
            if error is None:
                lookup.success(found)
            else:
                lookup.failure(error)

        with contextlib.suppress(Exception):  # the loop has ended
            self.call_soon_threadsafe(answer)


class _Sockets(KafkaNetSocket):  # type: ignore[misc]  # no types in the library
    """Sockets that ask their loop for addresses."""

    SCHEMES = (SCHEME,)

    def dns_lookup(self, host: str, port: int, raise_error: bool = False) -> list[_Place]:
        """Nothing is looked up yet: this is not where one may wait."""
        return [(host, port)]

    async def connect(
        self, net: Loop, addrinfo: _Place, socket_options: Any = (), timeout_at: Any = None
    ) -> Any:
        """Connected to the first of the addresses that can be."""
        failed: Exception = KafkaConnectionError(f"the name {addrinfo[0]} has no address")
        for address in await net.addresses(*addrinfo):
            try:
                return await super().connect(net, address, socket_options, timeout_at)
            except (OSError, KafkaConnectionError) as error:
                failed = error
        raise failed
