"""What MirrorMaker 2 does for each flow, and which topics it uses for that."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tsoffset.commands.migrate.setup import ConnectorRole, Setup
from tsoffset.config.findings import Entry
from tsoffset.config.keys import BOOTSTRAP
from tsoffset.config.review import TOP_NAMES
from tsoffset.config.scopes import Setting, client_names, first_of, merge_settings, scoped_key
from tsoffset.config.security_keys import PROTOCOL
from tsoffset.flow.patterns import split_list
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import Settings
from tsoffset.model import Side

_SYNC = "sync.group.offsets.enabled"
_CHECKPOINTS = "emit.checkpoints.enabled"
_OFFSET_SYNCS = "emit.offset-syncs.enabled"
_LOCATION = "offset-syncs.topic.location"


@dataclass(frozen=True, slots=True)
class MirrorFlow:
    """An enabled flow, and what MirrorMaker 2 does for it beside copying.

    `syncs`: it commits offsets of groups; `sync_entry` is the setting for that, if there is one.
    `offset_syncs_at` is the alias of the cluster with the offset-syncs topic, `topic_entries` the
    settings of that topic, which MirrorMaker 2 refuses once it writes no offset syncs.
    `connectors_topic` and `progress_topic`, on the target, hold the connectors' settings of a
    MirrorMaker 2 without Connect, and how far it has copied. `tools` are the options with which
    Kafka's tools connect to each cluster.
    """

    source: str
    target: str
    syncs: bool
    sync_entry: Entry | None
    checkpoints: bool
    offset_syncs: bool
    checkpoints_topic: str
    offset_syncs_topic: str
    offset_syncs_at: str
    topic_entries: tuple[Entry, ...]
    connectors_topic: str
    progress_topic: str
    tools: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def pair(self) -> tuple[str, str]:
        return self.source, self.target


def mirror_flows(setup: Setup, settings: Settings) -> Iterator[MirrorFlow]:
    placed = {
        scoped_key(one.key, setup.clusters, TOP_NAMES): Setting(one.entry, one.text.strip())
        for one in setup.settings
    }
    for flow in settings.flows:
        if not flow.enabled:
            continue
        source, target = flow.source.alias, flow.target.alias
        own = merge_settings(placed, source, target)
        topics = internal_topics(flow.policy)
        at_target = _says(own, _LOCATION, "target", default=False)
        has = {
            role: not setup.connectors or any(setup.connectors_of((source, target), role))
            for role in ConnectorRole
        }
        sync = own.get(_SYNC)
        emits = has[ConnectorRole.CHECKPOINT] and _says(own, _CHECKPOINTS, "true", default=True)
        commits = emits and _says(own, _SYNC, "true", default=False)
        yield MirrorFlow(
            source,
            target,
            commits or (bool(setup.connectors) and has[ConnectorRole.GROUP_OFFSET]),
            None if sync is None else sync.entry,
            emits,
            has[ConnectorRole.SOURCE] and _says(own, _OFFSET_SYNCS, "true", default=True),
            topics.checkpoints_topic(source),
            topics.offset_syncs_topic(source if at_target else target),
            target if at_target else source,
            tuple(
                setting.entry
                for name, setting in own.items()
                if name.startswith("offset-syncs.topic.")
            ),
            _worker_topic(own, "config.storage.topic", f"mm2-configs.{source}.internal"),
            _worker_topic(own, "offset.storage.topic", f"mm2-offsets.{source}.internal"),
            {
                source: _tool_words(own, Side.SOURCE, source),
                target: _tool_words(own, Side.TARGET, target),
            },
        )


def _worker_topic(own: Mapping[str, Setting], name: str, default: str) -> str:
    """As in MirrorMakerConfig.workerConfig: the target's setting, or one for all clusters."""
    setting = first_of(own, f"target.cluster.{name}", name)
    return default if setting is None else setting.value


def _tool_words(own: Mapping[str, Setting], side: Side, alias: str) -> str:
    """`--bootstrap-server host:port`, and a client configuration if the cluster is secured."""
    brokers = first_of(own, *client_names(side, BOOTSTRAP.name))
    known = brokers is not None and "$" not in brokers.value
    address = split_list(brokers.value)[0] if brokers and known else f"{alias}:9092"
    protocol = first_of(own, *client_names(side, PROTOCOL.name))
    secured = protocol is not None and protocol.value.upper() != PROTOCOL.shown_default
    return " ".join(
        [
            f"--bootstrap-server {shlex.quote(address)}",
            *([f"--command-config {shlex.quote(alias)}-client.properties"] if secured else []),
        ]
    )


def _says(own: Mapping[str, Setting], name: str, word: str, *, default: bool) -> bool:
    return own[name].value.lower() == word if name in own else default
