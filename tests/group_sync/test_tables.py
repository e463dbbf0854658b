"""The tables of a cycle, as they travel: what goes in comes out."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spark.test_cells import sent
from tsoffset.cycle.work import PartitionWork
from tsoffset.group_sync.tables import TO_TRANSLATE, left_join
from tsoffset.group_sync.translate import partitions_frame, work_by_partition
from tsoffset.model import TopicPartition
from tsoffset.rule.partition_cache import LogEnds, LogIdentity, PartitionCache

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OFFSET = st.integers(0, 2**63 - 1)
FLAGS = st.booleans()
EPOCH = st.integers(0, 2**31 - 1)
PARTITION = st.builds(TopicPartition, TEXT, EPOCH)
ENDS = st.builds(LogEnds, OFFSET, OFFSET, OFFSET)
IDENTITY = st.builds(LogIdentity, TEXT, EPOCH)
PARTITION_CACHES = st.lists(
    st.builds(
        PartitionCache,
        PARTITION,
        FLAGS,
        FLAGS,
        IDENTITY,
        IDENTITY,
        ENDS,
        st.lists(st.tuples(OFFSET, OFFSET), max_size=5).map(tuple),
        st.none() | st.tuples(OFFSET, OFFSET),
    ),
    max_size=4,
    unique_by=lambda cache: cache.source,
)


@settings(deadline=None)
@given(PARTITION_CACHES, FLAGS, FLAGS)
def test_work_is_read_from_positions(caches, is_remote_topic, failback):
    """The offsets of each partition that stand together, with what was cached of it."""
    work = [
        PartitionWork(
            one.source,
            TopicPartition("copy", one.source.partition),
            tuple(range(number + 1)),
            is_remote_topic,
            failback,
            one if number % 2 else None,
        )
        for number, one in enumerate(caches)
    ]
    rows = [
        (part.source.topic, part.source.partition, offset, "copy", is_remote_topic, failback)
        for part in work
        for offset in part.offsets
    ]
    offsets = pl.DataFrame(rows, TO_TRANSLATE, orient="row")
    known = partitions_frame(part.cache for part in work if part.cache is not None)
    assert work_by_partition(sent(offsets), sent(known)) == work


NAMED = st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.integers(0, 2))


@settings(deadline=None)
@given(st.lists(NAMED, max_size=5), st.lists(NAMED, max_size=9, unique=True), FLAGS)
def test_rows_find_those_of_another_table(keys, others, same):
    """As a join does it that looks all up; also where both have the same rows in the same order."""
    names = {"topic": pl.String, "partition": pl.Int32}
    on = list(names)
    rows = pl.DataFrame(others if same else keys, names, orient="row").with_row_index("row")
    table = pl.DataFrame(others, names, orient="row").with_row_index("other")
    expected = rows.join(table, on=on, how="left", maintain_order="left")
    found = left_join(rows, table, on)
    assert found.select(expected.columns).equals(expected)
