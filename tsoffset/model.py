"""The domain's values: what is asked of clusters, what they answer, what a cycle says.

All are frozen and can be pickled. No library's types and no sentinels: what Kafka writes
as -1 is None here. A *source* value belongs to the cluster that is mirrored, a *target*
value to the one that holds the copies.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tsoffset.printable import shortened

LONGEST_MESSAGE = 2_000


class Side(StrEnum):
    """Which cluster of a flow."""

    SOURCE = "source"
    TARGET = "target"

    @property
    def other(self) -> "Side":
        """The side across."""
        return Side.TARGET if self is Side.SOURCE else Side.SOURCE


class Isolation(StrEnum):
    """Which records of transactions exist for a reader."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class TimestampType(StrEnum):
    """Who stamped the records of a batch."""

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

    NEXT_RECORD: the copy of the next record to read. BETWEEN: two copies, the last of what the
    group has read and the first of what it has not. BEHIND: the copy of an earlier record.
    ALL_READ: nothing lies from the commit to the source's end. MIRROR_END: nothing from the
    commit on is on the target yet. LOG_START: nothing before the commit is on the target.
    FLOOR: `translation.floor`. TIMESTAMP: `translation.proof = timestamps`. SAME_OFFSET: the same
    offset, under `translation.expect = same-offsets`.
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

    TIME: no copy of a record from the commit on lies before it, by timestamps. FIRST_COPY: it is
    the lowest copy left on a log that begins at or before its original and is not compacted.
    FRONTIER: nothing that follows a higher record lies before that one's copy.
    """

    TIME = "time"
    FIRST_COPY = "first_copy"
    FRONTIER = "frontier"


@dataclass(frozen=True, slots=True)
class Safety:
    """Why nothing that has yet to be read lies before an answer.

    `pair` is the record pair (source offset, target offset) that it rests on: for FIRST_COPY where
    the target's log begins, for FRONTIER the higher record and its copy. For TIME the records from
    `from_offset` to the source's end were read, `records` of them, the oldest of `oldest_ms`, and
    what lies before `limit` on the target is older or was read; `oldest_ms` is None where one of
    them bears no timestamp, so that the target was read from its start.
    """

    proof: Proof
    pair: tuple[int, int] | None = None
    from_offset: int | None = None
    records: int | None = None
    oldest_ms: int | None = None
    limit: int | None = None


class OutcomeKind(StrEnum):
    """What became of one row."""

    COMMITTED = "committed"
    WOULD_COMMIT = "would_commit"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a row is skipped, in the order in which the first that holds is named."""

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
    GROUP_ACTIVE = "GROUP_ACTIVE"


class FailureKind(StrEnum):
    """Why something could not be done; the words of a `failed` row."""

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
    """Something could not be done for one partition, group, broker or cluster.

    `missing` is true where the cluster says that the topic or partition does not exist;
    `group_active` where a commit was refused because the group has members;
    `metadata_too_large` where it was refused for the size of its metadata.
    `patience_seconds` is for how long it may be worth asking again; 0 where it is final.
    """

    kind: FailureKind
    message: str
    missing: bool = False
    group_active: bool = False
    metadata_too_large: bool = False
    patience_seconds: float = 0.0

    def __post_init__(self) -> None:
        # Others choose the names that it holds, and a group's may have 32,767 characters.
        object.__setattr__(self, "message", shortened(self.message, LONGEST_MESSAGE))


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


# --- what clusters answer ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Broker:
    """One node of a cluster; `version` is None where it did not answer at its address.

    `unspoken` names the requests that it does not know in any version that tsoffset needs.
    """

    node_id: int
    host: str
    port: int
    version: str | None = None
    unspoken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster as a whole.

    `dead_addresses` are bootstrap addresses that did not answer while another did.
    """

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    dead_addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """Where one partition lives; `leader` and `leader_epoch` are None without a leader."""

    partition: int
    leader: int | None
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic; `topic_id` is None where the brokers have no topic ids."""

    topic: str
    topic_id: str | None
    partitions: Mapping[int, PartitionDescription]
    internal: bool = False


