"""Security as Kafka's users configure it. An unsupported setting is an error without its value."""

import pytest

from tests.configured import (
    TWO_CLUSTERS,
    problems_of_two_clusters,
    resolved,
    the_problem,
    two_clusters,
)
from tests.invoking import ROOT
from tsoffset.errors import ConfigurationError
from tsoffset.flow.security import (
    CertificateStore,
    KerberosLogin,
    MskToken,
    PasswordLogin,
    Security,
    Tls,
    TokenEndpoint,
    TokenFile,
    TokenLogin,
)

KAFKA = "org.apache.kafka.common.security"
PLAIN = f'{KAFKA}.plain.PlainLoginModule required username="u" password="c4n4ry";'
SCRAM = f'{KAFKA}.scram.ScramLoginModule required username="u" password="c4n4ry";'
OAUTH = f"{KAFKA}.oauthbearer.OAuthBearerLoginModule required"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required"
MSK = "software.amazon.msk.auth.iam.IAMLoginModule required"
MSK_BROKER = "b-1.shop.abc.c2.kafka.eu-west-1.amazonaws.com:9098"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


def tokens_of_examples() -> list[str]:
    """What examples/ have for tokens."""
    texts = (path.read_text() for path in (ROOT / "examples").rglob("*.yaml"))
    return [
        line.split(":", 1)[1].strip()
        for text in texts
        for line in text.splitlines()
        if line.strip().startswith(("token: ", "read-token: "))
    ]


def of_source(*lines: str) -> Security:
    (flow,) = two_clusters(*(f"A.{line}" for line in lines)).flows
    return flow.source.security


def refused(*lines: str) -> str:
    """The one thing that is wrong; it may be of a setting that is not there, without a line."""
    (problem,) = problems_of_two_clusters(*(f"A.{line}" for line in lines))
    assert "c4n4ry" not in str(problem)
    assert problem.key.startswith("A.")
    return f"{problem.key.removeprefix('A.')}: {problem.allowed}"


def tls(*lines: str) -> Tls:
    return of_source("security.protocol = SSL", *lines).tls


def sasl(mechanism: str, *lines: str) -> tuple[str, ...]:
    return "security.protocol = SASL_SSL", f"sasl.mechanism = {mechanism}", *lines


# --- where it may stand -------------------------------------------------------------------


def test_nothing_is_secured_where_nothing_is_said():
    assert of_source() == Security()
    assert of_source("security.protocol = plaintext") == Security()


@pytest.mark.parametrize(
    ("prefix", "secured"),
    [
        ("", "AB"),
        ("A.", "A"),
        ("B.", "B"),
        ("admin.", "AB"),
        ("B.admin.", "B"),
        ("consumer.", "AB"),
        ("A.consumer.", "A"),
        ("A->B.source.cluster.", "A"),
        ("A->B.source.admin.", "A"),
        ("A->B.source.consumer.", "A"),
        ("A->B.target.admin.", "B"),
        ("A->B.target.producer.", ""),
        ("A->B.producer.", ""),
    ],
)
def test_it_stands_where_other_settings_of_clients_stand(prefix, secured):
    """The hierarchy is MirrorMaker 2's; tsoffset has no producer."""
    (flow,) = two_clusters(f"{prefix}security.protocol = SSL").flows
    sides = {"A": flow.source.security, "B": flow.target.security}
    assert "".join(name for name, side in sides.items() if side.protocol == "SSL") == secured


