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
    short_help="Check both clusters and report problems.",
    epilog="""\b
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
)
@selection
@FORMAT
@WIDE
@quiet_logs
@carried_out
def check(notices: Notices, *, format: Format, wide: bool, **choice: Unpack[Choice]) -> int:
    """Check both clusters of each flow and report problems.

    Checks connections, broker versions, rights, selected groups and topics, target topics that are
    missing or have fewer partitions, and flows that write the same topics. Samples a few records of
    each topic to see what the replicator or the target changes in them, and suggests the setting
    that fits. Each finding says what to do. Writes nothing and does not start Spark.
    """
    from tsoffset.commands.check.command import run_check
    from tsoffset.config.selection import selected

    return run_check(selected(**choice), Output(sys.stdout, format, wide=wide), notices)


@click.command(
    short_help="Explain how a group's offsets are translated.",
    epilog=f"""\b
Examples:
  tsoffset explain -c mm2.properties --group billing
  tsoffset explain -c mm2.properties --group billing --topic orders --partition 3
  tsoffset explain -c mm2.properties --group billing --format json | jq 'select(.kind == "pair")'

{EXIT_STATUS}""",
)
@in_order(CONFIG, FLOW)
@click.option("--group", required=True, metavar="GROUP", help="The group's full name.")
@click.option("--topic", metavar="TOPIC", help="Only this source topic.")
@click.option(
    "--partition", type=click.IntRange(min=0), metavar="NUMBER", help="Only this partition."
)
@word_of(
    "--format",
    Format.TABLE,
    "Output format; json prints one object per line.",
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
    """Explain how a group's offsets are translated.

    Prints each request to a cluster with its answer, the record pairs that were found, the target
    offset with its precision and reason, and whether `sync` would commit it. Prints offsets,
    timestamps and counts, never the content of a record. Commits nothing and does not start Spark.
    """
    from tsoffset.commands.explain.command import run_explain
    from tsoffset.commands.explain.flow_explanation import Wanted

    selection = choose(notices, config=config, strict=strict, flows=flows, groups=None, topics=None)
    wanted = Wanted(group, topic, partition)
    return run_explain(selection, wanted, Output(sys.stdout, format, wide=wide), notices)


@click.command(
    short_help="List replicated topics, upstream clusters and replication lag.",
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
    """List replicated topics, upstream clusters and replication lag.

    Finds them by the topic names on the clusters of the flows. Lists the upstream clusters with
    their number of hops. If MirrorMaker 2 emits heartbeats, shows the age of the newest one and the
    replication lag. Lists remote topics with their source topics, and MirrorMaker 2's internal
    topics. Writes nothing and does not start Spark.
    """
    from tsoffset.commands.topics.command import run_topics

    selection = choose(notices, config=config, strict=strict, flows=flows, groups=None, topics=None)
    return run_topics(selection, Output(sys.stdout, format, wide=wide), notices)


@click.command(
    short_help="Query past cycles: stuck groups, re-read bounds, precision.",
    epilog="""\b
Queries:
  stuck     group-partitions that lag on the target without progress for --cycles cycles
  worst     the largest re-read bound of each group-partition
  accuracy  share of exact translations per day

\b
Examples:
  tsoffset history -c mm2.properties stuck
  tsoffset history -c mm2.properties --groups billing --since 36h worst
  tsoffset history -c mm2.properties --sql 'SELECT state, count(*) FROM cycles GROUP BY state'

\b
Exit status:
  0    success
  1    the history cannot be read, or Spark failed
  2    bad usage or configuration; history.dir is not set
  130  interrupted by Ctrl-C""",
)
@in_order(CONFIG, FLOW)
@click.option("--groups", metavar="REGEX", help="Only groups whose full name matches.")
@SINCE
@click.option(
    "--cycles",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="NUMBER",
    help="With stuck: the least number of cycles without progress.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="NUMBER",
    help="Print at most this number of rows. Not for --sql.",
)
@click.option(
    "--sql", metavar="TEXT", help="Run this SQL query over the views `cycles` and `pairs`."
)
@FORMAT
@WIDE
@quiet_logs
@click.argument(
    "question",
    required=False,
    type=click.Choice(["stuck", "worst", "accuracy"], case_sensitive=False),
)
@carried_out
def history(
    notices: Notices, *, config: Path, strict: bool, format: Format, wide: bool, **wanted: Any
) -> int:
    """Query the cycles that `run` keeps in history.dir.

    Runs in Spark SQL over the last seven days, or the time of --since. Connects to no cluster.
    """
    from tsoffset.commands.history import Wanted, run_history
    from tsoffset.config.loading import Configuration

    configuration = Configuration.read(config, strict=strict)
    output = Output(sys.stdout, format, wide=wide)
    return run_history(configuration, Wanted(**wanted), output, notices)
