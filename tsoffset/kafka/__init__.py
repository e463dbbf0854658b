"""The adapter to real Kafka clusters. Only it, the embedded brokers and the demo import
kafka-python.

Other packages use `kafka_cluster`, or `cluster.KafkaCluster`, which loads the client library at
once.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsoffset.cluster import Cluster
    from tsoffset.flow.settings import ClusterSettings


def kafka_cluster(settings: "ClusterSettings") -> "Cluster":
    """A real cluster; loads the client library, and connects when it is first asked."""
    from tsoffset.kafka.cluster import KafkaCluster

    return KafkaCluster(settings)
