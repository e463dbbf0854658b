"""What MirrorMaker 2 is configured by, whatever form it had."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tsoffset.config.findings import Entry

CLUSTERS = "clusters"


class InputKind(StrEnum):
    """What was read, as a person calls it."""

    DEDICATED = "MirrorMaker 2 file"
    CONNECTORS = "Connect configuration"
    STRIMZI = "Strimzi resource"


class ConnectorRole(StrEnum):
    """A connector's task; in the order in which their settings of one flow count."""

    GROUP_OFFSET = "MirrorGroupOffsetConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    SOURCE = "MirrorSourceConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"


@dataclass(frozen=True, slots=True)
class MirrorSetting:
    """A setting with the place and the value that it has in a MirrorMaker 2 file.

    `entry` is what the input has. `change` is a sentence where the setting is not the same there,
    or does not do the same for us.
    """

    entry: Entry
    key: str
    text: str
    change: str | None = None


class Heading(StrEnum):
    """Why a setting is not in our configuration."""

    CHECKPOINTS = "No longer needed: it belongs to the checkpoint connector and its offset syncs"
    REPLICATOR = "Keep it in MirrorMaker 2's configuration: only the replicator uses it"
    REFUSED = "Not taken over: unknown, without effect in tsoffset, or not supported"


@dataclass(frozen=True, slots=True)
class LeftSetting:
    """A setting that is not in our configuration, and a sentence why."""

    entry: Entry
    heading: Heading
    why: str


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector of one flow. `at` is the index of its mirror in a Strimzi resource; `has_config`
    tells whether it has settings of its own there."""

    name: str
    role: ConnectorRole
    flow: tuple[str, str]
    at: int = 0
    has_config: bool = True


@dataclass(frozen=True, slots=True)
class StrimziResource:
    """A Strimzi resource. `secrets` are those of Kubernetes that our configuration refers to;
    `progress_topic` holds how far its connectors have copied."""

    name: str
    namespace: str | None
    secrets: tuple[str, ...]
    progress_topic: str


@dataclass(frozen=True, slots=True)
class Setup:
    """What MirrorMaker 2 is configured by: its settings in the form of a MirrorMaker 2 file, and
    what has no place in such a file. `connectors` is empty for a file of MirrorMaker 2's own."""

    kind: InputKind
    file: str
    clusters: tuple[str, ...]
    moved: tuple[MirrorSetting, ...]
    left: tuple[LeftSetting, ...] = ()
    connectors: tuple[Connector, ...] = ()
    resource: StrimziResource | None = None

    def connectors_of(self, flow: tuple[str, str], role: ConnectorRole) -> Iterator[Connector]:
        """Those of the flow with that task."""
        return (one for one in self.connectors if (one.flow, one.role) == (flow, role))
