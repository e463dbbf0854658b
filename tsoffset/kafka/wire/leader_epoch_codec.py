"""OffsetForLeaderEpoch (KIP-320), encoded and decoded by the library: where leader epochs end.

Questions and answers have the form of those of ListOffsets, with an epoch in place of a time.
"""

from typing import Any

from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.library_codec import LibraryCodec
from tsoffset.kafka.wire.list_offsets_codec import ListOffsetsAnswer, Lookups

# Before version 3, a client needs CLUSTER_ACTION.
LOWEST, HIGHEST = 3, 4

_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
_Partition = _Topic.OffsetForLeaderPartition
_NO_REPLICA = -1
_NO_TIME = -1


class LeaderEpochCodec(LibraryCodec[Lookups]):
    def __init__(self, client_id: str, deadline: Deadline, version: int) -> None:
        super().__init__(_request, client_id, deadline, version)

    def decode(self, frame: memoryview) -> ListOffsetsAnswer:
        """The offset of an epoch that the log does not have is -1."""
        response = super().decode(frame)
        topics = (
            (
                topic.topic,
                tuple(
                    (p.partition, p.error_code, _NO_TIME, p.end_offset) for p in topic.partitions
                ),
            )
            for topic in response.topics
        )
        return ListOffsetsAnswer(response.throttle_time_ms, tuple(topics))


def _request(topics: Lookups, version: int) -> Any:
    wanted = [
        _Topic(
            topic=name,
            partitions=[
                _Partition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
                for index, (current, epoch, _) in partitions.items()
            ],
        )
        for name, partitions in topics.items()
    ]
    return OffsetForLeaderEpochRequest(replica_id=_NO_REPLICA, topics=wanted, version=version)
