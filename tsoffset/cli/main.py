"""The program `tsoffset`: its commands, and its start. What a command needs is imported when it
runs, so that help is quick. Results go to standard output, everything else to standard error."""

import sys
from platform import python_version

import click

from tsoffset.commands.check.command import check
from tsoffset.commands.compare.command import compare
from tsoffset.commands.explain.command import explain
from tsoffset.commands.export import export
from tsoffset.commands.failover.command import failover
from tsoffset.commands.history import history
from tsoffset.commands.lists import lists
from tsoffset.commands.migrate.command import migrate
from tsoffset.commands.options import EXIT_STATUS, command, flag
from tsoffset.commands.plan_sync import plan, sync
from tsoffset.commands.run import run
from tsoffset.commands.snapshots.command import restore, snapshot
from tsoffset.commands.topics import topics
from tsoffset.commands.translate.command import translate
from tsoffset.errors import UsageError
from tsoffset.logs import LogFormat, LogLevel, configure_logs, log_uncaught_errors
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output
from tsoffset.terminal.streams import keep_standard_streams
from tsoffset.version import __version__


@command(
    "Try tsoffset on this machine: two real Kafka brokers and MirrorMaker 2.",
    """\b
Examples:
  tsoffset demo
  tsoffset demo --scenario failback
  tsoffset demo --keep
  tsoffset demo --stop
  tsoffset demo --secure""",
    click.option(
        "--scenario",
        type=click.Choice(["failover", "failback", "migration", "streaming"], case_sensitive=False),
        default="failover",
        show_default=True,
        help="Scenario to run.",
    ),
    flag("--keep", "Leave the clusters running and print how to explore them."),
    flag("--secure", "Require TLS and a password from all clients of both clusters."),
    flag("--stop", "Stop all clusters that --keep left running, and remove their folders."),
    selects=False,
)
def demo(
    _output: Output, _notices: Notices, *, scenario: str, keep: bool, secure: bool, stop: bool
) -> int:
    """Try tsoffset on this machine: two real Kafka brokers and MirrorMaker 2.

    The failover scenario commits offsets for real groups, syncs once, starts the groups' consumers
    on the target, and counts records re-read and skipped. The failback scenario then moves the
    groups back to the source. The migration scenario replaces MirrorMaker 2's checkpoint connector
    with tsoffset. The streaming scenario migrates the checkpoint of a Spark query. Needs Java 17 or
    later; the first run downloads Kafka's jars.
    """
    if stop:
        if keep or secure:
            raise UsageError("demo: --stop takes no other options; run `tsoffset demo --stop`")
        from tsoffset.lab.demo.stopping import stop_kept

        for sentence in stop_kept():
            click.echo(sentence)
        return 0
    from tsoffset.lab.demo.command import run as play

    return play(scenario, keep=keep, secure=secure)


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
  tsoffset translate -c mm2.properties offsets.json -o translated.json

{EXIT_STATUS}""",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_versions,
    help="Show the versions of tsoffset, Python, PySpark and the client library.",
)
def cli() -> None:
    """Sync the committed offsets of consumer groups from a source Kafka cluster to a target
    cluster, for topics that MirrorMaker 2 or another replicator copies. Reads MirrorMaker 2's own
    configuration file. Needs no change to the replicator, the brokers or the consumers, and never
    moves a group backwards in a cycle.
    """


_COMMANDS = (
    *(demo, check, plan, sync, explain, export, failover, snapshot, restore, translate),
    *(compare, migrate, topics, history, run, lists),
)
for one in _COMMANDS:
    cli.add_command(one)


def main() -> None:
    keep_standard_streams()
    log_uncaught_errors()
    words = " ".join(sys.argv[1:]).replace("=", " ").lower()
    if "--log-format json" not in words:
        cli(prog_name="tsoffset")
    try:
        cli(prog_name="tsoffset", standalone_mode=False)
    except click.ClickException as error:
        # The command line is invalid, so no command has set up the JSON logs that it asks for.
        configure_logs(LogFormat.JSON, LogLevel.WARNING)
        Notices(LogFormat.JSON).error(UsageError(error.format_message()), trace=False)
        sys.exit(error.exit_code)
