"""`tsoffset failover` and its options."""

from typing import TYPE_CHECKING, Any

import click

from tsoffset.commands.options import (
    CONFIG,
    GROUPS,
    ONE_FLOW,
    OUTPUT,
    TOPICS,
    command,
    flag,
    seconds,
)
from tsoffset.errors import UsageError
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection


@command(
    "Fail over all groups, and report which are ready.",
    """\b
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
    *(*CONFIG, ONE_FLOW, GROUPS, TOPICS),
    click.option(
        "--timeout",
        "timeout_seconds",
        callback=seconds,
        default="60",
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for groups that are not ready, while they still make progress.",
    ),
    flag("--no-pause", "Do not pause the flow in a running daemon afterwards."),
    flag("--resume", "Only resume the flow that an earlier failover paused."),
    flag("--dry-run", "Report what a failover would do now, and change nothing."),
    *OUTPUT,
    commits=True,
)
def failover(
    selection: "Selection", output: Output, notices: Notices, *, no_pause: bool, **options: Any
) -> int:
    """Fail over all groups of a flow, and report which are ready.

    Runs cycles until every group resumes at its first unread record, or until nothing changes. Then
    pauses the flow in a running daemon, unless groups still have consumers on the source, and
    prints the next steps. If the source is unreachable, reports the offsets that consumers would
    resume from, and their age.
    """
    from tsoffset.commands.failover.run import run_failover

    if options["resume"] and options["dry_run"]:
        raise UsageError(
            "failover: --resume and --dry-run exclude each other; --resume ends a"
            " pause, --dry-run changes nothing"
        )
    return run_failover(selection, output, notices, pause=not no_pause, **options)
