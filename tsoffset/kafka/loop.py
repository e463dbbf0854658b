"""The loop that drives a cluster's connections, with threads for what would hold it up.

To ask the system for a name's addresses, a server for a token or a disk for a key blocks until
there is an answer, which takes as long as they like: in the loop all deadlines would stand still,
and so would its end.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from kafka.errors import KafkaConnectionError
from kafka.future import Future
from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector

# The library asks the class that is registered for a proxy's scheme for sockets.
SCHEME = "tsoffset"

T = TypeVar("T")
_Place = tuple[str, int]


class Loop(NetworkSelector):  # type: ignore[misc]  # no types in the library
    """The library's event loop, with a thread for each work that blocks: one at a time for each
    key, however often it is asked for."""

    def __init__(self, **configs: Any) -> None:
        super().__init__(**configs)
        self._beside: dict[Hashable, Future] = {}

    def is_under_way(self, key: Hashable) -> bool:
        """Whether work of that key has not ended yet."""
        return key in self._beside

    async def beside(self, key: Hashable, work: Callable[[], T]) -> T:
        """What the work returns or raises, done in a thread. Nobody waits for it where the loop
        ends first."""
        if key not in self._beside:
            future = Future()
            threading.Thread(target=self._do, args=(key, work, future), daemon=True).start()
            self._beside[key] = future
        result: T = await self._beside[key]
        return result

    def _do(self, key: Hashable, work: Callable[[], Any], future: Future) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as cause:  # who waits must be told whatever it is
            error = cause

        def answer() -> None:
            del self._beside[key]
            if error is None:
                future.success(result)
            else:
                future.failure(error)

        with contextlib.suppress(Exception):  # the loop has ended
            self.call_soon_threadsafe(answer)


def _addresses(host: str, port: int) -> Any:
    """As the system tells them. Raises KafkaConnectionError."""
    try:
        return socket.getaddrinfo(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as cause:  # the latter where no name can be like this
        raise KafkaConnectionError(f"the name {host} cannot be resolved: {cause}") from None


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
        for address in await net.beside(addrinfo, lambda: _addresses(*addrinfo)):
            try:
                return await super().connect(net, address, socket_options, timeout_at)
            except (OSError, KafkaConnectionError) as error:
                failed = error
        raise failed

    async def sock_connect(
        self, net: Loop, sock: socket.socket, sockaddr: Any, timeout_at: Any = None
    ) -> Any:
        """The socket, connected; where it cannot be, it does not stay open."""
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at)
        except BaseException:
            sock.close()
            raise
