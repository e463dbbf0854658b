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


def _key(
    name: str, default: str, meaning: str, read: Callable[[str], str] = values.text
) -> Key[str | None]:
    return SECURITY_KEYS.declare(name, None, read, meaning, default)


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
    "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    values.one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
)
_key("security.providers", "none", "Java's; refused.", _of_java())


def _refused(why: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        raise ValueError(why)

    return read


# --- TLS -----------------------------------------------------------------------------------

_STORE_TYPE = values.one_of("JKS", "PKCS12", "PEM")

TRUST_TYPE = _key(
    "ssl.truststore.type",
    "JKS",
    "PEM, PKCS12 or JKS; of the latter two either one is read, as Java does.",
    _STORE_TYPE,
)
TRUST_LOCATION = _key(
    "ssl.truststore.location",
    "the system's",
    "File with the trusted authorities. Reloaded if it has changed.",
)
TRUST_PASSWORD = _key("ssl.truststore.password", "none", "Its password; PEM has none.")
TRUST_CERTIFICATES = _key(
    "ssl.truststore.certificates", "none", "The authorities as PEM text, with the type PEM."
)
OWN_TYPE = _key("ssl.keystore.type", "JKS", "As of the trust store.", _STORE_TYPE)
OWN_LOCATION = _key(
    "ssl.keystore.location",
    "none",
    "File with the client certificate and its key, for brokers that require one. Reloaded if it"
    " has changed.",
)
OWN_PASSWORD = _key("ssl.keystore.password", "none", "Its password; PEM has none.")
OWN_CHAIN = _key(
    "ssl.keystore.certificate.chain",
    "none",
    "Our certificate and those between it and its authority as PEM text, with the type PEM.",
)
OWN_KEY = _key("ssl.keystore.key", "none", "Its key as PEM text (PKCS #8).")
OWN_KEY_PASSWORD = _key(
    "ssl.key.password", "the store's", "Password of the key, where that differs or PEM has one."
)
HOST_NAME_CHECK = _key(
    "ssl.endpoint.identification.algorithm",
    "https",
    "`https`: a broker's certificate must name its host. Empty: not checked.",
    values.one_of("https", ""),
)
PROTOCOLS = _key(
    "ssl.enabled.protocols",
    "TLSv1.2,TLSv1.3",
    "Versions of TLS that are offered, of these two.",
    values.tls_versions,
)
_key(
    "ssl.protocol",
    "TLSv1.3",
    "Has no effect, as in Kafka on Java 17: `ssl.enabled.protocols` decides.",
    values.one_of("TLS", "TLSv1.2", "TLSv1.3"),
)
CIPHER_SUITES = _key(
    "ssl.cipher.suites",
    "the system's",
    "Cipher suites that are offered, by Java's names. Those of TLSv1.3 cannot be chosen among:"
    " all three or none.",
    values.as_text(values.names),
)
_key("ssl.provider", "none", "Java's; refused.", _of_java())
_key("ssl.engine.factory.class", "none", "Java's; refused.", _of_java())
_key(
    "ssl.secure.random.implementation",
    "none",
    "Java's; refused.",
    _of_java(),
)
_key("ssl.keymanager.algorithm", "SunX509", "Java's; no other.", _of_java("SunX509", "PKIX"))
_key("ssl.trustmanager.algorithm", "PKIX", "Java's; no other.", _of_java("PKIX", "SunX509"))

# --- SASL ----------------------------------------------------------------------------------

MECHANISM = _key(
    "sasl.mechanism",
    "GSSAPI",
    "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI (with the extra `kerberos`) or"
    " AWS_MSK_IAM (with the extra `msk`).",
    values.one_of(
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", MSK_MECHANISM
    ),
)
JAAS = _key(
    "sasl.jaas.config",
    "none",
    "The login module of the mechanism, with its options, as Kafka's clients have it.",
)
_key(
    "sasl.client.callback.handler.class",
    "none",
    "Java's; that of AWS_MSK_IAM has no effect, others are refused.",
    _of_java(f"{_MSK_PACKAGE}IAMClientCallbackHandler"),
)
_key("sasl.login.class", "none", "Java's; refused.", _of_java())
LOGIN_HANDLER = _key(
    "sasl.login.callback.handler.class",
    "none",
    "Where OAUTHBEARER's tokens come from: Kafka's OAuthBearerLoginCallbackHandler, or"
    " IAMOAuthBearerLoginCallbackHandler of AWS. Others are refused.",
    _of_java(*OAUTH_LOGIN_HANDLERS, MSK_LOGIN_HANDLER),
)
RETRIEVER = _key(
    "sasl.oauthbearer.jwt.retriever.class",
    "by the address",
    "ClientCredentialsJwtRetriever or FileJwtRetriever; the address alone tells which.",
    _of_java(f"{OAUTH_PACKAGE}DefaultJwtRetriever", CLIENT_CREDENTIALS, TOKEN_FILE),
)
TOKEN_ADDRESS = _key(
    "sasl.oauthbearer.token.endpoint.url",
    "none",
    "URL of the token endpoint, or `file:` with the path of a file that holds a token.",
    values.token_address,
)
TOKEN_CLIENT = _key(
    "sasl.oauthbearer.client.credentials.client.id",
    "none",
    "Client id for tokens; also `clientId` in `sasl.jaas.config`.",
)
TOKEN_SECRET = _key(
    "sasl.oauthbearer.client.credentials.client.secret",
    "none",
    "Client secret; also `clientSecret` in `sasl.jaas.config`.",
)
TOKEN_SCOPE = _key(
    "sasl.oauthbearer.scope", "none", "Requested scope; also `scope` in `sasl.jaas.config`."
)
TOKEN_HEADER_ENCODED = _key(
    "sasl.oauthbearer.header.urlencode",
    "false",
    "Client and secret are URL-encoded in the header that carries them (RFC 6749, 2.3.1).",
    values.as_text(values.boolean),
)
TOKEN_CONNECT_MS = _key(
    "sasl.login.connect.timeout.ms",
    "10000",
    "Longest wait for a connection to the token endpoint.",
    values.as_text(values.integer(1)),
)
TOKEN_READ_MS = _key(
    "sasl.login.read.timeout.ms",
    "10000",
    "Longest wait for its answer.",
    values.as_text(values.integer(1)),
)
REFRESH_FACTOR = _key(
    "sasl.login.refresh.window.factor",
    "0.8",
    "A token is exchanged after this part of its life, 0.5 to 1.",
    values.as_text(values.number(0.5, 1.0)),
)
REFRESH_LEAST = _key(
    "sasl.login.refresh.min.period.seconds",
    "60",
    "But not before it is as old as this, 0 to 900 seconds.",
    values.as_text(values.integer(0, 900)),
)
REFRESH_BUFFER = _key(
    "sasl.login.refresh.buffer.seconds",
    "300",
    "And before so many seconds of its life are left, 0 to 3600.",
    values.as_text(values.integer(0, 3600)),
)
for _name in (
    "algorithm",
    "claim.aud",
    "claim.exp.seconds",
    "claim.iss",
    "claim.jti.include",
    "claim.nbf.seconds",
    "claim.sub",
    "file",
    "private.key.file",
    "private.key.passphrase",
    "template.file",
):
    _key(
        f"sasl.oauthbearer.assertion.{_name}",
        "none",
        "Refused: tokens by signed assertions (RFC 7523) are not supported.",
        _refused("tokens by signed assertions are not supported; ask by client credentials"),
    )
KERBEROS_SERVICE = _key(
    "sasl.kerberos.service.name", "none", "Name under which brokers run; GSSAPI needs it."
)
# For parts of Java's login that tsoffset does not have, or for checks that brokers make.
for _name in (
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
):
    _key(_name, "Kafka's", "Known, and not needed: brokers check tokens, tickets are the system's.")
del _name
