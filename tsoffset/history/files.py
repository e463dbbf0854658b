"""The files of history: `pairs/flow=A-%3EB/day=2026-11-22/*.parquet`, and `cycles/` likewise.

No file is ever changed. Each says in its metadata which cycles of which instances it covers, so
one that covers all that another covers, and more, stands in its place: where a process is killed
between writing the one and removing the other, both are there and the other is not read.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tsoffset.cycle.schema import by_name, columns_table
from tsoffset.history.tables import CYCLES, NEVER_NULL, PAIRS, VERSION
from tsoffset.stores import UNREACHABLE, Place, in_words

_VERSION, _COVERS, _FULL = b"tsoffset.history", b"tsoffset.covers", b"tsoffset.full"
# So many files are looked at at a time.
_AT_ONCE = 8
_FLOW, _DAY, _PARQUET = "flow=", "day=", ".parquet"

Covers = Mapping[str, tuple[int, int]]
"""The first and the last cycle of each instance."""


class Kind(StrEnum):
    """Which of the two tables."""

    PAIRS = "pairs"
    CYCLES = "cycles"

    @property
    def schema(self) -> pa.Schema:
        """Of its files."""
        return PAIRS if self is Kind.PAIRS else CYCLES


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file with metadata of ours; `full` where it is of one cycle and has all pairs."""

    kind: Kind
    flow: str
    place: Place
    name: str
    covers: Covers
    full: bool
    rows: int

    def batches(self) -> Iterator[pa.Table]:
        """Its rows, in parts, with the columns of this version; those that its version does not
        have are null. Raises Damaged, and OSError where the place cannot be read."""
        schema = self.kind.schema
        text = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        try:
            with self.place.open(self.name) as source:
                file = pq.ParquetFile(source, read_dictionary=text, page_checksum_verification=True)
                there = [name for name in schema.names if name in file.schema_arrow.names]
                for batch in file.iter_batches(columns=there):
                    rows = pa.Table.from_batches([batch])
                    if any(rows[name].null_count for name in there if name in NEVER_NULL):
                        raise Damaged(self, "it has cycles without a time, a number or a state")
                    yield columns_table(schema, len(rows), by_name(rows))
        except FileNotFoundError:
            raise
        except UNREACHABLE as error:
            # Of a place that is away arrow says the same: its bytes cannot be had, either.
            self.place.read(self.name)
            raise Damaged(self, in_words(self.place, error)) from error

    def table(self) -> pa.Table:
        """All its rows."""
        return concat(self.kind.schema, self.batches())

    @property
    def is_of_one_cycle(self) -> bool:
        """Whether it stands in the place of no other."""
        return all(first == last for first, last in self.covers.values())

    def replaced_by(self, other: "HistoryFile") -> bool:
        """Whether the other one stands in the place of this one."""
        if other.covers == self.covers:
            return False
        return all(
            instance in other.covers
            and other.covers[instance][0] <= first
            and last <= other.covers[instance][1]
            for instance, (first, last) in self.covers.items()
        )


