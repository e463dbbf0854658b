"""The commands of `tsoffset` and their words.

Exit status: 0 all well (skips are well), 1 something failed, 2 bad usage or configuration,
3 a cluster could not be reached at all. Results go to standard output, everything else to
standard error. What a command needs is imported when it runs, so that help is quick.
"""

import os
import re
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

import click

from tsoffset import __version__
from tsoffset.commands.compare.asked import Against, Asked, By
from tsoffset.commands.options import (
    CONFIG,
    FLOW,
    FORMAT,
    GROUPS,
    SINCE,
    STATE,
    WIDE,
    YES,
    Choice,
    daemon_logs,
    in_order,
    quiet_logs,
    seconds,
    selection,
    word_of,
)
from tsoffset.errors import UsageError
from tsoffset.logs import LogFormat, LogLevel, configure_logs, log_what_nobody_caught
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection

INTERRUPTED = 130

_EXIT_STATUS = """\b
Exit status:
    0  all well (skipped rows are well)
    1  some row failed
    2  bad usage or configuration
    3  a cluster could not be reached at all
  130  interrupted by Ctrl-C"""


def _show_versions(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    parts = [f"Python {python_version()}"]
    for package in ("pyspark", "kafka-python"):
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"{package} missing")
    click.echo(f"tsoffset {__version__} ({', '.join(parts)})")
    context.exit()


def _selected(notices: Notices, **choice: Unpack[Choice]) -> "Selection":
    from tsoffset.daemon.selecting import selected

    return _told(selected(**choice), notices)


def _told(selection: "Selection", notices: Notices) -> "Selection":
    """The same, once a person has been told of what the configuration warns of."""
    notices.configuration_warnings(selection.settings.warnings)
    return selection


def _carried_out(work: Callable[..., int]) -> Callable[..., NoReturn]:
    """A command that does the work, with its logs set up, and ends with its exit status.

    What stops it is said in one sentence each; a traceback comes with `--debug` only.
    """

    @wraps(work)
    def command(
        *, log_format: LogFormat, log_level: LogLevel, debug: bool, **options: Any
    ) -> NoReturn:
        configure_logs(log_format, LogLevel.DEBUG if debug else log_level)
        notices = Notices(log_format)
        try:
            status = work(notices, **options)
        except KeyboardInterrupt:
            notices.note("interrupted")
            status = INTERRUPTED
        except Exception as error:
            notices.error(error, trace=debug)
            status = getattr(error, "exit_status", 1)
        sys.exit(status)

    return command


def _leave_at_once() -> NoReturn:
    """End the process although a thread hangs; Spark's JVM ends with its parent's pipe."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"""\b
Examples:
  tsoffset demo
  tsoffset check -c mm2.properties
  tsoffset plan  -c mm2.properties --groups 'billing.*'
  tsoffset sync  -c mm2.properties --format json > rows.ndjson
  tsoffset explain -c mm2.properties --group billing
  tsoffset compare -c mm2.properties
  tsoffset migrate mm2.properties -o tsoffset.properties
  tsoffset topics  -c mm2.properties
  tsoffset history -c mm2.properties stuck
  tsoffset run   -c mm2.properties --log-format json
  tsoffset failover -c mm2.properties --flow 'A->B'

{_EXIT_STATUS}""",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_versions,
    help="Show the versions of tsoffset and of what it runs on.",
)
def cli() -> None:
    """Keep the committed offsets of consumer groups on a target Kafka cluster in step with a
    source cluster, for topics that MirrorMaker 2 or another replicator copies.

    The same MirrorMaker 2 configuration file serves both. Nothing is installed in the
    replicator, in a broker or in a consumer; no cycle moves a group backwards.
    """


@cli.command(
    epilog="""\b