def test_the_admins_and_the_consumers_must_be_the_same():
    """Both use one connection, so different settings could not both apply."""
    lines = ("A.admin.security.protocol = SSL", "A.consumer.security.protocol = SSL")
    (flow,) = two_clusters(*lines).flows
    assert flow.source.security == Security(Tls())
    problem = the_problem("A.security.protocol = SSL", "A.consumer.security.protocol = PLAINTEXT")
    assert problem.key == "A.consumer.security.protocol"
    assert "A.security.protocol" in problem.allowed


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        ("A.", "has no effect with security.protocol = PLAINTEXT"),
        ("", "has no effect: no cluster's security.protocol uses it"),
    ],
)
def test_what_the_protocol_does_not_use_is_said(prefix, sentence):
    """Whoever configures a login expects one."""
    (warning,) = two_clusters(f"{prefix}sasl.jaas.config = {PLAIN}").warnings
    assert sentence in warning
    assert "c4n4ry" not in warning


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("A.sasl.jass.config", "Did you mean `A.sasl.jaas.config`?"),
        ("ssl.trustore.location", "Did you mean `ssl.truststore.location`?"),
        ("C.ssl.keystore.location", "C is not among `clusters`"),
        ("A->B.sasl.mechanism", "it belongs to a cluster"),
        ("A->B.source.consumer.ssl.keystore.passwd", "ssl.keystore.password`?"),
    ],
)
def test_a_setting_of_security_that_is_none_is_an_error(key, sentence):
    """Of other keys a warning does; this one would connect otherwise than meant."""
    problem = the_problem(f"{key} = c4n4ry")
    assert (problem.key, problem.value) == (key, None)
    assert sentence in problem.allowed


@pytest.mark.parametrize(
    "line",
    [
        "security.providers = c4n4ry",
        "security.protocol = c4n4ry",
        "sasl.mechanism = c4n4ry",
        "sasl.login.class = c4n4ry",
        "sasl.login.callback.handler.class = c4n4ry",
        "sasl.client.callback.handler.class = c4n4ry",
        "sasl.oauthbearer.jwt.retriever.class = c4n4ry",
        "sasl.oauthbearer.token.endpoint.url = c4n4ry",
        "sasl.login.refresh.window.factor = 0.4",
        "ssl.engine.factory.class = c4n4ry",
        "ssl.provider = c4n4ry",
        "ssl.keymanager.algorithm = c4n4ry",
        "ssl.truststore.type = c4n4ry",
        "ssl.enabled.protocols = TLSv1.1",
        "ssl.enabled.protocols = TLSv1.3,c4n4ry",
        "ssl.endpoint.identification.algorithm = c4n4ry",
    ],
)
def test_a_value_that_cannot_be_honoured_is_an_error(line):
    """By itself, whatever else is set; the value is not shown."""
    assert refused(line).startswith(line.partition(" ")[0])


def test_a_reference_that_leads_nowhere_is_the_only_error():
    """What would follow from it is not said as well."""
    lines = sasl("PLAIN", "sasl.jaas.config = ${env:TSOFFSET_TEST_NOT_SET}")
    assert "TSOFFSET_TEST_NOT_SET is not set" in refused(*lines)


# --- TLS ---------------------------------------------------------------------------------


def test_tls_as_it_comes():
    """The system's authorities, host names checked, both versions."""
    assert tls() == Tls(None, None, True, ("TLSv1.2", "TLSv1.3"), ())


def test_stores_as_files():
    """Of what form they are beyond PEM the file itself tells."""
    found = tls(
        "ssl.truststore.location = /t.jks",
        "ssl.truststore.password = t",
        "ssl.keystore.location = /k.p12",
        "ssl.keystore.type = PKCS12",
        "ssl.keystore.password = k",
        "ssl.key.password = key",
    )
    assert found.trust == CertificateStore(False, "/t.jks", "t")
    assert found.own == CertificateStore(False, "/k.p12", "k", key_password="key")


def test_stores_as_pem_text():
    """As Kafka has it since 2.7 (KIP-651), with `\\n` between the lines."""
    found = tls(
        "ssl.truststore.type = PEM",
        r"ssl.truststore.certificates = a\nb",
        "ssl.keystore.type = pem",
        "ssl.keystore.certificate.chain = chain",
        "ssl.keystore.key = key",
    )
    assert found.trust == CertificateStore(True, certificates="a\nb")
    assert found.own == CertificateStore(True, certificates="chain", key="key")


def test_what_is_agreed_on():
    """Host names need not be checked; versions and cipher suites may be chosen."""
    found = tls(
        "ssl.endpoint.identification.algorithm =",
        "ssl.enabled.protocols = TLSv1.1,TLSv1.2",
        "ssl.cipher.suites = TLS_A_WITH_B, TLS_C_WITH_D",
        "ssl.protocol = TLSv1.2",
    )
    assert found == Tls(None, None, False, ("TLSv1.2",), ("TLS_A_WITH_B", "TLS_C_WITH_D"))


