"""How far the replicator has come, of what is remembered of partitions."""

import polars as pl
import pytest

from tsoffset.group_sync.replication import replication
from tsoffset.group_sync.tables import PARTITIONS, empty, select

Pair = tuple[int, int]


def remembered(
    source_end: int, target_end: int, pairs: list[Pair], frontier: Pair | None
) -> pl.DataFrame:
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    columns = {
        "source_topic": ["orders"],
        "partition": [0],
        "source_end": [source_end],
        "target_end": [target_end],
        "pair_sources": [sources],
        "pair_targets": [targets],
    }
    if frontier is not None:
        columns["frontier_source"] = [frontier[0]]
        columns["frontier_target"] = [frontier[1]]
    return select(pl.DataFrame(columns), PARTITIONS)


@pytest.mark.parametrize(
    ("source_end", "target_end", "pairs", "frontier", "lag", "bound"),
    [
        pytest.param(100, 90, [], (99, 89), 0, 0, id="the last record is there"),
        pytest.param(100, 60, [], (69, 59), 30, 30, id="nothing has come since"),
        pytest.param(100, 80, [], (69, 59), 10, 30, id="some has come since"),
        pytest.param(100, 99, [], (69, 59), 0, 30, id="more has come than there was"),
        pytest.param(100, 60, [(10, 0), (79, 59)], (69, 49), 20, 20, id="a pair lies higher"),
        pytest.param(100, 60, [(10, 0)], None, 30, 89, id="pairs alone"),
        pytest.param(100, 60, [], None, None, None, id="nothing is proven"),
    ],
)
def test_what_the_target_lacks(source_end, target_end, pairs, frontier, lag, bound):
    """What lies behind the highest proven record is the most; less what came behind its copy it
    is what is lacking. Without a proven record nothing is said."""
    (row,) = replication(remembered(source_end, target_end, pairs, frontier)).to_pylist()
    assert (row["lag_records"], row["lag_bound_records"]) == (lag, bound)


def test_of_several_partitions_each_has_its_own():
    """In tables of several pieces, and of none."""
    one = remembered(100, 60, [(79, 59)], None)
    other = remembered(50, 60, [], (19, 29))
    both = pl.concat([one, other])
    assert replication(both)["lag_bound_records"].to_pylist() == [20, 30]
    assert not len(replication(empty(PARTITIONS)))
