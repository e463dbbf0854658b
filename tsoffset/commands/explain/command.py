"""`tsoffset explain` and its options."""

from typing import TYPE_CHECKING, Any

import click

from tsoffset.commands.options import CONFIG, EXIT_STATUS, FLOW, FORMAT_HELP, WIDE, choice, command
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection


@command(
    "Explain how a group's offsets are translated.",
    f"""\b
Examples:
  tsoffset explain -c mm2.properties --group billing
  tsoffset explain -c mm2.properties --group billing --topic orders --partition 3
  tsoffset explain -c mm2.properties --group billing --format json | jq 'select(.kind == "pair")'

{EXIT_STATUS}""",
    *(*CONFIG, FLOW),
    click.option("--group", required=True, metavar="GROUP", help="The group's full name."),
    click.option("--topic", metavar="TOPIC", help="Only this source topic."),
    click.option(
        "--partition", type=click.IntRange(min=0), metavar="NUMBER", help="Only this partition."
    ),
    choice("--format", Format.TABLE, FORMAT_HELP, (Format.TABLE, Format.JSON)),
    WIDE,
)
def explain(selection: "Selection", output: Output, notices: Notices, **options: Any) -> int:
    """Explain how a group's offsets are translated.

    Prints each request to a cluster with its answer, the record pairs that were found, the target
    offset with its precision and reason, and whether `sync` would commit it. Prints offsets,
    timestamps and counts, never the content of a record. Commits nothing and does not start Spark.
    """
    from tsoffset.commands.explain.flow_explanation import ExplainOptions
    from tsoffset.commands.explain.report import run_explain

    return run_explain(selection, ExplainOptions(**options), output, notices)