PEM = ("ssl.truststore.type = PEM", "ssl.truststore.location = /t")
PEM_KEY = ("ssl.keystore.type = PEM", "ssl.keystore.location = /k")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["ssl.truststore.password = c4n4ry"], "truststore.location: must name the trust store"),
        (["ssl.truststore.certificates = c4n4ry"], "so ssl.truststore.type must be PEM"),
        ([*PEM, "ssl.truststore.password = c4n4ry"], "ssl.truststore.password: must be removed"),
        ([*PEM, "ssl.truststore.certificates = c4n4ry"], "truststore.location: must be removed"),
        (["ssl.keystore.location = /k"], "ssl.keystore.password: must be set"),
        (["ssl.keystore.password = c4n4ry"], "ssl.keystore.location: must name the key store"),
        (
            ["ssl.keystore.type = PEM", "ssl.keystore.key = c4n4ry"],
            "certificate.chain: must be set",
        ),
        ([*PEM_KEY, "ssl.keystore.password = c4n4ry"], "ssl.keystore.password: must be removed"),
        (
            [*PEM_KEY, "ssl.keystore.key = c4n4ry", "ssl.keystore.certificate.chain = c4n4ry"],
            "ssl.keystore.location: must be removed",
        ),
    ],
)
def test_half_a_store_is_an_error(lines, sentence):
    """A connection without what it was to show, or to trust, would be another one."""
    assert sentence in refused("security.protocol = SSL", *lines)


# --- SASL --------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords(mechanism):
    """Kafka's two modules hold a name and a password, for whichever of the mechanisms."""
    for module in (PLAIN, SCRAM):
        found = of_source(*sasl(mechanism, f"sasl.jaas.config = {module}"))
        assert found.login == PasswordLogin(mechanism, "u", "c4n4ry")
        assert found.protocol == "SASL_SSL"


def test_a_login_without_tls():
    lines = ("security.protocol = SASL_PLAINTEXT", "sasl.mechanism = PLAIN")
    found = of_source(*lines, f"sasl.jaas.config = {PLAIN}")
    assert (found.tls, found.protocol) == (None, "SASL_PLAINTEXT")


def test_tokens_of_an_address():
    """By settings, or by the module's options."""
    jaas = f'{OAUTH} clientId="i" clientSecret="s" scope="c" extension_cluster="x";'
    found = of_source(
        *sasl("OAUTHBEARER", f"{ENDPOINT} = https://h/t", f"sasl.jaas.config = {jaas}"),
        "sasl.login.read.timeout.ms = 7",
        "sasl.login.refresh.window.factor = 0.5",
    ).login
    endpoint = TokenEndpoint("https://h/t", "i", "s", "c", False, Tls(), 10_000, 7)
    assert found == TokenLogin(endpoint, {"cluster": "x"}, refresh_factor=0.5)
    lines = (
        "sasl.oauthbearer.client.credentials.client.id = i",
        "sasl.oauthbearer.client.credentials.client.secret = s",
        "sasl.oauthbearer.scope = c",
        "sasl.oauthbearer.header.urlencode = true",
        f'sasl.jaas.config = {OAUTH} ssl.truststore.location="/t";',
    )
    found = of_source(*sasl("OAUTHBEARER", f"{ENDPOINT} = https://h/t", *lines)).login
    trusting = Tls(CertificateStore(False, "/t"))
    endpoint = TokenEndpoint("https://h/t", "i", "s", "c", True, trusting, 10_000, 10_000)
    assert found == TokenLogin(endpoint)


def test_tokens_of_a_file():
    """As a pod finds it mounted."""
    lines = (f"{ENDPOINT} = file:///run/to%20ken", f"sasl.jaas.config = {OAUTH};")
    assert of_source(*sasl("OAUTHBEARER", *lines)).login == TokenLogin(TokenFile("/run/to ken"))


