"""Prints a cycle's rows for a person: the table and the messages."""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from tsoffset.model import OutcomeKind, Row
from tsoffset.terminal.next_step import next_step, step_of_stored
from tsoffset.terminal.report import RowMessage, head, notes, total
from tsoffset.terminal.tables import Cell, Column, partition_name, table

OUTCOME_STYLES = {
    OutcomeKind.COMMITTED: "green",
    OutcomeKind.WOULD_COMMIT: "green",
    OutcomeKind.UNCHANGED: "",
    OutcomeKind.SKIPPED: "yellow",
    OutcomeKind.FAILED: "bold red",
}


def cycle_lines(
    flow: str,
    rows: Sequence[Row],
    summary: Callable[[], str],
    config: str,
    width: int | None,
    *,
    stored: bool = False,
) -> Iterator[Text]:
    """A cycle for a person: the table, the messages with the next steps (`config` is the file that
    commands take), and the summary, which is computed after the lines before it were printed.
    `stored`: the rows are of offsets that an application keeps, and their groups may not exist."""
    yield head(f"flow {flow}")
    if rows:
        yield from table(_COLUMNS, rows, width)
        yield Text()
        messages = (
            RowMessage(
                row.reason or row.outcome,
                row.message,
                step_of_stored(config, row.flow, row.reason)
                if stored
                else next_step(config, row.flow, row.group, row.reason),
            )
            for row in rows
            if row.message is not None
        )
        yield from notes(messages, "row", width)
    yield from total(f"{flow}: {summary()}", width)


def _reason(row: Row) -> Cell | None:
    return None if row.reason is None else Cell(row.reason, OUTCOME_STYLES[row.outcome])


def _in_short(row: Row) -> Cell:
    """The outcome if the reason has no column of its own."""
    words: str = row.outcome
    if row.outcome is OutcomeKind.SKIPPED and row.reason is not None:
        words = row.reason
    elif row.outcome is OutcomeKind.FAILED and row.reason is not None:
        words = f"failed: {row.reason}"
    return Cell(words, OUTCOME_STYLES[row.outcome])


_COLUMNS: tuple[Column[Row], ...] = (
    Column("GROUP", lambda row: row.group, elastic=True, heads=2),
    Column("SOURCE", lambda row: partition_name(row.source_topic, row.partition), elastic=True),
    Column("OFFSET", lambda row: row.source_offset, right=True),
    # May be dropped: the replication policy gives the target's name.
    Column(
        "TARGET", lambda row: partition_name(row.target_topic, row.partition), elastic=True, drops=1
    ),
    Column("OFFSET", lambda row: row.target_offset, right=True, short="TARGET"),
    Column("CURRENT", lambda row: row.current_target_offset, right=True, short="NOW"),
    Column("OUTCOME", lambda row: Cell(row.outcome, OUTCOME_STYLES[row.outcome]), narrow=_in_short),
    Column("REASON", _reason, drops=1),
    Column("PRECISION", lambda row: row.precision, folds=3),
    Column("RE-READ", lambda row: row.reread_bound, right=True, folds=1),
    Column("CONSUMER LAG", lambda row: row.consumer_lag, right=True, drops=0),
)
