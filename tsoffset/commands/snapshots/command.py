"""`tsoffset snapshot`, `tsoffset restore` and their options."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsoffset.commands.options import (
    CONFIG,
    GROUPS,
    INPUT_FILE,
    ONE_FLOW,
    OUTPUT,
    OUTPUT_FILE,
    YES,
    command,
    flag,
)
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection


@command(
    "Save the target groups' committed offsets to a file.",
    """\b
Examples:
  tsoffset snapshot -c mm2.properties
  tsoffset snapshot -c mm2.properties --flow 'A->B' --groups 'billing.*' -o before.snapshot

\b
Exit status:
    0  the file is written
    1  offsets could not be read, or the file could not be written
    2  bad usage or configuration; the file exists already
    3  the target could not be reached
  130  interrupted by Ctrl-C""",
    *(*CONFIG, ONE_FLOW, GROUPS),
    click.option(
        "-o",
        "--output",
        "path",
        type=OUTPUT_FILE,
        metavar="FILE",
        help="Output file; an existing file is never replaced.  [default: CLUSTER-TIME.snapshot]",
    ),
)
def snapshot(selection: "Selection", output: Output, notices: Notices, *, path: Path | None) -> int:
    """Save the target groups' committed offsets to a file.

    Saves all committed offsets of the flow's groups on its target, in every topic and with
    metadata, as one JSON object per line, and prints the file's name. `restore` reads it. Does not
    connect to the source and does not start Spark.
    """
    from tsoffset.commands.snapshots.run import run_snapshot

    return run_snapshot(selection, path, output, notices)


@command(
    "Restore the committed offsets of a snapshot.",
    """\b
Examples:
  tsoffset restore -c mm2.properties B-20260131T094500.123Z.snapshot --dry-run
  tsoffset restore -c mm2.properties B-20260131T094500.123Z.snapshot --groups billing --yes

\b
Exit status:
    0  all offsets are as in the snapshot
    1  an offset was not restored; its row says why
    2  bad usage or configuration; the file is no snapshot, or is of another cluster
    3  the target could not be reached
  130  interrupted by Ctrl-C""",
    *CONFIG,
    click.argument("file", type=INPUT_FILE, metavar="SNAPSHOT"),
    click.option("--groups", metavar="REGEX", help="Only groups whose whole name matches."),
    click.option(
        "--topics", metavar="REGEX", help="Only topics whose full name on the target matches."
    ),
    flag("--dry-run", "Report what would be done, and change nothing."),
    *(YES, *OUTPUT),
    selects=False,
    commits=True,
)
def restore(
    output: Output, notices: Notices, *, config: Path, strict: bool, file: Path, **options: Any
) -> int:
    """Restore the committed offsets of a snapshot, also backwards.

    Skips groups that have active members. Offsets that a group committed later, in partitions that
    are not in the snapshot, stay and are listed. Does not connect to the source and does not start
    Spark.
    """
    from tsoffset.commands.snapshots.run import run_restore
    from tsoffset.config.loading import Configuration

    settings = Configuration.read(config, strict=strict).resolve()
    notices.configuration_warnings(settings.warnings)
    return run_restore(settings, file, output, notices, **options)
