"""Checks of every request before the application: its size and host name. Adds headers to every
answer that restrict what browsers may do with it."""

import socket
import time
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Self

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tsoffset.flow.security import is_local
from tsoffset.server.problems import Refused

log = structlog.get_logger(__name__)

TARGET_BYTES = 8_192
HEADER_BYTES = 16_384
# Some clients send an empty object where no body is needed.
BODY_BYTES = 1_024
# Enough for a thousand offsets with the longest topic names.
TRANSLATIONS = "/translations"
TRANSLATIONS_BODY_BYTES = 512 * 1_024

NOTHING_ALLOWED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    "content-security-policy": NOTHING_ALLOWED,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    # Browsers may cache an answer, and must ask each time whether it has changed.
    "cache-control": "private, no-cache",
}


@dataclass(frozen=True, slots=True)
class Hosts:
    """The host names that a listener accepts. This prevents DNS rebinding: a page of another site
    whose name resolves to this machine sends that site's name.

    `own` is the host that the listener is bound to; `names` are in lower case, `*` means any.
    """

    own: str
    names: Collection[str] = ()

    @classmethod
    def of(cls, listener: str, configured: Collection[str]) -> Self:
        """The names of `listeners.hosts`; if it is not set, and the listener is not for this
        machine alone, the machine's own names."""
        names = {name.lower() for name in configured}
        if not names and not is_local(listener):
            names = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return cls(listener.lower(), names)

    def allow(self, host: str | None) -> bool:
        """True if a request with this `Host` header is accepted."""
        # Browsers always send it.
        if host is None or "*" in self.names:
            return True
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        name = name.rstrip(".").lower()
        if is_local(name) or name == self.own or name in self.names:
            return True
        # A rebound name is never an address. A local listener accepts only local addresses.
        return _is_address(name) and not is_local(self.own)


class Guard:
    """Wraps `app` for the requests of one listener, which accepts the names of `hosts`."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                log.debug(
                    "request_answered",
                    client=(scope.get("client") or ("unknown",))[0],
                    method=scope["method"],
                    path=scope["raw_path"].decode("ascii", "replace"),
                    status=message["status"],
                    seconds=round(time.monotonic() - started, 3),
                )
            await send(message)

        try:
            self._check(scope, Headers(scope=scope))
        except Refused as refused:
            await refused.response()(scope, receive, send_guarded)
            return
        await self._answer(scope, receive, send_guarded)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Routes get the path undecoded, so that `%2F` in a name is not a separator. HEAD is
        # answered like GET; the server drops the body.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        path = scope["raw_path"].decode("ascii", "replace")
        await self._app({**scope, "method": method, "path": path}, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_BYTES:
            raise Refused(
                HTTPStatus.REQUEST_URI_TOO_LONG,
                f"the address is longer than {TARGET_BYTES} bytes",
                "remove some of the filters",
                connection="close",
            )
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
            raise Refused(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the headers are longer than {HEADER_BYTES} bytes",
                "send fewer headers; no cookie is needed",
                connection="close",
            )
        length = headers.get("content-length", "0")
        takes_body = scope["method"] == "POST" and scope["path"].endswith(TRANSLATIONS)
        most = TRANSLATIONS_BODY_BYTES if takes_body else BODY_BYTES
        if "transfer-encoding" in headers or not length.isdigit() or int(length) > most:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request's body is larger than {most} bytes, or is sent in chunks",
                "send fewer offsets" if takes_body else "send the request without a body",
                connection="close",
            )
        if not self._hosts.allow(headers.get("host")):
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this listener does not answer for the host name in the request",
                "use an IP address (http://127.0.0.1 on this machine), or add the name to"
                " listeners.hosts and restart tsoffset",
                connection="close",
            )


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
