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
_flow = FLOW_KEYS.declare
_POSITIVE = values.integer(1)

ENABLED = _flow("enabled", False, values.boolean)
SOURCE_ALIAS = _flow("source.cluster.alias", None, values.alias)
TARGET_ALIAS = _flow("target.cluster.alias", "target", values.alias)
GROUPS = _flow("groups", policy.DEFAULT_GROUPS, values.names)
GROUPS_EXCLUDE = _flow("groups.exclude", policy.DEFAULT_GROUPS_EXCLUDE, values.names)
TOPICS = _flow("topics", policy.DEFAULT_TOPICS, values.names)
TOPICS_EXCLUDE = _flow("topics.exclude", policy.DEFAULT_TOPICS_EXCLUDE, values.names)
LISTS = (GROUPS, GROUPS_EXCLUDE, TOPICS, TOPICS_EXCLUDE)
GROUP_FILTER = _flow("group.filter.class", f"{MIRROR_PACKAGE}DefaultGroupFilter", values.text)
TOPIC_FILTER = _flow("topic.filter.class", f"{MIRROR_PACKAGE}DefaultTopicFilter", values.text)
POLICY = _flow("replication.policy.class", f"{MIRROR_PACKAGE}DefaultReplicationPolicy", values.text)
POLICY_SEPARATOR = _flow("replication.policy.separator", policy.DEFAULT_SEPARATOR, values.name_part)
_flow("replication.policy.internal.topic.separator.enabled", True, values.boolean)
_flow(
    "default.replication.policy.heartbeats.topic.name", policy.DEFAULT_HEARTBEATS, values.name_part
)
_flow("sync.group.offsets.enabled", Field(FlowSettings, "sync_enabled"), values.boolean)
_flow(
    "sync.group.offsets.interval.seconds", Field(FlowSettings, "sync_interval_seconds"), _POSITIVE
)
_flow("cycle.limit.seconds", Field(FlowSettings, "cycle_limit_seconds"), _POSITIVE)
_flow("leader.election.enabled", Field(FlowSettings, "leader_election"), values.boolean)
_flow("refresh.groups.enabled", Field(FlowSettings, "refresh_groups_enabled"), values.boolean)
_flow(
    "refresh.groups.interval.seconds",
    Field(FlowSettings, "refresh_groups_interval_seconds"),
    _POSITIVE,
)
_flow("tasks.max", Field(FlowSettings, "tasks_max"), _POSITIVE)
ASSIGNED_GROUPS = _flow("task.assigned.groups", None, values.names)
_flow("consumer.poll.timeout.ms", Field(ClusterSettings, "poll_timeout_ms"), _POSITIVE)
_flow("admin.timeout.ms", Field(ClusterSettings, "admin_timeout_ms"), _POSITIVE)
ISOLATION = _flow("consumer.isolation.level", Field(FlowSettings, "isolation"), values.isolation)
PROOF = _flow(
    "translation.proof", Field(TranslationSettings, "proof"), values.one_of("content", "timestamps")
)
_flow(
    "translation.match", Field(TranslationSettings, "match"), values.match, "timestamp, key, value"
)
_flow("translation.budget", Field(TranslationSettings, "budget"), _POSITIVE)
_flow("translation.scan.bytes", Field(TranslationSettings, "scan_bytes"), _POSITIVE)
_flow("translation.floor", Field(TranslationSettings, "floor"), values.one_of("none", "log_start"))
_flow(
    "translation.offset.header", Field(TranslationSettings, "offset_header"), values.offset_header
)
EXPECT = _flow(
    "translation.expect", Field(TranslationSettings, "expect"), values.one_of(SAME_OFFSETS)
)
_flow(
    "source.fetch.max.bytes.per.second",
    Field(ClusterSettings, "fetch_max_bytes_per_second"),
    values.integer(1, 2**63 - 1),
)
_flow(
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
_file = FILE_KEYS.declare

CLUSTERS = _file("clusters", _NO_NAMES, values.aliases)
PROVIDERS = _file("config.providers", _NO_NAMES, values.names)
UNKNOWN_KEYS = _file("config.unknown.keys", "warn", values.one_of("warn", "error"))
_file("config.providers.*", None, values.text)
_file("spark.*", None, values.text)
STATE_DIR = _file("state.dir", None, values.text)
_file("history.dir", Field(HistorySettings, "directory"), values.text)
_file("history.full.every", Field(HistorySettings, "full_every"), _POSITIVE)
_file("history.retention.days", Field(HistorySettings, "retention_days"), _POSITIVE)
_file("listeners", Field(ServerSettings, "listeners"), values.listeners)
_file("listeners.hosts", Field(ServerSettings, "hosts"), values.hosts)
_file("listeners.https.ssl.keystore.location", Field(ServerSettings, "key_store"), values.text)
_file("listeners.https.ssl.key.password", Field(ServerSettings, "key_password"), values.text)
_file("listeners.token", Field(ServerSettings, "token"), values.token)
_file("listeners.read.token", Field(ServerSettings, "read_token"), values.token)
_file("metrics.groups.max", Field(MetricsSettings, "groups_max"), values.integer(0))
_file("metrics.topics.max", Field(MetricsSettings, "topics_max"), values.integer(0))
_file("status.remote.urls", Field(ServerSettings, "remote_urls"), values.urls)
