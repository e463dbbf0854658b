"""MirrorMaker 2's configuration, in one form for all inputs: that of its own file, where `A.x` is a
setting of a cluster and `A->B.x` one of a flow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tsoffset.config import keys
from tsoffset.config.findings import Entry, Findings, shown_value
from tsoffset.config.key_table import Key
from tsoffset.config.review import POLICY_FAMILY, find_key, is_of_file
from tsoffset.config.scopes import CLUSTER_PREFIX, ScopedKey

CLUSTERS = "clusters"


class InputKind(StrEnum):
    DEDICATED = "MirrorMaker 2 file"
    CONNECTORS = "Connect configuration"
    STRIMZI = "Strimzi resource"


class ConnectorRole(StrEnum):
    """A connector's class. If several connectors of a flow have a setting, the first class wins."""

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
    """All settings in the form of a MirrorMaker 2 file, and those that have no counterpart in one
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


_ALIASES = (keys.SOURCE_ALIAS.name, keys.TARGET_ALIAS.name)
_ROLES = tuple(ConnectorRole)
_Flow = tuple[str, str]
_Found = tuple[Connector, MirrorSetting]


def setup_of_connectors(
    kind: InputKind,
    file: str,
    connectors: Sequence[Connector],
    findings: Findings,
    *,
    omitted: Sequence[OmittedSetting] = (),
    resource: StrimziResource | None = None,
) -> Setup:
    """Convert the connectors; a flow may have several, each with the settings of its clusters and
    topics. A connector that names no source cluster is reported in `findings`."""
    placed: list[Connector] = []
    left = list(omitted)

    def omit(entry: Entry, why: str) -> None:
        left.append(OmittedSetting(entry, Heading.REPLICATOR, why))

    of_file: dict[str, MirrorSetting] = {}
    of_clusters: dict[tuple[str, str], dict[_Flow, list[_Found]]] = {}
    of_flows: dict[_Flow, dict[str, list[_Found]]] = {}
    entries: dict[_Flow, Entry] = {}
    for one in connectors:
        texts = {setting.key: setting.text.strip() for setting in one.settings}
        source, target = (texts.get(name) for name in _ALIASES)
        if not source:
            findings.problem(one.entry, f"must have {_ALIASES[0]}, the name of the source")
            continue
        flow = source, target or keys.TARGET_ALIAS.default or ""
        placed.append(replace(one, flow=flow))
        if one.role is ConnectorRole.HEARTBEAT:
            omit(one.entry, "Heartbeats stay unchanged.")
            continue
        of_flow = of_flows.setdefault(flow, {})
        entries.setdefault(flow, one.entry)
        for setting in one.settings:
            if setting.key == CLUSTERS:
                omit(setting.entry, "No connector uses it.")
            elif is_of_file(setting.key):
                of_file.setdefault(setting.key, setting)
            elif prefix := CLUSTER_PREFIX.match(setting.key):
                alias = flow[0] if setting.key.startswith("source") else flow[1]
                key = (alias, setting.key[prefix.end() :])
                if setting.key not in _ALIASES:
                    of_clusters.setdefault(key, {}).setdefault(flow, []).append((one, setting))
            elif setting.key == "tasks.max" and one.role is ConnectorRole.SOURCE:
                omit(setting.entry, "The number of tasks that copy records.")
            elif setting.key.endswith(keys.ISOLATION.name) and one.role is not ConnectorRole.SOURCE:
                omit(setting.entry, "Only the isolation level of the connector that copies counts.")
            else:
                of_flow.setdefault(setting.key, []).append((one, setting))
    if not of_flows and not findings.problems:
        findings.problem_in_file(
            "connector.class",
            "names no connector that copies or syncs; give those of MirrorSourceConnector and"
            " MirrorCheckpointConnector",
            file,
        )
    settings: list[MirrorSetting] = []
    for (alias, name), by_flow in of_clusters.items():
        chosen = {flow: _choose(name, found, left) for flow, found in by_flow.items()}
        first = next(iter(chosen.values()))
        if all(setting.text == first.text for setting in chosen.values()):
            settings.append(replace(first, key=f"{alias}.{name}"))
        else:
            settings += (
                replace(setting, key=f"{'->'.join(flow)}.{setting.key}")
                for flow, setting in chosen.items()
            )
    for flow, of_flow in of_flows.items():
        arrow = "->".join(flow)
        if keys.ENABLED.name not in of_flow:
            settings.append(MirrorSetting(entries[flow], f"{arrow}.{keys.ENABLED.name}", "true"))
        settings += (
            replace(_choose(name, found, left), key=f"{arrow}.{name}")
            for name, found in of_flow.items()
        )
    clusters = tuple(dict.fromkeys(alias for flow in of_flows for alias in flow))
    settings += of_file.values()
    return Setup(kind, file, clusters, tuple(settings), tuple(left), tuple(placed), resource)


def _choose(name: str, found: Sequence[_Found], omitted: list[OmittedSetting]) -> MirrorSetting:
    """The setting that is used if several connectors of a flow have it: that of the connector
    that syncs groups; for the replication policy, that of the connector that copies."""
    first = ConnectorRole.SOURCE if name.startswith(POLICY_FAMILY) else None
    (connector, best), *others = sorted(
        found, key=lambda one: (one[0].role is not first, _ROLES.index(one[0].role))
    )
    if isinstance(find_key(ScopedKey(best.key), best.text, dedicated=False), Key):
        for _, other in others:
            if other.text != best.text:
                differs = f"{shown_value(other.entry)} differs from that of {connector.name}"
                why = f"{differs}, which is used."
                omitted.append(OmittedSetting(other.entry, Heading.REFUSED, why))
    return best
