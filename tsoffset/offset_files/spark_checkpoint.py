"""The checkpoint of a Spark Structured Streaming query: read, and copied with translated offsets.

`offsets/N` says where batch N ends: a version, the batch's metadata, and a line for each source.
`commits/N` says that batch N is done. `sources/K/0` says where source K began. A batch without its
commit is run again by Spark, from the end of the batch before to the same end.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from pyarrow import fs

from tsoffset.errors import UsageError
from tsoffset.offset_files.document import (
    LOG_START,
    Document,
    StoredOffset,
    Targets,
    parse_error,
    without_repeated_keys,
)
from tsoffset.offset_files.spark_json import looks_like_offsets, spark_json, spark_offsets
from tsoffset.stores import UNREACHABLE, Store, in_words, is_missing, store_at, sync_folder

_VERSION = "v1"
# Spark skips the first byte of `sources/K/0`.
_FIRST_BYTE = "\0"
_NO_OFFSETS = "-"
_WHOLE = "a version, and a line for each source; restore the checkpoint from a backup"
# A running query may end a batch between the listings of two folders.
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the checkpoint by its path in it, with the offsets of each line that has some."""

    path: str
    lines: tuple[str, ...]
    offsets: dict[int, tuple[StoredOffset, ...]]

    def render(self, targets: Targets) -> str:
        lines = list(self.lines)
        for number, offsets in self.offsets.items():
            lines[number] = spark_json(offsets, targets)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SparkCheckpoint:
    """A checkpoint as it was read.

    `resumes` are the files with the offsets at which the query resumes. `planned` is the file of a
    batch that was planned and not committed, if any. `listing` has the names of all files in
    `offsets` and `commits`.
    """

    uri: str
    resumes: tuple[LogFile, ...]
    planned: LogFile | None
    listing: tuple[str, ...]

    @property
    def files(self) -> tuple[LogFile, ...]:
        return self.resumes if self.planned is None else (*self.resumes, self.planned)

    @property
    def offsets(self) -> tuple[StoredOffset, ...]:
        return _offsets(self.files)

    def starting_offsets(self) -> Document:
        """Where the query resumes, as `startingOffsets` of each of its Kafka sources, one per line.
        A batch that was not committed is read again."""
        sources = [some for file in self.resumes for some in file.offsets.values()]
        return Document(
            _offsets(self.resumes),
            lambda targets: "".join(spark_json(some, targets) + "\n" for some in sources),
        )


def _offsets(files: tuple[LogFile, ...]) -> tuple[StoredOffset, ...]:
    return tuple(one for file in files for some in file.offsets.values() for one in some)


# --- reading ----------------------------------------------------------------------------


def read_checkpoint(uri: str) -> SparkCheckpoint:
    """The checkpoint at a folder or URI. Raises UsageError."""
    uri = _arrow_uri(uri)
    store = store_at(uri)
    try:
        return _read(uri, store)
    except UNREACHABLE as error:
        raise UsageError(
            f"read the checkpoint {store.path('')}: {in_words(store, error)}; give the folder that"
            " the query has as checkpointLocation"
        ) from error


def _read(uri: str, store: Store) -> SparkCheckpoint:
    name = str(store.path("")).rstrip("/")
    for _ in range(_LOOKS):
        listing = _listing(store)
        planned, done = (_batches(listing, log) for log in ("offsets", "commits"))
        if not planned:
            there = bool(store.names())
            what = "there is no file in `offsets`" if there else "no such folder, or it is empty"
            raise parse_error(name, None, what, "the folder that a query has as checkpointLocation")
        last, committed = planned[-1], done[-1] if done else -1
        if last in (committed, committed + 1):
            break
    else:
        what = f"the last batch in `offsets` is {last}, the last in `commits` is {committed}"
        raise parse_error(
            name, None, what, "the same batch, or one more (asynchronous progress is not supported)"
        )
    open_batch = None if last == committed else _file(store, name, f"offsets/{last}", header=2)
    if committed < 0:
        assert open_batch is not None
        resumes = tuple(_beginnings(store, name, open_batch, of_all=True))
    else:
        ends = _file(store, name, f"offsets/{committed}", header=2)
        resumes = (ends, *_beginnings(store, name, ends, of_all=False))
    found = SparkCheckpoint(uri, resumes, open_batch, listing)
    if not any(file.offsets for file in resumes):
        raise parse_error(name, None, "no offset of Kafka", "a query that reads from Kafka")
    return found


