"""`demo`, and what is for those who have MirrorMaker 2: `compare`, `migrate`."""

import sys
from pathlib import Path
from typing import Unpack

import click

from tsoffset.cli.carrying_out import EXIT_STATUS, carried_out, choose
from tsoffset.commands.compare.asked import Against, Asked, By
from tsoffset.commands.options import (
    FORMAT,
    WIDE,
    Choice,
    quiet_logs,
    seconds,
    selection,
    word_of,
)
from tsoffset.errors import UsageError
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output


@click.command(
    epilog="""\b
Examples:
  tsoffset demo
  tsoffset demo --scenario failback
  tsoffset demo --keep
  tsoffset demo --stop
  tsoffset demo --secure"""
)
@click.option(
    "--scenario",
    type=click.Choice(
        ["failover", "failback", "compare", "migration", "streaming"], case_sensitive=False
    ),
    default="failover",
    show_default=True,
    help="Scenario to play.",
)
@click.option(
    "--keep", is_flag=True, help="Leave the clusters running and print how to explore them."
)
@click.option(
    "--secure", is_flag=True, help="Have both clusters ask all clients for TLS and a password."
)
@click.option(
    "--stop",
    is_flag=True,
    help="Stop all clusters that --keep left running, and remove their folders.",
)
@quiet_logs
@carried_out
def demo(_: Notices, *, scenario: str, keep: bool, secure: bool, stop: bool) -> int:
    """Try tsoffset on this machine: two real Kafka brokers and MirrorMaker 2.

    The failover scenario commits offsets for real groups, syncs once, starts the groups' consumers
    on the target, and counts records re-read and skipped. The failback scenario then moves the
    groups back to the source. The migration scenario replaces MirrorMaker 2's checkpoint connector
    with tsoffset. The streaming scenario migrates the checkpoint of a Spark query. Needs Java 17;
    the first run downloads Kafka's jars.
    """
    if stop:
        if keep or secure:
            raise UsageError("demo: --stop takes no other options; run `tsoffset demo --stop`")
        from tsoffset.demo.stopping import stop_kept

        for sentence in stop_kept():
            click.echo(sentence)
        return 0
    from tsoffset.demo.command import run
    from tsoffset.demo.scenarios import Scenario

    return run(Scenario(scenario), keep=keep, secure=secure)


@click.command(
    short_help="Compare MirrorMaker 2's checkpoints with tsoffset's offsets.",
    epilog=f"""\b
Examples:
  tsoffset compare -c mm2.properties
  tsoffset compare -c mm2.properties --flow 'A->B' --groups 'billing.*' --by topic
  tsoffset compare -c mm2.properties --html report.html --every 1m
  tsoffset compare -c mm2.properties --format json | jq 'select(.verdict == "unsafe")'
  tsoffset compare -c mm2.properties --checkpoints dump.txt --history

{EXIT_STATUS}""",
)
@selection
@word_of(
    "--against",
    Against.CHECKPOINTS,
    "Compare with the checkpoints, or with the lookup by timestamp of KIP-1292 (timestamps).",
)
@click.option(
    "--checkpoints",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read the checkpoints from this dump of the checkpoints topic (CheckpointFormatter's"
    " text, or JSON lines).",
)
@click.option(
    "--history",
    "recorded",
    is_flag=True,
    help="Read tsoffset's offsets from history.dir, which `run` writes, instead of translating"
    " now.",
)
@word_of("--by", By.PAIR, "Print a line for each group-partition, group or topic.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write a report with plots, as one self-contained HTML file.",
)
@click.option(
    "--every",
    "every_seconds",
    callback=seconds,
    metavar="TIME",
    help="Repeat the comparison at this interval (30s, 5m, 1h), until SIGTERM or Ctrl-C.",
)
@click.option(
    "--times",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="With --every: stop after this number of comparisons.",
)
@FORMAT
@WIDE
@quiet_logs
@carried_out
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
    """Compare MirrorMaker 2's checkpoints with tsoffset's offsets.

    Reads MirrorMaker 2's newest checkpoints and the target groups' committed offsets, and
    translates the groups' offsets as `plan` does. Reports for each group-partition how many
    records a consumer would re-read or skip if it resumed from the checkpoint. Commits nothing and
    does not start Spark.
    """
    from tsoffset.commands.compare.command import Wanted, run_compare

    if times is not None and every_seconds is None:
        raise UsageError("--times limits --every; add --every, for example --every 1m")
    wanted = Wanted(Asked(against, file, recorded), by, html, every_seconds, times)
    output = Output(sys.stdout, format, wide=wide)
    return run_compare(choose(notices, **choice), wanted, output, notices)


@click.command(
    short_help="Convert a MirrorMaker 2 configuration, and print the steps to migrate.",
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
    help="Write the configuration to this file, and print the steps.",
)
@click.option("--force", is_flag=True, help="Overwrite the file of -o if it exists.")
@click.option("--steps", "steps_alone", is_flag=True, help="Print only the steps.")
@quiet_logs
@carried_out
def migrate(
    notices: Notices,
    *,
    files: tuple[str, ...],
    to: Path | None,
    force: bool,
    steps_alone: bool,
) -> int:
    """Convert a MirrorMaker 2 configuration into one for tsoffset.

    FILE is a MirrorMaker 2 .properties, the JSON of one or more of its connectors as Connect's REST
    API takes it, or a Strimzi KafkaMirrorMaker2 as YAML. The result commits nothing until you
    enable it. Its comments name the settings that changed, that are no longer needed, and that are
    not supported. The command then prints the steps from the checkpoint connector to tsoffset, each
    with a command to check it. It connects to no cluster and copies no secret.
    """
    from tsoffset.commands.migrate.command import run_migrate

    output = Output(sys.stdout, Format.TABLE)
    return run_migrate(files, output, notices, to=to, force=force, steps_alone=steps_alone)
