"""What the names of a cluster's topics tell, and what heartbeats do."""

import struct
import time
from typing import Any

import pytest

from tests.memory_flows import Estate, flow, identity_flow
from tsoffset.flow.policy import DefaultTopicFilter
from tsoffset.model import Failed, FailureKind
from tsoffset.replicators.discovery import discover, heartbeat_timestamp_ms
from tsoffset.replicators.topic_names import Found, TopicKind
from tsoffset.testing.memory_cluster import Message, Verb

UPSTREAM, REMOTE, HEARTBEATS = TopicKind.UPSTREAM, TopicKind.REMOTE, TopicKind.HEARTBEATS
NOW_MS = int(time.time() * 1000)


def beat(emitted_ms: int) -> Message:
    return Message(emitted_ms, b"key", struct.pack(">hq", 0, emitted_ms))


def with_topics(**topics: list[str]) -> Estate:
    """Clusters with topics of these names; each heartbeats topic has one, as old as its name is
    long in seconds."""
    estate = Estate(*topics)
    for alias, names in topics.items():
        for name in names:
            estate[alias].create_topic(name)
            if name.endswith("heartbeats"):
                hops = name.count(".")
                stamps = [NOW_MS - 60_000, NOW_MS - 3_000 * hops]
                estate[alias].log(name).append([beat(stamp) for stamp in stamps], batch_size=1)
    return estate


def told(found: list[Found], cluster: str) -> dict[tuple[TopicKind, str | None], tuple[Any, ...]]:
    """By kind, and the topic's name or the cluster upstream."""
    return {
        (one.kind, one.source if one.kind is UPSTREAM else one.topic): (
            one.source,
            one.original_topic,
            one.hops,
        )
        for one in found
        if one.cluster == cluster
    }


def test_remote_topics_and_clusters_upstream_with_their_hops():
    """Over two hops, with what MirrorMaker 2 makes for itself; a dot in a name is no cluster."""
    estate = with_topics(
        A=["orders", "eu.orders", "heartbeats", "mm2-offset-syncs.B.internal"],
        B=["A.orders", "A.eu.orders", "A.heartbeats", "heartbeats", "A.checkpoints.internal"],
        C=["B.A.orders", "B.A.heartbeats", "B.heartbeats", "B.A.eu.orders", "own"],
    )
    found = discover([flow("A", "B"), flow("B", "C")], estate.connect)
    assert told(found, "A") == {
        (HEARTBEATS, "heartbeats"): (None, "heartbeats", 0),
        (TopicKind.OFFSET_SYNCS, "mm2-offset-syncs.B.internal"): ("B", None, None),
    }
    assert told(found, "B") == {
        (UPSTREAM, "A"): ("A", "heartbeats", 1),
        (REMOTE, "A.orders"): ("A", "orders", 1),
        (REMOTE, "A.eu.orders"): ("A", "eu.orders", 1),
        (HEARTBEATS, "A.heartbeats"): ("A", "heartbeats", 1),
        (HEARTBEATS, "heartbeats"): (None, "heartbeats", 0),
        (TopicKind.CHECKPOINTS, "A.checkpoints.internal"): ("A", None, None),
    }
    assert told(found, "C") == {
        (UPSTREAM, "B"): ("B", "heartbeats", 1),
        (UPSTREAM, "A"): ("A", "heartbeats", 2),
        (REMOTE, "B.A.orders"): ("B", "orders", 2),
        (REMOTE, "B.A.eu.orders"): ("B", "eu.orders", 2),
        (HEARTBEATS, "B.A.heartbeats"): ("B", "heartbeats", 2),
        (HEARTBEATS, "B.heartbeats"): ("B", "heartbeats", 1),
    }


def test_the_lag_is_how_much_newer_the_heartbeat_upstream_is():
    """Each hop is three seconds late here; the age is by our own clock."""
    estate = with_topics(
        A=["heartbeats"], B=["A.heartbeats", "heartbeats"], C=["B.A.heartbeats", "B.heartbeats"]
    )
    found = discover([flow("A", "B"), flow("B", "C")], estate.connect)
    lags = {
        (one.cluster, one.source): (one.topic, one.heartbeat_timestamp_ms, one.replication_lag_ms)
        for one in found
        if one.kind is UPSTREAM
    }
    assert lags == {
        ("B", "A"): ("A.heartbeats", NOW_MS - 3_000, 3_000),
        ("C", "B"): ("B.heartbeats", NOW_MS - 3_000, 3_000),
        ("C", "A"): ("B.A.heartbeats", NOW_MS - 6_000, 6_000),
    }
    ages = [one.heartbeat_age_ms or 0 for one in found if one.kind is UPSTREAM]
    assert min(ages) >= 3_000


