"""Whether the logs are still those for which offsets were committed and translated.

A target topic that was recreated since translating may have the translated offset, too, after
records that the group has not read. When a source topic is deleted, the brokers delete the offsets
that were committed in it. If it is created again after the groups were read, its new log may have
an offset that was read before. The records before it are new, and the group has not read them.

So are those that a source log has got in place of others, which it lost in an unclean leader
election. Kafka's consumers notice this by the leader epoch in their commits (KIP-320): it is the
epoch of the last record that the group has read, so its records end at the committed offset or
later, unless the log has lost some of them.
"""

from collections.abc import Collection, Mapping
from functools import partial

import polars as pl

from tsoffset.cluster import Cluster, all_failed
from tsoffset.cycle.carry_over import describe_topics, topic_ids
from tsoffset.errors import ClusterUnreachable
from tsoffset.group_sync.tables import (
    ANSWER,
    EPOCH_ENDS,
    LEADER_EPOCH,
    SOURCE_TOPICS,
    TARGET_TOPICS,
    Schema,
    empty,
    in_one_chunk,
    left_join,
    null_where,
    semi_join,
)
from tsoffset.model import Failed, FailureKind, LeaderEpoch, Reason, TopicPartition

_CHANGED_MEANWHILE = (
    "the partition was deleted or recreated, lost records at its end, or could not be reached "
    "while the cycle ran; nothing is committed, the next cycle reads it again"
)
# Where nothing ends: no offset is past it.
_NO_END = 2**63 - 1


def topics_frame(
    topics: Collection[str], ids: Mapping[str, str], schema: Schema = TARGET_TOPICS
) -> pl.DataFrame:
    return pl.DataFrame([(one, ids.get(one)) for one in topics], schema, orient="row")


def target_topics(target: Cluster, topics: Collection[str]) -> pl.DataFrame:
    """TARGET_TOPICS as they are now."""
    return topics_frame(topics, topic_ids(describe_topics(target, topics)))


def source_topics(source: Cluster, topics: Collection[str]) -> pl.DataFrame:
    """SOURCE_TOPICS as they are now."""
    return topics_frame(topics, topic_ids(describe_topics(source, topics)), SOURCE_TOPICS)


def source_logs(
    source: Cluster, topics: Collection[str], epochs: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """SOURCE_TOPICS and EPOCH_ENDS (of LEADER_EPOCH) as they are now."""
    now, ends = source.together(
        [partial(source_topics, source, topics), partial(epoch_ends, source, epochs)]
    )
    return now, ends


def with_one_id(topics: pl.DataFrame) -> pl.DataFrame:
    """TARGET_TOPICS with each topic once. One that tasks have seen with two ids has none: nothing
    of it is committed."""
    is_one = pl.col("target_topic_id").n_unique() == 1
    one_id = pl.when(is_one).then(pl.col("target_topic_id").first())
    return topics.group_by("target_topic", maintain_order=True).agg(one_id.alias("target_topic_id"))


def is_same_topic(then: pl.DataFrame, now: pl.DataFrame) -> pl.Expr:
    """Whether a row's topic has the same id in both tables, SOURCE_TOPICS or TARGET_TOPICS; false
    where one of the ids is not known."""
    topic, topic_id = then.columns
    same = semi_join(then, now, [topic, topic_id])[topic]
    return pl.col(topic).is_in(same.implode()).fill_null(False)


def without_changed(work: pl.DataFrame, is_changed: pl.Expr) -> pl.DataFrame:
    """The work; rows whose logs have changed since they were translated fail."""
    changed = work.select(is_changed=is_changed.fill_null(False)).to_series()
    return _unanswered(work, changed, pl.lit(FailureKind.NO_LEADER), pl.lit(_CHANGED_MEANWHILE))


def leader_epochs(work: pl.DataFrame) -> pl.DataFrame:
    """Each LEADER_EPOCH in which some of these offsets were committed."""
    return work.select(LEADER_EPOCH).drop_nulls("leader_epoch").unique(maintain_order=True)


def epoch_ends(source: Cluster, epochs: pl.DataFrame) -> pl.DataFrame:
    """EPOCH_ENDS of these epochs (LEADER_EPOCH, each once). A cluster without this request has no
    ends: as in Kafka's consumer, nothing is compared then."""
    asked = [LeaderEpoch(TopicPartition(*place), epoch) for *place, epoch in epochs.iter_rows()]
    if not asked:
        return empty(EPOCH_ENDS)
    try:
        found = source.epoch_ends(asked)
    except ClusterUnreachable as error:
        found = dict.fromkeys(asked, all_failed(error))
    rows = [
        (one.partition.topic, one.partition.partition, one.epoch, *_end(found[one]))
        for one in asked
    ]
    return pl.DataFrame(rows, EPOCH_ENDS, orient="row")


def _end(found: int | Failed | None) -> tuple[int | None, str | None, str | None]:
    if not isinstance(found, Failed):
        return found, None, None
    if found.kind is FailureKind.UNSUPPORTED_VERSION:
        return _NO_END, None, None
    return None, found.kind, found.message


def without_lost(work: pl.DataFrame, ends: pl.DataFrame, is_new: pl.Expr) -> pl.DataFrame:
    """The work; rows with a translation of this cycle (`is_new`) are skipped if the source's log
    has lost records that the group has read, and fail if that is not known. `ends` are the
    EPOCH_ENDS of all their leader epochs."""
    is_asked = (is_new & pl.col("leader_epoch").is_not_null()).fill_null(False)
    rows = work.select(*LEADER_EPOCH, "source_offset", is_asked=is_asked)
    rows = left_join(rows, ends.with_columns(is_told=pl.lit(True)), LEADER_EPOCH)
    has_all = pl.col("epoch_reason").is_null() & (pl.col("epoch_end") >= pl.col("source_offset"))
    is_lost = rows.select(is_lost=pl.col("is_asked") & ~has_all.fill_null(False)).to_series()
    if not is_lost.any():
        return work
    end = (
        pl.when(pl.col("epoch_end").is_null())
        .then(pl.lit("which the source's log does not have"))
        .otherwise(pl.format("which ends at {} in the source's log", "epoch_end"))
    )
    lost = pl.format(
        "the offset {} was committed in leader epoch {}, {}: the log has lost records that the "
        "group has read, in an unclean leader election, and may have others in their place; reset "
        "the group on the source",
        "source_offset",
        "leader_epoch",
        end,
    )
    is_told = pl.col("is_told").is_not_null()
    verdicts = in_one_chunk(rows).select(
        lost_reason=pl.when(is_told)
        .then(pl.coalesce("epoch_reason", pl.lit(Reason.PAST_LOG_END)))
        .otherwise(pl.lit(FailureKind.NO_LEADER)),
        lost_message=pl.when(is_told)
        .then(pl.coalesce("epoch_message", lost))
        .otherwise(pl.lit(_CHANGED_MEANWHILE)),
    )
    named = [pl.col(name) for name in verdicts.columns]
    return _unanswered(work.hstack(verdicts), is_lost, *named).select(work.columns)


def _unanswered(
    work: pl.DataFrame, which: pl.Series, reason: pl.Expr, message: pl.Expr
) -> pl.DataFrame:
    """The work; these rows have no translation, for this reason."""
    if not which.any():
        return work
    condition = pl.lit(which)
    return work.with_columns_seq(
        *null_where(condition, ["source_timestamp_ms", *ANSWER]),
        reason=pl.when(condition).then(reason).otherwise("reason"),
        message=pl.when(condition).then(message).otherwise("message"),
    )
