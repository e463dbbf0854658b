"""What a commit on the target is like, and whom it does not touch: groups that have members."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.producing import Contents
from tests.scenarios.estate import Estate
from tests.scenarios.flows import Rows, member
from tests.scenarios.holdings import ORDERS, TRIMMED
from tests.waiting import wait_until
from tsoffset.cycle.in_process import cycle
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import (
    Failed,
    FailureKind,
    GroupOffsets,
    OutcomeKind,
    Precision,
    Reason,
)
from tsoffset.testing.embedded.process import JavaProcess

pytestmark = pytest.mark.integration

REMOTE = f"A.{ORDERS}"


def raw_commit(contents: Contents, group: str, topic: str) -> OffsetAndMetadata:
    """What the coordinator answers for partition 0: the leader epoch is -1 where there is none."""
    commit: OffsetAndMetadata = contents.admin.list_group_offsets(group)[group][
        TopicPartition(topic, 0)
    ]
    return commit


def listed(contents: Contents, group: str) -> dict[str, str]:
    """The group as its broker lists it."""
    (found,) = (one for one in contents.admin.list_groups() if one["group_id"] == group)
    return dict(found)


def wait_for_state(contents: Contents, group: str, state: str) -> None:
    wait_until(
        lambda: any(
            one["group_id"] == group and one["group_state"] == state
            for one in contents.admin.list_groups()
        ),
        f"{group} is {state}",
    )


@contextmanager
def new_protocol_member(
    contents: Contents, group: str, topic: str, directory: Path, *options: str
) -> Iterator[JavaProcess]:
    """Kafka's own console consumer as a member of a KIP-848 group."""
    process = JavaProcess(
        f"consumer-{group}",
        [
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", contents.bootstrap, "--topic", topic, "--group", group),
            *("--command-property", "group.protocol=consumer"),
            *options,
        ],
        directory=directory,
        java_options=("-Xmx128m",),
    )
    process.start()
    try:
        yield process
    finally:
        process.stop()


def test_metadata_survives_and_leader_epoch_does_not(estate: Estate) -> None:
    """A commit carries the metadata of the source's. The source's leader epoch stays behind:
    consumers of the target would look for a leader of that epoch."""
    group, metadata = "with-metadata", "batch 17; ключ=значение"
    source = estate.contents["A"]
    place = TopicPartition(ORDERS, 0)
    with closing(
        KafkaConsumer(bootstrap_servers=source.bootstrap, group_id=group, enable_auto_commit=False)
    ) as consumer:
        consumer.assign([place])
        consumer.seek(place, 450)
        wait_until(lambda: bool(consumer.poll(timeout_ms=100)), "records have come")
        consumer.commit({place: OffsetAndMetadata(450, metadata, 0)})
    assert raw_commit(source, group, ORDERS) == OffsetAndMetadata(450, metadata, 0)
    assert estate.sync("A->B", group).committed() == {group: 450 - TRIMMED}
    commit = raw_commit(estate.contents["B"], group, REMOTE)
    assert commit == OffsetAndMetadata(450 - TRIMMED, metadata, -1)


def test_group_with_members_on_the_target_is_left_to_them(estate: Estate) -> None:
    """While a consumer of the target is a member, the row says GROUP_ACTIVE with the
    translation, and nothing is committed; when it has left, the next sync commits."""
    group = "active"
    target = estate.contents["B"]
    estate.contents["A"].commit_offsets(group, {(ORDERS, 0): 234})
    with member(target, group, REMOTE):
        row = estate.sync("A->B", group).of(group, ORDERS)
        assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.GROUP_ACTIVE)
        assert (row.target_offset, row.precision) == (234 - TRIMMED, Precision.EXACT)
        assert target.committed_offsets(group) == {}
    wait_for_state(target, group, "Empty")
    assert estate.sync("A->B", group).committed() == {group: 234 - TRIMMED}
    assert target.committed_offsets(group) == {(REMOTE, 0): (234 - TRIMMED, "")}


