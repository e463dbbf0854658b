"""Opening a connection: host name, TCP, TLS, the broker's versions, login; each with a time
limit."""

import asyncio
import errno
import random
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.admin import DescribeClusterRequest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from tsoffset.flow.security import Security
from tsoffset.kafka.broker_connection import BrokerConnection
from tsoffset.kafka.client_settings import ClientSettings
from tsoffset.kafka.loop import Loop, wait_until
from tsoffset.kafka.security.failures import (
    LoginDelayed,
    LoginFailed,
    TicketRefused,
    TlsFailed,
    TokenRefused,
)
from tsoffset.kafka.security.logins import Exchange, Logins
from tsoffset.kafka.security.tls import context, explain_failure, is_no_tls
from tsoffset.version import __version__

_CLOSED = (ssl.SSLEOFError, ConnectionError)
# The part of a session's lifetime after which to log in again (KIP-368), as in Kafka's own client:
# not all connections at once.
_RENEWED_AFTER = 0.85, 0.95
_SHORTEST_SESSION_MS = 1_000
_LONG_SECONDS = 1e6
_REFUSALS = {"OAUTHBEARER": TokenRefused, "GSSAPI": TicketRefused}


class Opener:
    """Opens connections with the current files and tokens."""

    def __init__(
        self,
        loop: Loop,
        security: Security,
        client: ClientSettings,
        verify: Callable[[str, str | None], None],
    ) -> None:
        """`verify` gets the kind of answer and the id of the broker's cluster in it, and raises
        KafkaError for another cluster."""
        self._loop = loop
        self._verify = verify
        self.tls = security.tls
        self._logins = None if security.login is None else Logins(security.login)
        self._client = client
        self._timeout_seconds = client.socket_connection_setup_timeout_ms / 1000

    async def open(self, connection: BrokerConnection, port: int) -> None:
        """Make the connection ready, or close it with the error."""
        try:
            await self._open(connection, port)
        except KafkaError as error:
            connection.close(error)
        except Exception as error:
            # A broker may send anything for a login.
            kind = KafkaError if self._logins is None else LoginFailed
            connection.close(kind(f"the broker's answer: {type(error).__name__}"))
        except asyncio.CancelledError:
            connection.close()
            raise
        else:
            if not connection.opened.done():
                connection.opened.set_result(None)

    async def _open(self, connection: BrokerConnection, port: int) -> None:
        ends = time.monotonic() + self._timeout_seconds
        too_late = KafkaTimeoutError(f"Timed out after {self._timeout_seconds:g} s")
        made = None
        if (tls := self.tls) is not None:
            made = await wait_until(
                ends, self._loop.run_in_thread(tls, lambda: context(tls)), too_late
            )
        timed_out = KafkaConnectionError("Connection timed out")
        sock = await wait_until(ends, self._connect(connection.host, port, ends), timed_out)
        await wait_until(ends, self._secure(connection, sock, made), too_late)
        exchange = None
        if self._logins is not None:
            exchange = await wait_until(
                ends, self._logins.begin(self._loop, connection.host), too_late
            )
        no_answer = RequestTimedOutError(f"Request timed out after {self._timeout_seconds:g} s")
        await wait_until(ends, _learn_versions(connection), no_answer)
        if exchange is not None:
            await wait_until(ends, self._log_in(connection, exchange), no_answer)
        cluster_id = await wait_until(ends, _learn_cluster(connection), no_answer)
        self._verify("describe_cluster", cluster_id)

    async def resolve(self, host: str, port: int, seconds: float) -> list[str]:
        """The canonical names of a host (Kerberos tickets are for these); none if it has none, or
        no name server answers in time."""
        names = self._loop.run_in_thread(("canonical", host), lambda: _canonical_names(host, port))
        try:
            return await asyncio.wait_for(names, seconds)
        except TimeoutError:
            return []

    def waits_for(self, host: str, port: int) -> KafkaTimeoutError | None:
        """What a connection that is not ready may be waiting for, other than its broker."""
        if self._loop.is_under_way((host, port)):
            return KafkaTimeoutError(f"the DNS lookup of {host} has not finished")
        if self.tls is not None and self._loop.is_under_way(self.tls):
            return KafkaTimeoutError("reading the key stores has not finished")
        server = None if self._logins is None else self._logins.waits_for(self._loop)
        return None if server is None else LoginDelayed(f"{server} has not answered")

    # --- TCP and TLS -----------------------------------------------------------------------

    async def _connect(self, host: str, port: int, ends: float) -> socket.socket:
        """A socket connected to the first address of the host that accepts. An address that does
        not answer leaves the others their part of the time. Raises KafkaConnectionError."""
        failed = KafkaConnectionError(f"the name {host} has no address")
        found = await self._loop.run_in_thread((host, port), lambda: _addresses(host, port))
        for number, (family, kind, proto, _, address) in enumerate(found):
            try:
                async with asyncio.timeout((ends - time.monotonic()) / (len(found) - number)):
                    return await self._connect_to(address, family, kind, proto)
            except TimeoutError:
                failed = KafkaConnectionError("Connection timed out")
            except OSError as error:
                failed = KafkaConnectionError(_words(error))
        raise failed

    async def _connect_to(self, address: Any, *family: int) -> socket.socket:
        sock = socket.socket(*family)
        try:
            sock.setblocking(False)
            for option in self._client.socket_options:
                sock.setsockopt(*option)
            await asyncio.get_running_loop().sock_connect(sock, address)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _secure(
        self, connection: BrokerConnection, sock: socket.socket, made: ssl.SSLContext | None
    ) -> None:
        """Give the socket to the connection, after the TLS handshake.

        Raises TlsFailed, or KafkaConnectionError if it was closed.
        """
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                sock=sock,
                ssl=made,
                server_hostname=None if made is None else connection.host.rstrip("."),
                # Only the connection's own deadline counts.
                ssl_handshake_timeout=None if made is None else _LONG_SECONDS,
            )
        except _CLOSED:
            # A broker that starts or stops does this, and one that expects no TLS.
            raise KafkaConnectionError("closed in the handshake of TLS") from None
        except ssl.SSLError as error:
            # No setting of TLS helps against an address that does not speak it.
            kind = KafkaConnectionError if is_no_tls(error) else TlsFailed
            raise kind(explain_failure(error, self.tls)) from None
        except OSError as error:
            raise KafkaConnectionError(explain_failure(error, self.tls)) from None

    # --- login -----------------------------------------------------------------------------

    async def _log_in(self, connection: BrokerConnection, exchange: Exchange) -> None:
        """Authenticate, and again before the session ends. Raises KafkaError."""
        assert self._logins is not None
        mechanism = self._logins.mechanism
        request = SaslHandshakeRequest(mechanism=mechanism, version=1)
        answer = await connection.exchange(request)
        refused = answer.error_code == UnsupportedSaslMechanismError.errno
        if refused or (not answer.error_code and mechanism not in answer.mechanisms):
            offered = ", ".join(sorted(answer.mechanisms))
            raise UnsupportedSaslMechanismError(f"it offers {offered}, not {mechanism}")
        _check(answer.error_code)
        version = connection.versions.api_version(SaslAuthenticateRequest)
        message = next(exchange)
        while True:
            request = SaslAuthenticateRequest(auth_bytes=message, version=version)
            answer = await connection.exchange(request)
            if answer.error_code:
                name = for_code(answer.error_code).__name__
                kind = _REFUSALS.get(mechanism, SaslAuthenticationFailedError)
                raise kind(f"{name}: {answer.error_message}")
            try:
                message = exchange.send(answer.auth_bytes)
            except StopIteration:
                break
        lifetime_ms = answer.session_lifetime_ms or 0
        if lifetime_ms > 0:
            seconds = max(lifetime_ms, _SHORTEST_SESSION_MS) / 1000
            seconds *= random.uniform(*_RENEWED_AFTER)  # noqa: S311  # no secret
            connection.do_later(seconds, self._log_in_again)

    async def _log_in_again(self, connection: BrokerConnection) -> None:
        """The same over a connection that is in use (KIP-368); closes it if that fails."""
        assert self._logins is not None
        seconds = self._client.request_timeout_ms / 1000
        late = RequestTimedOutError(f"Request timed out after {seconds:g} s")
        try:
            exchange = await self._logins.begin(self._loop, connection.host)
            with connection.only_exchanges():
                again = self._log_in(connection, exchange)
                await wait_until(time.monotonic() + seconds, again, late)
        except KafkaError as error:
            connection.close(error)
        except Exception as error:  # a broker may send anything for a login
            connection.close(LoginFailed(f"the broker's answer: {type(error).__name__}"))