Examples:
  tsoffset demo
  tsoffset demo --scenario failback
  tsoffset demo --keep
  tsoffset demo --secure"""
)
@click.option(
    "--scenario",
    type=click.Choice(["failover", "failback", "compare", "migration"], case_sensitive=False),
    default="failover",
    show_default=True,
    help="What is played.",
)
@click.option(
    "--keep", is_flag=True, help="Leave the clusters running and print how to explore them."
)
@click.option(
    "--secure", is_flag=True, help="Have both clusters ask all clients for TLS and a password."
)
@quiet_logs
@_carried_out
def demo(_: Notices, *, scenario: str, keep: bool, secure: bool) -> int:
    """See it work: two real brokers and MirrorMaker 2 on this machine.

    Real groups at many depths, one sync, then a failover that counts which records were read
    again and which were skipped; or, as failback, the way back after some work there. Needs
    Java 17, and once the network for Kafka's jars.
    """
    from tsoffset.demo.command import run
    from tsoffset.demo.scenarios import Scenario

    return run(Scenario(scenario), keep=keep, secure=secure)


@cli.command(
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
@_carried_out
def check(notices: Notices, *, format: Format, wide: bool, **choice: Unpack[Choice]) -> int:
    """Look at both clusters of each flow and say what stands in the way.

    Connections, versions, groups and topics that pass the filters, missing or narrower
    copies, flows that write the same topics; and, of a few sampled records of each topic, what
    the replicator or the target changes in them and which setting fits that. Each finding
    comes with its remedy. Nothing is written, and Spark is not started.
    """
    from tsoffset.commands.check.command import run_check
    from tsoffset.daemon.selecting import selected

    return run_check(selected(**choice), Output(sys.stdout, format, wide=wide), notices)


@cli.command(
    short_help="Show what `sync` would do.",
    epilog=f"""\b
Examples:
  tsoffset plan -c mm2.properties
  tsoffset plan -c mm2.properties --flow 'A->B' --groups 'billing.*'
  tsoffset plan -c mm2.properties --format json | jq 'select(.outcome == "failed")'

{_EXIT_STATUS}""",
)
@selection
@FORMAT
@WIDE
@STATE
@quiet_logs
@_carried_out
def plan(
    notices: Notices, *, format: Format, wide: bool, state: str | None, **choice: Unpack[Choice]
) -> int:
    """Show what `sync` would do: one cycle that commits nothing.

    Prints a row for each group and partition with a commit on the source, with the offset it
    translates to on the target, how exact that is, and why a row would be left alone.
    """
    from tsoffset.commands.plan_sync import run_once

    chosen, output = _selected(notices, **choice), Output(sys.stdout, format, wide=wide)
    return run_once(chosen, output, notices, commit=False, state=state)


@cli.command(
    short_help="Commit on the target, once.",
    epilog=f"""\b
Examples:
  tsoffset sync -c mm2.properties
  tsoffset sync -c mm2.properties --flow 'A->B' --groups 'billing.*'
  tsoffset sync -c mm2.properties --format json | jq 'select(.outcome == "failed")'
  tsoffset sync -c mm2.properties --groups billing --allow-rewind

{_EXIT_STATUS}""",
)
@selection
@click.option(
    "--allow-rewind",
    is_flag=True,
    help="Then move groups that are further on the target than on the source back to their"
    " translations, after a snapshot and a question.",
)
@click.option(
    "--snapshot",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="For --allow-rewind: a snapshot that has what these groups have now.  [default: one is"
    " written]",
)
@YES
@FORMAT
@WIDE
@STATE
@quiet_logs
@_carried_out
def sync(
    notices: Notices,
    *,
    allow_rewind: bool,
    snapshot: Path | None,
    yes: bool,
    format: Format,
    wide: bool,
    state: str | None,
    **choice: Unpack[Choice],
) -> int:
    """Commit on the target, once: one cycle that translates all groups' offsets.

    A group is never moved backwards unless --allow-rewind asks for it, and a group with members on
    the target is left alone. With sync.group.offsets.enabled = false nothing is committed, as by
    `plan`.
    """
    from tsoffset.commands.plan_sync import run_once
    from tsoffset.commands.snapshots.rewinding import Rewinding

    if not allow_rewind and (snapshot is not None or yes):
        raise UsageError("sync: --snapshot and --yes are for --allow-rewind")
    chosen, output = _selected(notices, **choice), Output(sys.stdout, format, wide=wide)
    rewinding = Rewinding.asked_for(chosen, snapshot, yes=yes) if allow_rewind else None
    return run_once(chosen, output, notices, commit=True, state=state, rewinding=rewinding)


@cli.command(
    short_help="Show why a group's offsets translate as they do.",
    epilog=f"""\b
Examples:
  tsoffset explain -c mm2.properties --group billing
  tsoffset explain -c mm2.properties --group billing --topic orders --partition 3
  tsoffset explain -c mm2.properties --group billing --format json | jq 'select(.kind == "pair")'

