"""What every request passes first, and every answer last: who may ask under which name, how much
and how often, and the headers that keep browsers from making anything else of an answer."""

import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Self

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tsoffset.flow.security import is_local
from tsoffset.server.problems import Refused

log = structlog.get_logger(__name__)

REQUESTS_PER_SECOND = 20.0
# Opening the status page takes 17 requests; somebody may open it many times in a row.
REQUESTS_AT_ONCE = 300
# Probes are not counted.
REQUESTS_UNDER_WAY = 112
REQUESTS_UNDER_WAY_OF_A_CLIENT = 28
TARGET_BYTES = 8_192
HEADER_BYTES = 16_384
# No request needs a body; some clients send an empty object.
BODY_BYTES = 1_024
CLIENTS_KNOWN = 1_000
# Asked by what would restart the process if it got no answer: they have a rate of their own, and
# room beside all other requests.
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
        self._left: OrderedDict[tuple[str, bool], tuple[float, float]] = OrderedDict()
        self._under_way: Counter[str] = Counter()

    def wait(self, client: str, *, probe: bool = False) -> float:
        """Seconds until the client may ask; 0 where it may now, which is counted."""
        now, key = self._now(), (client, probe)
        left, since = self._left.pop(key, (float(self._at_once), now))
        left = min(float(self._at_once), left + (now - since) * self._a_second)
        allowed = left >= 1
        self._left[key] = (left - allowed, now)
        if len(self._left) > CLIENTS_KNOWN:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._a_second

    @contextmanager
    def answering(self, client: str) -> Iterator[None]:
        """While a request other than a probe is answered. Raises Refused where as many are as may
        be."""
        for count, limit, detail in (
            (
                self._under_way[client],
                REQUESTS_UNDER_WAY_OF_A_CLIENT,
                "this client has too many requests in progress",
            ),
            (self._under_way.total(), REQUESTS_UNDER_WAY, "too many requests are in progress"),
        ):
            if count >= limit:
                raise Refused(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    detail,
                    f"wait for the answers; at most {limit} requests may be in progress",
                    retry_after="1",
                    connection="close",
                )
        self._under_way[client] += 1
        try:
            yield
        finally:
            self._under_way[client] -= 1
            if not self._under_way[client]:
                del self._under_way[client]


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names under which a listener answers. A page of another site, of which the name was made
    to lead here (DNS rebinding), asks under that site's name.

    `own` is the host that the listener is bound to; `names` are in lower case, `*` means any.
    """

    own: str
    names: Collection[str] = ()

    @classmethod
    def of(cls, listener: str, configured: Collection[str]) -> Self:
        """The names of `listeners.hosts`, or else, where others than this machine reach it, those
        of this machine."""
        names = {name.lower() for name in configured}
        if not names and not is_local(listener):
            names = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return cls(listener.lower(), names)

    def allow(self, host: str | None) -> bool:
        """Whether a request with this `Host` is answered."""
        # No browser leaves it out.
        if host is None or "*" in self.names:
            return True
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
        name = name.rstrip(".").lower()
        if is_local(name) or name == self.own or name in self.names:
            return True
        # No site's name is an address; but of a local listener nobody asks under a foreign one.
        return _is_address(name) and not is_local(self.own)


class Guard:
    """In front of `app`, for the requests of one listener, which answers under the names of
    `hosts`."""

    def __init__(self, app: ASGIApp, rates: Rates, hosts: Hosts) -> None:
        self._app, self._rates, self._hosts = app, rates, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        started, client = time.monotonic(), _client(scope)
        probe = scope["path"] in PROBES

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                log.debug(
                    "request_answered",
                    client=client,
                    method=scope["method"],
                    path=scope["raw_path"].decode("ascii", "replace"),
                    status=message["status"],
                    seconds=round(time.monotonic() - started, 3),
                )
            await send(message)

        with ExitStack() as under_way:
            try:
                self._check(scope, Headers(scope=scope), client, probe=probe)
                if not probe:
                    under_way.enter_context(self._rates.answering(client))
            except Refused as refused:
                await refused.response()(scope, receive, send_guarded)
                return
            await self._answer(scope, receive, send_guarded)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Routes see the path as it was sent, so that a slash in a name stays apart from those
        # between names. An answer to HEAD is that to GET, whose body the server keeps back.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        path = scope["raw_path"].decode("ascii", "replace")
        await self._app({**scope, "method": method, "path": path}, receive, send)

    def _check(self, scope: Scope, headers: Headers, client: str, *, probe: bool) -> None:
        if wait := self._rates.wait(client, probe=probe):
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                "this client sends too many requests",
                f"wait {wait:.1f} seconds; send at most {REQUESTS_PER_SECOND:g} requests a second",
                retry_after=str(int(wait) + 1),
                connection="close",
            )
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
        if "transfer-encoding" in headers or not length.isdigit() or int(length) > BODY_BYTES:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "the request has a body, which is not allowed",
                "send the request without a body",
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


def _client(scope: Scope) -> str:
    return client_of((scope.get("client") or ("unknown",))[0])


def client_of(address: str) -> str:
    """Who has the address: of IPv6 the network of 64 bits, of which one client has all."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if not isinstance(ip, IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or IPv6Address(int(ip) >> 64 << 64))
