"""Secured brokers of this machine: what `test_security.py`, whose client is ours, cannot show."""

import subprocess
from contextlib import closing
from pathlib import Path

import javaproperties
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.embedded_cluster import EmbeddedCluster
from tests.java_stores import write_jks
from tsoffset.java import find_java
from tsoffset.lab.embedded import Access, BrokerListener, BrokerSecurity, resolve_jars

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def test_nodes_of_a_secured_cluster_copy_from_each_other(tmp_path):
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


def test_stores_are_read_by_kafkas_own_client(secured, tmp_path):
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


def test_what_holds_passwords_is_for_its_owner_alone(secured):
    """Nothing that the broker was told is readable by others, and the file for the format is
    gone."""
    broker = secured.broker
    assert broker.properties_path.stat().st_mode & 0o077 == 0
    assert not list(broker.directory.glob("*-format.txt"))
    assert not any("secret" in path.read_text() for path in broker.directory.glob("*.log"))
