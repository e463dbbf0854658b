"""Failures before a connection is secured, each with a sentence that reveals no secret."""

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
)


class TlsFailed(KafkaConnectionError):  # type: ignore[misc]  # no types in the library
    """No agreement on TLS."""


class StoreUnusable(KafkaError):  # type: ignore[misc]  # no types in the library
    """A key store or trust store cannot be read."""


class TokenUnavailable(KafkaConnectionError):  # type: ignore[misc]  # no types in the library
    """The source of tokens does not answer, or has no token yet."""


class TokenRefused(SaslAuthenticationFailedError):  # type: ignore[misc]  # no types in the library
    pass


class TicketRefused(SaslAuthenticationFailedError):  # type: ignore[misc]  # no types in the library
    pass


class LoginFailed(KafkaError):  # type: ignore[misc]  # no types in the library
    """The credentials are not available, or the broker's part of the login is wrong."""


class KerberosFailed(LoginFailed):
    """Kerberos issues no ticket."""


class KdcUnreachable(TokenUnavailable):
    pass


class LoginDelayed(KafkaTimeoutError):  # type: ignore[misc]  # no types in the library
    """What issues tokens or tickets has not answered in time."""
