"""`failover`, and what moves groups by hand: `export`, `snapshot`, `restore`."""

import sys
from pathlib import Path
from typing import Any, Unpack

import click

from tsoffset.commands.carrying_out import EXIT_STATUS, carried_out, choose
from tsoffset.commands.options import (
    CONFIG,
    FLOW,
    FORMAT,
    GROUPS,
    STATE,
    WIDE,
    YES,
    Choice,
    in_order,
    outcome_of,
    quiet_logs,
    selection,
)
from tsoffset.errors import UsageError
from tsoffset.model import OutcomeKind
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output


@click.command(
    short_help="Fail over all groups, and report which are ready.",
    epilog="""\b
Examples:
  tsoffset failover -c mm2.properties --flow 'A->B' --dry-run
  tsoffset failover -c mm2.properties --flow 'A->B'
  tsoffset failover -c mm2.properties --flow 'A->B' --format json | jq 'select(.verdict != "ready")'
  tsoffset failover -c mm2.properties --flow 'A->B' --resume

\b
Exit status:
    0  every group is ready (some may re-read a stated number of records)
    1  a group is not ready, or Spark failed
    2  bad usage or configuration
    3  a cluster could not be reached; if it is the source, the last commits are reported
  130  interrupted by Ctrl-C""",
)
@selection
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.FloatRange(min=0),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for groups that are not ready, while they still make progress.",
)
@click.option(
    "--no-pause", is_flag=True, help="Do not pause the flow in a running daemon afterwards."
)
@click.option(
    "--resume", is_flag=True, help="Only resume the flow that an earlier failover paused."
)
@click.option(
    "--dry-run", is_flag=True, help="Report what a failover would do now, and change nothing."
)
@FORMAT
@WIDE
@quiet_logs
@carried_out
def failover(
    notices: Notices,
    *,
    timeout_seconds: float,
    no_pause: bool,
    resume: bool,
    dry_run: bool,
    format: Format,
    wide: bool,
    **choice: Unpack[Choice],
) -> int:
    """Fail over all groups of a flow, and report which are ready.

    Runs cycles until every group resumes at its first unread record, or until nothing changes. Then
    pauses the flow in a running daemon, unless groups still have consumers on the source, and
    prints the next steps. If the source is unreachable, reports the offsets that consumers would
    resume from, and their age.
    """
    from tsoffset.commands.failover.run import run_failover

    if resume and dry_run:
        raise UsageError(
            "failover: --resume and --dry-run exclude each other; --resume ends a"
            " pause, --dry-run changes nothing"
        )
    chosen, output = choose(notices, **choice), Output(sys.stdout, format, wide=wide)
    return run_failover(
        chosen,
        output,
        notices,
        timeout_seconds=timeout_seconds,
        pause=not no_pause,
        resume=resume,
        dry_run=dry_run,
    )


@click.command(
    short_help="Write translated offsets as CSV for kafka-consumer-groups.",
    epilog=f"""\b
Examples:
  tsoffset export -c mm2.properties > offsets.csv
  kafka-consumer-groups --bootstrap-server b1:9092 --reset-offsets --from-file offsets.csv \\
      --group billing --group shipping --dry-run
  tsoffset export -c mm2.properties --group billing > billing.csv

{EXIT_STATUS}""",
)
@selection
@click.option(
    "--group",
    metavar="GROUP",
    help="Only this group (full name), in the CSV form for one group.",
)
@outcome_of(OutcomeKind.WOULD_COMMIT, OutcomeKind.UNCHANGED)
@STATE
@quiet_logs
@carried_out
def export(
    notices: Notices,
    *,
    group: str | None,
    outcomes: tuple[str, ...],
    state: str | None,
    **choice: Unpack[Choice],
) -> int:
    """Write translated offsets as CSV for kafka-consumer-groups.

    Writes the offsets that `sync` would commit, in the format that kafka-consumer-groups
    --reset-offsets --from-file reads: `group,topic,partition,offset` with target topic names and no
    header, or with --group `topic,partition,offset`. Leaves out offsets below the group's committed
    offset on the target, and groups with active members on the target. Commits nothing.
    """
    from tsoffset.commands.export import run_export
    from tsoffset.flow.narrowing import whole_name

    if group is not None and choice["groups"] is not None:
        raise UsageError(
            "export: --group and --groups exclude each other; --group takes one full"
            " name, --groups a regular expression"
        )
    if group is not None:
        choice["groups"] = whole_name(group)
    chosen, output = choose(notices, **choice), Output(sys.stdout, Format.CSV)
    return run_export(
        chosen, output, notices, with_group=group is None, state=state, outcomes=outcomes
    )


@click.command(
    short_help="Save the target groups' committed offsets to a file.",
    epilog="""\b
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
)
@in_order(CONFIG, FLOW, GROUPS)
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output file; an existing file is never replaced.  [default: CLUSTER-TIME.snapshot]",
)
@quiet_logs
@carried_out
def snapshot(
    notices: Notices,
    *,
    config: Path,
    strict: bool,
    flows: tuple[str, ...],
    groups: str | None,
    path: Path | None,
) -> int:
    """Save the target groups' committed offsets to a file.

    Saves all committed offsets of the flow's groups on its target, in every topic and with
    metadata, as one JSON object per line, and prints the file's name. `restore` reads it. Does not
    connect to the source and does not start Spark.
    """
    from tsoffset.commands.snapshots.run import run_snapshot

    chosen = choose(notices, config=config, strict=strict, flows=flows, groups=groups, topics=None)
    return run_snapshot(chosen, path, Output(sys.stdout, Format.TABLE), notices)


@click.command(
    short_help="Restore the committed offsets of a snapshot.",
    epilog="""\b
Examples:
  tsoffset restore -c mm2.properties B-20260131T094500Z.snapshot --dry-run
  tsoffset restore -c mm2.properties B-20260131T094500Z.snapshot --groups billing --yes

\b
Exit status:
    0  all offsets are as in the snapshot
    1  an offset was not restored; its row says why
    2  bad usage or configuration; the file is no snapshot, or is of another cluster
    3  the target could not be reached
  130  interrupted by Ctrl-C""",
)
@CONFIG
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="SNAPSHOT"
)
@click.option("--groups", metavar="REGEX", help="Only groups whose whole name matches.")
@click.option(
    "--topics", metavar="REGEX", help="Only topics whose full name on the target matches."
)
@click.option("--dry-run", is_flag=True, help="Report what would be done, and change nothing.")
@YES
@FORMAT
@WIDE
@quiet_logs
@carried_out
def restore(
    notices: Notices,
    *,
    config: Path,
    strict: bool,
    file: Path,
    format: Format,
    wide: bool,
    **wanted: Any,
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
    output = Output(sys.stdout, format, wide=wide)
    return run_restore(settings, file, output, notices, **wanted)
