"""What MirrorMaker 2 does for each flow, and which topics it uses for that."""

import shlex
from collections.abc import Iterator, Mapping

from tsoffset.commands.migrate.setup import ConnectorRole, Setup
from tsoffset.config.keys import BOOTSTRAP
from tsoffset.config.scopes import Setting, client_names, first_of, merge_settings, scoped_key
from tsoffset.config.security_keys import PROTOCOL
from tsoffset.flow.patterns import split_list
from tsoffset.flow.policy import internal_topics
from tsoffset.flow.settings import FlowSettings, Settings
from tsoffset.model import Side

_SYNC = "sync.group.offsets.enabled"


class MirrorFlow:
    """An enabled flow, and what MirrorMaker 2 does for it beside copying.

    `syncs`: it commits offsets of groups; `sync_entry` is the setting for that, if there is one.
    `offset_syncs_at` is the alias of the cluster with the offset-syncs topic, `topic_entries` the
    settings of that topic, which MirrorMaker 2 refuses once it writes no offset syncs.
    `connectors_topic` and `progress_topic`, on the target, hold the connectors' settings of a
    MirrorMaker 2 without Connect, and how far it has copied. `tools` are the options with which
    Kafka's tools connect to each cluster.
    """

    def __init__(self, setup: Setup, flow: FlowSettings, own: Mapping[str, Setting]) -> None:
        """`own` are the settings of the flow by their names in a connector."""
        self.name = flow.name
        self.source, self.target = flow.source.alias, flow.target.alias
        self.pair = self.source, self.target
        has = {
            role: not setup.connectors or any(setup.connectors_of(self.pair, role))
            for role in ConnectorRole
        }
        self.checkpoints = has[ConnectorRole.CHECKPOINT] and _says(
            own, "emit.checkpoints.enabled", "true", default=True
        )
        self.syncs = self.checkpoints and _says(own, _SYNC, "true", default=False)
        if setup.connectors and has[ConnectorRole.GROUP_OFFSET]:
            self.syncs = True
        self.sync_entry = own[_SYNC].entry if _SYNC in own else None
        self.offset_syncs = has[ConnectorRole.SOURCE] and _says(
            own, "emit.offset-syncs.enabled", "true", default=True
        )
        topics = internal_topics(flow.policy)
        self.checkpoints_topic = topics.checkpoints_topic(self.source)
        at_target = _says(own, "offset-syncs.topic.location", "target", default=False)
        self.offset_syncs_at = self.target if at_target else self.source
        self.offset_syncs_topic = topics.offset_syncs_topic(
            self.source if at_target else self.target
        )
        self.topic_entries = [
            setting.entry for name, setting in own.items() if name.startswith("offset-syncs.topic.")
        ]
        self.connectors_topic = self._worker_topic(own, "config")
        self.progress_topic = self._worker_topic(own, "offset")
        self.tools = {
            self.source: _tool_words(own, Side.SOURCE, self.source),
            self.target: _tool_words(own, Side.TARGET, self.target),
        }

    def _worker_topic(self, own: Mapping[str, Setting], kind: str) -> str:
        """As in MirrorMakerConfig.workerConfig: the target's setting, or one for all clusters."""
        name = f"{kind}.storage.topic"
        setting = first_of(own, f"target.cluster.{name}", name)
        return f"mm2-{kind}s.{self.source}.internal" if setting is None else setting.value


def mirror_flows(setup: Setup, settings: Settings) -> Iterator[MirrorFlow]:
    placed = {
        scoped_key(one.key, setup.clusters): Setting(one.entry, one.text.strip())
        for one in setup.settings
    }
    for flow in settings.flows:
        if flow.enabled:
            own = merge_settings(placed, flow.source.alias, flow.target.alias)
            yield MirrorFlow(setup, flow, own)


def _tool_words(own: Mapping[str, Setting], side: Side, alias: str) -> str:
    """`--bootstrap-server host:port`, and a client configuration if the cluster is secured."""
    brokers = first_of(own, *client_names(side, BOOTSTRAP.name))
    known = brokers is not None and "$" not in brokers.value
    address = split_list(brokers.value)[0] if brokers and known else f"{alias}:9092"
    protocol = first_of(own, *client_names(side, PROTOCOL.name))
    secured = protocol is not None and protocol.value.upper() != PROTOCOL.shown_default
    config = f" --command-config {shlex.quote(alias)}-client.properties" if secured else ""
    return f"--bootstrap-server {shlex.quote(address)}{config}"


def _says(own: Mapping[str, Setting], name: str, word: str, *, default: bool) -> bool:
    return own[name].value.lower() == word if name in own else default
