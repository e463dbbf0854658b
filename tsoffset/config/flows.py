"""From the merged settings of a flow to its `FlowSettings`."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from tsoffset.config import keys
from tsoffset.config.findings import Entry, Findings, hide_values
from tsoffset.config.key_table import Key
from tsoffset.config.keys import BOOTSTRAP, CLIENT_KEYS, FLOW_KEYS
from tsoffset.config.plugins import (
    GROUP_FILTER_PLUGIN,
    POLICY_PLUGIN,
    TOPIC_FILTER_PLUGIN,
    Plugin,
    UnusablePlugin,
    check_plugin,
    load_plugin,
)
from tsoffset.config.review import (
    GROUP_FILTER_FAMILY,
    POLICY_FAMILY,
    TOPIC_FILTER_FAMILY,
    may_be_of_a_class,
)
from tsoffset.config.scopes import Setting, client_names, consumer_names, first_of
from tsoffset.config.security import security_of
from tsoffset.config.security_keys import SECURITY_KEYS
from tsoffset.flow.narrowing import AssignedGroups
from tsoffset.flow.policy import (
    DefaultGroupFilter,
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    GroupFilter,
    InvalidSetting,
    ReplicationPolicy,
    TopicFilter,
)
from tsoffset.flow.settings import ClusterSettings, FlowSettings, TranslationSettings
from tsoffset.model import Isolation, Side

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FlowSource:
    """The settings of one flow, under a connector's names, and the file they are from.

    `dedicated` is true if `clusters` names the aliases. `secrets` are the values of `${...}`, which
    no message may contain. With `loads_classes` false, MirrorMaker 2's own policy and filters
    replace a user's classes.
    """

    source: str
    target: str
    settings: Mapping[str, Setting]
    file: str
    dedicated: bool
    secrets: Collection[str] = field(repr=False)
    loads_classes: bool = True

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"

    def value(self, key: Key[T]) -> T:
        return read(key, self.settings.get(key.name))

    def fields(self, of: type, side: Side | None = None) -> dict[str, Any]:
        """The values of the keys that fill fields of the class `of`, by field; for one side without
        the keys of the other one."""
        keys_of_side = {
            name: key
            for name, key in FLOW_KEYS.items()
            if not (side and name.startswith(f"{side.other}."))
        }
        return fields_of(of, keys_of_side, self.settings)


def flow_settings(origin: FlowSource, findings: Findings) -> FlowSettings:
    """The flow. Problems are added to `findings`; defaults replace what is wrong."""
    enabled = (
        origin.value(keys.ENABLED) if keys.ENABLED.name in origin.settings else not origin.dedicated
    )
    _check_aliases(origin, findings)
    _check_proof(origin, findings)
    translation = TranslationSettings(**origin.fields(TranslationSettings))
    policy = _policy(origin, findings)
    return FlowSettings(
        source=_cluster(origin, Side.SOURCE, enabled, findings),
        target=replace(
            _cluster(origin, Side.TARGET, enabled, findings),
            offset_header=translation.offset_header,
        ),
        policy=policy,
        group_filter=_group_filter(origin, findings),
        topic_filter=_topic_filter(origin, findings),
        enabled=enabled,
        translation=translation,
        lists={key.name: origin.value(key) for key in keys.LISTS},
        **origin.fields(FlowSettings) | {"isolation": _isolation(origin)},
    )


def read(key: Key[T], setting: Setting | None) -> T:
    """The value, or the key's default if it is absent or not usable."""
    return key.read(setting.value) if setting is not None and setting.usable else key.default


def fields_of(
    of: type, keys: Mapping[str, Key[Any]], settings: Mapping[str, Setting]
) -> dict[str, Any]:
    """The values of the keys that fill fields of the class `of`, by field."""
    return {
        key.fills.name: read(key, settings.get(name))
        for name, key in keys.items()
        if key.fills is not None and key.fills.of is of
    }


def _check_aliases(origin: FlowSource, findings: Findings) -> None:
    """With `clusters`, aliases must not be given again: MirrorMaker 2 would use these for
    topics."""
    if not origin.dedicated:
        return
    for key, alias in ((keys.SOURCE_ALIAS, origin.source), (keys.TARGET_ALIAS, origin.target)):
        setting = origin.settings.get(key.name)
        if setting is not None and setting.value != alias:
            findings.problem(
                setting.entry, f"must be removed for flow {origin.name}: `clusters` names {alias}"
            )


