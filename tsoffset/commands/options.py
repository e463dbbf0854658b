"""The options that commands of `tsoffset` share."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import click

from tsoffset.logs import LogFormat, LogLevel
from tsoffset.model import FailureKind, OutcomeKind, Reason
from tsoffset.terminal.output import Format

F = TypeVar("F", bound=Callable[..., Any])


class Choice(TypedDict):
    """What the options of `selection` say."""

    config: Path
    strict: bool
    flows: tuple[str, ...]
    groups: str | None
    topics: str | None


def word_of(
    option: str, default: StrEnum, text: str, words: Iterable[StrEnum] | None = None
) -> Callable[[F], F]:
    """An option that takes one of an enum's words, or of some of them."""
    kind = type(default)
    return click.option(
        option,
        type=click.Choice([word.value for word in words or kind], case_sensitive=False),
        default=default.value,
        show_default=True,
        callback=lambda _context, _option, word: kind(word),
        help=text,
    )


_CONFIG_FILE = click.option(
    "-c",
    "--config",
    required=True,
    envvar="TSOFFSET_CONFIG",
    show_envvar=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="MirrorMaker 2 .properties file, or a connector's configuration as .json.",
)
_STRICT = click.option(
    "--strict",
    is_flag=True,
    help="Exit with status 2 if FILE has an unknown key, like config.unknown.keys = error.",
)
FLOW = click.option(
    "--flow",
    "flows",
    multiple=True,
    metavar="A->B",
    help="Only this flow; may be given several times.  [default: all enabled flows]",
)
GROUPS = click.option(
    "--groups",
    metavar="REGEX",
    help="Only configured groups whose full name matches.",
)
TOPICS = click.option(
    "--topics",
    metavar="REGEX",
    help="Only configured topics whose full name on the source matches.",
)
FORMAT = word_of("--format", Format.TABLE, "Output format; json prints one object per line.")


def outcome_of(*outcomes: OutcomeKind) -> Callable[[F], F]:
    """The option that narrows what is printed to some of these outcomes."""
    return click.option(
        "--outcome",
        "outcomes",
        multiple=True,
        type=click.Choice([word.value for word in outcomes], case_sensitive=False),
        help="Print only rows with this outcome; may be given several times. The command still"
        " processes all rows, and its summary and exit status count all of them.",
    )


OUTCOME = outcome_of(*OutcomeKind)
REASON = click.option(
    "--reason",
    "reasons",
    multiple=True,
    type=click.Choice([word.value for word in (*Reason, *FailureKind)], case_sensitive=False),
    metavar="REASON",
    help="Print only rows with this reason, for example TARGET_AHEAD; works like --outcome.",
)
WIDE = click.option(
    "--wide",
    is_flag=True,
    help="Print every column and full lines, whatever the terminal's width.",
)


YES = click.option(
    "--yes", is_flag=True, help="Do not ask for confirmation before groups are moved backwards."
)


class _Directory(click.Path):
    """A folder, there already or not; or a URI, which is looked at when it is used."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if "://" in value else super().convert(value, param, ctx)


STATE = click.option(
    "--state",
    type=_Directory(file_okay=False),
    metavar="FOLDER",
    help="Where translations are cached for the next cycle: a folder, or a URI such as"
    " s3://bucket/prefix.  [default: state.dir, if set]",
)


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def seconds(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """A click callback: seconds of a time such as 90m; None where none is given."""
    if value is None:
        return None
    number, unit = value[:-1], value[-1:]
    known = number.isascii() and number.isdigit() and len(number) < 7 and unit in _UNITS
    if not known or int(number) == 0:
        raise click.BadParameter(
            f"{value!r} is not a duration. Write for example 30s, 90m, 36h, 7d or 4w."
        )
    return float(int(number) * _UNITS[unit])


SINCE = click.option(
    "--since",
    "since_seconds",
    callback=seconds,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="Time range that ends now: 90m, 36h, 7d, 4w.",
)
LOG_FORMAT = word_of(
    "--log-format", LogFormat.CONSOLE, "Format of logs and warnings on standard error."
)
DEBUG = click.option(
    "--debug", is_flag=True, help="Log at level debug, and print a traceback if the command fails."
)


def log_level(default: LogLevel) -> Callable[[F], F]:
    """What is worth logging, where a command is asked for nothing else."""
    return word_of("--log-level", default, "Log level.")


def in_order(*options: Callable[[F], F]) -> Callable[[F], F]:
    """The options in the order in which help shows them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


CONFIG = in_order(_CONFIG_FILE, _STRICT)
selection = in_order(CONFIG, FLOW, GROUPS, TOPICS)
quiet_logs = in_order(LOG_FORMAT, log_level(LogLevel.WARNING), DEBUG)
daemon_logs = in_order(LOG_FORMAT, log_level(LogLevel.INFO), DEBUG)
