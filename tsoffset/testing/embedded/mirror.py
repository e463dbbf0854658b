"""MirrorMaker 2 on this machine."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import javaproperties

from tsoffset.testing.embedded.copying import Copying, partitions_with_leader, topic_missing
from tsoffset.testing.embedded.process import GRACE_SECONDS, JavaProcess

START_SECONDS = 120.0
COPY_SECONDS = 120.0
JAVA_OPTIONS = ("-Xms64m", "-Xmx384m")

# Not that it runs: it may do so with what an earlier MirrorMaker left on the target.
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
    """Return a MirrorMaker 2 configuration for one flow between clusters of one node.

    New topics are seen within a second, internal topics have one replica, and a
    MirrorMaker that was killed is replaced at once. Nothing but records is written:
    offset syncs, checkpoints and heartbeats are off; `overrides` turns them on again,
    and goes over everything else here.
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
        # Every jar names its plug-ins: looking into all classes for them takes seconds.
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
        # Any key of that topic beside a false one makes MirrorMaker refuse to copy at all.
        wanted.setdefault("offset-syncs.topic.replication.factor", "1")
    return wanted


class MirrorMaker:
    """MirrorMaker 2 in dedicated mode, for a properties file or a mapping.

    ::

        properties = flow_properties(source.bootstrap, target.bootstrap)
        with MirrorMaker(properties) as mirror:
            mirror.wait_until_mirrored(
                source.bootstrap, target.bootstrap, {"orders": "A.orders"}
            )

    `directory` holds its log, and the properties if a mapping was given; without one a
    temporary folder is made, which the end of the `with` block removes unless an
    exception ended it.
    """

    def __init__(
        self,
        properties: Path | Mapping[str, str],
        directory: Path | None = None,
        *,
        name: str = "mirror",
        java_options: Sequence[str] = (),
        start_seconds: float = START_SECONDS,
    ) -> None:
        """Prepare a MirrorMaker; nothing is started."""
        self.name = name
        self._temporary = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix=f"tsoffset-{name}-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self._properties = properties
        path = properties if isinstance(properties, Path) else self.directory / f"{name}.properties"
        self.properties_path = path.absolute()
        self._start_seconds = start_seconds
        self._process = JavaProcess(
            name,
            ["org.apache.kafka.connect.mirror.MirrorMaker", str(self.properties_path)],
            directory=self.directory,
            java_options=(*JAVA_OPTIONS, *java_options),
        )

    @property
    def pid(self) -> int | None:
        """The process id; None unless it runs."""
        return self._process.pid

    @property
    def log_path(self) -> Path:
        """What it writes about itself."""
        return self._process.log_path

    def start(self) -> Self:
        """Start it, and return it once its connector has taken the configuration.

        What it has copied by then is another question: `wait_until_mirrored`. Raises
        `StartFailed`, `JavaMissing`, `JavaTooOld` or `JarsUnavailable`; nothing is left
        running then.
        """
        if self._process.running:
            return self
        if not isinstance(self._properties, Path):
            self.properties_path.write_text(
                javaproperties.dumps(dict(self._properties), timestamp=None)
            )
        try:
            self._process.start()
            self._process.wait_until(
                self._not_started, seconds=self._start_seconds, doing=f"start {self.name}"
            )
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Stop it in order, by force after the grace time."""
        self._process.stop(grace_seconds)

    def kill(self) -> None:
        """End it as a crash would: it will repeat what it had not noted as copied."""
        self._process.kill()

    def let_go(self) -> None:
        """Let it go on after this Python process; it is stopped by its id then."""
        self._process.let_go()

    def restart(self) -> Self:
        """Stop it if it runs, and start it with the same properties."""
        self.stop()
        return self.start()

    def wait_for_topic(
        self, bootstrap: str, topic: str, partitions: int = 1, *, seconds: float = COPY_SECONDS
    ) -> None:
        """Wait until `topic` is on the cluster at `bootstrap`, each partition with a leader.

        Raises `StartFailed` if this takes too long or MirrorMaker ends.
        """
        self._process.wait_until(
            lambda: topic_missing(bootstrap, topic, partitions),
            seconds=seconds,
            doing=f"{self.name}: wait for topic {topic}",
        )

    def wait_until_mirrored(
        self,
        source_bootstrap: str,
        target_bootstrap: str,
        topics: Mapping[str, str],
        *,
        source_isolation: str = "read_uncommitted",
        seconds: float = COPY_SECONDS,
    ) -> None:
        """Wait until all that `topics` (source name to target name) hold now is copied.

        Give `source_isolation="read_committed"` if the flow reads so. Raises
        `StartFailed` if this takes too long or MirrorMaker ends.
        """
        for source_topic, target_topic in topics.items():
            partitions = len(partitions_with_leader(source_bootstrap, source_topic))
            self.wait_for_topic(target_bootstrap, target_topic, partitions, seconds=seconds)
        with Copying(source_bootstrap, target_bootstrap, topics, source_isolation) as copying:
            self._process.wait_until(
                copying.missing, seconds=seconds, doing=f"{self.name}: wait until all is copied"
            )

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it; remove a temporary folder unless an exception is on its way."""
        self.stop()
        if self._temporary and error is None:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _not_started(self) -> str | None:
        said = self._process.said()
        if _REFUSED in said:
            # It would go on running, and copy nothing.
            raise self._process.failed(f"start {self.name}: it refuses its configuration")
        if any(word in said for word in _CONFIGURED):
            return None
        return "its connector has not taken the configuration yet"