def _check_proof(origin: FlowSource, findings: Findings) -> None:
    """`translation.proof = timestamps` compares no records, but `translation.expect` has to."""
    proof = origin.settings.get(keys.PROOF.name)
    expected = origin.value(keys.EXPECT)
    if proof is not None and expected is not None and origin.value(keys.PROOF) == "timestamps":
        findings.problem(
            proof.entry, f"must be removed if {keys.EXPECT.name} is set, which compares records"
        )


def _cluster(origin: FlowSource, side: Side, enabled: bool, findings: Findings) -> ClusterSettings:
    alias = origin.source if side is Side.SOURCE else origin.target
    addresses = first_of(origin.settings, *client_names(side, BOOTSTRAP.name))
    prefix = alias if origin.dedicated else f"{side}.cluster"
    if addresses is None and enabled:
        on = origin.settings.get(keys.ENABLED.name)
        of_side = [name for name in origin.settings if name.startswith(f"{side}.")]
        slips = difflib.get_close_matches(f"{side}.cluster.{BOOTSTRAP.name}", of_side, n=1)
        seen = "".join(f"; there is {origin.settings[name].entry.key}" for name in slips)
        findings.problem_in_file(
            f"{prefix}.{BOOTSTRAP.name}",
            f"must name the brokers of {alias}, since flow {origin.name} is enabled{seen}",
            origin.file,
            on.entry.line if on is not None else None,
        )
    client = {}
    for key in CLIENT_KEYS:
        text = read(key, first_of(origin.settings, *client_names(side, key.name)))
        if text is not None:
            client[key.name] = text
    bootstrap_servers = read(BOOTSTRAP, addresses)

    def report_missing(name: str, allowed: str) -> None:
        findings.problem_in_file(f"{prefix}.{name}", allowed, origin.file)

    return ClusterSettings(
        alias=alias,
        bootstrap_servers=bootstrap_servers,
        client=client,
        security=security_of(
            _security_settings(origin, side, findings), bootstrap_servers, report_missing, findings
        ),
        **origin.fields(ClusterSettings, side),
    )


def _security_settings(origin: FlowSource, side: Side, findings: Findings) -> dict[str, Setting]:
    """A cluster's security settings by their names without prefix.

    MirrorMaker 2's admin client and consumer may have different ones. tsoffset uses one connection
    for both, so a difference is a problem.
    """
    chosen: dict[str, Setting] = {}
    for name in SECURITY_KEYS:
        of_admin = first_of(origin.settings, *client_names(side, name))
        of_consumer = first_of(origin.settings, *consumer_names(side, name))
        if of_admin and of_consumer and of_admin.value != of_consumer.value:
            findings.problem(
                of_consumer.entry,
                f"must equal {of_admin.entry.key} ({of_admin.entry.location}): tsoffset reads"
                " records and offsets over the same connections",
                with_value=False,
            )
        setting = of_admin or of_consumer
        if setting is not None:
            chosen[name] = setting
    return chosen


def _isolation(origin: FlowSource) -> Isolation:
    """The isolation level of the replicator's source consumer (MirrorSourceConfig)."""
    name = keys.ISOLATION.name
    return read(keys.ISOLATION, first_of(origin.settings, f"source.{name}", name))


def _policy(origin: FlowSource, findings: Findings) -> ReplicationPolicy:
    policy = _plugin(origin, POLICY_PLUGIN, keys.POLICY, findings)
    if policy is None:
        return DefaultReplicationPolicy()
    if type(policy) is DefaultReplicationPolicy and origin.source != policy.topic_source(
        policy.format_remote_topic(origin.source, "topic")
    ):
        findings.warning(
            _entry_of(origin, keys.POLICY_SEPARATOR),
            f"the separator is part of the alias {origin.source}: remote topics of flow"
            f" {origin.name} cannot be distinguished from others, and cycles cannot be detected",
        )
    return policy


