"""What becomes of each setting: taken over, changed, or left with a reason.

What is known is said by the tables of `tsoffset.config`, and read by its reader, so that what comes
out is what `tsoffset` takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tsoffset.commands.migrate.flows import MirrorFlow, mirror_flows
from tsoffset.commands.migrate.secrets import without_secret
from tsoffset.commands.migrate.setup import CLUSTERS, Heading, Left, Moved, Setup
from tsoffset.config import keys
from tsoffset.config.accepted import accepted_key
from tsoffset.config.findings import Entry, Findings
from tsoffset.config.key_table import Key
from tsoffset.config.loading import Configuration, settings_of
from tsoffset.config.plugins import (
    GROUP_FILTER_PLUGIN,
    IDENTITY_POLICY,
    POLICY_PLUGIN,
    TOPIC_FILTER_PLUGIN,
    Plugin,
    python_class,
)
from tsoffset.config.review import TOP_NAMES, find_key, is_of_file, may_be_of_a_class
from tsoffset.config.scopes import CLIENT_PREFIX, ScopedKey, scoped_key
from tsoffset.errors import ConfigurationError, Problem
from tsoffset.flow.settings import Settings
from tsoffset.printable import printable

SYNC = "sync.group.offsets.enabled"
TO_BE_CHANGED = "HAS TO BE CHANGED:"
_CHANGES = {
    "sync.group.offsets.interval.seconds": (
        "tsoffset translates in every cycle; MirrorMaker 2 commits its last checkpoints."
    ),
    "tasks.max": "Maximum number of tasks of a cycle; MirrorMaker 2 divides the groups among them.",
    "client.id": "tsoffset uses this name, too, so both share the quotas of this client id.",
}
_PLUGINS: dict[str, Plugin[Any]] = {
    keys.POLICY.name: POLICY_PLUGIN,
    keys.GROUP_FILTER.name: GROUP_FILTER_PLUGIN,
    keys.TOPIC_FILTER.name: TOPIC_FILTER_PLUGIN,
}


@dataclass(frozen=True, slots=True)
class Migration:
    """All that a migration consists of. `taken` is our configuration in the order of the input;
    `flows` are those that are on. `problems` are what has to be changed in `taken` before
    tsoffset takes it. `warnings` name the users' classes that tsoffset would load."""

    setup: Setup
    taken: tuple[Moved, ...]
    left: tuple[Left, ...]
    flows: tuple[MirrorFlow, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


def migration_of(setup: Setup) -> Migration:
    """What becomes of the setup. Raises ConfigurationError where no configuration comes of it, not
    even one that has to be changed here and there."""
    settings, problems = _resolved(setup)
    taken: list[Moved] = []
    left = list(setup.left)
    marked: list[Problem] = []
    warnings: list[str] = []
    for moved in setup.moved:
        place = scoped_key(moved.key, setup.clusters, TOP_NAMES)
        if place.name == SYNC:
            continue  # told where ours is
        if (found := _left(moved, place)) is not None:
            left.append(found)
            continue
        wrong = [one for one in problems if (one.key, one.line) == (moved.key, moved.entry.line)]
        marked += wrong
        not_loaded = None if wrong else _not_loaded(moved, place)
        if not_loaded is not None:
            warnings.append(f"{moved.entry.location}: {printable(moved.entry.key)}: {not_loaded}")
        taken.append(_as_ours(moved, place, wrong, not_loaded, setup))
    problems = [problem for problem in problems if problem not in marked]
    flows = tuple(mirror_flows(setup, settings))
    if not flows and not problems:
        allowed = "must be true for some flow: with this file MirrorMaker 2 copies nothing"
        problems.append(Problem(f"A->B.{keys.ENABLED.name}", None, allowed, setup.file))
    if problems:
        raise ConfigurationError((*problems, *marked))
    taken += (_not_yet(setup, flow) for flow in flows)
    return Migration(setup, tuple(taken), tuple(left), flows, tuple(marked), tuple(warnings))


def _resolved(setup: Setup) -> tuple[Settings, list[Problem]]:
    """The settings as our loader reads them, and what it refuses. What stands behind a reference
    may be known only where tsoffset is going to run: that it is missing here is no problem."""
    listed = Entry(CLUSTERS, ", ".join(setup.clusters), setup.file)
    entries = [replace(moved.entry, key=moved.key, text=moved.text) for moved in setup.moved]
    findings = Findings()
    # The file may be another person's, and a class in it would run here.
    settings = settings_of(
        [listed, *entries], Configuration(setup.file, ""), findings, load_classes=False
    )
    return settings, [
        problem
        for problem in findings.problems
        if not problem.allowed.startswith("${") or "no config provider" in problem.allowed
    ]


def _not_loaded(moved: Moved, place: ScopedKey) -> str | None:
    """What there is to know of a user's class, of which nothing was run."""
    plugin = _PLUGINS.get(place.name)
    name = None if plugin is None else python_class(plugin, moved.text.strip())
    if name is None:
        return None
    return (
        f"The Python class {printable(name)} is not loaded by migrate, but by every other"
        " command; review it first, and install it where tsoffset and its workers run."
    )


def _as_ours(
    moved: Moved, place: ScopedKey, wrong: Sequence[Problem], not_loaded: str | None, setup: Setup
) -> Moved:
    """The setting with what there is to say of it, and without its secret."""
    said = [moved.change or _CHANGES.get(place.name, ""), not_loaded or ""]
    said += (f"{TO_BE_CHANGED} {problem.allowed}." for problem in wrong)
    if wrong and place.name == keys.POLICY.name:
        said.append(f"{IDENTITY_POLICY} keeps topics' names.")
    change = " ".join(filter(None, said)) or None
    return without_secret(replace(moved, change=change), setup)


def _left(moved: Moved, place: ScopedKey) -> Left | None:
    """Why the setting is not in our configuration; None where it is."""
    found = find_key(place, moved.text, dedicated=True)
    if isinstance(found, Key):
        return None
    if found is not None:
        return Left(moved.entry, Heading.REFUSED, found)
    if may_be_of_a_class(place.name) or is_of_file(place.name):
        return None
    accepted = accepted_key(place.name)
    if accepted is not None:
        heading = Heading.CHECKPOINTS if accepted.of_checkpoints else Heading.REPLICATOR
        return Left(moved.entry, heading, accepted.meaning)
    client = CLIENT_PREFIX.match(place.name)
    whose = f"{client['client']}s" if client else "clients"
    return Left(moved.entry, Heading.REPLICATOR, f"A setting of its {whose}.")


def _not_yet(setup: Setup, flow: MirrorFlow) -> Moved:
    """What keeps us from committing while MirrorMaker 2 does."""
    on = "on" if flow.syncs else "off"
    line = None if flow.sync_entry is None else flow.sync_entry.line
    where = "" if line is None else f" (line {line})"
    change = (
        f"MirrorMaker 2's own sync of this flow is {on}{where}. tsoffset only plans this"
        " flow until you set this to true (the default); the printed steps say when."
    )
    key = f"{flow.name}.{SYNC}"
    return Moved(Entry(key, "false", setup.file), key, "false", change)
