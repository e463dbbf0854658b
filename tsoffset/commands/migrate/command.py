"""`tsoffset migrate` and its options."""

from typing import Any

import click

from tsoffset.commands.options import OUTPUT_FILE, command, flag
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Output


@command(
    "Convert a MirrorMaker 2 configuration, and print the steps to migrate.",
    """\b
Examples:
  tsoffset migrate mm2.properties
  tsoffset migrate mm2.properties -o tsoffset.properties
  tsoffset migrate source.json checkpoint.json -o tsoffset.properties
  kubectl get kafkamirrormaker2 my-mm2 -o yaml | tsoffset migrate /dev/stdin --steps

\b
Exit status:
    0  done
    1  the file cannot be written
    2  bad usage; FILE cannot be read; or settings have to be changed (the result marks them)
  130  interrupted by Ctrl-C""",
    click.argument(
        "files",
        nargs=-1,
        required=True,
        metavar="FILE...",
        type=click.Path(exists=True, dir_okay=False),
    ),
    click.option(
        "-o",
        "--output",
        "to",
        metavar="FILE",
        type=OUTPUT_FILE,
        help="Write the configuration to this file, and print the steps.",
    ),
    flag("--force", "Overwrite the file of -o if it exists."),
    flag("--steps", "Print only the steps.", "steps_alone"),
    selects=False,
    writes_file=True,
)
def migrate(output: Output, notices: Notices, *, files: tuple[str, ...], **options: Any) -> int:
    """Convert a MirrorMaker 2 configuration into one for tsoffset.

    FILE is a MirrorMaker 2 .properties, the JSON of one or more of its connectors as Connect's REST
    API takes it, or a Strimzi KafkaMirrorMaker2 as YAML. The result commits nothing until you
    enable it. Its comments name the settings that changed, that are no longer needed, and that are
    not supported. The command then prints the steps from the checkpoint connector to tsoffset, each
    with a command to check it. It connects to no cluster and copies no secret.
    """
    from tsoffset.commands.migrate.run import run_migrate

    return run_migrate(files, output, notices, **options)
