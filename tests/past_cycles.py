"""Cycles that have ended, as an observer is told of them, and what history has of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests import serving
from tests.memory_flows import flow
from tests.serving import FLOW
from tsoffset.daemon.status import Board, Cycle, FlowStatus, Instance
from tsoffset.group_sync.flow_cycle import CycleResult
from tsoffset.group_sync.rows import Rows, rows_table
from tsoffset.history.files import HistoryTable, days, files_of_day
from tsoffset.history.flow_history import FlowHistory
from tsoffset.history.tidying import remove_before, tidy
from tsoffset.model import OutcomeKind, Row
from tsoffset.stores import store_at
from tsoffset.terminal.row_columns import tally_of

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
MINUTE = 60.0
TODAY = date(2026, 11, 22)
LATER = TODAY + timedelta(days=9)


def row(group: str = "billing", partition: int = 0, offset: int = 7, **changes: Any) -> Row:
    """A pair that is in place, unless it is said otherwise."""
    fields = dict.fromkeys(("source_offset", "target_offset", "current_target_offset"), offset)
    fields |= {"source_timestamp_ms": 1_000 + offset, "outcome": OutcomeKind.UNCHANGED}
    return serving.row(group, partition=partition, **{**fields, "consumer_lag": None, **changes})


@dataclass(slots=True)
class Past:
    """A daemon's cycles of one flow, a minute each, and their history below `directory`."""

    directory: Path
    started: float = NOON
    id: str = "a1"
    full_every: int = 60
    cycles: int = 0
    board: Board = field(init=False)
    history: FlowHistory = field(init=False)

    def __post_init__(self) -> None:
        self.board = Board(Instance(self.id, "here", 1, self.started), now=lambda: self.started)
        self.board.set_flows([flow()])
        root = store_at(self.directory)
        self.history = FlowHistory(root, FLOW, self.id, self.full_every)

    def ended(self, rows: Sequence[Row] | None, **facts: int) -> tuple[Cycle, FlowStatus]:
        """The next cycle, with these rows; None: it came to nothing."""
        self.cycles += 1
        result = tally = None
        if rows is not None:
            table = rows_table(rows)
            result = CycleResult(FLOW, Rows(table), (), False, 1.0, 1, 1)
            tally = tally_of(table)
        cycle = Cycle(
            FLOW,
            self.cycles,
            self.started + MINUTE * self.cycles,
            1.5,
            True,
            result,
            tally,
            None if rows is not None else "Spark gave up",
            facts={"groups": 1, **facts},
        )
        status = self.board.cycle_ended(cycle)
        return cycle, status

    def keep(self, *rows: Row, **facts: int) -> pa.Table:
        """End a cycle with these rows, write it, and return what was known then."""
        cycle, status = self.ended(rows, **facts)
        self.history.add(cycle, status)
        self.history.write()
        return status.pairs


def files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def rows_of(directory: Path, kind: HistoryTable) -> list[dict[str, Any]]:
    """All rows that a reader finds, in the order of cycles."""
    root = store_at(directory)
    tables = [
        file.table()
        for day in days(root, kind, FLOW)
        for file in files_of_day(root, kind, FLOW, day).files
    ]
    rows = [one for table in tables for one in table.to_pylist()]
    return sorted(rows, key=lambda one: (one["instance"], one["cycle"]))


def pairs_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Its rows as tuples, in an order that does not depend on the table's."""
    return sorted(map(tuple, (one.values() for one in table.to_pylist())), key=repr)


def kept(directory: Path) -> list[tuple[int, str, str]]:
    """Cycle, group and kind of every row of pairs."""
    rows = rows_of(directory, HistoryTable.PAIRS)
    return [(one["cycle"], one["group"], one["kept"]) for one in rows]


def merge(directory: Path, today: date = LATER, oldest: date = date.min) -> None:
    """Tidy twice, as on two days: the second time removes the files replaced by the first."""
    for _ in range(2):
        tidy(store_at(directory), FLOW, today)
    remove_before(store_at(directory), FLOW, oldest)
