"""The interface to Kafka: every request that tsoffset sends to a cluster.

Two implementations pass one contract suite (tests/testing/test_cluster_contract.py): the adapter in
`tsoffset.kafka`, and `tsoffset.testing.memory_cluster`. Every method takes a batch and answers each
of its items in one call; a failure of one item is a `Failed` in its place. Only an unreachable
cluster raises (`ClusterUnreachable`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, Self, TypeVar

from tsoffset.committed import CommittedColumns
from tsoffset.errors import ClusterRefused, ClusterUnreachable
from tsoffset.flow.settings import ClusterSettings
from tsoffset.model import (
    GROUP_OFFSETS_TOPIC,
    ClusterDescription,
    CommittedOffset,
    Failed,
    FailureKind,
    FirstAtTime,
    GroupListings,
    Isolation,
    LeaderEpoch,
    LogRange,
    ReadFrom,
    Rights,
    TimedOffset,
    TopicDescription,
    TopicPartition,
    Youngest,
)
from tsoffset.records import FetchedRange, RawFetchedRange

T = TypeVar("T")


def all_failed(error: ClusterUnreachable) -> Failed:
    """The failure of each item requested from an unreachable cluster."""
    refused = isinstance(error, ClusterRefused)
    kind = FailureKind.AUTHENTICATION if refused else FailureKind.UNREACHABLE
    return Failed(kind, str(error))


def leaderless(alias: str, partitions: Collection[int]) -> Failed:
    """The failure to list the groups in these partitions of `__consumer_offsets`."""
    noun, them = ("partition", "it") if len(partitions) == 1 else ("partitions", "them")
    numbers = ", ".join(map(str, sorted(partitions)))
    return Failed(
        FailureKind.NO_LEADER,
        f"list groups, cluster {alias}: no broker leads {noun} {numbers} of {GROUP_OFFSETS_TOPIC},"
        f" so no broker lists the groups in {them}; restart the brokers that have replicas of"
        f" {them}",
    )


class Cluster(Protocol):
    @property
    def alias(self) -> str:
        """The name that the configuration gives it; used in messages."""

    def describe(self) -> ClusterDescription:
        """Raises ClusterUnreachable."""

    def topics(
        self, names: Collection[str] | None = None
    ) -> Mapping[str, TopicDescription | Failed]:
        """Descriptions of the named topics, or of all. A topic that does not exist is a `Failed`
        with `missing`. Raises ClusterUnreachable."""

    def groups(self) -> GroupListings:
        """All groups except those of elections, with their state, by one request per broker, and
        why some may be missing. Partitions of `__consumer_offsets` without a leader are noticed if
        this client may DESCRIBE that topic. Raises ClusterUnreachable."""

    def committed(
        self,
        groups: Collection[str],
        *,
        share_groups: Collection[str] = (),
        require_stable: bool,
        within_seconds: float | None = None,
    ) -> CommittedColumns:
        """All committed offsets of each group; an unknown group has none.

        `share_groups` names the share groups among them. For these the share-partition start
        offsets are returned; a partition in which the group never set one is missing.

        With `require_stable`, an offset that waits for a transaction is a `Failed(COORDINATOR)`.
        That, and a coordinator that is loading or moving, is retried for a few seconds (see
        `Failed.retry_seconds`). With `within_seconds` nothing is retried: no answer waits for
        that of another group, and a broker that has not answered within this time is a
        `Failed(TIMEOUT)` for its groups.
        """

    def log_ranges(
        self, partitions: Collection[TopicPartition], isolation: Isolation
    ) -> Mapping[TopicPartition, LogRange | Failed]:
        """Start and readable end of each partition's log."""

    def read(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, FetchedRange | Failed]:
        """The fetched range from each offset on.

        Empty only at the readable end (start == end == offset). The range begins at the requested
        offset or earlier (at the start of the batch that holds it, yet not below the log's start),
        and goes to the end of the last whole batch read. An offset outside the log is a
        `Failed(NO_LEADER)`; a log that claims to have more and answers nothing within the poll
        timeout is a `Failed(TIMEOUT)`.
        """

    def read_raw(
        self, requests: Collection[ReadFrom], isolation: Isolation
    ) -> Mapping[ReadFrom, RawFetchedRange | Failed]:
        """Like `read`, with the content of records: only for the topics of a replicator's own
        state.

        Keys and values of data are never read this way; they stay digests (docs/design.md section
        1, "Content stays private").
        """

    def first_at_times(
        self, requests: Collection[FirstAtTime], isolation: Isolation
    ) -> Mapping[FirstAtTime, TimedOffset | Failed | None]:
        """The first record at or after each time. None proves nothing: the broker's search ends at
        segments that compaction has emptied."""

    def youngest(
        self, requests: Collection[Youngest], isolation: Isolation
    ) -> Mapping[Youngest, TimedOffset | Failed | None]:
        """The record with the largest timestamp of each log, see `Youngest`; None proves
        nothing."""

    def epoch_ends(
        self, requests: Collection[LeaderEpoch]
    ) -> Mapping[LeaderEpoch, int | Failed | None]:
        """The offset at which each leader epoch ends in its log, see `LeaderEpoch`. A cluster
        without this request fails all as UNSUPPORTED_VERSION."""

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        *,
        share_groups: Collection[str] = (),
        may_send: Callable[[str], bool] | None = None,
    ) -> Mapping[str, Mapping[TopicPartition, Failed | None]]:
        """Commit offsets for groups without being a member; None means committed. For groups
        in `share_groups` the share-partition start offsets are set; a new one becomes a share
        group.

        A group with members refuses: `Failed` with `group_active` for its partitions. No leader
        epoch is sent. A commit is never sent twice: a `Failed` with `retry_seconds` may have
        been written, so read the group's offsets before another call.

        `may_send` is called with the group right before each of its requests is sent, in any
        thread. If it returns False, the request is a `Failed(TIMEOUT)` and was not sent. With
        `may_send`, nothing is tried twice.
        """

    def rights(self, topics: Collection[str], groups: Collection[str]) -> Rights:
        """The rights of this client on these topics and groups, whether they exist or not
        (KIP-430).

        Without DESCRIBE on one, no broker tells whether it exists, and no right is reported. Raises
        ClusterUnreachable.
        """

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, Mapping[str, str] | Failed]:
        """The configuration of each topic, including its brokers' defaults; at least
        `cleanup.policy` and what `check` compares. Needs DESCRIBE_CONFIGS. Raises
        ClusterUnreachable."""

    def together(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """The results of several calls to this cluster: one after the other, or all at the same
        time if they wait for a network. Raises the error that one of them has raised."""
        return [call() for call in calls]

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Connect = Callable[[ClusterSettings], Cluster]


def committed_columns(
    cluster: Cluster,
    groups: Sequence[str],
    *,
    share_groups: Collection[str] = (),
    require_stable: bool,
    within_seconds: float | None = None,
) -> CommittedColumns:
    """Fetches the committed offsets of the groups. `share_groups` says which of them are share
    groups, and may name others. A cluster that cannot be reached fails each of them; without groups
    nothing is asked."""
    if not groups:
        return CommittedColumns.of({})
    try:
        return cluster.committed(
            groups,
            share_groups=share_groups,
            require_stable=require_stable,
            within_seconds=within_seconds,
        )
    except ClusterUnreachable as error:
        failed = all_failed(error)
        return CommittedColumns.of(dict.fromkeys(groups, failed))


class MemberState(Enum):
    """The state of a group member for the group's coordinator."""

    MEMBER = "the last assignment holds"
    REBALANCING = "all members are to join again; the last assignment holds until they have"
    REMOVED = "the others may have gone on without this one: the last assignment is void"


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the leader gave to a member. The coordinator knew the member at `asked_at` or later
    (seconds of `time.monotonic`)."""

    content: bytes
    asked_at: float
