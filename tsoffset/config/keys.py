"""The keys that tsoffset reads, each declared once: name, default and reader. The table in
docs/configuration.md says what each means, and tests compare it.

A key that fills one field of the settings names this field, and has its default. The keys `ssl.*`
and `sasl.*` are in `security_keys`; the keys that only MirrorMaker 2 and Connect read, in
`accepted`.
"""

from tsoffset.config import values
from tsoffset.config.key_table import Field, Keys
from tsoffset.config.security_keys import SECURITY_KEYS
from tsoffset.flow import policy
from tsoffset.flow.settings import (
    SAME_OFFSETS,
    ClusterSettings,
    FlowSettings,
    HistorySettings,
    MetricsSettings,
    ServerSettings,
    TranslationSettings,
)

MIRROR_PACKAGE = "org.apache.kafka.connect.mirror."
_NO_NAMES: tuple[str, ...] = ()

# --- of a flow: at the top level or after `A->B.` -------------------------------------------

FLOW_KEYS = Keys()

ENABLED = FLOW_KEYS.declare("enabled", False, values.boolean)
SOURCE_ALIAS = FLOW_KEYS.declare("source.cluster.alias", None, values.alias)
TARGET_ALIAS = FLOW_KEYS.declare("target.cluster.alias", "target", values.alias)
GROUPS = FLOW_KEYS.declare("groups", policy.DEFAULT_GROUPS, values.names)
GROUPS_EXCLUDE = FLOW_KEYS.declare("groups.exclude", policy.DEFAULT_GROUPS_EXCLUDE, values.names)
TOPICS = FLOW_KEYS.declare("topics", policy.DEFAULT_TOPICS, values.names)
TOPICS_EXCLUDE = FLOW_KEYS.declare("topics.exclude", policy.DEFAULT_TOPICS_EXCLUDE, values.names)
LISTS = (GROUPS, GROUPS_EXCLUDE, TOPICS, TOPICS_EXCLUDE)
GROUP_FILTER = FLOW_KEYS.declare(
    "group.filter.class", f"{MIRROR_PACKAGE}DefaultGroupFilter", values.text
)
TOPIC_FILTER = FLOW_KEYS.declare(
    "topic.filter.class", f"{MIRROR_PACKAGE}DefaultTopicFilter", values.text
)
POLICY = FLOW_KEYS.declare(
    "replication.policy.class", f"{MIRROR_PACKAGE}DefaultReplicationPolicy", values.text
)
POLICY_SEPARATOR = FLOW_KEYS.declare(
    "replication.policy.separator", policy.DEFAULT_SEPARATOR, values.name_part
)
FLOW_KEYS.declare("replication.policy.internal.topic.separator.enabled", True, values.boolean)
FLOW_KEYS.declare(
    "default.replication.policy.heartbeats.topic.name", policy.DEFAULT_HEARTBEATS, values.name_part
)
FLOW_KEYS.declare("sync.group.offsets.enabled", Field(FlowSettings, "sync_enabled"), values.boolean)
FLOW_KEYS.declare(
    "sync.group.offsets.interval.seconds",
    Field(FlowSettings, "sync_interval_seconds"),
    values.integer(1),
)
FLOW_KEYS.declare(
    "cycle.limit.seconds", Field(FlowSettings, "cycle_limit_seconds"), values.integer(1)
)
FLOW_KEYS.declare("leader.election.enabled", Field(FlowSettings, "leader_election"), values.boolean)
FLOW_KEYS.declare(
    "refresh.groups.enabled", Field(FlowSettings, "refresh_groups_enabled"), values.boolean
)
FLOW_KEYS.declare(
    "refresh.groups.interval.seconds",
    Field(FlowSettings, "refresh_groups_interval_seconds"),
    values.integer(1),
)
FLOW_KEYS.declare("tasks.max", Field(FlowSettings, "tasks_max"), values.integer(1))
ASSIGNED_GROUPS = FLOW_KEYS.declare("task.assigned.groups", None, values.names)
FLOW_KEYS.declare(
    "consumer.poll.timeout.ms", Field(ClusterSettings, "poll_timeout_ms"), values.integer(1)
)
FLOW_KEYS.declare("admin.timeout.ms", Field(ClusterSettings, "admin_timeout_ms"), values.integer(1))
ISOLATION = FLOW_KEYS.declare(
    "consumer.isolation.level", Field(FlowSettings, "isolation"), values.isolation
)
PROOF = FLOW_KEYS.declare(
    "translation.proof", Field(TranslationSettings, "proof"), values.one_of("content", "timestamps")
)
FLOW_KEYS.declare(
    "translation.match", Field(TranslationSettings, "match"), values.match, "timestamp, key, value"
)
FLOW_KEYS.declare("translation.budget", Field(TranslationSettings, "budget"), values.integer(1))
FLOW_KEYS.declare(
    "translation.scan.bytes", Field(TranslationSettings, "scan_bytes"), values.integer(1)
)
FLOW_KEYS.declare(
    "translation.floor", Field(TranslationSettings, "floor"), values.one_of("none", "log_start")
)
FLOW_KEYS.declare("translation.verify", Field(TranslationSettings, "verify"), values.integer(0))
FLOW_KEYS.declare(
    "translation.offset.header", Field(TranslationSettings, "offset_header"), values.offset_header
)
EXPECT = FLOW_KEYS.declare(
    "translation.expect", Field(TranslationSettings, "expect"), values.one_of(SAME_OFFSETS)
)
FLOW_KEYS.declare(
    "source.fetch.max.bytes.per.second",
    Field(ClusterSettings, "fetch_max_bytes_per_second"),
    values.integer(1, 2**63 - 1),
)
FLOW_KEYS.declare(
    "source.fetch.max.requests.in.flight",
    Field(ClusterSettings, "fetch_max_in_flight"),
    values.integer(1, 10_000),
)

