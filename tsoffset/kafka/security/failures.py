"""What goes wrong before a connection is secured, each with a sentence that tells no secret."""

from kafka.errors import KafkaConnectionError, KafkaError


class TlsFailed(KafkaConnectionError):  # type: ignore[misc]  # no types in the library
    """TLS could not be agreed on."""


class StoreUnusable(KafkaError):  # type: ignore[misc]  # no types in the library
    """A key store or trust store cannot be read."""


class TokenUnavailable(KafkaConnectionError):  # type: ignore[misc]  # no types in the library
    """Where tokens come from does not answer, or not yet."""


class LoginFailed(KafkaError):  # type: ignore[misc]  # no types in the library
    """What proves who we are cannot be had, or the broker's part of it is not right."""


class KerberosFailed(LoginFailed):
    """Kerberos gives no ticket."""


class KdcUnreachable(TokenUnavailable):
    """No Kerberos server answers."""
