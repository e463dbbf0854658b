"""Whether the logs are still those for which offsets were committed and translated.

A target topic that was recreated since translating may have the translated offset, too, after
records that the group has not read. When a source topic is deleted, the brokers delete the offsets
that were committed in it. If it is created again after the groups were read, its new log may have
an offset that was read before. The records before it are new, and the group has not read them.

A source log may have lost records in an unclean leader election, and got others at their offsets
since. A group that has read the lost ones has not read the others. Kafka's consumers notice this by
the leader epoch in their commits (KIP-320). It is the epoch of the last record that the group has
read: so this epoch ends at the committed offset or later, unless the log has lost records.
"""

from collections.abc import Collection, Mapping

import polars as pl

from tsoffset.cluster import Cluster, all_failed
from tsoffset.cycle.cache_update import describe_topics, topic_ids
from tsoffset.errors import ClusterUnreachable
from tsoffset.group_sync.tables import (
    ANSWER,
    EPOCH_ENDS,
    LEADER_EPOCH,
    SOURCE_TOPICS,
    TARGET_TOPICS,
    Schema,
    in_one_chunk,
    left_join,
    null_where,
    semi_join,
)
from tsoffset.model import (
    Failed,
    FailureKind,
    LeaderEpoch,
    Reason,
    TopicDescription,
    TopicPartition,
)

_CHANGED_MEANWHILE = (
    "the partition was deleted or recreated, lost records at its end, or could not be reached "
    "while the cycle ran; nothing is committed, the next cycle reads it again"
)
# The end of an epoch that is not compared: no offset is larger.
_NO_END = 2**63 - 1
# Some clients always commit epoch 0 (Sarama before 1.42.1): it counts as none.
_HAS_EPOCH = pl.col("leader_epoch") > 0


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
    """SOURCE_TOPICS and EPOCH_ENDS (of LEADER_EPOCHS) as they are now."""
    described = describe_topics(source, topics)
    ids = topics_frame(topics, topic_ids(described), SOURCE_TOPICS)
    return ids, _epoch_ends(source, described, epochs)


def with_one_id(topics: pl.DataFrame) -> pl.DataFrame:
    """SOURCE_TOPICS or TARGET_TOPICS with each topic once. One that was seen with two ids has none:
    nothing of it is committed."""
    topic, topic_id = topics.columns
    is_one = pl.col(topic_id).n_unique() == 1
    one_id = pl.when(is_one).then(pl.col(topic_id).first())
    return topics.group_by(topic, maintain_order=True).agg(one_id.alias(topic_id))


def is_same_topic(then: pl.DataFrame, now: pl.DataFrame) -> pl.Expr:
    """Whether a row's topic has the same id in both tables, SOURCE_TOPICS or TARGET_TOPICS; false
    where one of the ids is not known."""
    topic, topic_id = then.columns
    same = semi_join(then, now, [topic, topic_id])[topic]
    return pl.col(topic).is_in(same.implode()).fill_null(False)


def without_changed(work: pl.DataFrame, is_changed: pl.Expr) -> pl.DataFrame:
    """The work; rows whose logs have changed since they were translated fail."""
    changed = work.select(is_changed=is_changed.fill_null(False)).to_series()
    return _fail_rows(work, changed, pl.lit(FailureKind.NO_LEADER), pl.lit(_CHANGED_MEANWHILE))


def leader_epochs(commits: pl.DataFrame) -> pl.DataFrame:
    """The LEADER_EPOCHS of these commits, each once."""
    return commits.select(LEADER_EPOCH).filter(_HAS_EPOCH).unique(maintain_order=True)


def _epoch_ends(
    source: Cluster, topics: Mapping[str, TopicDescription | Failed], epochs: pl.DataFrame
) -> pl.DataFrame:
    """EPOCH_ENDS of LEADER_EPOCHS; their topics have just been described. A partition's current
    epoch has no end, and a later one is not of its log. Where the partition has no epoch, or the
    cluster cannot be asked, nothing is compared, as in Kafka's own consumer."""
    ends: dict[LeaderEpoch, int | Failed | None] = {}
    earlier: list[LeaderEpoch] = []
    for topic, number, epoch in epochs.iter_rows():
        described = topics.get(topic)
        if not isinstance(described, TopicDescription) or number not in described.partitions:
            continue
        one = LeaderEpoch(TopicPartition(topic, number), epoch)
        current = described.partitions[number].leader_epoch
        if current is not None and epoch < current:
            earlier.append(one)
        else:
            ends[one] = _NO_END if current in (None, epoch) else None
    if earlier:
        try:
            ends |= source.epoch_ends(earlier)
        except ClusterUnreachable as error:
            ends |= dict.fromkeys(earlier, all_failed(error))
    rows = [
        (one.partition.topic, one.partition.partition, one.epoch, *_end(found))
        for one, found in ends.items()
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
    rows = work.with_row_index("row")
    asked = rows.filter(is_new & _HAS_EPOCH).select("row", *LEADER_EPOCH, "source_offset")
    asked = left_join(asked, ends.with_columns(is_told=pl.lit(True)), LEADER_EPOCH)
    has_all = pl.col("epoch_reason").is_null() & (pl.col("epoch_end") >= pl.col("source_offset"))
    lost = in_one_chunk(asked.filter(~has_all.fill_null(False)))
    if lost.is_empty():
        return work
    end = (
        pl.when(pl.col("epoch_end").is_null())
        .then(pl.lit("which the source's log does not have"))
        .otherwise(pl.format("which ends at {} in the source's log", "epoch_end"))
    )
    message = pl.format(
        "the offset {} was committed in leader epoch {}, {}: the log has lost records that the "
        "group has read, in an unclean leader election, and may have others at their offsets; reset"
        " the group on the source. If no record was lost, the group's client commits wrong epochs:"
        " upgrade it, or commit the offset without an epoch (kafka-consumer-groups)",
        "source_offset",
        "leader_epoch",
        end,
    )
    is_told = pl.col("is_told").is_not_null()
    verdicts = lost.select(
        "row",
        lost_reason=pl.when(is_told)
        .then(pl.coalesce("epoch_reason", pl.lit(Reason.PAST_LOG_END)))
        .otherwise(pl.lit(FailureKind.NO_LEADER)),
        lost_message=pl.when(is_told)
        .then(pl.coalesce("epoch_message", message))
        .otherwise(pl.lit(_CHANGED_MEANWHILE)),
    )
    rows = left_join(rows, verdicts, ["row"])
    is_lost = rows["lost_reason"].is_not_null()
    reasons = pl.col("lost_reason"), pl.col("lost_message")
    return _fail_rows(rows, is_lost, *reasons).select(work.columns)


def _fail_rows(
    work: pl.DataFrame, which: pl.Series, reason: pl.Expr, message: pl.Expr
) -> pl.DataFrame:
    """The work; the rows of `which` lose their translation, and get this reason and message."""
    if not which.any():
        return work
    condition = pl.lit(which)
    return work.with_columns_seq(
        *null_where(condition, ["source_timestamp_ms", *ANSWER]),
        reason=pl.when(condition).then(reason).otherwise("reason"),
        message=pl.when(condition).then(message).otherwise("message"),
    )
