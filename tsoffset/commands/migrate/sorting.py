"""Decides for each setting: taken over, changed, or omitted with a reason.

The tables and the reader of `tsoffset.config` decide what is known, so tsoffset accepts the result.
"""

from dataclasses import dataclass, replace
from typing import Any

from tsoffset.commands.migrate.flows import MirrorFlow, mirror_flows
from tsoffset.commands.migrate.secrets import without_secret
from tsoffset.commands.migrate.setup import CLUSTERS, Heading, MirrorSetting, OmittedSetting, Setup
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
from tsoffset.config.review import find_key, is_of_file, may_be_of_a_class
from tsoffset.config.scopes import CLIENT_PREFIX, ScopedKey, scoped_key
from tsoffset.errors import ConfigurationError, ConfigurationProblem
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
class MigrationPlan:
    """The result. `settings` are those for tsoffset in the order of the input, `omitted` the
    others, `flows` the enabled flows. `problems` have to be changed in `settings` before tsoffset
    accepts them. `warnings` name the users' classes that tsoffset would load."""

    setup: Setup
    settings: tuple[MirrorSetting, ...]
    omitted: tuple[OmittedSetting, ...]
    flows: tuple[MirrorFlow, ...]
    problems: tuple[ConfigurationProblem, ...]
    warnings: tuple[str, ...]


def migration_of(setup: Setup) -> MigrationPlan:
    """Sort all settings. Raises ConfigurationError if no configuration can be made of them, not
    even one that has to be changed."""
    resolved, problems = _resolve(setup)
    settings: list[MirrorSetting] = []
    omitted = list(setup.omitted)
    marked: list[ConfigurationProblem] = []
    warnings: list[str] = []
    for setting in setup.settings:
        scoped = scoped_key(setting.key, setup.clusters)
        if scoped.name == SYNC:
            continue  # part of the comment on the new setting
        if (found := _omission(setting, scoped)) is not None:
            omitted.append(found)
            continue
        entry = setting.entry
        wrong = [one for one in problems if (one.key, one.line) == (setting.key, entry.line)]
        marked += wrong
        not_loaded = "" if wrong else _not_loaded(setting, scoped)
        if not_loaded:
            warnings.append(f"{entry.location}: {printable(entry.key)}: {not_loaded}")
        comments = [setting.change or _CHANGES.get(scoped.name, ""), not_loaded]
        comments += (f"{TO_BE_CHANGED} {problem.allowed}." for problem in wrong)
        if wrong and scoped.name == keys.POLICY.name:
            comments.append(f"{IDENTITY_POLICY} keeps topics' names.")
        change = " ".join(filter(None, comments)) or None
        settings.append(without_secret(replace(setting, change=change), setup))
    problems = [problem for problem in problems if problem not in marked]
    flows = tuple(mirror_flows(setup, resolved))
    if not flows and not problems:
        key = f"A->B.{keys.ENABLED.name}"
        allowed = "must be true for some flow: with this file MirrorMaker 2 copies nothing"
        problems.append(ConfigurationProblem(key, None, allowed, setup.file))
    if problems:
        raise ConfigurationError((*problems, *marked))
    settings += (_sync_disabled(setup, flow) for flow in flows)
    return MigrationPlan(
        setup, tuple(settings), tuple(omitted), flows, tuple(marked), tuple(warnings)
    )


def _resolve(setup: Setup) -> tuple[Settings, list[ConfigurationProblem]]:
    """The settings as tsoffset reads them, and what it refuses. What a reference refers to may
    exist only where tsoffset will run, so it is no problem if it is missing here."""
    listed = Entry(CLUSTERS, ", ".join(setup.clusters), setup.file)
    entries = [replace(one.entry, key=one.key, text=one.text) for one in setup.settings]
    findings = Findings()
    # The file may come from another person, and a class in it would run here.
    settings = settings_of(
        [listed, *entries], Configuration(setup.file, ""), findings, load_classes=False
    )
    return settings, [
        problem
        for problem in findings.problems
        if not problem.allowed.startswith("${") or "no config provider" in problem.allowed
    ]


def _not_loaded(setting: MirrorSetting, scoped: ScopedKey) -> str:
    """A sentence on a user's class, which was not loaded; empty for other settings."""
    plugin = _PLUGINS.get(scoped.name)
    name = None if plugin is None else python_class(plugin, setting.text.strip())
    if name is None:
        return ""
    return (
        f"The Python class {printable(name)} is not loaded by migrate, but by every other"
        " command; review it first, and install it where tsoffset and its workers run."
    )


def _omission(setting: MirrorSetting, scoped: ScopedKey) -> OmittedSetting | None:
    """The setting if it is omitted, with the reason; None if it is taken over."""
    found = find_key(scoped, setting.text, dedicated=True)
    if isinstance(found, Key):
        return None
    if found is not None:
        return OmittedSetting(setting.entry, Heading.REFUSED, found)
    if may_be_of_a_class(scoped.name) or is_of_file(scoped.name):
        return None
    accepted = accepted_key(scoped.name)
    if accepted is not None:
        heading = Heading.CHECKPOINTS if accepted.of_checkpoints else Heading.REPLICATOR
        return OmittedSetting(setting.entry, heading, accepted.meaning)
    client = CLIENT_PREFIX.match(scoped.name)
    clients = f"{client['client']}s" if client else "clients"
    return OmittedSetting(setting.entry, Heading.REPLICATOR, f"A setting of its {clients}.")


def _sync_disabled(setup: Setup, flow: MirrorFlow) -> MirrorSetting:
    """The setting that keeps tsoffset from committing while MirrorMaker 2 does."""
    on = "on" if flow.syncs else "off"
    line = None if flow.sync_entry is None else flow.sync_entry.line
    where = "" if line is None else f" (line {line})"
    change = (
        f"MirrorMaker 2's own sync of this flow is {on}{where}. tsoffset only plans this"
        " flow until you set this to true (the default); the printed steps say when."
    )
    key = f"{flow.name}.{SYNC}"
    return MirrorSetting(Entry(key, "false", setup.file), key, "false", change)
