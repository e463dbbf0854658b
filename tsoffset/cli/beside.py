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
@click.option(
    "--stop",
    is_flag=True,
    help="End all clusters that --keep has left running, and remove their folders.",
)
@quiet_logs
@carried_out
def demo(_: Notices, *, scenario: str, keep: bool, secure: bool, stop: bool) -> int:
    """See it work: two real brokers and MirrorMaker 2 on this machine.

    Real groups at many depths, one sync, then a failover that counts which records were read
    again and which were skipped; or, as failback, the way back after some work there; as
    migration, the way from MirrorMaker 2's checkpoint connector to tsoffset. Needs Java 17, and
    once the network for Kafka's jars.
    """
    if stop:
        if keep or secure:
            raise UsageError("demo: --stop ends what --keep has left; give it alone")
        from tsoffset.demo.stopping import stop_kept

        for sentence in stop_kept():
            click.echo(sentence)
        return 0
    from tsoffset.demo.command import run
    from tsoffset.demo.scenarios import Scenario

    return run(Scenario(scenario), keep=keep, secure=secure)


@click.command(
    short_help="Set MirrorMaker 2's checkpoints beside our translations.",
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
    return run_compare(choose(notices, **choice), wanted, output, notices)


@click.command(
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
@carried_out
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
