"""A log that lost its end: an unclean leader election on the source."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from kafka.errors import KafkaError

from tests.producing import Contents, numbered
from tests.scenarios.corner_cases.corners import TORN, Corners
from tests.scenarios.corner_cases.holdings import RECORDS, TORN_LOG, TRIMMED
from tests.scenarios.judging import Logs
from tests.waiting import wait_until
from tsoffset.lab.embedded import EmbeddedBroker
from tsoffset.model import OutcomeKind, Precision, Reason

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

# What both replicas have, and how far the one that is lost came.
SHARED, LOST = TRIMMED + RECORDS, 200
LEADER, FOLLOWER, NOBODY = 2, 3, -1


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


@pytest.fixture
def anew(corners: Corners, deep_broker: EmbeddedBroker) -> Iterator[Callable[[], Corners]]:
    """A function that gives the same with a new client, which knows the nodes there are now."""
    with ExitStack() as opened:

        def make() -> Corners:
            contents = opened.enter_context(closing(Contents(deep_broker.bootstrap)))
            return corners.with_contents("deep", contents)

        yield make


def test_source_log_shorter_than_the_commit(
    anew: Callable[[], Corners], replicas: dict[int, EmbeddedBroker]
) -> None:
    """A replica that was behind becomes the leader when the others are lost: the source's log is
    shorter than what a group has read and the mirror has copied. The group is past the log's
    end. Then others' records come at the offsets that were lost, and MirrorMaker 2, whose
    consumer compares leader epochs, goes back to the tear and copies them behind the lost ones.
    Groups before the tear and behind it resume exactly."""
    group = "past-the-tear"
    corners = anew()
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
    # A mirror that finds the topic before it is trimmed copies those records, too.
    assert RECORDS + LOST <= copied <= SHARED + LOST
    source.commit_offsets(group, {(TORN_LOG, 0): SHARED + LOST - 50})
    replicas[LEADER].kill()
    wait_until(lambda: leader(source) == NOBODY, "the leader is gone")
    replicas[FOLLOWER].start()
    wait_until(lambda: leader(source) == FOLLOWER, "the other replica leads")
    corners = anew()
    source, _ = corners.sides(TORN)
    assert source.log_range(TORN_LOG) == (TRIMMED, SHARED)

    row = corners.sync(TORN, group).of(group, TORN_LOG)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.PAST_LOG_END)
    assert target.committed_offsets(group) == {}

    others = numbered(2 * LOST, first=10 * SHARED)
    source.produce(TORN_LOG, others)
    last = others[-1].value
    assert last is not None
    corners.wait_until_there(TORN, TORN_LOG, last)
    logs = Logs(corners, TORN, TORN_LOG)
    assert logs.not_mirrored == set()
    assert logs.end == SHARED + 2 * LOST
    assert len(logs.target) == copied + 2 * LOST
    answers = logs.judged(logs.every(3))
    assert answers.exact >= 0.99, answers
    row = corners.sync(TORN, group).of(group, TORN_LOG)
    assert (row.outcome, row.precision) == (OutcomeKind.COMMITTED, Precision.EXACT), row
    assert row.target_offset is not None
    got = logs.from_target(row.target_offset)
    assert got == logs.unread(SHARED + LOST - 50)
    logs.fail_over([SHARED + 1, SHARED + LOST, logs.end])


def state(contents: Contents) -> tuple[int, set[int]] | None:
    """Who leads the partition (-1: nobody), and which replicas are in sync; None where the
    client asked a dead node."""
    try:
        (described,) = contents.admin.describe_topics([TORN_LOG])
    except KafkaError:
        return None
    (partition,) = described["partitions"]
    return partition["leader_id"], {*partition["isr_nodes"]}


def leader(contents: Contents) -> int | None:
    """Who leads the partition; None where the client asked a dead node."""
    found = state(contents)
    return None if found is None else found[0]
