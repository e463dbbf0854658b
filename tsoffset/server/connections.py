"""Connections of clients that are slow, or many: each has its time, and their number is limited."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

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
# So few that the loop comes to what the accepted ones ask before it accepts more: who sends a
# request at once is answered, however many others connect.
_ENDING_AT_ONCE = 4


class ClientConnections:
    """The open connections of all listeners; used from their loop's thread alone."""

    def __init__(self) -> None:
        # By descriptor, the oldest first.
        self._open: dict[int, Connection] = {}

    def accept(self, accept: Callable[[], tuple[socket.socket, Any]]) -> tuple["Connection", Any]:
        """The next connection that `accept` gives. Raises BlockingIOError where there is none now.

        Where there are as many as may be, it takes the place of the oldest one: of those without a
        request, if there are any.
        """
        if sum(one.ending for one in self._open.values()) >= _ENDING_AT_ONCE:
            raise BlockingIOError
        accepted, address = accept()
        here = [one for one in self._open.values() if not one.ending]
        if len(here) >= CONNECTIONS:
            min(here, key=lambda one: one.has_a_request).end()
        made = Connection(accepted.detach(), self)
        self._open[made.fileno()] = made
        return made, address

    def serve(self, descriptor: int, protocol: "TimedProtocol") -> None:
        """The connection has come to be spoken on."""
        self._open[descriptor].protocol = protocol

    def forget(self, descriptor: int) -> None:
        """The connection is closed."""
        self._open.pop(descriptor, None)


class Connection(socket.socket):
    """A connection, counted from when it is accepted, before any handshake, until it is closed."""

    def __init__(self, descriptor: int, connections: ClientConnections) -> None:
        super().__init__(fileno=descriptor)
        self._connections = connections
        self.protocol: TimedProtocol | None = None
        self.ending = False

    @property
    def has_a_request(self) -> bool:
        """A request has come whole, and its answer is not finished."""
        cycle = None if self.protocol is None else self.protocol.cycle
        return cycle is not None and not cycle.response_complete

    def end(self) -> None:
        """Let whoever reads it meet its end, and close it."""
        self.ending = True
        log.debug("connection_ended", connections=CONNECTIONS)
        # The client may have ended it already.
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """As socket.close."""
        self._connections.forget(self.fileno())
        super().close()


class ListeningSocket(socket.socket):
    """A socket of which `connections` accepts what comes."""

    def __init__(
        self, connections: ClientConnections, family: int, kind: int, protocol: int
    ) -> None:
        super().__init__(family, kind, protocol)
        self._connections = connections

    def accept(self) -> tuple[socket.socket, Any]:
        """As socket.accept; BlockingIOError also where none is to be had now."""
        return self._connections.accept(super().accept)


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which waits for a request without end."""

    exchange_seconds = EXCHANGE_SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def __init__(self, connections: ClientConnections, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._counted = connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._counted.serve(transport.get_extra_info("socket").fileno(), self)
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
            "this is not an HTTP/1.1 request, or its headers are too long",
            "use http:// or https:// as the listener does, and send fewer headers",
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
