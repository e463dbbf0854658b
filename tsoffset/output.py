"""What a command prints on standard output: rows as a table, as JSON lines or as CSV.

The row's fields and their order are docs/design.md section 4. JSON and CSV are written one
row at a time. A reader that goes away (`| head`) ends the printing, not the command.
"""

import csv
import json
import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import groupby
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from tsoffset.model import OutcomeKind, Row
from tsoffset.tables import Cell, Column, Line, Shape, printable, table

FIELDS = tuple(field.name for field in fields(Row))

_NOTHING = "-"
_MESSAGES_PER_REASON = 3
_NARROWEST_MESSAGE = 40
_STYLES = {
    OutcomeKind.COMMITTED: "green",
    OutcomeKind.WOULD_COMMIT: "green",
    OutcomeKind.UNCHANGED: "",
    OutcomeKind.SKIPPED: "yellow",
    OutcomeKind.FAILED: "bold red",
}
# What stands on the target after the cycle (or would): what a failover resumes from.
_IN_PLACE = (OutcomeKind.COMMITTED, OutcomeKind.WOULD_COMMIT, OutcomeKind.UNCHANGED)


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Output:
    """Standard output, or any stream, in one of the formats.

    `width` is that of the terminal, None where nothing limits it. After the reader went
    away `closed` is true and everything further is dropped.
    """

    def __init__(self, stream: TextIO, format: Format) -> None:
        self.format = format
        self.closed = False
        self._stream = stream
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._csv_begun = False

    @property
    def width(self) -> int | None:
        """The columns of the terminal; None for a file or a pipe."""
        return self._console.width if self._console.is_terminal else None

    def records(self, kind: type, records: Iterable[Any]) -> None:
        """Write dataclass values of one `kind`, as JSON lines or CSV: all fields, in order."""
        names = [field.name for field in fields(kind)]
        if self.format is Format.JSON:
            lines = (
                json.dumps({name: getattr(record, name) for name in names}) + "\n"
                for record in records
            )
            self._write(lines)
        else:
            self._write_csv(names, records)

    def lines(self, lines: Iterable[Text]) -> None:
        """Write lines of text; styles only on a terminal."""
        if self._console.is_terminal:
            for line in lines:
                if self.closed:
                    return
                with self._reader_may_leave():
                    self._console.print(line, soft_wrap=True)
        else:
            self._write(f"{line.plain}\n" for line in lines)

    def flush(self) -> None:
        """Hand everything on to the reader."""
        with self._reader_may_leave():
            self._stream.flush()

    def _write(self, lines: Iterable[str]) -> None:
        if self.closed:
            return
        with self._reader_may_leave():
            self._stream.writelines(lines)

    def _write_csv(self, names: Sequence[str], records: Iterable[Any]) -> None:
        if self.closed:
            return
        with self._reader_may_leave():
            writer = csv.writer(self._stream, lineterminator="\n")
            if not self._csv_begun:
                self._csv_begun = True
                writer.writerow(names)
            writer.writerows([getattr(record, name) for name in names] for record in records)

    @contextmanager
    def _reader_may_leave(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            self.closed = True
            # What is still buffered goes nowhere, or the interpreter's last flush would fail.
            with suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many rows came to what.

    `reasons` counts skips, `failures` failures, by their names. `reread_bound` sums the most
    source records that can be read twice over the rows with a translation in place;
    `unproven` counts those that have no bound.
    """

    outcomes: Counter[OutcomeKind]
    reasons: Counter[str]
    failures: Counter[str]
    reread_bound: int
    unproven: int

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Tally":
        """Count the rows."""
        outcomes: Counter[OutcomeKind] = Counter()
        reasons: Counter[str] = Counter()
        failures: Counter[str] = Counter()
        bound = unproven = 0
        for row in rows:
            outcomes[row.outcome] += 1
            if row.outcome is OutcomeKind.SKIPPED and row.reason is not None:
                reasons[row.reason.value] += 1
            elif row.outcome is OutcomeKind.FAILED and row.reason is not None:
                failures[row.reason.value] += 1
            elif row.outcome in _IN_PLACE and row.target_offset is not None:
                if row.reread_bound is None:
                    unproven += 1
                else:
                    bound += row.reread_bound
        return cls(outcomes, reasons, failures, bound, unproven)

    @property
    def failed(self) -> int:
        """The rows that failed."""
        return self.outcomes[OutcomeKind.FAILED]

    def in_words(self) -> str:
        """The counts as one phrase, with what a failover would re-read."""
        words = []
        for kind, name in (
            (OutcomeKind.COMMITTED, "committed"),
            (OutcomeKind.WOULD_COMMIT, "would be committed"),
        ):
            if self.outcomes[kind]:
                words.append(f"{self.outcomes[kind]} {name}")
        words = words or ["0 to commit"]
        words.append(f"{self.outcomes[OutcomeKind.UNCHANGED]} unchanged")
        words.append(f"{self.outcomes[OutcomeKind.SKIPPED]} skipped{_by_name(self.reasons)}")
        words.append(f"{self.failed} failed{_by_name(self.failures)}")
        reread = f"a failover re-reads at most {counted(self.reread_bound, 'record')}"
        if self.unproven:
            reread += f", and an unknown number for {counted(self.unproven, 'unproven row')}"
        return f"{', '.join(words)}; {reread}"


def counted(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """By group, topic and partition; what failed before these were known comes first."""
    return sorted(
        rows,
        key=lambda row: (
            row.flow,
            row.group or "",
            row.source_topic or "",
            -1 if row.partition is None else row.partition,
        ),
    )


def cycle_lines(flow: str, rows: Sequence[Row], summary: str, width: int | None) -> Iterator[Text]:
    """A cycle for a person: the table, what its messages say, and the summary."""
    yield Text(f"flow {flow}", "bold")
    if rows:
        yield from table(
            [lambda: _full(rows), lambda: _merged(rows), lambda: _grouped(rows)], width
        )
        yield Text()
        yield from _messages(rows, width)
    yield Text(f"{flow}: {summary}", "bold")
    yield Text()


# --- the shapes of the table of rows ------------------------------------------------------


_GROUP = Column("GROUP", elastic=True)
_SOURCE = Column("SOURCE", elastic=True)
_TARGET = Column("TARGET", elastic=True)
_OFFSET = Column("OFFSET", right=True)
_TARGET_OFFSET = Column("TO", right=True)
_TARGET_HAS = Column("HAS", right=True)
_OUTCOME = Column("OUTCOME")
_PRECISION = Column("PRECISION")


def _full(rows: Sequence[Row]) -> Shape:
    """Every field in a column of its own."""
    columns = (
        *(_GROUP, _SOURCE, _OFFSET, _TARGET, _TARGET_OFFSET, _TARGET_HAS, _OUTCOME),
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
    columns = (_GROUP, _SOURCE, _OFFSET, _TARGET_OFFSET, _TARGET_HAS, _OUTCOME, _PRECISION)
    return Shape(columns, tuple(Line((_text(row.group), *_narrow(row))) for row in rows))


def _grouped(rows: Sequence[Row]) -> Shape:
    """As `_merged`, with the group on a line of its own."""
    lines = []
    for group, members in groupby(rows, key=lambda row: row.group):
        heading: str | None = _NOTHING if group is None else printable(group)
        for row in members:
            lines.append(Line(_narrow(row), heading))
            heading = None
    columns = (_SOURCE, _OFFSET, _TARGET_OFFSET, _TARGET_HAS, _OUTCOME, _PRECISION)
    return Shape(columns, tuple(lines))


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


def wrapped(text: str, width: int | None, indent: str = "  ") -> Iterator[Text]:
    """The text set in and, on a terminal, broken between words."""
    if width is None:
        yield Text(indent + text)
        return
    for line in textwrap.wrap(
        text,
        max(width, _NARROWEST_MESSAGE),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        yield Text(line)


def _by_name(counts: Counter[str]) -> str:
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return f" ({', '.join(f'{number} {name}' for name, number in ordered)})"
