"""Days that are over become few files, and days that are old go.

A file that merges others covers what they cover, and readers take it in their place; the others
are removed the next time, so that nobody who has listed them misses them. A kill at any point
leaves nothing that is read twice, or lost. Two processes that merge one day come to the
same file, or to two of which one covers the other.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tsoffset.history.files import (
    Covers,
    Damaged,
    HistoryFile,
    Kind,
    concat,
    days,
    folder,
    look,
    names_of,
    parquet,
    remove_day,
    united,
)
from tsoffset.history.tables import Kept
from tsoffset.stores import Place

log = structlog.get_logger(__name__)

# A file is made in memory: some tens of megabytes.
_ROWS_IN_A_FILE = 4_000_000
_ROWS_IN_A_GROUP = 128 * 1024


def tidy(root: Place, flow: str, today: date, merged: date | None = None) -> None:
    """Merge what the flow has of the days before `today`, from `merged` on where those before it
    have been. What cannot be read stays as it is, and is logged. Raises OSError and
    ArrowException; it may be ended at any point, and goes on with the next."""
    for kind in Kind:
        for day in days(root, kind, flow):
            if day < today and (merged is None or day >= merged):
                _merge_day(root, kind, flow, day)


def remove_before(root: Place, flow: str, oldest: date) -> None:
    """Remove what the flow has of the days before `oldest`. Raises OSError."""
    for kind in Kind:
        for day in days(root, kind, flow):
            if day < oldest:
                remove_day(root, kind, flow, day)


def _merge_day(root: Place, kind: Kind, flow: str, day: date) -> None:
    place = folder(root, kind, flow, day)
    place.sweep()
    # Most days have been merged long ago, and no file of theirs needs to be looked at.
    if len(names_of(place)) < 2:
        return
    found = look(root, kind, flow, day)
    runs = [found.files]
    while runs:
        files = runs.pop()
        damaged = _merge(place, kind, files)
        if damaged is not None:
            # A file that covers both sides of it would stand in its place, too.
            runs += (files[:damaged], files[damaged + 1 :])
    # Those of an earlier time: somebody may be reading what was replaced just now.
    for file in found.replaced:
        place.remove(file.name)


def _merge(place: Place, kind: Kind, run: Sequence[HistoryFile]) -> int | None:
    """Write the files that stand in the place of those of the run. Which of them cannot be read,
    and what is behind it is as it was; None where all can."""
    for files in _batches(run):
        if len(files) > 1:
            covers = united(file.covers for file in files)
            # Of the time of the first one, so that names are in the order of time.
            name = f"{files[0].name.partition('-')[0]}-day-{_digest(covers)}.parquet"
            try:
                place.write(name, parquet(kind, covers, _row_groups(files)))
            except Damaged as error:
                log.warning("history_not_read", flow=files[0].flow, message=str(error))
                return run.index(error.file)
    return None


def _batches(files: Sequence[HistoryFile]) -> Iterator[list[HistoryFile]]:
    """Neighbours that together have no more rows than a file should; larger ones alone."""
    batch: list[HistoryFile] = []
    rows = 0
    for file in files:
        if batch and rows + file.rows > _ROWS_IN_A_FILE:
            yield batch
            batch, rows = [], 0
        batch.append(file)
        rows += file.rows
    if batch:
        yield batch


def _row_groups(files: Iterable[HistoryFile]) -> Iterator[pa.Table]:
    """The rows of the files without those that only say again what is known."""
    waiting: list[pa.Table] = []
    schema = None
    for file in files:
        schema = file.kind.schema
        for rows in file.batches():
            if file.kind is Kind.PAIRS:
                rows = rows.filter(pc.not_equal(rows["kept"].cast(pa.string()), Kept.FULL))
            waiting.append(rows)
            if sum(map(len, waiting)) >= _ROWS_IN_A_GROUP:
                yield concat(schema, waiting)
                waiting = []
    if schema is not None and waiting:
        yield concat(schema, waiting)


def _digest(covers: Covers) -> str:
    return blake2b(json.dumps(covers, sort_keys=True).encode(), digest_size=6).hexdigest()