# --- of a cluster: at the top level, after `A.`, or for one flow after `A->B.source.cluster.` ---

CLUSTER_KEYS = Keys()

_MS = values.as_text(values.integer(0))
_BUFFER = values.as_text(values.integer(-1))

BOOTSTRAP = CLUSTER_KEYS.declare("bootstrap.servers", _NO_NAMES, values.addresses)
# Kafka's client gets these as text.
CLIENT_KEYS = tuple(
    CLUSTER_KEYS.declare(name, None, read, default)
    for name, read, default in (
        ("client.id", values.text, "tsoffset"),
        ("request.timeout.ms", _MS, "30000"),
        ("metadata.max.age.ms", _MS, "300000"),
        ("connections.max.idle.ms", values.as_text(values.idle), "540000"),
        ("retry.backoff.ms", _MS, "100"),
        ("retry.backoff.max.ms", _MS, "1000"),
        ("reconnect.backoff.ms", _MS, "50"),
        ("reconnect.backoff.max.ms", _MS, "1000"),
        ("socket.connection.setup.timeout.ms", _MS, "10000"),
        ("socket.connection.setup.timeout.max.ms", _MS, "30000"),
        ("send.buffer.bytes", _BUFFER, "the system's"),
        ("receive.buffer.bytes", _BUFFER, "the system's"),
        (
            "client.dns.lookup",
            values.one_of("default", "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
            "use_all_dns_ips",
        ),
    )
)

CLUSTER_KEYS.update(SECURITY_KEYS)

# --- of the file: only at the top level -----------------------------------------------------

FILE_KEYS = Keys()

CLUSTERS = FILE_KEYS.declare("clusters", _NO_NAMES, values.aliases)
PROVIDERS = FILE_KEYS.declare("config.providers", _NO_NAMES, values.names)
UNKNOWN_KEYS = FILE_KEYS.declare("config.unknown.keys", "warn", values.one_of("warn", "error"))
FILE_KEYS.declare("config.providers.*", None, values.text)
FILE_KEYS.declare("spark.*", None, values.text)
STATE_DIR = FILE_KEYS.declare("state.dir", None, values.text)
FILE_KEYS.declare("history.dir", Field(HistorySettings, "directory"), values.text)
FILE_KEYS.declare("history.full.every", Field(HistorySettings, "full_every"), values.integer(1))
FILE_KEYS.declare(
    "history.retention.days", Field(HistorySettings, "retention_days"), values.integer(1)
)
FILE_KEYS.declare("listeners", Field(ServerSettings, "listeners"), values.listeners)
FILE_KEYS.declare("listeners.hosts", Field(ServerSettings, "hosts"), values.hosts)
FILE_KEYS.declare(
    "listeners.https.ssl.keystore.location", Field(ServerSettings, "key_store"), values.text
)
FILE_KEYS.declare(
    "listeners.https.ssl.key.password", Field(ServerSettings, "key_password"), values.text
)
FILE_KEYS.declare("listeners.token", Field(ServerSettings, "token"), values.token)
FILE_KEYS.declare("listeners.read.token", Field(ServerSettings, "read_token"), values.token)
FILE_KEYS.declare("metrics.groups.max", Field(MetricsSettings, "groups_max"), values.integer(0))
FILE_KEYS.declare("metrics.topics.max", Field(MetricsSettings, "topics_max"), values.integer(0))
FILE_KEYS.declare("status.remote.urls", Field(ServerSettings, "remote_urls"), values.urls)
