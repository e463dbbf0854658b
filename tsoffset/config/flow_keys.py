"""The keys of a flow: what is synced, how it is named, how often, and how it is proven."""

from typing import Any

from tsoffset.config import values
from tsoffset.config.keys import Key, Use
from tsoffset.flow import policy
from tsoffset.flow.settings import ClusterSettings, TranslationSettings
from tsoffset.model import Isolation
from tsoffset.records import OffsetHeader

MIRROR_PACKAGE = "org.apache.kafka.connect.mirror."


def _listed(items: tuple[str, ...]) -> str:
    return ", ".join(items)


_TRANSLATION = TranslationSettings()
_CLUSTER = ClusterSettings(alias="", bootstrap_servers=())

ENABLED = Key(
    "enabled", False, values.boolean, "false; true in a Connect configuration", "The flow is on."
)
SOURCE_ALIAS: Key[str | None] = Key(
    "source.cluster.alias",
    None,
    values.optional(values.alias),
    "required in a Connect configuration",
    "Name of the source; with `clusters` the names come from there.",
)
TARGET_ALIAS = Key(
    "target.cluster.alias",
    "target",
    values.alias,
    "target",
    "Name of the target; with `clusters` the names come from there.",
)
GROUPS = Key(
    "groups",
    policy.DEFAULT_GROUPS,
    values.names,
    _listed(policy.DEFAULT_GROUPS),
    "Groups to sync: names or regular expressions, each matching a whole name. Empty: none."
    " Also written `group`.",
)
GROUPS_EXCLUDE = Key(
    "groups.exclude",
    policy.DEFAULT_GROUPS_EXCLUDE,
    values.names,
    _listed(policy.DEFAULT_GROUPS_EXCLUDE),
    "Groups to leave out; wins over `groups`. Also written `groups.blacklist`.",
)
TOPICS = Key(
    "topics",
    policy.DEFAULT_TOPICS,
    values.names,
    _listed(policy.DEFAULT_TOPICS),
    "Topics to sync, by their names on the source. Internal topics and heartbeats never are.",
)
TOPICS_EXCLUDE = Key(
    "topics.exclude",
    policy.DEFAULT_TOPICS_EXCLUDE,
    values.names,
    _listed(policy.DEFAULT_TOPICS_EXCLUDE),
    "Topics to leave out; wins over `topics`. Also written `topics.blacklist`.",
)
GROUP_FILTER = Key(
    "group.filter.class",
    f"{MIRROR_PACKAGE}DefaultGroupFilter",
    values.text,
    f"{MIRROR_PACKAGE}DefaultGroupFilter",
    "Chooses groups: MirrorMaker 2's filter by the four lists, or a Python class of your own.",
)
TOPIC_FILTER = Key(
    "topic.filter.class",
    f"{MIRROR_PACKAGE}DefaultTopicFilter",
    values.text,
    f"{MIRROR_PACKAGE}DefaultTopicFilter",
    "Chooses topics: MirrorMaker 2's filter by the four lists, or a Python class of your own.",
)
POLICY = Key(
    "replication.policy.class",
    f"{MIRROR_PACKAGE}DefaultReplicationPolicy",
    values.text,
    f"{MIRROR_PACKAGE}DefaultReplicationPolicy",
    "Names of topics on the target: MirrorMaker 2's Default or IdentityReplicationPolicy, or a"
    " Python class of your own. Must say what the replicator does.",
)
POLICY_SEPARATOR = Key(
    "replication.policy.separator",
    policy.DEFAULT_SEPARATOR,
    values.name_part,
    policy.DEFAULT_SEPARATOR,
    "Between alias and topic in a remote topic's name.",
)
POLICY_INTERNAL_SEPARATOR = Key(
    "replication.policy.internal.topic.separator.enabled",
    True,
    values.boolean,
    "true",
    "MirrorMaker 2's own topics use the separator too.",
)
HEARTBEATS_TOPIC = Key(
    "default.replication.policy.heartbeats.topic.name",
    policy.DEFAULT_HEARTBEATS,
    values.name_part,
    policy.DEFAULT_HEARTBEATS,
    "Name of the heartbeats topic, which is never synced.",
)
SYNC_ENABLED: Key[bool | None] = Key(
    "sync.group.offsets.enabled",
    None,
    values.optional(values.boolean),
    "absent: we commit",
    "`false`: `sync` and `run` only plan. (MirrorMaker 2's own default is false.)",
)
SYNC_INTERVAL = Key(
    "sync.group.offsets.interval.seconds",
    60,
    values.integer(1),
    "60",
    "Seconds from the start of one cycle of `run` to the start of the next.",
)
REFRESH_ENABLED = Key(
    "refresh.groups.enabled", True, values.boolean, "true", "Look for new groups while running."
)
REFRESH_INTERVAL = Key(
    "refresh.groups.interval.seconds",
    600,
    values.integer(1),
    "600",
    "Seconds for which the list of groups is kept.",
)
TASKS_MAX: Key[int | None] = Key(
    "tasks.max",
    None,
    values.optional(values.integer(1)),
    "from the work and the cores",
    "Upper limit of parallel tasks. (MirrorMaker 2's default is 1.)",
)
ASSIGNED_GROUPS: Key[tuple[str, ...] | None] = Key(
    "task.assigned.groups",
    None,
    values.optional(values.names),
    "all",
    "Of the groups that the filter lets through only these, by name.",
)
POLL_TIMEOUT = Key(
    "consumer.poll.timeout.ms",
    _CLUSTER.poll_timeout_ms,
    values.integer(1),
    str(_CLUSTER.poll_timeout_ms),
    "Milliseconds for which one fetch may wait for a log that has more than it answered.",
)
ADMIN_TIMEOUT = Key(
    "admin.timeout.ms",
    _CLUSTER.admin_timeout_ms,
    values.integer(1),
    str(_CLUSTER.admin_timeout_ms),
    "Milliseconds that one call to a cluster may take, retries included.",
)
ISOLATION = Key(
    "consumer.isolation.level",
    Isolation.READ_UNCOMMITTED,
    values.isolation,
    "read_uncommitted",
    "What the replicator reads the source with; `read_committed` where it leaves out the records"
    " of aborted transactions.",
)
PROOF = Key(
    "translation.proof",
    _TRANSLATION.proof,
    values.one_of("content", "timestamps"),
    _TRANSLATION.proof,
    "`content`: what records hold proves a translation. `timestamps`: KIP-1292's rule as"
    " written, cheaper, without proof; it does not notice a target that stamps records itself.",
)
MATCH = Key(
    "translation.match",
    _TRANSLATION.match,
    values.match,
    "timestamp, key, value",
    "What must be equal for two records to be copies of each other: `timestamp` with `key`,"
    " `value` or both; narrower where the replicator rewrites the rest.",
)
BUDGET = Key(
    "translation.budget",
    _TRANSLATION.budget,
    values.integer(1),
    str(_TRANSLATION.budget),
    "Most fetches for one position on each side.",
)
SCAN_BYTES = Key(
    "translation.scan.bytes",
    _TRANSLATION.scan_bytes,
    values.integer(1),
    str(_TRANSLATION.scan_bytes),
    "Most bytes that the scans of one partition may read on each side.",
)
FLOOR = Key(
    "translation.floor",
    _TRANSLATION.floor,
    values.one_of("none", "log_start"),
    _TRANSLATION.floor,
    "`log_start`: commit the target's log start where nothing is proven and the group has no"
    " commit there.",
)
OFFSET_HEADER: Key[OffsetHeader | None] = Key(
    "translation.offset.header",
    None,
    values.optional(values.offset_header),
    "none",
    "`NAME`, `NAME:binary` or `NAME:text`: the header in which the replicator kept the source"
    " offset, as 8 bytes (big end first) or as decimal text.",
)
EXPECT: Key[str | None] = Key(
    "translation.expect",
    None,
    values.optional(values.text),
    "none",
    "What is known of the mirror, for example that it keeps offsets.",
    use=Use.LATER,
)
FETCH_RATE: Key[int | None] = Key(
    "source.fetch.max.bytes.per.second",
    None,
    values.optional(values.integer(1, 2**63 - 1)),
    "none",
    "Most bytes that fetches bring from the source in a second, over all tasks of the flow.",
)
FETCHES_IN_FLIGHT: Key[int | None] = Key(
    "source.fetch.max.requests.in.flight",
    None,
    values.optional(values.integer(1, 10_000)),
    "64 a task",
    "Most fetches under way at once at each broker of the source, over all tasks of the flow.",
)

FLOW_KEYS: tuple[Key[Any], ...] = (
    ENABLED,
    SOURCE_ALIAS,
    TARGET_ALIAS,
    GROUPS,
    GROUPS_EXCLUDE,
    TOPICS,
    TOPICS_EXCLUDE,
    GROUP_FILTER,
    TOPIC_FILTER,
    POLICY,
    POLICY_SEPARATOR,
    POLICY_INTERNAL_SEPARATOR,
    HEARTBEATS_TOPIC,
    SYNC_ENABLED,
    SYNC_INTERVAL,
    REFRESH_ENABLED,
    REFRESH_INTERVAL,
    TASKS_MAX,
    ASSIGNED_GROUPS,
    POLL_TIMEOUT,
    ADMIN_TIMEOUT,
    ISOLATION,
    PROOF,
    MATCH,
    BUDGET,
    SCAN_BYTES,
    FLOOR,
    OFFSET_HEADER,
    EXPECT,
    FETCH_RATE,
    FETCHES_IN_FLIGHT,
)
