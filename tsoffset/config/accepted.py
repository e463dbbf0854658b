"""Keys that belong to MirrorMaker 2 and Kafka Connect alone.

A file written for them is read without noise: these keys are known, and tsoffset does not use
them. Only transformations draw a warning, since they change what is mirrored. Names and
defaults are those of MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig,
MirrorMakerConfig, ConnectorConfig and the worker's configuration. A name that ends in `.*`
stands for all keys that begin so.
"""

from typing import NamedTuple


class AcceptedKey(NamedTuple):
    """A key that others read; `of_checkpoints` where it ends with the checkpoint connector."""

    name: str
    shown_default: str
    meaning: str
    of_checkpoints: bool = False


_INTERNAL = "Replication factor of an internal topic of MirrorMaker 2."
_WORKER = "Kafka Connect's worker."
_CONNECTOR = "Kafka Connect's connectors."
_TRANSFORMS = "Not applied by tsoffset; a warning says so."
_NO_SYNCS = "tsoffset needs no offset syncs."
_NO_CHECKPOINTS = "tsoffset writes no checkpoints."
_NO_HEARTBEATS = "tsoffset writes no heartbeats."
_STORE = "Where Kafka Connect's worker keeps its state."

MIRROR_MAKER_KEYS = (
    AcceptedKey("replication.factor", "2", "Replication factor of new remote topics."),
    AcceptedKey("checkpoints.topic.replication.factor", "3", _INTERNAL, of_checkpoints=True),
    AcceptedKey("heartbeats.topic.replication.factor", "3", _INTERNAL),
    AcceptedKey("offset-syncs.topic.replication.factor", "3", _INTERNAL, of_checkpoints=True),
    AcceptedKey(
        "offset-syncs.topic.location", "source", "Cluster of the offset syncs.", of_checkpoints=True
    ),
    AcceptedKey("offset-syncs.*", "", "Clients of the offset-syncs topic.", of_checkpoints=True),
    AcceptedKey("offset.lag.max", "100", "Distance between offset syncs.", of_checkpoints=True),
    AcceptedKey("emit.offset-syncs.enabled", "true", _NO_SYNCS, of_checkpoints=True),
    AcceptedKey("emit.checkpoints.enabled", "true", _NO_CHECKPOINTS, of_checkpoints=True),
    AcceptedKey("emit.checkpoints.interval.seconds", "60", _NO_CHECKPOINTS, of_checkpoints=True),
    AcceptedKey("emit.heartbeats.enabled", "true", _NO_HEARTBEATS),
    AcceptedKey("emit.heartbeats.interval.seconds", "1", _NO_HEARTBEATS),
    AcceptedKey("heartbeats.replication.enabled", "true", "Always mirror heartbeats topics."),
    AcceptedKey("refresh.topics.enabled", "true", "Look for new topics to mirror."),
    AcceptedKey("refresh.topics.interval.seconds", "600", "Interval of looking for new topics."),
    AcceptedKey("sync.topic.configs.enabled", "true", "Copy topic settings."),
    AcceptedKey("sync.topic.configs.interval.seconds", "600", "Interval of copying settings."),
    AcceptedKey("sync.topic.acls.enabled", "true", "Copy access rules of topics."),
    AcceptedKey("sync.topic.acls.interval.seconds", "600", "Interval of copying access rules."),
    AcceptedKey(
        "config.properties.exclude",
        "replication and size settings, message.timestamp.type",
        "Topic settings that are not copied. Also written `config.properties.blacklist`.",
    ),
    AcceptedKey("config.properties.blacklist", "", "Older name of `config.properties.exclude`."),
    AcceptedKey(
        "config.property.filter.class",
        "DefaultConfigPropertyFilter",
        "Class that selects topic settings to copy.",
    ),
    AcceptedKey("use.incremental.alter.configs", "requested", "How topic settings are copied."),
    AcceptedKey("use.defaults.from", "target", "Cluster with the defaults of topic settings."),
    AcceptedKey(
        "forwarding.admin.class", "ForwardingAdmin", "The client that creates remote topics."
    ),
    AcceptedKey("add.source.alias.to.metrics", "false", "Tags of MirrorMaker 2's metrics."),
    AcceptedKey("metric.names.formats", "legacy", "Names of MirrorMaker 2's metrics."),
    AcceptedKey("topic.creation.*", "", "How Kafka Connect creates topics."),
    AcceptedKey("task.assigned.partitions", "", "Set by MirrorMaker 2 itself."),
    AcceptedKey("task.index", "", "Set by MirrorMaker 2 itself."),
    AcceptedKey("dedicated.mode.enable.internal.rest", "false", "MirrorMaker 2's own REST server."),
    AcceptedKey("workers.*", "", "Workers' settings in Cloudera's form of the file."),
)

