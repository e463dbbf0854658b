"""The library's transports, with what they lack: a handshake that ends, and the last answer.

A broker that refuses a login answers and closes at once. The library takes the end first, and what
came before it is lost.
"""

import ssl
from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from tsoffset.kafka.security.failures import TlsFailed
from tsoffset.kafka.security.tls import why

_RECEIVED_BYTES = 65_536
# What TLS begins a complaint with. As the length of an answer it would be 350 MB.
_ALERT = b"\x15\x03"
_CLOSED = (ssl.SSLEOFError, ConnectionError)
_NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _WithLastAnswer:
    """How both kinds receive."""

    _sock: Any

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """What has come; the connection's end only where nothing came before it."""
        received: list[bytes] = []
        try:
            while data := self._sock.recv(_RECEIVED_BYTES):
                received.append(data)
            error: Exception = KafkaConnectionError("socket disconnected")
        except _NOT_NOW:
            return b"".join(received), None
        except ssl.SSLError as cause:
            # With TLS 1.3 a broker refuses our certificate after the handshake.
            refused = "ALERT" in (cause.reason or "")
            error = (TlsFailed if refused else KafkaConnectionError)(why(cause))
        except OSError as cause:
            error = KafkaConnectionError(cause)
        return b"".join(received), None if received else error


class PlainTransport(_WithLastAnswer, KafkaTCPTransport):  # type: ignore[misc]
    """Without TLS."""

    _has_received = False

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        """The same; a broker that expects TLS is named."""
        data, error = super()._sock_recv()
        if data.startswith(_ALERT) and not self._has_received:
            return b"", KafkaConnectionError("it speaks TLS")
        self._has_received = True
        return data, error


class TlsTransport(_WithLastAnswer, KafkaSSLTransport):  # type: ignore[misc]
    """With TLS. The library waits for a broker's part of the handshake without end."""

    async def handshake_until(self, moment: float) -> None:
        """Agree on TLS.

        Raises TlsFailed, KafkaConnectionError where it was closed, or KafkaTimeoutError at that
        moment.
        """
        while True:
            try:
                self._sock.do_handshake()
            except ssl.SSLWantReadError:
                await self._net.wait_read(self._sock, timeout_at=moment)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(self._sock, timeout_at=moment)
            except _CLOSED:
                # As by a broker that starts or stops, or by one that expects no TLS.
                raise KafkaConnectionError("closed in the handshake of TLS") from None
            except ssl.SSLError as error:
                raise TlsFailed(why(error)) from None
            except OSError as error:
                raise KafkaConnectionError(why(error)) from None
            else:
                return
