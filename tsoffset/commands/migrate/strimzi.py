"""A Strimzi resource as the connectors that its operator makes of it.

The shapes are those of `kafka.strimzi.io/v1` (`spec.target`, `spec.mirrors[].source`) and of
`v1beta2` (`spec.clusters`, of which `spec.mirrors` name two); the settings are those of the
operator's KafkaMirrorMaker2Connectors.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence

from tsoffset.commands.migrate.connectors import ConnectorSettings, setup_of_connectors
from tsoffset.commands.migrate.setup import (
    ConnectorRole,
    Heading,
    InputKind,
    LeftSetting,
    MirrorSetting,
    Setup,
    StrimziResource,
)
from tsoffset.commands.migrate.strimzi_security import (
    ResourceNotes,
    own_settings,
    security_settings,
)
from tsoffset.commands.migrate.yaml_parts import YamlValue
from tsoffset.config import keys
from tsoffset.config.findings import Findings
from tsoffset.config.plugins import IDENTITY_POLICY

RESOURCE = "KafkaMirrorMaker2"
_CONNECTORS = {
    "sourceConnector": ConnectorRole.SOURCE,
    "checkpointConnector": ConnectorRole.CHECKPOINT,
    "heartbeatConnector": ConnectorRole.HEARTBEAT,
}
_PATTERNS = {
    "topicsPattern": keys.TOPICS,
    "topicsExcludePattern": keys.TOPICS_EXCLUDE,
    "topicsBlacklistPattern": keys.TOPICS_EXCLUDE,
    "groupsPattern": keys.GROUPS,
    "groupsExcludePattern": keys.GROUPS_EXCLUDE,
    "groupsBlacklistPattern": keys.GROUPS_EXCLUDE,
}
_OF_MIRROR = frozenset({*_CONNECTORS, *_PATTERNS, "source", "sourceCluster", "targetCluster"})
_OF_CONNECTOR = frozenset(
    (
        "config",
        "tasksMax",
        "state",
        "pause",
        "version",
        "autoRestart",
        "listOffsets",
        "alterOffsets",
    )
)
# Where the Connect workers keep how far connectors have come: the field of v1, the setting, and the
# operator's default for v1beta2.
_PROGRESS = "offsetStorageTopic"
_PROGRESS_SETTING, _PROGRESS_DEFAULT = "offset.storage.topic", "mirrormaker2-cluster-offsets"
_OF_CLUSTER = frozenset(("alias", "bootstrapServers", "tls", "authentication", "config"))
_OF_TARGET = _OF_CLUSTER | {"groupId", "configStorageTopic", _PROGRESS, "statusStorageTopic"}
# Strimzi's own class of 2021, which Kafka took over under another name.
_POLICIES = {"io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": IDENTITY_POLICY}


def setup_of_resources(found: Sequence[YamlValue], file: str, findings: Findings) -> Setup | None:
    """The one resource of kind KafkaMirrorMaker2 among the documents; None where there is none, or
    more than one, which `findings` are told."""
    resources: dict[str, list[YamlValue]] = {}
    for part in _resources(found):
        resources.setdefault(_text(part, "kind"), []).append(part)
    ours = resources.get(RESOURCE, [])
    if len(ours) == 1:
        return _setup(ours[0], file, findings)
    if ours:
        allowed = f"holds {len(ours)} resources of kind {RESOURCE}; give one at a time"
    else:
        kinds = ", ".join(sorted(filter(None, resources))) or "none that has a kind"
        allowed = f"holds no resource of kind {RESOURCE}; there is: {kinds}"
    if not findings.problems:
        findings.missing("YAML", allowed, file)
    return None


def _resources(found: Sequence[YamlValue]) -> Iterator[YamlValue]:
    """The documents, and the items of lists as kubectl prints them."""
    for part in found:
        if part.is_mapping and _text(part, "kind") == "List":
            items = part.get("items")
            yield from () if items is None else (one for one in items.items() if one.is_mapping)
        elif part.is_mapping:
            yield part


def _text(part: YamlValue, name: str) -> str:
    member = part.get(name)
    return "" if member is None else member.text()


def _setup(document: YamlValue, file: str, findings: Findings) -> Setup | None:
    spec, metadata = document.get("spec"), document.get("metadata")
    mirrors = None if spec is None else spec.get("mirrors")
    if spec is None or mirrors is None:
        (spec or document).refuse("must have `spec.mirrors`")
        return None
    notes = ResourceNotes()
    target = spec.get("target")
    listed = spec.get("clusters")
    clusters = {_text(one, "alias"): one for one in ([] if listed is None else listed.items())}
    connectors: list[ConnectorSettings] = []
    for at, mirror in enumerate(mirrors.items()):
        _note_unknown(mirror, _OF_MIRROR, notes)
        source = mirror.get("source") or _named(mirror, "sourceCluster", clusters)
        to = target or _named(mirror, "targetCluster", clusters)
        if source is not None and to is not None:
            connectors += _connectors(mirror, at, source, to, notes)
    if findings.problems:
        return None
    name = "" if metadata is None else _text(metadata, "name")
    worker = target or clusters.get(_text(spec, "connectCluster"))
    return setup_of_connectors(
        InputKind.STRIMZI,
        file,
        connectors,
        findings,
        left=notes.left,
        resource=StrimziResource(
            name or "NAME",
            (_text(metadata, "namespace") or None) if metadata is not None else None,
            tuple(notes.secrets),
            _progress_topic(worker),
        ),
    )


def _named(mirror: YamlValue, field: str, clusters: Mapping[str, YamlValue]) -> YamlValue | None:
    """The cluster that a mirror names by its alias."""
    member = mirror.get(field)
    if member is None:
        other = "`source`" if field == "sourceCluster" else "`spec.target`"
        mirror.refuse(f"must have `{field}`, or {other} in resources of version v1")
        return None
    if (found := clusters.get(member.text())) is None:
        member.refuse(f"must be an alias of `spec.clusters`: {', '.join(clusters) or 'none there'}")
    return found


def _progress_topic(cluster: YamlValue | None) -> str:
    config = None if cluster is None else cluster.get("config")
    in_field = "" if cluster is None else _text(cluster, _PROGRESS)
    in_config = "" if config is None else _text(config, _PROGRESS_SETTING)
    return in_field or in_config or _PROGRESS_DEFAULT


def _connectors(
    mirror: YamlValue, at: int, source: YamlValue, target: YamlValue, notes: ResourceNotes
) -> Iterator[ConnectorSettings]:
    aliases = _text(source, "alias"), _text(target, "alias")
    for cluster, alias in zip((source, target), aliases, strict=True):
        if not alias:
            cluster.refuse("must have `alias`")
            return
    shared = (*_of_cluster(source, "source", notes), *_of_cluster(target, "target", notes))
    patterns = [
        MirrorSetting(part.entry(part.text()), key.name, part.text())
        for field, key in _PATTERNS.items()
        if (part := mirror.get(field)) is not None
    ]
    for field, role in _CONNECTORS.items():
        if (part := mirror.get(field)) is None:
            continue
        _note_unknown(part, _OF_CONNECTOR, notes)
        config, tasks = part.get("config"), part.get("tasksMax")
        own = list(own_settings(config, notes))
        if tasks is not None:
            own.append(MirrorSetting(tasks.entry(tasks.text()), "tasks.max", tasks.text()))
        # Of what is there twice the later counts, as for the operator.
        settings = {one.key: one for one in (*shared, *own, *patterns)}
        yield ConnectorSettings(
            f"{'->'.join(aliases)}.{role}",
            role,
            part.entry(),
            tuple(map(_as_kafka_has_it, settings.values())),
            at,
            config is not None,
        )


def _as_kafka_has_it(moved: MirrorSetting) -> MirrorSetting:
    if moved.key != keys.POLICY.name or moved.text not in _POLICIES:
        return moved
    change = "Strimzi's class is Kafka's own since Kafka 3.0."
    return MirrorSetting(moved.entry, moved.key, _POLICIES[moved.text], change)


def _of_cluster(cluster: YamlValue, side: str, notes: ResourceNotes) -> Iterator[MirrorSetting]:
    """A cluster's settings, as a connector has them; what its `config` has is the last word."""
    _note_unknown(cluster, _OF_TARGET if side == "target" else _OF_CLUSTER, notes)
    settings = [*security_settings(cluster, notes), *own_settings(cluster.get("config"), notes)]
    for name, field in (("alias", "alias"), (keys.BOOTSTRAP.name, "bootstrapServers")):
        if (part := cluster.get(field)) is not None:
            settings.insert(0, MirrorSetting(part.entry(part.text()), name, part.text()))
    for moved in settings:
        yield MirrorSetting(moved.entry, f"{side}.cluster.{moved.key}", moved.text, moved.change)


def _note_unknown(part: YamlValue, known: Collection[str], notes: ResourceNotes) -> None:
    for name, member in part.members().items():
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            left = LeftSetting(member.entry(), Heading.REFUSED, f"Strimzi has no such field{hint}")
            if left not in notes.left:
                notes.left.append(left)
