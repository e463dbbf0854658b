"""`translate`, for applications that keep their offsets outside of consumer groups."""

from typing import TYPE_CHECKING

import click

from tsoffset.commands.options import CONFIG, ONE_FLOW, OUTPUT, command, flag, seconds
from tsoffset.errors import UsageError
from tsoffset.model import Precision
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection


@command(
    "Translate offsets that an application keeps itself.",
    """\b
Examples:
  tsoffset translate -c mm2.properties offsets.json -o translated.json
  tsoffset translate -c mm2.properties --spark-checkpoint s3a://bucket/query -o /data/migrated
  tsoffset translate -c mm2.properties --spark-checkpoint /data/query --starting-offsets -o -
  tsoffset translate -c mm2.properties --flink orders 'partition:0,offset:42' -o -
  tsoffset translate -c mm2.properties offsets.csv -o translated.csv --every 60

\b
Exit status:
    0  every offset has an exact (or accepted) translation
    1  an offset has none; nothing is written
    2  bad usage, configuration or input
    3  a cluster could not be reached at all
  130  interrupted by Ctrl-C""",
    *(*CONFIG, ONE_FLOW),
    click.argument("file", required=False, metavar="[FILE]"),
    click.option(
        "--spark-checkpoint",
        "checkpoint",
        metavar="URI",
        help="Translate the checkpoint of a Spark Structured Streaming query. The output is a"
        " migrated copy of it, in a folder that does not exist yet.",
    ),
    flag(
        "--starting-offsets",
        "With --spark-checkpoint: write the option `startingOffsets` instead, one line for"
        " each Kafka source.",
    ),
    click.option(
        "--flink",
        nargs=2,
        metavar="TOPIC OFFSETS",
        help="Translate Flink SQL's scan.startup.specific-offsets of a topic.",
    ),
    click.option(
        "-o",
        "--output",
        "written",
        metavar="FILE",
        help="Where the translation is written, in the form of the input, in a folder that exists;"
        " `-` is standard output.  [default: nothing is written]",
    ),
    click.option(
        "--accept",
        "accepted",
        multiple=True,
        type=click.Choice([Precision.BOUNDED.value, Precision.FRONTIER.value]),
        help="Also write translations of this precision: the application may read records again, at"
        " most as many as the row says. May be given several times.",
    ),
    click.option("--as", "group", metavar="NAME", help="Name in the column `group` of the rows."),
    click.option(
        "--every",
        "every_seconds",
        callback=seconds,
        metavar="SECONDS",
        help="Translate again at this interval, and replace the output each time.",
    ),
    *OUTPUT,
    writes_file=True,
)
def translate(
    selection: "Selection",
    output: Output,
    notices: Notices,
    *,
    file: str | None,
    checkpoint: str | None,
    starting_offsets: bool,
    flink: tuple[str, str] | None,
    written: str | None,
    accepted: tuple[str, ...],
    group: str | None,
    every_seconds: float | None,
) -> int:
    """Translate offsets that an application keeps itself, outside of consumer groups.

    FILE holds offsets as Spark's JSON, as the JSON of Kafka's tools, or as CSV; `-` is standard
    input. Prints a row for each offset, like `plan`. Writes the translated offsets in the same
    form, whole or not at all. Commits nothing on either cluster.
    """
    from tsoffset.commands.translate.run import run_translate
    from tsoffset.offset_files.document import Document
    from tsoffset.offset_files.formats import read_flink
    from tsoffset.offset_files.reading import STANDARD, read_file, require_output
    from tsoffset.offset_files.spark_checkpoint import (
        SparkCheckpoint,
        new_folder,
        read_checkpoint,
        require_outside,
    )

    if "" in (file, checkpoint, written):
        raise UsageError("translate: the name of the input or of the output is empty")
    if sum(one is not None for one in (file, checkpoint, flink)) != 1:
        raise UsageError("translate: give one input: FILE, --spark-checkpoint or --flink")
    if starting_offsets and checkpoint is None:
        raise UsageError("translate: --starting-offsets needs --spark-checkpoint")
    if every_seconds is not None and (file == STANDARD or written in (None, STANDARD)):
        raise UsageError("translate: --every needs an input and an output (-o) that are files")
    if checkpoint is not None and not starting_offsets and written is not None:
        if every_seconds is not None:
            raise UsageError(
                "translate: --every cannot migrate a checkpoint, since the query must have stopped;"
                " add --starting-offsets, or leave --every out"
            )
        if written == STANDARD:
            raise UsageError("translate: a migrated checkpoint is a folder; name it with -o")
        new_folder(written)
    elif written is not None:
        require_output(file, written)
        if checkpoint is not None and written != STANDARD:
            require_outside(checkpoint, written)

    def read() -> Document | SparkCheckpoint:
        if checkpoint is not None:
            found = read_checkpoint(checkpoint)
            return found.starting_offsets() if starting_offsets else found
        if flink is not None:
            return read_flink(*flink)
        assert file is not None
        return read_file(file)

    return run_translate(
        selection,
        read,
        output,
        notices,
        written=written,
        group=group,
        accepted=tuple(map(Precision, accepted)),
        every_seconds=every_seconds,
    )
