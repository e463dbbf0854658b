"""Two brokers, MirrorMaker 2 and the file that both it and tsoffset read."""

from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path

from tsoffset.demo.topics import TOPICS
from tsoffset.testing.embedded import EmbeddedBroker, MirrorMaker, flow_properties

SOURCE = "primary"
TARGET = "backup"
FLOW = f"{SOURCE}->{TARGET}"

# All data is thrown away, so nothing is worth a long farewell.
_GRACE_SECONDS = 5.0
_POLICY = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"


def remote(topic: str) -> str:
    """The name that DefaultReplicationPolicy gives a topic of the source on the target."""
    return f"{SOURCE}.{topic}"


class Clusters:
    """What runs in the demo's folder."""

    def __init__(self, folder: Path) -> None:
        """Prepare it; nothing is started."""
        self.folder = folder
        self.source = EmbeddedBroker(folder / SOURCE, name=SOURCE)
        self.target = EmbeddedBroker(folder / TARGET, name=TARGET)
        self.configuration = folder / "mm2.properties"
        self.mirror = MirrorMaker(self.configuration, folder / "mirror-maker", name="mirror-maker")

    def start_brokers(self, pool: Executor) -> None:
        """Start both, side by side. Raises EmbeddedError."""
        starting = [pool.submit(broker.start) for broker in (self.source, self.target)]
        for started in starting:
            started.result()

    def write_configuration(self) -> Mapping[str, str]:
        """Write the file, and return what matters in it.

        The rest makes MirrorMaker 2 quick to start and to look, and keeps one copy of its
        own topics.
        """
        wanted = {
            **flow_properties(
                self.source.bootstrap,
                self.target.bootstrap,
                source=SOURCE,
                target=TARGET,
                topics=", ".join(topic.name for topic in TOPICS),
            ),
            f"{FLOW}.groups": ".*",
            f"{FLOW}.source.consumer.isolation.level": "read_committed",
            "replication.policy.class": _POLICY,
        }
        telling = {
            name: wanted.pop(name)
            for name in (
                "clusters",
                f"{SOURCE}.bootstrap.servers",
                f"{TARGET}.bootstrap.servers",
                f"{FLOW}.enabled",
                f"{FLOW}.topics",
                f"{FLOW}.groups",
                f"{FLOW}.source.consumer.isolation.level",
                "emit.offset-syncs.enabled",
                "emit.checkpoints.enabled",
            )
        }
        self.configuration.write_text(
            "# Read by MirrorMaker 2 and by tsoffset alike.\n"
            + _lines(telling)
            + "\n# For quick starts and single copies on one machine.\n"
            + _lines(wanted)
        )
        return telling

    def wait_until_mirrored(self) -> None:
        """Wait until all that the source holds now is on the target. Raises EmbeddedError."""
        self.mirror.wait_until_mirrored(
            self.source.bootstrap,
            self.target.bootstrap,
            {topic.name: remote(topic.name) for topic in TOPICS},
            source_isolation="read_committed",
        )

    def stop(self) -> None:
        """Stop all that runs."""
        with ExitStack() as stack:
            stack.callback(self.source.stop, _GRACE_SECONDS)
            stack.callback(self.target.stop, _GRACE_SECONDS)
            stack.callback(self.stop_mirror)

    def stop_mirror(self) -> None:
        """Stop MirrorMaker 2."""
        self.mirror.stop(_GRACE_SECONDS)

    def processes(self) -> dict[str, int]:
        """The ids of what runs, by name; the order is that in which to stop them."""
        running = (self.mirror, self.target, self.source)
        return {each.name: each.pid for each in running if each.pid is not None}

    def let_go(self) -> None:
        """Let all go on after this process."""
        for each in (self.mirror, self.target, self.source):
            each.let_go()


def _lines(properties: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in properties.items())
