"""Text tables that fit the terminal they are printed on.

A table is offered in several shapes, from the widest to the narrowest; the first that fits
is printed. Where nothing limits the width (a file, a pipe) the first shape is printed whole,
so that lines can be searched and cut.
"""

import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Span, Text

_GAP = "  "
_ELLIPSIS = "…"
# A name longer than this does not decide which shape fits: it is shortened instead.
_LONG_NAME = 40
_SHORTEST_NAME = 10
_NARROWEST_TEXT = 40


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one place; `style` is rich's (`red`, `dim`)."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `elastic` ones hold names, which may lose their middle on a terminal."""

    title: str
    right: bool = False
    elastic: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table; `heading` stands over the lines that follow it, if given."""

    cells: tuple[Cell, ...]
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to show the rows: its columns, and their lines."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    @property
    def indent(self) -> str:
        """What lines under headings are set in by."""
        return _GAP if any(line.heading is not None for line in self.lines) else ""


def table(shapes: Sequence[Callable[[], Shape]], width: int | None) -> Iterator[Text]:
    """The lines of the first shape that fits into `width` columns, or of the last one with
    its names shortened. None is no limit: the first shape, whole."""
    if width is None:
        shape = shapes[0]()
        return _drawn(shape, _natural_widths(shape))
    for make in shapes:
        shape = make()
        widths = _shortened(shape, _natural_widths(shape), width, _LONG_NAME)
        if _total(shape, widths) <= width:
            return _drawn(shape, widths)
    return _drawn(shape, _shortened(shape, widths, width, _SHORTEST_NAME))


def elided(text: str, width: int) -> str:
    """The text, or its beginning and end with `…` between, in at most `width` columns."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    head = width - 1 - tail
    while cell_len(text[:head]) > width - 1 - tail:
        head -= 1
    end = text[len(text) - tail :]
    while cell_len(end) > tail:
        end = end[1:]
    return text[:head] + _ELLIPSIS + end


def wrapped(
    text: str, width: int | None, indent: str = "  ", hanging: str | None = None
) -> Iterator[Text]:
    """The text set in and, on a terminal, broken between words; further lines are set in by
    `hanging`, if given."""
    if width is None:
        yield Text(indent + text)
        return
    for line in textwrap.wrap(
        text,
        max(width, _NARROWEST_TEXT),
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        yield Text(line)


def printable(text: str) -> str:
    """The text with control and formatting characters spelled out.

    Groups and topics are named by others, and a name must not be able to steer a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode("ascii") if _steers(c) else c for c in text)


def _steers(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _natural_widths(shape: Shape) -> list[int]:
    widths = [cell_len(column.title) for column in shape.columns]
    for line in shape.lines:
        for at, cell in enumerate(line.cells):
            length = cell_len(cell.text)
            if length > widths[at]:
                widths[at] = length
    return widths


def _total(shape: Shape, widths: Sequence[int]) -> int:
    return len(shape.indent) + sum(widths) + len(_GAP) * (len(widths) - 1)


def _shortened(shape: Shape, widths: Sequence[int], width: int, shortest: int) -> list[int]:
    """Take columns from the widest names until all fits, down to `shortest` each."""
    found = list(widths)
    while (over := _total(shape, found) - width) > 0:
        elastic = [
            at
            for at, column in enumerate(shape.columns)
            if column.elastic and found[at] > max(shortest, cell_len(column.title))
        ]
        if not elastic:
            break
        widest = max(elastic, key=lambda at: found[at])
        others = sorted((found[at] for at in elastic), reverse=True)
        level = others[1] if len(others) > 1 and others[1] < found[widest] else 0
        floor = max(shortest, cell_len(shape.columns[widest].title), level)
        found[widest] -= max(1, min(over, found[widest] - floor))
    return found


def _drawn(shape: Shape, widths: Sequence[int]) -> Iterator[Text]:
    indent = shape.indent
    titles = [Cell(column.title, "bold") for column in shape.columns]
    yield _line(shape.columns, widths, titles, indent)
    for line in shape.lines:
        if line.heading is not None:
            yield Text(line.heading)
        yield _line(shape.columns, widths, line.cells, indent)


def _line(
    columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Cell], indent: str
) -> Text:
    parts = [indent]
    spans: list[Span] = []
    length = len(indent)
    for at, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        shown = elided(cell.text, widths[at]) if column.elastic else cell.text
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
