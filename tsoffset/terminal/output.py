"""What a command prints on standard output: rows as a table, as JSON lines or as CSV.

The row's fields and their order are docs/design.md section 4. JSON and CSV are written as they
are made, never held as a whole. A reader that goes away (`| head`) ends the printing, not the
command.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import chain, takewhile
from typing import Any, NamedTuple, TextIO, TypeVar

from rich.console import Console
from rich.text import Text

from tsoffset.model import OutcomeKind, Row
from tsoffset.terminal.streams import write_failure

T = TypeVar("T")

# What stands on the target after the cycle (or would): what a failover resumes from.
IN_PLACE = (OutcomeKind.COMMITTED, OutcomeKind.WOULD_COMMIT, OutcomeKind.UNCHANGED)


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Output:
    """Standard output, or any stream, in one of the formats.

    `wide` is true where lines are to be whole on a terminal, too. After the reader went away
    everything further is dropped.
    """

    def __init__(self, stream: TextIO, format: Format, *, wide: bool = False) -> None:
        self.format = format
        self._wide = wide
        self._stream = stream
        self._console = Console(file=stream, highlight=False)
        self._begun = False

    @property
    def closed(self) -> bool:
        """True after the reader went away."""
        return isinstance(write_failure(self._stream), BrokenPipeError)

    @property
    def width(self) -> int | None:
        """The columns of the terminal; None for a file or a pipe, and where lines are whole."""
        return None if self._wide or not self._console.is_terminal else self._console.width

    def show(
        self,
        kind: type,
        records: Iterable[Any],
        lines: Callable[[int | None], Iterable[Text]],
    ) -> None:
        """Write the records, or the lines that a person sees in their place, to the reader."""
        if self.format is Format.TABLE:
            self.lines(lines(self.width))
        else:
            self.records(kind, records)
        self.flush()

    def records(self, kind: type, records: Iterable[Any]) -> None:
        """Write dataclass values of one `kind`, as JSON lines or CSV: all fields, in order."""
        names = [field.name for field in fields(kind)]
        rows = ([getattr(record, name) for name in names] for record in records)
        if self.format is Format.JSON:
            self.encoded(
                names, (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
            )
        else:
            self.encoded(names, map(csv_line, rows))

    def encoded(self, names: Sequence[str] | None, text: Iterable[str]) -> None:
        """Write text that is JSON lines or CSV already, in any pieces. CSV begins with `names`,
        if it has them, once for all that is written."""
        if self.format is Format.CSV and names is not None and not self._begun:
            text = chain([csv_line(names)], text)
        self._begun = True
        self._stream.writelines(self._while_read(text))

    def lines(self, lines: Iterable[Text], *, apart: bool = True) -> None:
        """Write lines of text, after an empty one if there were some before (unless they are
        not to stand `apart`); styles only on a terminal."""
        if self._begun and apart:
            lines = chain([Text()], lines)
        self._begun = True
        if self._console.is_terminal:
            for line in self._while_read(lines):
                self._console.print(line, soft_wrap=True)
        else:
            self._stream.writelines(f"{line.plain}\n" for line in self._while_read(lines))

    def flush(self) -> None:
        """Hand everything on to the reader."""
        self._stream.flush()

    def _while_read(self, pieces: Iterable[T]) -> Iterable[T]:
        """The pieces until the reader goes away."""
        return takewhile(lambda _: not self.closed, pieces)


class _Returning:
    """In the place of a file: what is written comes back."""

    def write(self, line: str) -> str:
        """Return the line."""
        return line


# What ends lines is put between quotation marks: of all signs that may, not only the one of ours.
_LINE_END = "\r\n"
_WRITER = csv.writer(_Returning(), lineterminator=_LINE_END)


def csv_line(values: Iterable[Any]) -> str:
    """The values as a line of CSV."""
    return str(_WRITER.writerow(values)).removesuffix(_LINE_END) + "\n"


class Alike(NamedTuple):
    """How many rows have this outcome and reason, and a translation or none; how many of these
    have a bound on re-reads, and what their bounds add up to."""

    outcome: OutcomeKind
    reason: str | None
    translated: bool
    rows: int
    bounded: int
    reread_bound: int


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
        return cls.sum(
            Alike(
                row.outcome,
                row.reason,
                row.target_offset is not None,
                1,
                row.reread_bound is not None,
                row.reread_bound or 0,
            )
            for row in rows
        )

    @classmethod
    def sum(cls, counts: Iterable[Alike]) -> "Tally":
        """Count rows that were counted in parts."""
        outcomes: Counter[OutcomeKind] = Counter()
        reasons: Counter[str] = Counter()
        failures: Counter[str] = Counter()
        bound = unproven = 0
        for alike in counts:
            outcomes[alike.outcome] += alike.rows
            if alike.outcome is OutcomeKind.SKIPPED and alike.reason is not None:
                reasons[alike.reason] += alike.rows
            elif alike.outcome is OutcomeKind.FAILED and alike.reason is not None:
                failures[alike.reason] += alike.rows
            elif alike.outcome in IN_PLACE and alike.translated:
                unproven += alike.rows - alike.bounded
                bound += alike.reread_bound
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
        words.append(f"{self.outcomes[OutcomeKind.SKIPPED]} skipped{by_name(self.reasons)}")
        words.append(f"{self.failed} failed{by_name(self.failures)}")
        reread = f"a failover re-reads at most {counted(self.reread_bound, 'record')}"
        if self.unproven:
            reread += f", and an unknown number for {counted(self.unproven, 'unproven row')}"
        return f"{', '.join(words)}; {reread}"


def counted(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def by_name(counts: Counter[str]) -> str:
    """` (2 this, 1 that)`, to stand behind a sum; empty where nothing was counted."""
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return f" ({', '.join(f'{number} {name}' for name, number in ordered)})"
