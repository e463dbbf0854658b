"""MirrorMaker 2's configuration, in one form for all inputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tsoffset.config.findings import Entry

CLUSTERS = "clusters"


class InputKind(StrEnum):
    DEDICATED = "MirrorMaker 2 file"
    CONNECTORS = "Connect configuration"
    STRIMZI = "Strimzi resource"


class ConnectorRole(StrEnum):
    """A connector's class, in the order in which their settings of one flow take precedence."""

    GROUP_OFFSET = "MirrorGroupOffsetConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    SOURCE = "MirrorSourceConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"


@dataclass(frozen=True, slots=True)
class MirrorSetting:
    """A setting with its key and value in a MirrorMaker 2 file.

    `entry` is the setting of the input. `change` is a sentence if the setting differs from it, or
    has another effect in tsoffset.
    """

    entry: Entry
    key: str
    text: str
    change: str | None = None


class Heading(StrEnum):
    CHECKPOINTS = "No longer needed: it belongs to the checkpoint connector and its offset syncs"
    REPLICATOR = "Keep it in MirrorMaker 2's configuration: only the replicator uses it"
    REFUSED = "Not taken over: unknown, without effect in tsoffset, or not supported"


@dataclass(frozen=True, slots=True)
class OmittedSetting:
    entry: Entry
    heading: Heading
    why: str


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector with its settings by its own names for them, and its flow once that is known.
    `at` is the index of its mirror in a Strimzi resource; `has_config`: it has a `config` there."""

    name: str
    role: ConnectorRole
    entry: Entry
    settings: tuple[MirrorSetting, ...]
    at: int = 0
    has_config: bool = True
    flow: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class StrimziResource:
    """A Strimzi resource. `secrets` are the Kubernetes secrets that the new configuration refers
    to; `progress_topic` holds how far its connectors have copied."""

    name: str
    namespace: str | None
    secrets: tuple[str, ...]
    progress_topic: str


@dataclass(frozen=True, slots=True)
class Setup:
    """All settings in the form of a MirrorMaker 2 file, and those that have no place in one
    (`omitted`). `connectors` is empty for a MirrorMaker 2 file."""

    kind: InputKind
    file: str
    clusters: tuple[str, ...]
    settings: tuple[MirrorSetting, ...]
    omitted: tuple[OmittedSetting, ...] = ()
    connectors: tuple[Connector, ...] = ()
    resource: StrimziResource | None = None

    def connectors_of(self, flow: tuple[str, str], role: ConnectorRole) -> Iterator[Connector]:
        return (one for one in self.connectors if (one.flow, one.role) == (flow, role))
