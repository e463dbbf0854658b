"""Converts a Strimzi resource into the connectors that its operator creates.

Its versions are `kafka.strimzi.io/v1` (`spec.target`, `spec.mirrors[].source`) and `v1beta2`
(`spec.clusters`, two of which each of `spec.mirrors` names). The settings are those of the
operator's KafkaMirrorMaker2Connectors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tsoffset.commands.migrate.setup import (
    Connector,
    ConnectorRole,
    InputKind,
    MirrorSetting,
    Setup,
    StrimziResource,
    setup_of_connectors,
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
# The topic for the connectors' progress: the field of v1, the setting, and the operator's default
# for v1beta2.
_PROGRESS = "offsetStorageTopic"
_PROGRESS_SETTING, _PROGRESS_DEFAULT = "offset.storage.topic", "mirrormaker2-cluster-offsets"
# Strimzi's class of 2021, which became part of Kafka under another name.
_POLICIES = {"io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy": IDENTITY_POLICY}


def setup_of_resources(found: Sequence[YamlValue], file: str, findings: Findings) -> Setup | None:
    """The one resource of kind KafkaMirrorMaker2 among the documents. None if there is none, or
    more than one; `findings` then says so."""
    mirror_makers = [one for one in _resources(found) if one.member_text("kind") == RESOURCE]
    if len(mirror_makers) == 1:
        return _setup(mirror_makers[0], file, findings)
    if not findings.problems:
        allowed = f"must have one resource of kind {RESOURCE}, and has {len(mirror_makers)}"
        findings.problem_in_file("YAML", allowed, file)
    return None


def _resources(found: Sequence[YamlValue]) -> Iterator[YamlValue]:
    """The documents, and the items of lists that kubectl prints."""
    for part in found:
        if part.is_mapping and part.member_text("kind") == "List":
            yield from (one for one in part.get("items").items() if one.is_mapping)
        elif part.is_mapping:
            yield part


def _setup(document: YamlValue, file: str, findings: Findings) -> Setup | None:
    spec, metadata = document.get("spec"), document.get("metadata")
    if not (mirrors := spec.get("mirrors")):
        (spec or document).refuse("must have `spec.mirrors`")
        return None
    notes = ResourceNotes()
    target = spec.get("target")
    clusters = {one.member_text("alias"): one for one in spec.get("clusters").items()}
    connectors: list[Connector] = []
    for at, mirror in enumerate(mirrors.items()):
        source = mirror.get("source") or _cluster_named(mirror, "sourceCluster", clusters)
        to = target or _cluster_named(mirror, "targetCluster", clusters)
        if source is not None and to is not None:
            connectors += _connectors(mirror, at, source, to, notes)
    if findings.problems:
        return None
    worker = target or clusters.get(spec.member_text("connectCluster"), target)
    progress = worker.member_text(_PROGRESS) or worker.get("config").member_text(_PROGRESS_SETTING)
    resource = StrimziResource(
        metadata.member_text("name", "NAME"),
        metadata.member_text("namespace") or None,
        tuple(notes.secrets),
        progress or _PROGRESS_DEFAULT,
    )
    kind, omitted = InputKind.STRIMZI, notes.omitted
    return setup_of_connectors(kind, file, connectors, findings, omitted=omitted, resource=resource)


def _cluster_named(
    mirror: YamlValue, field: str, clusters: Mapping[str, YamlValue]
) -> YamlValue | None:
    member = mirror.get(field)
    if not member:
        other = "`source`" if field == "sourceCluster" else "`spec.target`"
        mirror.refuse(f"must have `{field}`, or {other} in resources of version v1")
        return None
    if (found := clusters.get(member.text())) is None:
        member.refuse(f"must be an alias of `spec.clusters`: {', '.join(clusters) or 'none there'}")
    return found


def _connectors(
    mirror: YamlValue, at: int, source: YamlValue, target: YamlValue, notes: ResourceNotes
) -> Iterator[Connector]:
    aliases = source.member_text("alias"), target.member_text("alias")
    for cluster, alias in zip((source, target), aliases, strict=True):
        if not alias:
            cluster.refuse("must have `alias`")
            return
    shared = (*_of_cluster(source, "source", notes), *_of_cluster(target, "target", notes))
    patterns = [
        part.setting(key.name) for field, key in _PATTERNS.items() if (part := mirror.get(field))
    ]
    for field, role in _CONNECTORS.items():
        if not (part := mirror.get(field)):
            continue
        config, tasks = part.get("config"), part.get("tasksMax")
        own = list(own_settings(config, notes))
        if tasks:
            own.append(tasks.setting("tasks.max"))
        # Later ones take precedence, as for the operator.
        settings = {one.key: one for one in (*shared, *own, *patterns)}
        yield Connector(
            f"{'->'.join(aliases)}.{role}",
            role,
            part.entry(),
            tuple(map(_with_kafka_policy, settings.values())),
            at,
            bool(config),
        )


def _with_kafka_policy(setting: MirrorSetting) -> MirrorSetting:
    if setting.key != keys.POLICY.name or setting.text not in _POLICIES:
        return setting
    change = "Strimzi's class is Kafka's own since Kafka 3.0."
    return replace(setting, text=_POLICIES[setting.text], change=change)


def _of_cluster(cluster: YamlValue, side: str, notes: ResourceNotes) -> Iterator[MirrorSetting]:
    """A cluster's settings, as a connector has them; its `config` takes precedence."""
    settings = [*security_settings(cluster, notes), *own_settings(cluster.get("config"), notes)]
    for name, field in (("alias", "alias"), (keys.BOOTSTRAP.name, "bootstrapServers")):
        if part := cluster.get(field):
            settings.insert(0, part.setting(name))
    for setting in settings:
        yield replace(setting, key=f"{side}.cluster.{setting.key}")
