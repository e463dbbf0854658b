"""Reading past cycles without Spark: the last known state, for a process that starts, and the
cycles of a chart. Opens only the files that hold these."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tsoffset.daemon.freshness import PAIRS_KNOWN
from tsoffset.daemon.points import CyclePoint
from tsoffset.daemon.status import FlowState
from tsoffset.history.files import Damaged, HistoryFile, HistoryTable, concat, days, files_of_day
from tsoffset.history.tables import PAIRS, replay_rows
from tsoffset.stores import UNREACHABLE, Store, in_words, store_at

log = structlog.get_logger(__name__)

_DAY_SECONDS = 86_400.0
_Read = tuple[HistoryFile, pa.Table]
_STATES = pa.array([state.value for state in FlowState])
# The columns of a CyclePoint, in the order of its fields.
_COLUMNS = {"at": "ended_at", "lag_seconds": "lag_seconds_max"}
_POINT_COLUMNS = tuple(_COLUMNS.get(field.name, field.name) for field in fields(CyclePoint))


def last_known(directory: str | Path, flow: str) -> tuple[pa.Table, float] | None:
    """The group-partitions (PAIRS_KNOWN) of the flow's last recorded cycle, of any process, and the
    end of that cycle (seconds since 1970 UTC); None if there is none. Files that cannot be read are
    skipped and logged."""
    root = store_at(directory)
    try:
        for day in reversed(days(root, HistoryTable.PAIRS, flow)):
            rows = _last_instance(_newest_first(root, HistoryTable.PAIRS, flow, day))
            if rows is None:
                continue
            cycles = _newest_first(root, HistoryTable.CYCLES, flow, day)
            if not len(rows):
                return PAIRS_KNOWN.empty_table(), _last_reached(cycles)[1]
            reached = _last_reached(cycles, rows["instance"][0].as_py())
            _, ended = max(_last_cycle(rows["cycle"], rows["at"]), reached)
            return replay_rows(rows, ended, flow), ended
    except UNREACHABLE as error:
        _warn(root, flow, error)
    return None


def points(
    root: Store,
    flow: str,
    since: float,
    until: float,
    limit: int,
    recent: Sequence[CyclePoint],
    instance: str,
) -> Sequence[CyclePoint]:
    """As `PastCycles.points`. `recent` are the last points of `instance`, oldest first; they are
    used instead of its files. Files that cannot be read are skipped and logged."""
    begin = recent[0].at if recent else float("inf")
    found = {("", point.at): point for point in recent if since <= point.at < until}
    try:
        if len(found) < limit and since < begin:
            for day in reversed(days(root, HistoryTable.CYCLES, flow)):
                start = datetime.combine(day, time(), UTC).timestamp()
                if start + _DAY_SECONDS <= since or len(found) >= limit:
                    break
                if start < until:
                    for _, rows in _newest_first(root, HistoryTable.CYCLES, flow, day):
                        for row in _rows_between(rows, since, until, limit).to_pylist():
                            if row["instance"] != instance or row["ended_at"] < begin:
                                found[row["instance"], row["ended_at"]] = _point(row)
    except UNREACHABLE as error:
        _warn(root, flow, error)
    return sorted(found.values(), key=lambda point: point.at)[-limit:]


def _point(row: dict[str, Any]) -> CyclePoint:
    at, seconds, state, *others = (row[name] for name in _POINT_COLUMNS)
    return CyclePoint(at, seconds, FlowState(state), *others)


def _last_instance(files: Iterator[_Read]) -> pa.Table | None:
    """The rows of the process that wrote the newest file of a day, back to its last file with all
    group-partitions; the files come newest first. None if there is no file."""
    found: list[pa.Table] = []
    instance = None
    for file, rows in files:
        instance = instance or file.name.instance
        if file.name.instance == instance:
            found.append(rows)
            if file.name.full:
                break
    return concat(PAIRS, found) if found else None


def _last_reached(files: Iterator[_Read], instance: str | None = None) -> tuple[int, float]:
    """The number and the end of the last cycle that reached both clusters, of this process or
    (None) of any; 0 and 0.0 if there is none. The files come newest first."""
    for file, rows in files:
        if instance not in (None, file.name.instance):
            continue
        rows = rows.filter(rows["reached"])
        if len(rows):
            return _last_cycle(rows["cycle"], rows["ended_at"])
    return 0, 0.0


def _last_cycle(numbers: pa.ChunkedArray, ended: pa.ChunkedArray) -> tuple[int, float]:
    """The last number with its time, which is not the latest if the clock was set back."""
    last = pc.max(numbers)
    return last.as_py(), pc.max(ended.filter(pc.equal(numbers, last))).as_py()


def _newest_first(root: Store, kind: HistoryTable, flow: str, day: date) -> Iterator[_Read]:
    """The files of a day with their rows, process by process: first the process with the latest
    file. Its files are ordered by cycle, the last one first, since its clock may have been set
    back."""
    names = {file.name: file for file in files_of_day(root, kind, flow, day).files}
    latest = {name.instance: name.ended_ms for name in names}
    for name in sorted(names, key=lambda one: (-latest[one.instance], one.instance, -one.last)):
        file = names[name]
        try:
            yield file, file.table()
        except FileNotFoundError:
            # Removed after it was listed, because another file includes it.
            continue
        except Damaged as error:
            log.warning("history_not_read", flow=flow, message=str(error))


def _rows_between(rows: pa.Table, since: float, until: float, limit: int) -> pa.Table:
    """The last `limit` rows of cycles that ended in this time, with the columns of a point."""
    ended = rows["ended_at"]
    within = pc.and_(pc.greater_equal(ended, since), pc.less(ended, until))
    # A later version may have more states.
    within = pc.and_(within, pc.is_in(rows["state"].cast(pa.string()), _STATES))
    rows = rows.select(["instance", *_POINT_COLUMNS]).filter(within).sort_by("ended_at")
    return rows.slice(max(0, len(rows) - limit))


def _warn(root: Store, flow: str, error: Exception) -> None:
    log.warning(
        "history_not_read",
        flow=flow,
        message=f"read history, flow {flow}: {root.path('')}: {in_words(root, error)}; check that"
        " this user can reach and read it",
    )
