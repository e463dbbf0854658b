"""Groups that are not like others, and target commits that are not as they were left."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from kafka import TopicPartition as Place
from kafka.protocol.consumer import OffsetCommitRequest

from tests.producing import Contents
from tests.scenarios.corner_cases.corners import DEEP, PLAIN, TORN, Corners
from tests.scenarios.corner_cases.holdings import KEPT, NOTED, ORDINARY, RECORDS, TRIMMED
from tests.scenarios.corner_cases.streams_member import streams_group
from tests.waiting import wait_until
from tsoffset.cycle.in_process import cycle
from tsoffset.flow.settings import FlowSettings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import OutcomeKind, Precision, Reason, Row, TopicPartition
from tsoffset.rule.carry_over import PartitionCarryOver
from tsoffset.rule.decide import LastCommit
from tsoffset.testing.embedded.process import JavaProcess

pytestmark = [pytest.mark.integration, pytest.mark.thorough]


def type_of(contents: Contents, group: str) -> str | None:
    """The group's type as its broker lists it; None where it does not."""
    for listed in contents.admin.list_groups():
        if listed["group_id"] == group:
            return str(listed["group_type"]).lower()
    return None


def forget(contents: Contents, group: str, topic: str) -> None:
    """Delete the group's commit: the remedy that the messages name."""
    contents.admin.delete_group_offsets(group, [Place(topic, 0)])
    assert (topic, 0) not in contents.committed_offsets(group)


def test_share_group_is_told_and_left_alone(corners: Corners, tmp_path: Path) -> None:
    """A share group has no committed offsets but a start offset and states of records, which
    kafka-python 3.0 has no requests for: one row, UNSUPPORTED_GROUP; others are synced."""
    source, target = corners.sides(PLAIN)
    command = (
        *("org.apache.kafka.tools.consumer.ConsoleShareConsumer", "--group", "sharing"),
        *("--bootstrap-server", source.bootstrap, "--topic", ORDINARY),
    )
    process = JavaProcess("sharing", command, directory=tmp_path, java_options=("-Xmx128m",))
    source.commit_offsets("beside-sharing", {(ORDINARY, 0): 400})
    process.start()
    try:
        wait_until(lambda: type_of(source, "sharing") == "share", "there is a share group")
        rows = corners.sync(PLAIN, "sharing", "beside-sharing")
    finally:
        process.stop()
    (row,) = rows.with_reason(Reason.UNSUPPORTED_GROUP)
    assert (row.group, row.source_topic, row.partition) == ("sharing", None, None)
    assert rows.committed() == {"beside-sharing": 400 - TRIMMED}
    assert type_of(target, "sharing") is None


def test_streams_group_is_told_and_left_alone(corners: Corners) -> None:
    """The offsets of a streams application are only a part of its state: its group is
    UNSUPPORTED_GROUP, and nothing is committed for it."""
    source, target = corners.sides(PLAIN)
    streams_group(source.bootstrap, "streaming-application", ORDINARY)
    assert type_of(source, "streaming-application") == "streams"
    source.commit_offsets("streaming-application", {(ORDINARY, 0): 400})
    row = corners.sync(PLAIN, "streaming-application").of("streaming-application", ORDINARY)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.UNSUPPORTED_GROUP)
    assert type_of(target, "streaming-application") is None


def test_streams_group_on_the_target_is_left_alone(corners: Corners) -> None:
    """A group that reads as a plain consumer on the source and is a streams application on the
    target is told, too, and what it has there stays."""
    group = "streaming-there"
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, ORDINARY)
    streams_group(target.bootstrap, group, remote)
    target.commit_offsets(group, {(remote, 0): 5})
    source.commit_offsets(group, {(ORDINARY, 0): 400})
    row = corners.sync(PLAIN, group).of(group, ORDINARY)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.UNSUPPORTED_GROUP)
    assert target.committed_offsets(group) == {(remote, 0): (5, "")}


def test_metadata_that_the_target_refuses(corners: Corners) -> None:
    """Where the target allows less metadata than a commit on the source carries, the offset is
    committed without it, and the row says so; a shorter one of the same group keeps its own."""
    group, long = "with-long-metadata", "x" * 5_000
    source, target = corners.sides(TORN)
    source.commit_offsets(group, {(NOTED, 0): (400, long)})
    source.commit_offsets("with-short-metadata", {(NOTED, 0): (300, "short")})
    rows = corners.sync(TORN, group, "with-short-metadata")
    remote = corners.remote(TORN, NOTED)
    row = rows.of(group, NOTED)
    assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, 400 - TRIMMED)
    assert row.message is not None
    assert "offset.metadata.max.bytes" in row.message
    assert target.committed_offsets(group) == {(remote, 0): (400 - TRIMMED, "")}
    assert rows.of("with-short-metadata", NOTED).message is None
    committed = target.committed_offsets("with-short-metadata")
    assert committed == {(remote, 0): (300 - TRIMMED, "short")}


