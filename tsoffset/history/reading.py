"""Past cycles without Spark: what was known last, for a process that starts, and the cycles of a
chart. No more files are opened than these are in."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import structlog

from tsoffset.daemon.freshness import PAIRS_KNOWN
from tsoffset.daemon.points import CyclePoint
from tsoffset.daemon.status import FlowState
from tsoffset.history.files import (
    Damaged,
    HistoryFile,
    Kind,
    concat,
    days,
    newest_first,
)
from tsoffset.history.tables import PAIRS, replayed
from tsoffset.stores import UNREACHABLE, Place, in_words, place_of

log = structlog.get_logger(__name__)

_DAY_SECONDS = 86_400.0
_Read = tuple[HistoryFile, pa.Table]
_STATES = pa.array([state.value for state in FlowState])
# In the order of CyclePoint's fields.
_OF_A_POINT = (
    "ended_at",
    "seconds",
    "state",
    "error",
    "groups",
    "committed",
    "would_commit",
    "unchanged",
    "skipped",
    "failed",
    "reread_bound",
    "lag_records",
    "lag_seconds_max",
)


def last_known(directory: str | Path, flow: str) -> pa.Table | None:
    """The pairs (PAIRS_KNOWN) of the flow's last cycle that is kept, by whatever instance; None
    where there is none. What cannot be read is left out and logged."""
    known = last_known_and_when(directory, flow)
    return None if known is None else known[0]


def last_known_and_when(directory: str | Path, flow: str) -> tuple[pa.Table, float] | None:
    """As `last_known`, with when that cycle ended (seconds since 1970 UTC)."""
    root = place_of(directory)
    try:
        for day in reversed(days(root, Kind.PAIRS, flow)):
            rows = _last_instance(_newest_first(root, Kind.PAIRS, flow, day))
            if rows is None:
                continue
            cycles = _newest_first(root, Kind.CYCLES, flow, day)
            if not len(rows):
                return PAIRS_KNOWN.empty_table(), _last_reached(cycles)
            ended = _last_reached(cycles, rows["instance"][0].as_py())
            ended = max(pc.max(rows["at"]).as_py(), ended)
            return replayed(rows, ended, flow), ended
    except UNREACHABLE as error:
        _warn(root, flow, error)
    return None


def points(
    root: Place,
    flow: str,
    since: float,
    until: float,
    limit: int,
    recent: Sequence[CyclePoint],
    instance: str,
) -> Sequence[CyclePoint]:
    """As `PastCycles.points`. `recent` are the last points of `instance`, oldest first, which stand
    for what files have of that time. What cannot be read is left out and logged."""
    begin = recent[0].at if recent else float("inf")
    found = {("", point.at): point for point in recent if since <= point.at < until}
    try:
        if len(found) < limit and since < begin:
            for day in reversed(days(root, Kind.CYCLES, flow)):
                start = datetime.combine(day, time(), UTC).timestamp()
                if start + _DAY_SECONDS <= since or len(found) >= limit:
                    break
                if start < until:
                    for _, rows in _newest_first(root, Kind.CYCLES, flow, day):
                        for row in _between(rows, since, until, limit).to_pylist():
                            if row["instance"] != instance or row["ended_at"] < begin:
                                found[row["instance"], row["ended_at"]] = _point(row)
    except UNREACHABLE as error:
        _warn(root, flow, error)
    return sorted(found.values(), key=lambda point: point.at)[-limit:]


def _point(row: dict[str, Any]) -> CyclePoint:
    """A row of CYCLES as a point."""
    at, seconds, state, *others = (row[name] for name in _OF_A_POINT)
    return CyclePoint(at, seconds, FlowState(state), *others)


def _last_instance(files: Iterator[_Read]) -> pa.Table | None:
    """Of a day's files, the newest first, the rows of the instance that wrote last, from where all
    its pairs are; None where there is no file. A row that is in two of them does no harm."""
    found: list[pa.Table] = []
    instance = None
    for file, rows in files:
        if instance is None and len(rows):
            instance = rows["instance"][pc.index(rows["at"], pc.max(rows["at"])).as_py()].as_py()
        elif instance is None:
            # There were no pairs at all.
            (instance,) = file.covers
        found.append(rows.filter(pc.equal(rows["instance"].cast(pa.string()), instance)))
        if file.full and instance in file.covers:
            break
    return concat(PAIRS, found) if found else None


def _last_reached(files: Iterator[_Read], instance: str | None = None) -> float:
    """When the last cycle of the instance, or of any, ended that reached the clusters, by files of
    which the newest is first; 0.0 where none is kept."""
    for _, rows in files:
        if instance is not None:
            rows = rows.filter(pc.equal(rows["instance"].cast(pa.string()), instance))
        ended = pc.max(rows["ended_at"].filter(rows["reached"])).as_py()
        if ended is not None:
            return float(ended)
    return 0.0


def _newest_first(root: Place, kind: Kind, flow: str, day: date) -> Iterator[_Read]:
    for one in newest_first(root, kind, flow, day):
        if isinstance(one, str):
            log.warning("history_not_read", flow=flow, message=one)
            continue
        try:
            rows = one.table()
        except Damaged as error:
            log.warning("history_not_read", flow=flow, message=str(error))
            continue
        yield one, rows


def _between(rows: pa.Table, since: float, until: float, limit: int) -> pa.Table:
    """The last of the rows of that time, so many at most: what a point is made of."""
    ended = rows["ended_at"]
    within = pc.and_(pc.greater_equal(ended, since), pc.less(ended, until))
    # A later version may know more states.
    within = pc.and_(within, pc.is_in(rows["state"].cast(pa.string()), _STATES))
    rows = rows.select(["instance", *_OF_A_POINT]).filter(within).sort_by("ended_at")
    return rows.slice(max(0, len(rows) - limit))


def _warn(root: Place, flow: str, error: Exception) -> None:
    log.warning(
        "history_not_read",
        flow=flow,
        message=f"read history, flow {flow}: {root.path('')}: {in_words(root, error)}; let "
        "this user read it",
    )