def test_heartbeats_are_read_behind_markers_of_transactions():
    """With exactly.once.source.support, Connect emits and copies them in transactions: the end of
    each log is a marker, or several after aborted ones."""
    estate = with_topics(A=["heartbeats"], B=["A.heartbeats"])
    for alias, topic, emitted_ms in (("A", "heartbeats", 1_000), ("B", "A.heartbeats", 2_500)):
        for ends in ("commit", "abort"):
            transaction = estate[alias].log(topic).begin()
            transaction.append([beat(NOW_MS - emitted_ms)])
            getattr(transaction, ends)()
    [upstream] = [one for one in discover([flow()], estate.connect) if one.kind is UPSTREAM]
    assert upstream.heartbeat_timestamp_ms == NOW_MS - 2_500
    assert upstream.replication_lag_ms == 1_500


def test_remote_topics_are_told_while_their_source_is_unreachable():
    """Their names say where they are from: on the day of a failover somebody looks."""
    estate = with_topics(A=["orders"], B=["A.orders"])
    estate["A"].unreachable = True
    found = discover([flow()], estate.connect)
    assert (REMOTE, "A.orders") in told(found, "B")


def test_a_topic_that_cannot_be_described_is_told():
    """It may be a remote one: to leave it out would say that it is not there."""
    estate = with_topics(A=["orders"], B=["A.orders", "A.clicks"])
    no_leader = Failed(FailureKind.NO_LEADER, "describe topic A.clicks: no leader")
    estate["B"].fail(no_leader, verb=Verb.TOPICS, topic="A.clicks")
    found = [one for one in discover([flow()], estate.connect) if one.cluster == "B"]
    assert {(one.kind, one.topic, one.reason) for one in found if one.kind is not UPSTREAM} == {
        (REMOTE, "A.orders", None),
        (TopicKind.FAILED, "A.clicks", FailureKind.NO_LEADER),
    }


def test_without_heartbeats_remote_topics_tell_who_is_upstream():
    """MirrorClient knows nothing of it then; neither is there a lag."""
    estate = with_topics(A=["orders"], B=["A.orders", "Z.orders"])
    found = discover([flow()], estate.connect)
    assert told(found, "B") == {
        (UPSTREAM, "A"): ("A", None, 1),
        (REMOTE, "A.orders"): ("A", "orders", 1),
    }
    assert [one.replication_lag_ms for one in found] == [None, None]


def test_names_that_do_not_tell_are_remote_where_the_source_has_them():
    """Under IdentityReplicationPolicy, of the topics that the flow takes."""
    estate = with_topics(A=["orders", "left.out"], B=["orders", "left.out", "own", "A.heartbeats"])
    chosen = identity_flow(topic_filter=DefaultTopicFilter(["orders", "own"]))
    found = told(discover([chosen], estate.connect), "B")
    assert found == {
        (UPSTREAM, "A"): ("A", "heartbeats", 1),
        (REMOTE, "orders"): ("A", "orders", 1),
        (HEARTBEATS, "A.heartbeats"): ("A", "heartbeats", 1),
    }
    assert told(discover([chosen], estate.connect), "A") == {}


def test_what_cannot_be_read_is_said_and_the_rest_is_there():
    """A topic that may not be read is a failed row; a log without heartbeats has no time."""
    estate = with_topics(A=["heartbeats"], B=["A.heartbeats", "A.orders"])
    estate["A"].log("heartbeats").append([Message(NOW_MS, b"k", b"no heartbeat")])
    estate["B"].fail(
        Failed(FailureKind.AUTHORIZATION, "read, A.heartbeats-0: no"), verb=Verb.READ_RAW
    )
    found = discover([flow()], estate.connect)
    assert {one.reason for one in found if one.topic == "A.heartbeats"} == {
        FailureKind.AUTHORIZATION
    }
    (own,) = [one for one in found if one.cluster == "A"]
    assert own.heartbeat_timestamp_ms is None
    assert (REMOTE, "A.orders") in told(found, "B")


@pytest.mark.parametrize(
    ("value", "emitted_ms"),
    [
        (struct.pack(">hq", 0, 17), 17),
        (struct.pack(">hq", 1, 17), None),
        (struct.pack(">hq", 0, -1), None),
        (b"\0\0", None),
        (None, None),
    ],
)
def test_only_heartbeats_are_taken_for_some(value, emitted_ms):
    """Of another version, length or time, a record tells nothing."""
    assert heartbeat_timestamp_ms(value) == emitted_ms
