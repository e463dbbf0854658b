"""Secured brokers of this machine, met by clients that are not ours: who enters where, as whom."""

import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import javaproperties
import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError, TopicAuthorizationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tests.embedded_cluster import EmbeddedCluster
from tests.java_stores import write_jks
from tests.secured import MECHANISMS, Secured
from tests.token_endpoint import TokenEndpoint
from tsoffset.java import find_java
from tsoffset.lab.embedded import (
    Access,
    BrokerListener,
    BrokerSecurity,
    resolve_jars,
)
from tsoffset.lab.embedded.certificates import LOCAL_HOSTS, Authority

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

PASSWORD_MECHANISMS = [each for each in MECHANISMS if each != "OAUTHBEARER"]


class Given(AbstractTokenProvider):  # type: ignore[misc]  # kafka is untyped
    """A token that is there."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def topics_seen(access: Access, **settings: object) -> list[str]:
    """The topics that a client gets to see; raises KafkaError if it does not get in."""
    with closing(KafkaAdminClient(**access.settings(), **settings)) as admin:
        return sorted(admin.list_topics())


def assert_refused(secured: Secured, access: Access, **settings: object) -> None:
    """A client does not get in, and the broker says why."""
    before = secured.broker.said().count("Failed authentication")
    with pytest.raises(KafkaError):
        topics_seen(access, bootstrap_timeout_ms=1_000, **settings)
    assert secured.broker.said().count("Failed authentication") > before


def shake_hands(access: Access) -> None:
    """Do what TLS does at first, and wait for the broker's complaint; raises ssl.SSLError."""
    context = ssl.create_default_context(cafile=access.trust_store)
    if access.key_store is not None:
        context.load_cert_chain(access.key_store)
    host, port = access.bootstrap.split(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as raw,
        context.wrap_socket(raw, server_hostname=host) as connection,
    ):
        connection.recv(1)


def by_token(secured: Secured, token: str, *, tls: bool = True) -> list[str]:
    access = secured.by_password("alice", "OAUTHBEARER", tls=tls)
    return topics_seen(access, sasl_oauth_token_provider=Given(token))


# --- who gets in --------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_password_leads_to_its_users_rights(secured: Secured, mechanism: str, tls: bool) -> None:
    """Each user comes in by each mechanism and sees what ACLs grant that user, no more."""
    assert topics_seen(secured.by_password("alice", mechanism, tls=tls)) == ["alices-orders"]
    assert topics_seen(secured.by_password("bob", mechanism, tls=tls)) == []


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
def test_wrong_password_is_refused(secured: Secured, mechanism: str) -> None:
    """A known user with another's password does not get in."""
    access = replace(secured.by_password("alice", mechanism), password="no")
    assert_refused(secured, access)


def test_token_leads_to_its_subjects_rights(secured: Secured) -> None:
    """A signed token is worth the rights of its subject."""
    for tls in (False, True):
        assert by_token(secured, secured.tokens.token("alice"), tls=tls) == ["alices-orders"]
        assert by_token(secured, secured.tokens.token("bob"), tls=tls) == []


def test_token_that_does_not_fit_is_refused(secured: Secured) -> None:
    """Neither one that has expired, nor for others, nor signed by another key gets in."""
    access = secured.by_password("alice", "OAUTHBEARER")
    other = TokenEndpoint({})
    for token in (
        secured.tokens.token("alice", iat=1, exp=2),
        secured.tokens.token("alice", aud="others"),
        secured.tokens.token("alice", iss="others"),
        other.token("alice"),
    ):
        assert_refused(secured, access, sasl_oauth_token_provider=Given(token))


def test_certificate_leads_to_its_owners_rights(secured: Secured, tmp_path: Path) -> None:
    """With a client certificate the principal is its subject, without one nobody; its key may
    be encrypted."""
    alice = secured.authority.issue("alice").write_pem(tmp_path / "alice.pem")
    for listener in ("TLS", "MTLS"):
        assert topics_seen(secured.by_tls(listener, alice)) == ["alices-orders"]
    locked = secured.authority.issue("alice").write_pem(tmp_path / "locked.pem", "key-secret")
    access = secured.by_tls("MTLS", locked)
    assert topics_seen(access, ssl_password="key-secret") == ["alices-orders"]
    assert topics_seen(secured.by_tls("TLS")) == []


def test_certificate_that_does_not_fit_is_refused(secured: Secured, tmp_path: Path) -> None:
    """Where a certificate is needed, none, one of another authority and an old one fail."""
    stranger = Authority().issue("alice").write_pem(tmp_path / "stranger.pem")
    old = secured.authority.issue("alice", valid_for=-timedelta(days=1))
    for key_store in (None, stranger, old.write_pem(tmp_path / "old.pem")):
        with pytest.raises(ssl.SSLError, match=r"alert .*certificate"):
            shake_hands(secured.by_tls("MTLS", key_store))


def test_client_refuses_a_broker_that_it_cannot_trust(secured: Secured, tmp_path: Path) -> None:
    """Expired, for another host, of an unknown authority: all of these can be met here."""
    unknown = Authority().write_pem(tmp_path / "unknown.pem")
    for access, reason in (
        (secured.by_tls("EXPIRED"), "has expired"),
        (secured.by_tls("ELSEWHERE"), "not valid for '127.0.0.1'"),
        (replace(secured.by_tls(), trust_store=unknown), "self-signed"),
    ):
        with pytest.raises(ssl.SSLCertVerificationError, match=reason):
            shake_hands(access)
    assert topics_seen(secured.by_tls("ELSEWHERE"), ssl_check_hostname=False) == []


