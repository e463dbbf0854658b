"""Four clusters, the flows between them, and what lies in them.

MirrorMaker 2 and tsoffset read one and the same properties file. Every record has a value of
its own, so that content tells which record a consumer got.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

from kafka import KafkaConsumer, TopicPartition

from tests.producing import READ_SECONDS, Contents, Stored, Written
from tsoffset.cycle.in_process import cycle
from tsoffset.cycle.source_commits import CompetingFlow
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import OutcomeKind, Reason, Row
from tsoffset.testing.embedded import MirrorMaker

# Some clusters have further names: X, Y and W for flows that keep the topics' names, P and Q
# for a MirrorMaker 2 of its own.
CLUSTERS = {
    **{name: name for name in "ABCD"},
    **{"X": "A", "Y": "B", "W": "D"},
    **{"P": "A", "Q": "B"},
}


class Rows:
    """The rows of one cycle."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.all = tuple(rows)

    def of(self, group: str, topic: str, partition: int = 0) -> Row:
        """The one row of a group and a source partition."""
        (row,) = (
            row
            for row in self.all
            if (row.group, row.source_topic, row.partition) == (group, topic, partition)
        )
        return row

    def outcomes(self) -> dict[tuple[str | None, str | None, int | None], tuple[str, str | None]]:
        """(group, source topic, partition) to outcome and reason."""
        return {
            (row.group, row.source_topic, row.partition): (row.outcome, row.reason)
            for row in self.all
        }

    def committed(self) -> dict[str | None, int | None]:
        """Group to target offset, of the rows that were committed."""
        return {
            row.group: row.target_offset for row in self.all if row.outcome is OutcomeKind.COMMITTED
        }

    def with_reason(self, reason: Reason) -> list[Row]:
        """The rows skipped for `reason`."""
        return [row for row in self.all if row.reason is reason]


class Estate:
    """The clusters by their aliases, and the flows as the properties file says."""

    def __init__(self, contents: Mapping[str, Contents], settings: Settings) -> None:
        self.contents = {alias: contents[name] for alias, name in CLUSTERS.items()}
        self.settings = settings
        self._written: defaultdict[tuple[str, str, int], dict[bytes, int]] = defaultdict(dict)

    # --- contents -----------------------------------------------------------------------

    def produce(
        self,
        alias: str,
        topic: str,
        records: Sequence[Written],
        *,
        partition: int = 0,
        batch: int = 100,
    ) -> list[int]:
        """Write records, and remember which value lies where."""
        offsets = self.contents[alias].produce(topic, records, partition=partition, batch=batch)
        self.remember(alias, topic, records, offsets, partition=partition)
        return offsets

    def transaction(
        self, alias: str, topic: str, records: Sequence[Written], *, name: str, commit: bool
    ) -> list[int]:
        """Write records in a transaction of their own, and end it."""
        transaction = self.contents[alias].begin_transaction(name)
        offsets = transaction.add(topic, records, batch=10)
        if commit:
            transaction.commit()
        else:
            transaction.abort()
        self.remember(alias, topic, records, offsets)
        return offsets

    def remember(
        self,
        alias: str,
        topic: str,
        records: Iterable[Written],
        offsets: Iterable[int],
        *,
        partition: int = 0,
    ) -> None:
        """Take down which value lies where; values never come twice."""
        lies_at = self._written[CLUSTERS[alias], topic, partition]
        for record, offset in zip(records, offsets, strict=True):
            assert record.value is not None
            assert record.value not in lies_at
            lies_at[record.value] = offset

    def written(self, alias: str, topic: str, partition: int = 0) -> Mapping[bytes, int]:
        """All values ever written to a partition, each with its offset."""
        return self._written[CLUSTERS[alias], topic, partition]

    # --- syncing ------------------------------------------------------------------------

    def flow(self, name: str, groups: str = ".*") -> FlowSettings:
        """A flow of the properties file, for some groups."""
        return replace(self.settings.flow(name), group_filter=DefaultGroupFilter((groups,)))

    def sync(
        self,
        flow: FlowSettings,
        *,
        commit: bool = True,
        competing_flows: Sequence[FlowSettings] = (),
    ) -> Rows:
        """As `one_cycle`."""
        return one_cycle(flow, commit=commit, competing_flows=competing_flows)

    def remote(self, flow: str, topic: str) -> str:
        """The name that the flow's policy gives a source topic on the target."""
        settings = self.settings.flow(flow)
        return settings.policy.format_remote_topic(settings.source.alias, topic)

    def wait_until_mirrored(
        self, mirror: MirrorMaker, flow: str, *topics: str, seconds: float = 120
    ) -> None:
        """Wait until all that the source topics hold now is on the flow's target."""
        settings = self.settings.flow(flow)
        mirror.wait_until_mirrored(
            self.contents[settings.source.alias].bootstrap,
            self.contents[settings.target.alias].bootstrap,
            {topic: self.remote(flow, topic) for topic in topics},
            source_isolation=settings.isolation,
            seconds=seconds,
        )


def one_cycle(
    flow: FlowSettings, *, commit: bool = True, competing_flows: Sequence[FlowSettings] = ()
) -> Rows:
    """One cycle by clients that are made for it: nothing is remembered between cycles."""
    with ExitStack() as open_clusters:
        source, target = (
            open_clusters.enter_context(KafkaCluster(cluster))
            for cluster in (flow.source, flow.target)
        )
        others = [
            CompetingFlow(competing, open_clusters.enter_context(KafkaCluster(competing.source)))
            for competing in competing_flows
        ]
        return Rows(cycle(flow, source, target, commit=commit, competing_flows=others))


def read_on(contents: Contents, group: str, place: tuple[str, int]) -> list[Stored]:
    """What a consumer of `group` gets of a partition from its group's commit to the log's end.

    It fails where the group has none, rather than begin anywhere.
    """
    there = TopicPartition(*place)
    with closing(
        KafkaConsumer(
            bootstrap_servers=contents.bootstrap,
            group_id=group,
            isolation_level="read_committed",
            auto_offset_reset="none",
            enable_auto_commit=False,
            max_poll_records=10_000,
        )
    ) as consumer:
        consumer.assign([there])
        end = consumer.end_offsets([there])[there]
        records: list[Stored] = []
        deadline = time.monotonic() + READ_SECONDS
        while consumer.position(there) < end:
            assert time.monotonic() < deadline, f"{group} does not get {there} up to {end}"
            for record in consumer.poll(timeout_ms=200).get(there, ()):
                records.append(Stored(record.offset, record.timestamp, record.value, record.key))
    return records


@contextmanager
def member(contents: Contents, group: str, topic: str) -> Iterator[KafkaConsumer]:
    """A consumer that has joined `group` and got its partitions; it commits nothing."""
    deadline = time.monotonic() + 2 * READ_SECONDS
    while True:
        with closing(
            KafkaConsumer(
                topic,
                bootstrap_servers=contents.bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
        ) as consumer:
            # The library's first join may assign nothing, for good: then another member tries.
            patience = time.monotonic() + READ_SECONDS / 4
            while not consumer.assignment() and time.monotonic() < patience:
                consumer.poll(timeout_ms=1_000, max_records=1)
            if consumer.assignment():
                yield consumer
                return
        assert time.monotonic() < deadline, f"waited in vain until {group} has a member"


def wait_until(holds: Callable[[], bool], what: str, *, seconds: float = READ_SECONDS) -> None:
    """Ask until it holds; fail after that time of asking, a minute by default."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.05)