def _group_filter(origin: FlowSource, findings: Findings) -> GroupFilter:
    group_filter = _plugin(origin, GROUP_FILTER_PLUGIN, keys.GROUP_FILTER, findings)
    if group_filter is None:
        return DefaultGroupFilter()
    if isinstance(group_filter, DefaultGroupFilter):
        _warn_of_empty_list(origin, keys.GROUPS, findings)
    assigned = origin.value(keys.ASSIGNED_GROUPS)
    if assigned is None:
        return group_filter
    return AssignedGroups(group_filter, frozenset(assigned))


def _topic_filter(origin: FlowSource, findings: Findings) -> TopicFilter:
    topic_filter = _plugin(origin, TOPIC_FILTER_PLUGIN, keys.TOPIC_FILTER, findings)
    if isinstance(topic_filter, DefaultTopicFilter):
        _warn_of_empty_list(origin, keys.TOPICS, findings)
    return topic_filter if topic_filter is not None else DefaultTopicFilter()


def _warn_of_empty_list(origin: FlowSource, key: Key[tuple[str, ...]], findings: Findings) -> None:
    if not origin.value(key):
        setting = origin.settings.get(key.name)
        changed = setting is not None and setting.changed
        why = " (`tsoffset lists` removed its entries)" if changed else ""
        told = f"an empty list{why}: flow {origin.name} syncs nothing"
        findings.warning(_entry_of(origin, key), told)


def _plugin(origin: FlowSource, plugin: Plugin[T], key: Key[str], findings: Findings) -> T | None:
    """The configured instance; None if there was a problem."""
    texts = {name: setting.value for name, setting in origin.settings.items() if setting.usable}
    texts[keys.SOURCE_ALIAS.name] = origin.source
    texts[keys.TARGET_ALIAS.name] = origin.target
    entry = _entry_of(origin, key)
    try:
        make = load_plugin if origin.loads_classes else check_plugin
        return make(plugin, origin.value(key), texts)
    except UnusablePlugin as error:
        findings.problem(entry, hide_values(str(error), origin.secrets))
    except InvalidSetting as error:
        setting = origin.settings.get(error.key)
        findings.problem(
            entry if setting is None else setting.entry, hide_values(error.allowed, origin.secrets)
        )
    return None


def review_of_classes(
    origins: Sequence[FlowSource], findings: Findings, *, strict: bool = False
) -> None:
    """Warn of settings of policies and filters that no class reads; in a `strict` configuration
    they are errors.

    MirrorMaker 2's own classes read only known keys. A setting at the top level may be for another
    flow, with a class of the user.
    """
    for family, plugin, key in (
        (POLICY_FAMILY, POLICY_PLUGIN, keys.POLICY),
        (GROUP_FILTER_FAMILY, GROUP_FILTER_PLUGIN, keys.GROUP_FILTER),
        (TOPIC_FILTER_FAMILY, TOPIC_FILTER_PLUGIN, keys.TOPIC_FILTER),
    ):
        found: dict[Entry, str] = {}
        taken: set[Entry] = set()
        for origin in origins:
            chosen = origin.value(key)
            for name, setting in origin.settings.items():
                if not (name.startswith(family) and may_be_of_a_class(name)):
                    continue
                if chosen in plugin.own:
                    found.setdefault(setting.entry, chosen.rpartition(".")[2])
                else:
                    taken.add(setting.entry)
        for entry, name in found.items():
            if entry not in taken:
                told = f"unknown to {name}; it has no effect"
                if strict:
                    findings.problem(entry, told, with_value=False)
                else:
                    findings.warning(entry, told)


def review_of_offset_syncs(origins: Sequence[FlowSource], findings: Findings) -> None:
    """Warn of settings with which MirrorMaker 2 itself refuses to run (its connector's
    validateEmitOffsetSyncConfigs), as it may use the same file."""
    for origin in origins:
        emits = origin.settings.get("emit.offset-syncs.enabled")
        if origin.dedicated and emits is not None and emits.value == "false":
            for name, setting in origin.settings.items():
                if name.startswith(("offset-syncs.topic.", "offset-syncs-")):
                    findings.warning(
                        setting.entry,
                        "MirrorMaker 2 (seen with 4.3.1) refuses to copy anything while this is set"
                        f" beside {emits.entry.key} = false; remove it",
                    )


def _entry_of(origin: FlowSource, key: Key[T]) -> Entry:
    """The key's entry; without one, an entry with its default and the file."""
    setting = origin.settings.get(key.name)
    return Entry(key.name, key.shown_default, origin.file) if setting is None else setting.entry
