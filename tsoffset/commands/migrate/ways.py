"""How MirrorMaker 2 is reconfigured in a migration: by its own file, Connect's REST API, or a
Strimzi resource.

It refuses a checkpoint connector with `emit.checkpoints.enabled = false`, and a source connector
with settings of the offset-syncs topic and `emit.offset-syncs.enabled = false`
(MirrorCheckpointConfig and MirrorSourceConnector of 4.3.1). With its own file it then keeps running
with its last settings, so its sync is switched off first, by a setting of its own.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tsoffset.commands.migrate.flows import MirrorFlow
from tsoffset.commands.migrate.setup import Connector, ConnectorRole, InputKind, Setup
from tsoffset.commands.migrate.sorting import SYNC
from tsoffset.config.findings import Entry


class Command(str):
    """A command line, among sentences."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    todo: tuple[str, ...]
    check: tuple[str, ...]


def deletion(words: str, topic: str) -> Command:
    """Delete a topic on the cluster of `words`. Kafka's tool takes a regular expression."""
    pattern = topic.replace(".", r"\.")
    return Command(f"kafka-topics.sh {words} --delete --topic {shlex.quote(pattern)}")


_CONNECT = "http://localhost:8083"
_CHECKPOINTS = "emit.checkpoints.enabled"
_OFFSET_SYNCS = "emit.offset-syncs.enabled"
_IN_THE_LOG = Command(
    "grep -E 'connector configured|already up to date|Failed to configure'"
    " THE_LOG_OF_MIRROR_MAKER_2"
)
_WAIT_FOR_READERS = (
    "Wait until nothing reads checkpoints any more. `tsoffset compare` reads them, and consumers"
    " that call RemoteClusterUtils.translateOffsets."
)


def sync_off(setup: Setup, flows: Sequence[MirrorFlow]) -> Step:
    """The step after which MirrorMaker 2 commits for no group."""
    match setup.kind:
        case InputKind.DEDICATED:
            return _sync_off_in_file(setup, flows)
        case InputKind.CONNECTORS:
            return _sync_off_in_connect(setup, flows)
        case InputKind.STRIMZI:
            return _sync_off_in_strimzi(setup, flows)


def end(setup: Setup, flows: Sequence[MirrorFlow]) -> Step:
    """The step after which MirrorMaker 2 writes neither checkpoints nor offset syncs."""
    match setup.kind:
        case InputKind.DEDICATED:
            todo, check = _end_in_file(setup, flows)
        case InputKind.CONNECTORS:
            todo, check = _end_in_connect(setup, flows)
        case InputKind.STRIMZI:
            todo, check = _end_in_strimzi(setup, flows)
    topics = {
        (flow.tools[at], topic)
        for flow in flows
        for at, topic, is_written in (
            (flow.target, flow.checkpoints_topic, flow.checkpoints),
            (flow.offset_syncs_at, flow.offset_syncs_topic, flow.offset_syncs),
        )
        if is_written
    }
    check += (
        Command(f"kafka-get-offsets.sh {words} --topic {shlex.quote(topic)}")
        for words, topic in sorted(topics)
    )
    check.append(
        "Run it twice, a minute apart: the ends do not change, while records are still copied."
    )
    title = "Switch checkpoints and offset syncs off"
    return Step(title, (_WAIT_FOR_READERS, *todo), tuple(check))


# --- a file of its own, which takes a restart -------------------------------------------------


def _sync_off_in_file(setup: Setup, flows: Sequence[MirrorFlow]) -> Step:
    return Step(
        "Switch the checkpoint connector's sync off",
        (
            f"Change this in {setup.file}, and do not change {_CHECKPOINTS} yet."
            " MirrorMaker 2 (seen with 4.3.1) refuses false there, and keeps running with its"
            " last settings, its sync included.",
            *(part for flow in flows for part in _sync_lines(flow, flow.sync_entry)),
            "Restart every node of MirrorMaker 2:",
            Command(f"connect-mirror-maker.sh {shlex.quote(setup.file)}"),
        ),
        (
            _IN_THE_LOG,
            "The log has `MirrorCheckpointConnector connector configured`, and no error. While"
            " it starts, one more sync with the old settings is possible.",
        ),
    )


