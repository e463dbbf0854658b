"""`tsoffset compare` and its options."""

from typing import TYPE_CHECKING, Any

import click

from tsoffset.commands.compare.options import Against, By, CompareOptions
from tsoffset.commands.options import (
    EXIT_STATUS,
    INPUT_FILE,
    OUTPUT,
    OUTPUT_FILE,
    SELECTION,
    choice,
    command,
    seconds,
)
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection


@command(
    "Compare MirrorMaker 2's checkpoints with tsoffset's offsets.",
    f"""\b
Examples:
  tsoffset compare -c mm2.properties
  tsoffset compare -c mm2.properties --flow 'A->B' --groups 'billing.*' --by topic
  tsoffset compare -c mm2.properties --html report.html --every 1m
  tsoffset compare -c mm2.properties --format json | jq 'select(.verdict == "unsafe")'
  tsoffset compare -c mm2.properties --checkpoints dump.txt

{EXIT_STATUS}""",
    *SELECTION,
    choice(
        "--against",
        Against.CHECKPOINTS,
        "Compare with the checkpoints, or with the lookup by timestamp of KIP-1292 (timestamps).",
    ),
    click.option(
        "--checkpoints",
        "file",
        type=INPUT_FILE,
        metavar="FILE",
        help="Read the checkpoints from this dump of the checkpoints topic (CheckpointFormatter's"
        " text, or JSON lines).",
    ),
    choice("--by", By.PAIR, "Print a line for each group-partition, group or topic."),
    click.option(
        "--html",
        type=OUTPUT_FILE,
        metavar="FILE",
        help="Also write a report with plots, as one self-contained HTML file.",
    ),
    click.option(
        "--every",
        "every_seconds",
        callback=seconds,
        metavar="TIME",
        help="Repeat the comparison at this interval (30s, 5m, 1h), until SIGTERM or Ctrl-C.",
    ),
    click.option(
        "--times",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        help="With --every: stop after this number of comparisons.",
    ),
    *OUTPUT,
)
def compare(selection: "Selection", output: Output, notices: Notices, **options: Any) -> int:
    """Compare MirrorMaker 2's checkpoints with tsoffset's offsets.

    Reads MirrorMaker 2's newest checkpoints and the target groups' committed offsets, and
    translates the groups' offsets as `plan` does. Reports for each group-partition how many
    records a consumer would re-read or skip if it resumed from the checkpoint. Commits nothing and
    does not start Spark.
    """
    from tsoffset.commands.compare.run import run_compare

    return run_compare(selection, CompareOptions(**options), output, notices)
