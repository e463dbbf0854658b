"""What a cycle is run on, what is kept between cycles, and what comes of one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc

from tsoffset.cluster import Cluster
from tsoffset.config.loading import Configuration
from tsoffset.cycle.work import Cost
from tsoffset.flow.narrowing import Narrowing
from tsoffset.flow.settings import ClusterSettings, FlowSettings
from tsoffset.model import GroupListings, OutcomeKind, Row
from tsoffset.spark.clients import Connect
from tsoffset.spark.schema import LAST_COMMITS
from tsoffset.spark.values import rows_of

_ROWS_AT_ONCE = 10_000
_KEY = ["group", "source_topic", "partition"]


def kafka_cluster(settings: ClusterSettings) -> Cluster:
    """A real cluster; nothing is connected before it is asked."""
    from tsoffset.kafka.cluster import KafkaCluster

    return KafkaCluster(settings)


@dataclass(frozen=True, slots=True)
class FlowTask:
    """Which flow to sync, as it travels to every task: nothing resolved, nothing secret.

    `connect` is a function of an importable module; the workers call it themselves.
    """

    configuration: Configuration
    flow: str
    narrowing: Narrowing = field(default_factory=Narrowing)
    connect: Connect = kafka_cluster

    def resolve(self) -> tuple[FlowSettings, tuple[FlowSettings, ...]]:
        """The flow's settings in this process, and those of its competing flows.

        Raises ConfigurationError and UsageError.
        """
        settings = self.configuration.resolve()
        flow = settings.flow(self.flow)
        return self.narrowing.apply(flow), settings.competing_flows_of(flow)


@dataclass(slots=True)
class FlowCarryOver:
    """What the driver keeps of a flow between cycles; all of it may be lost at any time.

    `listing` is the source's groups as listed at `listed_at` (seconds of a monotonic clock);
    `commits` a table like LAST_COMMITS; `partitions` one like CARRY_OVER; `rows` how many rows the
    last cycle came to. `binding` says of which clusters and settings all this is.
    """

    listing: GroupListings | None = None
    listed_at: float = 0.0
    commits: pa.Table | None = None
    partitions: pa.Table | None = None
    rows: int | None = None
    binding: str | None = None

    def bind(self, binding: str) -> bool:
        """Forget everything unless it is of these clusters and settings; False where there was
        something else to forget."""
        kept = self.binding in (None, binding)
        if not kept:
            self.listing = self.commits = self.partitions = self.rows = None
        self.binding = binding
        return kept

    def of_groups(self, groups: Sequence[str]) -> pa.Table:
        """What is remembered of these groups, as LAST_COMMITS."""
        if self.commits is None:
            return LAST_COMMITS.empty_table()
        there = pa.array(groups, pa.string())
        return self.commits.filter(pc.is_in(self.commits["group"], value_set=there))

    def learn(self, rows: pa.Table, groups: Sequence[str], partitions: pa.Table) -> None:
        """Take what a cycle's rows say, and what it leaves of partitions; groups that the source
        has no more are forgotten, and so are positions where no group stands any more.

        A group that stands on the target where its source commit leads is remembered like
        one that was moved there.
        """
        self.rows = rows.num_rows
        self.partitions = partitions
        known = rows.select([*_KEY, "source_offset", "target_offset", "current_target_offset"])
        moved = pc.equal(rows["outcome"], OutcomeKind.COMMITTED)
        stayed = pc.equal(rows["outcome"], OutcomeKind.UNCHANGED)
        at = pc.if_else(moved, known["target_offset"], known["current_target_offset"])
        fresh = pa.Table.from_arrays(
            [*(known[name] for name in _KEY), known["source_offset"], at], schema=LAST_COMMITS
        ).filter(pc.or_(moved, stayed))
        if self.commits is not None:
            kept = self.of_groups(groups).join(fresh.select(_KEY), keys=_KEY, join_type="left anti")
            fresh = pa.concat_tables([fresh, kept.select(LAST_COMMITS.names)])
        self.commits = fresh


class Rows(Sequence[Row]):
    """A cycle's rows over the Arrow `table` they came in (schema ROWS)."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _ROWS_AT_ONCE):
            yield from rows_of(self.table.slice(start, _ROWS_AT_ONCE))

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        if isinstance(at, slice):
            return Rows(self.table.take(list(range(*at.indices(len(self))))))
        index = at + len(self) if at < 0 else at
        if not 0 <= index < len(self):
            raise IndexError(at)
        return next(rows_of(self.table.slice(index, 1)))


@dataclass(frozen=True, slots=True)
class CycleResult:
    """What a cycle came to.

    `unreachable` is true where a cluster of the flow could not be reached at all: `rows` is
    then the one failed row. `groups` is how many groups passed the filter, `positions` how
    many distinct positions they have committed, `cost` what it took to translate them.
    """

    flow: str
    rows: Sequence[Row]
    warnings: tuple[str, ...]
    unreachable: bool
    seconds: float
    groups: int
    positions: int
    cost: Cost = field(default_factory=Cost)
