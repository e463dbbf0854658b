"""The adapter to real Kafka clusters, the only part that imports kafka-python."""

from tsoffset.kafka.cluster import KafkaCluster

__all__ = ["KafkaCluster"]