{_EXIT_STATUS}""",
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
@_carried_out
def explain(
    notices: Notices,
    *,
    config: Path,
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

    selection = _selected(notices, config=config, flows=flows, groups=None, topics=None)
    wanted = Wanted(group, topic, partition)
    return run_explain(selection, wanted, Output(sys.stdout, format, wide=wide), notices)


@cli.command(
    short_help="Write translated offsets as Kafka's own tool takes them.",
    epilog=f"""\b
Examples:
  tsoffset export -c mm2.properties > offsets.csv
  kafka-consumer-groups --bootstrap-server b1:9092 --reset-offsets --from-file offsets.csv \\
      --group billing --group shipping --dry-run
  tsoffset export -c mm2.properties --group billing > billing.csv

{_EXIT_STATUS}""",
)
@selection
@click.option(
    "--group",
    metavar="GROUP",
    help="Only this group, by its whole name, in the form for one group.",
)
@STATE
@quiet_logs
@_carried_out
def export(
    notices: Notices, *, group: str | None, state: str | None, **choice: Unpack[Choice]
) -> int:
    """Write the offsets that `sync` would commit, as Kafka's own tool takes them.

    CSV without a header, `group,topic,partition,offset` with the names on the target, or with
    --group `topic,partition,offset`: what kafka-consumer-groups --reset-offsets --from-file reads.
    Only offsets that are not below what the group has there, and none of groups that have members
    there. Nothing is committed.
    """
    from tsoffset.commands.export import run_export

    if group is not None and choice["groups"] is not None:
        raise UsageError("export: --group names one group and --groups chooses some; give one")
    if group is not None:
        choice["groups"] = re.escape(group)
    chosen, output = _selected(notices, **choice), Output(sys.stdout, Format.CSV)
    return run_export(chosen, output, notices, with_group=group is None, state=state)


@cli.command(
    short_help="Bring all groups over, and say of each whether it can move.",
    epilog="""\b
