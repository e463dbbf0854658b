"""The library's connections, secured in a way that always ends."""

import ssl
import time
from typing import Any

from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaTCPTransport

from tsoffset.flow.security import Security
from tsoffset.kafka.loop import SCHEME, Loop
from tsoffset.kafka.security.logins import Logins
from tsoffset.kafka.security.tls import context
from tsoffset.kafka.security.transports import PlainTransport, TlsTransport


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
        made: ssl.SSLContext | None = None
        if self._security != Security():
            left_ms = (timeout_at - time.monotonic()) * 1000
            made = await self.wait_for(self.call_soon(self._prepared, node.host), left_ms)
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        if made is None:
            return PlainTransport(self._net, sock, host=node.host)
        transport = TlsTransport(self._net, sock, host=node.host, ssl_context=made)
        try:
            await transport.handshake_until(timeout_at)
        except BaseException:
            transport.close()
            raise
        return transport

    def forget_refusal(self, node: Any) -> None:
        """Let a node be asked again that did not accept our credentials."""
        self._auth_failures.pop(node, None)

    async def _prepared(self, host: str) -> ssl.SSLContext | None:
        """What a connection to a host needs from disk and from others, its TLS context for one."""
        await self._logins.ready(self._net, host)
        tls = self._security.tls
        return None if tls is None else await self._net.beside(tls, lambda: context(tls))
