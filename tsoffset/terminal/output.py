"""Prints results on standard output: rows as a table, as JSON lines or as CSV.

docs/commands.md has the fields of a row and their order. JSON and CSV are written piece by
piece, never held as a whole. A reader that closes the pipe (`| head`) ends the printing, not the
command.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import chain, takewhile
from typing import Any, TextIO, TypeVar

from rich.console import Console
from rich.text import Text

from tsoffset.model import OutcomeKind
from tsoffset.terminal.streams import write_failure

T = TypeVar("T")

# The target group has, or after a sync would have, the translated offset.
IN_PLACE = (OutcomeKind.COMMITTED, OutcomeKind.WOULD_COMMIT, OutcomeKind.UNCHANGED)


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class Output:
    """Standard output, or any stream, in one of the formats.

    With `wide` lines are whole on a terminal, too. After the reader closed the pipe, everything
    else is dropped.
    """

    def __init__(self, stream: TextIO, format: Format, *, wide: bool = False) -> None:
        self.format = format
        self._wide = wide
        self._stream = stream
        self._console = Console(file=stream, highlight=False)
        self._begun = False

    @property
    def closed(self) -> bool:
        """Whether the reader closed the pipe."""
        return isinstance(write_failure(self._stream), BrokenPipeError)

    @property
    def width(self) -> int | None:
        """The width of the terminal; None for a file, a pipe, and whole lines."""
        return None if self._wide or not self._console.is_terminal else self._console.width

    def show(
        self, kind: type, records: Iterable[Any], lines: Callable[[int | None], Iterable[Text]]
    ) -> None:
        """Write the records, or for a table the lines for a person."""
        if self.format is Format.TABLE:
            self.lines(lines(self.width))
        else:
            self.records(kind, records)
        self.flush()

    def records(self, kind: type, records: Iterable[Any]) -> None:
        """Write dataclass values of one `kind` as JSON lines or CSV: all fields, in order."""
        names = [field.name for field in fields(kind)]
        self.rows(names, ([getattr(record, name) for name in names] for record in records))

    def rows(self, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        if self.format is Format.JSON:
            self.write_encoded(
                names, (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
            )
        else:
            self.write_encoded(names, map(csv_line, rows))

    def write_encoded(self, names: Sequence[str] | None, text: Iterable[str]) -> None:
        """Write pieces of text that are JSON lines or CSV already. CSV gets one header of `names`,
        if there are any."""
        if self.format is Format.CSV and names is not None and not self._begun:
            text = chain([csv_line(names)], text)
        self._begun = True
        self._stream.writelines(self._while_read(text))

    def lines(self, lines: Iterable[Text], *, apart: bool = True) -> None:
        """Write lines of text, separated by an empty line from earlier ones if `apart`; styled only
        on a terminal."""
        if self._begun and apart:
            lines = chain([Text()], lines)
        self._begun = True
        if self._console.is_terminal:
            for line in self._while_read(lines):
                self._console.print(line, soft_wrap=True)
        else:
            self._stream.writelines(f"{line.plain}\n" for line in self._while_read(lines))

    def flush(self) -> None:
        self._stream.flush()

    def _while_read(self, pieces: Iterable[T]) -> Iterable[T]:
        """The pieces until the reader closes the pipe."""
        return takewhile(lambda _: not self.closed, pieces)


class _Returning:
    """A file that returns what is written."""

    def write(self, line: str) -> str:
        return line


# The writer quotes fields that contain a character of its line terminator. With \r\n these are
# all line ends that readers of CSV know.
_LINE_END = "\r\n"
_WRITER = csv.writer(_Returning(), lineterminator=_LINE_END)


def csv_line(values: Iterable[Any]) -> str:
    return str(_WRITER.writerow(values)).removesuffix(_LINE_END) + "\n"


@dataclass(frozen=True, slots=True)
class Readiness:
    """How many groups can move to the target. `reread` is the most records that the consumers of
    ready groups re-read if they move, `reread_others` the same for the other groups. `not_in_place`
    counts groups that are not ready by reason, `unusable` their group-partitions without a known
    usable target offset."""

    groups: int
    reread: int
    reread_others: int
    not_in_place: Counter[str]
    unusable: int

    def in_words(self) -> str:
        missing = self.not_in_place.total()
        words = f"{self.groups - missing} of {plural(self.groups, 'group')} ready"
        if self.groups > missing:
            words += f", re-reading at most {plural(self.reread, 'record')}"
        if missing:
            words += f"; {missing} not ready{by_name(self.not_in_place)}"
            if self.reread_others:
                words += f", re-reading at most {plural(self.reread_others, 'record')}"
        if self.unusable:
            words += (
                f"; {plural(self.unusable, 'group-partition')} without a known usable offset on the"
                " target"
            )
        return words


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of rows by outcome.

    `reasons` counts skips, `failures` failures, by name. `reread_bound` is the sum of the bounds of
    the rows with a translation in place; `unproven` counts those without a bound. `now` is for a
    failover after the cycle, `after_sync` for one after planned commits were made.
    """

    outcomes: Counter[OutcomeKind]
    reasons: Counter[str]
    failures: Counter[str]
    reread_bound: int
    unproven: int
    now: Readiness
    after_sync: Readiness

    @property
    def failed(self) -> int:
        return self.outcomes[OutcomeKind.FAILED]

    def in_words(self) -> str:
        """The counts as one phrase, with what a failover would re-read: for a plan now, and after a
        sync."""
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
        ready = self.after_sync.in_words()
        if not self.after_sync.groups:
            # The groups of an unreachable cluster are not known.
            unknown = "what a failover would re-read is not known"
            ready = unknown if self.failed else "no group has an offset to sync"
        elif self.outcomes[OutcomeKind.WOULD_COMMIT]:
            ready = f"now {self.now.in_words()}. After a sync: {ready}"
        if self.unproven:
            ready += f"; an unknown number for {plural(self.unproven, 'unproven row')}"
        return f"{', '.join(words)}; {ready}"


def plural(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def in_utc(timestamp_ms: float, timespec: str = "seconds") -> str:
    """The moment in UTC, as ISO 8601; outside the years 1 to 9999 the number of milliseconds."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")


def abridge(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def by_name(counts: Counter[str]) -> str:
    """` (2 this, 1 that)`, to follow a sum; empty without counts."""
    if not counts:
        return ""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return f" ({', '.join(f'{number} {name}' for name, number in ordered)})"
