"""The addresses of `listeners`: bound before anything else, and served in a thread of their own."""

import asyncio
import errno
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
import uvicorn

from tsoffset.daemon.points import PastCycles
from tsoffset.daemon.status import Board, Controls
from tsoffset.errors import ListenerError
from tsoffset.flow.security import is_local
from tsoffset.flow.settings import ServerSettings
from tsoffset.server.api import Metrics, application
from tsoffset.server.connections import (
    HANDSHAKE_SECONDS,
    IDLE_SECONDS,
    ClientConnections,
    ListeningSocket,
    TimedProtocol,
)
from tsoffset.server.guard import HEADER_BYTES, Guard, Hosts

log = structlog.get_logger(__name__)

# Requests under way have half of it.
STOP_SECONDS = 2.0
# How often the certificate is looked at, for a new one.
RELOAD_SECONDS = 60.0
_KEY_STORE = "listeners.https.ssl.keystore.location"
_KEY_PASSWORD = "listeners.https.ssl.key.password"  # noqa: S105 (the name of a key)


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A socket that clients can connect to already; `host` is as configured."""

    socket: socket.socket
    host: str
    tls: ssl.SSLContext | None

    @property
    def url(self) -> str:
        """Its address, with the port that it has got."""
        host, port = self.socket.getsockname()[:2]
        shown = f"[{host}]" if self.socket.family == socket.AF_INET6 else host
        return f"{'http' if self.tls is None else 'https'}://{shown}:{port}"


@contextmanager
def serve(
    settings: ServerSettings,
    board: Board,
    controls: Controls,
    history: PastCycles,
    *,
    metrics: Metrics | None = None,
    alive: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[str, ...]]:
    """Serve the API (and what `application` says) as long as the block lasts; yields the addresses.

    All addresses are bound and certificates read before it begins; ListenerError where one cannot
    be. Nothing is served, and nothing fails, where there are no listeners. Requests that are under
    way at the end have a second.
    """
    with ExitStack() as stack:
        certificate = ListenerCertificate(settings)
        connections = ClientConnections()
        listeners = [_bound(url, certificate, connections, stack) for url in settings.listeners]
        if not listeners:
            yield ()
            return
        app = application(settings, board, controls, history, metrics=metrics, alive=alive)
        servers = [
            _server(Guard(app, Hosts.of(one.host, settings.hosts)), one, connections)
            for one in listeners
        ]

        def work() -> None:
            try:
                with asyncio.Runner(loop_factory=_Loop) as runner:
                    runner.run(_run(servers, listeners, certificate))
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


def advertised(addresses: Sequence[str]) -> str | None:
    """Where other machines reach the API: the first of the addresses that is not for this machine
    alone, or the first of all; None where there is none."""
    local = [url for url in addresses if is_local(urlsplit(url).hostname or "")]
    for url in (*(url for url in addresses if url not in local), *local):
        parts = urlsplit(url)
        if not ip_address(parts.hostname or "").is_unspecified:
            return url
        return f"{parts.scheme}://{_own_host(parts.scheme)}:{parts.port}"
    return None


def _own_host(scheme: str) -> str:
    """This machine's address, or its name where that is what a certificate is for, or where the
    name leads back here alone."""
    name = socket.gethostname()
    if scheme == "http":
        with suppress(OSError):
            address = socket.gethostbyname(name)
            if not is_local(address):
                return address
    return name


class ListenerCertificate:
    """The certificate of the https listeners, read anew when its file has changed."""

    def __init__(self, settings: ServerSettings) -> None:
        self._file = settings.key_store
        # OpenSSL would ask the terminal for one that is missing.
        self._password = settings.key_password or ""
        self._context: ssl.SSLContext | None = None
        self._read: tuple[int, int] | None = None

    def context(self, url: str) -> ssl.SSLContext:
        """What https listeners answer with. Raises ListenerError where it cannot be read."""
        if self._context is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if (problem := self._load(context)) is not None:
                raise ListenerError(f"listen on {url}: {problem}")
            self._context = context
        return self._context

    def renew(self) -> None:
        """Take up a file that has changed; one that cannot be read is told once, and leaves the
        certificate as it was."""
        if self._context is None or self._stamp() == self._read:
            return
        if (problem := self._load(self._context)) is None:
            log.info("certificate_renewed")
        else:
            log.warning("certificate_not_renewed", message=problem)

    def _load(self, context: ssl.SSLContext) -> str | None:
        """What is wrong with it, and what to do; never its path, which may come from a secret."""
        if self._file is None:
            return f"no certificate; set {_KEY_STORE} to a PEM file with key and certificates"
        self._read = self._stamp()
        try:
            # Into one of its own first: a context that failed has half of it.
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


def _bound(
    url: str, certificate: ListenerCertificate, connections: ClientConnections, stack: ExitStack
) -> BoundListener:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0
    tls = certificate.context(url) if parts.scheme == "https" else None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = stack.enter_context(ListeningSocket(connections, family, kind, protocol))
        # A port whose last connections are not forgotten yet can be had at once.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()
    except OSError as error:
        raise ListenerError(f"listen on {url}: {_why(error)}") from None
    made.setblocking(False)
    return BoundListener(made, host, tls)


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return (
            f"the host name cannot be resolved ({error.strerror}); set `listeners` to a host name"
            " or address of this machine"
        )
    match error.errno:
        case errno.EADDRINUSE:
            step = (
                "stop the process that uses the port, or set `listeners` to another port (0: any"
                " free port)"
            )
        case errno.EADDRNOTAVAIL:
            step = (
                "set `listeners` to an address of this machine, or to 0.0.0.0 for all its addresses"
            )
        case errno.EACCES:
            step = "set `listeners` to a port of 1024 or above"
        case _:
            step = "set `listeners` to another address"
    return f"{os.strerror(error.errno or 0).lower()}; {step}"


def _server(app: Any, listener: BoundListener, connections: ClientConnections) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=partial(TimedProtocol, connections),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        # Its lines go where all others do, and the guard tells what was asked.
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


class _Loop(asyncio.SelectorEventLoop):
    async def create_server(self, *args: Any, **options: Any) -> Any:
        """With less than a minute for a handshake, for which uvicorn has no setting."""
        if options.get("ssl") is not None:
            options["ssl_handshake_timeout"] = HANDSHAKE_SECONDS
        return await super().create_server(*args, **options)


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
