"""Committed offsets as columns say what the values by group say."""

from hypothesis import given
from hypothesis import strategies as st

from tsoffset.committed import CommittedColumns, join_columns
from tsoffset.model import CommittedOffset, Failed, FailureKind, GroupOffsets, TopicPartition

NAMES = st.sampled_from(["", "orders", "payments", "émigrés"])
PARTITIONS = st.builds(TopicPartition, NAMES, st.integers(0, 3))
FAILED = st.builds(Failed, st.sampled_from(FailureKind), st.text(max_size=3))
COMMITS = st.builds(CommittedOffset, st.integers(0, 2**63 - 1), NAMES)
OFFSETS = st.dictionaries(PARTITIONS, COMMITS | FAILED, max_size=6)
ANSWERS = st.dictionaries(st.text(max_size=3), OFFSETS | FAILED, max_size=6)

Answers = dict[str, GroupOffsets | Failed]


def check(columns: CommittedColumns, answers: Answers) -> None:
    assert columns.by_group() == answers
    assert list(columns.groups) == list(answers)
    assert len(set(columns.topics)) == len(columns.topics)
    commits = [
        (group, one.topic, one.partition, commit.offset, commit.metadata)
        for group, offsets in answers.items()
        if not isinstance(offsets, Failed)
        for one, commit in offsets.items()
        if not isinstance(commit, Failed)
    ]
    assert len(columns) == len(commits)
    assert set(commits) == {
        (
            columns.groups[columns.group[number]],
            columns.topics[columns.topic[number]],
            columns.partition[number],
            columns.offset[number],
            columns.metadata.get(number, ""),
        )
        for number in range(len(columns))
    }
    changes = sum(
        one != other for one, other in zip(columns.group, columns.group[1:], strict=False)
    )
    assert changes == max(0, len({group for group, *_ in commits}) - 1)


@given(ANSWERS)
def test_the_columns_hold_what_the_values_say(answers):
    """Groups in order, an unknown one among them; failures of groups and of single commits."""
    check(CommittedColumns.of(answers), answers)


@given(ANSWERS, st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_answers_about_some_groups_each_are_joined(answers, parts):
    given_by = dict(zip(answers, parts, strict=False))
    split: list[Answers] = [
        {group: found if given_by[group] == part else {} for group, found in answers.items()}
        for part in range(3)
    ]
    check(join_columns([CommittedColumns.of(part) for part in split]), answers)
