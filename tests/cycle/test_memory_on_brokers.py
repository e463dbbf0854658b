"""What is remembered between cycles, on real brokers: what they give new ids and epochs to."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.memory_flows import flow as plain_flow
from tests.producing import Contents, Written, numbered
from tsoffset.flow.policy import DefaultGroupFilter, DefaultTopicFilter
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.group_sync.cache import CarryOver
from tsoffset.group_sync.in_process import cycle
from tsoffset.group_sync.translate import carry_overs_of
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import OutcomeKind, Precision, Row
from tsoffset.testing.embedded import EmbeddedBroker

pytestmark = pytest.mark.integration

RECORDS = numbered(100)
COMMITTED = 60


@dataclass
class Mirrored:
    """A topic of 100 records on A, copied to B from record 40 on, a group at record 60, and
    clients that stay open, as a worker's do."""

    source: Contents
    target: Contents
    topic: str
    group: str
    flow: FlowSettings
    clusters: tuple[KafkaCluster, KafkaCluster]
    carry_over: CarryOver = field(default_factory=CarryOver)

    @property
    def remote(self) -> str:
        return f"A.{self.topic}"

    def fill_source(self, records: list[Written]) -> None:
        self.source.create_topic(self.topic)
        self.source.produce(self.topic, records)

    def fill_target(self, records: list[Written]) -> None:
        self.target.create_topic(self.remote)
        self.target.produce(self.remote, records)

    def commit(self, offset: int) -> None:
        self.source.commit_offsets(self.group, {(self.topic, 0): (offset, "")})

    def plan(self) -> Row:
        """What a cycle without carry-over says; nothing is learned from it."""
        return self._cycle(CarryOver(), commit=False)

    def sync(self) -> tuple[Row, Counter[str]]:
        """A cycle with carry-over, and what it sent to both clusters together by kind."""
        before = self._sent()
        row = self._cycle(self.carry_over, commit=True)
        return row, self._sent() - before

    def _cycle(self, carry_over: CarryOver, *, commit: bool) -> Row:
        [row] = cycle(self.flow, *self.clusters, commit=commit, carry_over=carry_over)
        return row

    def _sent(self) -> Counter[str]:
        return sum((Counter(cluster.requests) for cluster in self.clusters), Counter())

    def standing(self) -> int | None:
        found = self.target.committed_offsets(self.group).get((self.remote, 0))
        return None if found is None else found[0]


@pytest.fixture
def between(
    unique: Callable[[str], str],
) -> Iterator[Callable[[str, str], Mirrored]]:
    """A function that makes a `Mirrored` from one broker's address to another's."""
    with ExitStack() as opened:

        def make(source: str, target: str) -> Mirrored:
            group, topic = unique("billing"), unique("orders")
            flow = replace(
                plain_flow(),
                source=ClusterSettings("A", (source,)),
                target=ClusterSettings("B", (target,)),
                group_filter=DefaultGroupFilter((group,)),
                topic_filter=DefaultTopicFilter((topic,)),
            )
            world = Mirrored(
                opened.enter_context(closing(Contents(source))),
                opened.enter_context(closing(Contents(target))),
                topic,
                group,
                flow,
                (
                    opened.enter_context(KafkaCluster(flow.source)),
                    opened.enter_context(KafkaCluster(flow.target)),
                ),
            )
            world.fill_source(RECORDS)
            world.fill_target(RECORDS[40:])
            world.commit(COMMITTED)
            return world

        yield make


@pytest.fixture
def mirrored(
    between: Callable[[str, str], Mirrored],
    source_broker: EmbeddedBroker,
    target_broker: EmbeddedBroker,
) -> Mirrored:
    return between(source_broker.bootstrap, target_broker.bootstrap)


def looked(sent: Counter[str]) -> int:
    """How many fetches were sent."""
    return sent["fetch"]


def test_second_cycle_sends_no_fetch(mirrored: Mirrored) -> None:
    """What was exact is answered from the carry-over: topics and log ranges are asked for, no
    record is fetched and no time looked up, and the row is the same as without carry-over."""
    first, sent = mirrored.sync()
    assert (first.outcome, first.target_offset) == (OutcomeKind.COMMITTED, 20)
    assert looked(sent) > 0
    second, sent = mirrored.sync()
    assert looked(sent) == 0
    # The two ends of each log.
    assert sent["list_offsets"] == 4
    assert second == replace(mirrored.plan(), outcome=OutcomeKind.UNCHANGED)


def test_target_made_anew_under_a_committed_group(mirrored: Mirrored) -> None:
    """The remote topic is deleted and mirrored again, from the first record on: same name, same
    leader epoch, long enough for the old translation. The group's commit went with the topic;
    the old answer would skip 40 records."""
    mirrored.sync()
    mirrored.target.delete_topic(mirrored.remote)
    mirrored.fill_target(RECORDS)
    row, sent = mirrored.sync()
    assert looked(sent) > 0
    assert (row.outcome, row.target_offset) == (OutcomeKind.COMMITTED, COMMITTED)
    assert row.precision is Precision.EXACT
    assert mirrored.standing() == COMMITTED


@pytest.mark.thorough
def test_new_leader_epoch_is_looked_at_once(
    between: Callable[[str, str], Mirrored], tmp_path: Path
) -> None:
    """A broker that was restarted leads with a new epoch: what was remembered is looked at anew,
    once. (One cluster is source and target here.)"""
    with EmbeddedBroker(tmp_path, name="restarted") as broker:
        world = between(broker.bootstrap, broker.bootstrap)
        world.sync()
        _, sent = world.sync()
        assert looked(sent) == 0
        [carry_over] = carry_overs_of(world.carry_over.partitions).values()
        broker.restart()
        row, sent = world.sync()
        assert (row.outcome, row.target_offset) == (OutcomeKind.UNCHANGED, 20)
        assert looked(sent) > 0
        [again] = carry_overs_of(world.carry_over.partitions).values()
        assert again.source_log.leader_epoch > carry_over.source_log.leader_epoch
        assert again.target_log.leader_epoch > carry_over.target_log.leader_epoch
        assert again.target_log.topic_id == carry_over.target_log.topic_id
        _, sent = world.sync()
        assert looked(sent) == 0