@contextmanager
def open_transaction(
    contents: Contents, transactional_id: str, group: str, topic: str, offset: int
) -> Iterator[KafkaProducer]:
    """A producer that is about to commit for `group`, as an application does that reads,
    computes and writes in one transaction."""
    with closing(
        KafkaProducer(bootstrap_servers=contents.bootstrap, transactional_id=transactional_id)
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        place = TopicPartition(topic, 0)
        producer.send_offsets_to_transaction({place: OffsetAndMetadata(offset, "", -1)}, group)
        yield producer


def test_group_in_an_open_transaction_holds_no_other_up(estate: Estate) -> None:
    """The others are committed before anybody waits, so that they stand while the transaction
    is still looked at; its group fails with the cause, and follows when the transaction has
    ended."""
    groups = [f"beside-a-transaction-{name}" for name in ("first", "open", "last")]
    waiting = groups[1]
    source, target = estate.contents["A"], estate.contents["B"]
    flow = estate.flow("A->B", "beside-a-transaction-.*")
    for group in groups:
        source.commit_offsets(group, {(ORDERS, 0): 345})
    # A coordinator does not tell of an offset in a transaction where the group has none before.
    target.commit_offsets(waiting, {(REMOTE, 0): 50})
    with open_transaction(target, waiting, waiting, REMOTE, 100) as producer:
        seen: list[bool] = []

        class Watched(KafkaCluster):
            """Looks, whenever it is asked for one group alone, whether the others are done."""

            def committed(
                self,
                groups: Collection[str],
                *,
                require_stable: bool,
                within_seconds: float | None = None,
            ) -> Mapping[str, GroupOffsets | Failed]:
                if list(groups) == [waiting]:
                    seen.append(all(target.committed_offsets(one) for one in others))
                return super().committed(
                    groups, require_stable=require_stable, within_seconds=within_seconds
                )

        others = [group for group in groups if group != waiting]
        with KafkaCluster(flow.source) as here, Watched(flow.target) as there:
            rows = Rows(cycle(flow, here, there))
        assert seen
        assert all(seen)
        row = rows.of(waiting, ORDERS)
        assert (row.outcome, row.reason) == (OutcomeKind.FAILED, FailureKind.COORDINATOR)
        assert "wait for a transaction to end" in str(row.message)
        assert rows.committed() == dict.fromkeys(others, 345 - TRIMMED)
        producer.commit_transaction()
    wait_until(
        lambda: target.committed_offsets(waiting).get((REMOTE, 0), (0, ""))[0] == 100,
        "the transaction has ended",
    )
    row = estate.sync("A->B", waiting).of(waiting, ORDERS)
    assert (row.outcome, row.current_target_offset) == (OutcomeKind.COMMITTED, 100)


def test_group_with_members_on_the_source_is_synced(estate: Estate) -> None:
    """Members on the source are what makes a group worth syncing."""
    group = "busy-at-home"
    with member(estate.contents["A"], group, ORDERS) as consumer:
        consumer.commit({TopicPartition(ORDERS, 0): OffsetAndMetadata(567, "", -1)})
        assert listed(estate.contents["A"], group)["group_state"] == "Stable"
        assert estate.sync("A->B", group).committed() == {group: 567 - TRIMMED}


def test_new_protocol_group_of_the_source_is_synced(estate: Estate, tmp_path: Path) -> None:
    """What a KIP-848 group committed is translated like any other commit."""
    group, source = "new-protocol-at-home", estate.contents["A"]
    options = ("--from-beginning", "--max-messages", "300")
    with new_protocol_member(source, group, f"{ORDERS}", tmp_path, *options) as process:
        wait_until(lambda: not process.running, "300 messages are read")
        assert process.exit_status == 0, process.said()
    assert listed(source, group)["group_type"] == "consumer"
    committed = {place: offset for place, (offset, _) in source.committed_offsets(group).items()}
    assert sum(offset - TRIMMED for offset in committed.values()) == 300
    rows = estate.sync("A->B", group)
    for (topic, partition), offset in committed.items():
        row = rows.of(group, topic, partition)
        assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, offset - TRIMMED)
        assert row.precision is Precision.EXACT


def test_new_protocol_group_of_the_target_is_committed_when_it_is_idle(
    estate: Estate, tmp_path: Path
) -> None:
    """A KIP-848 group on the target is left alone while it has members, and committed for
    when it has none; it stays what it is."""
    group, target = "new-protocol-away", estate.contents["B"]
    estate.contents["A"].commit_offsets(group, {(ORDERS, 0): 432})
    with new_protocol_member(
        target, group, REMOTE, tmp_path, "--command-property", "enable.auto.commit=false"
    ):
        wait_for_state(target, group, "Stable")
        row = estate.sync("A->B", group).of(group, ORDERS)
        assert (row.outcome, row.reason) == (OutcomeKind.SKIPPED, Reason.GROUP_ACTIVE)
        assert target.committed_offsets(group) == {}
    wait_for_state(target, group, "Empty")
    assert estate.sync("A->B", group).committed() == {group: 432 - TRIMMED}
    assert target.committed_offsets(group) == {(REMOTE, 0): (432 - TRIMMED, "")}
    assert listed(target, group)["group_type"] == "consumer"
