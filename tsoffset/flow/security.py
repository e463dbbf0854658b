"""How connections to a cluster are secured: the values of `security.protocol`, `ssl.*` and
`sasl.*`.

Nothing is read from disk or fetched here: each process opens files and fetches tokens for each
connection. No repr contains a secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import ClassVar
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class CertificateStore:
    """A key store or a trust store.

    `location` is a file of PEM text, PKCS12 or Java's own format, distinguished by `is_pem` and the
    file's content; it is None if the PEM text itself is in `certificates` (and, for a key store,
    `key`). `key_password` decrypts the private key.
    """

    is_pem: bool
    location: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """Settings of TLS. Without `trust`, the system's authorities are trusted; `own` is the client's
    certificate. `protocols` are `TLSv1.2` and `TLSv1.3` or one of them, `cipher_suites` Java's
    names (empty: the system's choice)."""

    trust: CertificateStore | None = None
    own: CertificateStore | None = None
    verify_host_name: bool = True
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PasswordLogin:
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """The source of OAUTHBEARER's tokens by the client credentials grant (RFC 6749, 4.4).

    `tls` is for that address alone. With `url_encoded_header`, client id and secret are URL-encoded
    in their header.
    """

    url: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    url_encoded_header: bool
    tls: Tls
    connect_timeout_ms: int
    read_timeout_ms: int


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file in which another program keeps a valid token."""

    path: str


@dataclass(frozen=True, slots=True)
class MskToken:
    """Tokens of AWS IAM, made by AWS's signer from the credentials it finds."""

    region: str
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str | None = None


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """OAUTHBEARER. `extensions` go to the broker with the token.

    A token is renewed after `refresh_factor` of its lifetime, but not before it is
    `refresh_least_seconds` old, nor later than `refresh_buffer_seconds` before its expiry (Kafka's
    `sasl.login.refresh.*`).
    """

    mechanism: ClassVar[str] = "OAUTHBEARER"
    origin: TokenEndpoint | TokenFile | MskToken
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    refresh_factor: float = 0.8
    refresh_least_seconds: int = 60
    refresh_buffer_seconds: int = 300


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """GSSAPI. Without `keytab`, the process's tickets are used."""

    mechanism: ClassVar[str] = "GSSAPI"
    service_name: str
    principal: str | None = None
    keytab: str | None = None


Login = PasswordLogin | TokenLogin | KerberosLogin


@dataclass(frozen=True, slots=True)
class Security:
    """TLS and login of connections; by default neither."""

    tls: Tls | None = None
    login: Login | None = None

    @property
    def protocol(self) -> str:
        """Kafka's name of this combination."""
        if self.login is None:
            return "PLAINTEXT" if self.tls is None else "SSL"
        return "SASL_PLAINTEXT" if self.tls is None else "SASL_SSL"


def keeps_secrets(url: str) -> bool:
    """Whether what is sent to the address is encrypted, or does not leave this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_local(parts.hostname or "")


def is_local(host: str) -> bool:
    """Whether only this machine reaches the host of an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"
