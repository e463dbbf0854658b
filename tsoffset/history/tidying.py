"""Merging the files of past days, and removing days past the retention.

The files that one process wrote on a day become one file, which includes and so replaces them
(`files`). The replaced files are removed the next day, so that a reader that has listed them can
finish. A process killed at any point leaves nothing that is read twice or lost. Two processes that
merge the same files write a file of the same name and content.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import chain, groupby

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tsoffset.history.files import (
    Damaged,
    HistoryFile,
    HistoryTable,
    concat,
    days,
    files_of_day,
    folder,
    parquet,
    remove_day,
)
from tsoffset.history.tables import KeptReason
from tsoffset.stores import Store

log = structlog.get_logger(__name__)

# A merged file is made in memory: some tens of megabytes.
_ROWS_IN_A_FILE = 4_000_000
_ROWS_IN_A_GROUP = 128 * 1024


def tidy(root: Store, flow: str, today: date, merged: date | None = None) -> None:
    """Merge the flow's files of the days before `today`; if the days before `merged` have been
    merged, only from that day on. A file that cannot be read stays, and is logged. Raises OSError
    and ArrowException; it may be stopped at any point, and continues with the next call."""
    for kind in HistoryTable:
        for day in days(root, kind, flow):
            if day < today and (merged is None or day >= merged):
                _merge_day(root, kind, flow, day)


def remove_before(root: Store, flow: str, oldest: date) -> None:
    """Remove the flow's files of the days before `oldest`. Raises OSError."""
    for kind in HistoryTable:
        for day in days(root, kind, flow):
            if day < oldest:
                remove_day(root, kind, flow, day)


def _merge_day(root: Store, kind: HistoryTable, flow: str, day: date) -> None:
    folder(root, kind, flow, day).sweep()
    found = files_of_day(root, kind, flow, day)
    in_order = sorted(found.files, key=lambda file: (file.name.instance, file.name.first))
    for _, files in groupby(in_order, key=lambda file: file.name.instance):
        try:
            _merge(list(files))
        except Damaged as error:
            _warn(error)
    old = [file.name for file in found.replaced]
    replacing = (file for file in found.files if any(map(file.name.includes, old)))
    unreadable = [file.name for file in replacing if _is_damaged(file)]
    # Only files that an earlier call has replaced: a reader may still read those of this call.
    for file in found.replaced:
        if not any(name.includes(file.name) for name in unreadable):
            file.store.remove(str(file.name))


def _is_damaged(file: HistoryFile) -> bool:
    try:
        file.count_rows()
    except Damaged as error:
        _warn(error)
        return True
    return False


def _warn(error: Damaged) -> None:
    log.warning("history_not_read", flow=error.file.flow, message=str(error))


def _merge(run: Sequence[HistoryFile]) -> None:
    """Merge files of one process. Raises Damaged if one cannot be read: a merged file with the
    cycles before and after it would count as its replacement."""
    for files in _batches(run):
        if len(files) > 1:
            first, last = files[0], files[-1]
            name = replace(last.name, first=first.name.first, full=False)
            first.store.write(str(name), parquet(first.kind, _row_groups(files)))


def _batches(run: Sequence[HistoryFile]) -> Iterator[list[HistoryFile]]:
    """Consecutive files with at most `_ROWS_IN_A_FILE` rows together; larger ones alone."""
    if len(run) < 2:
        return
    batch: list[HistoryFile] = []
    rows = 0
    for file in run:
        more = file.count_rows()
        if batch and rows + more > _ROWS_IN_A_FILE:
            yield batch
            batch, rows = [], 0
        batch.append(file)
        rows += more
    yield batch


def _row_groups(files: Sequence[HistoryFile]) -> Iterator[pa.Table]:
    """The rows of the files, without those that repeat known values."""
    waiting: list[pa.Table] = []
    kind = files[0].kind
    for rows in chain.from_iterable(file.batches() for file in files):
        if kind is HistoryTable.PAIRS:
            rows = rows.filter(pc.not_equal(rows["kept"].cast(pa.string()), KeptReason.FULL))
        waiting.append(rows)
        if sum(map(len, waiting)) >= _ROWS_IN_A_GROUP:
            yield concat(kind.schema, waiting)
            waiting = []
    if waiting:
        yield concat(kind.schema, waiting)