def _listing(store: Store) -> tuple[str, ...]:
    return tuple(
        f"{log}/{name}" for log in ("offsets", "commits") for name in store.subfolder(log).names()
    )


def _batches(listing: tuple[str, ...], log: str) -> list[int]:
    names = (one.removeprefix(f"{log}/") for one in listing if one.startswith(f"{log}/"))
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def _beginnings(store: Store, name: str, batch: LogFile, *, of_all: bool) -> Iterator[LogFile]:
    """The beginnings of the Kafka sources that have no offset in this batch: they are still at
    their beginning. With `of_all` also those of the other Kafka sources."""
    for source, line in enumerate(batch.lines[2:]):
        path = f"sources/{source}/0"
        is_known = of_all and source + 2 in batch.offsets
        if is_known or (
            line == _NO_OFFSETS and "0" in store.subfolder("sources", str(source)).names()
        ):
            found = _file(store, name, path, header=1)
            if found.offsets:
                yield found
            elif is_known:
                where, expected = f"{name}/{path}", "the offsets at which the source begins"
                raise parse_error(where, 2, "no offsets", expected)


def _file(store: Store, name: str, path: str, *, header: int) -> LogFile:
    """One file of a log, whose sources begin after `header` lines."""
    *folders, last = path.split("/")
    where = f"{name}/{path}"
    try:
        text = store.subfolder(*folders).read(last).decode()
    except UnicodeDecodeError as error:
        raise parse_error(where, None, "bytes that are not UTF-8", "text") from error
    except UNREACHABLE as error:
        raise UsageError(
            f"read {where}: {in_words(store, error)}; the checkpoint needs this file: let this user"
            " read it or, if it is lost, restore the checkpoint from a backup"
        ) from error
    if not text:
        raise parse_error(where, None, "an empty file", _WHOLE)
    lines = tuple(text.split("\n"))
    if lines[0].removeprefix(_FIRST_BYTE) != _VERSION:
        raise parse_error(
            where,
            1,
            f"the version {lines[0][:20]!r}",
            "v1; this version of tsoffset knows no other (in Spark 4.2 and later:"
            " spark.sql.streaming.offsetLog.formatVersion=1)",
        )
    if len(lines) <= header:
        raise parse_error(where, None, f"it ends after line {len(lines)}", _WHOLE)
    offsets = {}
    for number, line in enumerate(lines[header:], start=header):
        found = tuple(_source(where, number + 1, line, f"{path} source {number - header}"))
        if found:
            offsets[number] = found
    return LogFile(path, lines, offsets)


def _source(where: str, line: int, text: str, log: str) -> list[StoredOffset]:
    """The offsets of one source's line; none where it is no Kafka source, or has none yet."""
    if text in ("", _NO_OFFSETS):
        return []
    try:
        value = json.loads(text, object_pairs_hook=without_repeated_keys)
    except (ValueError, RecursionError) as error:
        raise parse_error(
            where, line, str(error), "the JSON of a source's offsets, or `-`"
        ) from None
    if not looks_like_offsets(value):
        return []
    found = spark_offsets(where, text, value, log=log, first_line=line)
    if negative := [one for one in found if one.offset < 0]:
        one = negative[0]
        word = "start" if one.offset == LOG_START else "end"
        what = f"{one.topic}-{one.partition} is at {one.offset} (the log's {word})"
        raise parse_error(where, line, what, "an offset")
    return found


def _arrow_uri(uri: str) -> str:
    """Convert Hadoop's URI of S3 or of a local file to Arrow's."""
    uri = _local(uri)
    scheme, separator, rest = uri.partition("://")
    return f"s3://{rest}" if separator and scheme in ("s3a", "s3n") else uri


def _local(uri: str) -> str:
    """A path where the URI is one of this machine. Hadoop writes file:/data, too."""
    return uri.removeprefix("file://").removeprefix("file:")


# --- writing ----------------------------------------------------------------------------


