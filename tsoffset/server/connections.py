"""Connections of clients that are slow, or many: each has its time, and each client its number."""

import asyncio
from http import HTTPStatus

import structlog
from uvicorn.protocols.http.h11_impl import H11Protocol

from tsoffset.server.guard import HEADERS
from tsoffset.server.problems import Refused

log = structlog.get_logger(__name__)

# From the connection, or the answer before, to the end of an answer; and to its last byte.
EXCHANGE_SECONDS = 30.0
IDLE_SECONDS = 5
HANDSHAKE_SECONDS = 10.0
CONNECTIONS = 128
CONNECTIONS_OF_A_CLIENT = 32


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which waits for a request without end and takes any number of
    connections."""

    exchange_seconds = EXCHANGE_SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        own = self.client and self.client[0]
        clients = [getattr(one, "client", None) for one in self.connections]
        of_client = sum(client is not None and client[0] == own for client in clients)
        if len(clients) > CONNECTIONS or of_client > CONNECTIONS_OF_A_CLIENT:
            log.debug("connection_refused", client=own, connections=len(clients))
            transport.abort()
            return
        self._wait()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer as any other problem what is no HTTP, or too long."""
        problem = Refused(
            HTTPStatus.BAD_REQUEST,
            "this is no HTTP/1.1 request, or its headers are too long",
            "ask with http:// or https:// as the listener is, and with fewer headers",
            connection="close",
        ).response()
        headers = {**HEADERS, **problem.headers}
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([f"HTTP/1.1 {problem.status_code} Bad Request", *lines, "", ""])
        self.transport.write(head.encode("latin-1") + bytes(problem.body))
        self.transport.close()

    def _wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.exchange_seconds, self._give_up)

    def _give_up(self) -> None:
        log.debug("connection_too_slow", client=self.client and self.client[0])
        self.transport.abort()
