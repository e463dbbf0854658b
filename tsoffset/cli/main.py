"""The program `tsoffset`: its commands, and its start."""

import sys
from platform import python_version

import click

from tsoffset.cli import beside, cycles, looking, moving, own_offsets
from tsoffset.cli.carrying_out import EXIT_STATUS
from tsoffset.errors import UsageError
from tsoffset.logs import LogFormat, LogLevel, configure_logs, log_uncaught_errors
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.streams import keep_standard_streams
from tsoffset.version import __version__


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


for command in (
    beside.demo,
    looking.check,
    cycles.plan,
    cycles.sync,
    looking.explain,
    moving.export,
    moving.failover,
    moving.snapshot,
    moving.restore,
    own_offsets.translate,
    beside.compare,
    beside.migrate,
    looking.topics,
    looking.history,
    cycles.run,
    cycles.lists,
):
    cli.add_command(command)


def main() -> None:
    """The console script."""
    keep_standard_streams()
    log_uncaught_errors()
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
