"""Runs `tsoffset migrate`, and writes the configuration for tsoffset, with comments on what has
changed and was omitted."""

import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import javaproperties
from rich.text import Text

from tsoffset.commands.migrate.reading import read_setup
from tsoffset.commands.migrate.setup import CLUSTERS, Heading, MirrorSetting, OmittedSetting
from tsoffset.commands.migrate.sorting import MigrationPlan, migration_of
from tsoffset.commands.migrate.steps import steps_lines
from tsoffset.commands.migrate.strimzi_security import SECRETS_FOLDER
from tsoffset.config.findings import Findings, shown_value
from tsoffset.config.scopes import scoped_key
from tsoffset.errors import ConfigurationError, TsoffsetError, UsageError
from tsoffset.printable import printable
from tsoffset.stores import Folder, in_words
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output, plural

DEFAULT_FILE = "tsoffset.properties"


def run_migrate(
    files: Sequence[str],
    output: Output,
    notices: Notices,
    *,
    to: Path | None,
    force: bool,
    steps_alone: bool,
) -> int:
    """Print the configuration for tsoffset; with `to` write it there, and print the steps. Returns
    the exit status: 2 if something in it has to be changed before tsoffset accepts it.

    Raises ConfigurationError if the files cannot be converted, UsageError, and TsoffsetError if the
    result cannot be written.
    """
    if to is not None and os.access(to, os.F_OK):
        if any(to.samefile(file) for file in files):
            raise UsageError(f"{to} is what MirrorMaker 2 reads; name another file with -o")
        if not force:
            raise UsageError(f"{to} exists already; --force replaces it")
    findings = Findings()
    setup = read_setup(files, findings)
    if setup is None or findings.problems:
        raise ConfigurationError(findings.problems, findings.warnings)
    notices.configuration_warnings(findings.warnings)
    migration = migration_of(setup)
    text = configuration_text(migration)
    steps = partial(steps_lines, migration, str(to or DEFAULT_FILE))
    if to is not None:
        folder = Folder(to.absolute().parent)
        try:
            # Writes the whole file at once, readable by this user only.
            folder.write(to.name, text.encode())
        except OSError as error:
            why = in_words(folder, error)
            raise TsoffsetError(f"write {to}: {why}; choose another place with -o") from None
    if to is not None or steps_alone:
        output.lines(steps(output.width))
    else:
        output.lines(map(Text, text.splitlines()))
    output.flush()
    notices.configuration_warnings(migration.warnings)
    if not steps_alone:
        notices.note(_in_words(migration))
        if to is None:
            notices.note(f"Next: -o {DEFAULT_FILE} writes it to a file and prints the steps.")
    if migration.problems:
        notices.error(ConfigurationError(migration.problems), trace=False)
    return ConfigurationError.exit_status if migration.problems else 0


def _in_words(migration: MigrationPlan) -> str:
    counts = Counter(one.heading for one in migration.omitted)
    return (
        f"{plural(len(migration.settings), 'setting')} taken over,"
        f" {counts[Heading.CHECKPOINTS]} no longer needed,"
        f" {counts[Heading.REPLICATOR]} used by the replicator only,"
        f" {counts[Heading.REFUSED]} not taken over"
    )


_WIDTH = 98
_FOR_A_FAILOVER = (
    "",
    "# --- set before `tsoffset run`: folders that outlive the process, or URIs of stores ---",
    "# Without state.dir a failover cannot pause the flow, and each start translates all again.",
    "# Without history.dir the age of offsets is unknown once the source cluster is down.",
    "# state.dir = /var/lib/tsoffset",
    "# history.dir = /var/lib/tsoffset/history",
)
_ESCAPED = re.compile(r"(?P<backslash>\\\\)|\\(?P<sign>[:=#!])")


def configuration_text(migration: MigrationPlan) -> str:
    """The text of the file. It copies no secret of the input, and has no date: the same input gives
    the same text."""
    lines = [*_head(migration), *_settings(migration), *_FOR_A_FAILOVER, *_omitted_lines(migration)]
    return "\n".join(lines) + "\n"


def _head(migration: MigrationPlan) -> Iterator[str]:
    setup = migration.setup
    yield from _comment(
        f"tsoffset's configuration, made by `tsoffset migrate` from {setup.file} (a {setup.kind})."
        " The same command prints the steps of the migration."
    )
    if setup.resource is not None and setup.resource.secrets:
        yield "#"
        yield from _comment(
            "tsoffset reads Kubernetes secrets from files. In its pod, mount each of these"
            f" at {SECRETS_FOLDER}/NAME (spec.volumes[].secret.secretName,"
            " spec.containers[].volumeMounts[].mountPath, readOnly):"
        )
        yield from (f"#   {name}" for name in setup.resource.secrets)


def _settings(migration: MigrationPlan) -> Iterator[str]:
    clusters = migration.setup.clusters
    sections: dict[str, list[MirrorSetting]] = {f"cluster {alias}": [] for alias in clusters}
    of_all = []
    for setting in migration.settings:
        scoped = scoped_key(setting.key, clusters)
        if scoped.cluster is not None:
            sections[f"cluster {scoped.cluster}"].append(setting)
        elif scoped.flow is not None:
            sections.setdefault(f"flow {'->'.join(scoped.flow)}", []).append(setting)
        else:
            of_all.append(setting)
    yield from ("", _line(CLUSTERS, ", ".join(clusters)))
    for title, settings in (*sections.items(), ("all clusters and flows", of_all)):
        if settings:
            yield from ("", f"# --- {title} ---")
        for setting in settings:
            if setting.change is not None:
                yield from _comment(setting.change)
            yield _line(setting.key, setting.text)


def _omitted_lines(migration: MigrationPlan) -> Iterator[str]:
    for heading in Heading:
        omitted = [one for one in migration.omitted if one.heading is heading]
        if omitted:
            yield from ("", f"# --- {heading}. ---")
        for one in omitted:
            yield from _comment(_omission(one, migration.setup.file), hanging="#     ")


def _omission(one: OmittedSetting, file: str) -> str:
    """A setting with its line, its value unless it may be a secret, and why it is omitted. Any
    unknown key may hold a secret."""
    entry = one.entry
    line = "" if entry.line is None else f"line {entry.line}: "
    if entry.file != file:  # one of several
        line = f"{entry.location}: "
    show = entry.text and one.heading is not Heading.REFUSED
    value = f" = {shown_value(entry)}" if show else ""
    return f"{line}{printable(entry.key)}{value}: {one.why}"


def _comment(text: str, hanging: str = "# ") -> list[str]:
    return textwrap.wrap(
        printable(text),
        _WIDTH,
        initial_indent="# ",
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _line(key: str, text: str) -> str:
    """A line of a properties file, in UTF-8. Values keep `:` and the like unescaped, as
    people write them: `a:9092`."""
    separator = " = "
    line = str(javaproperties.join_key_value(key, "", separator=separator, ensure_ascii=False))
    escaped = str(javaproperties.join_key_value("", text, separator="", ensure_ascii=False))
    value = _ESCAPED.sub(lambda found: found["backslash"] or found["sign"], escaped)
    return f"{line}{value}".rstrip(" ")