def migrate(checkpoint: SparkCheckpoint, targets: Targets, folder: str) -> None:
    """Copy the checkpoint to a new folder, with target offsets where the query goes on; all else
    stays. The folder appears with all that is in it, or not at all. Raises UsageError."""
    output = new_folder(folder)
    source = store_at(checkpoint.uri)
    require_outside(checkpoint.uri, folder)
    _require_forward(checkpoint, targets)
    try:
        half = Path(mkdtemp(prefix=f".{output.name}.", suffix=".half", dir=output.parent))
        try:
            _copy(checkpoint.uri, source, half)
            _require_unchanged(checkpoint, source, half)
            for file in checkpoint.files:
                path = half / file.path
                path.write_text(file.render(targets), encoding="utf-8")
                # The checksum of Hadoop's local file system is of the old content.
                path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            _sync(half)
            half.chmod(0o755)
            half.rename(output)
            sync_folder(output.parent)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise
    except UNREACHABLE as error:
        raise UsageError(
            f"write the checkpoint {output}: {in_words(source, error)}; nothing was written"
        ) from error


def new_folder(folder: str) -> Path:
    """The folder, which must not be there yet. Raises UsageError."""
    path = _local(folder)
    output = Path(path)
    if "://" in path:
        raise UsageError(
            f"write the checkpoint {folder}: an object store cannot put a folder in place in one"
            " step; write it to a folder of this machine, and copy it before the query starts"
        )
    if os.access(output, os.F_OK):
        raise UsageError(
            f"write the checkpoint {output}: it exists; give a folder that does not (a checkpoint"
            " is never changed in place)"
        )
    if is_missing(output.absolute().parent):
        raise UsageError(
            f"write the checkpoint {output}: the folder {output.parent} does not exist; create it"
            " first"
        )
    return output.absolute()


def require_outside(uri: str, output: str) -> None:
    """Raise UsageError if the output would lie in the checkpoint at this folder or URI."""
    if Path(_arrow_uri(uri)).resolve() in Path(_local(output)).resolve().parents:
        raise UsageError(
            f"write {output}: it would lie in the checkpoint that is translated; give a path"
            " outside of it"
        )


def _require_forward(checkpoint: SparkCheckpoint, targets: Targets) -> None:
    """Raise UsageError where a planned batch would end before it begins, which inexact translations
    may do: Spark would take that for lost data."""
    begins = {
        (source, one.topic, one.partition): targets[one].offset
        for source, one in _by_source(checkpoint.resumes)
    }
    for source, one in _by_source(() if checkpoint.planned is None else (checkpoint.planned,)):
        begin = begins.get((source, one.topic, one.partition), 0)
        if targets[one].offset < begin:
            raise UsageError(
                f"migrate the checkpoint {store_at(checkpoint.uri).path('')}: the planned batch"
                f" would begin at {begin} of {targets[one].topic}-{one.partition} and end at"
                f" {targets[one].offset}; stop the query gracefully, or translate with"
                " --starting-offsets"
            )


def _by_source(files: tuple[LogFile, ...]) -> Iterator[tuple[int, StoredOffset]]:
    for file in files:
        for line, offsets in file.offsets.items():
            begins = file.path.startswith("sources/")
            source = int(file.path.split("/")[1]) if begins else line - 2
            yield from ((source, one) for one in offsets)


def _copy(uri: str, source: Store, folder: Path) -> None:
    filesystem, path = (
        fs.FileSystem.from_uri(uri)
        if "://" in uri
        else (fs.LocalFileSystem(), str(Path(uri).absolute()))
    )
    local = fs.LocalFileSystem()
    try:
        fs.copy_files(path, str(folder), source_filesystem=filesystem, destination_filesystem=local)
    except FileNotFoundError as error:
        # Spark removes the files of old batches, and renames new ones.
        raise _changed(source) from error


def _require_unchanged(checkpoint: SparkCheckpoint, source: Store, copied: Path) -> None:
    """Raise UsageError where the query wrote to its checkpoint while it was copied."""
    same = _listing(source) == _listing(store_at(copied)) == checkpoint.listing
    for file in checkpoint.files:
        same = same and (copied / file.path).read_text("utf-8") == "\n".join(file.lines)
    if not same:
        raise _changed(source)


def _changed(source: Store) -> UsageError:
    return UsageError(
        f"copy the checkpoint {source.path('')}: it changed meanwhile, so the query is running;"
        " stop the query, and translate again"
    )


def _sync(folder: Path) -> None:
    """Have all that is in the folder on the disk."""
    for here, _, names in os.walk(folder):
        for name in names:
            with (Path(here) / name).open("rb+") as file:
                os.fsync(file.fileno())
        sync_folder(Path(here))
