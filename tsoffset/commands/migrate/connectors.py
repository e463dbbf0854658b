"""Converts connectors' settings into the form of a MirrorMaker 2 file.

There `A.x` is a setting of a cluster and `A->B.x` one of a flow. A flow may have several
connectors, each with the settings of its clusters and topics.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tsoffset.commands.migrate.setup import (
    CLUSTERS,
    Connector,
    ConnectorRole,
    Heading,
    InputKind,
    MirrorSetting,
    OmittedSetting,
    Setup,
    StrimziResource,
)
from tsoffset.config import keys
from tsoffset.config.findings import Entry, Findings, shown_value
from tsoffset.config.key_table import Key
from tsoffset.config.review import POLICY_FAMILY, find_key, is_of_file
from tsoffset.config.scopes import CLUSTER_PREFIX, ScopedKey

_ALIASES = (keys.SOURCE_ALIAS.name, keys.TARGET_ALIAS.name)
_ROLES = tuple(ConnectorRole)
_TASKS = "tasks.max"


_Found = tuple[Connector, MirrorSetting]
_Flow = tuple[str, str]


def setup_of_connectors(
    kind: InputKind,
    file: str,
    connectors: Sequence[Connector],
    findings: Findings,
    *,
    omitted: Sequence[OmittedSetting] = (),
    resource: StrimziResource | None = None,
) -> Setup:
    """Convert the connectors. One that names no clusters is reported in `findings`."""
    gathered = _Gathered(list(omitted))
    for one in connectors:
        texts = {setting.key: setting.text.strip() for setting in one.settings}
        source, target = (texts.get(name) for name in _ALIASES)
        if source:
            gathered.add(one, (source, target or keys.TARGET_ALIAS.default or ""))
        else:
            findings.problem(one.entry, f"must have {_ALIASES[0]}, the name of the source")
    if not gathered.flows and not findings.problems:
        findings.missing(
            "connector.class",
            "names no connector that copies or syncs; give those of MirrorSourceConnector and"
            " MirrorCheckpointConnector",
            file,
        )
    return Setup(
        kind,
        file,
        tuple(gathered.clusters),
        (*gathered.of_clusters(), *gathered.of_flows(), *gathered.of_file.values()),
        tuple(gathered.omitted),
        tuple(gathered.connectors),
        resource,
    )


class _Gathered:
    def __init__(self, omitted: list[OmittedSetting]) -> None:
        self.omitted = omitted
        self.connectors: list[Connector] = []
        self.clusters: dict[str, None] = {}
        self.flows: dict[_Flow, Entry] = {}
        self.of_file: dict[str, MirrorSetting] = {}
        self._cluster: dict[tuple[str, str], dict[_Flow, list[_Found]]] = {}
        self._flow: dict[tuple[_Flow, str], list[_Found]] = {}

    def _omit(self, entry: Entry, why: str, heading: Heading = Heading.REPLICATOR) -> None:
        self.omitted.append(OmittedSetting(entry, heading, why))

    def add(self, one: Connector, flow: _Flow) -> None:
        one = replace(one, flow=flow)
        self.connectors.append(one)
        if one.role is ConnectorRole.HEARTBEAT:
            self._omit(one.entry, "Heartbeats stay unchanged.")
            return
        self.clusters |= dict.fromkeys(flow)
        self.flows.setdefault(flow, one.entry)
        for setting in one.settings:
            found = one, setting
            if setting.key == CLUSTERS:
                self._omit(setting.entry, "No connector uses it.")
            elif is_of_file(setting.key):
                self.of_file.setdefault(setting.key, setting)
            elif prefix := CLUSTER_PREFIX.match(setting.key):
                alias = flow[0] if setting.key.startswith("source") else flow[1]
                place = (alias, setting.key[prefix.end() :])
                if setting.key not in _ALIASES:
                    self._cluster.setdefault(place, {}).setdefault(flow, []).append(found)
            elif setting.key == _TASKS and one.role is ConnectorRole.SOURCE:
                self._omit(setting.entry, "The number of tasks that copy records.")
            else:
                self._flow.setdefault((flow, setting.key), []).append(found)

    def of_clusters(self) -> Iterator[MirrorSetting]:
        """As `A.x` if all flows agree, else as `A->B.source.cluster.x` for each."""
        for (alias, name), by_flow in self._cluster.items():
            chosen = {flow: self._chosen(name, found) for flow, found in by_flow.items()}
            if len({setting.text for setting in chosen.values()}) == 1:
                yield replace(next(iter(chosen.values())), key=f"{alias}.{name}")
                continue
            for (source, target), setting in chosen.items():
                yield replace(setting, key=f"{source}->{target}.{setting.key}")

    def of_flows(self) -> Iterator[MirrorSetting]:
        """As `A->B.x`, each flow enabled."""
        for flow, entry in self.flows.items():
            arrow = "->".join(flow)
            if (flow, keys.ENABLED.name) not in self._flow:
                yield MirrorSetting(entry, f"{arrow}.{keys.ENABLED.name}", "true")
            for (of, name), found in self._flow.items():
                if of == flow:
                    yield replace(self._chosen(name, found), key=f"{arrow}.{name}")

    def _chosen(self, name: str, found: Sequence[_Found]) -> MirrorSetting:
        """The setting that is used if several connectors of a flow have it: that of the connector
        that syncs groups; for settings about copying, that of the connector that copies."""
        of_copying = name.startswith(POLICY_FAMILY) or name.endswith("isolation.level")
        first = ConnectorRole.SOURCE if of_copying else None
        (connector, best), *others = sorted(
            found, key=lambda one: (one[0].role is not first, _ROLES.index(one[0].role))
        )
        if isinstance(find_key(ScopedKey(best.key), best.text, dedicated=False), Key):
            for _, other in others:
                if other.text != best.text:
                    entry = other.entry
                    differs = f"{shown_value(entry)} differs from that of {connector.name}"
                    self._omit(entry, f"{differs}, which is used.", Heading.REFUSED)
        return best
