"""The seam to Kafka: what tsoffset asks of a cluster, and nothing more.

Two implementations pass one contract suite (tests/testing/test_cluster_contract.py): the adapter
in `tsoffset.kafka` and `tsoffset.testing.memory_cluster`. Every method takes a batch and answers
for each item of it, in one call; what fails for one item is a `Failed` in its place. Only
a cluster that cannot be reached at all raises (`ClusterUnreachable`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Protocol, Self, TypeVar

from tsoffset.committed import CommittedColumns
from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings
from tsoffset.model import (
    ClusterDescription,
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    GroupListings,
    Isolation,
    LogRange,
    ReadFrom,
    Rights,
    TimedOffset,
    TopicDescription,
    TopicPartition,
    Youngest,
)
from tsoffset.records import RawStretch, Stretch

T = TypeVar("T")


def all_failed(error: ClusterUnreachable) -> Failed:
    """What it means for each thing that was asked of the cluster."""
    refused = isinstance(error, ClusterRefused)
    kind = FailureKind.AUTHENTICATION if refused else FailureKind.UNREACHABLE
    return Failed(kind, str(error))


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
        """All groups but those of elections, with their state, one request a broker. Raises
        ClusterUnreachable."""

    def committed(
        self,
        groups: Collection[str],
        *,
        share_groups: Collection[str] = (),
        require_stable: bool,
        within_seconds: float | None = None,
    ) -> CommittedColumns:
        """All committed offsets of each group; an unknown group has none.

        `share_groups` are those of the groups that are share groups: what they have committed
        are their share-partition start offsets, none where that was never set.

        With `require_stable`, an offset that waits for a transaction is a `Failed(COORDINATOR)`.
        That and a coordinator that is loading or moving are asked again for a few seconds (see
        `Failed.patience_seconds`). With `within_seconds` this is a single look instead: no
        answer waits for that of another group, and a broker that has not answered within so
        many seconds is a `Failed(TIMEOUT)` for its groups.
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
        self,
        commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        *,
        share_groups: Collection[str] = (),
        may_send: Callable[[str], bool] | None = None,
    ) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
        """Commit offsets for groups without being a member; None means committed. Of those in
        `share_groups` the share-partition start offsets are set; a group that is new becomes a
        share group.

        A group with members refuses: `Failed` with `group_active` for its partitions. The
        leader epoch is never sent. What was sent is never sent again: a `Failed` with
        `patience_seconds` may have been written all the same, so that the group's offsets are
        to be read before another call.

        `may_send` is asked with the group right before each of its requests goes out, in any
        thread; where it says no, that one is a `Failed(TIMEOUT)` and was not sent. With it
        nothing at all is tried twice.
        """

    def rights(self, topics: Collection[str], groups: Collection[str]) -> Rights:
        """What we may do with these topics and groups, whether they exist or not (KIP-430).

        Without DESCRIBE on one nothing is allowed there, and no broker tells then whether it
        exists. Raises ClusterUnreachable.
        """

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, Mapping[str, str] | Failed]:
        """The configuration of each topic, defaults of its brokers included; at least
        `cleanup.policy` and what `check` compares. Needs DESCRIBE_CONFIGS. Raises
        ClusterUnreachable."""

    def clock_ahead_ms(self) -> int | None:
        """By how many milliseconds the cluster's clock is surely ahead of ours (behind it: below
        0); 0 where both may be the same, None where the cluster does not tell.

        Raises ClusterUnreachable.
        """

    def together(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """What each of some calls of this cluster returns: one after the other, or all under way at
        once where there is a network to wait for. Raises what one of them has raised."""
        return [call() for call in calls]

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


Connect = Callable[[ClusterSettings], Cluster]


class Standing(Enum):
    """How a member of a group stands with the group's coordinator."""

    MEMBER = "the last assignment holds"
    REBALANCING = "all members are to join again; the last assignment holds until they have"
    REMOVED = "the others may have gone on without this one: the last assignment is void"


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member was given. The coordinator knew it at `asked_at` or later (seconds of
    `time.monotonic`)."""

    content: bytes
    asked_at: float


class Membership(Protocol):
    """Our membership in one group of a cluster, which commits nothing.

    One thread uses it at a time, but for `interrupt`. Failures are values; the next call tries
    again, as far as need be with the coordinator looked up anew.
    """

    def join(
        self, metadata: bytes, assign: Callable[[Mapping[str, bytes]], bytes]
    ) -> Assignment | Standing | Failed:
        """Join, or join again, and wait until all members have.

        `assign` makes what every member is given of the metadata of each, by the members' ids; it
        is called where the coordinator has chosen us for it. A standing, which is never MEMBER,
        where the group moved on meanwhile.
        """

    def beat(self) -> Standing | Failed:
        """One heartbeat; how we stand."""

    def leave(self) -> None:
        """Tell the coordinator that we are gone, so that it need not wait for the session's end.
        It notices by itself where it cannot be told."""

    def interrupt(self) -> None:
        """End a call of another thread, which fails."""

    def close(self) -> None:
        """End all connections."""
