"""The demo's output: numbered steps on standard output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from rich.text import Text

from tsoffset.lab.demo.verdict import GroupResult, ResumeWay
from tsoffset.printable import printable
from tsoffset.terminal.output import Output
from tsoffset.terminal.tables import Cell, Column, table, wrap

R = TypeVar("R")

_INDENT = "   "
_WIDTH = 100


class Narrator:
    """Writes for a person, step by step, also through a pipe."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._steps = 0

    def opening(self, title: str, sentence: str) -> None:
        self.lines([Text(title, "bold"), *self._wrap(sentence, "")], apart=False)

    def step(self, title: str) -> None:
        self._steps += 1
        self.lines([Text(f"{self._steps}. {title}", "bold")])

    def say(self, *sentences: str, style: str = "", apart: bool = False) -> None:
        for sentence in sentences:
            lines = self._wrap(sentence, _INDENT)
            self.lines((Text(line.plain, style) for line in lines), apart=apart)

    def quote(self, lines: Iterable[str]) -> None:
        """Print lines of a file, or commands, uncut, so that they can be copied."""
        self.lines((Text(f"{_INDENT}  {printable(line)}", "cyan") for line in lines), apart=False)

    def items(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            self.lines(self._wrap(sentence, f"{_INDENT}- ", f"{_INDENT}  "), apart=False)

    def lines(self, lines: Iterable[Text], *, apart: bool = True) -> None:
        self._output.lines(lines, apart=apart)
        self._output.flush()

    def table(self, columns: Sequence[Column[R]], rows: Sequence[R]) -> None:
        """Print a table, indented like the text around it."""
        width = None if self.width is None else self.width - len(_INDENT)
        self.lines(Text(_INDENT).append_text(line) for line in table(columns, rows, width))

    @property
    def width(self) -> int | None:
        return self._output.width

    def _wrap(self, sentence: str, first: str, others: str | None = None) -> Iterable[Text]:
        return wrap(printable(sentence), min(self.width or _WIDTH, _WIDTH), first, others)


def _count_cell(number: int, style: str) -> Cell:
    return Cell(f"{number:,}", style if number else "")


def verdict_columns(stands: Mapping[str, str]) -> tuple[Column[GroupResult], ...]:
    """For each group, its offset, and the records that its consumer got."""
    return (
        Column("GROUP", lambda verdict: verdict.group),
        Column("COMMITTED OFFSET", lambda verdict: stands[verdict.group], elastic=True),
        Column("READ", lambda verdict: f"{verdict.count.read:,}", right=True),
        Column("RE-READ", lambda verdict: _count_cell(verdict.count.reread, "yellow"), right=True),
        Column(
            "BOUND", lambda verdict: f"{verdict.announced:,}" if verdict.moved else None, right=True
        ),
        Column(
            "SKIPPED", lambda verdict: _count_cell(verdict.count.skipped, "bold red"), right=True
        ),
    )


WAY_COLUMNS: tuple[Column[ResumeWay], ...] = (
    Column("TARGET OFFSETS", lambda way: way.name, elastic=True),
    Column("RE-READ", lambda way: _count_cell(way.count.reread, "yellow"), right=True),
    Column("SKIPPED", lambda way: _count_cell(way.count.skipped, "bold red"), right=True),
    Column("NO ANSWER", lambda way: f"{way.silent} of {way.positions}", right=True),
)