def _sync_lines(flow: MirrorFlow, entry: Entry | None) -> Iterator[str]:
    own = f"{flow.name}.{SYNC}"
    yield Command(f"{own} = false")
    if entry and entry.key == own:
        # A sentence of its own: in a properties file, a comment behind the value belongs to it.
        yield f"It replaces line {entry.line}."


def _end_in_file(setup: Setup, flows: Sequence[MirrorFlow]) -> tuple[list[str], list[str]]:
    todo = [
        f"In {setup.file}:",
        *(
            Command(f"{flow.name}.{name} = false")
            for flow in flows
            for name in (_CHECKPOINTS, _OFFSET_SYNCS)
        ),
    ]
    if entries := dict.fromkeys(entry for flow in flows for entry in flow.topic_entries):
        todo.append(
            "Remove these lines: MirrorMaker 2 (seen with 4.3.1) refuses to copy anything while"
            f" one of them is set and {_OFFSET_SYNCS} is false."
        )
        todo += (
            Command(one.key if one.line is None else f"line {one.line}: {one.key}")
            for one in entries
        )
    todo.append(
        "Stop every node of MirrorMaker 2, and delete the topic with its connectors' settings."
        " Otherwise it keeps the old checkpoint connector, since it refuses the new settings."
        " It writes that topic again. How far it has copied is stored in another topic."
    )
    todo += (deletion(flow.tools[flow.target], flow.connectors_topic) for flow in flows)
    todo += ("Start it again:", Command(f"connect-mirror-maker.sh {shlex.quote(setup.file)}"))
    expected = (
        "`MirrorSourceConnector connector configured`. `Failed to configure"
        " MirrorCheckpointConnector` is expected."
    )
    return todo, [_IN_THE_LOG, expected]


# --- connectors in Connect, by its REST API ---------------------------------------------------


def _sync_off_in_connect(setup: Setup, flows: Sequence[MirrorFlow]) -> Step:
    todo = [
        f"{_CONNECT} is the address of a Connect worker. If a service runs Connect for you,"
        " change the connector's configuration there."
    ]
    check: list[str] = []
    for flow in flows:
        for one in setup.connectors_of(flow.pair, ConnectorRole.CHECKPOINT):
            todo.append(_change_config(one.name, f'. + {{"{SYNC}": "false"}}'))
            check.append(Command(f"curl -s {_url(one.name)}/config | jq '.\"{SYNC}\"'"))
            check.append('It answers "false".')
        for one in setup.connectors_of(flow.pair, ConnectorRole.GROUP_OFFSET):
            url = _url(one.name)
            todo.append(Command(f"curl -s -X DELETE {url}"))
            check.append(Command(f"curl -s -o /dev/null -w '%{{http_code}}\\n' {url}"))
            check.append("It answers 404: the connector is gone.")
    return Step("Switch MirrorMaker 2's sync off", tuple(todo), tuple(check))


def _end_in_connect(setup: Setup, flows: Sequence[MirrorFlow]) -> tuple[list[str], list[str]]:
    todo: list[str] = []
    check: list[str] = []
    for flow in flows:
        for one in setup.connectors_of(flow.pair, ConnectorRole.CHECKPOINT):
            todo.append(Command(f"curl -s -X DELETE {_url(one.name)}"))
        sources = [one.name for one in setup.connectors_of(flow.pair, ConnectorRole.SOURCE)]
        if not sources:
            todo.append(
                f"Do the following for the connector that copies {flow.name}, too; its"
                " configuration was not among the inputs:"
            )
        for name in sources or ["SOURCE_CONNECTOR"]:
            change = 'with_entries(select(.key | startswith("offset-syncs") | not))'
            todo.append(_change_config(name, f'{change} + {{"{_OFFSET_SYNCS}": "false"}}'))
            state = "'.connector.state, .tasks[].state'"
            check.append(Command(f"curl -s {_url(name)}/status | jq -r {state}"))
    todo.append(
        "This removes the settings that begin with offset-syncs: MirrorMaker 2 (seen with"
        f" 4.3.1) refuses them if {_OFFSET_SYNCS} is false."
    )
    return todo, [*check, "The connector and all its tasks are RUNNING."]


