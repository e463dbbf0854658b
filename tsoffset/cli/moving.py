"""`failover`, and what moves groups by hand: `export`, `snapshot`, `restore`."""

import sys
from pathlib import Path
from typing import Any, Unpack

import click

from tsoffset.cli.carrying_out import EXIT_STATUS, carried_out, choose
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
    short_help="Bring all groups over, and say of each whether it can move.",
    epilog="""\b
Examples:
  tsoffset failover -c mm2.properties --flow 'A->B' --dry-run
  tsoffset failover -c mm2.properties --flow 'A->B'
  tsoffset failover -c mm2.properties --flow 'A->B' --format json | jq 'select(.verdict != "ready")'
  tsoffset failover -c mm2.properties --flow 'A->B' --resume

\b
Exit status:
    0  every group can move over (a bound on what it reads again is stated)
    1  a group is not ready, or Spark gave up
    2  bad usage or configuration
    3  a cluster could not be reached; with the source away the last commits are reported
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
    help="How long to wait for groups that are not ready, while something moves.",
)
@click.option(
    "--no-pause", is_flag=True, help="Let a running daemon go on with the flow afterwards."
)
@click.option("--resume", is_flag=True, help="Only end the pause of an earlier failover.")
@click.option(
    "--dry-run", is_flag=True, help="Say what a failover would come to now, and change nothing."
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
    """Bring all groups of a flow over, and say of each whether its consumers can move now.

    Runs cycles until every group resumes at what it has not read, or nothing changes any more;
    then pauses the flow in a running daemon, unless groups are still read on the source, and says
    what to do next. With the source away it says what consumers would resume from, and how old
    that is.
    """
    from tsoffset.commands.failover.command import run_failover

    if resume and dry_run:
        raise UsageError("failover: --resume ends a pause and --dry-run changes nothing; give one")
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
    short_help="Write translated offsets as Kafka's own tool takes them.",
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
    help="Only this group, by its whole name, in the form for one group.",
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
    """Write the offsets that `sync` would commit, as Kafka's own tool takes them.

    CSV without a header, `group,topic,partition,offset` with the names on the target, or with
    --group `topic,partition,offset`: what kafka-consumer-groups --reset-offsets --from-file reads.
    Only offsets that are not below what the group has there, and none of groups that have members
    there. Nothing is committed.
    """
    from tsoffset.commands.export import run_export
    from tsoffset.flow.narrowing import whole_name

    if group is not None and choice["groups"] is not None:
        raise UsageError("export: --group names one group and --groups chooses some; give one")
    if group is not None:
        choice["groups"] = whole_name(group)
    chosen, output = choose(notices, **choice), Output(sys.stdout, Format.CSV)
    return run_export(
        chosen, output, notices, with_group=group is None, state=state, outcomes=outcomes
    )


@click.command(
    short_help="Keep what the target groups have committed in a file.",
    epilog="""\b
Examples:
  tsoffset snapshot -c mm2.properties
  tsoffset snapshot -c mm2.properties --flow 'A->B' --groups 'billing.*' -o before.snapshot

\b
Exit status:
    0  the file is there
    1  commits could not be read, or the file not be written
    2  bad usage or configuration; the file was there already
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
    help="Where to; a file that is there is never replaced.  [default: CLUSTER-TIME.snapshot]",
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
    """Keep what the groups of a flow have committed on its target, in a file for `restore`.

    All their commits, on whatever topic, with metadata: JSON, a line each. The file's name is
    printed. The source is not asked, and Spark is not started.
    """
    from tsoffset.commands.snapshots.command import run_snapshot

    chosen = choose(notices, config=config, strict=strict, flows=flows, groups=groups, topics=None)
    return run_snapshot(chosen, path, Output(sys.stdout, Format.TABLE), notices)


@click.command(
    short_help="Put the commits of a snapshot back.",
    epilog="""\b
Examples:
  tsoffset restore -c mm2.properties B-20260131T094500Z.snapshot --dry-run
  tsoffset restore -c mm2.properties B-20260131T094500Z.snapshot --groups billing --yes

\b
Exit status:
    0  all is as it was then
    1  some commit is not: it failed, its group has members, its topic is another one now
    2  bad usage or configuration; the file is no snapshot, or one of another cluster
    3  the target could not be reached
  130  interrupted by Ctrl-C""",
)
@CONFIG
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="SNAPSHOT"
)
@click.option("--groups", metavar="REGEX", help="Only groups whose whole name matches.")
@click.option(
    "--topics", metavar="REGEX", help="Only topics whose whole name on the target matches."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
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
    """Put the commits of a snapshot back, also backwards; groups that have members are left alone.

    Commits that groups have made since where they had none stay, and are named. The source is not
    asked, and Spark is not started.
    """
    from tsoffset.commands.snapshots.command import run_restore
    from tsoffset.config.loading import Configuration

    settings = Configuration.read(config, strict=strict).resolve()
    notices.configuration_warnings(settings.warnings)
    output = Output(sys.stdout, format, wide=wide)
    return run_restore(settings, file, output, notices, **wanted)