def test_kerberos():
    """With a keytab, or with the tickets that are there."""
    lines = sasl("GSSAPI", "sasl.kerberos.service.name = kafka")
    keytab = f'{KERBEROS} useKeyTab=true keyTab="/k" principal="u@R" storeKey=true;'
    assert of_source(*lines, f"sasl.jaas.config = {keytab}").login == KerberosLogin(
        "kafka", "u@R", "/k"
    )
    tickets = f"{KERBEROS} useTicketCache=true;"
    assert of_source(*lines, f"sasl.jaas.config = {tickets}").login == KerberosLogin("kafka")


def test_aws():
    """By AWS's own mechanism, or by its handler for OAUTHBEARER; brokers tell their region."""
    region = (f"bootstrap.servers = {MSK_BROKER}", f"sasl.jaas.config = {MSK} awsProfileName=p;")
    lines = [f"A.admin.{line}" for line in sasl("AWS_MSK_IAM", *region)]
    (flow,) = two_clusters(*lines).flows
    assert flow.source.security.login == TokenLogin(MskToken("eu-west-1", "p"))
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    found = of_source(
        *sasl("OAUTHBEARER", f"sasl.login.callback.handler.class = {handler}"),
        f'sasl.jaas.config = {MSK} awsRoleArn="r" awsStsRegion="x";',
    )
    assert found.login == TokenLogin(MskToken("x", role_arn="r"))


AT_AN_ADDRESS, IN_A_FILE = f"{ENDPOINT} = https://h", f"{ENDPOINT} = file:/x"
RETRIEVED = (
    f"sasl.oauthbearer.jwt.retriever.class = {KAFKA}.oauthbearer.ClientCredentialsJwtRetriever"
)
CLIENT = f'{OAUTH} clientId="i" clientSecret="s"'
SERVICE = "sasl.kerberos.service.name = kafka"


@pytest.mark.parametrize(
    ("mechanism", "jaas", "more", "sentence"),
    [
        ("PLAIN", None, [], "sasl.jaas.config: must name PlainLoginModule"),
        ("PLAIN", OAUTH, [], "sasl.jaas.config: must name PlainLoginModule"),
        ("PLAIN", f'{PLAIN[:-1]} c4n4ry="x"', [], "has an unsupported option"),
        ("PLAIN", PLAIN[:-2], [], "has an unclosed quotation mark at column"),
        ("PLAIN", PLAIN.partition(" password")[0], [], "must have the option password"),
        ("SCRAM-SHA-256", f'{SCRAM[:-1]} tokenauth="true"', [], "has an unsupported option"),
        ("OAUTHBEARER", OAUTH, [], f"{ENDPOINT}: must be the address"),
        (
            "OAUTHBEARER",
            f'{OAUTH} unsecuredLoginStringClaim_sub="c4n4ry"',
            [IN_A_FILE],
            "unsecured",
        ),
        ("OAUTHBEARER", f'{OAUTH} clientId="c4n4ry"', [AT_AN_ADDRESS], "secret: must be set"),
        ("OAUTHBEARER", OAUTH, [IN_A_FILE, RETRIEVED], "jwt.retriever.class: does not fit"),
        (
            *("OAUTHBEARER", f'{CLIENT} ssl.truststore.password="c4n4ry"', [AT_AN_ADDRESS]),
            "sasl.jaas.config: option ssl.truststore.location",
        ),
        (
            *("OAUTHBEARER", f'{CLIENT} ssl.truststore.type="c4n4ry"', [AT_AN_ADDRESS]),
            "sasl.jaas.config: option ssl.truststore.type",
        ),
        ("OAUTHBEARER", f'{OAUTH} extension_auth="c4n4ry"', [IN_A_FILE], "whose name is `auth`"),
        ("GSSAPI", KERBEROS, [], "sasl.kerberos.service.name: must be set"),
        ("GSSAPI", f"{KERBEROS} isInitiator=false", [SERVICE], "must not have isInitiator"),
        ("GSSAPI", f"{KERBEROS} useKeyTab=true", [SERVICE], "must have the option keyTab"),
        (
            *("GSSAPI", f'{KERBEROS} useKeyTab=true keyTab="c4n4ry"', [SERVICE]),
            "must have the option principal",
        ),
        ("AWS_MSK_IAM", MSK, [], "must have the option awsStsRegion"),
        (
            *("AWS_MSK_IAM", f'{MSK} awsStsRegion="x"', ["security.protocol = SASL_PLAINTEXT"]),
            "security.protocol: must be SASL_SSL",
        ),
    ],
)
def test_half_a_login_is_an_error(mechanism, jaas, more, sentence):
    """It names the setting that is missing or wrong, and nothing of what it holds."""
    login = [] if jaas is None else [f"sasl.jaas.config = {jaas};"]
    assert sentence in refused(*sasl(mechanism, *login, *more))


