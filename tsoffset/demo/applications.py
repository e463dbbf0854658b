"""What the applications do in the course of the demo, and what is taken down of it."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from contextlib import ExitStack

from kafka import KafkaConsumer

from tsoffset.demo.clusters import Clusters, remote
from tsoffset.demo.consumers import Read, commit, member, read_log, read_on
from tsoffset.demo.groups import Group
from tsoffset.demo.logs import Entry, Place
from tsoffset.demo.topics import TOPICS
from tsoffset.demo.verdict import Logs

Reads = Mapping[int, Read]
"""What a group's consumer got, by partition."""


class Applications:
    """The consumers of all groups.

    `processed` holds the values that each group has done so far, on either cluster, by group
    and source partition.
    """

    def __init__(self, clusters: Clusters, pool: Executor, stack: ExitStack) -> None:
        """Consumers that stay are closed with `stack`."""
        self.processed: dict[tuple[str, Place], AbstractSet[bytes]] = {}
        self._members: dict[str, KafkaConsumer] = {}
        self._clusters = clusters
        self._pool = pool
        self._stack = stack

    def read_at_source(
        self, groups: Sequence[Group], written: Mapping[Place, Sequence[Entry]]
    ) -> dict[str, Reads]:
        """Let each group read up to where it stands, commit, and leave; by group."""

        def read(group: Group) -> Reads:
            bootstrap, stops = self._clusters.source.bootstrap, group.stops(written)
            with member(bootstrap, group.name, group.topic.name) as consumer:
                found = read_on(consumer, stops)
                commit(consumer, found, group.metadata)
            return found

        reads = zip(groups, self._pool.map(read, groups), strict=True)
        found = {group.name: read for group, read in reads}
        for group in groups:
            self._take_down(group, found[group.name])
        return found

    def read_at_target(self, group: Group) -> None:
        """Let a group read on the target before anything is synced, and leave unless it is to
        stay a member."""
        assert group.on_target is not None
        bootstrap, topic = self._clusters.target.bootstrap, remote(group.topic.name)
        log = read_log(bootstrap, [topic])
        stops = {
            partition: depth.stop(log[topic, partition])
            for partition, depth in enumerate(group.on_target)
        }
        with ExitStack() as leaving:
            consumer = leaving.enter_context(member(bootstrap, group.name, topic))
            found = read_on(consumer, stops)
            commit(consumer, found)
            if group.member:
                self._members[group.name] = consumer
                self._stack.push(leaving.pop_all())
        self._take_down(group, found)

    def stay(self) -> None:
        """Have those who are to stay members show that they are there."""
        for consumer in self._members.values():
            consumer.poll(timeout_ms=0)

    def go_on(self, groups: Sequence[Group]) -> Iterable[tuple[Group, Reads]]:
        """Let each group read on the target to its end, as they get there.

        Nothing is committed, so that the groups can be looked at later.
        """

        def read(group: Group) -> Reads:
            if group.name in self._members:
                return read_on(self._members[group.name])
            bootstrap, topic = self._clusters.target.bootstrap, remote(group.topic.name)
            with member(bootstrap, group.name, topic) as consumer:
                return read_on(consumer)

        return zip(groups, self._pool.map(read, groups), strict=True)

    def logs(self) -> dict[Place, Logs]:
        """What lies in both clusters now, by source partition."""
        clusters = self._clusters
        source = read_log(clusters.source.bootstrap, [topic.name for topic in TOPICS])
        target = read_log(clusters.target.bootstrap, [remote(topic.name) for topic in TOPICS])
        compacted = {topic.name for topic in TOPICS if topic.compacted}
        return {
            (topic, partition): Logs(entries, target[remote(topic), partition], topic in compacted)
            for (topic, partition), entries in source.items()
        }

    def _take_down(self, group: Group, reads: Reads) -> None:
        for partition, read in reads.items():
            key = group.name, (group.topic.name, partition)
            values = {entry.value for entry in read.entries}
            self.processed[key] = self.processed.get(key, frozenset()) | values
