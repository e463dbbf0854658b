"""Large but valid input, over brokers of this process."""

from contextlib import ExitStack
from resource import RUSAGE_SELF, getrusage
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError
from kafka.protocol.metadata import MetadataRequest

from tests.hostile_broker import METADATA, Brokers, Lie, ReceivedRequest, partition
from tests.memory_flows import NOW_MS, Estate, flow, row_of
from tsoffset.flow.settings import ClusterSettings
from tsoffset.group_sync.cycle import cycle
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.kafka.deadline import Deadline
from tsoffset.kafka.wire.library_codec import LibraryCodec
from tsoffset.model import OutcomeKind, Precision, Row, TopicPartition
from tsoffset.testing.memory_cluster import Message

MEGABYTE = 1_000_000


def connected(stack: ExitStack, estate: Estate, alias: str, lie: Lie | None = None) -> KafkaCluster:
    brokers = Brokers(estate[alias], [] if lie is None else [(None, METADATA, lie)])
    settings = ClusterSettings(alias, (stack.enter_context(brokers.open()),))
    return stack.enter_context(KafkaCluster(settings))


def synced(estate: Estate) -> list[Row]:
    with ExitStack() as stack:
        return cycle(flow(), connected(stack, estate, "A"), connected(stack, estate, "B"))


@pytest.mark.slow
def test_records_of_20_megabytes_are_found():
    """One is what a group reads next; it comes whole, and is digested like any other."""
    estate = Estate()
    estate["A"].create_topic("large")
    for number in range(4):
        value = bytes((number,)) * (20 * MEGABYTE)
        estate["A"].log("large").append([Message(NOW_MS + number, b"k", value)])
    estate.mirror("large", first_offset=5)
    estate.commit("g", "large", 2)
    row = row_of(synced(estate), "g")
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT)
    assert row.target_offset == 7


def with_many_partitions(vast: list[Any]) -> Lie:
    """Metadata with a topic of them beside what there is; a broker has it ready."""

    def lie(asked: ReceivedRequest) -> bytes:
        if asked.request.topics is None:
            [orders] = asked.answer.topics
            same = {"error_code": 0, "topic_id": orders.topic_id, "is_internal": False}
            asked.answer.topics.append(type(orders)(name="vast", partitions=vast, **same))
        return asked.frame()

    return lie


@pytest.mark.slow
def test_metadata_of_100_000_partitions_is_read():
    """In little memory; what is asked after it is answered as before."""
    estate = Estate(brokers=2)
    estate.write("orders")
    vast = [partition(number, number % 2) for number in range(100_000)]
    with ExitStack() as stack:
        cluster = connected(stack, estate, "A", with_many_partitions(vast))
        before = getrusage(RUSAGE_SELF).ru_maxrss
        found = cluster.topics()["vast"]
        assert len(found.partitions) == 100_000
        assert getrusage(RUSAGE_SELF).ru_maxrss - before < 300_000  # kB
        assert len(cluster.log_ranges([TopicPartition("orders", 0)], flow().isolation)) == 1


def decoded(deadline: Deadline) -> object:
    """A valid answer of 3 MB, decoded within the deadline."""
    codec = LibraryCodec(
        lambda _, version: MetadataRequest(topics=None, version=version), "c", deadline, 12
    )
    codec.encode(None, 1)
    return codec.decode(memoryview(b"\x01" * (3 * MEGABYTE)))


def test_an_answer_is_given_up_where_the_call_has_no_time_for_it():
    """A part of the call may be over: one address is not waited for as long as all of them."""
    part = Deadline.after(60_000).within(0)
    assert part.over
    assert decoded(part)
    with pytest.raises(KafkaTimeoutError):
        decoded(Deadline.after(0))
