"""`tsoffset history`: queries of past cycles in Spark SQL."""

import math
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsoffset.commands.options import CONFIG, FLOW, OUTPUT, Words, command, seconds
from tsoffset.errors import HistoryFailed, UsageError
from tsoffset.flow.narrowing import expression
from tsoffset.flow.patterns import matches
from tsoffset.group_sync.no_match import no_match
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, plural
from tsoffset.terminal.tables import Column, table

if TYPE_CHECKING:
    import pyarrow as pa

    from tsoffset.config.loading import Configuration
    from tsoffset.flow.settings import Settings
    from tsoffset.stores import Store

_Values = tuple[Any, ...]


def _number(option: str, default: int, text: str) -> Any:
    kind = click.IntRange(min=1)
    return click.option(
        option, type=kind, default=default, show_default=True, metavar="NUMBER", help=text
    )


@command(
    "Query past cycles: stuck groups, re-read bounds, precision.",
    """\b
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
    *(*CONFIG, FLOW),
    click.option("--groups", metavar="REGEX", help="Only groups whose full name matches."),
    click.option(
        "--since",
        "since_seconds",
        callback=seconds,
        default="7d",
        show_default=True,
        metavar="TIME",
        help="Time range that ends now: 90m, 36h, 7d, 4w.",
    ),
    _number("--cycles", 10, "With stuck: the least number of cycles without progress."),
    _number("--limit", 100, "Print at most this number of rows. Not for --sql."),
    click.option(
        "--sql", metavar="TEXT", help="Run this SQL query over the views `cycles` and `pairs`."
    ),
    *OUTPUT,
    click.argument(
        "question",
        required=False,
        type=Words(["stuck", "worst", "accuracy"], case_sensitive=False),
    ),
    selects=False,
)
def history(
    output: Output,
    notices: Notices,
    *,
    config: Path,
    strict: bool,
    flows: Sequence[str],
    groups: str | None,
    since_seconds: float,
    cycles: int,
    limit: int,
    sql: str | None,
    question: str | None,
) -> int:
    """Query the cycles that `run` keeps in history.dir.

    Runs in Spark SQL over the last seven days, or the time of --since. Connects to no cluster.
    """
    from tsoffset.config.loading import Configuration

    configuration = Configuration.read(config, strict=strict)
    if (question is None) == (sql is None):
        raise UsageError("give one query: stuck, worst or accuracy, or --sql TEXT")
    pattern = expression("--groups", groups)
    settings = configuration.resolve()
    notices.configuration_warnings(settings.warnings)
    for flow in flows:
        settings.flow(flow)
    directory = settings.history.directory
    if directory is None:
        raise UsageError(
            "history.dir is not set, so no past cycles are kept; set it to a folder or a URI, and"
            " restart `tsoffset run`"
        )
    from tsoffset.history.questions import HistoryQuery, answer, own_answer
    from tsoffset.history.views import ViewScope, open_views
    from tsoffset.spark.session import spark_session
    from tsoffset.stores import UNREACHABLE, in_words, store_at

    scope = ViewScope(tuple(flows), max(0.0, time.time() - since_seconds), pattern)
    root = store_at(directory)
    with (
        notices.progress("querying the history"),
        spark_session(settings.spark, app_name="tsoffset history") as session,
    ):
        try:
            opened = open_views(session, root, scope, partial(_history_store, configuration))
        except UNREACHABLE as error:
            raise HistoryFailed(
                f"read history, {root.path('')}: {in_words(root, error)}; check that this user can"
                " reach and read it"
            ) from error
        if question is None:
            rows = own_answer(session, sql or "")
        else:
            rows = answer(session, HistoryQuery(question), cycles=cycles, limit=limit)
    for warning in opened.warnings:
        notices.warning("history_not_read", warning)
    if not rows and groups is not None:
        _require_known_group(settings, flows, groups)
    _print(rows, output)
    if not opened.files:
        notices.warning("history_empty", _why_empty(directory, root))
    notices.note(f"{plural(len(rows), 'row')} from {plural(opened.files, 'file')} of history")
    return 0


def _why_empty(directory: str, root: "Store") -> str:
    from tsoffset.history.files import flows

    if not flows(root):
        return (
            f"{directory} holds no history: check `history.dir`, and keep `tsoffset run` running"
            " with it."
        )
    return (
        f"{directory} has no cycle in that time range: keep `tsoffset run` running with this"
        " history.dir, or look further back with --since."
    )


def _require_known_group(settings: "Settings", flows: Sequence[str], groups: str) -> None:
    """Raise UsageError if the history knows none of the groups, so that an empty answer is not
    taken for good news."""
    from tsoffset.history.reading import last_known

    assert settings.history.directory is not None
    known: set[str] = set()
    for name in flows or [flow.name for flow in settings.flows]:
        if (last := last_known(settings.history.directory, name)) is not None:
            known |= {*last[0]["group"].drop_null().unique().to_pylist()}
    pattern = expression("--groups", groups)
    if known and not any(matches(pattern, group) for group in known):
        raise UsageError(no_match("group", groups, known))


def _history_store(configuration: "Configuration") -> "Store":
    """The store of the history, in the process that calls this: `${...}` is resolved there."""
    from tsoffset.stores import store_at

    directory = configuration.resolve().history.directory
    assert directory is not None
    return store_at(directory)


def _print(rows: "pa.Table", output: Output) -> None:
    names = rows.schema.names
    twice = sorted(name for name, number in Counter(names).items() if number > 1)
    if twice and output.format is Format.JSON:
        raise UsageError(
            f"--sql: several columns are named {', '.join(twice)}, and an object of JSON can hold"
            " only one of them; name them apart with AS"
        )
    values = list(zip(*(map(_plain, one.to_pylist()) for one in rows.columns), strict=True))
    if output.format is Format.TABLE:
        columns = [_column(at, name, values) for at, name in enumerate(names)]
        output.lines(table(columns, values, output.width))
    else:
        output.rows(names, values)
    output.flush()


def _column(at: int, name: str, rows: Sequence[_Values]) -> Column[_Values]:
    numbers = all(isinstance(row[at], int | float | None) for row in rows)
    return Column(
        name.upper(),
        lambda row: None if row[at] is None else str(row[at]),
        right=numbers,
        elastic=not numbers,
    )


def _plain(value: Any) -> Any:
    """A value of Spark as JSON can hold it; times are UTC."""
    match value:
        case datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%SZ")
        case float() if not math.isfinite(value):
            # JSON has no such number.
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(name): _plain(one) for name, one in value.items()}
    return str(value)
