"""A group whose offset is in an open transaction of a real coordinator."""

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.producing import Contents
from tests.scenarios.flows import Flows, Rows
from tests.scenarios.holdings import ORDERS, TRIMMED
from tests.waiting import wait_until
from tsoffset.committed import CommittedColumns
from tsoffset.group_sync.in_process import cycle
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import (
    FailureKind,
    OutcomeKind,
)

pytestmark = [pytest.mark.integration, pytest.mark.thorough]

REMOTE = f"A.{ORDERS}"


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


def test_group_in_an_open_transaction_holds_no_other_up(estate: Flows) -> None:
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
                share_groups: Collection[str] = (),
                require_stable: bool,
                within_seconds: float | None = None,
            ) -> CommittedColumns:
                if list(groups) == [waiting]:
                    seen.append(all(target.committed_offsets(one) for one in others))
                return super().committed(
                    groups,
                    share_groups=share_groups,
                    require_stable=require_stable,
                    within_seconds=within_seconds,
                )

        others = [group for group in groups if group != waiting]
        with KafkaCluster(flow.source) as here, Watched(flow.target) as there:
            rows = Rows(cycle(flow, here, there))
        assert seen
        assert all(seen)
        row = rows.of(waiting, ORDERS)
        assert (row.outcome, row.reason) == (OutcomeKind.FAILED, FailureKind.COORDINATOR)
        assert "an open transaction blocks" in str(row.message)
        assert rows.committed() == dict.fromkeys(others, 345 - TRIMMED)
        producer.commit_transaction()
    wait_until(
        lambda: target.committed_offsets(waiting).get((REMOTE, 0), (0, ""))[0] == 100,
        "the transaction has ended",
    )
    row = estate.sync("A->B", waiting).of(waiting, ORDERS)
    assert (row.outcome, row.current_target_offset) == (OutcomeKind.COMMITTED, 100)
