"""The adapter at a secured broker: who gets in, what is said where not, and that all of it ends."""

import socket
import ssl
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.configured import two_clusters
from tests.hostile_broker import CONNECT, Brokers
from tests.hostile_cases import says
from tests.http_server import http_server
from tests.java_stores import write_jks
from tests.secured import MECHANISMS, PASSWORDS, Secured, secured_broker
from tests.token_endpoint import TokenEndpoint
from tests.waiting import wait_until
from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.flow.security import Tls
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.kafka.security.tls import context
from tsoffset.lab.embedded import Access
from tsoffset.lab.embedded.certificates import Authority
from tsoffset.testing.memory_cluster import MemoryCluster

pytestmark = pytest.mark.integration

PASSWORD = "c4n4ry"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def cluster(access: Access, **settings: str) -> KafkaCluster:
    """The adapter as a configuration file has it; `settings` with _ for dots go over those of
    `access`, and those without a value are left out."""
    named = {name.replace("_", "."): text for name, text in settings.items()}
    lines = []
    for name, text in {**access.properties(), **named}.items():
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
        place = name if name == "admin.timeout.ms" else f"A.admin.{name}"
        if escaped or name == "ssl.endpoint.identification.algorithm":
            lines.append(f"{place} = {escaped}")
    return KafkaCluster(two_clusters(*lines).flows[0].source)


def seen(access: Access, **settings: str) -> list[str]:
    with cluster(access, **settings) as entered:
        return sorted(entered.topics())


def unreachable(access: Access, **settings: str) -> ClusterUnreachable:
    with cluster(access, **settings) as entered, pytest.raises(ClusterUnreachable) as caught:
        entered.topics()
    return caught.value


def refused(access: Access, **settings: str) -> str:
    error = unreachable(access, **settings)
    assert isinstance(error, ClusterRefused)
    return str(error)


def away(access: Access, **settings: str) -> str:
    """What is said of a cluster that may come back."""
    error = unreachable(access, **settings)
    assert not isinstance(error, ClusterRefused)
    return str(error)


def by_token(secured: Secured, **settings: str) -> dict[str, str]:
    """Settings by which alice enters with a token."""
    return {
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_token_endpoint_url": secured.tokens.token_url,
        "sasl_oauthbearer_client_credentials_client_id": "alice",
        "sasl_oauthbearer_client_credentials_client_secret": PASSWORDS["alice"],
        "sasl_jaas_config": f"{OAUTH};",
        **settings,
    }


def own_store(secured: Secured, kind: str, authority: Authority | None = None) -> dict[str, str]:
    """Settings of alice's certificate in a key store of that kind."""
    alice = (authority or secured.authority).issue("alice")
    path = secured.folder / f"alice-{kind}"
    if kind == "text":
        return {
            "ssl_keystore_type": "PEM",
            "ssl_keystore_certificate_chain": alice.chain_pem(),
            "ssl_keystore_key": alice.key_pem(PASSWORD),
            "ssl_key_password": PASSWORD,
        }
    if kind.startswith("pem"):
        locked = kind == "pem-encrypted"
        alice.write_pem(path, PASSWORD if locked else None)
        own = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(path)}
        return own | ({"ssl_key_password": PASSWORD} if locked else {})
    alice.write_pkcs12(path, PASSWORD)
    own = {"ssl_keystore_location": str(path), "ssl_keystore_password": PASSWORD}
    if kind == "pkcs12":
        return own | {"ssl_keystore_type": "PKCS12"}
    # The file tells that it is JKS; with its type's default.
    key_password = "another" if kind == "jks-two-passwords" else None
    jks = write_jks(path, secured.folder / f"{kind}.jks", PASSWORD, key_password)
    own["ssl_keystore_location"] = str(jks)
    return own | ({"ssl_key_password": key_password} if key_password else {})


# --- who gets in --------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_mechanism_of_sasl_enters_as_its_user(secured, mechanism, tls):
    """The broker lets each see what its principal may."""
    if mechanism == "OAUTHBEARER":
        access = secured.by_password("alice", "PLAIN", tls=tls)
        assert seen(access, **by_token(secured)) == ["alices-orders"]
    else:
        assert seen(secured.by_password("alice", mechanism, tls=tls)) == ["alices-orders"]
        assert seen(secured.by_password("bob", mechanism, tls=tls)) == []


