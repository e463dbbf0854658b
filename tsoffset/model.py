"""The domain's values: requests to clusters, their answers, and the results of a cycle.

All are frozen and can be pickled. They contain no library's types and no sentinels: Kafka's -1 is
None here. A *source* value belongs to the cluster that is mirrored, a *target* value to the one
with the copies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tsoffset.printable import shorten

LONGEST_MESSAGE = 2_000
GROUP_OFFSETS_TOPIC = "__consumer_offsets"


class Side(StrEnum):
    """One of the two clusters of a flow."""

    SOURCE = "source"
    TARGET = "target"

    @property
    def other(self) -> "Side":
        return Side.TARGET if self is Side.SOURCE else Side.SOURCE


class Isolation(StrEnum):
    """Which records of transactions a reader gets."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class TimestampType(StrEnum):
    """How the timestamps of a batch were set: by the producer, or by the broker."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class Precision(StrEnum):
    """How much is proven of a translation (docs/design.md section 1)."""

    EXACT = "exact"
    BOUNDED = "bounded"
    FRONTIER = "frontier"
    UNPROVEN = "unproven"


class Basis(StrEnum):
    """What a translation rests on.

    NEXT_RECORD: the copy of the next record to read. BETWEEN: two copies, of a record before the
    committed offset and of one from it on. BEHIND: the copy of an earlier record. ALL_READ:
    the source has nothing from the committed offset on. MIRROR_END: the target has nothing from the
    committed offset on yet. LOG_START: the target has nothing before the committed offset. FLOOR:
    `translation.floor`. TIMESTAMP: `translation.proof = timestamps`. SAME_OFFSET: the same offset,
    under `translation.expect = same-offsets`.
    """

    NEXT_RECORD = "next_record"
    BETWEEN = "between"
    BEHIND = "behind"
    ALL_READ = "all_read"
    MIRROR_END = "mirror_end"
    LOG_START = "log_start"
    FLOOR = "floor"
    TIMESTAMP = "timestamp"
    SAME_OFFSET = "same_offset"


class Proof(StrEnum):
    """What shows that a target offset skips nothing (docs/design.md section 1).

    TIME: by timestamps, no copy of a record from the committed offset on lies before it.
    FIRST_COPY: it is the lowest copy left on a log that begins at or before its original and is not
    compacted. FRONTIER: nothing that follows a higher record lies before that record's copy.
    """

    TIME = "time"
    FIRST_COPY = "first_copy"
    FRONTIER = "frontier"


@dataclass(frozen=True, slots=True)
class Safety:
    """Why no unread record lies before an answer.

    `pair` is the record pair (source offset, target offset) that it rests on: for FIRST_COPY where
    the target's log begins, for FRONTIER the higher record and its copy. For TIME, the source was
    read from `from_offset` to its end: `records` records, the oldest of `oldest_ms`. Target records
    before `limit` are older or were read. `oldest_ms` is None if one of the source records has no
    timestamp, so that the target was read from its start.
    """

    proof: Proof
    pair: tuple[int, int] | None = None
    from_offset: int | None = None
    records: int | None = None
    oldest_ms: int | None = None
    limit: int | None = None


class OutcomeKind(StrEnum):
    COMMITTED = "committed"
    WOULD_COMMIT = "would_commit"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a row is skipped. If several apply, the first of this order is named."""

    UNSUPPORTED_GROUP = "UNSUPPORTED_GROUP"
    SEVERAL_SOURCES = "SEVERAL_SOURCES"
    TARGET_MISSING = "TARGET_MISSING"
    TARGET_REWRITES_TIMESTAMPS = "TARGET_REWRITES_TIMESTAMPS"
    EXPIRED = "EXPIRED"
    PAST_LOG_END = "PAST_LOG_END"
    NO_TIMESTAMP = "NO_TIMESTAMP"
    NOT_MIRRORED = "NOT_MIRRORED"
    NO_PROOF = "NO_PROOF"
    DIVERGED = "DIVERGED"
    TARGET_PAST_LOG_END = "TARGET_PAST_LOG_END"
    SOURCE_REWOUND = "SOURCE_REWOUND"
    TARGET_AHEAD = "TARGET_AHEAD"
    TARGET_REWOUND = "TARGET_REWOUND"
    GROUP_ACTIVE = "GROUP_ACTIVE"