Examples:
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
@FORMAT
@WIDE
@quiet_logs
@_carried_out
def failover(
    notices: Notices,
    *,
    timeout_seconds: float,
    no_pause: bool,
    resume: bool,
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

    chosen, output = _selected(notices, **choice), Output(sys.stdout, format, wide=wide)
    return run_failover(
        chosen,
        output,
        notices,
        timeout_seconds=timeout_seconds,
        pause=not no_pause,
        resume=resume,
    )


@cli.command(
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
@_carried_out
def snapshot(
    notices: Notices,
    *,
    config: Path,
    flows: tuple[str, ...],
    groups: str | None,
    path: Path | None,
) -> int:
    """Keep what the groups of a flow have committed on its target, in a file for `restore`.

    All their commits, on whatever topic, with metadata: JSON, a line each. The file's name is
    printed. The source is not asked, and Spark is not started.
    """
    from tsoffset.commands.snapshots.command import run_snapshot

    chosen = _selected(notices, config=config, flows=flows, groups=groups, topics=None)
    return run_snapshot(chosen, path, Output(sys.stdout, Format.TABLE), notices)


@cli.command(
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
@_carried_out
def restore(
    notices: Notices, *, config: Path, file: Path, format: Format, wide: bool, **wanted: Any
) -> int:
    """Put the commits of a snapshot back, also backwards; groups that have members are left alone.

    Commits that groups have made since where they had none stay, and are named. The source is not
    asked, and Spark is not started.
    """
    from tsoffset.commands.snapshots.command import run_restore
    from tsoffset.config.loading import Configuration

    settings = Configuration.read(config).resolve()
    notices.configuration_warnings(settings.warnings)
    output = Output(sys.stdout, format, wide=wide)
    return run_restore(settings, file, output, notices, **wanted)


@cli.command(
    short_help="Set MirrorMaker 2's checkpoints beside our translations.",
    epilog=f"""\b
Examples:
  tsoffset compare -c mm2.properties
  tsoffset compare -c mm2.properties --flow 'A->B' --groups 'billing.*' --by topic
  tsoffset compare -c mm2.properties --html report.html --every 1m
  tsoffset compare -c mm2.properties --format json | jq 'select(.verdict == "unsafe")'
  tsoffset compare -c mm2.properties --checkpoints dump.txt --history

{_EXIT_STATUS}""",
)
@selection
@word_of(
    "--against", Against.CHECKPOINTS, "What stands beside ours; timestamps is KIP-1292's rule."
)
@click.option(
    "--checkpoints",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Checkpoints from this dump of their topic (CheckpointFormatter's text, or JSON lines).",
)
@click.option(
    "--history",
    "recorded",
    is_flag=True,
    help="Take our translations from what `run` has kept at history.dir, and ask no source.",
)
@word_of("--by", By.PAIR, "What has a line: a pair of group and partition, a group, or a topic.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a report with plots, too: one file that needs no other.",
)
@click.option(
    "--every",
    "every_seconds",
    callback=seconds,
    metavar="TIME",
    help="Compare again and again, so often (30s, 5m, 1h), until SIGTERM or Ctrl-C.",
)
@click.option(
    "--times",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="With --every: no more often than this.",
)
@FORMAT
@WIDE
@quiet_logs
@_carried_out
def compare(
    notices: Notices,
    *,
    against: Against,
    file: Path | None,
    recorded: bool,
    by: By,
    html: Path | None,
    every_seconds: float | None,
    times: int | None,
    format: Format,
    wide: bool,
    **choice: Unpack[Choice],
) -> int:
    """Set what MirrorMaker 2's checkpoint connector has for each group beside our translation.

    Reads its newest checkpoints and the target groups' commits, translates the groups'
    offsets as `plan` does, and says for each group and partition how many records a consumer
    would read again, or skip, if it resumed from the checkpoint. Nothing is committed, and
    Spark is not started.
    """
    from tsoffset.commands.compare.command import Wanted, run_compare

    if times is not None and every_seconds is None:
        raise UsageError("--times counts what --every does again; add --every, such as --every 1m")
    wanted = Wanted(Asked(against, file, recorded), by, html, every_seconds, times)
    output = Output(sys.stdout, format, wide=wide)
    return run_compare(_selected(notices, **choice), wanted, output, notices)


@cli.command(
    short_help="Turn MirrorMaker 2's configuration into ours, with the steps to move.",
    epilog="""\b
Examples:
  tsoffset migrate mm2.properties
  tsoffset migrate mm2.properties -o tsoffset.properties
  tsoffset migrate source.json checkpoint.json -o tsoffset.properties
  kubectl get kafkamirrormaker2 my-mm2 -o yaml | tsoffset migrate /dev/stdin --steps

\b
Exit status:
    0  done
    1  the file cannot be written
    2  bad usage; FILE cannot be read; or something in it has to be changed, where it is marked
  130  interrupted by Ctrl-C""",
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, dir_okay=False),
)
@click.option(
    "-o",
    "--output",
    "to",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the configuration there, and print the steps.",
)
@click.option("--force", is_flag=True, help="Replace the file of -o if it is there.")
@click.option("--steps", "steps_alone", is_flag=True, help="Print the steps alone.")
@quiet_logs
@_carried_out
def migrate(
    notices: Notices,
    *,
    files: tuple[str, ...],
    to: Path | None,
    force: bool,
    steps_alone: bool,
) -> int:
    """Turn what MirrorMaker 2 is configured by into a configuration of tsoffset.

    FILE is a MirrorMaker 2 .properties, the JSON of one or more of its connectors as Connect's
    REST API takes it, or a Strimzi KafkaMirrorMaker2 as YAML. The result only plans until you
    say otherwise, and says in comments what changed, what has no use any more and what is not
    supported. Then come the steps, each with the command that checks it, from the checkpoint
    connector to tsoffset. No cluster is asked and no secret is copied.
    """
    from tsoffset.commands.migrate.command import run_migrate

    output = Output(sys.stdout, Format.TABLE)
    return run_migrate(files, output, notices, to=to, force=force, steps_alone=steps_alone)


@cli.command(
    short_help="List remote topics, clusters upstream, and how late they are.",
    epilog=f"""\b
Examples:
  tsoffset topics -c mm2.properties
  tsoffset topics -c mm2.properties --format json | jq 'select(.kind == "upstream")'

{_EXIT_STATUS}""",
)
@in_order(CONFIG, FLOW)
@FORMAT
@WIDE
@quiet_logs
@_carried_out
def topics(
    notices: Notices, *, config: Path, flows: tuple[str, ...], format: Format, wide: bool
) -> int:
    """List what replicators have made on the clusters of the flows, as their topics' names tell.

    The clusters upstream of each with their hops, and, where MirrorMaker 2 emits heartbeats, how
    old the newest one is and how far replication is behind; remote topics with their originals,
    and MirrorMaker 2's own topics. Nothing is written, and Spark is not started.
    """
    from tsoffset.commands.topics.command import run_topics

    selection = _selected(notices, config=config, flows=flows, groups=None, topics=None)
    return run_topics(selection, Output(sys.stdout, format, wide=wide), notices)


@cli.command(
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
@_carried_out
def history(notices: Notices, *, config: Path, format: Format, wide: bool, **wanted: Any) -> int:
    """Ask the cycles that `run` has kept at history.dir, through Spark SQL.

    Reads what changed in each cycle, of the last seven days unless --since says otherwise, and
    asks no cluster.
    """
    from tsoffset.commands.history import Wanted, run_history

    return run_history(config, Wanted(**wanted), Output(sys.stdout, format, wide=wide), notices)


@cli.command(
    short_help="Run until told to stop: a cycle of each flow per interval.",
    epilog="""\b
Examples:
  tsoffset run -c mm2.properties
  tsoffset run -c mm2.properties --log-format json

\b
Exit status:
  0  ended by SIGTERM or Ctrl-C
  1  Spark could not be started
  2  bad usage or configuration""",
)
@selection
@daemon_logs
@_carried_out
def run(notices: Notices, **choice: Unpack[Choice]) -> int:
    """Run until told to stop: a cycle of each flow per sync.group.offsets.interval.seconds.

    Each flow has its own thread, and all share one Spark session. A cycle that fails is logged
    and the next one is tried; a cluster that is away never ends the command. A configuration file
    that changes is taken up, at once on SIGHUP. SIGTERM and Ctrl-C end it within ten seconds.
    """
    from tsoffset.commands.run import run_daemon
    from tsoffset.daemon.selecting import Selector
    from tsoffset.daemon.signals import Ending

    selector = Selector(**choice)
    if run_daemon(selector, _told(selector.select(), notices)) is Ending.ABANDONED:
        _leave_at_once()
    return 0


def _list_options(work: Callable[..., int]) -> Callable[..., int]:
    """Options that add to each of the four lists and take from it."""
    for key in ("topics.exclude", "topics", "groups.exclude", "groups"):
        option = f"--{key.replace('.', '-')}"
        work = click.option(
            f"{option}-remove",
            multiple=True,
            metavar="ENTRY",
            help=f"Take this entry out of `{key}`, whoever put it there.",
        )(work)
        work = click.option(
            f"{option}-add",
            multiple=True,
            metavar="REGEX",
            help=f"Add a name or regular expression to `{key}`.",
        )(work)
    return work


@cli.command(
    short_help="Show or change which groups and topics a flow takes.",
    epilog="""\b
Examples:
  tsoffset lists -c mm2.properties
  tsoffset lists -c mm2.properties --flow 'A->B' --groups-add 'billing-.*'
  tsoffset lists -c mm2.properties --flow 'A->B' --topics-exclude-add audit --groups-remove search
  tsoffset lists -c mm2.properties --flow 'A->B' --reset

\b
Exit status:
  0  done
  2  bad usage or configuration""",
)
@in_order(CONFIG, FLOW)
@_list_options
@click.option("--reset", is_flag=True, help="Undo all changes, so that the file alone holds.")
@FORMAT
@WIDE
@quiet_logs
@_carried_out
def lists(
    notices: Notices,
    *,
    config: Path,
    flows: tuple[str, ...],
    reset: bool,
    format: Format,
    wide: bool,
    **entries: tuple[str, ...],
) -> int:
    """Show which groups and topics a flow takes, or change that without editing the file.

    Changes are kept in `state.dir` and hold for every command that uses the same file. A running
    `tsoffset run` takes them up with its next cycle. Nothing is committed and no cluster asked.
    """
    from tsoffset.commands.lists import run_lists
    from tsoffset.config.overrides import LIST_KEYS

    selection = _selected(notices, config=config, flows=flows, groups=None, topics=None)
    changes = {}
    for key in LIST_KEYS:
        name = key.replace(".", "_")
        changes[key] = (entries[f"{name}_add"], entries[f"{name}_remove"])
    output = Output(sys.stdout, format, wide=wide)
    return run_lists(selection, changes, output, notices, reset=reset)


def main() -> None:
    """The console script."""
    log_what_nobody_caught()
    words = " ".join(sys.argv[1:]).replace("=", " ").lower()
    if "--log-format json" not in words:
        cli(prog_name="tsoffset")
    try:
        cli(prog_name="tsoffset", standalone_mode=False)
    except click.ClickException as error:
        # The words are wrong, so nothing has set up the logs that they ask for.
        configure_logs(LogFormat.JSON, LogLevel.WARNING)
        Notices(LogFormat.JSON).error(UsageError(error.format_message()), trace=False)
        sys.exit(error.exit_code)
