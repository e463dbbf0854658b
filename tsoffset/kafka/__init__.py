"""The adapter to real Kafka clusters, the only part that imports kafka-python.

`tsoffset.kafka.cluster.KafkaCluster` is what the rest of the program takes from it.
"""
