"""Kafka's security settings of clients: `security.protocol`, `ssl.*` and `sasl.*`.

Names and defaults are those of Kafka's SslConfigs, SaslConfigs and CommonClientConfigs. Values that
name Java classes or algorithms are refused, except Kafka's own defaults.
"""

from collections.abc import Callable

from tsoffset.config import values
from tsoffset.config.key_table import Key, Keys

SECURITY_KEYS = Keys()

_PACKAGE = "org.apache.kafka.common.security."
OAUTH_PACKAGE = f"{_PACKAGE}oauthbearer."
_MSK_PACKAGE = "software.amazon.msk.auth.iam."
MSK_MECHANISM = "AWS_MSK_IAM"
MSK_LOGIN_HANDLER = f"{_MSK_PACKAGE}IAMOAuthBearerLoginCallbackHandler"
# From Kafka 4.0 on, and before.
OAUTH_LOGIN_HANDLERS = (
    f"{OAUTH_PACKAGE}OAuthBearerLoginCallbackHandler",
    f"{OAUTH_PACKAGE}secured.OAuthBearerLoginCallbackHandler",
)
CLIENT_CREDENTIALS = f"{OAUTH_PACKAGE}ClientCredentialsJwtRetriever"
TOKEN_FILE = f"{OAUTH_PACKAGE}FileJwtRetriever"


def _key(name: str, default: str, read: Callable[[str], str] = values.text) -> Key[str | None]:
    return SECURITY_KEYS.declare(name, None, read, default)


def _of_java(*allowed: str) -> Callable[[str], str]:
    """A reader of values that only Java could apply: accepts the empty text and these."""

    def read(value: str) -> str:
        if value.strip() in ("", *allowed):
            return value.strip()
        raise ValueError(
            "is a setting for Java, which tsoffset cannot apply; remove it"
            + "".join(f", or write {name}" for name in allowed)
        )

    return read


PROTOCOL = _key(
    "security.protocol",
    "PLAINTEXT",
    values.one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
)
_key("security.providers", "none", _of_java())


def _refuse(why: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        raise ValueError(why)

    return read


# --- TLS -----------------------------------------------------------------------------------

_STORE_TYPE = values.one_of("JKS", "PKCS12", "PEM")

TRUST_TYPE = _key("ssl.truststore.type", "JKS", _STORE_TYPE)
TRUST_LOCATION = _key("ssl.truststore.location", "the system's")
TRUST_PASSWORD = _key("ssl.truststore.password", "none")
TRUST_CERTIFICATES = _key("ssl.truststore.certificates", "none")
OWN_TYPE = _key("ssl.keystore.type", "JKS", _STORE_TYPE)
OWN_LOCATION = _key("ssl.keystore.location", "none")
OWN_PASSWORD = _key("ssl.keystore.password", "none")
OWN_CHAIN = _key("ssl.keystore.certificate.chain", "none")
OWN_KEY = _key("ssl.keystore.key", "none")
OWN_KEY_PASSWORD = _key("ssl.key.password", "the store's")
HOST_NAME_CHECK = _key("ssl.endpoint.identification.algorithm", "https", values.one_of("https", ""))
PROTOCOLS = _key("ssl.enabled.protocols", "TLSv1.2,TLSv1.3", values.tls_versions)
_key("ssl.protocol", "TLSv1.3", values.one_of("TLS", "TLSv1.2", "TLSv1.3"))
CIPHER_SUITES = _key("ssl.cipher.suites", "the system's", values.as_text(values.names))
_key("ssl.provider", "none", _of_java())
_key("ssl.engine.factory.class", "none", _of_java())
_key("ssl.secure.random.implementation", "none", _of_java())
_key("ssl.keymanager.algorithm", "SunX509", _of_java("SunX509", "PKIX"))
_key("ssl.trustmanager.algorithm", "PKIX", _of_java("PKIX", "SunX509"))

# --- SASL ----------------------------------------------------------------------------------

MECHANISM = _key(
    "sasl.mechanism",
    "GSSAPI",
    values.one_of(
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", MSK_MECHANISM
    ),
)
JAAS = _key("sasl.jaas.config", "none")
_key(
    "sasl.client.callback.handler.class",
    "none",
    _of_java(f"{_MSK_PACKAGE}IAMClientCallbackHandler"),
)
_key("sasl.login.class", "none", _of_java())
LOGIN_HANDLER = _key(
    "sasl.login.callback.handler.class", "none", _of_java(*OAUTH_LOGIN_HANDLERS, MSK_LOGIN_HANDLER)
)
RETRIEVER = _key(
    "sasl.oauthbearer.jwt.retriever.class",
    "by the address",
    _of_java(f"{OAUTH_PACKAGE}DefaultJwtRetriever", CLIENT_CREDENTIALS, TOKEN_FILE),
)
TOKEN_ADDRESS = _key("sasl.oauthbearer.token.endpoint.url", "none", values.token_address)
TOKEN_CLIENT = _key("sasl.oauthbearer.client.credentials.client.id", "none")
TOKEN_SECRET = _key("sasl.oauthbearer.client.credentials.client.secret", "none")
TOKEN_SCOPE = _key("sasl.oauthbearer.scope", "none")
TOKEN_HEADER_ENCODED = _key(
    "sasl.oauthbearer.header.urlencode", "false", values.as_text(values.boolean)
)
TOKEN_CONNECT_MS = _key("sasl.login.connect.timeout.ms", "10000", values.as_text(values.integer(1)))
TOKEN_READ_MS = _key("sasl.login.read.timeout.ms", "10000", values.as_text(values.integer(1)))
REFRESH_FACTOR = _key(
    "sasl.login.refresh.window.factor", "0.8", values.as_text(values.number(0.5, 1.0))
)
REFRESH_LEAST = _key(
    "sasl.login.refresh.min.period.seconds", "60", values.as_text(values.integer(0, 900))
)
REFRESH_BUFFER = _key(
    "sasl.login.refresh.buffer.seconds", "300", values.as_text(values.integer(0, 3600))
)
_ASSERTIONS = """
    algorithm claim.aud claim.exp.seconds claim.iss claim.jti.include claim.nbf.seconds claim.sub
    file private.key.file private.key.passphrase template.file
"""
for _name in _ASSERTIONS.split():
    _key(
        f"sasl.oauthbearer.assertion.{_name}",
        "none",
        _refuse("tokens by signed assertions are not supported; use client credentials"),
    )
KERBEROS_SERVICE = _key("sasl.kerberos.service.name", "none")
# For parts of Java's login that tsoffset does not have, or for checks that brokers make.
_WITHOUT_EFFECT = """
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope.claim.name
    sasl.oauthbearer.sub.claim.name
"""
for _name in _WITHOUT_EFFECT.split():
    _key(_name, "Kafka's")
del _name