@pytest.mark.parametrize(
    "kind",
    [
        *("pem", "pem-encrypted", "text", "pkcs12", "jks"),
        pytest.param("jks-two-passwords", marks=pytest.mark.thorough),
    ],
)
def test_each_kind_of_key_store_shows_its_certificate(secured, kind):
    """The listener wants one, and the principal is its name."""
    found = seen(secured.by_tls("MTLS"), **own_store(secured, kind))
    assert found == ["alices-orders"]


@pytest.mark.parametrize("kind", ["text", "pkcs12", "jks"])
def test_each_kind_of_trust_store_is_read(secured, kind):
    """Beside the file of PEM that the others use."""
    path = secured.folder / f"trust-{kind}"
    if kind == "text":
        store = {"ssl_truststore_certificates": secured.authority.pem()}
        assert seen(secured.by_tls(), ssl_truststore_location="", **store) == []
        return
    secured.authority.write_pkcs12(path, PASSWORD)
    if kind == "jks":
        path = write_jks(path, path.with_suffix(".jks"), PASSWORD)
    store = {"ssl_truststore_location": str(path), "ssl_truststore_password": PASSWORD}
    assert seen(secured.by_tls(), ssl_truststore_type="", **store) == []


def test_a_host_name_that_need_not_be_right(secured):
    """As `ssl.endpoint.identification.algorithm=` has it."""
    assert seen(secured.by_tls("ELSEWHERE"), ssl_endpoint_identification_algorithm="") == []


