"""The domain's values as rows of `tsoffset.cycle.schema`'s tables, and back."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from tsoffset.cycle.matching import first_of_each_partition, numbers, words
from tsoffset.cycle.schema import (
    COMMITS,
    GROUPS,
    PARTITIONS,
    POSITIONS,
    ROWS,
    TRANSLATIONS,
    columns_table,
    table,
    tuples,
)
from tsoffset.cycle.source_commits import GroupWork, SourceCommit
from tsoffset.cycle.work import AnsweredPartition, PartitionWork, TranslatedPosition
from tsoffset.model import (
    Failed,
    FailureKind,
    GroupType,
    OutcomeKind,
    Precision,
    Reason,
    Row,
    Skipped,
    TopicPartition,
    Translated,
)
from tsoffset.rule.carry_over import Holds, LogEnds, LogIdentity, PartitionCarryOver

# --- groups -----------------------------------------------------------------------------


def groups_table(groups: Iterable[tuple[int, GroupWork]]) -> pa.Table:
    """Groups to sync, each with its number, as GROUPS."""
    return table(GROUPS, [(n, g.group, g.type, g.target_type, g.target_active) for n, g in groups])


def groups_of(rows: pa.Table) -> dict[int, GroupWork]:
    """The groups of a table like GROUPS, by their numbers."""
    return {
        number: GroupWork(group, GroupType(type_), target_type and GroupType(target_type), active)
        for number, group, type_, target_type, active in tuples(rows, GROUPS)
    }


# --- partitions -------------------------------------------------------------------------


def partitions_table(carry_overs: Iterable[PartitionCarryOver]) -> pa.Table:
    """Carry-overs of partitions as PARTITIONS."""
    return table(PARTITIONS, [_carry_over_tuple(carry_over) for carry_over in carry_overs])


def _carry_over_tuple(carry_over: PartitionCarryOver) -> tuple[Any, ...]:
    return (
        carry_over.source.topic,
        carry_over.source.partition,
        carry_over.is_remote_topic,
        carry_over.failback,
        carry_over.source_log.topic_id,
        carry_over.source_log.leader_epoch,
        carry_over.target_log.topic_id,
        carry_over.target_log.leader_epoch,
        carry_over.ends.source,
        carry_over.ends.source_log,
        carry_over.ends.target,
        [source for source, _ in carry_over.pairs],
        [target for _, target in carry_over.pairs],
        *(carry_over.frontier or (None, None)),
        carry_over.first_from,
    )


def carry_overs_of(rows: pa.Table) -> dict[TopicPartition, PartitionCarryOver]:
    """The carry-overs in a table like PARTITIONS, by source partition."""
    found = {}
    for values in tuples(rows, PARTITIONS):
        row = dict(zip(PARTITIONS.names, values, strict=True))
        source = TopicPartition(row["source_topic"], row["partition"])
        found[source] = PartitionCarryOver(
            source,
            row["is_remote_topic"],
            row["failback"],
            LogIdentity(row["source_topic_id"], row["source_leader_epoch"]),
            LogIdentity(row["target_topic_id"], row["target_leader_epoch"]),
            LogEnds(row["source_end"], row["source_log_end"], row["target_end"]),
            tuple(zip(row["pair_sources"], row["pair_targets"], strict=True)),
            None
            if row["frontier_target"] is None
            else (row["frontier_source"], row["frontier_target"]),
            row["first_from"],
        )
    return found


# --- commits ----------------------------------------------------------------------------


def commits_table(commits: Iterable[tuple[int, SourceCommit]]) -> pa.Table:
    """Commits, each with the number of its group, as COMMITS."""
    return table(COMMITS, [_commit_tuple(number, commit) for number, commit in commits])


def _commit_tuple(number: int, commit: SourceCommit) -> tuple[Any, ...]:
    partition, target, committed = commit.partition, commit.target, commit.committed
    return (
        number,
        *((None, None) if partition is None else (partition.topic, partition.partition)),
        *((None, None) if committed is None else (committed.offset, committed.metadata or None)),
        None if target is None else target.topic,
        commit.is_remote_topic,
        commit.failback,
        commit.target_active,
        *_no_tuple(commit.verdict),
    )


# --- positions --------------------------------------------------------------------------


def work_of(
    positions: pa.Table, carry_overs: Mapping[TopicPartition, PartitionCarryOver]
) -> list[PartitionWork]:
    """The work that a table like POSITIONS says, in its order: by partition, offsets ascending."""
    first = first_of_each_partition(positions)
    places = tuples(positions.take(pa.array(first)), POSITIONS)
    offsets = np.split(numbers(positions["source_offset"]), first)[1:]
    found = []
    for (topic, number, target, is_remote_topic, failback, _), theirs in zip(
        places, offsets, strict=True
    ):
        source = TopicPartition(topic, number)
        found.append(
            PartitionWork(
                source,
                TopicPartition(target, number),
                tuple(theirs.tolist()),
                is_remote_topic,
                failback,
                carry_overs.get(source),
            )
        )
    return found


def translations_table(
    positions: Iterable[TranslatedPosition], holds: Sequence[Holds | None]
) -> pa.Table:
    """Translations as TRANSLATIONS, in the order given, with for how long each holds."""
    return table(TRANSLATIONS, map(_translation_tuple, positions, holds))


def answers_table(answered: Sequence[AnsweredPartition]) -> pa.Table:
    """What was answered at once of the partitions, as TRANSLATIONS."""
    sizes = [len(one.answers.offset) for one in answered]
    copy = np.concatenate([one.answers.copy for one in answered])

    def of_each(values: Iterable[Any]) -> pa.Array:
        return pa.array(values).take(pa.array(np.repeat(np.arange(len(sizes)), sizes)))

    spans = [one.target_range for one in answered]
    while_ends = [None if one.holds is None else one.holds.while_ends for one in answered]
    columns = {
        "target_offset": copy,
        "precision": words([Precision.EXACT], np.zeros(len(copy), np.int64)),
        "reread_bound": np.zeros(len(copy), np.int64),
        "equivalent_from": copy,
        "equivalent_to": copy,
        "source_timestamp_ms": np.concatenate([one.answers.timestamp for one in answered]),
        "target_start": of_each(None if span is None else span.start for span in spans),
        "target_end": of_each(None if span is None else span.end for span in spans),
        "rewrites_timestamps": of_each(one.target_rewrites_timestamps for one in answered),
        "holds": of_each(one.holds is not None for one in answered),
        "source_log_end": of_each(one.source_log_end for one in answered),
        **{
            name: of_each(None if ends is None else getattr(ends, field) for ends in while_ends)
            for name, field in (
                ("while_source_end", "source"),
                ("while_source_log_end", "source_log"),
                ("while_target_end", "target"),
            )
        },
    }
    return columns_table(TRANSLATIONS, len(copy), columns)


def _translation_tuple(position: TranslatedPosition, holds: Holds | None) -> tuple[Any, ...]:
    outcome = position.translation.outcome
    span = position.target_range
    ends = None if holds is None else holds.while_ends
    return (
        *(
            (
                outcome.target_offset,
                outcome.precision,
                outcome.reread_bound,
                outcome.equivalent_from,
                outcome.equivalent_to,
                *_NO_NO,
            )
            if isinstance(outcome, Translated)
            else (None, None, None, None, None, *_no_tuple(outcome))
        ),
        position.translation.source_timestamp_ms,
        *((None, None) if span is None else (span.start, span.end)),
        position.target_rewrites_timestamps,
        holds is not None,
        *((None, None, None) if ends is None else (ends.source, ends.source_log, ends.target)),
        position.source_log_end,
    )


# --- rows -------------------------------------------------------------------------------


def rows_table(rows: Iterable[Row]) -> pa.Table:
    """Rows as ROWS."""
    return table(ROWS, map(attrgetter(*ROWS.names), rows))


def failed_row(flow: str, failure: Failed) -> Row:
    """The row of something that failed before its groups were known."""
    nothing = (None, None, None, None, None, None, None, None)
    why = (failure.kind, None, None, failure.message)
    return Row(flow, *nothing, OutcomeKind.FAILED, *why)


def rows_of(rows: pa.Table) -> Iterator[Row]:
    """The rows of a table like ROWS."""
    for values in tuples(rows, ROWS):
        row = dict(zip(ROWS.names, values, strict=True))
        outcome, reason, precision = row["outcome"], row["reason"], row["precision"]
        words = FailureKind if outcome == OutcomeKind.FAILED else Reason
        row["outcome"] = OutcomeKind(outcome)
        row["reason"] = None if reason is None else words(reason)
        row["precision"] = None if precision is None else Precision(precision)
        yield Row(**row)


# --- a no -------------------------------------------------------------------------------

_NO_NO = (None, None)


def _no_tuple(no: Skipped | Failed | None) -> tuple[Any, ...]:
    match no:
        case None:
            return _NO_NO
        case Skipped(reason, message) | Failed(reason, message):
            return (reason, message)
