"""What the commands of `tsoffset` share: their options, and how a command runs and ends.

Each command declares its options in its own module. Such a module loads neither Kafka nor Spark
before the command runs, so that help and usage errors come quickly.
"""

import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tsoffset.errors import UsageError
from tsoffset.logs import LogFormat, LogLevel, configure_logs
from tsoffset.model import FailureKind, OutcomeKind, Reason
from tsoffset.terminal.interrupts import INTERRUPTED, raise_on_interrupt
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output
from tsoffset.terminal.streams import write_failure

if TYPE_CHECKING:
    from tsoffset.config.selection import Selection
    from tsoffset.flow.settings import FlowSettings

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

EXIT_STATUS = """\b
Exit status:
    0  success (skipped rows count as success)
    1  at least one row failed
    2  bad usage or configuration
    3  a cluster could not be reached at all
  130  interrupted by Ctrl-C"""


_INTERRUPTED_COMMITS = (
    "interrupted; offsets that were committed by then stay committed: run the command again to"
    " finish"
)

# Packages that only some commands need: the name under which each is imported, and its extra in
# pyproject.toml.
_EXTRAS = {
    "matplotlib": "report",
    "pooch": "lab",
    "platformdirs": "lab",
}


def command(
    short_help: str,
    epilog: str,
    *options: Option,
    selects: bool = True,
    writes_file: bool = False,
    commits: bool = False,
    format: Format = Format.TABLE,
    log_level: LogLevel = LogLevel.WARNING,
) -> Callable[[Callable[..., int]], click.Command]:
    """Make a command of a function that returns its exit status.

    The function gets the selection that CONFIG, FLOW, GROUPS and TOPICS make (with
    `selects=False` these options themselves), the output, the notices, and its other options by
    name. `format` is the output format of a command without the options OUTPUT. An error ends the
    command with one sentence; `--debug` adds a traceback.
    `writes_file`: standard output is meant for a file, and the status is 1 if it is incomplete.
    `commits`: the command commits offsets, and after Ctrl-C a note says that these stay committed.
    """
    options += (LOG_FORMAT, choice("--log-level", log_level, "Log level."), DEBUG)

    def decorate(work: Callable[..., int]) -> click.Command:
        @wraps(work)
        def run(
            *, log_format: LogFormat, log_level: LogLevel, debug: bool, **given: Any
        ) -> NoReturn:
            configure_logs(log_format, LogLevel.DEBUG if debug else log_level)
            notices = Notices(log_format)
            wide = given.pop("wide", False)
            output = Output(sys.stdout, given.pop("format", format), wide=wide)
            try:
                with raise_on_interrupt():
                    chosen = (select(given, notices),) if selects else ()
                    status = work(*chosen, output, notices, **given)
            except (KeyboardInterrupt, click.Abort):
                may_commit = commits and not given.get("dry_run")
                notices.note(_INTERRUPTED_COMMITS if may_commit else "interrupted")
                status = INTERRUPTED
            except Exception as error:
                named = name_missing_extra(error)
                notices.error(named, trace=debug)
                status = getattr(named, "exit_status", 1)
            sys.stdout.flush()
            failure = write_failure(sys.stdout)
            if failure is not None and not isinstance(failure, BrokenPipeError):
                notices.warning(
                    "output_incomplete",
                    f"Standard output could not be written ({failure.strerror}): the output of this"
                    " command is incomplete. Free disk space, or redirect the output to another"
                    " file.",
                )
                status = status or int(writes_file)
            sys.exit(status)

        function: Callable[..., Any] = run
        for option in reversed(options):
            function = option(function)
        return click.command(short_help=short_help, epilog=epilog)(function)

    return decorate


def name_missing_extra(error: Exception) -> Exception:
    """A UsageError that names the extra, if the error is the failed import of one of its packages;
    else the error itself."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in _EXTRAS:
        return error
    return UsageError(
        f"This command needs the Python package {package}, which is not installed here: "
        f"pip install 'tsoffset[{_EXTRAS[package]}]'"
    )


def select(options: dict[str, Any], notices: Notices | None = None) -> "Selection":
    """Take the options of CONFIG, FLOW, GROUPS and TOPICS out of `options`, and return what they
    choose. With `notices` the warnings about the configuration are printed."""
    from tsoffset.config.selection import Selector

    names = ("config", "strict", "flows", "groups", "topics")
    selection = Selector(**{name: options.pop(name, None) for name in names}).select()
    if notices is not None:
        notices.configuration_warnings(selection.settings.warnings)
    return selection


def only_flow(selection: "Selection", command: str) -> "FlowSettings":
    """The one flow that a command works on. Raises UsageError where several are selected."""
    if len(selection.flows) != 1:
        names = ", ".join(flow.name for flow in selection.flows)
        raise UsageError(
            f"{command}: several flows are enabled: {names}; choose one with --flow A->B"
        )
    return selection.flows[0]


def require_terminal(*, yes: bool) -> None:
    """Raise UsageError without `--yes` and without a terminal to ask for confirmation."""
    if not yes and not sys.stdin.isatty():
        raise UsageError(
            "This may move groups back, or past unread records, and there is no terminal to ask for"
            " confirmation. Confirm with --yes."
        )


def confirm(question: str, *, yes: bool) -> bool:
    """Ask at the terminal, unless `--yes` is given. Raises as `require_terminal`."""
    require_terminal(yes=yes)
    return yes or click.confirm(question, err=True)


# --- options --------------------------------------------------------------------------------


def flag(name: str, text: str, variable: str | None = None) -> Option:
    return click.option(name, *filter(None, [variable]), is_flag=True, help=text)


def choice(
    name: str, default: StrEnum, text: str, words: Iterable[StrEnum] | None = None
) -> Option:
    """An option that takes one of the enum's values; with `words` one of these."""
    kind = type(default)
    return click.option(
        name,
        type=Words([word.value for word in words or kind], case_sensitive=False),
        default=default.value,
        show_default=True,
        callback=lambda _context, _option, word: kind(word),
        help=text,
    )


