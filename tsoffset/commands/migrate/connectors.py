"""Converts connectors' settings into the form of a MirrorMaker 2 file.

There `A.x` is a setting of a cluster and `A->B.x` one of a flow. A flow may have several
connectors, each with the settings of its clusters and topics.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tsoffset.commands.migrate.setup import (
    CLUSTERS,
    Connector,
    ConnectorRole,
    Heading,
    InputKind,
    LeftSetting,
    MirrorSetting,
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


@dataclass(frozen=True, slots=True)
class _Found:
    """A setting of one connector of a flow."""

    connector: Connector
    moved: MirrorSetting


def setup_of_connectors(
    kind: InputKind,
    file: str,
    connectors: Sequence[Connector],
    findings: Findings,
    *,
    left: Sequence[LeftSetting] = (),
    resource: StrimziResource | None = None,
) -> Setup:
    """Convert the connectors. One that names no clusters is reported in `findings`."""
    gathered = _Gathered(list(left))
    for one in connectors:
        aliases = _aliases(one, findings)
        if aliases is not None:
            gathered.add(one, aliases)
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
        tuple(gathered.left),
        tuple(gathered.connectors),
        resource,
    )


def _aliases(one: Connector, findings: Findings) -> tuple[str, str] | None:
    texts = {moved.key: moved.text.strip() for moved in one.settings}
    source, target = (texts.get(name) for name in _ALIASES)
    if not source:
        findings.problem(one.entry, f"must have {_ALIASES[0]}, the name of the source")
        return None
    return source, target or keys.TARGET_ALIAS.default or ""


class _Gathered:
    """The settings of all connectors, by cluster and by flow."""

    def __init__(self, left: list[LeftSetting]) -> None:
        self.left = left
        self.connectors: list[Connector] = []
        self.clusters: dict[str, None] = {}
        self.flows: dict[tuple[str, str], Entry] = {}
        self.of_file: dict[str, MirrorSetting] = {}
        self._cluster: dict[tuple[str, str], dict[tuple[str, str], list[_Found]]] = {}
        self._flow: dict[tuple[tuple[str, str], str], list[_Found]] = {}

    def add(self, one: Connector, flow: tuple[str, str]) -> None:
        one = replace(one, flow=flow)
        self.connectors.append(one)
        if one.role is ConnectorRole.HEARTBEAT:
            self.left.append(
                LeftSetting(one.entry, Heading.REPLICATOR, "Heartbeats stay unchanged.")
            )
            return
        self.clusters |= dict.fromkeys(flow)
        self.flows.setdefault(flow, one.entry)
        for moved in one.settings:
            found = _Found(one, moved)
            if moved.key == CLUSTERS:
                self.left.append(
                    LeftSetting(moved.entry, Heading.REPLICATOR, "No connector uses it.")
                )
            elif is_of_file(moved.key):
                self.of_file.setdefault(moved.key, moved)
            elif prefix := CLUSTER_PREFIX.match(moved.key):
                alias = flow[0] if moved.key.startswith("source") else flow[1]
                place = (alias, moved.key[prefix.end() :])
                if moved.key not in _ALIASES:
                    self._cluster.setdefault(place, {}).setdefault(flow, []).append(found)
            elif moved.key == _TASKS and one.role is ConnectorRole.SOURCE:
                self.left.append(
                    LeftSetting(
                        moved.entry, Heading.REPLICATOR, "The number of tasks that copy records."
                    )
                )
            else:
                self._flow.setdefault((flow, moved.key), []).append(found)

    def of_clusters(self) -> Iterator[MirrorSetting]:
        """As `A.x` if all flows agree, else as `A->B.source.cluster.x` for each."""
        for (alias, name), by_flow in self._cluster.items():
            chosen = {flow: self._chosen(name, found) for flow, found in by_flow.items()}
            if len({moved.text for moved in chosen.values()}) == 1:
                yield replace(next(iter(chosen.values())), key=f"{alias}.{name}")
                continue
            for (source, target), moved in chosen.items():
                yield replace(moved, key=f"{source}->{target}.{moved.key}")

    def of_flows(self) -> Iterator[MirrorSetting]:
        """As `A->B.x`, each flow enabled."""
        for flow, entry in self.flows.items():
            arrow = "->".join(flow)
            if (flow, keys.ENABLED.name) not in self._flow:
                key = f"{arrow}.{keys.ENABLED.name}"
                yield MirrorSetting(entry, key, "true")
            for (of, name), found in self._flow.items():
                if of == flow:
                    yield replace(self._chosen(name, found), key=f"{arrow}.{name}")

    def _chosen(self, name: str, found: Sequence[_Found]) -> MirrorSetting:
        """The setting that is used if several connectors of a flow have it: that of the connector
        that syncs groups; for settings about copying, that of the connector that copies."""
        of_copying = name.startswith(POLICY_FAMILY) or name.endswith("isolation.level")
        first = ConnectorRole.SOURCE if of_copying else None
        ranked = sorted(
            found,
            key=lambda one: (one.connector.role is not first, _ROLES.index(one.connector.role)),
        )
        best = ranked[0]
        if isinstance(find_key(ScopedKey(best.moved.key), best.moved.text, dedicated=False), Key):
            for other in ranked[1:]:
                if other.moved.text != best.moved.text:
                    entry, taken = other.moved.entry, best.connector.name
                    why = f"{shown_value(entry)} differs from that of {taken}, which is used."
                    self.left.append(LeftSetting(entry, Heading.REFUSED, why))
        return best.moved
