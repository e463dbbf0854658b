"""The tables of a sync cycle: their columns and types.

`reason` and `message` say why nothing is committed for a row: a `Reason` (skipped) or a
`FailureKind` (failed). Where both are null, nothing stands against a commit so far.

Where several columns are computed, it is one after the other (`with_columns_seq`): handing each to
Polars' threads costs more than it saves, above all on a busy machine.
"""

import signal
from collections.abc import Callable, Mapping
from functools import cache

import polars as pl
from polars.exceptions import PanicException

from tsoffset.model import FailureKind

# Polars lets system calls go on after a signal: a wait for a cluster would not notice Ctrl-C.
signal.siginterrupt(signal.SIGINT, True)

# Plain text, not members: from a list of members Polars makes an enum type, which has no other
# values.
FAILURES = [kind.value for kind in FailureKind]

Schema = Mapping[str, type[pl.DataType] | pl.DataType]

GROUP_PARTITION = ["group", "source_topic", "partition"]
TARGET_PARTITION = ["group", "target_topic", "partition"]
PARTITION = ["source_topic", "partition"]
SOURCE_OFFSET = [*PARTITION, "source_offset"]

GROUPS: Schema = {
    "group": pl.String,
    "type": pl.String,
    "target_type": pl.String,
    "target_active": pl.Boolean,
}

# A row without a source topic is a group that could not be read as a whole.
SOURCE_COMMITS: Schema = {
    "group": pl.String,
    "source_topic": pl.String,
    "partition": pl.Int32,
    "source_offset": pl.Int64,
    # The epoch of the last record that the group has read; null if its client does not commit it.
    "leader_epoch": pl.Int32,
    "metadata": pl.String,
    "target_topic": pl.String,
    "is_remote_topic": pl.Boolean,
    "failback": pl.Boolean,
    "target_active": pl.Boolean,
    "is_share_group": pl.Boolean,
    # The most records after the offset that a share group has acknowledged.
    "acknowledged": pl.Int64,
    "reason": pl.String,
    "message": pl.String,
}

LOG_ENDS = ["source_end", "source_log_end", "target_end"]

# Partitions whose logs are the same ones as in the last cycle, and none is shorter.
LOG_RANGES: Schema = {
    "source_topic": pl.String,
    "partition": pl.Int32,
    "source_start": pl.Int64,
    # The end for consumers, and that of the log itself: open transactions lie between them.
    "source_end": pl.Int64,
    "source_log_end": pl.Int64,
    "target_start": pl.Int64,
    "target_end": pl.Int64,
}

# An exact translation: its source offset, and the target offsets that mean the same.
_TRANSLATION_CACHE: Schema = {
    "known_offset": pl.Int64,
    "known_target": pl.Int64,
    "known_from": pl.Int64,
    "known_to": pl.Int64,
    "known_timestamp_ms": pl.Int64,
    # The logs' ends, if the translation is valid only while the logs end there; otherwise null.
    "known_source_end": pl.Int64,
    "known_source_log_end": pl.Int64,
    "known_target_end": pl.Int64,
}
KNOWN = list(_TRANSLATION_CACHE)

# What one cycle caches for the next, by group-partition.
CACHE: Schema = {
    "group": pl.String,
    "source_topic": pl.String,
    "partition": pl.Int32,
    **_TRANSLATION_CACHE,
    # The last source offset whose translation the group had on the target, and that translation.
    "last_source": pl.Int64,
    "last_target": pl.Int64,
    # True if this flow has committed `last_target`, false if the reverse flow has committed
    # `last_source` as its translation, null if neither is known.
    "last_committed": pl.Boolean,
    # Only if a flow in the other direction is enabled, too: what the group had on the target, and
    # `commit_rule.source_at_reset`.
    "seen_target": pl.Int64,
    "source_at_reset": pl.Int64,
}
LAST = [name for name in CACHE if name not in (*GROUP_PARTITION, *KNOWN)]

LOG_IDENTITY = [
    "source_topic_id",
    "source_leader_epoch",
    "target_topic_id",
    "target_leader_epoch",
]

