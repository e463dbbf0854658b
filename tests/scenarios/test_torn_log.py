"""A log that lost its end: an unclean leader election on the source."""

from contextlib import closing

import pytest
from kafka.errors import KafkaError

from tests.embedded_cluster import EmbeddedCluster
from tests.producing import Contents, numbered
from tests.scenarios.flows import Flows, prepare_mirror
from tests.scenarios.judging import Logs
from tests.waiting import wait_until
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = [pytest.mark.integration, pytest.mark.long]

FLOW, TOPIC = "torn->mended", "torn-log"
# What both replicas have, what the log has lost at its start, and how far the replica that is lost
# came.
SHARED, TRIMMED, LOST = 1_100, 100, 200
LEADER, FOLLOWER, NOBODY = 2, 3, -1
PROPERTIES = {"unclean.leader.election.enable": "true", "replica.lag.time.max.ms": "2000"}


def test_source_log_shorter_than_the_commit(target, tmp_path):
    """A replica that was behind becomes the leader when the other is lost: the source's log is
    shorter than what a group has read and the mirror has copied. The group is past the log's
    end. Then others' records come at the offsets that were lost, and MirrorMaker 2, whose
    consumer compares leader epochs, goes back to the tear and copies them behind the lost ones.
    Groups before the tear and behind it resume exactly."""
    group = "past-the-tear"
    with EmbeddedCluster(tmp_path, nodes=3, name="torn", properties=PROPERTIES) as cluster:
        nodes = {node.node_id: node for node in cluster.nodes}
        with closing(Contents(cluster.bootstrap)) as source:
            clusters = {"torn": source, "mended": target}
            mirror = prepare_mirror(tmp_path, clusters, {FLOW: [TOPIC]})
            source.create_topic(TOPIC, replicas={0: [LEADER, FOLLOWER]})
            source.produce(TOPIC, numbered(SHARED))
            source.delete_records(TOPIC, TRIMMED)
            nodes[FOLLOWER].stop()
            wait_until(lambda: state(source) == (LEADER, {LEADER}), "the follower is out of sync")
            source.produce(TOPIC, numbered(LOST, first=SHARED))
            with mirror:
                Flows(clusters, mirror).wait_until_mirrored(FLOW, TOPIC)
                source.commit_offsets(group, {(TOPIC, 0): SHARED + LOST - 50})
                nodes[LEADER].kill()
                wait_until(lambda: leader(source) == NOBODY, "the leader is gone")
                nodes[FOLLOWER].start()
                wait_until(lambda: leader(source) == FOLLOWER, "the other replica leads")
                # A new client, which knows the nodes there are now.
                with closing(Contents(cluster.bootstrap)) as shorter:
                    check_torn(Flows({"torn": shorter, "mended": target}, mirror), group)


def check_torn(flows: Flows, group: str) -> None:
    source, target = flows.sides(FLOW)
    (_, copied) = target.log_range(flows.remote(FLOW, TOPIC))
    assert copied == SHARED - TRIMMED + LOST
    assert source.log_range(TOPIC) == (TRIMMED, SHARED)
    row = flows.sync(FLOW, group).of(group, TOPIC)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.PAST_LOG_END)
    assert target.committed_offsets(group) == {}

    source.produce(TOPIC, numbered(2 * LOST, first=10 * SHARED))
    flows.wait_until_there(FLOW, TOPIC)
    logs = Logs(flows, FLOW, TOPIC)
    assert logs.not_mirrored == set()
    assert logs.end == SHARED + 2 * LOST
    assert len(logs.target) == copied + 2 * LOST
    positions = logs.every(3)
    assert len(logs.inexact(positions)) <= len(positions) // 100
    row = flows.sync(FLOW, group).of(group, TOPIC)
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
    assert logs.from_target(row.target_offset) == logs.unread(SHARED + LOST - 50)
    logs.fail_over([SHARED + 1, SHARED + LOST, logs.end])


def state(contents: Contents) -> tuple[int, set[int]] | None:
    """Who leads the partition (-1: nobody), and which replicas are in sync; None where the
    client asked a dead node."""
    try:
        (described,) = contents.admin.describe_topics([TOPIC])
    except KafkaError:
        return None
    (partition,) = described["partitions"]
    return partition["leader_id"], {*partition["isr_nodes"]}


def leader(contents: Contents) -> int | None:
    """Who leads the partition; None where the client asked a dead node."""
    found = state(contents)
    return None if found is None else found[0]
