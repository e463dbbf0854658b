"""The library's connections, secured in a way that always ends."""

import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafka.errors import KafkaConnectionError
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaTCPTransport

from tsoffset.flow.security import Security, Tls
from tsoffset.kafka.loop import SCHEME, Loop
from tsoffset.kafka.security.logins import Logins
from tsoffset.kafka.security.tls import context, why
from tsoffset.kafka.security.transports import PlainTransport, TlsTransport

T = TypeVar("T")


class Manager(KafkaConnectionManager):  # type: ignore[misc]  # no types in the library
    """Makes each connection with the files and tokens as they are at that moment."""

    def __init__(self, loop: Loop, security: Security, **configs: Any) -> None:
        self._security = security
        self._logins = Logins(security)
        super().__init__(loop, proxy_url=f"{SCHEME}:", **configs, **self._logins.library)

    async def _build_transport(
        self, node: Any, timeout_at: float | None = None
    ) -> KafkaTCPTransport:
        """A transport that is connected and secured: the library calls this.

        Raises KafkaError, at that moment at the latest.
        """
        assert timeout_at is not None
        security = self._security
        made = None
        if security.tls is not None:
            made = await self._before(timeout_at, self._context, security.tls)
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        opened: Any = sock
        try:
            if made is None:
                opened = PlainTransport(self._net, sock, host=node.host)
            else:
                opened = TlsTransport(self._net, sock, host=node.host, ssl_context=made)
                await opened.handshake_until(timeout_at)
            if security.login is not None:
                await self._before(timeout_at, self._logins.ready, self._net, node.host)
        except BaseException as error:
            opened.close()
            if isinstance(error, OSError):  # of a broker that has gone meanwhile
                raise KafkaConnectionError(why(error)) from None
            raise
        return opened

    def waits_for(self, host: str, port: int) -> str | None:
        """What a connection that is not ready may be waiting for, beside its broker."""
        if self._net.is_under_way((host, port)):
            return f"the name {host} is still looked up"
        if self._security.tls is not None and self._net.is_under_way(self._security.tls):
            return "stores of keys are still read"
        if self._logins.is_asking(self._net):
            return "a token is still asked for"
        return None

    async def _before(
        self, moment: float, work: Callable[..., Coroutine[Any, Any, T]], *words: Any
    ) -> T:
        """What the work returns. Raises KafkaTimeoutError at that moment."""
        left_ms = (moment - time.monotonic()) * 1000
        result: T = await self.wait_for(self.call_soon(work, *words), left_ms)
        return result

    async def _context(self, tls: Tls) -> ssl.SSLContext:
        made: ssl.SSLContext = await self._net.beside(tls, lambda: context(tls))
        return made