# What one cycle caches for the next, by partition: `PartitionCache`.
PARTITIONS: Schema = {
    "source_topic": pl.String,
    "partition": pl.Int32,
    "is_remote_topic": pl.Boolean,
    "failback": pl.Boolean,
    "source_topic_id": pl.String,
    "source_leader_epoch": pl.Int32,
    "target_topic_id": pl.String,
    "target_leader_epoch": pl.Int32,
    "source_end": pl.Int64,
    "source_log_end": pl.Int64,
    "target_end": pl.Int64,
    # The record pairs.
    "pair_sources": pl.List(pl.Int64),
    "pair_targets": pl.List(pl.Int64),
    # The highest record pair that stays safe while both logs are the same.
    "frontier_source": pl.Int64,
    "frontier_target": pl.Int64,
    "first_from": pl.Int64,
}

# What another flow, from the target to the source, has cached of its commits on this flow's source.
REVERSE_COMMITS: Schema = {
    "group": pl.String,
    "source_topic": pl.String,
    "partition": pl.Int32,
    # Its `last_source` (on this flow's target), `last_target` (on its source) and `last_committed`.
    "reverse_source": pl.Int64,
    "reverse_target": pl.Int64,
    "reverse_committed": pl.Boolean,
}

# Partitions whose cached values are no longer valid.
VOID: Schema = {
    "source_topic": pl.String,
    "partition": pl.Int32,
    # True if one of its topics was recreated: offsets of the old log say nothing of the new one.
    "is_recreated": pl.Boolean,
}

# Source commits with what is cached of them.
READ_COMMITS: Schema = {
    **SOURCE_COMMITS,
    **{name: dtype for name, dtype in CACHE.items() if name not in GROUP_PARTITION},
    "reverse_source": pl.Int64,
    "reverse_target": pl.Int64,
    "reverse_committed": pl.Boolean,
    "has_reverse": pl.Boolean,
    # Of partitions in LOG_RANGES.
    "source_log_end": pl.Int64,
    "target_start": pl.Int64,
    "target_end": pl.Int64,
    # Whether the cached translation is valid for the commit, and whether the target group has
    # committed it.
    "is_cached": pl.Boolean,
    "is_unchanged": pl.Boolean,
    "current_target_offset": pl.Int64,
}

# Distinct source offsets to translate, in order.
TO_TRANSLATE: Schema = {
    "source_topic": pl.String,
    "partition": pl.Int32,
    "source_offset": pl.Int64,
    "target_topic": pl.String,
    "is_remote_topic": pl.Boolean,
    "failback": pl.Boolean,
}

# The answer to a source offset. Target offsets from `equivalent_from` to `equivalent_to` mean the
# same: a group there reads on at the same record.
_ANSWER: Schema = {
    "target_offset": pl.Int64,
    "precision": pl.String,
    "reread_bound": pl.Int64,
    "equivalent_from": pl.Int64,
    "equivalent_to": pl.Int64,
}
ANSWER = list(_ANSWER)
_TRANSLATION: Schema = {
    "reason": pl.String,
    "message": pl.String,
    "source_timestamp_ms": pl.Int64,
    **_ANSWER,
    # The target's log when it was translated; null where it could not be read.
    "target_start": pl.Int64,
    "target_end": pl.Int64,
}
TRANSLATION = list(_TRANSLATION)

TRANSLATIONS: Schema = {
    "source_topic": pl.String,
    "partition": pl.Int32,
    "source_offset": pl.Int64,
    **_TRANSLATION,
    "rewrites_timestamps": pl.Boolean,
    # True where it may be cached: for good, or while the logs end where they end now.
    "holds": pl.Boolean,
    "while_source_end": pl.Int64,
    "while_source_log_end": pl.Int64,
    "while_target_end": pl.Int64,
    # Null where it was not read.
    "source_log_end": pl.Int64,
}

# The ids that topics had before translating; null for one that could not be described. Tables of
# their own: in the rows of all group-partitions they would take much memory.
SOURCE_TOPICS: Schema = {"source_topic": pl.String, "source_topic_id": pl.String}
TARGET_TOPICS: Schema = {"target_topic": pl.String, "target_topic_id": pl.String}

LEADER_EPOCHS: Schema = {
    "source_topic": pl.String,
    "partition": pl.Int32,
    "leader_epoch": pl.Int32,
}
LEADER_EPOCH = list(LEADER_EPOCHS)

# Where the records of leader epochs end in the source's logs, or why this could not be read.
EPOCH_ENDS: Schema = {
    **LEADER_EPOCHS,
    # Null if the log has no such epoch.
    "epoch_end": pl.Int64,
    "epoch_reason": pl.String,
    "epoch_message": pl.String,
}

