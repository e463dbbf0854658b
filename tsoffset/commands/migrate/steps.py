"""The migration in steps, each with the command that checks it."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from tsoffset.commands.migrate.flows import MirrorFlow
from tsoffset.commands.migrate.setup import Heading, Kind
from tsoffset.commands.migrate.sorting import SYNC, TO_BE_CHANGED, Migration
from tsoffset.commands.migrate.step import Command, Step, deletion
from tsoffset.commands.migrate.ways import way_of
from tsoffset.printable import printable
from tsoffset.terminal.output import counted
from tsoffset.terminal.report import head
from tsoffset.terminal.tables import wrapped

_REFERENCE = re.compile(r"\$\{env:([^$}]++)\}")


def steps_lines(migration: Migration, config: str, width: int | None) -> Iterator[Text]:
    """All steps for a person. `config` is the file that our configuration is in."""
    names = ", ".join(flow.name for flow in migration.flows)
    yield head(f"From MirrorMaker 2 to tsoffset: {names}")
    if secured := [
        name for name, words in _tools(migration).items() if "--command-config" in words
    ]:
        of = ", ".join(f"{name}-client.properties" for name in secured)
        yield from wrapped(f"What Kafka's tools need to enter a cluster stands in {of}.", width, "")
    for number, step in enumerate(migration_steps(migration, config), 1):
        yield Text()
        yield head(f"{number}. {step.title}")
        yield from _told(step.todo, width)
        yield from _told(("Check:", *step.check), width)


def _tools(migration: Migration) -> dict[str, str]:
    """The words by which Kafka's tools reach each cluster."""
    return {alias: words for flow in migration.flows for alias, words in flow.tools.items()}


def _told(parts: Iterable[str | Command], width: int | None) -> Iterator[Text]:
    for part in parts:
        if isinstance(part, Command):
            yield Text(f"     {printable(part.text)}")
        else:
            yield from wrapped(printable(part), width, "   ")


def migration_steps(migration: Migration, config: str) -> list[Step]:
    """The steps, in their order."""
    file = shlex.quote(config)
    flows = migration.flows
    steps = [_look(migration, config, file), _side_by_side(file)]
    if compared := [flow for flow in flows if flow.checkpoints]:
        some = compared if len(compared) < len(flows) else []
        steps.append(_compare([flow.name for flow in some], file))
    syncing = [flow for flow in flows if flow.syncs]
    way = way_of(migration)
    if syncing:
        steps.append(way.sync_off(syncing))
    steps.append(_sync_on(flows, syncing, config, file))
    ending = [flow for flow in flows if flow.checkpoints or flow.offset_syncs]
    if ending:
        steps += [way.end(ending), _delete(migration, ending, file)]
    return steps


# --- what is the same for all --------------------------------------------------------------


def _look(migration: Migration, config: str, file: str) -> Step:
    texts = " ".join(moved.text for moved in migration.taken)
    variables = list(dict.fromkeys(_REFERENCE.findall(texts)))
    resource = migration.setup.resource
    refused = sum(left.heading is Heading.REFUSED for left in migration.left)
    todo = [f"Read {config}: its comments say what has changed, and what was not taken over."]
    if migration.problems:
        todo.append(f"Change what is marked {TO_BE_CHANGED.rstrip(':')} in it.")
    if refused:
        todo.append(f"See whether what was not taken over matters ({counted(refused, 'setting')}).")
    if variables:
        todo.append(f"Set the environment variables that it names: {', '.join(variables)}.")
    if resource is not None and resource.secrets:
        todo.append(f"Mount the secrets that it names: {', '.join(resource.secrets)}.")
    return Step(
        "Look at both clusters",
        tuple(todo),
        (
            Command(f"tsoffset check -c {file}"),
            "Go on when it finds no error. Nothing is written; that nothing is committed yet is a"
            " warning, as it should be.",
        ),
    )


def _side_by_side(file: str) -> Step:
    return Step(
        "Run side by side",
        (
            "Set state.dir and history.dir, which a failover needs: the configuration suggests"
            " both, commented out.",
            "tsoffset only plans now, and MirrorMaker 2 goes on as before:",
            Command(f"tsoffset run -c {file}"),
        ),
        (
            Command(f"tsoffset plan -c {file}"),
            "Go on when no row failed, and you know why each skipped one is (its reason, and the"
            " sentence below the table).",
        ),
    )


def _compare(flows: Sequence[str], file: str) -> Step:
    """`flows` are those that have checkpoints, none where all have."""
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
    todo: list[str | Command] = [
        "Keep what the groups have on the target now; it is the only way backwards:",
        Command(f"tsoffset snapshot -c {file}"),
        f"In {config} (a running tsoffset takes it up within two seconds):",
        *(Command(f"{flow.name}.{SYNC} = true") for flow in flows),
    ]
    others = [flow.name for flow in flows if flow not in syncing]
    if others:
        todo.append(
            f"MirrorMaker 2 does not commit for {', '.join(others)}: leave it false where nobody is"
            " to, for example where consumers translate offsets themselves."
        )
    return Step(
        "Switch tsoffset's sync on",
        tuple(todo),
        (
            Command(f"tsoffset sync -c {file}"),
            Command(f"tsoffset plan -c {file}"),
            "Go on when the first has exit status 0, and the second has nothing to commit but for"
            " groups that moved in between. The way back is both switches the other way round:"
            " neither side moves a group backwards.",
        ),
    )


def _delete(migration: Migration, flows: Sequence[MirrorFlow], file: str) -> Step:
    todo: list[str | Command] = ["Once nobody wants to go back:"]
    unwanted: dict[tuple[str, str], str] = {}
    for flow in flows:
        at = flow.offset_syncs_at
        unwanted[at, flow.offset_syncs_topic] = flow.tools[at]
        if flow.checkpoints:
            unwanted[flow.target, flow.checkpoints_topic] = flow.tools[flow.target]
    todo += (deletion(words, topic) for (_, topic), words in unwanted.items())
    kept = " and ".join(dict.fromkeys(_progress(migration, flows)))
    todo.append(
        f"Keep {kept}: MirrorMaker 2 keeps there how far it has copied, and without it copies"
        " everything again. The other topics of its own, and heartbeats, stay in use, too."
    )
    lists = dict.fromkeys(unwanted.values())
    return Step(
        "Delete what nobody reads any more",
        tuple(todo),
        (
            *(Command(f"kafka-topics.sh {words} --list") for words in lists),
            Command(f"tsoffset plan -c {file}"),
            "The topics stay away, and the plan is as before.",
        ),
    )


def _progress(migration: Migration, flows: Sequence[MirrorFlow]) -> Iterator[str]:
    """Where MirrorMaker 2 keeps how far it has copied."""
    match migration.setup.kind:
        case Kind.DEDICATED:
            yield from (flow.progress_topic for flow in flows)
        case Kind.CONNECTORS:
            yield "the offset.storage.topic of your Connect workers"
        case Kind.STRIMZI:
            assert migration.setup.resource is not None
            yield migration.setup.resource.progress_topic