class Resource(StrEnum):
    """What rights are given on, as kafka-acls calls it."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"


class Operation(StrEnum):
    """What may be allowed on a resource, as kafka-acls calls it; only what tsoffset may need."""

    READ = "Read"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


Allowed = frozenset[Operation] | Failed | None
"""What is allowed on one resource; None where the brokers do not tell."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a cluster allows us: on itself, and on each topic and group that was asked for.

    `principal` is as whom the brokers know us unless they map names (`User:alice`), None where
    only they know.
    """

    principal: str | None
    cluster: Allowed
    topics: Mapping[str, Allowed]
    groups: Mapping[str, Allowed]


class GroupType(StrEnum):
    """Kinds of groups, as ListGroups names them; before v5 all are classic."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group of a cluster with its state's name as the broker gives it."""

    group: str
    type: GroupType
    state: str | None
    protocol_type: str = "consumer"
    coordinator: int | None = None

    @property
    def active(self) -> bool:
        """True where the group has members (or is forming): its offsets are theirs to move."""
        return self.state is not None and self.state not in ("Empty", "Dead", "Unknown")


@dataclass(frozen=True, slots=True)
class GroupListings:
    """All groups of a cluster, and the brokers that could not be asked for theirs."""

    groups: Mapping[str, GroupListing]
    failed_brokers: Mapping[int, Failed] = field(default_factory=dict)

    @property
    def share_groups(self) -> frozenset[str]:
        """The names of the share groups."""
        return frozenset(n for n, one in self.groups.items() if one.type is GroupType.SHARE)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset: the next record to read.

    Of a share group it is the share-partition start offset: the first record that is not yet
    acknowledged. `lag` is how many records up to the log's end are not, where the broker tells it.
    """

    offset: int
    metadata: str = ""
    lag: int | None = field(default=None, compare=False)


GroupOffsets = Mapping[TopicPartition, CommittedOffset | Failed]


@dataclass(frozen=True, slots=True)
class LogRange:
    """A partition's log: the first offset that exists and the one after the last.

    `end` is the log's own end (the high watermark), or for READ_COMMITTED the last stable
    offset: no record at or after `end` can be read with that isolation.
    """

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimedOffset:
    """The first record in log order whose timestamp is at least the one asked for."""

    offset: int
    timestamp_ms: int


# --- what clusters are asked ------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class ReadFrom:
    """Read a partition from `offset` on.

    `max_bytes` = 1 reads exactly one batch, the first whose last offset is >= `offset`;
    more reads as many whole batches as fit (at least one), but none of a further segment of
    the log.
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
    """Look up the record with the largest timestamp (KIP-734).

    The first of several; control and aborted records count, and a deleted one below the log's
    start as long as the broker keeps its segment. None proves nothing: the broker is older than
    3.0, no record has a timestamp, or this one lies at or past the readable end or was compacted
    away but for its batch's header; no older one stands in for it. (Brokers before 3.8 may answer
    the last offset of its batch; those with tiered storage look at their local segments alone.)
    """

    partition: TopicPartition


# --- what the translation says ----------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A committed offset on the source: the next record to read."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Translated:
    """A safe target offset.

    `reread_bound` is the most source records that can be read twice; 0 for exact, None for
    unproven. All offsets from `equivalent_from` to `equivalent_to` resume at the same record: no
    data lies between, only the record at `equivalent_to`. `basis` is what the answer rests on, as
    `pairs` show: (source offset, target offset) of records that are copies. `safety` is the proof
    that it skips nothing; None where the basis itself says so: a log's start, or its end for a
    group that has read all.
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
    """No translation, for a reason that has a name; `message` says cause and next step."""

    reason: Reason
    message: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shortened(self.message, LONGEST_MESSAGE))


Outcome = Translated | Skipped | Failed


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a cycle's result: docs/design.md section 4. Absent is None."""

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