def test_secrets_are_in_no_text_of_the_settings():
    """Whoever prints settings, or meets them in a traceback, sees none."""
    flow = two_clusters(
        *(f"A.{line}" for line in sasl("PLAIN", f"sasl.jaas.config = {PLAIN}")),
        "A.ssl.keystore.location = /k",
        "A.ssl.keystore.password = c4n4ry",
    ).flows[0]
    for shown in (flow, flow.source, flow.source.security, flow.source.security.login):
        assert "c4n4ry" not in repr(shown)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize("host", ["kafka.example.com", "127.0.0.1", "localhost", "[::1]"])
def test_a_password_that_everybody_on_the_way_reads_is_a_warning(mechanism, host):
    """SCRAM shows none, and what stays on this machine has no way."""
    login = PLAIN if mechanism == "PLAIN" else PLAIN.replace("plain.Plain", "scram.Scram")
    lines = (
        "A.security.protocol = SASL_PLAINTEXT",
        f"A.sasl.mechanism = {mechanism}",
        f"A.sasl.jaas.config = {login}",
    )
    text = TWO_CLUSTERS.replace("a1:9092, a2:9092", f"{host}:9092")
    warnings = resolved(text + "\n".join(lines)).warnings
    shown = mechanism == "PLAIN" and host == "kafka.example.com"
    assert ["unencrypted" in one for one in warnings] == [True] * shown
    assert "c4n4ry" not in "".join(warnings)


def test_host_names_that_nobody_checks_are_a_warning():
    """The encryption ends wherever somebody with a certificate stands."""
    (warning,) = two_clusters(
        "A.security.protocol = SSL", "A.ssl.endpoint.identification.algorithm ="
    ).warnings
    assert "can pose as" in warning


def test_the_secret_of_a_client_that_is_sent_openly_is_a_warning():
    """Whoever reads it gets tokens, too."""
    login = sasl(
        "OAUTHBEARER", f"{ENDPOINT} = http://h.example.com/t", f"sasl.jaas.config = {CLIENT};"
    )
    (warning,) = two_clusters(*(f"A.{line}" for line in login)).warnings
    assert "the client's secret is sent there unencrypted; use https" in warning


@pytest.mark.parametrize("key", ["listeners.token", "listeners.read.token"])
@pytest.mark.parametrize(
    ("listeners", "warned"),
    [
        ("http://127.0.0.1:8083, http://[::1]:8083, http://localhost:1", False),
        ("http://0.0.0.0:8083", True),
        ("http://127.0.0.1:8083, http://tsoffset:8083", True),
    ],
)
def test_a_token_that_is_sent_openly_is_a_warning(key, listeners, warned):
    settings = two_clusters(f"{key} = changing-token-0123", f"listeners = {listeners}")
    assert ["bearer tokens" in one for one in settings.warnings] == [True] * warned


@pytest.mark.parametrize(
    "token", ["short", "twelve-345==", "spaced 0123456789", "=first-0123456789"]
)
def test_a_token_that_can_be_guessed_or_sent_wrongly_is_refused(token):
    """A header cannot hold others (RFC 6750)."""
    with pytest.raises(
        ConfigurationError, match="must have at least 16 characters: letters, "
    ) as e:
        two_clusters(f"listeners.token = {token}")
    assert token not in str(e.value)


@pytest.mark.parametrize("token", [*tokens_of_examples(), "CHANGE_ME-0123456789"])
def test_a_placeholder_of_an_example_is_no_token(token):
    """It is public, so it protects nothing."""
    with pytest.raises(ConfigurationError, match="the placeholder of an example"):
        two_clusters(f"listeners.token = {token}")