CONNECT_KEYS = (
    AcceptedKey("name", "", "The connector's name."),
    AcceptedKey("connector.class", "", "The connector's class."),
    AcceptedKey("connector.plugin.version", "", _CONNECTOR),
    AcceptedKey("connector.client.config.override.policy", "All", _CONNECTOR),
    AcceptedKey("tasks.max.enforce", "true", _CONNECTOR),
    AcceptedKey("config.action.reload", "restart", _CONNECTOR),
    AcceptedKey("key.converter", "ByteArrayConverter", _CONNECTOR),
    AcceptedKey("key.converter.*", "", _CONNECTOR),
    AcceptedKey("value.converter", "ByteArrayConverter", _CONNECTOR),
    AcceptedKey("value.converter.*", "", _CONNECTOR),
    AcceptedKey("header.converter", "ByteArrayConverter", _CONNECTOR),
    AcceptedKey("header.converter.*", "", _CONNECTOR),
    AcceptedKey("internal.*", "", _CONNECTOR),
    AcceptedKey("transforms", "", _TRANSFORMS),
    AcceptedKey("transforms.*", "", _TRANSFORMS),
    AcceptedKey("predicates", "", _TRANSFORMS),
    AcceptedKey("predicates.*", "", _TRANSFORMS),
    AcceptedKey("errors.*", "", _CONNECTOR),
    AcceptedKey("exactly.once.support", "requested", _CONNECTOR),
    AcceptedKey("exactly.once.source.support", "disabled", _WORKER),
    AcceptedKey("transaction.boundary", "poll", _CONNECTOR),
    AcceptedKey("transaction.boundary.interval.ms", "", _CONNECTOR),
    AcceptedKey("offsets.storage.topic", "", _STORE),
    AcceptedKey("offset.storage.*", "", _STORE),
    AcceptedKey("config.storage.*", "", _STORE),
    AcceptedKey("status.storage.*", "", _STORE),
    AcceptedKey("offset.flush.interval.ms", "60000", _WORKER),
    AcceptedKey("offset.flush.timeout.ms", "5000", _WORKER),
    AcceptedKey("group.id", "<source>-mm2", _WORKER),
    AcceptedKey("connect.protocol", "sessioned", _WORKER),
    AcceptedKey("plugin.path", "", _WORKER),
    AcceptedKey("plugin.discovery", "hybrid_warn", _WORKER),
    AcceptedKey("heartbeat.interval.ms", "3000", _WORKER),
    AcceptedKey("session.timeout.ms", "10000", _WORKER),
    AcceptedKey("rebalance.timeout.ms", "60000", _WORKER),
    AcceptedKey("scheduled.rebalance.max.delay.ms", "300000", _WORKER),
    AcceptedKey("task.shutdown.graceful.timeout.ms", "5000", _WORKER),
    AcceptedKey("topic.tracking.*", "", _WORKER),
    AcceptedKey("worker.*", "", _WORKER),
    AcceptedKey("inter.worker.*", "", _WORKER),
    AcceptedKey("rest.*", "", _WORKER),
    AcceptedKey("admin.listeners", "", _WORKER),
    AcceptedKey("admin.listeners.*", "", _WORKER),
    AcceptedKey("listeners.*", "", _WORKER),
    AcceptedKey("access.control.*", "", _WORKER),
    AcceptedKey("response.http.headers.config", "", _WORKER),
)

ACCEPTED_KEYS = MIRROR_MAKER_KEYS + CONNECT_KEYS
_BY_NAME = {key.name: key for key in ACCEPTED_KEYS}
_FAMILIES = tuple(key for key in ACCEPTED_KEYS if key.name.endswith(".*"))


def accepted_key(name: str) -> AcceptedKey | None:
    """The key of that name, or the family that it belongs to; None where it is neither."""
    families = (key for key in _FAMILIES if name.startswith(key.name.removesuffix("*")))
    return _BY_NAME.get(name) or next(families, None)


# Settings of Kafka's clients that tsoffset has no use for. They may stand after a cluster's
# alias or after `consumer.`, `producer.` and `admin.`.
CLIENT_NAMES = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.include.jmx.reporter",
        "auto.offset.reset",
        "batch.size",
        "bootstrap.controllers",
        "buffer.memory",
        "check.crcs",
        "client.rack",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "config.providers",
        "default.api.timeout.ms",
        "delivery.timeout.ms",
        "enable.auto.commit",
        "enable.idempotence",
        "enable.metrics.push",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "interceptor.classes",
        "isolation.level",
        "key.deserializer",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "max.request.size",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "retries",
        "session.timeout.ms",
        "share.acknowledgement.mode",
        "share.acquire.mode",
        "transaction.timeout.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id",
        "value.deserializer",
        "value.serializer",
    }
)
