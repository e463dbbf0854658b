"""`check`, `explain`, `topics` and `history`, which write nothing."""

import sys
from pathlib import Path
from typing import Any, Unpack

import click

from tsoffset.cli.carrying_out import EXIT_STATUS, carried_out, choose
from tsoffset.commands.options import (
    CONFIG,
    FLOW,
    FORMAT,
    SINCE,
    WIDE,
    Choice,
    in_order,
    quiet_logs,
    selection,
    word_of,
)
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output


@click.command(
    short_help="Look at both clusters and say what stands in the way.",
    epilog="""\b
Examples:
  tsoffset check -c mm2.properties
  tsoffset check -c mm2.properties --format json | jq 'select(.severity != "ok")'

\b
Exit status:
    0  no error was found (warnings may have been)
    1  an error was found
    2  bad usage or configuration
    3  a cluster could not be reached at all
  130  interrupted by Ctrl-C""",
)
@selection
@FORMAT
@WIDE
@quiet_logs
@carried_out
def check(notices: Notices, *, format: Format, wide: bool, **choice: Unpack[Choice]) -> int:
    """Look at both clusters of each flow and say what stands in the way.

    Connections, versions, groups and topics that pass the filters, missing or narrower
    copies, flows that write the same topics; and, of a few sampled records of each topic, what
    the replicator or the target changes in them and which setting fits that. Each finding
    comes with its remedy. Nothing is written, and Spark is not started.
    """
    from tsoffset.commands.check.command import run_check
    from tsoffset.config.selecting import selected

    return run_check(selected(**choice), Output(sys.stdout, format, wide=wide), notices)


@click.command(
    short_help="Show why a group's offsets translate as they do.",
    epilog=f"""\b
Examples:
  tsoffset explain -c mm2.properties --group billing
  tsoffset explain -c mm2.properties --group billing --topic orders --partition 3
  tsoffset explain -c mm2.properties --group billing --format json | jq 'select(.kind == "pair")'

{EXIT_STATUS}""",
)
@in_order(CONFIG, FLOW)
@click.option("--group", required=True, metavar="GROUP", help="The group, by its whole name.")
@click.option("--topic", metavar="TOPIC", help="Only this topic, by its name on the source.")
@click.option(
    "--partition", type=click.IntRange(min=0), metavar="NUMBER", help="Only this partition."
)
@word_of(
    "--format",
    Format.TABLE,
    "How it is printed; json is one object a line.",
    (Format.TABLE, Format.JSON),
)
@WIDE
@quiet_logs
@carried_out
def explain(
    notices: Notices,
    *,
    config: Path,
    strict: bool,
    flows: tuple[str, ...],
    group: str,
    topic: str | None,
    partition: int | None,
    format: Format,
    wide: bool,
) -> int:
    """Show the conversation behind the translation of a group's offsets.

    Each question that was asked of a cluster with its answer, the pairs of equal records
    that were found, the target offset with its precision and the reason for it, and what
    the commit rule makes of it. Prints offsets, times and counts, never what a record
    holds. Nothing is committed, and Spark is not started.
    """
    from tsoffset.commands.explain.command import run_explain
    from tsoffset.commands.explain.flow_explanation import Wanted

    selection = choose(notices, config=config, strict=strict, flows=flows, groups=None, topics=None)
    wanted = Wanted(group, topic, partition)
    return run_explain(selection, wanted, Output(sys.stdout, format, wide=wide), notices)


@click.command(
    short_help="List remote topics, clusters upstream, and how late they are.",
    epilog=f"""\b
Examples:
  tsoffset topics -c mm2.properties
  tsoffset topics -c mm2.properties --format json | jq 'select(.kind == "upstream")'

{EXIT_STATUS}""",
)
@in_order(CONFIG, FLOW)
@FORMAT
@WIDE
@quiet_logs
@carried_out
def topics(
    notices: Notices,
    *,
    config: Path,
    strict: bool,
    flows: tuple[str, ...],
    format: Format,
    wide: bool,
) -> int:
    """List what replicators have made on the clusters of the flows, as their topics' names tell.

    The clusters upstream of each with their hops, and, where MirrorMaker 2 emits heartbeats, how
    old the newest one is and how far replication is behind; remote topics with their originals,
    and MirrorMaker 2's own topics. Nothing is written, and Spark is not started.
    """
    from tsoffset.commands.topics.command import run_topics

    selection = choose(notices, config=config, strict=strict, flows=flows, groups=None, topics=None)
    return run_topics(selection, Output(sys.stdout, format, wide=wide), notices)


@click.command(
    short_help="Ask past cycles: who is stuck, what is inexact, what was.",
    epilog="""\b
Questions:
  stuck     pairs that are behind on the target and have not advanced there for --cycles cycles
  worst     the largest bound on re-reads of each pair
  accuracy  of each day how many translations were exact
  cycles    the last cycles
  group     each change of the groups that --groups names

\b
Examples:
  tsoffset history -c mm2.properties stuck
  tsoffset history -c mm2.properties --groups billing --since 36h group
  tsoffset history -c mm2.properties --sql 'SELECT state, count(*) FROM cycles GROUP BY state'

\b
Exit status:
  0    it was answered
  1    the history cannot be read, or Spark gave up
  2    bad usage or configuration; history.dir is not set
  130  interrupted by Ctrl-C""",
)
@in_order(CONFIG, FLOW)
@click.option("--groups", metavar="REGEX", help="Only groups whose whole name matches.")
@SINCE
@click.option(
    "--cycles",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="NUMBER",
    help="For stuck: for how many cycles.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="NUMBER",
    help="At most so many rows of a ready question.",
)
@click.option(
    "--sql", metavar="TEXT", help="Your own question, over the views `cycles` and `pairs`."
)
@FORMAT
@WIDE
@quiet_logs
@click.argument(
    "question",
    required=False,
    type=click.Choice(["stuck", "worst", "accuracy", "cycles", "group"], case_sensitive=False),
)
@carried_out
def history(
    notices: Notices, *, config: Path, strict: bool, format: Format, wide: bool, **wanted: Any
) -> int:
    """Ask the cycles that `run` has kept at history.dir, through Spark SQL.

    Reads what changed in each cycle, of the last seven days unless --since says otherwise, and
    asks no cluster.
    """
    from tsoffset.commands.history import Wanted, run_history
    from tsoffset.config.loading import Configuration

    configuration = Configuration.read(config, strict=strict)
    output = Output(sys.stdout, format, wide=wide)
    return run_history(configuration, Wanted(**wanted), output, notices)