# A row without a source topic is a group that could not be read as a whole.
COMMIT_WORK: Schema = {
    "group": pl.String,
    "source_topic": pl.String,
    "partition": pl.Int32,
    "source_offset": pl.Int64,
    "metadata": pl.String,
    "target_topic": pl.String,
    "target_active": pl.Boolean,
    "is_share_group": pl.Boolean,
    "acknowledged": pl.Int64,
    **_TRANSLATION,
    "last_source": pl.Int64,
    "last_target": pl.Int64,
    "last_committed": pl.Boolean,
    "seen_target": pl.Int64,
    "source_at_reset": pl.Int64,
    "reverse_source": pl.Int64,
    "reverse_target": pl.Int64,
    "reverse_committed": pl.Boolean,
    # Whether a flow in the other direction is enabled, too.
    "has_reverse": pl.Boolean,
    # The target offset that an operator allows the group to go back from.
    "rewind_from": pl.Int64,
}

# A row without a target topic is a group that could not be read as a whole.
TARGET_COMMITS: Schema = {
    "group": pl.String,
    "target_topic": pl.String,
    "partition": pl.Int32,
    "current_target_offset": pl.Int64,
    # Why the committed offset could not be read, and how long it is worth asking again.
    "current_reason": pl.String,
    "current_message": pl.String,
    "current_retry_seconds": pl.Float64,
}
CURRENT = [name for name in TARGET_COMMITS if name.startswith("current_")]

# One row for each row of COMMIT_WORK, in its order.
COMMIT_RESULTS: Schema = {
    "source_timestamp_ms": pl.Int64,
    "target_offset": pl.Int64,
    "current_target_offset": pl.Int64,
    "outcome": pl.String,
    "reason": pl.String,
    "precision": pl.String,
    "reread_bound": pl.Int64,
    "message": pl.String,
}


BROKEN = (Exception, PanicException)
"""Catch these where work must go on after any error: a panic of Polars is no Exception."""


def select(rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The columns of `schema`, in its order and types; those that `rows` lacks are null."""
    there, nulls = rows.schema, _shared_nulls(len(rows))
    return pl.DataFrame(
        [
            rows[name].cast(dtype) if name in there else nulls(dtype).alias(name)
            for name, dtype in schema.items()
        ]
    )


def empty(schema: Schema) -> pl.DataFrame:
    return pl.DataFrame(schema=schema)


def left_join(rows: pl.DataFrame, others: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    """The rows in their order, each with the one of `others` that has the same values in `on`, or
    with nulls. No join is needed where both have the same rows in the same order, as in a flow
    whose groups stay the same, or where `others` is empty."""
    if others.is_empty():
        nulls = _shared_nulls(len(rows))
        found = [nulls(dtype).alias(name) for name, dtype in others.schema.items()]
    elif len(rows) == len(others) and all(
        rows[name].equals(others[name], null_equal=False) for name in on
    ):
        found = others.get_columns()
    else:
        # The other columns of `rows` are not copied.
        keys = pl.DataFrame([rows[name] for name in on])
        joined = keys.join(others, on=on, how="left", validate="m:1", maintain_order="left")
        found = joined.get_columns()
    return rows.hstack([column for column in found if column.name not in on])


def semi_join(rows: pl.DataFrame, others: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    """The rows, in their order, that have the values in `on` of a row of `others`."""
    if rows.is_empty() or others.is_empty():
        return rows.clear()
    return rows.join(others, on=on, how="semi", maintain_order="left")


def anti_join(rows: pl.DataFrame, others: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    """The rows, in their order, that do not have the values in `on` of any row of `others`."""
    if rows.is_empty() or others.is_empty():
        return rows
    return rows.join(others, on=on, how="anti", maintain_order="left")


def _shared_nulls(rows: int) -> Callable[[type[pl.DataType] | pl.DataType], pl.Series]:
    """A column of nulls for each type: columns of one type share its memory."""
    return cache(lambda dtype: pl.Series([None], dtype=dtype).new_from_index(0, rows))


def in_one_chunk(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows, for `pl.format`: it panics (Polars 1.44) where the first chunk of a column has
    no rows, as after filtering concatenated rows."""
    return rows.rechunk()


def null_where(condition: pl.Expr, columns: list[str]) -> list[pl.Expr]:
    """These columns, null where the condition is true."""
    return [pl.when(condition).then(None).otherwise(pl.col(name)).alias(name) for name in columns]