class Words(click.Choice[str]):
    """One of these words. The error shows them as they are written, and the most similar ones."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        from tsoffset.group_sync.no_match import did_you_mean

        near = did_you_mean(str(value), self.choices)
        return f"{value!r} is not one of {', '.join(map(repr, self.choices))}.{near}"


class _Directory(click.Path):
    """A folder, which may not exist yet; or a URI, which is checked when it is used."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if "://" in value else super().convert(value, param, ctx)


class _OutputFile(click.Path):
    """A file that will be written. Its folder must exist: a mistyped one is not created."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from tsoffset.stores import is_missing

        path: Any = super().convert(value, param, ctx)
        if is_missing(path.parent):
            self.fail(f"The folder {str(path.parent)!r} does not exist. Create it first.")
        return path


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_CENTURY = 5_200 * _UNITS["w"]  # No system call waits much longer.


def seconds(_context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A click callback: the seconds of a duration such as 90m, or of a plain number if the option
    takes SECONDS; None without one."""
    if value is None:
        return None
    plain = option.metavar == "SECONDS"
    text = f"{value}s" if plain and value.isdigit() else value
    number, unit = text[:-1], _UNITS.get(text[-1:], 0)
    is_number = number.isascii() and number.isdigit() and len(number) < 12
    found = int(number) * unit if is_number else 0
    if not 0 < found < _CENTURY:
        examples = "60, 90m" if plain else "30s, 90m"
        raise click.BadParameter(
            f"{value!r} is not a duration. Write for example {examples}, 36h, 7d or 4w."
        )
    return float(found)


INPUT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FILE = _OutputFile(dir_okay=False, path_type=Path)
CONFIG = (
    click.option(
        "-c",
        "--config",
        required=True,
        envvar="TSOFFSET_CONFIG",
        show_envvar=True,
        type=INPUT_FILE,
        metavar="FILE",
        help="MirrorMaker 2 .properties file, or a connector's configuration as .json.",
    ),
    flag(
        "--strict",
        "Exit with status 2 if FILE has an unknown key, like config.unknown.keys = error.",
    ),
)


def _flow(help_text: str) -> Option:
    return click.option("--flow", "flows", multiple=True, metavar="A->B", help=help_text)


FLOW = _flow("Only this flow; may be given several times.  [default: all enabled flows]")
ONE_FLOW = _flow("The flow; needed if several are enabled.")
GROUPS = click.option(
    "--groups", metavar="REGEX", help="Only configured groups whose full name matches."
)
TOPICS = click.option(
    "--topics",
    metavar="REGEX",
    help="Only configured topics whose full name on the source matches.",
)
SELECTION = (*CONFIG, FLOW, GROUPS, TOPICS)
OUTCOME = click.option(
    "--outcome",
    "outcomes",
    multiple=True,
    type=Words([kind.value for kind in OutcomeKind], case_sensitive=False),
    help="Print only rows with this outcome; may be given several times. The command still"
    " processes all rows, and its summary and exit status count all of them.",
)
REASON = click.option(
    "--reason",
    "reasons",
    multiple=True,
    type=Words([one.value for one in (*Reason, *FailureKind)], case_sensitive=False),
    metavar="REASON",
    help="Print only rows with this reason, for example TARGET_AHEAD; works like --outcome.",
)
FORMAT_HELP = "Output format; json prints one object per line."
WIDE = flag("--wide", "Print every column and full lines, whatever the terminal's width.")
OUTPUT = (choice("--format", Format.TABLE, FORMAT_HELP), WIDE)
YES = flag("--yes", "Do not ask for confirmation before groups are moved.")
STATE = click.option(
    "--state",
    type=_Directory(file_okay=False),
    metavar="FOLDER",
    help="Where translations are cached for the next cycle: a folder, or a URI such as"
    " s3://bucket/prefix.  [default: state.dir, if set]",
)
LOG_FORMAT = choice(
    "--log-format", LogFormat.CONSOLE, "Format of logs and warnings on standard error."
)
DEBUG = flag("--debug", "Log at level debug, and print a traceback if the command fails.")
