"""The steps of a migration, each with a command that checks it; `steps.txt` is their text.

MirrorMaker 2 refuses a checkpoint connector with `emit.checkpoints.enabled = false`, and a source
connector with settings of the offset-syncs topic and `emit.offset-syncs.enabled = false`
(MirrorCheckpointConfig and MirrorSourceConnector of 4.3.1). A MirrorMaker 2 without Connect then
keeps running with its last settings. So the steps switch its sync off first, by
`sync.group.offsets.enabled`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from tsoffset.commands.migrate.flows import MirrorFlow
from tsoffset.commands.migrate.setup import Connector, ConnectorRole, Heading, InputKind, Setup
from tsoffset.commands.migrate.sorting import SYNC, MigrationPlan
from tsoffset.terminal.report import head
from tsoffset.terminal.tables import wrap
from tsoffset.terminal.templates import rendered_lines

_REFERENCE = re.compile(r"\$\{env:([^$}]++)\}")


class Command(str):
    """A command line, among sentences."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Step:
    title: str
    todo: list[str]
    check: list[str]


def steps_lines(migration: MigrationPlan, config: str, width: int | None) -> Iterator[Text]:
    names = ", ".join(flow.name for flow in migration.flows)
    yield head(f"From MirrorMaker 2 to tsoffset: {names}")
    tools = {alias: words for flow in migration.flows for alias, words in flow.tools.items()}
    secured = [alias for alias, words in tools.items() if "--command-config" in words]
    if secured:
        of = ", ".join(f"{alias}-client.properties" for alias in secured)
        sentence = "Put the client settings with which Kafka's tools connect to a cluster into"
        yield from wrap(f"{sentence} {of}.", width, "")
    for number, step in enumerate(migration_steps(migration, config), 1):
        yield Text()
        yield head(f"{number}. {step.title}")
        for part in (*step.todo, "Check:", *step.check):
            if isinstance(part, Command):
                yield Text(f"     {part}")
            else:
                yield from wrap(part, width, "   ")


def migration_steps(migration: MigrationPlan, config: str) -> list[Step]:
    """The steps, with control characters escaped; `config` is the file for tsoffset."""
    steps: list[Step] = []
    parts: list[str] = []
    for line in _lines(migration, config):
        if line.startswith("# "):
            step = Step(line[2:], [], [])
            steps.append(step)
            parts = step.todo
        elif line == "Check:":
            parts = step.check
        elif line.startswith("$ "):
            parts.append(Command(line[2:]))
        else:
            parts.append(line)
    return steps


def _lines(migration: MigrationPlan, config: str) -> list[str]:
    setup, flows = migration.setup, migration.flows
    texts = " ".join(setting.text for setting in migration.settings)
    syncing = [flow for flow in flows if flow.syncs]
    ending = [flow for flow in flows if flow.checkpoints or flow.offset_syncs]
    # By the options of Kafka's tools and topic: whether MirrorMaker 2 writes the topic now.
    topics: dict[tuple[str, str], bool] = {}
    for flow in ending:
        of_flow = [(flow.offset_syncs_at, flow.offset_syncs_topic, flow.offset_syncs)]
        if flow.checkpoints:
            of_flow.append((flow.target, flow.checkpoints_topic, True))
        for at, topic, is_written in of_flow:
            key = flow.tools[at], topic
            topics[key] = is_written or topics.get(key, False)
    return rendered_lines(
        "tsoffset.commands.migrate",
        "steps.txt",
        migration=migration,
        setup=setup,
        config=config,
        flows=flows,
        compared=tuple(flow for flow in flows if flow.checkpoints),
        syncing=syncing,
        not_syncing=[flow.name for flow in flows if not flow.syncs],
        ending=ending,
        topics=topics,
        progress_topics=dict.fromkeys(flow.progress_topic for flow in ending),
        topic_entries=dict.fromkeys(entry for flow in ending for entry in flow.topic_entries),
        refused=sum(one.heading is Heading.REFUSED for one in migration.omitted),
        variables=dict.fromkeys(_REFERENCE.findall(texts)),
        connectors=lambda flow, role: list(setup.connectors_of(flow.pair, role)),
        sync_patch=json.dumps([*_sync_patches(setup, syncing)]),
        end_patch=json.dumps([*_end_patches(setup, ending)]),
        kinds=InputKind,
        roles=ConnectorRole,
    )


def _sync_patches(setup: Setup, flows: Sequence[MirrorFlow]) -> Iterator[dict[str, Any]]:
    """For Kubernetes' resource: switches the checkpoint connectors' sync off."""
    for flow in flows:
        for one in setup.connectors_of(flow.pair, ConnectorRole.CHECKPOINT):
            yield _disable(one, "checkpointConnector", SYNC)


def _end_patches(setup: Setup, flows: Sequence[MirrorFlow]) -> Iterator[dict[str, Any]]:
    """Switches checkpoints and offset syncs off."""
    for flow in flows:
        for one in setup.connectors_of(flow.pair, ConnectorRole.CHECKPOINT):
            yield {"op": "remove", "path": f"/spec/mirrors/{one.at}/checkpointConnector"}
        for one in setup.connectors_of(flow.pair, ConnectorRole.SOURCE):
            yield _disable(one, "sourceConnector", "emit.offset-syncs.enabled")
            prefix = f"spec.mirrors[{one.at}].sourceConnector.config."
            for entry in flow.topic_entries:
                if entry.key.startswith(prefix):
                    name = entry.key.removeprefix(prefix)
                    path = f"/spec/mirrors/{one.at}/sourceConnector/config/{name}"
                    yield {"op": "remove", "path": path}


def _disable(connector: Connector, field: str, name: str) -> dict[str, Any]:
    """The patch that sets a connector's setting to false, with or without a `config` there."""
    config = f"/spec/mirrors/{connector.at}/{field}/config"
    if connector.has_config:
        return {"op": "add", "path": f"{config}/{name}", "value": False}
    return {"op": "add", "path": config, "value": {name: False}}
