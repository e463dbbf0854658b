"""The files of history: `pairs/flow=A-%3EB/day=2026-11-22/*.parquet`, and `cycles/` likewise.

A file never changes. Readers choose files by their names: `1795348800000-0123456789ab-1-9.parquet`
has cycles 1 to 9 of the process 0123456789ab, the last of which ended at 1795348800000 ms since
1970. A file with more cycles of the same process replaces those whose cycles it includes: readers
ignore these, even if the process was killed before it could remove them.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tsoffset.group_sync.arrow_tables import by_name, columns_table
from tsoffset.history.tables import CYCLES, NEVER_NULL, PAIRS, VERSION
from tsoffset.stores import UNREACHABLE, Store, in_words

_VERSION = b"tsoffset.history"
_FLOW, _DAY = "flow=", "day="
_NAME = re.compile(
    r"(?P<ended>\d{13})-(?P<instance>[^-]+)-(?P<first>\d{1,18})-(?P<last>\d{1,18})(?P<full>-full)?"
    r"\.parquet"
)


class HistoryTable(StrEnum):
    PAIRS = "pairs"
    CYCLES = "cycles"

    @property
    def schema(self) -> pa.Schema:
        return PAIRS if self is HistoryTable.PAIRS else CYCLES


@dataclass(frozen=True, slots=True)
class FileName:
    """What a file's name says. `ended_ms` is the end of its last cycle (ms since 1970 UTC); a
    `full` file has all group-partitions of its one cycle."""

    ended_ms: int
    instance: str
    first: int
    last: int
    full: bool = False

    @classmethod
    def parse(cls, name: str) -> "FileName | None":
        """None for a file of other software."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        first, last = int(found["first"]), int(found["last"])
        return cls(int(found["ended"]), found["instance"], first, last, found["full"] is not None)

    def __str__(self) -> str:
        full = "-full" if self.full else ""
        return f"{self.ended_ms:013d}-{self.instance}-{self.first}-{self.last}{full}.parquet"

    def includes(self, other: "FileName") -> bool:
        """True if this file has more cycles than the other one, and all of its cycles."""
        return (
            self.instance == other.instance
            and self.first <= other.first
            and other.last <= self.last
            and self.last - self.first > other.last - other.first
        )


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file of one flow and day, which has not been opened yet."""

    kind: HistoryTable
    flow: str
    store: Store
    name: FileName

    def batches(self) -> Iterator[pa.Table]:
        """Its rows, in parts, with the columns of this version; a column that the file lacks is
        null. Raises Damaged, FileNotFoundError, and OSError if the store cannot be reached."""
        schema = self.kind.schema
        with self._open() as file:
            there = [name for name in schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=there):
                rows = pa.Table.from_batches([batch])
                if any(rows[name].null_count for name in there if name in NEVER_NULL):
                    raise Damaged(self, "it has cycles without a time, a number or a state")
                yield columns_table(schema, len(rows), by_name(rows))

    def count_rows(self) -> int:
        """The number of its rows. Raises as `batches`."""
        with self._open() as file:
            return int(file.metadata.num_rows)

    def table(self) -> pa.Table:
        """All its rows. Raises as `batches`."""
        return concat(self.kind.schema, self.batches())

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        text = [field.name for field in self.kind.schema if pa.types.is_dictionary(field.type)]
        try:
            with self.store.open(str(self.name)) as source:
                file = pq.ParquetFile(source, read_dictionary=text, page_checksum_verification=True)
                version = (file.metadata.metadata or {}).get(_VERSION, b"")
                if not version.isdigit():
                    raise Damaged(self, "this is not a history file of tsoffset")
                if int(version) > VERSION:
                    newer = f"version {int(version)}, this one reads {VERSION}"
                    raise Damaged(self, f"a newer tsoffset wrote it ({newer})")
                yield file
        except FileNotFoundError:
            raise
        except UNREACHABLE as error:
            # pyarrow raises the same errors for an unreachable store; then listing fails, too.
            self.store.names()
            raise Damaged(self, in_words(self.store, error)) from error


class Damaged(Exception):
    """A file cannot be read; the text names it."""

    def __init__(self, file: HistoryFile, why: str) -> None:
        super().__init__(file, why)
        self.file = file

    def __str__(self) -> str:
        file = self.file
        return (
            f"read history, flow {file.flow}: {file.store.path(str(file.name))}: {self.args[1]};"
            " this file is ignored: let this user read it or, if it is damaged, restore it from a"
            " backup or remove it"
        )


@dataclass(frozen=True, slots=True)
class DayFiles:
    """The files of a day, in the order of their last cycles' ends. Those in `files` are to be read;
    those in `replaced` are included in one of these."""

    files: tuple[HistoryFile, ...]
    replaced: tuple[HistoryFile, ...]


def concat(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()


def day_of(time: float) -> date:
    """The day (UTC) of a time in seconds since 1970."""
    return datetime.fromtimestamp(time, UTC).date()


def folder(root: Store, kind: HistoryTable, flow: str, day: date | None = None) -> Store:
    """The folder of a flow's files of one day; without a day, the folder of its days."""
    days = root.subfolder(kind.value, _FLOW + quote(flow, safe=""))
    return days if day is None else days.subfolder(_day_folder(day))