async def _learn_versions(connection: BrokerConnection) -> None:
    """Ask the broker which versions of each request it supports. Raises KafkaError."""
    version: int = ApiVersionsRequest.max_version
    while True:
        request = ApiVersionsRequest(
            client_software_name="tsoffset", client_software_version=__version__, version=version
        )
        answer = await connection.exchange(request)
        known = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        if for_code(answer.error_code) is not UnsupportedVersionError:
            break
        # It answers in version 0, usually with the versions that it supports (KIP-511).
        version = max(0, min(version - 1, known.get(request.API_KEY, (0, 0))[1]))
    _check(answer.error_code)
    connection.versions = BrokerVersionData(api_versions=known)


async def _learn_cluster(connection: BrokerConnection) -> str | None:
    """Ask the broker for the id of its cluster; None if it does not tell. Raises KafkaError."""
    try:
        version = connection.versions.api_version(DescribeClusterRequest, max_version=0)
    except IncompatibleBrokerVersion:
        return None
    answer = await connection.exchange(DescribeClusterRequest(version=version))
    return answer.cluster_id or None


def _check(code: int) -> None:
    if code:
        raise for_code(code)()


def _addresses(host: str, port: int) -> Any:
    """From the system's resolver. Raises KafkaConnectionError."""
    try:
        return socket.getaddrinfo(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as cause:  # UnicodeError: no host name can look like this
        raise KafkaConnectionError(f"the name {host} cannot be resolved: {cause}") from None


def _canonical_names(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(name for *_, name, _ in found if name))


def _words(error: OSError) -> str:
    return f"{error.errno} {errno.errorcode.get(error.errno or 0, error.strerror)}"
