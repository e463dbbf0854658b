"""Flows between real clusters, as one properties file has them for MirrorMaker 2 and for tsoffset,
and what a group's consumer gets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import javaproperties
from kafka import KafkaConsumer

from tests.embedded_cluster import LONG_SESSION, EmbeddedCluster, start_together
from tests.producing import Contents
from tests.waiting import wait_until
from tsoffset.config.loading import Configuration
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cycle import cycle
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import EmbeddedBroker, MirrorMaker, flow_properties
from tsoffset.model import OutcomeKind, Row
from tsoffset.offset_files.document import StoredOffset
from tsoffset.offset_files.translation import translate_stored
from tsoffset.replicators.checkpoints import Checkpoint, CheckpointKey, decode_key, decode_value

# For how many seconds a member is waited for before another one tries.
_POLLS = 15
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
# Settings with which MirrorMaker 2 emits checkpoints each second; and commits by them as well.
CHECKPOINTS = {
    "emit.offset-syncs.enabled": "true",
    "offset-syncs.topic.replication.factor": "1",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "1",
}
SYNCED_GROUPS = {
    **CHECKPOINTS,
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
}


def prepare_mirror(
    folder: Path,
    clusters: Mapping[str, Contents | EmbeddedBroker | EmbeddedCluster],
    topics: Mapping[str, Iterable[str]],
    overrides: Mapping[str, str] | None = None,
    *,
    name: str = "mirror",
) -> MirrorMaker:
    """MirrorMaker 2 for all flows that `topics` names, each with its topics; not started.

    `clusters` has them by alias.
    """
    wanted: dict[str, str] = {}
    aliases = dict.fromkeys(alias for flow in topics for alias in flow.split("->"))
    for flow, of_flow in topics.items():
        source, _, target = flow.partition("->")
        wanted |= flow_properties(
            clusters[source].bootstrap,
            clusters[target].bootstrap,
            source=source,
            target=target,
            topics=", ".join(of_flow),
        )
    wanted |= {f"{flow}.enabled": "true" for flow in topics}
    wanted |= {"clusters": ", ".join(aliases), "heartbeats.replication.enabled": "false"}
    path = folder / "mm2.properties"
    path.write_text(javaproperties.dumps(wanted | dict(overrides or {}), timestamp=None))
    return MirrorMaker(path, folder, name=name)


@contextmanager
def two_brokers(folder: Path) -> Iterator[list[EmbeddedBroker]]:
    """Two clusters, A and B, which compact soon."""
    quick = {"log.cleaner.backoff.ms": "100", **LONG_SESSION}
    pair = [EmbeddedBroker(folder / name, name=name, properties=quick) for name in "AB"]
    with ExitStack() as running:
        start_together(running, *pair)
        yield pair


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

    def committed(self) -> dict[str | None, int | None]:
        """Group to target offset, of the rows that were committed."""
        return {
            row.group: row.target_offset for row in self.all if row.outcome is OutcomeKind.COMMITTED
        }


class Flows:
    """The clusters by their aliases, and the flows of one MirrorMaker 2."""

    def __init__(self, contents: Mapping[str, Contents], mirror_maker: MirrorMaker) -> None:
        self.contents = contents
        self.mirror_maker = mirror_maker
        self.settings = Configuration.read(mirror_maker.properties_path).resolve()

    def sides(self, flow: str) -> tuple[Contents, Contents]:
        source, _, target = flow.partition("->")
        return self.contents[source], self.contents[target]

    def remote(self, flow: str, topic: str) -> str:
        """The name that the flow's policy gives a source topic on the target."""
        settings = self.settings.flow(flow)
        return settings.policy.format_remote_topic(settings.source.alias, topic)

    def flow(self, name: str, *groups: str) -> FlowSettings:
        """A flow of the properties file, for some groups only where any are named."""
        wanted = DefaultGroupFilter(groups or (".*",))
        return replace(self.settings.flow(name), group_filter=wanted)

    def sync(self, flow: str, *groups: str, commit: bool = True) -> Rows:
        """One cycle of a flow for some groups, as `one_cycle`."""
        return one_cycle(self.flow(flow, *groups), commit=commit)

    def translate(
        self, flow: str, topic: str, offsets: Iterable[int], partition: int = 0
    ) -> Sequence[Row]:
        """The translations of positions in a partition, in one go, as of an application that keeps
        its own offsets; also where the partition came from the flow's target."""
        settings = self.settings.flow(flow)
        stored = [
            StoredOffset(topic, partition, offset, log=str(offset)) for offset in sorted(offsets)
        ]
        with KafkaCluster(settings.source) as source, KafkaCluster(settings.target) as target:
            return [one.row for one in translate_stored(settings, source, target, stored)]

    def wait_until_mirrored(self, flow: str, *topics: str, seconds: float = 120) -> None:
        """Wait until all that the source topics hold now is on the flow's target."""
        source, target = self.sides(flow)
        self.mirror_maker.wait_until_mirrored(
            source.bootstrap,
            target.bootstrap,
            {topic: self.remote(flow, topic) for topic in topics},
            source_isolation=self.settings.flow(flow).isolation,
            seconds=seconds,
        )

    def wait_until_there(self, flow: str, topic: str) -> None:
        """Wait until a copy of the source topic's last record can be read on the flow's target."""
        source, target = self.sides(flow)
        remote = self.remote(flow, topic)
        (last,) = source.read(topic, start=source.log_range(topic)[1] - 1)
        self.mirror_maker.wait_for_topic(target.bootstrap, remote)
        wait_until(
            lambda: last.value in {record.value for record in target.read(remote)},
            f"the last record of {topic} is mirrored",
        )


def one_cycle(flow: FlowSettings, *, commit: bool = True) -> Rows:
    """One cycle by clients that are made for it: nothing is remembered between cycles."""
    with KafkaCluster(flow.source) as source, KafkaCluster(flow.target) as target:
        return Rows(cycle(flow, source, target, commit=commit))


@contextmanager
def member(contents: Contents, group: str, topic: str) -> Iterator[KafkaConsumer]:
    """A consumer that has joined `group` and got its partitions; it commits nothing."""
    joined: list[KafkaConsumer] = []
    with ExitStack() as opened:

        def join() -> bool:
            # The library's first join may assign nothing, for good: then another member tries.
            with ExitStack() as trying:
                consumer = trying.enter_context(
                    closing(
                        KafkaConsumer(
                            topic,
                            bootstrap_servers=contents.bootstrap,
                            group_id=group,
                            auto_offset_reset="earliest",
                            enable_auto_commit=False,
                        )
                    )
                )
                for _ in range(_POLLS):
                    if consumer.assignment():
                        joined.append(consumer)
                        opened.enter_context(trying.pop_all())
                        return True
                    consumer.poll(timeout_ms=1_000, max_records=1)
            return False

        wait_until(join, f"{group} has a member")
        yield joined[0]


def newest_checkpoints(contents: Contents, source_alias: str) -> dict[CheckpointKey, Checkpoint]:
    """MirrorMaker 2's newest checkpoint of each group and partition; empty where there is none."""
    topic = f"{source_alias}.checkpoints.internal"
    if topic not in contents.admin.list_topics():
        return {}
    records = contents.read(topic)
    return {decode_key(one.key): decode_value(one.value or b"") for one in records}
