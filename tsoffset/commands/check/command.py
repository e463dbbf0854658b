"""`tsoffset check`."""

from typing import Any

from tsoffset.commands.options import OUTPUT, SELECTION, command, select
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output


@command(
    "Check both clusters and report problems.",
    """\b
Examples:
  tsoffset check -c mm2.properties
  tsoffset check -c mm2.properties --format json | jq 'select(.severity != "ok")'

\b
Exit status:
    0  no errors (there may be warnings)
    1  at least one error
    2  bad usage or configuration
    3  a cluster could not be reached at all
  130  interrupted by Ctrl-C""",
    *(*SELECTION, *OUTPUT),
    selects=False,
)
def check(output: Output, notices: Notices, **options: Any) -> int:
    """Check both clusters of each flow and report problems.

    Checks connections, broker versions, rights, selected groups and topics, target topics that are
    missing or have fewer partitions, and flows that write the same topics. Samples a few records of
    each topic to see what the replicator or the target changes in them, and suggests the setting
    that fits. Each finding says what to do. Writes nothing and does not start Spark.
    """
    from tsoffset.commands.check.flow_check import run_check

    # The findings include the warnings about the configuration.
    return run_check(select(options), output, notices)
