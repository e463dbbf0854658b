"""The steps of a migration, each with a command that checks it."""

import re
import shlex
from collections.abc import Iterator, Sequence

from rich.text import Text

from tsoffset.commands.migrate.flows import MirrorFlow
from tsoffset.commands.migrate.setup import Heading, InputKind
from tsoffset.commands.migrate.sorting import SYNC, TO_BE_CHANGED, MigrationPlan
from tsoffset.commands.migrate.ways import Command, Step, deletion, end, sync_off
from tsoffset.printable import printable
from tsoffset.terminal.output import counted
from tsoffset.terminal.report import head
from tsoffset.terminal.tables import wrapped

_REFERENCE = re.compile(r"\$\{env:([^$}]++)\}")


def steps_lines(migration: MigrationPlan, config: str, width: int | None) -> Iterator[Text]:
    names = ", ".join(flow.name for flow in migration.flows)
    yield head(f"From MirrorMaker 2 to tsoffset: {names}")
    tools = {alias: words for flow in migration.flows for alias, words in flow.tools.items()}
    secured = [alias for alias, words in tools.items() if "--command-config" in words]
    if secured:
        of = ", ".join(f"{alias}-client.properties" for alias in secured)
        sentence = "Put the client settings with which Kafka's tools connect to a cluster into"
        yield from wrapped(f"{sentence} {of}.", width, "")
    for number, step in enumerate(migration_steps(migration, config), 1):
        yield Text()
        yield head(f"{number}. {step.title}")
        for part in (*step.todo, "Check:", *step.check):
            if isinstance(part, Command):
                yield Text(f"     {printable(part)}")
            else:
                yield from wrapped(printable(part), width, "   ")


def migration_steps(migration: MigrationPlan, config: str) -> list[Step]:
    file = shlex.quote(config)
    flows = migration.flows
    steps = [_check_clusters(migration, config, file), _side_by_side(file)]
    if compared := [flow.name for flow in flows if flow.checkpoints]:
        steps.append(_compare(compared if len(compared) < len(flows) else [], file))
    syncing = [flow for flow in flows if flow.syncs]
    if syncing:
        steps.append(sync_off(migration.setup, syncing))
    steps.append(_sync_on(flows, syncing, config, file))
    ending = [flow for flow in flows if flow.checkpoints or flow.offset_syncs]
    if ending:
        steps += [end(migration.setup, ending), _delete(migration, ending, file)]
    return steps


def _check_clusters(migration: MigrationPlan, config: str, file: str) -> Step:
    texts = " ".join(setting.text for setting in migration.settings)
    variables = list(dict.fromkeys(_REFERENCE.findall(texts)))
    resource = migration.setup.resource
    refused = sum(one.heading is Heading.REFUSED for one in migration.omitted)
    todo = [f"Read {config}: its comments say what has changed, and what was not taken over."]
    if migration.problems:
        todo.append(f"Change what is marked {TO_BE_CHANGED.rstrip(':')} in it.")
    if refused:
        settings = counted(refused, "setting")
        todo.append(f"Check whether you need what was not taken over ({settings}).")
    if variables:
        todo.append(f"Set the environment variables that it names: {', '.join(variables)}.")
    if resource is not None and resource.secrets:
        todo.append(f"Mount the secrets that it names: {', '.join(resource.secrets)}.")
    return Step(
        "Check both clusters",
        tuple(todo),
        (
            Command(f"tsoffset check -c {file}"),
            "Continue when it finds no error. It writes nothing. The warning that nothing is"
            " committed yet is expected.",
        ),
    )


def _side_by_side(file: str) -> Step:
    return Step(
        "Run side by side",
        (
            "Set state.dir and history.dir, which a failover needs: the configuration suggests"
            " both, commented out.",
            "tsoffset only plans now, and MirrorMaker 2 keeps committing:",
            Command(f"tsoffset run -c {file}"),
        ),
        (
            Command(f"tsoffset plan -c {file}"),
            "Continue when no row failed, and you know why each skipped row was skipped (see its"
            " reason, and the sentence below the table).",
        ),
    )


def _compare(flows: Sequence[str], file: str) -> Step:
    """`flows` are those with checkpoints; empty if all have them."""
    words = "".join(f" --flow {shlex.quote(flow)}" for flow in flows)
    return Step(
        "Compare until it is green",
        ("For each group, compare MirrorMaker 2's newest checkpoint and tsoffset's translation.",),
        (
            Command(f"tsoffset compare -c {file}{words}"),
            "Green means: exit status 0, MirrorMaker 2 has 0 unsafe, and tsoffset is exact in all"
            " group-partitions except those whose reason you know from `plan`. Records that"
            " MirrorMaker 2 re-reads, and group-partitions without a checkpoint, are the reason to"
            " migrate.",
        ),
    )


def _sync_on(
    flows: Sequence[MirrorFlow], syncing: Sequence[MirrorFlow], config: str, file: str
) -> Step:
    # A snapshot is of one flow.
    chosen = [f" --flow {shlex.quote(flow.name)}" for flow in flows] if len(flows) > 1 else [""]
    todo: list[str] = [
        "Save the groups' committed offsets on the target; without it no group can be moved back:",
        *(Command(f"tsoffset snapshot -c {file}{words}") for words in chosen),
        f"Set this in {config} (a running tsoffset reloads it within two seconds):",
        *(Command(f"{flow.name}.{SYNC} = true") for flow in flows),
    ]
    others = [flow.name for flow in flows if flow not in syncing]
    if others:
        todo.append(
            f"MirrorMaker 2 does not commit for {', '.join(others)}: leave it false if no tool"
            " should commit, for example because consumers translate offsets themselves."
        )
    return Step(
        "Switch tsoffset's sync on",
        tuple(todo),
        (
            Command(f"tsoffset sync -c {file}"),
            Command(f"tsoffset plan -c {file}"),
            "Continue when the first has exit status 0, and the second has nothing to commit,"
            " except for groups that committed in between. To go back, reverse both switches:"
            " neither tool moves a group backwards.",
        ),
    )


def _delete(migration: MigrationPlan, flows: Sequence[MirrorFlow], file: str) -> Step:
    todo: list[str] = ["When you no longer want to go back:"]
    unwanted: dict[tuple[str, str], str] = {}
    for flow in flows:
        at = flow.offset_syncs_at
        unwanted[at, flow.offset_syncs_topic] = flow.tools[at]
        if flow.checkpoints:
            unwanted[flow.target, flow.checkpoints_topic] = flow.tools[flow.target]
    todo += (deletion(words, topic) for (_, topic), words in unwanted.items())
    kept = "the offset.storage.topic of your Connect workers"
    if migration.setup.kind is InputKind.DEDICATED:
        kept = " and ".join(dict.fromkeys(flow.progress_topic for flow in flows))
    elif migration.setup.resource is not None:
        kept = migration.setup.resource.progress_topic
    todo.append(
        f"Keep {kept}: MirrorMaker 2 stores its progress there, and would copy everything again"
        " without it. Its other topics and its heartbeats stay in use, too."
    )
    lists = dict.fromkeys(unwanted.values())
    return Step(
        "Delete the topics that are no longer read",
        tuple(todo),
        (
            *(Command(f"kafka-topics.sh {words} --list") for words in lists),
            Command(f"tsoffset plan -c {file}"),
            "The topics do not come back, and the plan is unchanged.",
        ),
    )
