"""The newest heartbeat of a topic: when MirrorMaker 2 wrote it on its first cluster.

The value is that of org.apache.kafka.connect.mirror.Heartbeat, big-endian: int16 version (0), int64
timestamp in milliseconds. Its key names the connector that emits; only the topic's name says where
it came from.
"""

import struct
from collections.abc import Mapping

from tsoffset.cluster import Cluster
from tsoffset.model import Failed, Isolation, ReadFrom, TopicPartition

_VALUE = struct.Struct(">hq")
_VERSION = 0


def heartbeat_timestamp_ms(value: bytes | None) -> int | None:
    """When the heartbeat was emitted; None if it is no heartbeat."""
    if value is None or len(value) != _VALUE.size:
        return None
    version, timestamp_ms = _VALUE.unpack(value)
    return timestamp_ms if version == _VERSION and timestamp_ms >= 0 else None


def newest_heartbeats(
    cluster: Cluster, topics: Mapping[str, int]
) -> Mapping[str, int | Failed | None]:
    """When the newest heartbeat of each topic was emitted, in milliseconds; None if there is none.
    `topics` maps names to numbers of partitions. Reads the last batch of each partition. Raises
    ClusterUnreachable."""
    partitions = [TopicPartition(topic, n) for topic, count in topics.items() for n in range(count)]
    found: dict[str, int | Failed | None] = dict.fromkeys(topics)
    requests = []
    for one, log in cluster.log_ranges(partitions, Isolation.READ_COMMITTED).items():
        if isinstance(log, Failed):
            found[one.topic] = log
        elif log.start < log.end:
            requests.append(ReadFrom(one, log.end - 1))
    for request, stretch in cluster.read_raw(requests, Isolation.READ_COMMITTED).items():
        topic = request.partition.topic
        known = found[topic]
        if isinstance(stretch, Failed):
            found[topic] = stretch
        elif not isinstance(known, Failed):
            emitted = [heartbeat_timestamp_ms(record.value) for record in stretch.records]
            found[topic] = max((it for it in (known, *emitted) if it is not None), default=None)
    return found
