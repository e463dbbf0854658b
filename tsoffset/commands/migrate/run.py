"""Runs `tsoffset migrate`."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.text import Text

from tsoffset.commands.migrate.reading import read_setup
from tsoffset.commands.migrate.setup import Heading
from tsoffset.commands.migrate.sorting import MigrationPlan, migration_of
from tsoffset.commands.migrate.steps import steps_lines
from tsoffset.commands.migrate.writing import configuration_text
from tsoffset.config.findings import Findings
from tsoffset.errors import ConfigurationError, TsoffsetError, UsageError
from tsoffset.stores import Folder, in_words
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output, counted

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
    if to is not None and to.exists():
        if any(to.samefile(file) for file in files):
            raise UsageError(f"{to} is what MirrorMaker 2 reads; name another file with -o")
        if not force:
            raise UsageError(f"{to} is there already; --force replaces it")
    findings = Findings()
    setup = read_setup(files, findings)
    if setup is None or findings.problems:
        raise ConfigurationError(findings.problems, findings.warnings)
    notices.configuration_warnings(findings.warnings)
    migration = migration_of(setup)
    text = configuration_text(migration)
    steps = partial(steps_lines, migration, str(to or DEFAULT_FILE))
    if to is not None:
        _write(to, text)
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


def _write(path: Path, text: str) -> None:
    """Write the file in one step, readable by this user only."""
    folder = Folder(path.absolute().parent)
    try:
        folder.write(path.name, text.encode())
    except OSError as error:
        why = in_words(folder, error)
        raise TsoffsetError(f"write {path}: {why}; choose another place with -o") from None


def _in_words(migration: MigrationPlan) -> str:
    counts = Counter(one.heading for one in migration.omitted)
    return (
        f"{counted(len(migration.settings), 'setting')} taken over,"
        f" {counts[Heading.CHECKPOINTS]} no longer needed,"
        f" {counts[Heading.REPLICATOR]} used by the replicator only,"
        f" {counts[Heading.REFUSED]} not taken over"
    )
