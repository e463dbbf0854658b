"""A cycle's rows for a person: the table, and what its messages say."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby

from rich.text import Text

from tsoffset.model import OutcomeKind, Row
from tsoffset.terminal.output import counted
from tsoffset.terminal.tables import Cell, Column, Line, Shape, printable, table, wrapped

_NOTHING = "-"
_MESSAGES_PER_REASON = 3
_STYLES = {
    OutcomeKind.COMMITTED: "green",
    OutcomeKind.WOULD_COMMIT: "green",
    OutcomeKind.UNCHANGED: "",
    OutcomeKind.SKIPPED: "yellow",
    OutcomeKind.FAILED: "bold red",
}


def cycle_lines(flow: str, rows: Sequence[Row], summary: str, width: int | None) -> Iterator[Text]:
    """A cycle for a person: the table, what its messages say, and the summary."""
    yield Text(f"flow {flow}", "bold")
    if rows:
        yield from table(
            [partial(shape, rows) for shape in (_full, _merged, _grouped, _tight)], width
        )
        yield Text()
        yield from _messages(rows, width)
    for line in wrapped(f"{flow}: {summary}", width, "", "  "):
        line.stylize("bold")
        yield line


# --- the shapes of the table of rows ------------------------------------------------------


_GROUP = Column("GROUP", elastic=True)
_SOURCE = Column("SOURCE", elastic=True)
_TARGET = Column("TARGET", elastic=True)
_OFFSET = Column("OFFSET", right=True)
_CURRENT = Column("CURRENT", right=True)
_OUTCOME = Column("OUTCOME")
_PRECISION = Column("PRECISION")
_NARROW = (
    _SOURCE,
    _OFFSET,
    Column("TARGET", right=True),
    Column("NOW", right=True),
    _OUTCOME,
    _PRECISION,
)


def _full(rows: Sequence[Row]) -> Shape:
    """Every field in a column of its own."""
    columns = (
        *(_GROUP, _SOURCE, _OFFSET, _TARGET, _OFFSET, _CURRENT, _OUTCOME),
        *(Column("REASON"), _PRECISION, Column("RE-READ", right=True)),
    )
    return Shape(
        columns,
        tuple(
            Line(
                (
                    _text(row.group),
                    _place(row.source_topic, row.partition),
                    _number(row.source_offset),
                    _place(row.target_topic, row.partition),
                    _number(row.target_offset),
                    _number(row.current_target_offset),
                    Cell(row.outcome.value, _STYLES[row.outcome]),
                    Cell(row.reason or _NOTHING, _STYLES[row.outcome] if row.reason else ""),
                    Cell(row.precision or _NOTHING),
                    _number(row.reread_bound),
                )
            )
            for row in rows
        ),
    )


def _merged(rows: Sequence[Row]) -> Shape:
    """Without the target's name (the policy gives it), and with words put together."""
    columns = (_GROUP, *_NARROW)
    return Shape(columns, tuple(Line((_text(row.group), *_narrow(row))) for row in rows))


def _grouped(rows: Sequence[Row]) -> Shape:
    """As `_merged`, with the group on a line of its own."""
    return Shape(_NARROW, _under_groups(rows, _narrow))


def _tight(rows: Sequence[Row]) -> Shape:
    """As `_grouped`, with the precision behind the outcome."""

    def cells(row: Row) -> tuple[Cell, ...]:
        *others, outcome, precision = _narrow(row)
        if row.precision is not None:
            outcome = Cell(f"{outcome.text} {precision.text}", outcome.style)
        return (*others, outcome)

    return Shape(_NARROW[:-1], _under_groups(rows, cells))


def _under_groups(
    rows: Sequence[Row], cells: Callable[[Row], tuple[Cell, ...]]
) -> tuple[Line, ...]:
    lines = []
    for group, members in groupby(rows, key=lambda row: row.group):
        heading: str | None = _NOTHING if group is None else printable(group)
        for row in members:
            lines.append(Line(cells(row), heading))
            heading = None
    return tuple(lines)


def _narrow(row: Row) -> tuple[Cell, ...]:
    outcome: str = row.outcome.value
    if row.outcome is OutcomeKind.SKIPPED and row.reason is not None:
        outcome = row.reason.value
    elif row.outcome is OutcomeKind.FAILED and row.reason is not None:
        outcome = f"failed: {row.reason.value}"
    precision = row.precision.value if row.precision else _NOTHING
    if row.reread_bound:
        precision += f" {row.reread_bound}"
    return (
        _place(row.source_topic, row.partition),
        _number(row.source_offset),
        _number(row.target_offset),
        _number(row.current_target_offset),
        Cell(outcome, _STYLES[row.outcome]),
        Cell(precision),
    )


def _text(text: str | None) -> Cell:
    return Cell(_NOTHING if text is None else printable(text))


def _place(topic: str | None, partition: int | None) -> Cell:
    if topic is None:
        return Cell(_NOTHING)
    return Cell(printable(topic if partition is None else f"{topic}-{partition}"))


def _number(number: int | None) -> Cell:
    return Cell(_NOTHING) if number is None else Cell(str(number))


# --- what the messages say ----------------------------------------------------------------


def _messages(rows: Sequence[Row], width: int | None) -> Iterator[Text]:
    """Each distinct message once, under its reason; of many only the first few."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        if row.message is not None:
            name = row.reason.value if row.reason else row.outcome.value
            found.setdefault(name, Counter())[row.message] += 1
    for name, messages in found.items():
        yield Text(f"{name} ({counted(messages.total(), 'row')})", "bold")
        for message, number in list(messages.items())[:_MESSAGES_PER_REASON]:
            times = f" ({number} rows)" if number > 1 and len(messages) > 1 else ""
            yield from wrapped(f"{printable(message)}{times}", width)
        if len(messages) > _MESSAGES_PER_REASON:
            more = counted(len(messages) - _MESSAGES_PER_REASON, "further message")
            yield Text(f"  {more}: --format json shows all", "dim")
    if found:
        yield Text()
