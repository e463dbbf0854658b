"""`tsoffset history`: questions to past cycles, through Spark SQL."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tsoffset.commands.scope import in_history, no_match
from tsoffset.config.loading import Configuration
from tsoffset.errors import HistoryFailed, UsageError
from tsoffset.flow.narrowing import expression
from tsoffset.flow.patterns import matches
from tsoffset.flow.settings import Settings
from tsoffset.logs import LogFormat
from tsoffset.terminal.notices import Notices
from tsoffset.terminal.output import Format, Output, counted, csv_line
from tsoffset.terminal.progress import progress
from tsoffset.terminal.tables import Column, table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tsoffset.history.views import Opened, ViewScope
    from tsoffset.stores import Place

_Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked: a ready `question` (its word), or one's own `sql`. `cycles` and `limit` are
    for ready ones."""

    question: str | None
    sql: str | None
    flows: tuple[str, ...]
    groups: str | None
    since_seconds: float
    cycles: int
    limit: int


def run_history(
    configuration: Configuration, wanted: Wanted, output: Output, notices: Notices
) -> int:
    """Print the answer, and return the exit status. Raises ConfigurationError, UsageError,
    HistoryFailed, and what keeps Spark from starting."""
    if (wanted.question is None) == (wanted.sql is None):
        raise UsageError("give one query: stuck, worst or accuracy, or --sql TEXT")
    pattern = expression("--groups", wanted.groups)
    settings = configuration.resolve()
    for warning in settings.warnings:
        notices.warning("configuration_warning", warning)
    for flow in wanted.flows:
        settings.flow(flow)
    directory = settings.history.directory
    if directory is None:
        raise UsageError(
            "history.dir is not set, so no past cycles are kept; set it to a folder or a URI, and"
            " restart `tsoffset run`"
        )
    # Imported here, since nothing above should wait for Spark to be loaded.
    from tsoffset.history.views import ViewScope
    from tsoffset.spark.session import spark_session

    asked = ViewScope(wanted.flows, max(0.0, time.time() - wanted.since_seconds), pattern)
    with (
        progress("querying the history", wanted=notices.format is LogFormat.CONSOLE),
        spark_session(settings.spark, app_name="tsoffset history") as session,
    ):
        opened = _opened(session, directory, asked, partial(_place, configuration))
        rows = _answer(session, wanted)
    for warning in opened.warnings:
        notices.warning("history_not_read", warning)
    if not rows and wanted.groups is not None:
        _require_known_group(settings, wanted)
    _print(rows, output)
    if not opened.files:
        notices.warning(
            "history_empty",
            f"{directory} has no cycle in that time range: keep `tsoffset run` running with this"
            " history.dir, or look further back with --since.",
        )
    notices.note(f"{counted(len(rows), 'row')} from {counted(opened.files, 'file')} of history")
    return 0


def _require_known_group(settings: Settings, wanted: Wanted) -> None:
    """Raise UsageError where history knows none of the groups that are wanted: an empty answer is
    not about them."""
    flows = [settings.flow(name) for name in wanted.flows] or settings.flows
    found = [names for names in map(in_history(settings), flows) if names is not None]
    groups = {group for names in found for group in names.groups}
    pattern = expression("--groups", wanted.groups)
    if groups and pattern and not any(matches(pattern, group) for group in groups):
        raise UsageError(no_match("group", wanted.groups or "", groups))


def _place(configuration: Configuration) -> "Place":
    """Where history lies, in the process that calls it: `${...}` is resolved there."""
    from tsoffset.stores import place_of

    directory = configuration.resolve().history.directory
    assert directory is not None
    return place_of(directory)


def _opened(
    session: "SparkSession", directory: str, asked: "ViewScope", again: Callable[[], "Place"]
) -> "Opened":
    from tsoffset.history.views import open_views
    from tsoffset.stores import UNREACHABLE, in_words, place_of

    root = place_of(directory)
    try:
        return open_views(session, root, asked, again)
    except UNREACHABLE as error:
        raise HistoryFailed(
            f"read history, {root.path('')}: {in_words(root, error)}; check that this user can"
            " reach and read it"
        ) from error


def _answer(session: "SparkSession", wanted: Wanted) -> "pa.Table":
    from tsoffset.history.questions import HistoryQuery, answer, own_answer

    if wanted.question is None:
        return own_answer(session, wanted.sql or "")
    question = HistoryQuery(wanted.question)
    return answer(session, question, cycles=wanted.cycles, limit=wanted.limit)


def _print(rows: "pa.Table", output: Output) -> None:
    names = rows.schema.names
    values: Iterable[_Values] = zip(
        *(map(_plain, one.to_pylist()) for one in rows.columns), strict=True
    )
    if output.format is Format.TABLE:
        output.lines(_lines(names, list(values), output.width))
    elif output.format is Format.JSON:
        output.encoded(
            names, (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in values)
        )
    else:
        output.encoded(names, map(csv_line, values))
    output.flush()


def _lines(names: Sequence[str], rows: Sequence[_Values], width: int | None) -> Iterator[Text]:
    columns = [_column(at, name, rows) for at, name in enumerate(names)]
    return table(columns, rows, width)


def _column(at: int, name: str, rows: Sequence[_Values]) -> Column[_Values]:
    numbers = all(isinstance(row[at], int | float | None) for row in rows)
    return Column(
        name.upper(),
        lambda row: None if row[at] is None else str(row[at]),
        right=numbers,
        elastic=not numbers,
    )


def _plain(value: Any) -> Any:
    """What JSON can say of a value of Spark's; times are UTC."""
    match value:
        case datetime():
            return value.strftime("%Y-%m-%dT%H:%M:%SZ")
        case None | bool() | int() | float() | str():
            return value
        case date():
            return value.isoformat()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {str(name): _plain(one) for name, one in value.items()}
    return str(value)
