"""Where the rounds play: two clusters, MirrorMaker 2 between them, and syncs without a pause."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from threading import Event
from typing import Self

from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import UnknownTopicOrPartitionError

from tests.copies import CopiedPartition
from tests.processes import stopped
from tests.producing import Contents, numbered
from tests.scenarios.flows import Flows
from tests.scenarios.rounds.plans import Plan, Shift, plan
from tests.waiting import wait_until
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.cache import CachedTables
from tsoffset.group_sync.cycle import cycle
from tsoffset.kafka.cluster import KafkaCluster
from tsoffset.lab.embedded import MirrorMaker
from tsoffset.model import Row

# The topics of so many rounds are made at once: each time MirrorMaker 2 hears of new ones it
# stops all its tasks and distributes them again.
_TOGETHER = 36


@dataclass(slots=True)
class MirrorMakerProcess:
    """MirrorMaker 2, and what befalls it. `relieve` ends whatever it was."""

    process: MirrorMaker
    _paused: ExitStack = field(default_factory=ExitStack)

    def pause(self) -> None:
        """Let it stand still: it holds its connections and does nothing."""
        self._paused.enter_context(stopped(self.process.pid))

    def relieve(self) -> None:
        """Let it go on, or start it again."""
        self._paused.close()
        self.process.start()


@dataclass(frozen=True, slots=True)
class Synced:
    """A cycle that has ended: its rows, and what held when it began: what the groups had
    committed, and where the logs of the target ended (by partition)."""

    committed: Mapping[tuple[str, int], int]
    mirrored: Mapping[int, int]
    rows: tuple[Row, ...]


class RoundsTestbed:
    """The two clusters by their contents, and the flows of one MirrorMaker 2."""

    def __init__(
        self, source: Contents, target: Contents, flows: Flows, rounds: Collection[int]
    ) -> None:
        """`rounds` are the numbers of those to be played."""
        self.source = source
        self.target = target
        self.mirror = MirrorMakerProcess(flows.mirror_maker)
        self._flows = flows
        self._rounds = rounds
        self._prepared: set[int] = set()
        self._open = ExitStack()
        # The syncs have a thread of their own, and so connections of their own.
        self._watching = self._open.enter_context(closing(Contents(target.bootstrap)))
        self._clusters: dict[str, tuple[KafkaCluster, KafkaCluster]] = {}

    def close(self) -> None:
        self._open.close()

    def prepare(self, wanted: Plan) -> None:
        """Make the topics of this round and its neighbors, and wait until the mirror has them;
        the topic of a late round is made when it begins, without waiting."""
        first = wanted.number - wanted.number % _TOGETHER
        neighbors = [
            wanted if n == wanted.number else plan(wanted.seed, n)
            for n in range(first, first + _TOGETHER)
            if n in self._rounds or n == wanted.number
        ]
        fresh = [
            one for one in neighbors if one.number not in self._prepared and not one.late_topic
        ]
        for one in fresh:
            self._make_topic(one)
        self.mirror.relieve()
        self._prepared |= {one.number for one in fresh}
        names = {self.remote(one) for one in fresh}
        wait_until(
            lambda: names <= {*self.target.admin.list_topics()},
            "the mirror has made its topics",
        )
        if wanted.number not in self._prepared:
            self._make_topic(wanted)
            self._prepared.add(wanted.number)

    def flow(self, of: Plan) -> FlowSettings:
        """The round's flow, for its groups only."""
        return self._flows.flow(of.flow, *of.group_names)

    def remote(self, of: Plan) -> str:
        return self._flows.remote(of.flow, of.topic)

    def ends(self, of: Plan) -> Mapping[int, int]:
        """Where the logs of the target end, by partition; empty without the topic."""
        places = [TopicPartition(self.remote(of), number) for number in range(of.partitions)]
        if places[0].topic not in self._watching.admin.list_topics():
            return {}
        try:
            found = self._watching.admin.list_partition_offsets(
                dict.fromkeys(places, OffsetSpec.LATEST)
            )
        except UnknownTopicOrPartitionError:
            # The mirror has asked for it, but no leader has taken office yet.
            return {}
        return {place.partition: found[place].offset for place in places}

    def is_copied(self, of: Plan, partition: int, logs: CopiedPartition) -> bool:
        """Read on what the target has of a partition; whether that is all that was written."""
        try:
            logs.read_target(self.target, self.remote(of), partition)
        except UnknownTopicOrPartitionError:
            return False
        return not logs.not_mirrored

    def clusters(self, flow: FlowSettings) -> tuple[KafkaCluster, KafkaCluster]:
        """Connections to the flow's clusters that stay open between cycles, as the daemon's do."""
        if flow.name not in self._clusters:
            self._clusters[flow.name] = (
                self._open.enter_context(KafkaCluster(flow.source)),
                self._open.enter_context(KafkaCluster(flow.target)),
            )
        return self._clusters[flow.name]

    def _make_topic(self, of: Plan) -> None:
        """With a beginning that one of the sides has lost."""
        chance = of.chance()
        if of.shift is Shift.TARGET and not of.late_topic:
            self._make_shifted(self.target, self.remote(of), of, chance.randint(1, 200))
        shift = chance.randint(1, 200) if of.shift is Shift.SOURCE else 0
        self._make_shifted(self.source, of.topic, of, shift)

    def _make_shifted(self, contents: Contents, topic: str, of: Plan, shift: int) -> None:
        contents.create_topic(topic, of.partitions)
        for partition in range(of.partitions if shift else 0):
            contents.produce(topic, numbered(shift), partition=partition)
            contents.delete_records(topic, shift, partition=partition)


@dataclass(slots=True)
class Syncing:
    """Cycles of a round's flow, one after the other in a thread of their own, from the time it
    is entered; `done` are those that have ended. A cycle that has begun is always finished.

    `committed` tells what the groups' commits on the source are at least.
    """

    stage: RoundsTestbed
    plan: Plan
    committed: Callable[[], Mapping[tuple[str, int], int]]
    done: list[Synced] = field(default_factory=list)
    _stop: Event = field(default_factory=Event)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _running: Future[None] | None = None

    def another(self) -> None:
        """Wait until one more cycle has begun and ended, while they go on."""
        # The next one to end may have begun before.
        wanted = len(self.done) + 2
        wait_until(
            lambda: len(self.done) >= wanted or not self.going_on,
            "another cycle has ended",
        )
        if self._running is not None and not self.going_on:
            self._running.result()

    @property
    def going_on(self) -> bool:
        return self._running is not None and not self._running.done()

    def start(self) -> None:
        self._running = self._pool.submit(self._cycles)

    def stop(self) -> None:
        """Begin no further cycle, and wait for the one that is on its way."""
        self._stop.set()
        if self._running is not None:
            self._running.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()

    def _cycles(self) -> None:
        flow = self.stage.flow(self.plan)
        source, target = self.stage.clusters(flow)
        cache = CachedTables()
        while not self._stop.is_set():
            committed, mirrored = self.committed(), self.stage.ends(self.plan)
            if not self.plan.remembers:
                cache = CachedTables()
            rows = cycle(flow, source, target, cache=cache)
            self.done.append(Synced(committed, mirrored, tuple(rows)))
