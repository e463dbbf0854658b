"""What every request passes first, and every answer last: who may ask under which name, how much
and how often, and the headers that keep browsers from making anything else of an answer."""

import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tsoffset.flow.security import is_local
from tsoffset.server.problems import Refused

log = structlog.get_logger(__name__)

REQUESTS_PER_SECOND = 20.0
REQUESTS_AT_ONCE = 100
TARGET_BYTES = 8_192
HEADER_BYTES = 16_384
# No request needs a body; some clients send an empty object.
BODY_BYTES = 1_024
CLIENTS_KNOWN = 1_000
# Asked by what would restart the process if it got no answer.
PROBES = ("/healthz", "/readyz")

NOTHING_ALLOWED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    "content-security-policy": NOTHING_ALLOWED,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    # Kept, but asked about each time.
    "cache-control": "private, no-cache",
}


class Rates:
    """How often each client may ask: so many requests at once, and so many a second after that."""

    def __init__(
        self,
        a_second: float = REQUESTS_PER_SECOND,
        at_once: int = REQUESTS_AT_ONCE,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._a_second, self._at_once, self._now = a_second, at_once, now
        # By client what is left to it, and as of when; the one that asked last at the end.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Seconds until the client may ask; 0 where it may now, which is counted."""
        now = self._now()
        left, since = self._left.pop(client, (float(self._at_once), now))
        left = min(float(self._at_once), left + (now - since) * self._a_second)
        allowed = left >= 1
        self._left[client] = (left - allowed, now)
        if len(self._left) > CLIENTS_KNOWN:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._a_second


class Guard:
    """In front of `app`, for the requests of one listener.

    `local` is the host of a listener that only this machine reaches, else None. Its requests must
    name this machine in `Host`: a page of another site, of which the name was made to lead here
    (DNS rebinding), names that site.
    """

    def __init__(self, app: ASGIApp, rates: Rates, local: str | None = None) -> None:
        self._app, self._rates, self._local = app, rates, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        started = time.monotonic()

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                log.debug(
                    "request_answered",
                    client=_client(scope),
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
        # Routes see the path as it was sent, so that a slash in a name stays apart from those
        # between names. An answer to HEAD is that to GET, whose body the server keeps back.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        path = scope["raw_path"].decode("ascii", "replace")
        await self._app({**scope, "method": method, "path": path}, receive, send_guarded)

    def _check(self, scope: Scope, headers: Headers) -> None:
        if scope["path"] not in PROBES and (wait := self._rates.wait(_client(scope))):
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "this client asks too often",
                f"wait {wait:.1f} seconds, and ask at most {REQUESTS_PER_SECOND:g} times a second",
                retry_after=str(int(wait) + 1),
            )
        if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET_BYTES:
            raise Refused(
                HTTPStatus.REQUEST_URI_TOO_LONG,
                f"the address is longer than {TARGET_BYTES} bytes",
                "leave out some of the filters",
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
        if "transfer-encoding" in headers or not length.isdigit() or int(length) > BODY_BYTES:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "the request has a body, and none is read",
                "send the request without a body",
                connection="close",
            )
        if self._local is not None and not _names_this_machine(headers.get("host"), self._local):
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this listener is for this machine alone, and the request names another one",
                "ask http://127.0.0.1 or http://localhost at the same port; for others set"
                " `listeners` to an address of their network, with tokens",
            )


def _names_this_machine(host: str | None, own: str) -> bool:
    # No browser leaves it out.
    if host is None:
        return True
    name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    return is_local(name) or name.lower() == own.lower()


def _client(scope: Scope) -> str:
    """The client's address; of IPv6 its network, since one client has all addresses of it."""
    address = (scope.get("client") or ("unknown",))[0]
    try:
        ip = ip_address(address)
    except ValueError:
        return str(address)
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is None:
        return str(IPv6Address(int(ip) >> 64 << 64))
    return str(ip)