def flows(root: Store) -> list[str]:
    """The flows that have a history. Raises OSError."""
    names = root.subfolder(HistoryTable.CYCLES.value).names()
    return [unquote(name.removeprefix(_FLOW)) for name in names if name.startswith(_FLOW)]


def days(root: Store, kind: HistoryTable, flow: str) -> list[date]:
    """The days that have files, in order. Raises OSError."""
    found = []
    for name in folder(root, kind, flow).names():
        try:
            found.append(date.fromisoformat(name.removeprefix(_DAY)))
        except ValueError:
            continue
    return found


def remove_day(root: Store, kind: HistoryTable, flow: str, day: date) -> None:
    """Remove all files of a day. Raises OSError."""
    folder(root, kind, flow).remove(_day_folder(day))


def files_of_day(root: Store, kind: HistoryTable, flow: str, day: date) -> DayFiles:
    """The files of a day, by one listing; none is opened. Raises OSError."""
    store = folder(root, kind, flow, day)
    try:
        found = [FileName.parse(name) for name in store.names()]
    except NotADirectoryError:
        found = []
    # Sorted so that a file comes after all that include it.
    names = [name for name in found if name is not None]
    names.sort(key=lambda name: (name.instance, name.first, -name.last))
    kept: list[FileName] = []
    replaced: list[FileName] = []
    for name in names:
        gone = bool(kept) and kept[-1].includes(name)
        (replaced if gone else kept).append(name)
    kept.sort(key=lambda name: (name.ended_ms, str(name)))
    return DayFiles(
        tuple(HistoryFile(kind, flow, store, name) for name in kept),
        tuple(HistoryFile(kind, flow, store, name) for name in replaced),
    )


def parquet(kind: HistoryTable, parts: Iterable[pa.Table]) -> bytes:
    """The bytes of a file with these parts, each a row group."""
    sink = pa.BufferOutputStream()
    # Arrow's own schema would be half of a small file, and readers do not need it.
    with pq.ParquetWriter(sink, kind.schema, store_schema=False, **_ENCODING[kind]) as writer:
        for part in parts:
            writer.write_table(part)
        writer.add_key_value_metadata({_VERSION: str(VERSION)})
    return bytes(sink.getvalue())


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    return {
        "compression": "zstd",
        "write_page_checksum": True,
        "use_dictionary": [name for name in schema.names if name not in numbers],
        # Offsets seldom repeat, and are close to each other.
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    }


_ENCODING = {kind: _encoding(kind.schema) for kind in HistoryTable}


def _day_folder(day: date) -> str:
    return f"{_DAY}{day.isoformat()}"
