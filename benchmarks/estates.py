"""Two clusters on this machine, a flow between them, groups, and their true offsets."""

import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties
from kafka import KafkaAdminClient

from benchmarks import filling
from benchmarks.filling import Batches
from tsoffset.config.loading import Configuration
from tsoffset.flow.settings import ClusterSettings
from tsoffset.lab.embedded import EmbeddedBroker, flow_properties
from tsoffset.model import OutcomeKind, Precision, Row, TopicPartition

FLOW = "A->B"
TOPIC = "orders"
REMOTE = "A.orders"
# The share of group-partitions that have read everything; the others are anywhere in the log.
CAUGHT_UP = 1 / 3

Commits = dict[str, dict[TopicPartition, int]]


@dataclass(frozen=True, slots=True)
class Log:
    """A topic whose copy begins `shift` records later, so that no offset is the same."""

    partitions: int
    records: int
    shift: int = 0
    batches: Batches = field(default_factory=lambda: Batches(100))
    copied_in: Batches = field(default_factory=lambda: Batches(200))

    def write(self, source: str, target: str, topic: str = TOPIC) -> None:
        """Write original and copy, without a replicator."""
        start_ms = filling.recent_ms(self.records)
        numbers = range(self.partitions)
        for bootstrap, name, batches, skipped in (
            (source, topic, self.batches, 0),
            (target, f"A.{topic}", self.copied_in, self.shift),
        ):
            size = {"max.message.bytes": "10000000"}
            filling.topic(bootstrap, name, self.partitions, configs=size)
            count, rest = divmod(self.records - skipped, batches.records)
            assert not rest, "the batches do not fill the log"
            filling.fill(bootstrap, name, numbers, batches, count, start_ms + skipped)

    def commits(
        self, groups: int, *, prefix: str = "group", seed: int = 1292, topic: str = TOPIC
    ) -> Commits:
        """Commits of each group on every partition."""
        chance = random.Random(seed)
        return {
            f"{prefix}-{number:05}": {
                TopicPartition(topic, partition): self.position(chance)
                for partition in range(self.partitions)
            }
            for number in range(groups)
        }

    def position(self, chance: random.Random) -> int:
        """The offset of a group: at the end, or anywhere after the records that the copy lacks."""
        if chance.random() < CAUGHT_UP:
            return self.records
        return chance.randrange(self.shift, self.records)

    def moved(self, commits: Commits, share: float, seed: int = 1) -> Commits:
        """The commits of a share of the groups, somewhat later."""
        chance = random.Random(seed)
        some = chance.sample(sorted(commits), round(share * len(commits)))
        return {
            group: {
                place: min(self.records, offset + chance.randrange(1, self.records // 10))
                for place, offset in commits[group].items()
            }
            for group in some
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Target offsets compared with the true ones, `pairs` in all."""

    pairs: int
    synced: int
    exact: int
    reread: int

    @classmethod
    def of(cls, commits: Commits, found: Mapping[str, Mapping[TopicPartition, int]], shift: int):
        """Judge; raises AssertionError for a commit that skips a record."""
        pairs = synced = exact = reread = 0
        for group, offsets in commits.items():
            for place, offset in offsets.items():
                pairs += 1
                there = found.get(group, {}).get(
                    TopicPartition(f"A.{place.topic}", place.partition)
                )
                if there is None:
                    continue
                synced += 1
                again = offset - shift - there
                assert again >= 0, f"{group} skips {-again} records of {place}"
                exact += again == 0
                reread += again
        return cls(pairs, synced, exact, reread)


def exact_rows(rows: Iterable[Row], shift: int) -> int:
    """The number of exact rows; raises AssertionError for a failed or wrong row."""
    exact = 0
    for row in rows:
        assert row.outcome is not OutcomeKind.FAILED, row.message
        if row.target_offset is not None:
            assert row.source_offset is not None
            assert row.target_offset <= row.source_offset - shift, row
            if row.precision is Precision.EXACT:
                exact += 1
                assert row.target_offset == row.source_offset - shift, row
    return exact


@dataclass(frozen=True, slots=True)
class Clusters:
    """Brokers of a source and a target, their addresses, and a folder for what they have."""

    folder: Path
    source: str
    target: str
    brokers: Sequence[EmbeddedBroker]

    def write(self, log: Log, topic: str = TOPIC) -> None:
        """Write original and copy, without a replicator."""
        log.write(self.source, self.target, topic)

    def commit(self, commits: Commits) -> None:
        """Commit on the source."""
        filling.commit(settings("A", self.source), commits)

    def flow_file(
        self, extra: Mapping[str, str] | None = None, *, name: str = "flow"
    ) -> Configuration:
        """As the function of this name."""
        return flow_file(self.folder, self.source, self.target, extra, name=name)


def settings(alias: str, bootstrap: str) -> ClusterSettings:
    """How to reach a cluster directly."""
    return ClusterSettings(alias, (bootstrap,))


def flow_file(
    folder: Path,
    source: str,
    target: str,
    extra: Mapping[str, str] | None = None,
    *,
    name: str = "flow",
) -> Configuration:
    """A configuration for FLOW, as MirrorMaker 2 and tsoffset both read it."""
    wanted = flow_properties(source, target, topics=f"{TOPIC}.*", overrides=extra)
    path = folder / f"{name}.properties"
    path.write_text(javaproperties.dumps(wanted, timestamp=None))
    return Configuration.read(path)


@contextmanager
def two_brokers(*, java_options: Mapping[str, Sequence[str]] | None = None) -> Iterator[Clusters]:
    """Two new clusters, stopped at the end of the block."""
    options = java_options or {}
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="tsoffset-bench-")))
        found = [
            EmbeddedBroker(
                folder / name,
                name=name,
                java_options=("-Xmx768m", *options.get(name, ())),
                properties={"offsets.retention.minutes": "100000"},
            )
            for name in ("source", "target")
        ]
        for broker in found:
            running.enter_context(broker)
        yield Clusters(folder, *(broker.bootstrap for broker in found), found)


def forget_groups(bootstrap: str, groups: Sequence[str]) -> None:
    """Delete groups, if they exist, so that the next cycle is their first."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        there = {found["group_id"] for found in admin.list_groups()}
        wanted = sorted(there.intersection(groups))
        if wanted:
            admin.delete_groups(wanted)