class FailureKind(StrEnum):
    """Why something failed; the reasons of a `failed` row."""

    AUTHENTICATION = "AUTHENTICATION"
    AUTHORIZATION = "AUTHORIZATION"
    UNREACHABLE = "UNREACHABLE"
    TIMEOUT = "TIMEOUT"
    NO_LEADER = "NO_LEADER"
    COORDINATOR = "COORDINATOR"
    CORRUPT_BATCH = "CORRUPT_BATCH"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure for one partition, group, broker or cluster.

    `missing`: the cluster says that the topic or partition does not exist. `group_active`: a commit
    was refused because the group has members. `metadata_too_large`: it was refused for the size of
    its metadata. `retry_seconds`: how long retries may help; 0 if it is final.
    """

    kind: FailureKind
    message: str
    missing: bool = False
    group_active: bool = False
    metadata_too_large: bool = False
    retry_seconds: float = 0.0

    def __post_init__(self) -> None:
        # It may contain foreign names, and a group's name may have 32,767 characters.
        object.__setattr__(self, "message", shorten(self.message, LONGEST_MESSAGE))


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


# --- answers of clusters -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Broker:
    """One node of a cluster. `version` is None if it did not answer at its address; `unspoken`
    names the requests that it supports in no version that tsoffset needs."""

    node_id: int
    host: str
    port: int
    version: str | None = None
    unspoken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """`dead_addresses` are bootstrap addresses that did not answer, or that belong to another
    cluster, while another address answered."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    dead_addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """`leader` is None without a leader, `leader_epoch` if the broker does not say it."""

    partition: int
    leader: int | None
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`topic_id` is None if the brokers have no topic ids."""

    topic: str
    topic_id: str | None
    partitions: Mapping[int, PartitionDescription]
    internal: bool = False


class Resource(StrEnum):
    """The kinds of resources that rights are granted on, in kafka-acls' words."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"


class Operation(StrEnum):
    """Rights that tsoffset may need, in kafka-acls' words."""

    READ = "Read"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


Allowed = frozenset[Operation] | Failed | None
"""The rights on one resource; None if the brokers do not tell."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of this client on the cluster and on each requested topic and group.

    `principal` is the name by which the brokers know this client unless they map names
    (`User:alice`); None if only they know it.
    """

    principal: str | None
    cluster: Allowed
    topics: Mapping[str, Allowed]
    groups: Mapping[str, Allowed]


class GroupType(StrEnum):
    """Types of groups, as ListGroups names them; before v5 all are classic."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """`state` is the broker's own word."""

    group: str
    type: GroupType
    state: str | None
    protocol_type: str = "consumer"
    coordinator: int | None = None

    @property
    def active(self) -> bool:
        """True if the group has members (or is forming): its members commit its offsets."""
        return self.state is not None and self.state not in ("Empty", "Dead", "Unknown")


