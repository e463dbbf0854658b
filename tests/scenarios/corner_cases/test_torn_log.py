"""A log that lost its end: an unclean leader election on the source."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from kafka.errors import KafkaError

from tests.producing import Contents, numbered
from tests.scenarios.corner_cases.answers import every, fail_over, judged, logs_of
from tests.scenarios.corner_cases.corners import TORN, Corners
from tests.scenarios.corner_cases.holdings import RECORDS, TORN_LOG, TRIMMED
from tests.scenarios.estate import wait_until
from tsoffset.embedded import EmbeddedBroker
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = pytest.mark.integration

# What both replicas have, and how far the one that is lost came.
SHARED, LOST = TRIMMED + RECORDS, 200
LEADER, FOLLOWER = 2, 3


@pytest.fixture(scope="module")
def replicas(
    deep_broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, EmbeddedBroker]]:
    """Two more nodes of that cluster."""
    folder = tmp_path_factory.mktemp("replicas")
    nodes = {
        number: EmbeddedBroker(
            folder / str(number),
            name=f"deep-{number}",
            joins=deep_broker,
            node_id=number,
            properties={"replica.lag.time.max.ms": "2000"},
        )
        for number in (LEADER, FOLLOWER)
    }
    with ExitStack() as running:
        for node in nodes.values():
            running.enter_context(node)
        yield nodes


@pytest.fixture(scope="module")
def grown(
    corners: Corners, deep_broker: EmbeddedBroker, replicas: dict[int, EmbeddedBroker]
) -> Iterator[Corners]:
    """The same, with a client that knows these nodes."""
    with closing(Contents(deep_broker.bootstrap)) as deep:
        yield corners.with_contents("deep", deep)


def test_source_log_shorter_than_the_commit(
    grown: Corners, replicas: dict[int, EmbeddedBroker]
) -> None:
    """A replica that was behind becomes the leader when the others are lost: the source's log is
    shorter than what a group has read and the mirror has copied. The group is past the log's
    end. MirrorMaker 2 begins anew and copies all again; then others' records come at the
    offsets that were lost. No group skips any, and those that stand before the tear are exact
    where their records were first copied."""
    group = "past-the-tear"
    corners = grown
    source, target = corners.sides(TORN)
    remote = corners.remote(TORN, TORN_LOG)
    source.create_topic(TORN_LOG, replicas={0: [LEADER, FOLLOWER]})
    source.produce(TORN_LOG, numbered(SHARED))
    source.delete_records(TORN_LOG, TRIMMED)
    replicas[FOLLOWER].stop()
    wait_until(lambda: state(source) == (LEADER, {LEADER}), "the follower is out of sync")
    source.produce(TORN_LOG, numbered(LOST, first=SHARED))
    corners.wait_until_mirrored(TORN, TORN_LOG)
    (_, copied) = target.log_range(remote)
    assert copied == RECORDS + LOST
    source.commit_offsets(group, {(TORN_LOG, 0): SHARED + LOST - 50})
    replicas[LEADER].kill()
    wait_until(lambda: state(source)[0] is None, "the leader is gone")
    replicas[FOLLOWER].start()
    wait_until(lambda: state(source)[0] == FOLLOWER, "the other replica leads")
    wait_until(lambda: end_of(source) == SHARED, "the log is shorter")

    row = corners.sync(TORN, group).of(group, TORN_LOG)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.PAST_LOG_END)
    assert target.committed_offsets(group) == {}

    others = numbered(2 * LOST, first=10 * SHARED)
    source.produce(TORN_LOG, others)
    last = others[-1].value
    assert last is not None
    corners.wait_until_there(TORN, TORN_LOG, last)
    logs = logs_of(corners, TORN, TORN_LOG)
    assert logs.not_mirrored == set()
    assert logs.end == SHARED + 2 * LOST
    answers = judged(corners, TORN, TORN_LOG, every(logs, 3), logs)
    assert answers.exact >= 0.99 * answers.positions
    row = corners.sync(TORN, group).of(group, TORN_LOG)
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
    assert row.target_offset is not None
    got = logs.from_target(row.target_offset)
    assert got == logs.unread(SHARED + LOST - 50)
    fail_over(corners, TORN, TORN_LOG, logs, [SHARED + 1, SHARED + LOST, logs.end])


def state(contents: Contents) -> tuple[int | None, set[int]]:
    """Who leads the partition, and which replicas are in sync."""
    try:
        (described,) = contents.admin.describe_topics([TORN_LOG])
    except KafkaError:
        # The client may ask a dead node first.
        return 0, set()
    (partition,) = described["partitions"]
    leader = partition["leader_id"]
    return (None if leader < 0 else leader), {*partition["isr_nodes"]}


def end_of(contents: Contents) -> int | None:
    """Where the log ends; None while its leader does not answer."""
    try:
        return contents.log_range(TORN_LOG)[1]
    except KafkaError:
        return None
