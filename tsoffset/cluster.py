"""The seam to Kafka: what tsoffset asks of a cluster, and nothing more.

Two implementations pass one contract suite (tests/test_cluster_contract.py): the adapter
in `tsoffset.kafka` and `tsoffset.memory_cluster`. Every method takes a batch and answers
for each item of it, in one call; what fails for one item is a `Failed` in its place. Only
a cluster that cannot be reached at all raises (`ClusterUnreachable`).
"""

from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Protocol, Self

from tsoffset.model import (
    ClusterDescription,
    CommittedOffset,
    Failed,
    FirstAtTime,
    GroupListings,
    GroupOffsets,
    Isolation,
    LogRange,
    ReadFrom,
    TimedOffset,
    TopicDescription,
    TopicPartition,
    Youngest,
)
from tsoffset.records import RawStretch, Stretch


class Cluster(Protocol):
    """One Kafka cluster."""

    @property
    def alias(self) -> str:
        """The name that the configuration gives it; used in messages."""

    def describe(self) -> ClusterDescription:
        """The brokers and the cluster's id. Raises ClusterUnreachable."""

    def topics(
        self, names: Collection[str] | None = None
    ) -> Mapping[str, TopicDescription | Failed]:
        """Descriptions of the topics named, or of all; a topic that does not exist is a
        `Failed` with `missing`. Raises ClusterUnreachable."""

    def groups(self) -> GroupListings:
        """All groups with their state, one request a broker. Raises ClusterUnreachable."""

    def committed(
        self, groups: Collection[str], *, require_stable: bool
    ) -> Mapping[str, GroupOffsets | Failed]:
        """All committed offsets of each group; an unknown group has none (an empty mapping).

        With `require_stable`, offsets that wait for a transaction are asked for again until
        they are stable; what stays unstable is a `Failed(COORDINATOR)`.
        """

    def log_ranges(
        self, partitions: Collection[TopicPartition], isolation: Isolation
    ) -> Mapping[TopicPartition, LogRange | Failed]:
        """Start and readable end of each partition's log."""

    def read(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, Stretch | Failed]:
        """The stretch of log from each offset on.

        Empty only at the readable end (start == end == offset). The stretch begins at the
        offset asked for or earlier (at the start of the batch that holds it, yet not below
        the log's start), and goes to the end of the last whole batch read. An offset
        outside the log is a `Failed(INTERNAL)`; a log that says it has more and answers
        nothing within the poll timeout is a `Failed(TIMEOUT)`.
        """

    def read_raw(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, RawStretch | Failed]:
        """As `read`, with what the records hold: for the topics of a replicator's own state.

        Keys and values of data are never read so; they stay digests (docs/design.md
        section 1, "Content stays private").
        """

    def first_at_times(
        self, requests: Collection[FirstAtTime], isolation: Isolation
    ) -> Mapping[FirstAtTime, TimedOffset | Failed | None]:
        """The first record at or after each time; None proves nothing (the broker's search
        gives up at segments that compaction emptied)."""

    def youngest(
        self, requests: Collection[Youngest], isolation: Isolation
    ) -> Mapping[Youngest, TimedOffset | Failed | None]:
        """The record with the largest timestamp of each log, as `Youngest` says; None proves
        nothing."""

    def commit(
        self, commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
        """Commit offsets for groups without being a member; None means committed.

        A group with members refuses: `Failed` with `group_active` for its partitions. The
        leader epoch is never sent.
        """

    def close(self) -> None:
        """End all connections."""

    def __enter__(self) -> Self:
        """The cluster itself; closed on exit."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