# --- what they may do ---------------------------------------------------------------------


def test_right_holds_from_its_grant_to_its_revocation(secured: Secured) -> None:
    """The broker knows of both once the call has returned."""
    bob = secured.by_password("bob", "PLAIN").settings()
    with closing(KafkaAdminClient(**bob)) as admin:
        for _ in range(3):
            secured.grant("bob", "topic", "bobs-orders", "describe", "alter_configs")
            assert admin.list_topics() == ["bobs-orders"]
            secured.revoke("bob", "topic", "bobs-orders", "describe", "alter_configs")
            assert admin.list_topics() == []
        with pytest.raises(TopicAuthorizationFailedError):
            admin.create_topics({"another": {}})


def test_nodes_of_a_secured_cluster_copy_from_each_other(tmp_path: Path) -> None:
    """Nodes enter each other by the administrator's listener, and clients by the others."""
    users = {"carol": "carols-secret"}
    listener = BrokerListener("SASL", "SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-512",))
    security = BrokerSecurity((listener,), passwords=users, superusers=("User:carol",))
    with EmbeddedCluster(tmp_path, security=security) as cluster:
        carol = Access(
            cluster.bootstrap_at("SASL"),
            "SASL_PLAINTEXT",
            mechanism="SCRAM-SHA-512",
            user="carol",
            password=users["carol"],
        )
        with closing(KafkaAdminClient(**cluster.admin.settings())) as admin:
            admin.create_topics({"orders": {"num_partitions": 1, "replication_factor": 2}})
        with closing(KafkaProducer(**carol.settings(), acks="all")) as producer:
            # Acknowledged once both nodes have it.
            assert producer.send("orders", b"value").get(20).offset == 0


# --- the stores, read by Java --------------------------------------------------------------


def test_stores_are_read_by_kafkas_own_client(secured: Secured, tmp_path: Path) -> None:
    """PEM, PKCS #12, and JKS with a password of the key's own."""
    alice, word, key_word = secured.authority.issue("alice"), "store-secret", "key-secret"
    trust = secured.authority.write_pkcs12(tmp_path / "trust.p12", word)
    key = alice.write_pkcs12(tmp_path / "alice.p12", word)
    passwords = {
        "ssl.truststore.password": word,
        "ssl.keystore.password": word,
        "ssl.key.password": word,
    }
    pem = secured.by_tls("MTLS", alice.write_pem(tmp_path / "alice.pem")).properties()
    others = secured.by_tls("MTLS").properties() | passwords
    for properties in (
        pem,
        others | _stores("PKCS12", trust, key),
        others
        | _stores(
            "JKS",
            write_jks(trust, tmp_path / "trust.jks", word),
            write_jks(key, tmp_path / "alice.jks", word, key_word),
        )
        | {"ssl.key.password": key_word},
    ):
        assert _java_lists_topics(properties, tmp_path) == ["alices-orders"]


def _stores(kind: str, trust: Path, key: Path) -> dict[str, str]:
    return {
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(trust),
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(key),
    }


def _java_lists_topics(properties: dict[str, str], folder: Path) -> list[str]:
    file = folder / "client.properties"
    file.write_text(javaproperties.dumps(properties))
    tool = ["org.apache.kafka.tools.TopicCommand", "--list", "--command-config", file]
    done = subprocess.run(
        [
            find_java(),
            "-Dlog4j2.StatusLogger.level=OFF",
            "-Dlog4j2.level=OFF",
            *("-cp", f"{resolve_jars()}/*", *tool),
            *("--bootstrap-server", properties["bootstrap.servers"]),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split()


# --- secrets, and the token endpoint -------------------------------------------------------


def test_what_holds_passwords_is_for_its_owner_alone(secured: Secured) -> None:
    """Nothing that the broker was told is readable by others, and the file for the format is
    gone."""
    broker = secured.broker
    assert broker.properties_path.stat().st_mode & 0o077 == 0
    assert not list(broker.directory.glob("*-format.txt"))
    assert not any("secret" in path.read_text() for path in broker.directory.glob("*.log"))


@pytest.mark.parametrize("secure", [False, True])
def test_token_endpoint_gives_tokens_to_whom_it_knows(tmp_path: Path, secure: bool) -> None:
    """A wrong secret is answered by 401; all requests are counted."""
    authority = Authority()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(authority.issue("tokens", LOCAL_HOSTS).write_pem(tmp_path / "key.pem"))
    client = ssl.create_default_context(cadata=authority.pem())
    endpoint = TokenEndpoint(
        {"client": "right"}, lifetime_seconds=7, tls=server if secure else None
    )

    def ask(secret: str) -> bytes:
        basic = b64encode(f"client:{secret}".encode()).decode()
        headers = {"Authorization": f"Basic {basic}"}
        body = b"grant_type=client_credentials"
        request = urllib.request.Request(endpoint.token_url, body, headers)
        with urllib.request.urlopen(request, timeout=10, context=client) as answer:
            content: bytes = answer.read()
            return content

    with endpoint:
        assert b'"expires_in": 7' in ask("right")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask("wrong")
    assert endpoint.requests == {("/token", 200): 1, ("/token", 401): 1}