@dataclass(frozen=True, slots=True)
class GroupListings:
    """All groups of a cluster, and why some may be missing.

    `failed_brokers` did not list their groups. `leaderless` names the partitions of
    `__consumer_offsets` that no broker leads: no broker lists the groups in them.
    """

    groups: Mapping[str, GroupListing]
    failed_brokers: Mapping[int, Failed] = field(default_factory=dict)
    leaderless: Failed | None = None

    @property
    def failures(self) -> tuple[Failed, ...]:
        """Why groups may be missing. If it is empty, a group that is not listed does not exist, or
        its coordinator has just moved and has not begun to load it."""
        unlisted = () if self.leaderless is None else (self.leaderless,)
        return (*self.failed_brokers.values(), *unlisted)

    @property
    def share_groups(self) -> frozenset[str]:
        return frozenset(n for n, one in self.groups.items() if one.type is GroupType.SHARE)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset: the next record to read.

    For a share group it is the share-partition start offset: the first record that is not yet
    acknowledged. `lag` is the number of records up to the log's end that are not acknowledged; None
    if the broker does not return it. `leader_epoch` is that of the last record that the group has
    read, if its client commits it (KIP-320).
    """

    offset: int
    metadata: str = ""
    lag: int | None = field(default=None, compare=False)
    leader_epoch: int | None = field(default=None, compare=False)


GroupOffsets = Mapping[TopicPartition, CommittedOffset | Failed]


@dataclass(frozen=True, slots=True)
class LogRange:
    """The first offset of a partition's log, and the one after the last.

    `end` is the high watermark, or for READ_COMMITTED the last stable offset: no record at or after
    `end` can be read with that isolation.
    """

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimedOffset:
    """The first record in log order whose timestamp is at least the requested one."""

    offset: int
    timestamp_ms: int


# --- requests to clusters ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class ReadFrom:
    """Read a partition from `offset` on.

    `max_bytes` = 1 reads exactly one batch, the first whose last offset is >= `offset`. A larger
    value reads as many whole batches as fit (at least one), but only of one segment of the log.
    """

    partition: TopicPartition
    offset: int
    max_bytes: int = 1


@dataclass(frozen=True, slots=True, order=True)
class FirstAtTime:
    """Look up the first record with a timestamp >= `timestamp_ms` (which is >= 0)."""

    partition: TopicPartition
    timestamp_ms: int


@dataclass(frozen=True, slots=True, order=True)
class Youngest:
    """Look up the record with the largest timestamp (KIP-734), the first if there are several.

    Control and aborted records count, and so does a deleted one below the log's start while the
    broker keeps its segment. None proves nothing: the broker may be older than 3.0, no record may
    have a timestamp, or this record may lie at or past the readable end, or be compacted away
    except for its batch's header. (Brokers before 3.8 may answer the last offset of its batch;
    brokers with tiered storage look at their local segments alone.)
    """

    partition: TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class LeaderEpoch:
    """Look up where the records of this leader epoch, and of all earlier ones, end in the log: at
    the first offset of the next epoch, or at the log's end. None if the log has no such epoch
    (KIP-101, KIP-320)."""

    partition: TopicPartition
    epoch: int


# --- translations -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A source offset: the next record to read."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Translated:
    """A safe target offset.

    `reread_bound` is the most source records that can be re-read; 0 for exact, None for unproven.
    All offsets from `equivalent_from` to `equivalent_to` resume at the same record: only
    `equivalent_to` has one. `pairs` are (source offset, target offset) of records and their copies,
    which `basis` rests on. `safety` is the proof that nothing is skipped; None if the basis itself
    shows it: a log's start, or its end for a group that has read everything.
    """

    target_offset: int
    precision: Precision
    reread_bound: int | None
    equivalent_from: int
    equivalent_to: int
    basis: Basis | None = field(default=None, compare=False)
    pairs: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    safety: Safety | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Skipped:
    """No translation, for a named reason; `message` has the cause and the next step."""

    reason: Reason
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shorten(self.message, LONGEST_MESSAGE))


Outcome = Translated | Skipped | Failed


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a cycle's result: docs/commands.md. Absent is None."""

    flow: str
    group: str | None
    source_topic: str | None
    partition: int | None
    source_offset: int | None
    source_timestamp_ms: int | None
    target_topic: str | None
    target_offset: int | None
    current_target_offset: int | None
    outcome: OutcomeKind
    reason: Reason | FailureKind | None = None
    precision: Precision | None = None
    reread_bound: int | None = None
    message: str | None = None
    consumer_lag: int | None = None
