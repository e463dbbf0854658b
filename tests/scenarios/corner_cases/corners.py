"""The clusters and flows of the corner cases, and what all of them ask.

`here` and `there` are the two ordinary clusters; the other aliases are further names of them,
or of a third one, for flows that need settings of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tests.producing import Contents
from tests.scenarios.estate import Rows, one_cycle, wait_until
from tsoffset.cycle.rounds import translate_with_carry_over
from tsoffset.cycle.work import PartitionWork
from tsoffset.flow.policy import DefaultGroupFilter
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.model import TopicPartition
from tsoffset.rule.decide import TranslatedPosition
from tsoffset.testing.embedded import MirrorMaker

# Flows, each a pair of aliases: ordinary ones; by an exactly-once MirrorMaker 2; through a
# filter; in large batches; on the third cluster, from itself to itself; and from there.
PLAIN, EXACTLY_ONCE, FILTERED = "here->there", "paid->once", "all->half"
LARGE_BATCHES, DEEP, TORN = "big->wide", "deep->tiers", "torn->mended"
CLUSTERS = {
    **dict.fromkeys(("here", "paid", "all", "big"), "source"),
    **dict.fromkeys(("there", "once", "half", "wide", "mended"), "target"),
    **dict.fromkeys(("deep", "tiers", "torn"), "deep"),
}
FLOWS = (PLAIN, EXACTLY_ONCE, FILTERED, LARGE_BATCHES, DEEP, TORN)


@dataclass(frozen=True, slots=True)
class Translations:
    """Translated positions, and what the clients' counters say of it."""

    positions: Sequence[TranslatedPosition]
    source_fetches: int
    target_fetches: int
    bytes_read: int


class Corners:
    """All clusters by alias, and the flows as one properties file has them."""

    def __init__(
        self, contents: Mapping[str, Contents], settings: Settings, mirror_maker: MirrorMaker
    ) -> None:
        self.contents = {alias: contents[name] for alias, name in CLUSTERS.items()}
        self.settings = settings
        self.mirror_maker = mirror_maker

    def with_contents(self, name: str, contents: Contents) -> "Corners":
        """The same, but for the client of one of the clusters."""
        clusters = {CLUSTERS[alias]: one for alias, one in self.contents.items()}
        return Corners({**clusters, name: contents}, self.settings, self.mirror_maker)

    def sides(self, flow: str) -> tuple[Contents, Contents]:
        """Source and target of a flow."""
        source, _, target = flow.partition("->")
        return self.contents[source], self.contents[target]

    def remote(self, flow: str, topic: str) -> str:
        """The topic's name on the flow's target."""
        settings = self.settings.flow(flow)
        return settings.policy.format_remote_topic(settings.source.alias, topic)

    def flow(self, name: str, *groups: str) -> FlowSettings:
        """A flow for some groups only."""
        return replace(self.settings.flow(name), group_filter=DefaultGroupFilter(groups))

    def sync(self, flow: str, *groups: str) -> Rows:
        """One cycle of a flow for some groups, by clients that remember nothing."""
        return one_cycle(self.flow(flow, *groups))

    def translate(self, flow: str, topic: str, offsets: Iterable[int]) -> Translations:
        """The translations of positions in partition 0, in one go."""
        settings = self.settings.flow(flow)
        work = PartitionWork(
            TopicPartition(topic, 0),
            TopicPartition(self.remote(flow, topic), 0),
            tuple(sorted(offsets)),
            is_remote_topic=True,
        )
        with ExitStack() as opened:
            source, target = (
                opened.enter_context(KafkaCluster(one))
                for one in (settings.source, settings.target)
            )
            done = translate_with_carry_over(settings, source, target, [work])
            return Translations(
                done.positions,
                source.requests.get("fetch", 0),
                target.requests.get("fetch", 0),
                source.bytes_read + target.bytes_read,
            )

    def wait_until_mirrored(self, flow: str, *topics: str) -> None:
        """Wait until all that the source topics hold now is on the flow's target."""
        source, target = self.sides(flow)
        self.mirror_maker.wait_until_mirrored(
            source.bootstrap,
            target.bootstrap,
            {topic: self.remote(flow, topic) for topic in topics},
            source_isolation=self.settings.flow(flow).isolation,
        )

    def wait_until_there(self, flow: str, topic: str, value: bytes) -> None:
        """Wait until a record with that value can be read on the target."""
        _, target = self.sides(flow)
        remote = self.remote(flow, topic)
        self.mirror_maker.wait_for_topic(target.bootstrap, remote)

        def there() -> bool:
            records = target.read(remote, isolation="read_committed")
            return any(record.value == value for record in records)

        wait_until(there, f"the last record of {topic} is mirrored")