def test_target_offset_that_has_expired_is_committed_again(corners: Corners) -> None:
    """Coordinators drop the offsets of idle groups after a while: the next cycle commits the
    same offset again, though nothing has changed on the source. (Source and target are one
    cluster here, so the group has both commits.)"""
    group = "expiring"
    source, target = corners.sides(DEEP)
    remote = corners.remote(DEEP, KEPT)
    source.commit_offsets(group, {(KEPT, 0): 400})
    assert corners.sync(DEEP, group).committed() == {group: 400 - TRIMMED}
    assert corners.sync(DEEP, group).of(group, KEPT).outcome is OutcomeKind.UNCHANGED
    commit_for(target, group, remote, 400 - TRIMMED, retention_ms=1)
    wait_until(lambda: (remote, 0) not in target.committed_offsets(group), "the offset has expired")
    row = corners.sync(DEEP, group).of(group, KEPT)
    assert (row.outcome, row.current_target_offset) == (OutcomeKind.COMMITTED, None)
    assert target.committed_offsets(group)[remote, 0] == (400 - TRIMMED, "")


def commit_for(
    contents: Contents, group: str, topic: str, offset: int, *, retention_ms: int
) -> None:
    """Commit an offset that the coordinator keeps for a time of its own, as old clients may."""
    partition = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        # Later ones have no time of their own.
        max_version=4,
    )

    async def send() -> object:
        return await contents.admin._manager.send(request, node_id=1)

    answer = contents.admin._manager.run(send)
    assert answer.topics[0].partitions[0].error_code == 0


def test_target_offset_beyond_the_log_end(corners: Corners) -> None:
    """A target commit that lies past the log's end, where a consumer would be reset, is not
    taken for being ahead: the row warns and names the remedy, which works."""
    group = "past-the-end"
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, ORDINARY)
    source.commit_offsets(group, {(ORDINARY, 0): 700})
    (_, end) = target.log_range(remote)
    target.commit_offsets(group, {(remote, 0): end})
    row = corners.sync(PLAIN, group).of(group, ORDINARY)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.TARGET_AHEAD)
    target.commit_offsets(group, {(remote, 0): end + 1})
    row = corners.sync(PLAIN, group).of(group, ORDINARY)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.TARGET_PAST_LOG_END)
    assert row.message is not None
    assert "delete that commit" in row.message
    assert target.committed_offsets(group) == {(remote, 0): (end + 1, "")}
    forget(target, group, remote)
    assert corners.sync(PLAIN, group).committed() == {group: 700 - TRIMMED}


def test_source_group_that_was_rewound(corners: Corners) -> None:
    """A group that an operator has reset on the source is not followed backwards; to one that
    remembers the last commit this is SOURCE_REWOUND, and its remedy works."""
    group = "rewound"
    source, target = corners.sides(PLAIN)
    remote = corners.remote(PLAIN, ORDINARY)
    flow = corners.flow(PLAIN, group)
    carry_overs: dict[TopicPartition, PartitionCarryOver] = {}
    source.commit_offsets(group, {(ORDINARY, 0): 900})
    first = remembering(flow, carry_overs)
    assert (first.outcome, first.target_offset) == (OutcomeKind.COMMITTED, 900 - TRIMMED)
    place = (group, TopicPartition(ORDINARY, 0))
    last_commits = {place: LastCommit(900, 900 - TRIMMED)}
    source.commit_offsets(group, {(ORDINARY, 0): 500})
    row = remembering(flow, carry_overs, last_commits)
    assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.SOURCE_REWOUND)
    assert (row.target_offset, row.precision) == (500 - TRIMMED, Precision.EXACT)
    assert target.committed_offsets(group) == {(remote, 0): (900 - TRIMMED, "")}
    forget(target, group, remote)
    row = remembering(flow, carry_overs, last_commits)
    assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, 500 - TRIMMED)
    # It moves on from there, up to the end that both had before.
    source.commit_offsets(group, {(ORDINARY, 0): TRIMMED + RECORDS})
    assert remembering(flow, carry_overs, last_commits).outcome is OutcomeKind.COMMITTED
    assert target.committed_offsets(group) == {(remote, 0): (RECORDS, "")}


def remembering(
    flow: FlowSettings,
    carry_overs: dict[TopicPartition, PartitionCarryOver],
    last_commits: dict[tuple[str, TopicPartition], LastCommit] | None = None,
) -> Row:
    """The one row of a cycle that remembers earlier ones."""
    with ExitStack() as opened:
        source, target = (
            opened.enter_context(KafkaCluster(one)) for one in (flow.source, flow.target)
        )
        (row,) = cycle(flow, source, target, carry_overs=carry_overs, last_commits=last_commits)
    return row
