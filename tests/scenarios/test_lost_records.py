"""A source that lost records in an unclean leader election, and wrote others in their place."""

from contextlib import closing

import pytest

from tests.embedded_cluster import EmbeddedCluster
from tests.producing import Contents, numbered
from tests.scenarios.flows import member, one_cycle
from tests.waiting import wait_until
from tsoffset.flow.policy import DefaultGroupFilter, DefaultReplicationPolicy, DefaultTopicFilter
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import Reason

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


def test_a_consumer_that_has_read_lost_records_is_not_moved_past_new_ones(tmp_path, target, unique):
    """Its client commits the leader epoch of what it has read, by which the new leader tells."""
    properties = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}
    topic, group = unique("orders"), unique("group")
    copy = f"A.{topic}"
    target.create_topic(copy)
    with (
        EmbeddedCluster(tmp_path, nodes=3, properties=properties) as nodes,
        closing(Contents(nodes.bootstrap)) as source,
    ):
        _, second, third = nodes.nodes
        source.create_topic(topic, replicas={0: [3, 2]}, configs=UNCLEAN)

        def is_led_by(node: int) -> bool:
            (described,) = source.admin.describe_topics([topic])
            (partition,) = described["partitions"]
            return bool(partition["leader_id"] == node)

        source.produce(topic, numbered(20))
        third.stop()
        wait_until(lambda: is_led_by(2), "the other replica leads")
        source.produce(topic, numbered(20, first=20))
        with member(source, group, topic) as consumer:
            while consumer.position(next(iter(consumer.assignment()))) < 40:
                consumer.poll(timeout_ms=1_000)
            consumer.commit()
        second.stop()
        third.start()
        wait_until(lambda: is_led_by(3), "the node that lacks records leads")
        with closing(Contents(third.bootstrap)) as alone:
            assert alone.log_range(topic) == (0, 20)
            alone.produce(topic, numbered(50, first=1_000))
        for records in (numbered(40), numbered(50, first=1_000)):
            target.produce(copy, records)

        flow = FlowSettings(
            ClusterSettings("A", tuple(nodes.bootstrap.split(","))),
            ClusterSettings("B", (target.bootstrap,)),
            DefaultReplicationPolicy(),
            DefaultGroupFilter([group]),
            DefaultTopicFilter([topic]),
        )
        row = one_cycle(flow).of(group, topic)
        assert (row.source_offset, row.reason) == (40, Reason.PAST_LOG_END)
        assert "leader epoch 1, which ends at 20 in the source's log" in (row.message or "")
        assert target.committed_offsets(group) == {}