def _url(connector: str) -> str:
    return shlex.quote(f"{_CONNECT}/connectors/{connector}")


def _change_config(connector: str, change: str) -> Command:
    config = f"{_url(connector)}/config"
    put = "curl -s -X PUT -H 'Content-Type: application/json' --data @-"
    return Command(f"curl -s {config} | jq {shlex.quote(change)} | {put} {config}")


# --- a Strimzi resource -----------------------------------------------------------------------


def _sync_off_in_strimzi(setup: Setup, flows: Sequence[MirrorFlow]) -> Step:
    patches = [
        _disable(one, "checkpointConnector", SYNC)
        for flow in flows
        for one in setup.connectors_of(flow.pair, ConnectorRole.CHECKPOINT)
    ]
    path = "{.spec.mirrors[*].checkpointConnector.config}"
    return Step(
        "Switch the checkpoint connector's sync off",
        (
            "Patch the resource, and change the file that it is applied from:",
            _patch(setup, patches),
        ),
        (
            Command(f"kubectl get {_resource(setup)} -o jsonpath='{path}'"),
            f"It prints {SYNC}: false.",
            *_running(setup),
        ),
    )


def _end_in_strimzi(setup: Setup, flows: Sequence[MirrorFlow]) -> tuple[list[str], list[str]]:
    patches = []
    for flow in flows:
        for one in setup.connectors_of(flow.pair, ConnectorRole.CHECKPOINT):
            path = f"/spec/mirrors/{one.at}/checkpointConnector"
            patches.append({"op": "remove", "path": path})
        for one in setup.connectors_of(flow.pair, ConnectorRole.SOURCE):
            patches.append(_disable(one, "sourceConnector", _OFFSET_SYNCS))
            config = f"/spec/mirrors/{one.at}/sourceConnector/config"
            patches += (
                {"op": "remove", "path": f"{config}/{entry.key.partition('.config.')[2]}"}
                for entry in flow.topic_entries
                if entry.key.startswith(f"spec.mirrors[{one.at}].sourceConnector.")
            )
    todo = (
        "Patch the resource, and change the file that it is applied from. Remove settings"
        " that begin with offset-syncs.topic: MirrorMaker 2 (seen with 4.3.1) refuses them"
        f" if {_OFFSET_SYNCS} is false."
    )
    return [todo, _patch(setup, patches)], list(_running(setup))


def _resource(setup: Setup) -> str:
    resource = setup.resource
    assert resource is not None
    namespace = "" if resource.namespace is None else f" -n {shlex.quote(resource.namespace)}"
    return f"kafkamirrormaker2 {shlex.quote(resource.name)}{namespace}"


def _patch(setup: Setup, patches: Sequence[dict[str, Any]]) -> Command:
    text = shlex.quote(json.dumps(patches))
    return Command(f"kubectl patch {_resource(setup)} --type=json -p {text}")


def _running(setup: Setup) -> Iterator[str]:
    states = '{range .status.connectors[*]}{.name}{" "}{.connector.state}{"\\n"}{end}'
    yield Command(f"kubectl get {_resource(setup)} -o jsonpath='{states}'")
    yield "Every connector is RUNNING."


def _disable(connector: Connector, field: str, name: str) -> dict[str, Any]:
    """The patch that sets a connector's setting to false, with or without a `config` there."""
    config = f"/spec/mirrors/{connector.at}/{field}/config"
    if connector.has_config:
        return {"op": "add", "path": f"{config}/{name}", "value": False}
    return {"op": "add", "path": config, "value": {name: False}}
