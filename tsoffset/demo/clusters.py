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
# What a reader of the configuration wants to see.
_TELLING = (
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


def remote(topic: str) -> str:
    """The name that DefaultReplicationPolicy gives a topic of the source on the target."""
    return f"{SOURCE}.{topic}"


class Clusters:
    """What runs in the demo's folder; `processes` in the order in which to stop them."""

    def __init__(self, folder: Path) -> None:
        """Prepare it; nothing is started."""
        self.folder = folder
        self.source = EmbeddedBroker(folder / SOURCE, name=SOURCE)
        self.target = EmbeddedBroker(folder / TARGET, name=TARGET)
        self.configuration = folder / "mm2.properties"
        self.mirror = MirrorMaker(self.configuration, folder / "mirror-maker", name="mirror-maker")
        self.processes = (self.mirror, self.target, self.source)

    def start_brokers(self, pool: Executor) -> None:
        """Start both, side by side. Raises EmbeddedError."""
        list(pool.map(EmbeddedBroker.start, (self.source, self.target)))

    def write_configuration(self) -> Mapping[str, str]:
        """Write the file, and return what matters in it.

        The rest makes MirrorMaker 2 quick to start and to look, and keeps one copy of its
        own topics.
        """
        wanted = flow_properties(
            self.source.bootstrap,
            self.target.bootstrap,
            source=SOURCE,
            target=TARGET,
            topics=", ".join(topic.name for topic in TOPICS),
            overrides={
                f"{FLOW}.groups": ".*",
                f"{FLOW}.source.consumer.isolation.level": "read_committed",
            },
        )
        telling = {name: wanted.pop(name) for name in _TELLING}
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
            for each in reversed(self.processes):
                stack.callback(each.stop, _GRACE_SECONDS)

    def stop_mirror(self) -> None:
        """Stop MirrorMaker 2."""
        self.mirror.stop(_GRACE_SECONDS)


def _lines(properties: Mapping[str, str]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in properties.items())
