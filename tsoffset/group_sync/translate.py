"""From tables to the translation rule, and back."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from tsoffset.cluster import Cluster
from tsoffset.cycle.rounds import translate_with_cache
from tsoffset.cycle.translated_partition import TranslatedPartition
from tsoffset.cycle.work import Cost, PartitionWork
from tsoffset.flow.settings import FlowSettings
from tsoffset.group_sync.same_logs import topics_frame
from tsoffset.group_sync.tables import ANSWER, PARTITIONS, SOURCE_TOPICS, TRANSLATIONS, select
from tsoffset.model import Failed, Precision, Skipped, TopicPartition, Translated
from tsoffset.rule.partition_cache import Holds, LogEnds, LogIdentity, PartitionCache
from tsoffset.rule.translate import Translation

# Columns of TRANSLATIONS: the answer, and for how long it may be cached.
ANSWERED = ["reason", "message", "source_timestamp_ms", *ANSWER]
_HELD = ["holds", "while_source_end", "while_source_log_end", "while_target_end"]

TranslatedTables = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame, Cost]
"""TRANSLATIONS, in any order; PARTITIONS after translating; SOURCE_TOPICS and TARGET_TOPICS as they
were before; and the cost."""


def translate(
    flow: FlowSettings,
    source: Cluster,
    target: Cluster,
    offsets: pl.DataFrame,
    partitions: pl.DataFrame,
) -> TranslatedTables:
    """As `group_sync.steps.Steps.translate`, in this process."""
    work = work_by_partition(offsets, partitions)
    done = translate_with_cache(flow, source, target, work)
    learned = (one.learned.cache for one in done.partitions)
    sources, targets = {one.source.topic for one in work}, {one.target.topic for one in work}
    return (
        _translations(done.partitions),
        partitions_frame(filter(None, learned)),
        topics_frame(sources, done.logs.source_topic_ids, SOURCE_TOPICS),
        topics_frame(targets, done.logs.target_topic_ids),
        done.cost,
    )


def work_by_partition(offsets: pl.DataFrame, partitions: pl.DataFrame) -> list[PartitionWork]:
    """The work of TO_TRANSLATE by partition, with what is cached of each (PARTITIONS)."""
    cached = partition_caches(partitions)
    by_partition = ["source_topic", "partition", "target_topic", "is_remote_topic", "failback"]
    found = []
    for topic, number, target, is_remote, failback, own in (
        offsets.group_by(by_partition, maintain_order=True).agg("source_offset").iter_rows()
    ):
        source = TopicPartition(topic, number)
        to = TopicPartition(target, number)
        found.append(PartitionWork(source, to, tuple(own), is_remote, failback, cached.get(source)))
    return found


def _translations(parts: Sequence[TranslatedPartition]) -> pl.DataFrame:
    """TRANSLATIONS of these partitions."""
    spans = [one.target_range for one in parts]
    of_each = _frame(
        source_topic=[one.work.source.topic for one in parts],
        partition=[one.work.source.partition for one in parts],
        target_start=[None if span is None else span.start for span in spans],
        target_end=[None if span is None else span.end for span in spans],
        rewrites_timestamps=[one.target_rewrites_timestamps for one in parts],
        source_log_end=[one.source_log_end for one in parts],
    )
    numbers = np.arange(len(parts))
    translated = pl.DataFrame(
        [
            (offset, *answer_columns(translation), *_holds_columns(one.learned.holds.get(offset)))
            for one in parts
            for offset, translation in one.translations.items()
        ],
        {name: TRANSLATIONS[name] for name in ("source_offset", *ANSWERED, *_HELD)},
        orient="row",
    )
    rows = of_each[np.repeat(numbers, [len(one.translations) for one in parts])]
    found = [select(rows.hstack(translated), TRANSLATIONS)]
    sizes = [len(one.answers.offset) for one in parts]
    if any(sizes):
        held = zip(*(_holds_columns(one.learned.answers_hold) for one in parts), strict=True)
        of_each = of_each.hstack(_frame(**dict(zip(_HELD, held, strict=True))))
        found.append(_fast_path_rows(parts, of_each[np.repeat(numbers, sizes)]))
    return pl.concat(found)


def _frame(**columns: Sequence[Any]) -> pl.DataFrame:
    """Columns of TRANSLATIONS."""
    return pl.DataFrame(columns, {name: TRANSLATIONS[name] for name in columns})


def answer_columns(translation: Translation) -> tuple[Any, ...]:
    """The values of ANSWERED, a row's columns that say where it resumes, or why not."""
    stamp = translation.source_timestamp_ms
    match translation.outcome:
        case Translated() as answer:
            equivalent = answer.equivalent_from, answer.equivalent_to
            bound = answer.reread_bound
            return (None, None, stamp, answer.target_offset, answer.precision, bound, *equivalent)
        case Skipped(reason, message) | Failed(reason, message):
            return (reason, message, stamp, *(None,) * len(ANSWER))


def _holds_columns(holds: Holds | None) -> tuple[bool, int | None, int | None, int | None]:
    ends = None if holds is None else holds.while_ends
    if ends is None:
        return holds is not None, None, None, None
    return True, ends.source, ends.source_log, ends.target


def _fast_path_rows(parts: Sequence[TranslatedPartition], rows: pl.DataFrame) -> pl.DataFrame:
    """The fast path's answers in all partitions; each row of `rows` has the partition of one."""
    copy = np.concatenate([one.answers.copy for one in parts])
    rows = rows.with_columns_seq(
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


def partition_caches(
    partitions: pl.DataFrame, *, with_pairs: bool = True
) -> dict[TopicPartition, PartitionCache]:
    """The rows of PARTITIONS, by source partition; if asked for, with all record pairs."""
    if not with_pairs:
        partitions = partitions.drop("pair_sources", "pair_targets")
    found = {}
    for row in partitions.iter_rows(named=True):
        source = TopicPartition(row["source_topic"], row["partition"])
        frontier = (row["frontier_source"], row["frontier_target"])
        found[source] = PartitionCache(
            source,
            row["is_remote_topic"],
            row["failback"],
            LogIdentity(row["source_topic_id"], row["source_leader_epoch"]),
            LogIdentity(row["target_topic_id"], row["target_leader_epoch"]),
            LogEnds(row["source_end"], row["source_log_end"], row["target_end"]),
            tuple(zip(row.get("pair_sources", ()), row.get("pair_targets", ()), strict=True)),
            None if frontier[1] is None else frontier,
            row["first_from"],
        )
    return found


def partitions_frame(caches: Iterable[PartitionCache]) -> pl.DataFrame:
    return pl.DataFrame([_partition(one) for one in caches], PARTITIONS, orient="row")


def _partition(one: PartitionCache) -> tuple[Any, ...]:
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
