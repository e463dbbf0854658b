"""Text tables that fit the terminal.

A column has its title, its value, and the step of narrowing at which it is dropped, folded or
becomes a heading. A table that is too wide is narrowed step by step until it fits; then names lose
their middle. Without a limit (a file, a pipe, `--wide`) every column is whole, so that lines can be
searched and cut.

rich's own table takes 1.5 ms a row, and a large cycle has 100,000 rows.
"""

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from rich.cells import cell_len, set_cell_size
from rich.text import Span, Text

from tsoffset.printable import printable

R = TypeVar("R")

NOTHING = "-"
_GAP = "  "
_ELLIPSIS = "…"
_NEVER = 99
# Longer names are shortened before columns are dropped.
_LONG_NAME = 40
_SHORTEST_NAME = 10


class Cell(NamedTuple):
    """A value of a table; `style` is rich's (`red`, `dim`)."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column: its title, and its value for a row; None is shown as `-`.

    An `elastic` column holds names, which may lose their middle on a terminal. From the given step
    of narrowing on, a column that `drops` is omitted, one that `folds` is appended to the column
    before it, and one that `heads` becomes a heading over the rows that share its value. `short`
    and `narrow` replace title and value from step 1 on. A column that drops at step 0 is shown only
    if all others fit beside it.
    """

    title: str
    value: Callable[[R], Cell | str | int | None]
    right: bool = False
    elastic: bool = False
    drops: int = _NEVER
    folds: int = _NEVER
    heads: int = _NEVER
    short: str | None = None
    narrow: Callable[[R], Cell | str | int | None] | None = None


@dataclass(frozen=True, slots=True)
class _Shape(Generic[R]):
    """The columns at one step of narrowing, each with those folded into it."""

    columns: list[list[Column[R]]]
    heads: list[Column[R]]
    narrowed: bool

    @classmethod
    def at(cls, step: int, columns: Sequence[Column[R]]) -> "_Shape[R]":
        kept: list[list[Column[R]]] = []
        for column in columns:
            if column.folds <= step:
                kept[-1].append(column)
            elif min(column.drops, column.heads) > step:
                kept.append([column])
        return cls(kept, [column for column in columns if column.heads <= step], step > 0)

    @property
    def titles(self) -> list[Cell]:
        return [
            Cell((self.narrowed and column.short) or column.title, "bold")
            for column, *_ in self.columns
        ]

    @property
    def indent(self) -> str:
        return _GAP if self.heads else ""

    def heading(self, row: R) -> str | None:
        """The heading over the row, None without one."""
        return " ".join(_cell(column.value(row)).text for column in self.heads) or None

    def cells(self, row: R) -> list[Cell]:
        return [self._join_cells(row, *columns) for columns in self.columns]

    def _join_cells(self, row: R, first: Column[R], *folded: Column[R]) -> Cell:
        value = first.narrow if self.narrowed and first.narrow else first.value
        cell = _cell(value(row))
        for column in folded:
            # Empty values and zeros are omitted.
            if behind := column.value(row):
                cell = Cell(f"{cell.text} {_cell(behind).text}", cell.style)
        return cell


def table(columns: Sequence[Column[R]], rows: Sequence[R], width: int | None) -> Iterator[Text]:
    """The lines of the table, narrowed to `width` characters; None is no limit."""
    ways = {way for column in columns for way in (column.drops, column.folds, column.heads)}
    for step in sorted({-1} | ways - {_NEVER}):
        shape = _Shape.at(step, columns)
        lines = [shape.titles, *map(shape.cells, rows)]
        widths = [max(cell_len(cell.text) for cell in cells) for cells in zip(*lines, strict=True)]
        if width is None:
            break
        widths = _shrink(shape, widths, width, _LONG_NAME)
        if _total(shape, widths) <= width:
            break
    if width is not None:
        widths = _shrink(shape, widths, width, _SHORTEST_NAME)
    return _draw(shape, lines, widths, rows)


def partition_name(topic: str | None, partition: int | None) -> str | None:
    """`orders-3`, or the topic alone if the partition is not known; None without a topic."""
    return topic if topic is None or partition is None else f"{topic}-{partition}"


def elide(text: str, width: int) -> str:
    """The text, or its beginning and end with `…` between, in at most `width` characters."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    head = set_cell_size(text, width - 1 - tail)
    return head + _ELLIPSIS + set_cell_size(text[::-1], tail)[::-1]


def wrap(
    text: str, width: int | None, indent: str = "  ", hanging: str | None = None, *, style: str = ""
) -> Iterator[Text]:
    """The text with an `indent`, wrapped on a terminal; further lines have the indent `hanging`, if
    given."""
    if width is None:
        yield Text(indent + text, style)
        return
    for line in textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        yield Text(line, style)


def _cell(value: Cell | str | int | None) -> Cell:
    match value:
        case None:
            return Cell(NOTHING)
        case str():
            return Cell(printable(value))
        case int():
            return Cell(str(value))
    return value


def _total(shape: _Shape[R], widths: Sequence[int]) -> int:
    return len(shape.indent) + sum(widths) + len(_GAP) * (len(widths) - 1)


def _shrink(shape: _Shape[R], widths: Sequence[int], width: int, shortest: int) -> list[int]:
    """The widths. Columns of names are narrowed until the table fits, but not below `shortest`."""
    found = list(widths)
    least = [
        max(shortest, cell_len(title.text)) if column.elastic else sys.maxsize
        for (column, *_), title in zip(shape.columns, shape.titles, strict=True)
    ]
    longest = max(widths)
    while _total(shape, found) > width and longest > shortest:
        longest -= 1
        found = [min(one, max(longest, floor)) for one, floor in zip(widths, least, strict=True)]
    return found


def _draw(
    shape: _Shape[R], lines: Sequence[Sequence[Cell]], widths: Sequence[int], rows: Sequence[R]
) -> Iterator[Text]:
    columns = [column for column, *_ in shape.columns]
    titles, *others = lines
    yield _line(columns, widths, titles, shape.indent)
    above = None
    for row, cells in zip(rows, others, strict=True):
        if (heading := shape.heading(row)) != above:
            yield Text(heading or "")
            above = heading
        yield _line(columns, widths, cells, shape.indent)


def _line(
    columns: Sequence[Column[R]], widths: Sequence[int], cells: Sequence[Cell], indent: str
) -> Text:
    parts = [indent]
    spans: list[Span] = []
    length = len(indent)
    for at, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        shown = elide(cell.text, widths[at]) if column.elastic else cell.text
        padding = " " * (widths[at] - cell_len(shown))
        before = _GAP if at else ""
        after = ""
        if column.right:
            before += padding
        elif at < len(widths) - 1:
            after = padding
        begin = length + len(before)
        if cell.style:
            spans.append(Span(begin, begin + len(shown), cell.style))
        parts += (before, shown, after)
        length = begin + len(shown) + len(after)
    return Text("".join(parts), no_wrap=True, spans=spans)
