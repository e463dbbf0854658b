"""Writing the cycles of one flow: the group-partitions that changed, and a row for each cycle.

A file appears atomically, so a killed process leaves no partial one. Changes are computed against
the last written state, not against the previous cycle: the next successful write includes what an
earlier one could not write.
"""

import threading
from collections import deque
from dataclasses import dataclass, field, fields
from datetime import date
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.daemon.points import CyclePoint
from tsoffset.daemon.status import Cycle, FlowStatus
from tsoffset.history.files import FileName, HistoryTable, day_of, folder, parquet
from tsoffset.history.tables import (
    COUNTED,
    COUNTS,
    CYCLES,
    SECONDS,
    CyclePairs,
    KeptReason,
    changed_rows,
)
from tsoffset.logs import hide_secrets
from tsoffset.stores import Store
from tsoffset.terminal.output import IN_PLACE

# One row is too little for a file: each file repeats the rows of the one before, up to this number.
_CYCLES_IN_A_FILE = 100
# A reader that has listed a replaced file, such as Spark, may still open it.
_REPLACED_STAY_SECONDS = 600.0
# The rows that wait in memory while nothing can be written.
_CYCLES_IN_MEMORY = 2_000

# The columns that a CyclePoint has already.
_OF_ROWS = [one.name for one in fields(CyclePoint) if one.name in (*COUNTS, "lag_records")]

_Row = dict[str, Any]


@dataclass(slots=True)
class FlowHistory:
    """The history of a flow as one process writes it. `add` and `write` may run in two threads."""

    root: Store
    flow: str
    instance: str
    full_every: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _latest: CyclePairs | None = None
    _waiting: deque[_Row] = field(default_factory=lambda: deque(maxlen=_CYCLES_IN_MEMORY))
    # The group-partitions that were written last.
    _written: CyclePairs | None = None
    # The last cycle with a file of all group-partitions, and its day.
    _full: int = 0
    _day: date | None = None
    # The day, name and rows of the last file of cycles; the files it replaced, each since when.
    _file: tuple[date, FileName] | None = None
    _rows: list[_Row] = field(default_factory=list)
    _replaced: deque[tuple[float, date, FileName]] = field(default_factory=deque)

    def add(self, cycle: Cycle, status: FlowStatus) -> None:
        """Add a finished cycle; `write` writes it."""
        row = _summary(cycle, status, self.instance)
        with self._lock:
            if cycle.reached:
                self._latest = CyclePairs(cycle.number, cycle.ended_at, status.pairs)
            self._waiting.append(row)

    def write(self) -> None:
        """Write what was added: the row of each cycle, and the group-partitions of the last one.
        Raises OSError and ArrowException; the next call writes what this one could not."""
        with self._lock:
            latest, self._latest = self._latest, None
        try:
            if latest is not None:
                self._write_pairs(latest)
        except BaseException:
            with self._lock:
                self._latest = self._latest or latest
            # The next file must have all group-partitions as changed: the failed write may have
            # stored its file.
            self._full = -self.full_every
            raise
        self._write_cycles()

    def _write_pairs(self, now: CyclePairs) -> None:
        day = day_of(now.ended_at)
        whole = None
        if day != self._day:
            whole = KeptReason.FIRST
        elif now.cycle - self._full >= self.full_every:
            whole = KeptReason.CHANGED if self._full < 0 else KeptReason.FULL
        rows = changed_rows(self._written, now, self.instance, whole=whole)
        if len(rows) or whole is not None:
            full = whole is not None
            name = self._name(now.ended_at, now.cycle, now.cycle, full=full)
            self._put(HistoryTable.PAIRS, day, name, rows)
        self._written = now
        if whole is not None:
            self._full, self._day = now.cycle, day

    def _write_cycles(self) -> None:
        while added := self._next_rows():
            day, last = day_of(added[0]["ended_at"]), added[-1]["cycle"]
            old, rows = self._file, self._rows
            if old is None or old[0] != day or len(rows) >= _CYCLES_IN_A_FILE:
                old, rows = None, []
            rows = [*rows, *added]
            name = self._name(added[-1]["ended_at"], rows[0]["cycle"], last)
            self._put(HistoryTable.CYCLES, day, name, pa.Table.from_pylist(rows, CYCLES))
            if old is not None:
                self._replaced.append((added[-1]["ended_at"], *old))
            self._file, self._rows = (day, name), rows
            with self._lock:
                while self._waiting and self._waiting[0]["cycle"] <= last:
                    self._waiting.popleft()
        self._remove_replaced()

    def _remove_replaced(self) -> None:
        now = self._rows[-1]["ended_at"] if self._rows else 0.0
        while self._replaced and self._replaced[0][0] <= now - _REPLACED_STAY_SECONDS:
            _, day, name = self._replaced[0]
            folder(self.root, HistoryTable.CYCLES, self.flow, day).remove(str(name))
            self._replaced.popleft()

    def _next_rows(self) -> list[_Row]:
        """The oldest rows that are not written yet, of one day."""
        with self._lock:
            of_each_day = groupby(self._waiting, lambda row: day_of(row["ended_at"]))
            return [row for _, rows in islice(of_each_day, 1) for row in rows]

    def _name(self, ended_at: float, first: int, last: int, *, full: bool = False) -> FileName:
        return FileName(round(ended_at * 1000), self.instance, first, last, full)

    def _put(self, kind: HistoryTable, day: date, name: FileName, rows: pa.Table) -> None:
        folder(self.root, kind, self.flow, day).write(str(name), parquet(kind, [rows]))


def _summary(cycle: Cycle, status: FlowStatus, instance: str) -> _Row:
    row: _Row = dict.fromkeys(CYCLES.names)
    point = CyclePoint.of(cycle, status)
    row |= {
        "instance": instance,
        "cycle": cycle.number,
        "started_at": cycle.started_at,
        "ended_at": cycle.ended_at,
        "seconds": cycle.seconds,
        "commits": cycle.commits,
        "reached": cycle.reached,
        "state": status.state.value,
        "error": None if point.error is None else hide_secrets(point.error),
    }
    if cycle.reached:
        row |= {name: cycle.facts.get(name) for name in (*COUNTS, *SECONDS)}
        row |= {name: getattr(point, name) for name in _OF_ROWS}
        row |= {"lag_seconds_max": point.lag_seconds, **_of_pairs(status.pairs)}
    return row


def _of_pairs(pairs: pa.Table) -> _Row:
    in_place = pc.and_(
        pc.is_in(pairs["outcome"].cast(pa.string()), value_set=pa.array(IN_PLACE, pa.string())),
        pairs["target_offset"].is_valid(),
    )
    counts = pc.value_counts(pairs["precision"].cast(pa.string()).filter(in_place)).to_pylist()
    precisions = {one["values"]: one["counts"] for one in counts}
    return {
        **{name: precisions.get(name, 0) for name in COUNTED},
        "lag_records_max": pc.max(pairs["lag_records"]).as_py(),
    }