class Damaged(Exception):
    """What a file holds cannot be read, although its metadata can; the text names it."""

    def __init__(self, file: HistoryFile, why: str) -> None:
        super().__init__(file, why)
        self.file = file

    def __str__(self) -> str:
        return (
            f"read history, flow {self.file.flow}: {self.file.place.path(self.file.name)}: "
            f"{self.args[1]}; the file is damaged and ignored: remove it, or "
            "restore it from a backup"
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a day that are to be read, in the order of their names, which is that of time;
    those in whose place others stand; and sentences about files that cannot be read."""

    files: tuple[HistoryFile, ...]
    replaced: tuple[HistoryFile, ...]
    warnings: tuple[str, ...]


def concat(schema: pa.Schema, tables: Iterable[pa.Table]) -> pa.Table:
    """The tables behind each other, of one schema."""
    return pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries()


def day_of(time: float) -> date:
    """The day (UTC) of a time in seconds since 1970."""
    return datetime.fromtimestamp(time, UTC).date()


def file_name(time: float, *words: str | int) -> str:
    """The name of a file that begins at this time."""
    return "-".join([f"{round(time * 1000):013d}", *map(str, words)]) + _PARQUET


def folder(root: Place, kind: Kind, flow: str, day: date | None = None) -> Place:
    """Where a flow's files of one day lie; without a day, its days."""
    days = root.below(kind.value, _FLOW + quote(flow, safe=""))
    return days if day is None else days.below(_day_folder(day))


def flows(root: Place) -> list[str]:
    """The flows that have a history. Raises OSError."""
    names = root.below(Kind.CYCLES.value).names()
    return [unquote(name.removeprefix(_FLOW)) for name in names if name.startswith(_FLOW)]


def days(root: Place, kind: Kind, flow: str) -> list[date]:
    """The days on which there is something, in order. Raises OSError."""
    found = []
    for name in folder(root, kind, flow).names():
        try:
            found.append(date.fromisoformat(name.removeprefix(_DAY)))
        except ValueError:
            continue
    return found


def remove_day(root: Place, kind: Kind, flow: str, day: date) -> None:
    """Remove all of it. Raises OSError."""
    folder(root, kind, flow).remove(_day_folder(day))


def look(root: Place, kind: Kind, flow: str, day: date) -> Found:
    """What there is of a day. Raises OSError."""
    place = folder(root, kind, flow, day)
    # Most of the time goes by waiting where it is a store.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        seen = list(pool.map(partial(_seen, kind, flow, place), names_of(place)))
    files = [one for one in seen if isinstance(one, HistoryFile)]
    wide = [file for file in files if not file.is_of_one_cycle]
    replaced = [file for file in files if any(file.replaced_by(other) for other in wide)]
    gone = {file.name for file in replaced}
    left = tuple(file for file in files if file.name not in gone)
    return Found(left, tuple(replaced), tuple(one for one in seen if isinstance(one, str)))


def newest_first(root: Place, kind: Kind, flow: str, day: date) -> Iterator[HistoryFile | str]:
    """The files of a day one by one, those too in whose place others stand, and sentences about
    those that cannot be read. Raises OSError."""
    place = folder(root, kind, flow, day)
    for name in reversed(names_of(place)):
        if (one := _seen(kind, flow, place, name)) is not None:
            yield one


def united(covers: Iterable[Covers]) -> Covers:
    """What they cover together, with all that lies between."""
    found: dict[str, tuple[int, int]] = {}
    for one in covers:
        for instance, (first, last) in one.items():
            before = found.get(instance, (first, last))
            found[instance] = min(first, before[0]), max(last, before[1])
    return found


def parquet(kind: Kind, covers: Covers, parts: Iterable[pa.Table], *, full: bool = False) -> bytes:
    """A file with these parts, each a row group."""
    facts = {_VERSION: str(VERSION), _COVERS: json.dumps(covers, sort_keys=True)}
    sink = pa.BufferOutputStream()
    # Arrow's own schema is half of a small file, and says nothing that we need.
    with pq.ParquetWriter(sink, kind.schema, store_schema=False, **_ENCODING[kind]) as writer:
        for part in parts:
            writer.write_table(part)
        writer.add_key_value_metadata(facts | ({_FULL: "true"} if full else {}))
    return bytes(sink.getvalue())


def _encoding(schema: pa.Schema) -> dict[str, Any]:
    numbers = [field.name for field in schema if pa.types.is_integer(field.type)]
    return {
        "compression": "zstd",
        "write_page_checksum": True,
        "use_dictionary": [name for name in schema.names if name not in numbers],
        # Offsets seldom repeat, and lie close to each other.
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    }


_ENCODING = {kind: _encoding(kind.schema) for kind in Kind}


class _Unusable(Exception):
    """The file is none of ours, or not yet; the text says why."""


def _seen(kind: Kind, flow: str, place: Place, name: str) -> HistoryFile | str | None:
    """The file, or a sentence that says why it cannot be read; None where there is none."""
    if not name.endswith(_PARQUET):
        return None
    try:
        return _file(kind, flow, place, name)
    except FileNotFoundError:
        # Merged since it was listed: what stands in its place is read the next time.
        return None
    except _Unusable as error:
        return f"read history, flow {flow}: {place.path(name)}: {error}"


def _file(kind: Kind, flow: str, place: Place, name: str) -> HistoryFile:
    try:
        with place.open(name) as source:
            found = pq.read_metadata(source)
    except FileNotFoundError:
        raise
    except UNREACHABLE as error:
        raise _Unusable(
            f"{in_words(place, error)}; the file is ignored: remove it, or let this user read it"
        ) from error
    facts = found.metadata or {}
    try:
        version = int(facts[_VERSION])
        if version > VERSION:
            raise _Unusable(
                f"a newer tsoffset wrote it (version {version}, this one reads {VERSION}), so it "
                "is ignored; use that version to read it"
            )
        covers = {one: _cycles(*span) for one, span in json.loads(facts[_COVERS]).items()}
        if not covers:
            raise ValueError("it has no cycle")
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _Unusable(
            "this is not a history file of tsoffset, and is ignored; move it elsewhere"
        ) from error
    return HistoryFile(kind, flow, place, name, covers, _FULL in facts, found.num_rows)


def _cycles(first: object, last: object) -> tuple[int, int]:
    if type(first) is not int or type(last) is not int or first > last:
        raise ValueError("no first and last cycle")
    return first, last


def names_of(place: Place) -> list[str]:
    """The files of a day; none where a file has the day's name."""
    try:
        return place.names()
    except NotADirectoryError:
        return []


def _day_folder(day: date) -> str:
    return f"{_DAY}{day.isoformat()}"
