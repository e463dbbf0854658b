"""MirrorMaker 2 on this machine."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tsoffset.lab.embedded.copying import Log, copies_missing, partitions_with_leader, topic_missing
from tsoffset.lab.embedded.security import Access
from tsoffset.lab.embedded.server import Server

START_SECONDS = 120.0
COPY_SECONDS = 120.0
JAVA_OPTIONS = ("-Xms64m", "-Xmx384m")

# A running connector is not enough: it may run with an earlier MirrorMaker's configuration on the
# target.
_CONFIGURED = (
    "MirrorSourceConnector connector configured",
    "configuration for MirrorSourceConnector is already up to date",
)
_REFUSED = "Failed to configure MirrorSourceConnector"


def flow_properties(
    source_bootstrap: str,
    target_bootstrap: str,
    *,
    source: str = "A",
    target: str = "B",
    topics: str = ".*",
    overrides: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A MirrorMaker 2 configuration for one flow between clusters of one node.

    New topics are noticed within a second, internal topics have one replica, and a killed
    MirrorMaker is replaced at once. Only records are written: offset syncs, checkpoints and
    heartbeats are off. `overrides` wins over everything here, and can turn them on.
    """
    wanted = {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": source_bootstrap,
        f"{target}.bootstrap.servers": target_bootstrap,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": topics,
        f"{target}->{source}.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "emit.offset-syncs.enabled": "false",
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.topic.acls.enabled": "false",
        "sync.topic.configs.interval.seconds": "1",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        # Every jar lists its plug-ins: scanning all classes for them takes seconds.
        "plugin.discovery": "service_load",
        # Settings of the Connect worker count only with the target's prefix.
        f"{target}.plugin.discovery": "service_load",
        f"{target}.offset.storage.replication.factor": "1",
        f"{target}.offset.storage.partitions": "1",
        f"{target}.status.storage.replication.factor": "1",
        f"{target}.status.storage.partitions": "1",
        f"{target}.config.storage.replication.factor": "1",
        f"{target}.offset.flush.interval.ms": "1000",
        f"{target}.scheduled.rebalance.max.delay.ms": "0",
        f"{target}.session.timeout.ms": "3000",
        f"{target}.heartbeat.interval.ms": "500",
        **(overrides or {}),
    }
    if wanted["emit.offset-syncs.enabled"] == "true":
        # Any key of that topic, together with false, makes MirrorMaker refuse to copy at all.
        wanted.setdefault("offset-syncs.topic.replication.factor", "1")
    return wanted


class MirrorMaker(Server):
    """MirrorMaker 2 in dedicated mode, for a properties file or a mapping.

    ::

        properties = flow_properties(source.bootstrap, target.bootstrap)
        with MirrorMaker(properties) as mirror:
            mirror.wait_until_mirrored(
                source.bootstrap, target.bootstrap, {"orders": "A.orders"}
            )

    It has started once its connector has accepted the configuration; use `wait_until_mirrored` to
    wait for copies. A killed one copies again what it had not recorded as copied. `directory` has
    its log, and the properties if a mapping was given. Without one, a temporary folder is made,
    which the end of the `with` block removes unless an exception ended the block.
    """

    def __init__(
        self,
        properties: Path | Mapping[str, str],
        directory: Path | None = None,
        *,
        name: str = "mirror",
    ) -> None:
        self._wanted = {} if isinstance(properties, Path) else dict(properties)
        super().__init__(
            "org.apache.kafka.connect.mirror.MirrorMaker",
            name,
            directory,
            properties_path=properties if isinstance(properties, Path) else None,
            java_options=JAVA_OPTIONS,
            start_seconds=START_SECONDS,
        )

    def wait_for_topic(
        self,
        cluster: str | Access,
        topic: str,
        partitions: int = 1,
        *,
        seconds: float = COPY_SECONDS,
    ) -> None:
        """Wait until `topic` is on the cluster, each partition with a leader.

        Raises `StartFailed` if this takes too long or MirrorMaker ends.
        """
        self.wait_until(
            lambda: topic_missing(Access.of(cluster), topic, partitions),
            seconds=seconds,
            doing=f"{self.name}: wait for topic {topic}",
        )

    def wait_until_mirrored(
        self,
        source: str | Access,
        target: str | Access,
        topics: Mapping[str, str],
        *,
        source_isolation: str = "read_uncommitted",
        seconds: float = COPY_SECONDS,
    ) -> None:
        """Wait until everything that `topics` (source name to target name) hold now is copied.

        Set `source_isolation="read_committed"` if the flow uses it. Raises `StartFailed` if this
        takes too long or MirrorMaker ends.
        """
        for source_topic, target_topic in topics.items():
            partitions = len(partitions_with_leader(Access.of(source), source_topic))
            self.wait_for_topic(target, target_topic, partitions, seconds=seconds)
        with (
            closing(Log(Access.of(source), list(topics), source_isolation)) as log,
            closing(Log(Access.of(target), list(topics.values()), "read_committed")) as copy,
        ):
            self.wait_until(
                lambda: copies_missing(log, copy, topics),
                seconds=seconds,
                doing=f"{self.name}: wait until all is copied",
            )

    def _properties(self) -> Mapping[str, str]:
        return self._wanted

    def _missing(self) -> str | None:
        said = self.said()
        if _REFUSED in said:
            # It would keep running, and copy nothing.
            raise self.failed(f"start {self.name}: it refuses its configuration")
        if any(word in said for word in _CONFIGURED):
            return None
        return "its connector has not taken the configuration yet"
