"""Secured brokers of this machine: what `test_security.py`, whose client is ours, cannot show."""

from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.embedded_cluster import EmbeddedCluster
from tsoffset.lab.embedded import Access, BrokerListener, BrokerSecurity

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


def test_what_holds_passwords_is_for_its_owner_alone(secured):
    """Nothing that the broker was told is readable by others, and the file for the format is
    gone."""
    broker = secured.broker
    assert broker.properties_path.stat().st_mode & 0o077 == 0
    assert not list(broker.directory.glob("*-format.txt"))
    assert not any("secret" in path.read_text() for path in broker.directory.glob("*.log"))
