"""History as views of Spark SQL. Spark's tasks read the files with pyarrow, so folders and stores
work alike, without further libraries of Spark.

`cycles` has a row for each cycle. `pairs` has a row for each period in which a group-partition did
not change, from `since` to `until` (null: until now), so `since <= T AND (until > T OR until IS
NULL)` returns all group-partitions as of the time T.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from tsoffset.flow.patterns import matches
from tsoffset.history.files import (
    Damaged,
    HistoryFile,
    HistoryTable,
    day_of,
    days,
    files_of_day,
    flows,
)
from tsoffset.spark.cells import from_cell, to_cell
from tsoffset.stores import ObjectStore, Store

_FILES = "file binary"
# Without dictionaries, which Spark's Java does not read, and with the flow as a column.
_PLAIN = {
    kind: pa.schema(
        [
            ("flow", pa.string()),
            *(
                (one.name, pa.string() if pa.types.is_dictionary(one.type) else one.type)
                for one in kind.schema
            ),
        ]
    )
    for kind in HistoryTable
}

_CYCLES = """
SELECT * EXCEPT (started_at, ended_at),
  timestamp_millis(bigint(round(started_at * 1000))) AS started_at,
  timestamp_millis(bigint(round(ended_at * 1000))) AS ended_at
FROM (SELECT DISTINCT * FROM tsoffset_cycles)
WHERE ended_at >= :start
"""
# If another process follows, the periods of this one end with its last cycle.
_PAIRS = """
WITH instances AS (
  SELECT flow, instance, max(ended_at) AS last,
    max(max(ended_at)) OVER (PARTITION BY flow) AS last_of_all
  FROM tsoffset_cycles GROUP BY flow, instance
), rows AS (
  SELECT *, lead(at) OVER (
      PARTITION BY flow, `group`, source_topic, `partition` ORDER BY at
    ) AS next
  FROM tsoffset_pairs WHERE kept <> 'full'
), known AS (
  SELECT rows.*, coalesce(next, if(last < last_of_all, last, NULL)) AS ended
  FROM rows LEFT JOIN instances USING (flow, instance)
)
SELECT * EXCEPT (at, next, ended, kept, in_sync_at),
  timestamp_millis(bigint(round(at * 1000))) AS since,
  timestamp_millis(bigint(round(ended * 1000))) AS until,
  timestamp_millis(bigint(round(in_sync_at * 1000))) AS in_sync_at,
  in_sync_at <=> at AS in_sync,
  if(outcome = 'committed', target_offset, current_target_offset) AS on_target
FROM known
WHERE kept <> 'gone' AND (ended IS NULL OR (ended > at AND ended > :start))
"""


@dataclass(frozen=True, slots=True)
class ViewScope:
    """What the views show: these flows (empty: all), from `start` on (seconds since 1970 UTC), and
    in `pairs` only matching groups."""

    flows: Sequence[str] = ()
    start: float = 0.0
    groups: re.Pattern[str] | None = None


@dataclass(slots=True)
class Opened:
    """The number of files of the views, and what Spark's tasks say of those that they cannot
    read."""

    damaged: Accumulator[set[str]]
    files: int = 0

    @property
    def warnings(self) -> list[str]:
        """A sentence for each file that could not be read; complete once a query has been
        answered."""
        return sorted(self.damaged.value)


class _Union(AccumulatorParam[set[str]]):
    def zero(self, value: set[str]) -> set[str]:
        return set()

    def addInPlace(self, value1: set[str], value2: set[str]) -> set[str]:  # noqa: N802 (pyspark's)
        return value1 | value2


def open_views(
    session: SparkSession, root: Store, asked: ViewScope, again: Callable[[], Store]
) -> Opened:
    """Make the views `cycles` and `pairs` of the session. Raises OSError and ArrowException if the
    history cannot be listed.

    Spark's tasks call `again` to get the root. Then the URI of a store, which may hold
    credentials, is not sent to them.
    """
    opened = Opened(session.sparkContext.accumulator(set(), _Union()))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    # Off for cycles, which it would slow down; on here, as the number of rows is not known.
    session.conf.set("spark.sql.adaptive.enabled", "true")
    for kind in HistoryTable:
        files = [without_root(file) for file in _files(root, kind, asked)]
        opened.files += len(files)
        groups = asked.groups if kind is HistoryTable.PAIRS else None
        rows = _rows(session, kind, files, partial(_read, groups, opened.damaged, again))
        rows.createOrReplaceTempView(f"tsoffset_{kind.value}")
    for name, text in ((HistoryTable.CYCLES, _CYCLES), (HistoryTable.PAIRS, _PAIRS)):
        view = session.sql(text, args={"start": asked.start})
        view.createOrReplaceTempView(name.value)
    return opened


def _files(root: Store, kind: HistoryTable, asked: ViewScope) -> Iterator[HistoryFile]:
    first = day_of(asked.start)
    for flow in asked.flows or flows(root):
        for day in days(root, kind, flow):
            if day >= first:
                yield from files_of_day(root, kind, flow, day).files


def _rows(
    session: SparkSession,
    kind: HistoryTable,
    files: Sequence[HistoryFile],
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
) -> DataFrame:
    schema = from_arrow_schema(_PLAIN[kind])
    if not files:
        return session.createDataFrame([], schema)
    tasks = min(len(files), 4 * session.sparkContext.defaultParallelism)
    cells = session.createDataFrame([(to_cell(file),) for file in files], _FILES)
    return map_in_arrow(cells.repartition(tasks), read, schema)


def map_in_arrow(
    frame: DataFrame,
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """`DataFrame.mapInArrow` without pandas, which pyspark asks for and does not use here."""
    function = UserDefinedFunction(
        read, returnType=schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    column = function(*(frame[name] for name in frame.columns))
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


def without_root(file: HistoryFile) -> HistoryFile:
    """The file without its store's URI, which may hold credentials, to be sent to a task."""
    if isinstance(file.store, ObjectStore):
        return replace(file, store=replace(file.store, uri=""))
    return file


def below_root(file: HistoryFile, again: Callable[[], Store]) -> HistoryFile:
    """The reverse of `without_root`, with the root that `again` returns."""
    if isinstance(file.store, ObjectStore) and isinstance(root := again(), ObjectStore):
        return replace(file, store=replace(file.store, uri=root.uri))
    return file


def _read(
    groups: re.Pattern[str] | None,
    damaged: Accumulator[set[str]],
    again: Callable[[], Store],
    cells: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs in a task: the rows of its files; of a damaged file, the rows before the damage."""
    for batch in cells:
        for cell in batch["file"].to_pylist():
            file = below_root(from_cell(cell), again)
            try:
                for rows in file.batches():
                    if groups is not None:
                        rows = rows.filter(_matches(rows["group"], groups))
                    flow = pa.array([file.flow] * len(rows), pa.string())
                    named = rows.add_column(0, "flow", flow)
                    yield from named.cast(_PLAIN[file.kind]).to_batches()
            except Damaged as error:
                damaged.add({str(error)})


def _matches(group: pa.ChunkedArray, pattern: re.Pattern[str]) -> pa.Array:
    names = [name for name in group.unique().to_pylist() if name is not None]
    wanted = [name for name in names if matches(pattern, name)]
    return pc.is_in(group.cast(pa.string()), value_set=pa.array(wanted, pa.string()))
