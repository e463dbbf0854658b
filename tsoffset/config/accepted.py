"""Keys that only MirrorMaker 2 and Kafka Connect read.

A file with these keys draws no warnings. Only transformations do, since they change what is
mirrored. The names are those of MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig,
MirrorMakerConfig, ConnectorConfig and the worker. A name that ends in `.*` means all
keys with this prefix.
"""

from collections.abc import Mapping
from typing import NamedTuple


class AcceptedKey(NamedTuple):
    """The meaning of such a key. `of_checkpoints` is true if only the checkpoint connector reads
    it."""

    meaning: str
    of_checkpoints: bool = False


# The names of keys by their meaning.
_OF_CHECKPOINTS = {
    "Replication factor of an internal topic of MirrorMaker 2.": """
        checkpoints.topic.replication.factor offset-syncs.topic.replication.factor
    """,
    "Cluster of the offset syncs.": "offset-syncs.topic.location",
    "Clients of the offset-syncs topic.": "offset-syncs.*",
    "Distance between offset syncs.": "offset.lag.max",
    "tsoffset needs no offset syncs.": "emit.offset-syncs.enabled",
    "tsoffset writes no checkpoints.": "emit.checkpoints.enabled emit.checkpoints.interval.seconds",
}
_OF_OTHERS = {
    "Replication factor of new remote topics.": "replication.factor",
    "Replication factor of an internal topic of MirrorMaker 2.": """
        heartbeats.topic.replication.factor
    """,
    "tsoffset writes no heartbeats.": "emit.heartbeats.enabled emit.heartbeats.interval.seconds",
    "Always mirror heartbeats topics.": "heartbeats.replication.enabled",
    "Look for new topics to mirror.": "refresh.topics.enabled",
    "Interval of looking for new topics.": "refresh.topics.interval.seconds",
    "Copy topic settings.": "sync.topic.configs.enabled",
    "Interval of copying settings.": "sync.topic.configs.interval.seconds",
    "Copy access rules of topics.": "sync.topic.acls.enabled",
    "Interval of copying access rules.": "sync.topic.acls.interval.seconds",
    "Topic settings that are not copied.": "config.properties.exclude config.properties.blacklist",
    "Class that selects topic settings to copy.": "config.property.filter.class",
    "How topic settings are copied.": "use.incremental.alter.configs",
    "Cluster with the defaults of topic settings.": "use.defaults.from",
    "The client that creates remote topics.": "forwarding.admin.class",
    "Tags of MirrorMaker 2's metrics.": "add.source.alias.to.metrics",
    "Names of MirrorMaker 2's metrics.": "metric.names.formats",
    "How Kafka Connect creates topics.": "topic.creation.*",
    "Set by MirrorMaker 2 itself.": "task.assigned.partitions task.index",
    "MirrorMaker 2's own REST server.": "dedicated.mode.enable.internal.rest",
    "Workers' settings in Cloudera's form of the file.": "workers.*",
    "The connector's name.": "name",
    "The connector's class.": "connector.class",
    "Kafka Connect's connectors.": """
        connector.plugin.version connector.client.config.override.policy tasks.max.enforce
        config.action.reload key.converter key.converter.* value.converter value.converter.*
        header.converter header.converter.* internal.* errors.* exactly.once.support
        transaction.boundary transaction.boundary.interval.ms
    """,
    "Not applied by tsoffset; a warning says so.": """
        transforms transforms.* predicates predicates.*
    """,
    "Kafka Connect's worker.": """
        exactly.once.source.support offset.flush.interval.ms offset.flush.timeout.ms group.id
        connect.protocol plugin.path plugin.discovery heartbeat.interval.ms session.timeout.ms
        rebalance.timeout.ms scheduled.rebalance.max.delay.ms task.shutdown.graceful.timeout.ms
        topic.tracking.* worker.* inter.worker.* rest.* admin.listeners admin.listeners.*
        listeners.https.* access.control.* response.http.headers.config
    """,
    "Where Kafka Connect's worker keeps its state.": """
        offsets.storage.topic offset.storage.* config.storage.* status.storage.*
    """,
}


def _keys(by_meaning: Mapping[str, str], *, of_checkpoints: bool) -> dict[str, AcceptedKey]:
    return {
        name: AcceptedKey(meaning, of_checkpoints)
        for meaning, names in by_meaning.items()
        for name in names.split()
    }


ACCEPTED_KEYS = {
    **_keys(_OF_CHECKPOINTS, of_checkpoints=True),
    **_keys(_OF_OTHERS, of_checkpoints=False),
}
ACCEPTED_NAMES = frozenset(name for name in ACCEPTED_KEYS if not name.endswith(".*"))


def accepted_key(name: str) -> AcceptedKey | None:
    """The key of that name, or the one ending in `.*` that includes it; None if there is none."""
    families = (key for key in ACCEPTED_KEYS if key.endswith(".*"))
    family = next((key for key in families if name.startswith(key.removesuffix("*"))), "")
    return ACCEPTED_KEYS.get(name) or ACCEPTED_KEYS.get(family)


_CLIENT_NAMES = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter
    auto.offset.reset batch.size bootstrap.controllers buffer.memory check.crcs client.rack
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    config.providers default.api.timeout.ms delivery.timeout.ms enable.auto.commit
    enable.idempotence enable.metrics.push exclude.internal.topics fetch.max.bytes
    fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
    group.remote.assignor heartbeat.interval.ms interceptor.classes isolation.level
    key.deserializer key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size
    metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.adaptive.partitioning.enable
    partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys retries
    session.timeout.ms share.acknowledgement.mode share.acquire.mode transaction.timeout.ms
    transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer
"""
CLIENT_NAMES = frozenset(_CLIENT_NAMES.split())
"""Settings of Kafka's clients that tsoffset does not use. They may follow a cluster's alias, or
`consumer.`, `producer.` and `admin.`."""