@pytest.mark.parametrize(
    ("protocols", "suites"),
    [("TLSv1.2", ""), ("TLSv1.3", ""), ("", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")],
)
def test_versions_and_cipher_suites_are_agreed_on(secured, protocols, suites):
    chosen = {"ssl_enabled_protocols": protocols, "ssl_cipher_suites": suites}
    assert seen(secured.by_tls(), **chosen) == []


# --- who does not, and what is said -------------------------------------------------------


@pytest.mark.parametrize("mechanism", [each for each in MECHANISMS if each != "OAUTHBEARER"])
def test_a_wrong_password_is_named(secured, mechanism):
    access = replace(secured.by_password("alice", mechanism), password="c4n4ry")
    before = secured.broker.said().count("Failed authentication")
    said = refused(access)
    assert "does not accept the credentials" in said
    assert "check sasl.jaas.config of A" in said
    assert "c4n4ry" not in said
    # Once: accounts are locked for less.
    assert secured.broker.said().count("Failed authentication") == before + 1


def test_a_mechanism_that_is_not_offered_is_named_with_those_that_are(secured):
    """So the next step needs no look into the broker's configuration."""
    access = secured.by_password("alice", "PLAIN", tls=False)
    said = refused(replace(access, bootstrap=secured.broker.bootstrap_at("SCRAM")))
    assert "it offers SCRAM-SHA-256, not PLAIN" in said


def test_certificates_that_are_not_accepted_are_named(secured, tmp_path):
    """The broker's is expired, for another host, or of an unknown authority; the client's is
    missing or of another authority."""
    assert "certificate has expired" in refused(secured.by_tls("EXPIRED"))
    assert "IP address mismatch" in refused(secured.by_tls("ELSEWHERE"))
    another = Authority()
    stranger = replace(secured.by_tls(), trust_store=another.write_pem(tmp_path / "another.pem"))
    assert "self-signed certificate" in refused(stranger)
    by_system = {"ssl_truststore_location": "", "ssl_truststore_type": ""}
    assert "self-signed certificate" in refused(secured.by_tls(), **by_system)
    assert "required, and ssl.keystore.* is not set (bad cert" in refused(secured.by_tls("MTLS"))
    of_another = own_store(secured, "pem", another)
    assert "the client certificate is not accepted (" in refused(
        secured.by_tls("MTLS"), **of_another
    )


def test_an_address_without_tls_has_no_wrong_certificate():
    """It is not refused, and the next step is about the address and the protocol."""
    with http_server(BaseHTTPRequestHandler) as url:
        said = away(Access(url.removeprefix("http://"), "SSL"))
    assert "the other side does not speak TLS" in said
    assert "check A.bootstrap.servers and A.security.protocol" in said


def test_one_address_that_is_not_accepted_is_not_the_cluster(secured):
    """Another one may come right: certificates are renewed broker by broker. A password that is
    wrong is not tried again anywhere."""
    expired = secured.by_tls("EXPIRED")
    both = replace(expired, bootstrap=f"{expired.bootstrap},127.0.0.1:1")
    assert "certificate has expired" in away(both)
    password = replace(secured.by_password("alice", "PLAIN"), password="c4n4ry")
    assert "credentials" in refused(
        replace(password, bootstrap=f"{password.bootstrap},127.0.0.1:1")
    )


def test_another_protocol_is_named(secured):
    tls, sasl = secured.by_tls(), secured.by_password("alice", "PLAIN", tls=False)
    for access, why in (
        (replace(tls, bootstrap=sasl.bootstrap), "closed in the handshake of TLS"),
        (Access(tls.bootstrap), "it speaks TLS"),
        (Access(sasl.bootstrap), "socket disconnected"),
    ):
        said = away(access)
        assert why in said
        assert "check A.bootstrap.servers and A.security.protocol" in said
    over_tls = replace(secured.by_password("alice", "PLAIN"), bootstrap=tls.bootstrap)
    assert "check security.protocol of A" in refused(over_tls)


def test_stores_that_cannot_be_used_are_named(secured, tmp_path):
    """Missing, damaged, with a wrong password or type, without a key: each with its file."""
    own = own_store(secured, "pkcs12")
    mtls = secured.by_tls("MTLS")
    empty = tmp_path / "empty"
    empty.touch()
    for store, why in (
        ({"ssl_keystore_location": "/nowhere"}, "/nowhere: No such file or directory"),
        ({"ssl_keystore_location": str(empty)}, "neither PKCS12 nor JKS, or its password is wrong"),
        ({"ssl_keystore_password": "c4n4rj"}, "or its password is wrong"),
        ({"ssl_keystore_location": str(secured.trust_store)}, "it is PEM, but ssl.keystore.type"),
    ):
        said = refused(mtls, **own | store)
        assert why in said
        assert "check ssl.truststore.* and ssl.keystore.* of A" in said
        assert "c4n4r" not in said
    text = own_store(secured, "text")
    assert "ssl.key.password is wrong" in refused(mtls, **text | {"ssl_key_password": "x"})
    assert "needs ssl.key.password" in refused(mtls, **text | {"ssl_key_password": ""})
    jks = own_store(secured, "jks")
    assert "it is damaged, or its password" in refused(mtls, **jks | {"ssl_keystore_password": "x"})
    assert "no certificate" in refused(replace(mtls, trust_store=empty), **own)


def test_tokens_that_cannot_be_had_are_named(secured, tmp_path):
    """A wrong secret, an address without a server or with a silent one, a file without a token; a
    refused token."""
    access = secured.by_password("alice", "PLAIN")

    def said(**settings):
        return refused(access, **by_token(secured, **settings))

    wrong = said(sasl_oauthbearer_client_credentials_client_secret="c4n4ry")
    assert "answers 401 (invalid_client)" in wrong
    assert "c4n4ry" not in wrong
    assert "check the sasl.* settings of A" in wrong
    nowhere = {"sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/c4n4ry"}
    none = str(unreachable(access, **by_token(secured, **nowhere)))
    assert "the token endpoint returned no token" in none
    assert "check sasl.oauthbearer.token.endpoint.url of A" in none
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = by_token(secured, sasl_oauthbearer_token_endpoint_url=url)
        late = away(
            secured.by_password("alice", "PLAIN", tls=False),
            **settings,
            admin_timeout_ms="3000",
        )
    assert "the token endpoint has not answered); check that server and the network" in late
    (tmp_path / "token").write_text(secured.tokens.token("alice", iss="somebody"))
    of_file = {"sasl_oauthbearer_token_endpoint_url": f"file:{tmp_path / 'token'}"}
    refused_token = said(**of_file)
    assert "does not accept the token" in refused_token
    assert "compare the token's audience, issuer and scope, and the clocks" in refused_token
    (tmp_path / "token").unlink()
    assert "No such file or directory" in said(**of_file)


def test_an_address_of_tokens_by_tls_is_verified(secured, tmp_path):
    """By the options of the login module, and by nothing else that is trusted."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = secured.authority.issue("tokens", ["127.0.0.1"]).write_pem(tmp_path / "tokens.pem")
    tls.load_cert_chain(own)
    access = secured.by_password("alice", "PLAIN")
    with TokenEndpoint(PASSWORDS, tls=tls) as theirs:
        settings = by_token(secured, sasl_oauthbearer_token_endpoint_url=theirs.token_url)
        assert "in ssl.truststore.* of sasl.jaas.config" in refused(access, **settings)
        trust = f'ssl.truststore.type=PEM ssl.truststore.location="{secured.trust_store}"'
        settings["sasl_jaas_config"] = f"{OAUTH} {trust};"
        # It is signed by a key that the broker does not know, but it was there.
        assert "does not accept the token" in refused(access, **settings)


@pytest.mark.usefixtures("running_time")
@pytest.mark.parametrize("answers", [b"", b"\x16\x03\x03\x00\x7a"], ids=["silent", "begun"])
def test_a_handshake_that_hangs_ends_with_the_call(answers):
    """The library's own waits for ever, and keeps the connection."""
    settings = {"admin_timeout_ms": "1500", "socket_connection_setup_timeout_ms": "400"}
    settings["socket_connection_setup_timeout_max_ms"] = "400"
    lies = [(None, CONNECT, partial(says, answers))]
    context(Tls())  # The system's authorities take longer to read, once in a process.
    with Brokers(MemoryCluster("A"), lies).open() as address:
        assert "imed out" in away(Access(address, "SSL"), **settings)


# --- what changes meanwhile ---------------------------------------------------------------


def test_a_store_that_is_replaced_is_taken_up(secured, tmp_path):
    """By the next connection of the same client, which was refused before."""
    store = secured.authority.issue("alice", valid_for=-timedelta(days=1)).write_pem(tmp_path / "k")
    own = {"ssl_keystore_type": "PEM", "ssl_keystore_location": str(store)}
    with cluster(secured.by_tls("MTLS"), **own) as entered:
        with pytest.raises(ClusterRefused):
            entered.topics()
        secured.authority.issue("alice").write_pem(tmp_path / "new").replace(store)
        assert sorted(entered.topics()) == ["alices-orders"]


@pytest.mark.thorough
def test_sessions_and_tokens_are_renewed_in_time(tmp_path):
    """A broker that ends sessions after seconds (KIP-368) goes on to serve one connection, and
    each token is exchanged before its end."""
    with secured_broker(tmp_path, sasl_properties={"connections.max.reauth.ms": "2000"}) as short:
        short.tokens.lifetime_seconds = 4
        access = short.by_password("alice", "PLAIN")
        refresh = {
            "sasl_login_refresh_min_period_seconds": "0",
            "sasl_login_refresh_buffer_seconds": "0",
        }
        with cluster(access, **by_token(short, **refresh)) as entered:

            def over_one_connection() -> bool:
                """Whether the connection is the same three tokens later. A machine that stands
                still for longer than a session may lose it."""
                entered.groups()
                (node,) = entered._connections.pool.connected_nodes()
                first = entered._connections.pool._connections[node, 0]
                before = short.tokens.requests["/token", 200]

                def asked() -> int:
                    entered.groups()
                    return short.tokens.requests["/token", 200] - before

                wait_until(lambda: asked() >= 3, "the third token")
                return entered._connections.pool._connections.get((node, 0)) is first

            wait_until(over_one_connection)
    assert "Failed re-authentication" not in short.broker.said()


def test_nothing_is_left_open(secured):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for access in (secured.by_tls("EXPIRED"), secured.by_tls("MTLS")):
        refused(access)
    with closing(cluster(secured.by_tls())) as entered:
        entered.topics()
    open_files = Path("/proc/self/fd")
    wait_until(lambda: len(list(open_files.iterdir())) <= before, "all is closed")


def test_what_holds_passwords_is_for_its_owner_alone(secured):
    """Nothing that the broker was told is readable by others, and the file for the format is
    gone."""
    broker = secured.broker
    assert broker.properties_path.stat().st_mode & 0o077 == 0
    assert not list(broker.directory.glob("*-format.txt"))
    assert not any("secret" in path.read_text() for path in broker.directory.glob("*.log"))
