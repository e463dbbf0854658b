"""The tables between a cycle's stages: what goes in comes out."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsoffset.cycle.source_commits import GroupWork
from tsoffset.cycle.turns import Settlement
from tsoffset.model import (
    CommittedOffset,
    Failed,
    FailureKind,
    GroupType,
    LogRange,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    Skipped,
    TopicPartition,
    Translated,
)
from tsoffset.rule.decide import LastCommit, SourceCommit, TranslatedPosition
from tsoffset.rule.translate import Translation
from tsoffset.spark import schema, values

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OFFSET = st.integers(0, 2**63 - 1)
FLAGS = st.booleans()
PARTITION = st.builds(TopicPartition, TEXT, st.integers(0, 2**31 - 1))
COMMITTED = st.builds(CommittedOffset, OFFSET, TEXT)
NO = st.builds(Skipped, st.sampled_from(Reason), TEXT) | st.builds(
    Failed, st.sampled_from(FailureKind), TEXT, FLAGS, FLAGS, FLAGS
)
BOUND = st.none() | OFFSET
TRANSLATED = st.builds(Translated, OFFSET, st.sampled_from(Precision), BOUND, OFFSET, OFFSET)
LAST_COMMITS = st.builds(LastCommit, OFFSET, OFFSET)


@st.composite
def settlement(draw: st.DrawFn) -> Settlement:
    """A commit with a translation, or with a verdict and so without one."""
    group, last = draw(TEXT), draw(st.none() | LAST_COMMITS)
    if draw(FLAGS):
        return Settlement(SourceCommit(group, None, None, None, verdict=draw(NO)))
    source = draw(PARTITION)
    verdict = draw(st.none() | NO)
    committed = draw(COMMITTED if verdict is None else st.none() | COMMITTED)
    commit = SourceCommit(
        group, source, committed, draw(PARTITION), draw(FLAGS), draw(FLAGS), draw(FLAGS), verdict
    )
    if verdict is not None or committed is None:
        return Settlement(commit, None, last)
    position = TranslatedPosition(
        source,
        committed.offset,
        Translation(draw(TRANSLATED | NO), draw(st.none() | OFFSET)),
        draw(st.none() | st.builds(LogRange, OFFSET, OFFSET)),
        draw(FLAGS),
    )
    return Settlement(commit, position, last)


def through_arrow(settlement: Settlement) -> Settlement:
    commit, position = settlement.commit, settlement.position
    last = {}
    if commit.partition is not None and settlement.last_commit is not None:
        last[commit.group, commit.partition] = settlement.last_commit
    commits = values.commits_table(7, [commit], last)
    translations = values.translations_table([] if position is None else [position])
    translations = translations.take(pa.array([None if position is None else 0], pa.int32()))
    joined = commits
    for name in translations.column_names:
        joined = joined.append_column(name, translations[name])
    (back,) = values.settlements_of(schema.from_bytes(schema.to_bytes(joined)))
    return back


# The first example pays for Arrow's start.
@settings(deadline=None)
@given(settlement())
def test_settlement_survives_the_way_through_the_stages(value: Settlement) -> None:
    """A commit, its translation and what is remembered of it arrive as they were sent."""
    assert through_arrow(value) == value


ROW = st.builds(
    Row,
    TEXT,
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.integers(0, 2**31 - 1),
    st.none() | OFFSET,
    st.none() | OFFSET,
    st.none() | TEXT,
    st.none() | OFFSET,
    st.none() | OFFSET,
    st.sampled_from(OutcomeKind),
)


@settings(deadline=None)
@given(
    st.lists(
        ROW
        | st.builds(
            Row,
            *[TEXT] * 3,
            st.integers(0, 9),
            *[OFFSET] * 2,
            TEXT,
            *[OFFSET] * 2,
            st.just(OutcomeKind.FAILED),
            st.sampled_from(FailureKind),
            st.none(),
            st.none(),
            TEXT,
        )
        | st.builds(
            Row,
            *[TEXT] * 3,
            st.integers(0, 9),
            *[OFFSET] * 2,
            TEXT,
            *[OFFSET] * 2,
            st.just(OutcomeKind.SKIPPED),
            st.sampled_from(Reason),
            st.sampled_from(Precision),
            BOUND,
            TEXT,
        )
    )
)
def test_rows_survive_the_way_to_the_driver(rows: list[Row]) -> None:
    """Rows are collected as they were made, in order, absent fields absent."""
    assert list(values.rows_of(values.rows_table(rows))) == rows


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            GroupWork,
            TEXT,
            st.sampled_from(GroupType),
            st.none() | st.sampled_from(GroupType),
            FLAGS,
        )
    )
)
def test_groups_survive_the_way_to_the_workers(groups: list[GroupWork]) -> None:
    """A task reads the groups that the driver gave it."""
    sent = schema.to_bytes(values.groups_table(groups))
    assert values.groups_of(schema.from_bytes(sent)) == groups


@pytest.mark.parametrize(
    "table",
    [schema.WORK, schema.COMMITS, schema.TASKED_COMMITS, schema.SETTLEMENTS, schema.RESULTS],
)
def test_spark_knows_every_column(table: pa.Schema) -> None:
    """Each table that Spark carries has a type of Spark's for every column, and no column twice."""
    written = schema.spark_schema(table)
    assert [part.split()[0].strip("`") for part in written.split(", ")] == table.names
    assert len(set(table.names)) == len(table.names)


def test_a_table_without_rows_keeps_its_columns() -> None:
    """A stage that has nothing to say still says it in the schema agreed on."""
    assert schema.table(schema.ROWS, []).schema == schema.ROWS
    assert values.distinct_offsets_table(0, {}).schema == schema.COMMITS
    assert values.rewritten_topics_table([], 3).schema == schema.SETTLEMENTS


def test_word_of_a_topic_goes_to_every_settling_task() -> None:
    """Each task that settles groups is told of each topic."""
    told = values.rewritten_topics_table(["a", "b"], 3)
    assert set(
        zip(told["rewritten_topic"].to_pylist(), told["settle_task"].to_pylist(), strict=True)
    ) == {(topic, task) for topic in "ab" for task in range(3)}
