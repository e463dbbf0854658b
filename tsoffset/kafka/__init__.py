"""The adapter to real Kafka clusters. Only it, the embedded brokers and the demo import
kafka-python.

Other packages use `tsoffset.kafka.cluster.KafkaCluster`.
"""
