"""A source that lost records in an unclean leader election, and wrote others in their place."""

from contextlib import closing
from typing import Any

import pytest

from tests.embedded_cluster import LONG_SESSION, EmbeddedCluster
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
    topic, group = unique("orders"), unique("group")
    copy = f"A.{topic}"
    target.create_topic(copy)
    with (
        EmbeddedCluster(tmp_path, nodes=3, properties=LONG_SESSION) as nodes,
        closing(Contents(nodes.bootstrap)) as source,
    ):
        _, second, third = nodes.nodes
        source.create_topic(topic, replicas={0: [3, 2]}, configs=UNCLEAN)

        def partition() -> dict[str, Any]:
            (described,) = source.admin.describe_topics([topic])
            (found,) = described["partitions"]
            return found

        def is_led_by(node: int) -> bool:
            return bool(partition()["leader_id"] == node)

        source.produce(topic, numbered(20))
        wait_until(lambda: {*partition()["isr_nodes"]} == {2, 3}, "both replicas are in sync")
        third.stop()
        wait_until(lambda: is_led_by(2), "the other replica leads")
        source.produce(topic, numbered(20, first=20))
        with member(source, group, topic) as consumer:
            (assigned,) = consumer.assignment()

            def has_read_all() -> bool:
                consumer.poll(timeout_ms=1_000)
                return bool(consumer.position(assigned) == 40)

            wait_until(has_read_all, "the consumer has read all records")
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
