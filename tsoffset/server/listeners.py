"""The addresses of `listeners`: bound before flows start, and served in a thread of their own."""

import asyncio
import errno
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import structlog
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from tsoffset.errors import ListenerError
from tsoffset.flow.security import is_local
from tsoffset.flow.settings import ServerSettings
from tsoffset.server.guard import HEADER_BYTES, Guard, Hosts

log = structlog.get_logger(__name__)

# Requests that are running at the end have half of this time.
STOP_SECONDS = 2.0
# How often the file of the certificate is checked for changes.
RELOAD_SECONDS = 60.0
# An answer must end this long after the connection began, or after the answer before it.
EXCHANGE_SECONDS = 30.0
# The next request must begin this long after an answer.
IDLE_SECONDS = 5
_KEY_STORE = "listeners.https.ssl.keystore.location"
_KEY_PASSWORD = "listeners.https.ssl.key.password"  # noqa: S105 (the name of a key)


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A socket that accepts connections; `host` is as configured."""

    socket: socket.socket
    host: str
    tls: ssl.SSLContext | None

    @property
    def url(self) -> str:
        """Its address, with the real port in place of port 0."""
        host, port = self.socket.getsockname()[:2]
        shown = f"[{host}]" if self.socket.family == socket.AF_INET6 else host
        return f"{'http' if self.tls is None else 'https'}://{shown}:{port}"


@contextmanager
def serve(settings: ServerSettings, make_app: Callable[[], ASGIApp]) -> Iterator[tuple[str, ...]]:
    """Serve an application as long as the block lasts; yields the addresses. Without listeners
    there are none, and no application is made.

    Addresses are bound and certificates read before the block begins; raises ListenerError if that
    is impossible. Requests that are running at the end have a second.
    """
    with ExitStack() as stack:
        certificate = ListenerCertificate(settings)
        listeners = [_bind(url, certificate, stack) for url in settings.listeners]
        if not listeners:
            yield ()
            return
        app = make_app()
        servers = [
            _server(Guard(app, Hosts.of(one.host, settings.hosts)), one) for one in listeners
        ]

        def work() -> None:
            try:
                asyncio.run(_run(servers, listeners, certificate))
            except Exception as error:
                log.error("listeners_failed", exc_info=error)

        thread = threading.Thread(target=work, name="listeners", daemon=True)
        thread.start()
        addresses = tuple(one.url for one in listeners)
        log.info("listening", addresses=addresses)
        try:
            yield addresses
        finally:
            for server in servers:
                server.should_exit = True
            thread.join(STOP_SECONDS)


def advertised_url(addresses: Sequence[str]) -> str | None:
    """The URL at which other machines reach the API: that of the first address that is not a
    loopback address, or of the first one; None if there is none."""
    local = [url for url in addresses if is_local(urlsplit(url).hostname or "")]
    for url in (*(url for url in addresses if url not in local), *local):
        parts = urlsplit(url)
        if not ip_address(parts.hostname or "").is_unspecified:
            return url
        return f"{parts.scheme}://{_own_host(parts.scheme)}:{parts.port}"
    return None


def _own_host(scheme: str) -> str:
    """This machine's address. For https its name, because certificates are issued for names; also
    its name if that resolves to a loopback address."""
    name = socket.gethostname()
    if scheme == "http":
        with suppress(OSError):
            address = socket.gethostbyname(name)
            if not is_local(address):
                return address
    return name


class ListenerCertificate:
    """The certificate of the https listeners, reloaded when its file has changed."""

    def __init__(self, settings: ServerSettings) -> None:
        self._file = settings.key_store
        # Without a password, OpenSSL would ask for one on the terminal.
        self._password = settings.key_password or ""
        self._context: ssl.SSLContext | None = None
        self._read: tuple[int, int] | None = None

    def context(self, url: str) -> ssl.SSLContext:
        """The TLS settings of the https listeners. Raises ListenerError if the file is not
        usable."""
        if self._context is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if (problem := self._load(context)) is not None:
                raise ListenerError(f"listen on {url}: {problem}")
            self._context = context
        return self._context

    def renew(self) -> None:
        """Load a file that has changed. If it is not usable, log that once, and keep the
        certificate that was loaded before."""
        if self._context is None or self._stamp() == self._read:
            return
        if (problem := self._load(self._context)) is None:
            log.info("certificate_renewed")
        else:
            log.warning("certificate_not_renewed", message=problem)

    def _load(self, context: ssl.SSLContext) -> str | None:
        """What is wrong with the file, and what to do; without its path, which may be a secret."""
        if self._file is None:
            return f"no certificate; set {_KEY_STORE} to a PEM file with key and certificates"
        self._read = self._stamp()
        try:
            # Tried with a new context first: if loading fails, a context has only a part of the
            # file.
            for one in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
                one.load_cert_chain(self._file, password=self._password)
        except ssl.SSLError as error:
            said = error.reason or type(error).__name__
            return (
                f"the private key and certificate in the file of {_KEY_STORE} cannot be read"
                f" ({said}); put both into the file as PEM, and the key's password into"
                f" {_KEY_PASSWORD}"
            )
        except OSError as error:
            return (
                f"the file of {_KEY_STORE} cannot be read: {error.strerror}; check the path and the"
                " file's permissions"
            )
        return None

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = Path(self._file or "").stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


def _bind(url: str, certificate: ListenerCertificate, stack: ExitStack) -> BoundListener:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0
    tls = certificate.context(url) if parts.scheme == "https" else None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = stack.enter_context(socket.socket(family, kind, protocol))
        # So that the port can be bound right after a restart.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()
    except OSError as error:
        raise ListenerError(f"listen on {url}: {_bind_problem(error)}") from None
    made.setblocking(False)
    return BoundListener(made, host, tls)


_STEPS = {
    errno.EADDRINUSE: "stop the process that uses the port, or set `listeners` to another port (0:"
    " any free port)",
    errno.EADDRNOTAVAIL: "set `listeners` to an address of this machine, or to 0.0.0.0 for all its"
    " addresses",
    errno.EACCES: "set `listeners` to a port of 1024 or above",
}


def _bind_problem(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return (
            f"the host name cannot be resolved ({error.strerror}); set `listeners` to a host name"
            " or address of this machine"
        )
    step = _STEPS.get(error.errno or 0, "set `listeners` to another address")
    return f"{os.strerror(error.errno or 0).lower()}; {step}"


def _server(app: ASGIApp, listener: BoundListener) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        ws="none",
        lifespan="off",
        # The guard logs requests, and uvicorn's own lines use our logging.
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    config.load()
    config.ssl = listener.tls
    return uvicorn.Server(config)


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with a deadline: uvicorn waits for a request for ever."""

    exchange_seconds = EXCHANGE_SECONDS
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()

    def on_response_complete(self) -> None:
        self._set_deadline()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(self.exchange_seconds, self._abort)

    def _abort(self) -> None:
        log.debug("connection_too_slow", client=self.client and self.client[0])
        self.transport.abort()


async def _run(
    servers: list[uvicorn.Server], listeners: list[BoundListener], certificate: ListenerCertificate
) -> None:
    async def renew() -> None:
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            certificate.renew()

    renewing = asyncio.create_task(renew())
    await asyncio.gather(
        *(
            server.serve(sockets=[one.socket])
            for server, one in zip(servers, listeners, strict=True)
        )
    )
    renewing.cancel()
