"""From tables to the translation rule, and back."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.rounds import translate_with_carry_over
from tsoffset.cycle.work import AnsweredPartition, Cost, PartitionWork, TranslatedPosition
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.tables import PARTITIONS, TRANSLATIONS, empty, select
from tsoffset.group_sync.target_topics import topics_frame
from tsoffset.model import Failed, Precision, Skipped, TopicPartition, Translated
from tsoffset.rule.carry_over import Holds, LogEnds, LogIdentity, PartitionCarryOver


def translate(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    offsets: pl.DataFrame,
    partitions: pl.DataFrame,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, Cost]:
    """TRANSLATIONS of TO_TRANSLATE, in any order; the new PARTITIONS, based on `partitions`;
    TARGET_TOPICS; and the cost."""
    work = work_by_partition(offsets, partitions)
    done = translate_with_carry_over(flow, source, target, work)
    singly = pl.DataFrame(
        [_row(one, holds) for one, holds in zip(done.conversed, done.holds, strict=True)],
        TRANSLATIONS,
        orient="row",
    )
    found = pl.concat([singly, _answered(work, done.answered)])
    topics = topics_frame({one.target.topic for one in work}, done.target_topic_ids)
    return found, partitions_frame(done.carry_overs), topics, done.cost


def work_by_partition(offsets: pl.DataFrame, partitions: pl.DataFrame) -> list[PartitionWork]:
    """The work of TO_TRANSLATE by partition, with what is cached of each (PARTITIONS)."""
    cached = carry_overs_of(partitions)
    by_partition = ["source_topic", "partition", "target_topic", "is_remote_topic", "failback"]
    found = []
    for topic, number, target, is_remote, failback, own in (
        offsets.group_by(by_partition, maintain_order=True).agg("source_offset").iter_rows()
    ):
        source = TopicPartition(topic, number)
        to = TopicPartition(target, number)
        found.append(PartitionWork(source, to, tuple(own), is_remote, failback, cached.get(source)))
    return found


def _row(one: TranslatedPosition, holds: Holds | None) -> tuple[Any, ...]:
    answer, span = one.translation.outcome, one.target_range
    ends = None if holds is None else holds.while_ends
    why: tuple[str | None, str | None] = (None, None)
    found: tuple[Any, ...] = (None,) * 5
    match answer:
        case Translated():
            found = (answer.target_offset, answer.precision, answer.reread_bound)
            found += (answer.equivalent_from, answer.equivalent_to)
        case Skipped(reason, message) | Failed(reason, message):
            why = (reason, message)
    return (
        *(one.partition.topic, one.partition.partition, one.offset),
        *why,
        one.translation.source_timestamp_ms,
        *found,
        *((None, None) if span is None else (span.start, span.end)),
        one.target_rewrites_timestamps,
        holds is not None,
        *((None, None, None) if ends is None else (ends.source, ends.source_log, ends.target)),
        one.source_log_end,
    )


def _answered(work: list[PartitionWork], answered: Iterable[AnsweredPartition]) -> pl.DataFrame:
    """The answers of the fast path, of all partitions."""
    parts = list(answered)
    sizes = [len(one.answers.offset) for one in parts]
    if not any(sizes):
        return empty(TRANSLATIONS)
    spans = [one.target_range for one in parts]
    ends = [None if one.holds is None else one.holds.while_ends for one in parts]
    columns: dict[str, list[Any]] = {
        "source_topic": [one.source.topic for one in work],
        "partition": [one.source.partition for one in work],
        "target_start": [None if span is None else span.start for span in spans],
        "target_end": [None if span is None else span.end for span in spans],
        "rewrites_timestamps": [one.target_rewrites_timestamps for one in parts],
        "holds": [one.holds is not None for one in parts],
        "while_source_end": [None if each is None else each.source for each in ends],
        "while_source_log_end": [None if each is None else each.source_log for each in ends],
        "while_target_end": [None if each is None else each.target for each in ends],
        "source_log_end": [one.source_log_end for one in parts],
    }
    of_each = pl.DataFrame(columns, {name: TRANSLATIONS[name] for name in columns})
    copy = np.concatenate([one.answers.copy for one in parts])
    rows = of_each[np.repeat(np.arange(len(sizes)), sizes)].with_columns_seq(
        source_offset=np.concatenate([one.answers.offset for one in parts]),
        source_timestamp_ms=np.concatenate([one.answers.timestamp for one in parts]),
        target_offset=copy,
        equivalent_from=copy,
        equivalent_to=copy,
        precision=pl.lit(Precision.EXACT),
        reread_bound=pl.lit(0),
    )
    return select(rows, TRANSLATIONS)


# --- partitions -------------------------------------------------------------------------


def carry_overs_of(partitions: pl.DataFrame) -> dict[TopicPartition, PartitionCarryOver]:
    """The rows of PARTITIONS, by source partition."""
    found = {}
    for row in partitions.iter_rows(named=True):
        source = TopicPartition(row["source_topic"], row["partition"])
        frontier = (row["frontier_source"], row["frontier_target"])
        found[source] = PartitionCarryOver(
            source,
            row["is_remote_topic"],
            row["failback"],
            LogIdentity(row["source_topic_id"], row["source_leader_epoch"]),
            LogIdentity(row["target_topic_id"], row["target_leader_epoch"]),
            LogEnds(row["source_end"], row["source_log_end"], row["target_end"]),
            tuple(zip(row["pair_sources"], row["pair_targets"], strict=True)),
            None if frontier[1] is None else frontier,
            row["first_from"],
        )
    return found


def partitions_frame(carry_overs: Iterable[PartitionCarryOver]) -> pl.DataFrame:
    """PARTITIONS of these values."""
    return pl.DataFrame([_partition(one) for one in carry_overs], PARTITIONS, orient="row")


def _partition(one: PartitionCarryOver) -> tuple[Any, ...]:
    return (
        *(one.source.topic, one.source.partition, one.is_remote_topic, one.failback),
        *(one.source_log.topic_id, one.source_log.leader_epoch),
        *(one.target_log.topic_id, one.target_log.leader_epoch),
        *(one.ends.source, one.ends.source_log, one.ends.target),
        [source for source, _ in one.pairs],
        [target for _, target in one.pairs],
        *(one.frontier or (None, None)),
        one.first_from,
    )
