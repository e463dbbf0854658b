"""The adapter on two nodes of which the second one hangs or gives up leaders. (For one that dies:
tests/faults.)"""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest
from kafka import TopicPartition as KafkaTopicPartition
from kafka.protocol.admin import AlterClientQuotasRequest

from tests.embedded_cluster import EmbeddedCluster
from tests.library_messages import message
from tests.processes import stopped
from tests.producing import Contents, Written, numbered
from tests.waiting import wait_until
from tsoffset.kafka import topology
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    FailureKind,
    GroupListings,
    Isolation,
    LeaderEpoch,
    LogRange,
    PartitionDescription,
    ReadFrom,
    TopicPartition,
)
from tsoffset.records import FetchedRange, content_digest

pytestmark = pytest.mark.integration

UNCOMMITTED = Isolation.READ_UNCOMMITTED


@pytest.fixture(scope="module")
def nodes(tmp_path_factory) -> Iterator[EmbeddedCluster]:
    """Two nodes; the first one controls and holds the groups' offsets.

    A silent one counts as gone after four seconds, and quotas look back no further.
    """
    properties = {
        "broker.session.timeout.ms": "4000",
        "broker.heartbeat.interval.ms": "500",
        "quota.window.num": "2",
    }
    with EmbeddedCluster(
        tmp_path_factory.mktemp("nodes"), name="nodes", properties=properties
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def contents(nodes) -> Iterator[Contents]:
    with closing(Contents(nodes.bootstrap)) as made:
        yield made


@pytest.fixture
def connect(nodes, adapter):
    """A function that makes an adapter to both nodes."""
    return partial(adapter, *nodes.bootstrap.split(","))


@pytest.fixture
def second(nodes) -> Iterator[EmbeddedBroker]:
    """The second node, to be stopped by the test and running again after it."""
    node = nodes.nodes[1]
    yield node
    node.start()


def one_on_each(contents: Contents, unique: Callable[[str], str]) -> list[TopicPartition]:
    """Two partitions of ten records, the first on node 1 only, the second on node 2 only."""
    topic = contents.create_topic(unique("topic"), replicas={0: [1], 1: [2]})
    for number in (0, 1):
        contents.produce(topic, numbered(10, start_ms=1_000), partition=number)
    return [TopicPartition(topic, 0), TopicPartition(topic, 1)]


def described(cluster: KafkaCluster, tp: TopicPartition) -> PartitionDescription:
    found = cluster.topics([tp.topic])[tp.topic]
    return found.partitions[tp.partition]


def described_brokers(cluster: KafkaCluster) -> list[int]:
    return [broker.node_id for broker in cluster.describe().brokers]


def leader(cluster: KafkaCluster, tp: TopicPartition) -> int | None:
    return described(cluster, tp).leader


def both_answer(cluster: KafkaCluster, partitions: list[TopicPartition]) -> bool:
    return cluster.log_ranges(partitions, UNCOMMITTED) == {tp: LogRange(0, 10) for tp in partitions}


def test_a_leader_that_moved_is_looked_up_again(connect, contents, unique):
    """The old leader's refusal leads to the new one, within one call; the new leader's epoch is
    higher, by which a cache knows that the log may have lost its end."""
    topic = contents.create_topic(unique("topic"), replicas={0: [1]})
    contents.produce(topic, numbered(10))
    tp = TopicPartition(topic, 0)
    cluster, witness = connect(), connect()
    assert both_answer(cluster, [tp])
    epoch = described(witness, tp).leader_epoch or 0
    moved = contents.admin.alter_partition_reassignments({KafkaTopicPartition(topic, 0): [2]})
    assert list(moved.values()) == [None]
    wait_until(lambda: leader(witness, tp) == 2, f"{tp} has moved")
    assert (described(witness, tp).leader_epoch or 0) > epoch
    looked_up = cluster.requests["metadata"]
    assert isinstance(cluster.read([ReadFrom(tp, 0)], UNCOMMITTED)[ReadFrom(tp, 0)], FetchedRange)
    assert both_answer(cluster, [tp])
    assert cluster.requests["metadata"] > looked_up
    contents.produce(topic, numbered(5))
    now = described(witness, tp).leader_epoch or 0
    ends = cluster.epoch_ends([LeaderEpoch(tp, epoch), LeaderEpoch(tp, now)])
    assert ends == {LeaderEpoch(tp, epoch): 10, LeaderEpoch(tp, now): 15}


@pytest.fixture
def groups_on_both(contents, unique) -> Iterator[list[str]]:
    """Groups whose offsets lie on node 1 alone, or on node 2 alone, while the test runs."""
    topic = contents.create_topic(unique("topic"))
    groups = [unique("group") for _ in range(8)]
    for group in groups:
        contents.commit_offsets(group, {(topic, 0): 0})
    (described,) = contents.admin.describe_topics([GROUP_OFFSETS_TOPIC])
    places = [
        KafkaTopicPartition(GROUP_OFFSETS_TOPIC, each["partition_index"])
        for each in described["partitions"]
    ]

    def move(nodes: tuple[int, int]) -> None:
        wanted = {place: [nodes[place.partition % 2]] for place in places}
        contents.admin.alter_partition_reassignments(wanted)
        wait_until(lambda: not contents.admin.list_partition_reassignments(), "all is moved")

    move((1, 2))
    yield groups
    move((1, 1))


def test_groups_of_a_fenced_broker_do_not_vanish_silently(
    connect, second, groups_on_both, monkeypatch
):
    """A broker that hangs is fenced after its session and leaves the metadata. No broker lists
    the groups whose offsets only it has: the listing names their partitions while these have no
    leader. Never is a group missing from a listing without a reason."""
    cluster = connect(client={"request.timeout.ms": "5000"}, admin_timeout_ms=15_000)
    everyone = set(groups_on_both)

    def listed() -> GroupListings:
        found = cluster.groups()
        assert found.failures or everyone <= set(found.groups)
        return found

    # A broker that has not begun to load the groups that moved to it lists none, and no error.
    wait_until(lambda: everyone <= set(cluster.groups().groups), "node 2 has loaded its groups")
    wait_until(lambda: not listed().failures, "all groups are listed")
    with monkeypatch.context() as slowly:
        slowly.setattr(topology, "_A_MOMENT_SECONDS", 60)
        cluster.describe()
        asked = cluster.requests["metadata"]
        groups = listed().groups
        assert cluster.requests["metadata"] == asked, "the request of `describe` is enough"
    coordinators = {group: groups[group].coordinator for group in groups_on_both}
    assert set(coordinators.values()) == {1, 2}
    with stopped(second.pid):
        wait_until(lambda: described_brokers(cluster) == [1], "node 2 is fenced")
        fenced = listed()
    assert not fenced.failed_brokers
    assert fenced.leaderless is not None
    assert fenced.leaderless.kind is FailureKind.NO_LEADER
    assert f"list groups, cluster A: no broker leads partitions 1, 3 of {GROUP_OFFSETS_TOPIC}" in (
        fenced.leaderless.message
    )
    here = {group for group, node in coordinators.items() if node == 1}
    assert set(groups_on_both) & set(fenced.groups) == here
    # As at the beginning: a broker that comes back may lead before it has begun to load.
    wait_until(lambda: everyone <= set(cluster.groups().groups), "node 2 has loaded them again")


@pytest.mark.usefixtures("running_time")
@pytest.mark.parametrize("heard_last", [0, 1], ids=["hanging", "answering"])
def test_a_broker_that_hangs_does_not_hold_up_a_look_at_the_metadata(
    connect, contents, unique, second, heard_last, monkeypatch
):
    """The broker that answered last is asked first. While there are others to ask, no broker is
    waited for as long as a request may take."""
    here, there = one_on_each(contents, unique)
    cluster = connect(admin_timeout_ms=15_000)
    if heard_last:
        # The one that answers is the only one asked, however busy its machine is.
        monkeypatch.setattr(topology, "_FIRST_WAIT_MS", 15_000)
    partitions = [there, here] if heard_last else [here, there]
    for tp in (*partitions, partitions[-1]):
        assert isinstance(cluster.log_ranges([tp], UNCOMMITTED)[tp], LogRange)
    asked = cluster.requests["metadata"]
    with stopped(second.pid):
        assert leader(cluster, here) == 1
    assert cluster.requests["metadata"] == asked + (1 if heard_last else 2)


def test_a_throttled_reader_waits(connect, contents, unique):
    """A broker that throttles leaves the data out, which is no answer: it is asked again
    until everything is read, at the quota's pace, which is slower here than a call's deadline
    allows for."""
    topic = contents.create_topic(unique("topic"), replicas={0: [1]})
    contents.produce(topic, [Written(1_000 + n, bytes([n]) * 20_000) for n in range(20)], batch=1)
    client_id = unique("throttled")
    limit = {
        "entity": [{"entity_type": "client-id", "entity_name": client_id}],
        "ops": [{"key": "consumer_byte_rate", "value": 100_000.0, "remove": False}],
    }
    quota = message(AlterClientQuotasRequest, entries=[limit], validate_only=False)
    answer = contents.admin._manager.run(contents._send, quota, None)
    assert [entry.error_code for entry in answer.entries] == [0]
    client = {"client.id": client_id, "request.timeout.ms": "3000"}
    cluster = connect(client=client, admin_timeout_ms=3_000)
    tp = TopicPartition(topic, 0)
    asked = [ReadFrom(tp, offset) for offset in range(20)]
    answers = cluster.read(asked, UNCOMMITTED)
    assert [
        answer.records[0].value
        for request in asked
        if isinstance(answer := answers[request], FetchedRange)
    ] == [content_digest(bytes([n]) * 20_000) for n in range(20)]
    assert cluster.requests["fetch"] > len(asked), "the broker did not throttle"
