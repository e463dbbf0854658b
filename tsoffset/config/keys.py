"""Every key that tsoffset reads, declared once: its name, default, reader and meaning.

A key whose value becomes one field of the resolved settings names that field and has its default;
`tsoffset.config.flows` fills the fields from here. `tsoffset.config.security_keys` has those of
`ssl.*` and `sasl.*`, `tsoffset.config.accepted` what belongs to MirrorMaker 2 and Connect alone.
The table in docs/configuration.md is made of all three.
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

# --- a flow's: at the top level or after `A->B.` -------------------------------------------

FLOW_KEYS = Keys()

ENABLED = FLOW_KEYS.declare(
    "enabled",
    False,
    values.boolean,
    "The flow is on.",
    "false; true in a Connect configuration",
)
SOURCE_ALIAS = FLOW_KEYS.declare(
    "source.cluster.alias",
    None,
    values.alias,
    "Name of the source; with `clusters` the names come from there.",
    "required in a Connect configuration",
)
TARGET_ALIAS = FLOW_KEYS.declare(
    "target.cluster.alias",
    "target",
    values.alias,
    "Name of the target; with `clusters` the names come from there.",
)
GROUPS = FLOW_KEYS.declare(
    "groups",
    policy.DEFAULT_GROUPS,
    values.names,
    "Groups to sync: names or regular expressions, each matching a whole name. Empty: none."
    " Also written `group`.",
)
GROUPS_EXCLUDE = FLOW_KEYS.declare(
    "groups.exclude",
    policy.DEFAULT_GROUPS_EXCLUDE,
    values.names,
    "Groups to leave out; wins over `groups`. Also written `groups.blacklist`.",
)
TOPICS = FLOW_KEYS.declare(
    "topics",
    policy.DEFAULT_TOPICS,
    values.names,
    "Topics to sync, by their names on the source. Internal topics and heartbeats never are.",
)
TOPICS_EXCLUDE = FLOW_KEYS.declare(
    "topics.exclude",
    policy.DEFAULT_TOPICS_EXCLUDE,
    values.names,
    "Topics to leave out; wins over `topics`. Also written `topics.blacklist`.",
)
LISTS = (GROUPS, GROUPS_EXCLUDE, TOPICS, TOPICS_EXCLUDE)
GROUP_FILTER = FLOW_KEYS.declare(
    "group.filter.class",
    f"{MIRROR_PACKAGE}DefaultGroupFilter",
    values.text,
    "Chooses groups: MirrorMaker 2's filter by the four lists, or a Python class of your own.",
)
TOPIC_FILTER = FLOW_KEYS.declare(
    "topic.filter.class",
    f"{MIRROR_PACKAGE}DefaultTopicFilter",
    values.text,
    "Chooses topics: MirrorMaker 2's filter by the four lists, or a Python class of your own.",
)
POLICY = FLOW_KEYS.declare(
    "replication.policy.class",
    f"{MIRROR_PACKAGE}DefaultReplicationPolicy",
    values.text,
    "Names of topics on the target: MirrorMaker 2's Default or IdentityReplicationPolicy, or"
    " your own Python class. Must be the replicator's policy.",
)
POLICY_SEPARATOR = FLOW_KEYS.declare(
    "replication.policy.separator",
    policy.DEFAULT_SEPARATOR,
    values.name_part,
    "Between alias and topic in a remote topic's name.",
)
FLOW_KEYS.declare(
    "replication.policy.internal.topic.separator.enabled",
    True,
    values.boolean,
    "MirrorMaker 2's own topics use the separator too.",
)
FLOW_KEYS.declare(
    "default.replication.policy.heartbeats.topic.name",
    policy.DEFAULT_HEARTBEATS,
    values.name_part,
    "Name of the heartbeats topic, which is never synced.",
)
FLOW_KEYS.declare(
    "sync.group.offsets.enabled",
    Field(FlowSettings, "sync_enabled"),
    values.boolean,
    "`false`: `sync` and `run` only plan. (MirrorMaker 2's own default is false.)",
    "absent: we commit",
)
FLOW_KEYS.declare(
    "sync.group.offsets.interval.seconds",
    Field(FlowSettings, "sync_interval_seconds"),
    values.integer(1),
    "Seconds from the start of one cycle of `run` to the start of the next.",
)
FLOW_KEYS.declare(
    "cycle.limit.seconds",
    Field(FlowSettings, "cycle_limit_seconds"),
    values.integer(1),
    "Seconds after which a cycle of `run` is ended; the next one begins when it is due.",
    "ten times `sync.group.offsets.interval.seconds`, at least 300",
)
FLOW_KEYS.declare(
    "leader.election.enabled",
    Field(FlowSettings, "leader_election"),
    values.boolean,
    "Only one of several instances of `run` with this flow runs it, and another takes over when"
    " it stops; they elect it with a consumer group on the target.",
)
FLOW_KEYS.declare(
    "refresh.groups.enabled",
    Field(FlowSettings, "refresh_groups_enabled"),
    values.boolean,
    "Look for new groups while running.",
)
FLOW_KEYS.declare(
    "refresh.groups.interval.seconds",
    Field(FlowSettings, "refresh_groups_interval_seconds"),
    values.integer(1),
    "Seconds for which the list of groups is kept.",
)
FLOW_KEYS.declare(
    "tasks.max",
    Field(FlowSettings, "tasks_max"),
    values.integer(1),
    "Upper limit of parallel tasks. (MirrorMaker 2's default is 1.)",
    "from the work and the cores",
)
ASSIGNED_GROUPS = FLOW_KEYS.declare(
    "task.assigned.groups",
    None,
    values.names,
    "Only these of the selected groups, by name.",
    "all",
)
FLOW_KEYS.declare(
    "consumer.poll.timeout.ms",
    Field(ClusterSettings, "poll_timeout_ms"),
    values.integer(1),
    "Longest wait in milliseconds for the rest of a log that a fetch answered in part.",
)
FLOW_KEYS.declare(
    "admin.timeout.ms",
    Field(ClusterSettings, "admin_timeout_ms"),
    values.integer(1),
    "Milliseconds that one call to a cluster may take, retries included.",
)
ISOLATION = FLOW_KEYS.declare(
    "consumer.isolation.level",
    Field(FlowSettings, "isolation"),
    values.isolation,
    "Isolation level of the replicator's source consumer; `read_committed` if it omits records"
    " of aborted transactions.",
)
PROOF = FLOW_KEYS.declare(
    "translation.proof",
    Field(TranslationSettings, "proof"),
    values.one_of("content", "timestamps"),
    "`content`: the contents of records prove a translation. `timestamps`: KIP-1292's rule as"
    " written, cheaper, without proof.",
)
FLOW_KEYS.declare(
    "translation.match",
    Field(TranslationSettings, "match"),
    values.match,
    "The parts that must be equal in a record and its copy: `timestamp` with `key`, `value` or"
    " both; fewer if the replicator rewrites the rest.",
    "timestamp, key, value",
)
FLOW_KEYS.declare(
    "translation.budget",
    Field(TranslationSettings, "budget"),
    values.integer(1),
    "Most fetches for one offset on each cluster.",
)
FLOW_KEYS.declare(
    "translation.scan.bytes",
    Field(TranslationSettings, "scan_bytes"),
    values.integer(1),
    "Most bytes that the scans of one partition may read on each cluster.",
)
FLOW_KEYS.declare(
    "translation.floor",
    Field(TranslationSettings, "floor"),
    values.one_of("none", "log_start"),
    "`log_start`: commit the target's log start if nothing is proven and the group has no"
    " committed offset on the target.",
)
FLOW_KEYS.declare(
    "translation.verify",
    Field(TranslationSettings, "verify"),
    values.integer(0),
    "Number of offsets per cycle, chosen at random, whose fast-path translation is checked by"
    " the full rule; if both differ, the row fails. 0: none.",
)
FLOW_KEYS.declare(
    "translation.offset.header",
    Field(TranslationSettings, "offset_header"),
    values.offset_header,
    "`NAME`, `NAME:binary` or `NAME:text`: the header in which the replicator kept the source"
    " offset, as 8 bytes (big end first) or as decimal text.",
)
EXPECT = FLOW_KEYS.declare(
    "translation.expect",
    Field(TranslationSettings, "expect"),
    values.one_of(SAME_OFFSETS),
    "`same-offsets`: the replicator promises to keep offsets (Cluster Mirroring, Cluster Linking),"
    " so a commit translates to itself once the records there were seen to be equal"
    " ([design](design.md#mirrors-that-keep-offsets)).",
)
FLOW_KEYS.declare(
    "source.fetch.max.bytes.per.second",
    Field(ClusterSettings, "fetch_max_bytes_per_second"),
    values.integer(1, 2**63 - 1),
    "Most bytes per second that all tasks of the flow fetch from the source.",
)
FLOW_KEYS.declare(
    "source.fetch.max.requests.in.flight",
    Field(ClusterSettings, "fetch_max_in_flight"),
    values.integer(1, 10_000),
    "Most open fetches at each broker of the source, over all tasks of the flow.",
    "512 a task",
)

# --- a cluster's: at the top level, after `A.`, or for one flow after `A->B.source.cluster.` ---

CLUSTER_KEYS = Keys()

_MILLISECONDS = values.as_text(values.integer(0))
_BUFFER = values.as_text(values.integer(-1))

BOOTSTRAP = CLUSTER_KEYS.declare(
    "bootstrap.servers",
    _NO_NAMES,
    values.addresses,
    "Addresses of a few brokers, `host:port`, separated by commas.",
    "required",
)
# What is handed to Kafka's client as text.
CLIENT_KEYS = tuple(
    CLUSTER_KEYS.declare(name, None, read, meaning, default)
    for name, read, default, meaning in (
        ("client.id", values.text, "tsoffset", "Client id that brokers see."),
        ("request.timeout.ms", _MILLISECONDS, "30000", "Longest wait for one answer."),
        (
            "metadata.max.age.ms",
            _MILLISECONDS,
            "300000",
            "Age after which partition leaders are looked up again.",
        ),
        (
            "connections.max.idle.ms",
            values.as_text(values.idle),
            "540000",
            "Idle time after which a connection is closed; -1: never.",
        ),
        ("retry.backoff.ms", _MILLISECONDS, "100", "First wait before a call is retried."),
        ("retry.backoff.max.ms", _MILLISECONDS, "1000", "Longest wait between retries."),
        ("reconnect.backoff.ms", _MILLISECONDS, "50", "First wait before reconnecting."),
        ("reconnect.backoff.max.ms", _MILLISECONDS, "1000", "Longest wait before reconnecting."),
        (
            "socket.connection.setup.timeout.ms",
            _MILLISECONDS,
            "10000",
            "First limit on making a connection.",
        ),
        (
            "socket.connection.setup.timeout.max.ms",
            _MILLISECONDS,
            "30000",
            "Longest limit on making a connection.",
        ),
        ("send.buffer.bytes", _BUFFER, "the system's", "Size of a socket's send buffer."),
        ("receive.buffer.bytes", _BUFFER, "the system's", "Size of a socket's receive buffer."),
        (
            "client.dns.lookup",
            values.one_of("default", "use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
            "use_all_dns_ips",
            "How names of brokers become addresses.",
        ),
    )
)

CLUSTER_KEYS.update(SECURITY_KEYS)

# --- the file's: at the top level alone ----------------------------------------------------

FILE_KEYS = Keys()

CLUSTERS = FILE_KEYS.declare(
    "clusters",
    _NO_NAMES,
    values.aliases,
    "Aliases of the clusters.",
    "required; absent in a Connect configuration",
)
PROVIDERS = FILE_KEYS.declare(
    "config.providers",
    _NO_NAMES,
    values.names,
    "Further names for Kafka's providers of `${name:...}`; not needed for the three defaults.",
    "env, file, dir",
)
UNKNOWN_KEYS = FILE_KEYS.declare(
    "config.unknown.keys",
    "warn",
    values.one_of("warn", "error"),
    "`error`: a key that is unknown, such as a misspelt one, is an error that ends the command with"
    " exit status 2.",
)
FILE_KEYS.declare(
    "config.providers.*",
    None,
    values.text,
    "`config.providers.<name>.class` is one of Kafka's three providers; their parameters have no"
    " effect.",
)
FILE_KEYS.declare(
    "spark.*",
    None,
    values.text,
    "Passed to Spark unchanged; `spark.master` (default `local[*]`) is where Spark runs. If it"
    " is set, `plan`, `export` and `failover --dry-run` use Spark for small work, too.",
    "Spark's own",
)
STATE_DIR = FILE_KEYS.declare(
    "state.dir",
    None,
    values.text,
    "Directory for cached translations, one file per flow; may be lost at any time. A path, or a"
    " URI such as `s3://bucket/prefix` ([State](commands.md#state)).",
)
FILE_KEYS.declare(
    "history.dir",
    Field(HistorySettings, "directory"),
    values.text,
    "Directory for the results of past cycles, as Parquet; a path, or a URI such as"
    " `s3://bucket/prefix`.",
)
FILE_KEYS.declare(
    "history.full.every",
    Field(HistorySettings, "full_every"),
    values.integer(1),
    "Number of cycles after which all rows are kept; in between, only changed ones.",
)
FILE_KEYS.declare(
    "history.retention.days",
    Field(HistorySettings, "retention_days"),
    values.integer(1),
    "Days for which past cycles are kept.",
)
FILE_KEYS.declare(
    "listeners",
    Field(ServerSettings, "listeners"),
    values.listeners,
    "Addresses at which `run` serves metrics, API and status page, `http://host:port` or"
    " `https://host:port`. Port 0: a free one, which is logged. Empty: none.",
)
FILE_KEYS.declare(
    "listeners.hosts",
    Field(ServerSettings, "hosts"),
    values.hosts,
    "Host names that the listeners accept, without port, beside IP addresses, `localhost` and"
    " the host of `listeners`. `*`: any name, behind a proxy that checks.",
    "the machine's names; none on loopback",
)
FILE_KEYS.declare(
    "listeners.https.ssl.keystore.location",
    Field(ServerSettings, "key_store"),
    values.text,
    "PEM file with the private key and the certificates of the https listeners.",
)
FILE_KEYS.declare(
    "listeners.https.ssl.key.password",
    Field(ServerSettings, "key_password"),
    values.text,
    "Password of that key, if it has one.",
)
FILE_KEYS.declare(
    "listeners.token",
    Field(ServerSettings, "token"),
    values.token,
    "Requests with this bearer token may pause, resume, sync and translate offsets.",
    "none: changes are refused",
)
FILE_KEYS.declare(
    "listeners.read.token",
    Field(ServerSettings, "read_token"),
    values.token,
    "Requests with this bearer token may read API, metrics and page; paths without data need"
    " none (`/healthz`, `/readyz`, `/docs`, the page's own files).",
    "none: every client may read",
)
FILE_KEYS.declare(
    "metrics.groups.max",
    Field(MetricsSettings, "groups_max"),
    values.integer(0),
    "Number of groups per flow, the first by name, that have their own [metrics](metrics.md);"
    " the others are only in the totals.",
)
FILE_KEYS.declare(
    "metrics.topics.max",
    Field(MetricsSettings, "topics_max"),
    values.integer(0),
    "The same for source topics.",
)
FILE_KEYS.declare(
    "status.remote.urls",
    Field(ServerSettings, "remote_urls"),
    values.urls,
    "Addresses of other instances whose flows the status page shows, too.",
)
